//! The calls of one rank, put together: what handles stand for, and what requests have become.
//!
//! A request is bound when the wait begins. When it ends, another thread may already have the same handle.

use std::collections::{BTreeMap, VecDeque};

use omptrace_symbols::fast_map::FastMap;
use omptrace_trace_format::event::{CallBegin, CallEnd, CallObjects, Event, ObjectDefined, ObjectFreed};
use omptrace_trace_format::field::{CallClass, CallRole, ObjectKind};

use crate::model::Ns;
use crate::ranks::communicator::{Communicator, Origin};

/// Peers that are no ranks, as the tracer writes them.
const CANCELLED: i32 = -5;
const NONE: i32 = -4;
const PROC_NULL: i32 = -2;
/// Any source or tag.
const ANY: i32 = -1;

/// Words of a completed request in `omptrace_call_objects`: handle, peer, tag, bytes.
const COMPLETED_WORDS: usize = 4;

/// The time that a thread is in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) thread: u32,
    pub(super) begin: Ns,
    pub(super) end: Ns,
}

/// A message that is sent.
#[derive(Clone, Debug)]
pub(super) struct Send {
    /// The place of the communicator.
    pub(super) communicator: usize,
    pub(super) peer: i32,
    pub(super) tag: i32,
    pub(super) bytes: u64,
    /// When it was posted.
    pub(super) posted: Ns,
    /// The call that may wait until it is received.
    pub(super) wait: Option<Span>,
    pub(super) is_cancelled: bool,
}

/// A message that is received, or looked at.
#[derive(Clone, Debug)]
pub(super) struct Receive {
    pub(super) communicator: usize,
    /// Where it is from: [`ANY`] unless it is complete.
    pub(super) peer: i32,
    pub(super) tag: i32,
    pub(super) bytes: u64,
    pub(super) posted: Ns,
    /// The call that waits for it.
    pub(super) wait: Option<Span>,
    pub(super) state: ReceiveState,
    /// It leaves the message where it is (`MPI_Probe`).
    pub(super) is_probe: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveState {
    Posted,
    Complete,
    /// There is no message: it was cancelled, is from `MPI_PROC_NULL`, or has failed.
    Nothing,
}

/// The rank's part in a collective operation.
#[derive(Clone, Debug)]
pub(super) struct Collective {
    pub(super) communicator: usize,
    /// Operations count up from 0 on each communicator.
    pub(super) ordinal: u32,
    pub(super) function: u32,
    /// The root's rank in the communicator, or a negative number.
    pub(super) root: i32,
    pub(super) posted: Ns,
    /// The call that waits for it.
    pub(super) wait: Option<Span>,
}

/// What one rank did.
#[derive(Debug, Default)]
pub(super) struct ProcessCalls {
    pub(super) rank: u32,
    pub(super) communicators: Vec<Communicator>,
    /// In the order in which they were posted.
    pub(super) sends: Vec<Send>,
    pub(super) receives: Vec<Receive>,
    pub(super) collectives: Vec<Collective>,
    pub(super) open_requests: u64,
    pub(super) open_communicators: u64,
}

/// What a request stands for.
#[derive(Clone, Debug)]
enum Meaning {
    /// Also whether the send returns only when it is received.
    Send {
        place: usize,
        is_synchronous: bool,
    },
    Receive {
        place: usize,
    },
    Collective {
        place: usize,
    },
    PersistentSend {
        send: Send,
        started: Vec<usize>,
        is_synchronous: bool,
    },
    PersistentReceive {
        receive: Receive,
        started: Vec<usize>,
    },
    Other,
}

#[derive(Clone, Debug)]
struct Request {
    /// Never used again, unlike a handle.
    number: u64,
    /// The thread that it is of.
    thread: usize,
    /// A call waits for it.
    is_awaited: bool,
    meaning: Meaning,
}

/// A request that a call has waited for, and what its status says.
#[derive(Clone, Copy, Debug)]
struct Completed {
    handle: u64,
    number: u64,
    peer: i32,
    tag: i32,
    bytes: u64,
}

/// A call that a thread is in.
#[derive(Debug)]
struct OpenCall {
    begin: Ns,
    function: u32,
    class: CallClass,
    tag: i32,
    /// The message or operation that the call posts or waits for.
    posted: Posted,
    /// The handles that it waits for, each with the request that it stood for when the wait began.
    awaited: VecDeque<(u64, u64)>,
    completed: Vec<Completed>,
}

#[derive(Clone, Debug)]
enum Posted {
    Nothing,
    Send { place: usize },
    Receive { place: usize },
    Both { send: Option<usize>, receive: usize },
    Collective { place: usize },
    PersistentSend(Send),
    PersistentReceive(Receive),
}

/// Puts the calls of one rank together.
#[derive(Debug)]
pub(super) struct Calls {
    all: ProcessCalls,
    open: Vec<Option<OpenCall>>,
    /// By handle. Libraries have one handle for all sends that are complete at once.
    requests: FastMap<u64, Vec<Request>>,
    requests_so_far: u64,
    /// Places of communicators by handle.
    communicators: FastMap<u64, usize>,
    /// Whether each was freed, or exists from the start.
    is_freed: Vec<bool>,
    /// How many communicators were made from each, and how many collective operations there were.
    made: BTreeMap<usize, u32>,
    operations: BTreeMap<usize, u32>,
    datatypes: FastMap<u64, u64>,
    /// Places of receives by the handle of a matched message (`MPI_Mprobe`).
    messages: FastMap<u64, usize>,
    is_finalized: bool,
}

/// A function's name in C.
pub(super) fn name_of(function: u32) -> &'static str {
    omptrace_mpi_api::function(function).map_or("", |function| function.name)
}

