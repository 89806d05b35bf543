//! Calls of other programming interfaces: if `libomptmpi.so` is preloaded, it reports the MPI calls.
//!
//! That library is located between the program and any MPI library. It knows the MPI library's handles and constants,
//! and passes facts to the tracer that have the same meaning for all MPI libraries:
//!
//! ```text
//! MPI_Init   -> starts()                 a session, unless the OpenMP runtime has started one
//!            -> the MPI library's function
//!            -> describe(), defined()    the library and the job; the predefined communicators and types
//! MPI_Recv   -> begins()                 an event
//!            -> the MPI library's function
//!            -> ends()                   an event
//! ```
//!
//! The tracer keeps no state about these facts: the reader reconstructs requests, communicators and messages.

use std::borrow::Cow;
use std::ffi::{c_char, c_void};
use std::mem::transmute;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use omptrace_device::memory;
use omptrace_settings::Settings;
use omptrace_settings::value::Switch;
use omptrace_trace_format::Event;
use omptrace_trace_format::event::{
    CallBegin, CallEnd, CallObjects, ClockMeasured, CompactRow, ObjectDefined, ObjectFreed, ObjectNamed,
    WideRow,
};
use omptrace_trace_format::field::{Address, CallClass, CallRole, Numbers, ObjectKind, Text, domain};
use omptrace_trace_format::liveness;
use omptrace_trace_format::metadata::{Metadata, Mpi};

use crate::callbacks::control_tool;
use crate::os::loader;
use crate::os::system;
use crate::os::threads::containment::contained;
use crate::os::threads::lock::Mutex;
use crate::os::threads::stack;
use crate::os::time::clock;
use crate::recorder::guarded::guarded;
use crate::recorder::recorder::Mode;
use crate::recorder::this_thread;
use crate::session::hooks::SessionHooks;
use crate::session::{self, Session, cold_path};

/// Maximum bytes of an object's name, and of a description.
const MAX_NAME: usize = 1 << 10;
const MAX_DESCRIPTION: usize = 1 << 14;
/// Maximum number of numbers in an event, so that it fits into a chunk.
const MAX_NUMBERS: usize = 1 << 10;

/// The functions passed to the library: see the same structure in `adapters/mpi/src/tracer.rs`.
#[repr(C)]
struct Functions {
    version: u32,
    starts: extern "C" fn() -> bool,
    describe: unsafe extern "C" fn(*const c_char),
    begins: unsafe extern "C" fn(*const CallBegins) -> bool,
    ends: unsafe extern "C" fn(*const CallEnds),
    objects: unsafe extern "C" fn(u32, *const u64, usize),
    defined: unsafe extern "C" fn(u32, u64, u64, *const u64, usize, *const c_char),
    named: unsafe extern "C" fn(u32, u64, *const c_char),
    freed: extern "C" fn(u32, u64),
    pauses: extern "C" fn(bool),
    compares_clocks: extern "C" fn() -> bool,
    host: extern "C" fn() -> u32,
    raw_clock: extern "C" fn() -> u64,
    measured: extern "C" fn(u32, u64, u64, u64),
}

#[repr(C)]
struct CallBegins {
    function: u32,
    class: u32,
    object: u64,
    peer: i32,
    tag: i32,
    count: u64,
    datatype: u64,
    code: *const c_void,
}

#[repr(C)]
struct CallEnds {
    function: u32,
    class: u32,
    result: i32,
    peer: i32,
    tag: i32,
    object: u64,
    bytes: u64,
    code: *const c_void,
}

static FUNCTIONS: Functions = Functions {
    version: 2,
    starts,
    describe,
    begins,
    ends,
    objects,
    defined,
    named,
    freed,
    pauses,
    compares_clocks,
    host,
    raw_clock,
    measured,
};

/// Starts a session without an OpenMP runtime; returns whether there is a session now.
type BeginSession = fn() -> bool;

static BEGIN_SESSION: OnceLock<BeginSession> = OnceLock::new();

