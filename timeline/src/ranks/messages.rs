//! What is found out of a rank.

use crate::ranks::joints::Joints;

/// What one rank did with the others.
#[derive(Clone, Debug, Default)]
pub struct RankMessages {
    /// Its numbers.
    pub counts: MessageCounts,
    /// Sends that no receive matches, but for those that were cancelled.
    pub unmatched_sends: Unmatched,
    /// Receives that no send matches, but for those that were cancelled.
    pub unmatched_receives: Unmatched,
    /// Requests that no call has completed or freed.
    pub open_requests: u64,
    /// Communicators that were created and not freed, where the program called `MPI_Finalize`.
    pub open_communicators: u64,
    pub(crate) joints: Joints,
}

/// How much one rank communicated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Messages that were sent. `MPI_PROC_NULL` gets none.
    pub sends: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Messages that were received.
    pub receives: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Collective operations that it took part in, but for those that create or free something.
    pub collectives: u64,
    /// Communicators that it created with others.
    pub communicators: u64,
}

/// Ends of messages that have no other end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// How many there are.
    pub count: u64,
    /// The other rank of the first one, and its tag.
    pub first: Option<(u32, i32)>,
}
