//! Calls that wait for requests or test them.
//!
//! The handles are read before the call, which sets them to null. The tracer resolves a handle to its request when the
//! wait begins: another thread may get the same handle as soon as the request is complete.

use core::mem::MaybeUninit;
use std::alloc::{GlobalAlloc, Layout};

use interpose::memory::KernelMemory;

use crate::call::{Call, Context};
use crate::family::{Family, Interface, Received, STATUS_WORDS, UNDEFINED};
use crate::row::{Handle, Kind, NONE};
use crate::tracer::{CallBegins, CallEnds, peer, role, tag};

/// The argument positions of one of these functions, counted as in C; [`NONE`] if the function has no such argument.
#[derive(Debug)]
struct Arguments {
    count: u8,
    requests: u8,
    /// The index of the completed request.
    index: u8,
    /// The number of completed requests, and their indices.
    completed: u8,
    places: u8,
    /// The flag that says whether a test succeeded.
    flag: u8,
    status: u8,
}

const fn arguments([count, requests, index, completed, places, flag, status]: [u8; 7]) -> Arguments {
    Arguments { count, requests, index, completed, places, flag, status }
}

static WAIT: Arguments = arguments([NONE, 0, NONE, NONE, NONE, NONE, 1]);
static WAIT_ALL: Arguments = arguments([0, 1, NONE, NONE, NONE, NONE, 2]);
static WAIT_ANY: Arguments = arguments([0, 1, 2, NONE, NONE, NONE, 3]);
static SOME: Arguments = arguments([0, 1, NONE, 2, 3, NONE, 4]);
static TEST: Arguments = arguments([NONE, 0, NONE, NONE, NONE, 1, 2]);
static TEST_ALL: Arguments = arguments([0, 1, NONE, NONE, NONE, 2, 3]);
static TEST_ANY: Arguments = arguments([0, 1, 2, NONE, NONE, 3, 4]);

impl Arguments {
    fn of(kind: Kind) -> &'static Arguments {
        match kind {
            Kind::Wait => &WAIT,
            Kind::Waitall => &WAIT_ALL,
            Kind::Waitany => &WAIT_ANY,
            Kind::Test => &TEST,
            Kind::Testall => &TEST_ALL,
            Kind::Testany => &TEST_ANY,
            _ => &SOME,
        }
    }

    fn is_of_all(&self) -> bool {
        self.index == NONE && self.places == NONE
    }
}

/// Words reported for a completed request: handle, peer, tag, bytes.
const FACTS: usize = 4;
/// Words needed for each request: its handle, the reported words, and a status.
const EACH: usize = 1 + FACTS + STATUS_WORDS;
/// Calls with at most this many requests need no memory from the kernel.
const FEW: usize = 8;

/// Memory on the stack, of which only as much is written as the call needs.
type Own = MaybeUninit<[u64; EACH * FEW]>;

/// Memory for a call: on the stack if there are few requests. It has no destructor; if an error handler leaves the call
/// by `longjmp`, the memory leaks.
#[derive(Debug)]
struct Memory {
    words: *mut u64,
    count: usize,
    kernel: Option<Layout>,
}

impl Memory {
    /// Memory for this number of requests; `None` if the kernel has none left.
    #[inline(always)]
    fn of(count: usize, own: &mut Own) -> Option<Memory> {
        if count <= FEW {
            let words = own.as_mut_ptr().cast::<u64>();
            // SAFETY: there is room for this number of requests. Zeroed, because libraries leave parts of a status
            // unchanged.
            unsafe { words.write_bytes(0, count * EACH) };
            return Some(Memory { words, count, kernel: None });
        }
        let layout = Layout::array::<u64>(count.checked_mul(EACH)?).ok()?;
        // SAFETY: the layout's size is not 0.
        let words = unsafe { KernelMemory.alloc_zeroed(layout) }.cast::<u64>();
        (!words.is_null()).then_some(Memory { words, count, kernel: Some(layout) })
    }

    fn give_back(self) {
        if let Some(layout) = self.kernel {
            // SAFETY: allocated with this layout and no longer used.
            unsafe { KernelMemory.dealloc(self.words.cast(), layout) };
        }
    }

    fn handles(&mut self) -> &mut [u64] {
        // SAFETY: the first part of the memory.
        unsafe { core::slice::from_raw_parts_mut(self.words, self.count) }
    }

    fn facts(&mut self) -> &mut [u64] {
        // SAFETY: the second part.
        unsafe { core::slice::from_raw_parts_mut(self.words.add(self.count), self.count * FACTS) }
    }

    fn statuses(&self) -> u64 {
        // SAFETY: the third part.
        unsafe { self.words.add(self.count * (1 + FACTS)) as usize as u64 }
    }
}

