//! The MPI job that the watched processes are, and which of its ranks waits for which.

use std::time::{Duration, Instant};

use omptrace_analysis::MpiJob;
use omptrace_trace_format::Reader;

use super::watch::{Look, Watched};

/// A job that stands still this long may hang: then its traces are read as a whole.
const STANDSTILL: Duration = Duration::from_secs(2);

/// Reads the traces of all that is watched. What cannot be read is as if it were not watched.
pub(super) fn read(watched: &[Watched]) -> MpiJob {
    let of_mpi = watched.iter().filter(|process| process.rank_in_mpi().is_some());
    let readers: Vec<Reader> = of_mpi.filter_map(|process| Reader::open(process.trace()).ok()).collect();
    MpiJob::of(&readers.iter().collect::<Vec<_>>())
}

/// Who waits for whom, as long as the process that is shown has no new events.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    since: Option<Instant>,
    job: Option<MpiJob>,
}

impl Standstill {
    /// Notes in the look at a process what it waits for, and a deadlock.
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
