//! What a thread does in calls of MPI: messages, collective operations, and the communicators that they are on.

use std::num::NonZeroU64;

use omptrace_trace_format::Event;
use omptrace_trace_format::field::domain;

use crate::model::ids::Ns;

/// The number of a communicator, the same in all processes of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommunicatorId(pub u32);

/// A communicator of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// Its number.
    pub id: CommunicatorId,
    /// The program's name for it, or else how it was made.
    pub name: String,
    /// What it was made from.
    pub parent: Option<CommunicatorId>,
    /// What it is.
    pub kind: CommunicatorKind,
    /// Its members as ranks in `MPI_COMM_WORLD`, in the order of their ranks.
    pub members: Vec<u32>,
    /// Those of the other group of an intercommunicator, in the same way.
    pub remote: Vec<u32>,
}

/// What a communicator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommunicatorKind {
    /// `MPI_COMM_WORLD`.
    World,
    /// The `MPI_COMM_SELF` of one process.
    Own,
    /// One of those that the program made.
    Made,
    /// One between two groups.
    Between,
}

/// Something that a thread does in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiEvent {
    /// A message is posted. It has a request where the call does not wait for it.
    Send(Message, Option<RequestId>),
    /// The send of a request is complete.
    SendComplete(RequestId),
    /// A receive is posted.
    ReceiveRequest(RequestId),
    /// A message is received.
    Receive(Message, Option<RequestId>),
    /// A request is cancelled.
    Cancelled(RequestId),
    /// A collective operation begins.
    CollectiveBegin(Collective),
    /// It ends.
    CollectiveEnd(Collective),
    /// A collective operation is posted that goes on when the call returns.
    CollectiveRequest(Collective, RequestId),
    /// It is complete.
    CollectiveComplete(Collective, RequestId),
    /// A communicator is there.
    Created(CommunicatorId),
    /// A communicator is freed.
    Freed(CommunicatorId),
}

/// The number of a request: one operation, and never used again in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub NonZeroU64);

/// A message, as one end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The communicator.
    pub communicator: CommunicatorId,
    /// The rank of the other end in the communicator; of an intercommunicator, in the other group.
    pub peer: u32,
    /// The same rank in `MPI_COMM_WORLD`, where that is known.
    pub peer_in_world: Option<u32>,
    /// Its tag.
    pub tag: i32,
    /// Its bytes.
    pub bytes: u64,
    /// The other end; `None` where there is none.
    pub other: Option<OtherEnd>,
}

/// The other end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherEnd {
    /// The message's number in the job, from 1.
    pub message: NonZeroU64,
    /// When it was sent, for the receiver; for the sender, when it was received.
    pub time: Ns,
}

/// A process's part in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The operation's number in the job, from 1: the same for all members.
    pub number: NonZeroU64,
    /// The communicator.
    pub communicator: CommunicatorId,
    /// The function, by its number in the API.
    pub function: u32,
    /// Who has or gets the data.
    pub root: Root,
    /// The bytes that this process sends.
    pub sent: u64,
    /// The bytes that it receives.
    pub received: u64,
    /// When it was posted.
    pub posted: Ns,
}

impl Collective {
    /// The function's name; empty where it is not known.
    pub fn function_name(&self) -> &'static str {
        omptrace_mpi_api::function(self.function).map_or("", |function| function.name)
    }

    /// The name of the operation, whether it blocks, is persistent, or neither: `MPI_Iallreduce` is an `allreduce`.
    pub fn operation(&self) -> String {
        operation(self.function_name()).unwrap_or_default()
    }
}

/// The name in C of the function that an event is the start or the end of a call of; `None` where it is none of MPI's.
pub fn called_function(event: &Event<'_>) -> Option<&'static str> {
    let (interface, function) = match event {
        Event::CallBegin(e) => (e.domain, e.function),
        Event::CallEnd(e) => (e.domain, e.function),
        _ => return None,
    };
    let function = omptrace_mpi_api::function(function).filter(|_| interface == domain::MPI);
    function.map(|function| function.name)
}

/// The operation that a function is for; `None` where it is not MPI's.
pub(crate) fn operation(function: &str) -> Option<String> {
    let name = function.strip_prefix("MPI_")?;
    let name = name.strip_suffix("_init").unwrap_or(name);
    // Functions that do not block have an I before the same name.
    Some(name.strip_prefix('I').unwrap_or(name).to_ascii_lowercase())
}

/// The root of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// It has none.
    None,
    /// This rank in the communicator; of an intercommunicator, in the other group.
    Rank(u32),
    /// This process (`MPI_ROOT`).
    This,
    /// Another process of its group (`MPI_PROC_NULL`).
    OfGroup,
}

impl MpiEvent {
    /// The message, where it is one.
    pub fn message(&self) -> Option<&Message> {
        match self {
            MpiEvent::Send(message, _) | MpiEvent::Receive(message, _) => Some(message),
            _ => None,
        }
    }

    /// The same event of a timeline that does not show the other end of a message.
    #[must_use]
    pub fn alone(self) -> MpiEvent {
        let alone = |message| Message { other: None, ..message };
        match self {
            MpiEvent::Send(message, request) => MpiEvent::Send(alone(message), request),
            MpiEvent::Receive(message, request) => MpiEvent::Receive(alone(message), request),
            other => other,
        }
    }
}