/// Passes the functions to the library, if it is in the global scope. `begin_session` starts a session if no OpenMP
/// runtime has. Called by the library's constructor, whose thread holds the loader's lock.
pub(crate) fn connect(begin_session: BeginSession) {
    let _ = BEGIN_SESSION.set(begin_session);
    // SAFETY: a constant of the loader.
    let connect = unsafe { loader::symbol(libc::RTLD_DEFAULT, c"omptrace_mpi_connect") };
    // SAFETY: null, or the library's function of this name, which has this type.
    let connect =
        unsafe { transmute::<*mut c_void, Option<unsafe extern "C" fn(&'static Functions)>>(connect) };
    if let Some(connect) = connect {
        // SAFETY: this library is never unloaded.
        unsafe { connect(&FUNCTIONS) };
    }
}

/// The description of the MPI library, for sessions that start later.
static DESCRIPTION: Mutex<Option<Mpi>> = Mutex::new(None);
/// The process to which the description belongs. A forked child is not a member of its parent's job.
static DESCRIBED: AtomicU32 = AtomicU32::new(0);

/// The part of a session for calls.
#[derive(Debug)]
pub(crate) struct Calls;

pub(crate) static SESSION_HOOKS: Calls = Calls;

impl SessionHooks for Calls {
    fn begin(&self, session: &'static Session) {
        // Acquire; pairs with Release in `describe`.
        let is_described = DESCRIBED.load(Ordering::Acquire) == system::process_id();
        if is_described && let Some(mpi) = DESCRIPTION.lock().clone() {
            session.write_metadata(&Metadata { mpi: Some(mpi), ..Metadata::default() });
        }
    }
}

/// Called before MPI is initialised.
extern "C" fn starts() -> bool {
    let begin = || BEGIN_SESSION.get().is_some_and(|begin| begin());
    contained(|| stack::with_much(begin)).unwrap_or(false)
}

/// Called after MPI was initialised.
///
/// # Safety
/// `json` is null or a C string.
unsafe extern "C" fn describe(json: *const c_char) {
    guarded(|| {
        stack::with_much(|| {
            let text = memory::text(json, MAX_DESCRIPTION).unwrap_or_default();
            let Ok(mpi) = serde_json::from_slice::<Mpi>(&text) else { return };
            *DESCRIPTION.lock() = Some(mpi.clone());
            // Release; pairs with Acquire in `begin`.
            DESCRIBED.store(system::process_id(), Ordering::Release);
            if let Some(session) = session::of_this_process() {
                session.write_metadata(&Metadata { mpi: Some(mpi), ..Metadata::default() });
            }
        });
    });
}

/// Records an event on the hot path if possible, else on the cold path.
#[inline(always)]
pub(crate) fn put<R: CompactRow + Copy + Into<Event<'static>>>(row: R) {
    if !this_thread::recorder_if_near().try_put_predicted(|_| row) {
        put_unpredicted(row);
    }
}

/// Like [`put`], for an event with one mispredicted word.
#[inline(always)]
fn put_unpredicted<R: CompactRow + Copy + Into<Event<'static>>>(row: R) {
    if !this_thread::recorder_if_near().try_put(|_| row) {
        guarded(|| cold_path::compact(|_| row));
    }
}

/// Records a wide event, except in a child without a session: the call may be insignificant, such as creating a
/// datatype, and should not start a session.
fn put_wide<W: WideRow>(row: impl FnOnce() -> W) {
    if Mode::current() == Mode::Child {
        return;
    }
    guarded(|| cold_path::wide(|_| row()));
}

/// Like [`put_wide`], for an event that does not allocate and has no code address; uses the hot path if possible.
#[inline(always)]
pub(crate) fn put_often<W: WideRow>(row: W) {
    if !this_thread::recorder_if_near().try_put_wide(&row) {
        put_wide(|| row);
    }
}

/// A call begins; returns false if nothing is recorded.
///
/// # Safety
/// `call` is valid.
unsafe extern "C" fn begins(call: *const CallBegins) -> bool {
    // SAFETY: by this function's contract.
    let call = unsafe { &*call };
    // Fails if nothing is recorded.
    this_thread::recorder_if_near().try_put_predicted(|_| call.row()) || begins_unpredicted(call)
}

/// A separate function because it needs more registers.
#[inline(never)]
extern "C" fn begins_unpredicted(call: &CallBegins) -> bool {
    // A child that has not used OpenMP has no session: its calls start one.
    if !matches!(Mode::current(), Mode::Record | Mode::Child) {
        return false;
    }
    put_unpredicted(call.row());
    true
}

/// A call has returned.
///
/// # Safety
/// `call` is valid.
unsafe extern "C" fn ends(call: *const CallEnds) {
    // SAFETY: by this function's contract.
    let call = unsafe { &*call };
    if !this_thread::recorder_if_near().try_put_predicted(|_| call.row()) {
        ends_unpredicted(call);
    }
}

#[inline(never)]
extern "C" fn ends_unpredicted(call: &CallEnds) {
    put_unpredicted(call.row());
}