/// A call of this kind, with the values read before the MPI library is called.
#[derive(Debug)]
struct Completion {
    arguments: &'static Arguments,
    memory: Memory,
}

/// The results of the call.
#[derive(Debug)]
struct Completed {
    code: i32,
    /// Number of completed requests.
    count: usize,
    /// The first completed request that was not null.
    first: Option<Received>,
    /// Number of words to report.
    facts: usize,
}

impl Completion {
    /// Reads the handles, and passes statuses of our own to the call if the program wants none.
    #[inline(always)]
    fn of(family: &Family, call: &mut Call, own: &mut Own) -> Option<Completion> {
        let arguments = Arguments::of(call.row.kind);
        let count = if arguments.count == NONE { 1 } else { call.integer(arguments.count).max(0) as usize };
        let mut memory = Memory::of(count, own)?;
        for (place, handle) in memory.handles().iter_mut().enumerate() {
            *handle = call.handle_at(family, arguments.requests, Handle::Request, place);
        }
        if call.is_ignored(family, call.address(arguments.status)) {
            call.set_address(arguments.status, memory.statuses());
        }
        Some(Completion { arguments, memory })
    }

    /// Reads the completed requests; none if the call failed.
    #[inline(always)]
    fn completed(&mut self, family: &Family, call: &Call, result: u64) -> Completed {
        let code = call.result_code(result);
        let mut completed = Completed { code, count: 0, first: None, facts: 0 };
        if code != 0 || !self.is_set(call) {
            return completed;
        }
        let count = self.count(call);
        let base = self.base(family, call, count);
        let statuses = call.address(self.arguments.status);
        for at in 0..count {
            let place = match self.arguments.is_of_all() {
                true => at,
                false => self.place(call, at).wrapping_sub(base) as usize,
            };
            let Some(handle) = self.memory.handles().get(place).copied() else { continue };
            completed.count += 1;
            if handle == family.request_null {
                continue;
            }
            // SAFETY: the status of a completed request.
            let received = unsafe { family.completed(statuses + (at * family.status_bytes) as u64) };
            completed.first.get_or_insert(received);
            let words = completed.facts..completed.facts + FACTS;
            if let Some(words) = self.memory.facts().get_mut(words) {
                let (peer, tag) = (i64::from(received.peer), i64::from(received.tag));
                words.copy_from_slice(&[handle, peer as u64, tag as u64, received.bytes]);
                completed.facts += FACTS;
            }
        }
        completed
    }

    /// Whether the call's flag is set.
    fn is_set(&self, call: &Call) -> bool {
        let flag = call.address(self.arguments.flag) as *const i32;
        // SAFETY: by the promise for the call.
        self.arguments.flag == NONE || unsafe { flag.read() } != 0
    }

    /// Number of completed requests.
    fn count(&self, call: &Call) -> usize {
        let read = |argument: u8| {
            // SAFETY: by the promise for the call.
            unsafe { (call.address(argument) as *const i32).read() }
        };
        match self.arguments {
            arguments if arguments.index != NONE => usize::from(read(arguments.index) != UNDEFINED),
            arguments if arguments.completed != NONE => match read(arguments.completed) {
                UNDEFINED => 0,
                count => (count.max(0) as usize).min(self.memory.count),
            },
            _ => self.memory.count,
        }
    }

    /// The index of a completed request, as the call returns it.
    fn place(&self, call: &Call, at: usize) -> i32 {
        let (argument, at) = match self.arguments.index {
            NONE => (self.arguments.places, at),
            index => (index, 0),
        };
        // SAFETY: by the promise for the call.
        unsafe { (call.address(argument) as *const i32).add(at).read() }
    }

    /// The base of indices: 1 in Fortran. MPICH 4.0 counts from 0 in `mpi_f08`, so for MPICH the base is derived from
    /// the request that has become null.
    fn base(&mut self, family: &Family, call: &Call, count: usize) -> i32 {
        let is_fortran = call.is_fortran();
        if !is_fortran || family.interface != Interface::Mpich || self.arguments.is_of_all() || count == 0 {
            return i32::from(is_fortran);
        }
        let place = self.place(call, 0);
        let requests = self.arguments.requests;
        let mut has_changed = |place: i32| {
            let before =
                usize::try_from(place).ok().and_then(|place| self.memory.handles().get(place).copied());
            before.is_some_and(|before| {
                before != call.handle_at(family, requests, Handle::Request, place as usize)
            })
        };
        // A persistent request never becomes null.
        i32::from(place != 0 && (has_changed(place.wrapping_sub(1)) || !has_changed(place)))
    }
}