impl Calls {
    pub(super) fn new(rank: u32, threads: usize) -> Calls {
        Calls {
            all: ProcessCalls { rank, ..ProcessCalls::default() },
            open: (0..threads).map(|_| None).collect(),
            requests: FastMap::default(),
            requests_so_far: 0,
            communicators: FastMap::default(),
            is_freed: Vec::new(),
            made: BTreeMap::new(),
            operations: BTreeMap::new(),
            datatypes: FastMap::default(),
            messages: FastMap::default(),
            is_finalized: false,
        }
    }

    /// The next event of the process.
    pub(super) fn event(&mut self, thread: usize, time: Ns, event: &Event<'_>) {
        match event {
            Event::CallBegin(e) => self.begin(thread, time, e),
            Event::CallEnd(e) => self.end(thread, time, e),
            Event::CallObjects(e) => self.objects(thread, e),
            Event::ObjectDefined(e) => self.defined(thread, e),
            Event::ObjectFreed(e) => self.freed(e),
            _ => {}
        }
    }

    pub(super) fn finish(mut self) -> ProcessCalls {
        let open = |request: &Request| match &request.meaning {
            Meaning::PersistentSend { started, .. } | Meaning::PersistentReceive { started, .. } => {
                started.len() as u64
            }
            Meaning::Other => 0,
            _ => 1,
        };
        self.all.open_requests = self.requests.values().flatten().map(open).sum();
        if self.is_finalized {
            self.all.open_communicators = self.is_freed.iter().filter(|is_freed| !**is_freed).count() as u64;
        }
        self.all
    }

    fn begin(&mut self, thread: usize, time: Ns, e: &CallBegin) {
        let name = name_of(e.function);
        if name == "MPI_Finalize" {
            self.is_finalized = true;
        }
        let posted = self.posted(name, time, e).unwrap_or(Posted::Nothing);
        // An error handler may have left the one before by `longjmp`.
        if let Some(abandoned) = self.open.get_mut(thread).and_then(Option::take) {
            self.release(&abandoned);
        }
        if let Some(open) = self.open.get_mut(thread) {
            *open = Some(OpenCall {
                begin: time,
                function: e.function,
                class: e.class,
                tag: e.tag,
                posted,
                awaited: VecDeque::new(),
                completed: Vec::new(),
            });
        }
    }

