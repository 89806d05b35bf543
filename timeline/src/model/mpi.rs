//! MPI messages, collective operations, and communicators.

use std::num::NonZeroU64;

use omptrace_trace_format::Event;
use omptrace_trace_format::field::domain;

use crate::model::ids::Ns;

/// The number of a communicator; the same in all processes of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommunicatorId(pub u32);

/// A communicator of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// Its number.
    pub id: CommunicatorId,
    /// The name that the program gave it, otherwise how it was created.
    pub name: String,
    /// The communicator from which it was created.
    pub parent: Option<CommunicatorId>,
    /// The kind of communicator.
    pub kind: CommunicatorKind,
    /// Its members, as ranks in `MPI_COMM_WORLD`, in the order of their ranks in the communicator.
    pub members: Vec<u32>,
    /// For an intercommunicator, the members of the remote group in the same form.
    pub remote: Vec<u32>,
}

/// The kind of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommunicatorKind {
    /// `MPI_COMM_WORLD`.
    World,
    /// The `MPI_COMM_SELF` of one process.
    Own,
    /// A communicator that the program created.
    Made,
    /// An intercommunicator between two groups.
    Between,
}

/// An MPI event within a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiEvent {
    /// A message is sent. It has a request if the call does not wait for completion.
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
    /// A collective operation ends.
    CollectiveEnd(Collective),
    /// A nonblocking collective operation is posted, which continues when the call returns.
    CollectiveRequest(Collective, RequestId),
    /// A nonblocking collective operation is complete.
    CollectiveComplete(Collective, RequestId),
    /// A communicator was created.
    Created(CommunicatorId),
    /// A communicator is freed.
    Freed(CommunicatorId),
}

/// The number of a request: it stands for one operation, and is never reused in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub NonZeroU64);

/// A message, as one end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The communicator.
    pub communicator: CommunicatorId,
    /// The rank of the other end in the communicator; for an intercommunicator, in the remote group.
    pub peer: u32,
    /// The same rank in `MPI_COMM_WORLD`, if known.
    pub peer_in_world: Option<u32>,
    /// The tag.
    pub tag: i32,
    /// Number of bytes.
    pub bytes: u64,
    /// The other end; `None` if it is unknown.
    pub other: Option<OtherEnd>,
}

/// The other end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherEnd {
    /// The message's number in the job, counted from 1.
    pub message: NonZeroU64,
    /// For the receiver, when the message was sent; for the sender, when it was received.
    pub time: Ns,
}

/// A process's part in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The operation's number in the job, counted from 1; the same for all members.
    pub number: NonZeroU64,
    /// The communicator.
    pub communicator: CommunicatorId,
    /// The function, by its number in the API.
    pub function: u32,
    /// The process that has or receives the data.
    pub root: Root,
    /// Number of bytes that this process sends.
    pub sent: u64,
    /// Number of bytes that this process receives.
    pub received: u64,
    /// When the operation was posted.
    pub posted: Ns,
}

impl Collective {
    /// The function's name; empty if unknown.
    pub fn function_name(&self) -> &'static str {
        omptrace_mpi_api::function(self.function).map_or("", |function| function.name)
    }

    /// The name of the operation, regardless of whether it blocks or is persistent: `MPI_Iallreduce` is an `allreduce`.
    pub fn operation(&self) -> String {
        operation(self.function_name()).unwrap_or_default()
    }
}

/// The C name of the function for whose call an event is the start or end; `None` if it is not an MPI function.
pub fn called_function(event: &Event<'_>) -> Option<&'static str> {
    let (interface, function) = match event {
        Event::CallBegin(e) => (e.domain, e.function),
        Event::CallEnd(e) => (e.domain, e.function),
        _ => return None,
    };
    let function = omptrace_mpi_api::function(function).filter(|_| interface == domain::MPI);
    function.map(|function| function.name)
}

/// The C name of an MPI function, by its number in the API; `None` if the number is not known.
pub fn function_name(function: u32) -> Option<&'static str> {
    omptrace_mpi_api::function(function).map(|function| function.name)
}

/// The operation that a function performs; `None` if it is not an MPI function.
pub(crate) fn operation(function: &str) -> Option<String> {
    let name = function.strip_prefix("MPI_")?;
    let name = name.strip_suffix("_init").unwrap_or(name);
    // Nonblocking functions have the prefix `I`.
    Some(name.strip_prefix('I').unwrap_or(name).to_ascii_lowercase())
}

/// The root of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// No root.
    None,
    /// This rank in the communicator; for an intercommunicator, in the remote group.
    Rank(u32),
    /// This process (`MPI_ROOT`).
    This,
    /// Another process of the own group (`MPI_PROC_NULL`).
    OfGroup,
}

impl MpiEvent {
    /// The message, if the event is about one.
    pub fn message(&self) -> Option<&Message> {
        match self {
            MpiEvent::Send(message, _) | MpiEvent::Receive(message, _) => Some(message),
            _ => None,
        }
    }

    /// The same event without the other end of a message, for timelines that do not show it.
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
