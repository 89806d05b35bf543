//! The MPI job of the watched processes, and which of its ranks waits for which.

use std::time::{Duration, Instant};

use omptrace_analysis::MpiJob;
use omptrace_trace_format::Reader;

use super::watch::{Look, Watched};

/// If a job makes no progress for this long, it may hang, so its traces are read completely.
const STANDSTILL: Duration = Duration::from_secs(2);

/// Reads all watched traces. Traces that cannot be read are ignored.
pub(super) fn read(watched: &[Watched]) -> MpiJob {
    let of_mpi = watched.iter().filter(|process| process.rank_in_mpi().is_some());
    let readers: Vec<Reader> = of_mpi.filter_map(|process| Reader::open(process.trace()).ok()).collect();
    MpiJob::of(&readers.iter().collect::<Vec<_>>())
}

/// Which rank waits for which, valid as long as the selected process has no new events.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    since: Option<Instant>,
    job: Option<MpiJob>,
}

impl Standstill {
    /// Adds notes to the snapshot of a process: what it waits for, and any deadlock.
    pub(super) fn note(&mut self, look: &mut Look, rank: Option<u32>, watched: &[Watched]) {
        let Some(rank) = rank.filter(|_| look.events_per_second == Some(0.0)) else {
            *self = Standstill::default();
            return;
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < STANDSTILL {
            return;
        }
        let job = self.job.get_or_insert_with(|| read(watched));
        let waits = job.waits_of(rank).map(ToString::to_string);
        let deadlock = job.notes.last().filter(|_| job.deadlock.contains(&rank)).cloned();
        let notes: Vec<String> = deadlock.into_iter().chain(waits).collect();
        look.notes.splice(0..0, notes);
    }
}
