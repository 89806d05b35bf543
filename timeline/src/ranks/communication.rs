//! How much ranks communicate, and what they could avoid, as data.

use crate::model::Ns;

/// The communication of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The messages from one rank to another, sorted by sender and receiver.
    pub pairs: Vec<PairMessages>,
    /// The collective operations by call site.
    pub collectives: Vec<CollectiveSite>,
}

/// The messages from one rank to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairMessages {
    /// The sender, in `MPI_COMM_WORLD`.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// The number of messages that were sent and received.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The operations that the first of the participating processes starts at one call site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectiveSite {
    /// The function, by its number in the API.
    pub function: u32,
    /// The process, by its number on the timeline, and the index of the site among the sites of this process.
    pub at: (usize, u32),
    /// The number of participating ranks.
    pub ranks: usize,
    /// The number of operations.
    pub count: u64,
    /// The time that ranks spent in the calls, summed over the ranks.
    pub ns: u64,
    /// The sum of the bytes of the buffers that the ranks passed.
    pub bytes: u64,
    /// The longest operation.
    pub longest: LongestOperation,
}

/// The longest operation of a call site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongestOperation {
    /// When the first rank started it.
    pub begin: Ns,
    /// How long it took until the last rank returned.
    pub ns: u64,
    /// The rank that started it last, in `MPI_COMM_WORLD`.
    pub last_rank: u32,
}

/// Waits of one call site that begin right after the requests were started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleWaits {
    /// The index of the call site.
    pub site: u32,
    /// The number of waits.
    pub count: u64,
    /// The time that the calls waited for other ranks.
    pub waits_ns: u64,
    /// The part of it that work could have filled that the thread did later: for each wait, at most the work between
    /// it and the next call.
    pub fillable_ns: u64,
}

/// Tests and probes that found nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsuccessfulTests {
    /// The function, by its number in the API.
    pub function: u32,
    /// The index of the call site; `None` if a call of another function ended the series.
    pub site: Option<u32>,
    /// The number of tests.
    pub count: u64,
    /// The time in tests between which the thread worked.
    pub between_work_ns: u64,
    /// The time in which the thread did little but test: a wait.
    pub waiting_ns: u64,
    /// The part of it that work could have filled that the thread did later.
    pub fillable_ns: u64,
}
