//! An MPI job as a whole: the clocks of its hosts, missing ranks, and for a job that hung or was killed, which rank
//! waits for which.

use omptrace_timeline::{Timeline, WaitingRank};
use omptrace_trace_format::Reader;

use crate::model::mpi::missing_ranks;

/// The results of analysing the traces of an MPI job together.
#[derive(Clone, Debug, Default)]
pub struct MpiJob {
    /// Notes on the job, one per line.
    pub notes: Vec<String>,
    /// The ranks that wait for others when their traces end, in ascending order.
    pub waiting: Vec<WaitingRank>,
    /// The ranks of a deadlock: each waits for the next, and the last for the first. Empty if there is none.
    pub deadlock: Vec<u32>,
}

impl MpiJob {
    /// Analyses the traces of a job. Empty for a single process, and for processes without MPI.
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

    /// The calls in which this rank waits.
    pub fn waits_of(&self, rank: u32) -> impl Iterator<Item = &WaitingRank> {
        self.waiting.iter().filter(move |waiting| waiting.rank == rank)
    }
}