impl CallBegins {
    #[inline(always)]
    fn row(&self) -> CallBegin {
        CallBegin {
            class: CallClass(self.class),
            function: self.function,
            domain: domain::MPI,
            object: Address(self.object),
            peer: self.peer,
            tag: self.tag,
            count: self.count,
            datatype: Address(self.datatype),
            codeptr_ra: Address(self.code as usize as u64),
        }
    }
}

impl CallEnds {
    #[inline(always)]
    fn row(&self) -> CallEnd {
        CallEnd {
            class: CallClass(self.class),
            function: self.function,
            domain: domain::MPI,
            object: Address(self.object),
            peer: self.peer,
            tag: self.tag,
            bytes: self.bytes,
            result: self.result,
            codeptr_ra: Address(self.code as usize as u64),
        }
    }
}

/// The numbers at `numbers`, truncated to the maximum.
///
/// # Safety
/// `numbers` is valid for `count` numbers, or `count` is 0.
unsafe fn some<'a>(numbers: *const u64, count: usize) -> Numbers<'a> {
    let numbers = match numbers.is_null() || count == 0 {
        true => &[],
        // SAFETY: by this function's contract.
        false => unsafe { std::slice::from_raw_parts(numbers, count.min(MAX_NUMBERS)) },
    };
    numbers.into()
}

/// # Safety
/// `numbers` is valid for `count` numbers.
unsafe extern "C" fn objects(role: u32, numbers: *const u64, count: usize) {
    // SAFETY: by this function's contract.
    put_often(CallObjects { role: CallRole(role), numbers: unsafe { some(numbers, count) } });
}

/// A name from the program.
fn name(name: *const c_char) -> Text<'static> {
    Text(memory::text(name, MAX_NAME).map(Cow::Owned))
}

/// # Safety
/// `facts` is valid for `count` numbers.
unsafe extern "C" fn defined(
    kind: u32,
    handle: u64,
    parent: u64,
    facts: *const u64,
    count: usize,
    text: *const c_char,
) {
    put_wide(|| ObjectDefined {
        domain: domain::MPI,
        kind: ObjectKind(kind),
        handle: Address(handle),
        parent: Address(parent),
        // SAFETY: by this function's contract.
        facts: unsafe { some(facts, count) },
        name: name(text),
    });
}

/// # Safety
/// `text` is null or a C string.
unsafe extern "C" fn named(kind: u32, handle: u64, text: *const c_char) {
    put_wide(|| ObjectNamed {
        domain: domain::MPI,
        kind: ObjectKind(kind),
        handle: Address(handle),
        name: name(text),
    });
}

extern "C" fn freed(kind: u32, handle: u64) {
    put_often(ObjectFreed { domain: domain::MPI, kind: ObjectKind(kind), handle: Address(handle) });
}

/// `MPI_Pcontrol` pauses recording, or resumes it.
extern "C" fn pauses(pauses: bool) {
    const START: u64 = 1;
    const PAUSE: u64 = 2;
    let command = if pauses { PAUSE } else { START };
    guarded(|| control_tool::control(command, 0, std::ptr::null_mut(), std::ptr::null()));
}

/// Whether the clocks of hosts are compared.
static COMPARES_CLOCKS: AtomicBool = AtomicBool::new(false);

/// Applies the settings. All ranks must take part in comparing clocks, so clocks are not compared if only some ranks
/// are recorded.
pub(crate) fn configure(settings: &Settings) {
    let compares = settings.mpi_clocks == Switch::On && settings.ranks.is_none();
    // Relaxed: the thread that reads it has read the settings, or waits for the thread that does.
    COMPARES_CLOCKS.store(compares, Ordering::Relaxed);
}

extern "C" fn compares_clocks() -> bool {
    // Relaxed: as above.
    COMPARES_CLOCKS.load(Ordering::Relaxed)
}

/// A hash of the host's boot id. If it is the same for two hosts, they are taken for one, and their clocks are not
/// compared.
extern "C" fn host() -> u32 {
    let number = || {
        let boot = liveness::boot();
        boot.bytes().fold(0_u32, |number, byte| number.wrapping_mul(31).wrapping_add(byte.into())) >> 1
    };
    contained(|| stack::with_much(number)).unwrap_or(0)
}

extern "C" fn raw_clock() -> u64 {
    clock::raw_ns()
}

extern "C" fn measured(peer: u32, own_ns: u64, peer_ns: u64, round_trip_ns: u64) {
    put_wide(|| ClockMeasured { peer, own_ns, peer_ns, round_trip_ns });
}
