//! How much the ranks of an MPI job communicate.

use serde::Serialize;

use crate::model::place::Place;

/// The messages and collective operations of an MPI job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankTraffic {
    /// The number of messages that were sent and received.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The messages from one rank to another, sorted by bytes. At most 1,000 rows are listed.
    pub pairs: Vec<PairTraffic>,
    /// The number of pairs that are not in `pairs`; left out if it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_pairs: u64,
    /// The message matrix, in which neighbouring ranks share rows and columns if there are many ranks.
    pub matrix: MessageMatrix,
    /// The collective operations by call, sorted by the time that ranks spent in them. At most 100 rows are listed.
    pub collectives: Vec<CollectiveCalls>,
    /// Tests and probes that found nothing, by rank and call, sorted by number. At most 100 rows are listed.
    pub unsuccessful_tests: Vec<RankTests>,
}

/// The messages from one rank to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PairTraffic {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// The number of messages.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Who sends how much to whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MessageMatrix {
    /// The number of ranks in each row and column, except for the last, which may have fewer.
    pub ranks_per_group: u32,
    /// The number of ranks.
    pub ranks: u32,
    /// The cells that have messages.
    pub cells: Vec<MatrixCell>,
}

/// A cell of the message matrix.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MatrixCell {
    /// The first sender.
    pub from: u32,
    /// The first receiver.
    pub to: u32,
    /// The number of messages.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The collective operations of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CollectiveCalls {
    /// The call, and its location; of ranks that call the function at different locations, of the first rank.
    pub place: Place,
    /// The number of participating ranks.
    pub ranks: u64,
    /// The number of operations.
    pub count: u64,
    /// The time that ranks spent in the calls, summed over the ranks.
    pub ns: u64,
    /// The part of it in which they waited for other ranks; `None` if not all ranks use the same location.
    pub waits_ns: Option<u64>,
    /// The sum of the bytes of the buffers that the ranks passed.
    pub bytes: u64,
    /// When the first rank started the longest operation, in nanoseconds since the start of the timeline.
    pub longest_begin_ns: i64,
    /// How long this operation took until the last rank returned.
    pub longest_ns: u64,
    /// The rank that started it last.
    pub last_rank: u32,
}

/// Tests and probes of a rank that found nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankTests {
    /// The rank.
    pub rank: u32,
    /// The function, and its location, if a call there ended the series of tests.
    pub place: Place,
    /// The number of tests.
    pub count: u64,
    /// The time in tests between which the rank worked.
    pub between_work_ns: u64,
    /// The time in which the rank did little but test, so that it waited. Counts as work in `accounting`.
    pub waiting_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