    /// What a call posts. `None` where that is nothing, or its communicator is not known.
    fn posted(&mut self, name: &str, time: Ns, e: &CallBegin) -> Option<Posted> {
        let is_persistent = e.class == CallClass::start;
        let communicator = match name {
            "MPI_Mrecv" | "MPI_Imrecv" => {
                // The message was taken out of the queue before.
                let place = self.messages.remove(&e.object.0)?;
                return Some(Posted::Receive { place });
            }
            _ => *self.communicators.get(&e.object.0)?,
        };
        let bytes = self.datatypes.get(&e.datatype.0).map_or(0, |bytes| bytes.saturating_mul(e.count));
        let send = Send {
            communicator,
            peer: e.peer,
            tag: e.tag,
            bytes,
            posted: time,
            wait: None,
            is_cancelled: false,
        };
        let receive = Receive {
            communicator,
            peer: e.peer,
            tag: e.tag,
            bytes: 0,
            posted: time,
            wait: None,
            state: ReceiveState::Posted,
            is_probe: e.class == CallClass::probe && !matches!(name, "MPI_Mprobe" | "MPI_Improbe"),
        };
        Some(match e.class {
            CallClass::send | CallClass::nonblocking_send => {
                let place = self.post_send(send)?;
                Posted::Send { place }
            }
            CallClass::receive | CallClass::nonblocking_receive | CallClass::probe => {
                let place = self.post_receive(receive)?;
                Posted::Receive { place }
            }
            CallClass::send_receive => {
                // The tag and the source of the receive are those of its status.
                let receive = Receive { peer: ANY, tag: ANY, ..receive };
                Posted::Both { send: self.post_send(send), receive: self.post_receive(receive)? }
            }
            CallClass::collective | CallClass::nonblocking_collective => {
                let ordinal = self.operations.entry(communicator).or_default();
                self.all.collectives.push(Collective {
                    communicator,
                    ordinal: *ordinal,
                    function: e.function,
                    root: e.peer,
                    posted: time,
                    wait: None,
                });
                *ordinal += 1;
                Posted::Collective { place: self.all.collectives.len() - 1 }
            }
            _ if is_persistent && name == "MPI_Recv_init" => Posted::PersistentReceive(receive),
            _ if is_persistent && is_send_init(name) => Posted::PersistentSend(send),
            _ => return None,
        })
    }

    fn post_send(&mut self, send: Send) -> Option<usize> {
        (send.peer >= 0).then(|| {
            self.all.sends.push(send);
            self.all.sends.len() - 1
        })
    }

    fn post_receive(&mut self, receive: Receive) -> Option<usize> {
        (receive.peer != PROC_NULL).then(|| {
            self.all.receives.push(receive);
            self.all.receives.len() - 1
        })
    }

    fn objects(&mut self, thread: usize, e: &CallObjects<'_>) {
        match e.role {
            CallRole::awaited => {
                let Some(Some(open)) = self.open.get_mut(thread) else { return };
                // A handle may stand for many requests at a time: Open MPI has one for all sends that were complete at once.
                let awaited = e.numbers.iter().filter_map(|handle| {
                    let all = self.requests.get_mut(handle)?;
                    let is_free = |request: &Request| !request.is_awaited;
                    let own = all.iter().position(|request| is_free(request) && request.thread == thread);
                    let place = own.or_else(|| all.iter().position(is_free))?;
                    all[place].is_awaited = true;
                    Some((*handle, all[place].number))
                });
                open.awaited.extend(awaited);
            }
            CallRole::completed => {
                let Some(Some(open)) = self.open.get_mut(thread) else { return };
                for words in e.numbers.chunks_exact(COMPLETED_WORDS) {
                    let Some(place) = open.awaited.iter().position(|(handle, _)| *handle == words[0]) else {
                        continue;
                    };
                    let Some((handle, number)) = open.awaited.remove(place) else { continue };
                    open.completed.push(Completed {
                        handle,
                        number,
                        peer: words[1] as i32,
                        tag: words[2] as i32,
                        bytes: words[3],
                    });
                }
            }
            CallRole::started => {
                let Some(Some(open)) = self.open.get(thread) else { return };
                let time = open.begin;
                for handle in e.numbers.iter() {
                    self.start(time, *handle);
                }
            }
            _ => {}
        }
    }

    /// A persistent request is started: that is a message.
    fn start(&mut self, time: Ns, handle: u64) {
        let Some(request) = self.requests.get_mut(&handle).and_then(|all| all.last_mut()) else { return };
        match &mut request.meaning {
            Meaning::PersistentSend { send, started, .. } if send.peer >= 0 => {
                started.push(self.all.sends.len());
                self.all.sends.push(Send { posted: time, ..send.clone() });
            }
            Meaning::PersistentReceive { receive, started } if receive.peer != PROC_NULL => {
                started.push(self.all.receives.len());
                self.all.receives.push(Receive { posted: time, ..receive.clone() });
            }
            _ => {}
        }
    }