fn begins(call: &Call) -> CallBegins {
    CallBegins {
        function: call.number,
        class: call.row.class as u32,
        object: 0,
        peer: peer::NONE,
        tag: tag::NONE,
        count: 0,
        datatype: 0,
        code: call.code,
    }
}

fn ends(call: &Call, completed: &Completed) -> CallEnds {
    let one = completed.first.filter(|_| completed.count == 1);
    let none = Received { peer: peer::NONE, tag: tag::NONE, bytes: 0 };
    let Received { peer, tag, bytes } = one.unwrap_or(none);
    CallEnds {
        function: call.number,
        class: call.row.class as u32,
        result: completed.code,
        peer,
        tag,
        object: 0,
        bytes,
        code: call.code,
    }
}

impl Context {
    /// Reports the end of the call.
    #[inline(always)]
    fn completes(&self, call: &Call, completion: &mut Completion, completed: &Completed) {
        if let Some(facts) =
            completion.memory.facts().get(..completed.facts).filter(|facts| !facts.is_empty())
        {
            self.tracer.tell(role::COMPLETED, facts);
        }
        (self.tracer.ends)(&ends(call, completed));
    }
}

/// A call that waits for requests.
#[inline(never)]
pub(crate) fn wait(context: &mut Context, call: &mut Call) -> u64 {
    let mut own = Own::uninit();
    let is_recorded = context.begins(&begins(call));
    let completion = match is_recorded {
        true => Completion::of(context.family, call, &mut own),
        false => None,
    };
    if let Some(mut completion) = completion {
        context.tracer.tell(role::AWAITED, completion.memory.handles());
        let result = context.go_on(call);
        let completed = completion.completed(context.family, call, result);
        context.completes(call, &mut completion, &completed);
        completion.memory.give_back();
        return result;
    }
    let result = context.go_on(call);
    if is_recorded {
        let code = call.result_code(result);
        (context.tracer.ends)(&ends(call, &Completed { code, count: 0, first: None, facts: 0 }));
    }
    result
}

/// A call that tests requests: it is reported if it completed something.
#[inline(never)]
pub(crate) fn test(context: &mut Context, call: &mut Call) -> u64 {
    let mut own = Own::uninit();
    let Some(mut completion) = Completion::of(context.family, call, &mut own) else {
        return context.go_on(call);
    };
    let begin = context.test_begins();
    let result = context.go_on(call);
    let completed = completion.completed(context.family, call, result);
    // If all requests are null, a test succeeds and completes nothing.
    if completed.facts == 0 && completed.code == 0 {
        context.count_fruitless(call.number, begin);
    } else if context.begins(&begins(call)) {
        let mut handles = [0; FEW];
        for (handle, facts) in handles.iter_mut().zip(completion.memory.facts().chunks_exact(FACTS)) {
            *handle = facts[0];
        }
        let count = completed.facts / FACTS;
        match handles.get(..count) {
            Some(handles) => context.tracer.tell(role::AWAITED, handles),
            None => context.tracer.tell(role::AWAITED, completion.memory.handles()),
        }
        context.completes(call, &mut completion, &completed);
    }
    completion.memory.give_back();
    result
}

/// A call that starts persistent requests. If the previous message is still in a buffer, Open MPI replaces the
/// program's request by a new one (`MPI_Bsend_init`).
#[inline(never)]
pub(crate) fn start(context: &mut Context, call: &mut Call) -> u64 {
    let family = context.family;
    let object = call.object(family);
    if !context.begins(&call.begins(family, object)) {
        return context.go_on(call);
    }
    let (count, requests) = match call.row.kind {
        Kind::Startall => (call.integer(0).max(0) as usize, 1),
        _ => (1, 0),
    };
    let mut own = Own::uninit();
    let mut memory = Memory::of(count, &mut own);
    if let Some(memory) = &mut memory {
        for (place, handle) in memory.handles().iter_mut().enumerate() {
            *handle = call.handle_at(family, requests, Handle::Request, place);
        }
        context.tracer.tell(role::STARTED, memory.handles());
    }
    let result = context.go_on(call);
    if let Some(mut memory) = memory {
        let mut replaced = 0;
        for place in 0..count {
            let now = call.handle_at(family, requests, Handle::Request, place);
            let before = memory.handles().get(place).copied().filter(|before| *before != now);
            let words = memory.facts().get_mut(replaced..replaced + 2);
            if let (Some(before), Some(words)) = (before, words) {
                words.copy_from_slice(&[before, now]);
                replaced += 2;
            }
        }
        if let Some(facts) = memory.facts().get(..replaced).filter(|facts| !facts.is_empty()) {
            context.tracer.tell(role::REPLACED, facts);
        }
        memory.give_back();
    }
    (context.tracer.ends)(&call.ends(family, call.result_code(result), 0));
    result
}
