//! What one rank did, as its calls say: messages that it sent and received, and collective operations that it took part in.

use std::num::NonZeroU64;

use omptrace_trace_format::event::ClockMeasured;

use crate::model::Ns;
use crate::ranks::call_list::CallList;
use crate::ranks::communicator::Communicator;
use crate::ranks::forbidden::Forbidden;
use crate::ranks::gaps::Gaps;
use crate::ranks::in_flight::InFlight;
use crate::ranks::objects::Objects;
use crate::ranks::open_call::OpenCall;
use crate::ranks::posting::{Posting, Span};
use crate::ranks::sites::Sites;

/// What one rank did.
#[derive(Debug, Default)]
pub(super) struct ProcessCalls {
    pub(super) rank: u32,
    pub(super) communicators: Vec<Communicator>,
    /// In the order in which they were posted.
    pub(super) sends: InFlight<Send>,
    pub(super) receives: InFlight<Receive>,
    pub(super) collectives: InFlight<Collective>,
    /// Calls of `MPI_Win_fence`.
    pub(super) fences: InFlight<Fence>,
    /// When the oldest of the calls began that threads are in.
    pub(super) open_since: Option<Ns>,
    /// Comparisons with clocks of other hosts.
    pub(super) measured: Vec<ClockMeasured>,
    /// Calls that threads are in at the end.
    pub(super) open: Vec<OpenCall>,
    /// The handles of communicators.
    pub(super) objects: Objects,
    pub(super) forbidden: Forbidden,
    /// Where the program makes calls.
    pub(super) sites: Sites,
    /// What threads do between calls.
    pub(super) gaps: Gaps,
    /// The time that the thread which initialized the library was in calls.
    pub(super) in_calls_ns: u64,
    pub(super) open_requests: u64,
    pub(super) open_persistent: u64,
    pub(super) open_communicators: u64,
    /// The calls in chronological order, and when the process ended.
    pub(super) list: CallList,
}

impl ProcessCalls {
    /// Keeps what is known without other processes: communicators and their handles.
    pub(super) fn forget_messages(&mut self) {
        (self.sends, self.receives) = (InFlight::default(), InFlight::default());
        (self.collectives, self.fences) = (InFlight::default(), InFlight::default());
        for communicator in &mut self.communicators {
            (communicator.made, communicator.freed) = (None, None);
        }
    }
}

/// The other end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// The number of the message in the job.
    pub(super) message: NonZeroU64,
    pub(super) time: Ns,
}

/// A message that is sent.
#[derive(Clone, Debug)]
pub(super) struct Send {
    /// The place of the communicator.
    pub(super) communicator: u32,
    pub(super) peer: i32,
    /// The receiver's rank in `MPI_COMM_WORLD`, once that is known.
    pub(super) peer_in_world: Option<u32>,
    pub(super) tag: i32,
    pub(super) bytes: u64,
    pub(super) posted: Posting,
    /// The request's number, where it has one: see [`Calls`](super::calls::Calls).
    pub(super) request: Option<NonZeroU64>,
    /// The call that it is complete in.
    pub(super) done: Option<Span>,
    /// Whether that call may wait until it is received.
    pub(super) may_wait: bool,
    /// Whether it is complete only once it is received.
    pub(super) is_synchronous: bool,
    pub(super) is_cancelled: bool,
    /// Whether it could have been a part of an earlier message.
    pub(super) is_combinable: bool,
    /// Nothing more will be known of it before its receive is known.
    pub(super) is_settled: bool,
    pub(super) is_matched: bool,
    pub(super) other: Option<Match>,
}

impl Send {
    /// The call that may wait until it is received.
    pub(super) fn wait(&self) -> Option<Span> {
        self.done.filter(|_| self.may_wait)
    }
}

/// A message that is received, or looked at.
#[derive(Clone, Debug)]
pub(super) struct Receive {
    pub(super) communicator: u32,
    /// Where it is from: [`ANY`](super::posting::ANY) unless it is complete.
    pub(super) peer: i32,
    pub(super) peer_in_world: Option<u32>,
    pub(super) tag: i32,
    /// The bytes of the message, or of the buffer unless it is complete.
    pub(super) bytes: u64,
    /// The bytes of the buffer; `None` where they are not known.
    pub(super) room: Option<u64>,
    pub(super) posted: Posting,
    pub(super) request: Option<NonZeroU64>,
    /// The call that waits for it.
    pub(super) wait: Option<Span>,
    /// The call that it is complete in: another one where the message was looked for before (`MPI_Mprobe`).
    pub(super) done: Option<Span>,
    pub(super) state: ReceiveState,
    /// It leaves the message where it is (`MPI_Probe`).
    pub(super) is_probe: bool,
    /// As above.
    pub(super) is_settled: bool,
    pub(super) is_matched: bool,
    pub(super) other: Option<Match>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveState {
    Posted,
    Complete,
    /// It was cancelled.
    Cancelled,
    /// There is no message: it is from `MPI_PROC_NULL`, or has failed.
    Nothing,
}

/// The rank's part in a collective operation.
#[derive(Clone, Debug)]
pub(super) struct Collective {
    pub(super) communicator: u32,
    /// Operations count up from 0 on each communicator.
    pub(super) ordinal: u32,
    /// Of a persistent operation, how often it was started; else 0.
    pub(super) round: u32,
    pub(super) function: u32,
    /// The root's rank in the communicator, or a negative number.
    pub(super) root: i32,
    /// Those of the buffer that the call passes.
    pub(super) bytes: u64,
    /// What the process sends and receives, once the operation is known.
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) posted: Posting,
    pub(super) request: Option<NonZeroU64>,
    /// The call that waits for it.
    pub(super) wait: Option<Span>,
    /// As above.
    pub(super) is_settled: bool,
    pub(super) is_matched: bool,
    /// Its number in the job; `None` until it is matched.
    pub(super) number: Option<NonZeroU64>,
}

/// The rank's part in the synchronization of a window by all ranks that have it.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    /// The place of the communicator that the window was made of.
    pub(super) communicator: u32,
    /// Windows count up from 0 on each communicator, and fences on each window.
    pub(super) window: u32,
    pub(super) ordinal: u32,
    pub(super) posted: Posting,
    /// The call, once it has returned.
    pub(super) done: Option<Span>,
    pub(super) is_matched: bool,
}