    fn end(&mut self, thread: usize, time: Ns, e: &CallEnd) {
        let Some(call) = self.open.get_mut(thread).and_then(Option::take) else { return };
        self.release(&call);
        if call.function != e.function {
            return;
        }
        let span = Span { thread: thread as u32, begin: call.begin, end: time };
        let has_failed = e.result != 0;
        let request = e.object.0;
        let name = name_of(e.function);
        match call.posted {
            Posted::Nothing if matches!(call.class, CallClass::start) && request != 0 => {
                self.request((thread, request), Meaning::Other);
            }
            Posted::Nothing => {}
            Posted::Send { place } => {
                self.all.sends[place].is_cancelled = has_failed;
                if call.class == CallClass::send {
                    // Others return when the message was copied, or at once.
                    self.all.sends[place].wait = (name != "MPI_Bsend").then_some(span);
                } else if request != 0 {
                    self.request(
                        (thread, request),
                        Meaning::Send { place, is_synchronous: name == "MPI_Issend" },
                    );
                }
            }
            Posted::Receive { place } if name == "MPI_Mrecv" || name == "MPI_Imrecv" => {
                let receive = &mut self.all.receives[place];
                receive.wait = receive.wait.or(Some(span));
                if name == "MPI_Imrecv" && request != 0 {
                    self.request((thread, request), Meaning::Other);
                }
            }
            Posted::Receive { place } if call.class == CallClass::nonblocking_receive => {
                match (has_failed, request) {
                    (true, _) => self.all.receives[place].state = ReceiveState::Nothing,
                    (false, 0) => {}
                    (false, request) => self.request((thread, request), Meaning::Receive { place }),
                }
            }
            Posted::Receive { place } => {
                self.received(place, (e.peer, e.tag, e.bytes), span);
                if has_failed {
                    self.all.receives[place].state = ReceiveState::Nothing;
                } else if call.class == CallClass::probe && request != 0 {
                    self.messages.insert(request, place);
                }
            }
            Posted::Both { receive, .. } if request != 0 => {
                self.request((thread, request), Meaning::Receive { place: receive });
            }
            Posted::Both { send, receive } => {
                self.received(receive, (e.peer, e.tag, e.bytes), span);
                if has_failed {
                    self.all.receives[receive].state = ReceiveState::Nothing;
                    if let Some(send) = send {
                        self.all.sends[send].is_cancelled = true;
                    }
                }
            }
            Posted::Collective { place } if request != 0 => {
                self.request((thread, request), Meaning::Collective { place });
            }
            Posted::Collective { place } => self.all.collectives[place].wait = Some(span),
            Posted::PersistentSend(send) => {
                let is_synchronous = name == "MPI_Ssend_init";
                self.request(
                    (thread, request),
                    Meaning::PersistentSend { send, started: Vec::new(), is_synchronous },
                );
            }
            Posted::PersistentReceive(receive) => {
                self.request((thread, request), Meaning::PersistentReceive { receive, started: Vec::new() });
            }
        }
        // A send within several requests may be complete long before the call returns.
        let is_single = call.completed.len() == 1;
        for completed in call.completed {
            self.complete(completed, span, is_single);
        }
    }

    /// What a call has waited for, and what is not complete, others may wait for.
    fn release(&mut self, call: &OpenCall) {
        for (handle, number) in &call.awaited {
            let mut all = self.requests.get_mut(handle).into_iter().flatten();
            if let Some(request) = all.find(|request| request.number == *number) {
                request.is_awaited = false;
            }
        }
    }

    fn request(&mut self, (thread, handle): (usize, u64), meaning: Meaning) {
        self.requests_so_far += 1;
        let request = Request { number: self.requests_so_far, thread, is_awaited: false, meaning };
        self.requests.entry(handle).or_default().push(request);
    }

