//! The calls of one rank, put together: what handles stand for, and what requests have become.
//!
//! A request is bound when the wait begins. When it ends, another thread may already have the same handle.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;

use omptrace_symbols::fast_map::FastMap;
use omptrace_trace_format::event::{
    CallBegin, CallEnd, CallObjects, Event, ObjectDefined, ObjectFreed, ObjectNamed,
};
use omptrace_trace_format::field::{CallClass, CallRole, ObjectKind};

use crate::model::Ns;
use crate::ranks::call_list::CallList;
use crate::ranks::communicator::{Communicator, Origin};
use crate::ranks::forbidden::ThreadRules;
use crate::ranks::gaps::Gaps;
use crate::ranks::posting::{ANY, Posting, Span, name_of};
use crate::ranks::process_calls::{Collective, Fence, ProcessCalls, Receive, ReceiveState, Send};
use crate::ranks::requests::{Completed, Meaning, Posted, Request, is_collective_init, is_send_init};

/// Peers that are no ranks, as the tracer writes them.
const NONE: i32 = -4;
const PROC_NULL: i32 = -2;

/// Messages of fewer bytes are small: sending one costs about the same whatever its size.
const MAX_SMALL: u64 = 4 << 10;

/// Words of a completed request in `omptrace_call_objects`: handle, peer, tag, bytes.
const COMPLETED_WORDS: usize = 4;
/// Words of a request that has another handle now: the one before, and the new one.
const HANDLE_PAIR: usize = 2;

/// A call that a thread is in.
#[derive(Debug)]
pub(super) struct OpenCall {
    posted_at: Posting,
    pub(super) function: u32,
    pub(super) class: CallClass,
    tag: i32,
    count: u64,
    datatype: u64,
    /// The message or operation that the call posts or waits for.
    pub(super) posted: Posted,
    /// The handles that it waits for, each with the request that it stood for when the wait began.
    pub(super) awaited: VecDeque<(u64, u64)>,
    completed: Vec<Completed>,
}

/// Puts the calls of one rank together.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) all: ProcessCalls,
    open: Vec<Option<OpenCall>>,
    /// By handle. Libraries have one handle for all sends that are complete at once.
    pub(super) requests: FastMap<u64, Vec<Request>>,
    requests_so_far: u64,
    /// Places of communicators by handle.
    communicators: FastMap<u64, u32>,
    /// Whether each was freed, or exists from the start.
    is_freed: Vec<bool>,
    /// How many communicators were made from each, and how many collective operations there were.
    made: BTreeMap<u32, u32>,
    operations: BTreeMap<u32, u32>,
    /// Of each window, the place of its communicator, which window of that it is, and how many fences there were.
    windows: FastMap<u64, (u32, u32, u32)>,
    windows_made: BTreeMap<u32, u32>,
    datatypes: FastMap<u64, u64>,
    /// Places of receives by the handle of a matched message (`MPI_Mprobe`).
    messages: FastMap<u64, usize>,
    is_finalized: bool,
    /// The number of receives and operations that were complete so far.
    pub(super) arrivals: u64,
    /// By communicator and receiver: how many of them were complete at the last small message.
    sent_after: FastMap<(u32, i32), u64>,
    rules: ThreadRules,
    pub(super) gaps: Gaps,
}

impl Calls {
    /// `list`: for the calls of the thread that makes the first one.
    pub(super) fn new(rank: u32, threads: usize, rules: ThreadRules, list: CallList) -> Calls {
        Calls {
            all: ProcessCalls { rank, list, ..ProcessCalls::default() },
            open: (0..threads).map(|_| None).collect(),
            requests: FastMap::default(),
            requests_so_far: 0,
            communicators: FastMap::default(),
            is_freed: Vec::new(),
            made: BTreeMap::new(),
            operations: BTreeMap::new(),
            windows: FastMap::default(),
            windows_made: BTreeMap::new(),
            datatypes: FastMap::default(),
            messages: FastMap::default(),
            is_finalized: false,
            arrivals: 0,
            sent_after: FastMap::default(),
            rules,
            gaps: Gaps::of(threads),
        }
    }

    /// The next event of the process.
    pub(super) fn event(&mut self, thread: usize, time: Ns, event: &Event<'_>) {
        self.all.list.event(time);
        match event {
            Event::CallBegin(e) => self.begin(thread, time, e),
            Event::CallEnd(e) => self.end(thread, time, e),
            Event::CallObjects(e) => self.call_objects(thread, e),
            Event::ObjectDefined(e) => self.defined(thread, time, e),
            Event::ObjectNamed(e) => self.named(e),
            Event::ObjectFreed(e) => self.freed(thread, time, e),
            Event::ClockMeasured(e) => self.all.measured.push((**e).clone()),
            _ => {}
        }
    }

