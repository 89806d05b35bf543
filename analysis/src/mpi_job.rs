//! An MPI job as a whole: the clocks of its hosts, ranks that are missing, and who waits for whom where it hangs or was killed.

use omptrace_timeline::{Timeline, WaitingRank};
use omptrace_trace_format::Reader;

use crate::model::mpi::missing_ranks;

/// What the traces of an MPI job show together.
#[derive(Clone, Debug, Default)]
pub struct MpiJob {
    /// Words about it, a line each.
    pub notes: Vec<String>,
    /// The ranks that wait for others when their traces end, in order.
    pub waiting: Vec<WaitingRank>,
    /// Ranks of which each waits for the next, and the last for the first. Empty where there is no deadlock.
    pub deadlock: Vec<u32>,
}

impl MpiJob {
    /// The job whose traces these are. Nothing is known of one process alone, or of processes without MPI.
    pub fn of(readers: &[&Reader]) -> MpiJob {
        if readers.len() < 2 || readers.iter().all(|reader| reader.metadata().mpi.is_none()) {
            return MpiJob::default();
        }
        let timeline = Timeline::of(readers).with_ranks();
        let Some(ranks) = timeline.ranks() else { return MpiJob::default() };
        let missing = missing_ranks(ranks).into_iter();
        let clocks = ranks.hosts.map(|hosts| hosts.note(timeline.uncertainty_ns));
        MpiJob {
            notes: missing.chain(clocks).chain(ranks.waiting_notes()).collect(),
            waiting: ranks.waiting.clone(),
            deadlock: ranks.deadlock.clone().unwrap_or_default(),
        }
    }

    /// The calls in which a rank waits.
    pub fn waits_of(&self, rank: u32) -> impl Iterator<Item = &WaitingRank> {
        self.waiting.iter().filter(move |waiting| waiting.rank == rank)
    }
}