    fn complete(&mut self, completed: Completed, span: Span, is_single: bool) {
        let Completed { handle, number, peer, tag, bytes } = completed;
        let Some(all) = self.requests.get_mut(&handle) else { return };
        let Some(place) = all.iter().position(|request| request.number == number) else { return };
        all[place].is_awaited = false;
        let is_cancelled = peer == CANCELLED;
        let next = |started: &mut Vec<usize>| (!started.is_empty()).then(|| started.remove(0));
        let (send, receive, collective) = match &mut all[place].meaning {
            Meaning::PersistentSend { started, is_synchronous, .. } => {
                (next(started).map(|send| (send, *is_synchronous)), None, None)
            }
            Meaning::PersistentReceive { started, .. } => (None, next(started), None),
            _ => match all.remove(place).meaning {
                Meaning::Send { place, is_synchronous } => (Some((place, is_synchronous)), None, None),
                Meaning::Receive { place } => (None, Some(place), None),
                Meaning::Collective { place } => (None, None, Some(place)),
                _ => (None, None, None),
            },
        };
        if all.is_empty() {
            self.requests.remove(&handle);
        }
        if let Some((send, is_synchronous)) = send {
            let send = &mut self.all.sends[send];
            send.is_cancelled |= is_cancelled;
            send.wait = (is_synchronous || is_single).then_some(span);
        }
        if let Some(place) = receive {
            self.received(place, (peer, tag, bytes), span);
        }
        if let Some(place) = collective {
            self.all.collectives[place].wait = Some(span);
        }
    }

    /// A receive is complete, with this status.
    fn received(&mut self, place: usize, (peer, tag, bytes): (i32, i32, u64), span: Span) {
        let receive = &mut self.all.receives[place];
        receive.wait = Some(span);
        receive.state = match peer {
            0.. => ReceiveState::Complete,
            _ => ReceiveState::Nothing,
        };
        if peer >= 0 {
            (receive.peer, receive.tag, receive.bytes) = (peer, tag, bytes);
        }
    }

    fn defined(&mut self, thread: usize, e: &ObjectDefined<'_>) {
        match e.kind {
            ObjectKind::datatype => {
                if let Some(bytes) = e.facts.first() {
                    self.datatypes.insert(e.handle.0, *bytes);
                }
            }
            ObjectKind::communicator => {
                let call = self.open.get(thread).and_then(Option::as_ref);
                let (name, tag) = call.map_or(("", NONE), |call| (name_of(call.function), call.tag));
                let parent = self.communicators.get(&e.parent.0).copied().filter(|_| e.parent.0 != 0);
                let origin = self.origin(name, tag, parent);
                // This rank is no member of what the others have made.
                if e.handle.0 == 0 {
                    return;
                }
                let &[size, own_rank, remote_size, ref members @ ..] = &e.facts[..] else { return };
                self.communicators.insert(e.handle.0, self.all.communicators.len());
                self.all.communicators.push(Communicator {
                    origin,
                    size: size as u32,
                    own_rank: own_rank as u32,
                    remote_size: remote_size as u32,
                    members: members.iter().map(|member| *member as u32).collect(),
                });
                self.is_freed.push(matches!(origin, Origin::World | Origin::Own));
            }
            _ => {}
        }
    }

    fn origin(&mut self, name: &str, tag: i32, parent: Option<usize>) -> Origin {
        match (name, parent) {
            ("MPI_Init" | "MPI_Init_thread", None) => {
                let has_world = self.all.communicators.iter().any(|it| it.origin == Origin::World);
                if has_world { Origin::Own } else { Origin::World }
            }
            ("MPI_Comm_create_group", Some(parent)) => Origin::Group { parent, tag },
            ("MPI_Intercomm_create", _) => Origin::Between { tag },
            ("MPI_Comm_spawn" | "MPI_Comm_spawn_multiple" | "MPI_Comm_accept" | "MPI_Comm_connect", _) => {
                Origin::Unknown
            }
            (_, Some(parent)) => {
                let made = self.made.entry(parent).or_default();
                *made += 1;
                Origin::Made { parent, ordinal: *made }
            }
            (_, None) => Origin::Unknown,
        }
    }

    fn freed(&mut self, e: &ObjectFreed) {
        match e.kind {
            ObjectKind::communicator => {
                if let Some(place) = self.communicators.remove(&e.handle.0) {
                    self.is_freed[place] = true;
                }
            }
            ObjectKind::datatype => {
                self.datatypes.remove(&e.handle.0);
            }
            // What it has started goes on.
            ObjectKind::request => {
                if let Some(all) = self.requests.get_mut(&e.handle.0) {
                    all.pop();
                    if all.is_empty() {
                        self.requests.remove(&e.handle.0);
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_send_init(name: &str) -> bool {
    matches!(name, "MPI_Send_init" | "MPI_Bsend_init" | "MPI_Rsend_init" | "MPI_Ssend_init")
}
