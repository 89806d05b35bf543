//! What matching finds out about each rank: its messages, unmatched ones, and calls that its thread level forbids.

use std::sync::Arc;

use crate::model::{Lifetime, Ns};
use crate::ranks::call_events::CallEvents;
use crate::ranks::communication::{IdleWaits, UnsuccessfulTests};
use crate::ranks::communicator::Origin;
use crate::ranks::forbidden::Forbidden;
use crate::ranks::joints::{Joint, Joints};
use crate::ranks::process_calls::{ProcessCalls, Receive, ReceiveState, Send};
use crate::ranks::sites::CallSite;

/// What one rank did with the others.
#[derive(Clone, Debug, Default)]
pub struct RankMessages {
    /// Its rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Its numbers.
    pub counts: MessageCounts,
    /// Sends that no receive matches, but for those that were cancelled.
    pub unmatched_sends: Unmatched,
    /// Receives that no send matches, but for those that were cancelled.
    pub unmatched_receives: Unmatched,
    /// Messages that are longer than the buffers that they were received in, or would be.
    pub truncated: Unmatched,
    /// Calls from threads that may make none at that time.
    pub forbidden: Forbidden,
    /// Requests that no call has completed or freed.
    pub open_requests: u64,
    /// Persistent requests that were not freed, where the program called `MPI_Finalize`.
    pub open_persistent: u64,
    /// Communicators that were created and not freed, where the program called `MPI_Finalize`.
    pub open_communicators: u64,
    /// The time that the thread which initialized the library was in calls.
    pub in_calls_ns: u64,
    /// From the start of the process to its end, as far as the trace says.
    pub life: (Ns, Ns),
    /// The index of the stream whose thread makes the calls: the first that made one.
    pub thread: u32,
    /// Where the program makes calls.
    pub sites: Vec<CallSite>,
    /// Waits that begin right after their requests were started, by call site.
    pub idle_waits: Vec<IdleWaits>,
    /// Tests and probes that found nothing.
    pub tests: Vec<UnsuccessfulTests>,
    pub(crate) joints: Joints,
    /// Waits for the last of several, on which the end of a call depends, but which are no wait states.
    pub(crate) path_waits: Joints,
    /// What its calls do; empty unless that is wanted.
    pub(crate) events: Arc<CallEvents>,
}

impl RankMessages {
    /// The waits in its calls.
    pub fn joints(&self) -> &Joints {
        &self.joints
    }

    /// The latest wait of a thread that began before `time`: the call does not end before the awaited one begins.
    pub fn wait_before(&self, thread: u32, time: Ns) -> Option<&Joint> {
        let [wait, other] = [&self.joints, &self.path_waits].map(|joints| joints.before(thread, time));
        wait.into_iter().chain(other).max_by_key(|joint| (joint.begin, joint.until))
    }

    /// Adds a send to the numbers.
    pub(super) fn count_send(&mut self, send: &Send) {
        if !send.is_cancelled {
            self.counts.sends += 1;
            self.counts.sent_bytes = self.counts.sent_bytes.saturating_add(send.bytes);
        }
    }

    /// Adds a receive.
    pub(super) fn count_receive(&mut self, receive: &Receive) {
        if !receive.is_probe && receive.state == ReceiveState::Complete {
            self.counts.receives += 1;
            self.counts.received_bytes = self.counts.received_bytes.saturating_add(receive.bytes);
        }
    }

    /// Takes over what is known of a rank when all of its events were read: `calls` has its messages that were not counted before.
    pub(super) fn count(&mut self, calls: &ProcessCalls) {
        let is_made = |origin| !matches!(origin, Origin::World | Origin::Own);
        let made = calls.communicators.iter().filter(|communicator| is_made(communicator.origin));
        calls.sends.iter().for_each(|(_, send)| self.count_send(send));
        calls.receives.iter().for_each(|(_, receive)| self.count_receive(receive));
        self.rank = calls.rank;
        self.counts.collectives = calls.collectives.len() as u64;
        self.counts.communicators = made.count() as u64;
        self.forbidden = calls.forbidden.clone();
        self.in_calls_ns = calls.in_calls_ns;
        self.open_requests = calls.open_requests;
        self.open_persistent = calls.open_persistent;
        self.open_communicators = calls.open_communicators;
        self.life = (Ns::MAX, calls.list.last.unwrap_or(Ns::MIN));
        self.thread = calls.list.thread.unwrap_or(0);
    }

    /// With the times at which the process started and ended.
    pub(super) fn with_lifetime(mut self, lifetime: &Lifetime) -> RankMessages {
        let begin = lifetime.started.unwrap_or(lifetime.traced_from);
        let end = lifetime.ended.map_or(self.life.1, |ended| ended.max(self.life.1));
        self.life = (begin, end.max(begin));
        self
    }
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

/// Ends of messages that have no other end, or of other messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// How many there are.
    pub count: u64,
    /// The other rank of the first one, and its tag.
    pub first: Option<(u32, i32)>,
}