    /// When the oldest of the calls began that threads are in.
    pub(super) fn open_since(&self) -> Option<Ns> {
        self.open.iter().flatten().map(|call| call.posted_at.begin).min()
    }

    pub(super) fn finish(mut self) -> ProcessCalls {
        let open = |request: &Request| match &request.meaning {
            Meaning::PersistentSend { started, .. }
            | Meaning::PersistentReceive { started, .. }
            | Meaning::PersistentCollective { started, .. } => started.len() as u64,
            Meaning::Other => 0,
            _ => 1,
        };
        self.all.open_requests = self.requests.values().flatten().map(open).sum();
        if self.is_finalized {
            self.all.open_communicators = self.is_freed.iter().filter(|is_freed| !**is_freed).count() as u64;
            self.all.open_persistent =
                self.requests.values().flatten().filter(|request| request.is_persistent()).count() as u64;
        }
        self.all.open = self.open.iter().flatten().map(|call| self.open_call(call)).collect();
        self.all.gaps = self.gaps;
        self.all.forbidden = self.rules.finish();
        self.all.objects.finish();
        self.all
    }

    fn begin(&mut self, thread: usize, time: Ns, e: &CallBegin) {
        let name = name_of(e.function);
        if name == "MPI_Finalize" {
            self.is_finalized = true;
        }
        let site = self.all.sites.number((e.function, e.codeptr_ra.0), (thread as u32, time));
        self.gaps.call_begins(thread, time);
        let call = self.all.list.begin(thread as u32, time, e);
        let posting = Posting { thread: thread as u32, site, call, begin: time };
        let posted = self.posted(name, posting, e).unwrap_or(Posted::Nothing);
        // An error handler may have left the one before by `longjmp`.
        if let Some(abandoned) = self.open.get_mut(thread).and_then(Option::take) {
            self.release(&abandoned);
            self.rules.end();
        }
        self.rules.begin(thread, name);
        if let Some(open) = self.open.get_mut(thread) {
            *open = Some(OpenCall {
                posted_at: posting,
                function: e.function,
                class: e.class,
                tag: e.tag,
                count: e.count,
                datatype: e.datatype.0,
                posted,
                awaited: VecDeque::new(),
                completed: Vec::new(),
            });
        }
    }

    /// What a call posts. `None` where that is nothing, or its communicator is not known.
    fn posted(&mut self, name: &str, posted: Posting, e: &CallBegin) -> Option<Posted> {
        let is_persistent = e.class == CallClass::start;
        let communicator = match name {
            "MPI_Mrecv" | "MPI_Imrecv" => {
                // The message was taken out of the queue before.
                let place = self.messages.remove(&e.object.0)?;
                return Some(Posted::Receive { place });
            }
            "MPI_Win_fence" => return self.fence(e.object.0, posted),
            _ => *self.communicators.get(&e.object.0)?,
        };
        let room = self.datatypes.get(&e.datatype.0).map(|bytes| bytes.saturating_mul(e.count));
        let send = Send {
            communicator,
            peer: e.peer,
            peer_in_world: None,
            tag: e.tag,
            bytes: room.unwrap_or(0),
            posted,
            request: None,
            done: None,
            may_wait: false,
            is_synchronous: matches!(name, "MPI_Ssend" | "MPI_Issend" | "MPI_Ssend_init"),
            is_cancelled: false,
            is_combinable: false,
            is_settled: false,
            is_matched: false,
            other: None,
        };
        let receive = Receive {
            communicator,
            peer: e.peer,
            peer_in_world: None,
            tag: e.tag,
            bytes: 0,
            // A probe has no buffer, and that of `MPI_Sendrecv` is not told.
            room: room.filter(|_| !matches!(e.class, CallClass::probe | CallClass::send_receive)),
            posted,
            request: None,
            wait: None,
            done: None,
            state: ReceiveState::Posted,
            is_probe: e.class == CallClass::probe && !matches!(name, "MPI_Mprobe" | "MPI_Improbe"),
            is_settled: false,
            is_matched: false,
            other: None,
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
                let collective = self.collective(communicator, posted, e);
                Posted::Collective { place: self.all.collectives.push(collective) }
            }
            _ if is_persistent && name == "MPI_Recv_init" => Posted::PersistentReceive(receive),
            _ if is_persistent && is_send_init(name) => Posted::PersistentSend(send),
            _ if is_persistent && is_collective_init(name) => {
                Posted::PersistentCollective(self.collective(communicator, posted, e))
            }
            _ => return None,
        })
    }

    /// The next operation on a communicator.
    fn collective(&mut self, communicator: u32, posted: Posting, e: &CallBegin) -> Collective {
        let next = self.operations.entry(communicator).or_default();
        let ordinal = *next;
        *next += 1;
        let bytes = self.datatypes.get(&e.datatype.0).map_or(0, |bytes| bytes.saturating_mul(e.count));
        Collective {
            communicator,
            ordinal,
            round: 0,
            function: e.function,
            root: e.peer,
            bytes,
            sent: 0,
            received: 0,
            posted,
            request: None,
            wait: None,
            is_settled: false,
            is_matched: false,
            number: None,
        }
    }

    /// The next fence of a window.
    fn fence(&mut self, window: u64, posted: Posting) -> Option<Posted> {
        let (communicator, window, next) = self.windows.get_mut(&window)?;
        let ordinal = *next;
        *next += 1;
        let fence = Fence {
            communicator: *communicator,
            window: *window,
            ordinal,
            posted,
            done: None,
            is_matched: false,
        };
        Some(Posted::Fence { place: self.all.fences.push(fence) })
    }

    fn post_send(&mut self, send: Send) -> Option<usize> {
        (send.peer >= 0).then(|| self.add_send(send))
    }

    /// Adds a send, which may be a start of a persistent one.
    fn add_send(&mut self, mut send: Send) -> usize {
        if send.bytes <= MAX_SMALL {
            let before = self.sent_after.insert((send.communicator, send.peer), self.arrivals);
            send.is_combinable = before == Some(self.arrivals);
        }
        self.all.sends.push(send)
    }

    fn post_receive(&mut self, receive: Receive) -> Option<usize> {
        (receive.peer != PROC_NULL).then(|| self.all.receives.push(receive))
    }

    fn call_objects(&mut self, thread: usize, e: &CallObjects<'_>) {
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
                let posting = open.posted_at;
                for handle in e.numbers.iter() {
                    self.start(posting, *handle);
                }
            }
            CallRole::replaced => self.replace(&e.numbers),
            CallRole::spun => {
                let Some(Some(open)) = self.open.get(thread) else { return };
                self.gaps.spun(thread, &e.numbers, (open.function, open.posted_at.site));
            }
            _ => {}
        }
    }

    /// A persistent request is started: that is a message, or an operation.
    fn start(&mut self, posted: Posting, handle: u64) {
        let Some(request) = self.requests.get_mut(&handle).and_then(|all| all.last_mut()) else { return };
        request.posted = self.gaps.outside(posted.thread as usize);
        // Each is an operation of its own.
        self.requests_so_far += 1;
        let number = NonZeroU64::new(self.requests_so_far);
        let mut new_send = None;
        match &mut request.meaning {
            Meaning::PersistentSend { send, started, .. } if send.peer >= 0 => {
                started.push_back(self.all.sends.len());
                new_send = Some(Send { posted, request: number, ..send.clone() });
            }
            Meaning::PersistentReceive { receive, started } if receive.peer != PROC_NULL => {
                let receive = Receive { posted, request: number, ..receive.clone() };
                started.push_back(self.all.receives.push(receive));
            }
            Meaning::PersistentCollective { collective, started } => {
                collective.round += 1;
                let collective = Collective { posted, request: number, ..collective.clone() };
                started.push_back(self.all.collectives.push(collective));
            }
            _ => {}
        }
        if let Some(send) = new_send {
            self.add_send(send);
        }
    }

    /// Persistent requests get other handles: pairs of the handle before and the new one. One may get what another one had.
    fn replace(&mut self, numbers: &[u64]) {
        let pairs = numbers.as_chunks::<HANDLE_PAIR>().0;
        let taken: Vec<(u64, Request)> =
            pairs.iter().filter_map(|[before, now]| Some((*now, self.take_persistent(*before)?))).collect();
        for (now, request) in taken {
            self.requests.entry(now).or_default().push(request);
        }
    }

    /// Takes the last persistent request that has a handle.
    fn take_persistent(&mut self, handle: u64) -> Option<Request> {
        let all = self.requests.get_mut(&handle)?;
        let place = all.iter().rposition(Request::is_persistent)?;
        let request = all.remove(place);
        if all.is_empty() {
            self.requests.remove(&handle);
        }
        Some(request)
    }

    fn end(&mut self, thread: usize, time: Ns, e: &CallEnd) {
        self.all.list.end(thread as u32, time, e);
        let Some(call) = self.open.get_mut(thread).and_then(Option::take) else { return };
        self.release(&call);
        self.rules.end();
        if self.rules.main() == Some(thread) {
            self.all.in_calls_ns += time.abs_diff(call.posted_at.begin);
        }
        let Posting { thread: number, site, call: in_list, begin } = call.posted_at;
        let span = Span { thread: number, site, call: in_list, begin, end: time };
        self.all.sites.add(site, begin, time);
        if call.function != e.function {
            self.gaps.call_ends((span.thread, span.site), (span.begin, span.end), false);
            return;
        }
        let has_failed = e.result != 0;
        let request = e.object.0;
        let name = name_of(e.function);
        match call.posted {
            Posted::Nothing if matches!(call.class, CallClass::start) && request != 0 => {
                self.request((thread, request), Meaning::Other);
            }
            Posted::Nothing => {}
            Posted::Send { place } => {
                let is_over = call.class == CallClass::send;
                let meaning = Meaning::Send { place, is_synchronous: name == "MPI_Issend" };
                let is_request = !is_over && request != 0;
                let number = is_request.then(|| self.request((thread, request), meaning)).flatten();
                if let Some(send) = self.all.sends.get_mut(place) {
                    (send.is_cancelled, send.request, send.is_settled) = (has_failed, number, !is_request);
                    if is_over {
                        // Others return when the message was copied, or at once.
                        (send.done, send.may_wait) = (Some(span), name != "MPI_Bsend");
                    }
                }
            }
            Posted::Receive { place } if name == "MPI_Mrecv" || name == "MPI_Imrecv" => {
                let room = self.datatypes.get(&call.datatype).map(|bytes| bytes.saturating_mul(call.count));
                let is_request = name == "MPI_Imrecv" && request != 0;
                self.arrivals += 1;
                if let Some(receive) = self.all.receives.get_mut(place) {
                    receive.wait = receive.wait.or(Some(span));
                    (receive.done, receive.room, receive.is_settled) = (Some(span), room, !is_request);
                }
                if is_request {
                    self.request((thread, request), Meaning::Receive { place });
                }
            }
            Posted::Receive { place } if call.class == CallClass::nonblocking_receive => {
                let is_request = !has_failed && request != 0;
                let meaning = Meaning::Receive { place };
                let number = is_request.then(|| self.request((thread, request), meaning)).flatten();
                if let Some(receive) = self.all.receives.get_mut(place) {
                    (receive.request, receive.is_settled) = (number, !is_request);
                    if has_failed {
                        receive.state = ReceiveState::Nothing;
                    }
                }
            }
            Posted::Receive { place } => {
                self.received(place, (e.peer, e.tag, e.bytes), span);
                let is_found = !has_failed && call.class == CallClass::probe && request != 0;
                if is_found {
                    self.messages.insert(request, place);
                }
                if let Some(receive) = self.all.receives.get_mut(place) {
                    receive.is_settled = !is_found;
                    if has_failed {
                        receive.state = ReceiveState::Nothing;
                    }
                }
            }
            Posted::Both { send, receive } if request != 0 => {
                let number = self.request((thread, request), Meaning::Both { send, receive });
                if let Some(receive) = self.all.receives.get_mut(receive) {
                    receive.request = number;
                }
                if let Some(send) = send.and_then(|place| self.all.sends.get_mut(place)) {
                    self.requests_so_far += 1;
                    send.request = NonZeroU64::new(self.requests_so_far);
                }
            }
            Posted::Both { send, receive } => {
                if let Some(send) = send.and_then(|place| self.all.sends.get_mut(place)) {
                    (send.done, send.may_wait) = (Some(span), true);
                    (send.is_cancelled, send.is_settled) = (has_failed, true);
                }
                self.received(receive, (e.peer, e.tag, e.bytes), span);
                if let Some(receive) = self.all.receives.get_mut(receive).filter(|_| has_failed) {
                    receive.state = ReceiveState::Nothing;
                }
            }
            Posted::Collective { place } if request != 0 => {
                let number = self.request((thread, request), Meaning::Collective { place });
                if let Some(collective) = self.all.collectives.get_mut(place) {
                    collective.request = number;
                }
            }
            Posted::Collective { place } => self.takes_part(place, span),
            Posted::Fence { place } => {
                self.arrivals += 1;
                if let Some(fence) = self.all.fences.get_mut(place) {
                    fence.done = Some(span);
                }
            }
            Posted::PersistentSend(send) => {
                let is_synchronous = name == "MPI_Ssend_init";
                self.request(
                    (thread, request),
                    Meaning::PersistentSend { send, started: VecDeque::new(), is_synchronous },
                );
            }
            Posted::PersistentReceive(receive) => {
                let started = VecDeque::new();
                self.request((thread, request), Meaning::PersistentReceive { receive, started });
            }
            Posted::PersistentCollective(collective) => {
                let started = VecDeque::new();
                self.request((thread, request), Meaning::PersistentCollective { collective, started });
            }
        }
        // A send within several requests may be complete long before the call returns.
        let is_single = call.completed.len() == 1;
        for completed in call.completed {
            self.complete(completed, span, is_single);
        }
        let waits = call.class == CallClass::wait;
        self.gaps.call_ends((span.thread, span.site), (span.begin, span.end), waits);
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

    /// Gives the request's number.
    fn request(&mut self, (thread, handle): (usize, u64), meaning: Meaning) -> Option<NonZeroU64> {
        self.requests_so_far += 1;
        let number = self.requests_so_far;
        let posted = self.gaps.outside(thread);
        let request = Request { number, thread, posted, is_awaited: false, meaning };
        self.requests.entry(handle).or_default().push(request);
        NonZeroU64::new(number)
    }

    fn defined(&mut self, thread: usize, time: Ns, e: &ObjectDefined<'_>) {
        match e.kind {
            ObjectKind::datatype => {
                if let Some(bytes) = e.facts.first() {
                    self.datatypes.insert(e.handle.0, *bytes);
                }
            }
            // All members of the communicator make windows in the same order.
            ObjectKind::window => {
                if let Some(communicator) = self.communicators.get(&e.parent.0) {
                    let next = self.windows_made.entry(*communicator).or_default();
                    self.windows.insert(e.handle.0, (*communicator, *next, 0));
                    *next += 1;
                }
            }
            ObjectKind::communicator => {
                let call = self.open.get(thread).and_then(Option::as_ref);
                let (function, tag) = call.map_or((0, NONE), |call| (call.function, call.tag));
                let made = call.map(|call| call.posted_at);
                let name = name_of(function);
                let parent = self.communicators.get(&e.parent.0).copied().filter(|_| e.parent.0 != 0);
                let origin = self.origin(name, tag, parent);
                // This rank is no member of what the others have made.
                if e.handle.0 == 0 {
                    return;
                }
                let &[size, own_rank, remote_size, ref members @ ..] = &e.facts[..] else { return };
                let place = self.all.communicators.len() as u32;
                self.communicators.insert(e.handle.0, place);
                self.all.objects.define(e.handle.0, time, place);
                self.all.communicators.push(Communicator {
                    origin,
                    function,
                    name: e.name.0.as_deref().map(text),
                    made,
                    freed: None,
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

    /// A communicator gets a name.
    fn named(&mut self, e: &ObjectNamed<'_>) {
        let place = self.communicators.get(&e.handle.0).filter(|_| e.kind == ObjectKind::communicator);
        if let (Some(place), Some(name)) = (place, e.name.0.as_deref()) {
            self.all.communicators[*place as usize].name = Some(text(name));
        }
    }

    fn origin(&mut self, name: &str, tag: i32, parent: Option<u32>) -> Origin {
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

    fn freed(&mut self, thread: usize, time: Ns, e: &ObjectFreed) {
        match e.kind {
            ObjectKind::communicator => {
                if let Some(place) = self.communicators.remove(&e.handle.0) {
                    self.is_freed[place as usize] = true;
                    self.all.objects.free(e.handle.0, time);
                    let call = self.open.get(thread).and_then(Option::as_ref);
                    self.all.communicators[place as usize].freed = call.map(|call| call.posted_at);
                }
            }
            ObjectKind::datatype => {
                self.datatypes.remove(&e.handle.0);
            }
            ObjectKind::window => {
                self.windows.remove(&e.handle.0);
            }
            // What it has started goes on.
            ObjectKind::request => {
                if let Some(all) = self.requests.get_mut(&e.handle.0) {
                    let freed = all.pop();
                    if all.is_empty() {
                        self.requests.remove(&e.handle.0);
                    }
                    freed.into_iter().for_each(|request| self.settle(&request));
                }
            }
            _ => {}
        }
    }
}

/// The name that a program gives.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
