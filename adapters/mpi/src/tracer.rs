//! The tracer's functions: none until it is there.

use core::ffi::{c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A call begins.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CallBegins {
    pub(crate) function: u32,
    pub(crate) class: u32,
    /// The communicator, window, file, request or message; 0 where there is none.
    pub(crate) object: u64,
    /// See [`peer`].
    pub(crate) peer: i32,
    /// See [`tag`].
    pub(crate) tag: i32,
    pub(crate) count: u64,
    pub(crate) datatype: u64,
    /// Where the program called it.
    pub(crate) code: *const c_void,
}

/// A call is over.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CallEnds {
    pub(crate) function: u32,
    pub(crate) class: u32,
    /// What it returned: 0 for success.
    pub(crate) result: i32,
    pub(crate) peer: i32,
    pub(crate) tag: i32,
    /// The request, or the new object; 0 where there is none.
    pub(crate) object: u64,
    /// The bytes received, read or written, as the status has them.
    pub(crate) bytes: u64,
    pub(crate) code: *const c_void,
}

/// The result of a call that did not return. Error codes of MPI are not negative.
pub(crate) const ABANDONED: i32 = -1;

/// Ranks that are none, whichever library is used.
pub(crate) mod peer {
    pub(crate) const ANY: i32 = -1;
    pub(crate) const PROC_NULL: i32 = -2;
    pub(crate) const ROOT: i32 = -3;
    pub(crate) const NONE: i32 = -4;
    /// The operation was cancelled: there was no message.
    pub(crate) const CANCELLED: i32 = -5;
}

/// Tags that are none, whichever library is used.
pub(crate) mod tag {
    pub(crate) const ANY: i32 = -1;
    pub(crate) const NONE: i32 = -4;
}

/// What numbers are for that belong to a call.
pub(crate) mod role {
    /// Handles of requests that are waited for.
    pub(crate) const AWAITED: u32 = 1;
    /// Of each request that is complete: handle, peer, tag, bytes.
    pub(crate) const COMPLETED: u32 = 2;
    /// Handles of persistent requests.
    pub(crate) const STARTED: u32 = 3;
    /// The number of tests before the call that found nothing complete, and the function of the last one.
    pub(crate) const FRUITLESS: u32 = 4;
    /// The other message of `MPI_Isendrecv`: source, tag, number of elements, their type.
    pub(crate) const RECEIVED: u32 = 5;
    /// Of each persistent request that has another handle since it was started: the handle before, and the new one.
    pub(crate) const REPLACED: u32 = 6;
}

/// Objects that the tracer is told of.
pub(crate) mod kind {
    pub(crate) const COMMUNICATOR: u32 = 1;
    pub(crate) const WINDOW: u32 = 3;
    pub(crate) const FILE: u32 = 4;
    pub(crate) const DATATYPE: u32 = 5;
    pub(crate) const REQUEST: u32 = 6;
}

/// What the tracer gives.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Tracer {
    version: u32,
    /// MPI is about to be initialized: a session begins where there is none.
    pub(crate) starts: extern "C" fn() -> bool,
    /// What is known of the library and the process, as JSON.
    pub(crate) describe: extern "C" fn(*const c_char),
    /// False where nothing is recorded of the thread; then the call's end is not told.
    pub(crate) begins: extern "C" fn(&CallBegins) -> bool,
    pub(crate) ends: extern "C" fn(&CallEnds),
    /// More of the call that the thread is in: [`role`], numbers, how many.
    pub(crate) objects: extern "C" fn(u32, *const u64, usize),
    /// Kind, handle, parent, facts, how many, name.
    pub(crate) defined: extern "C" fn(u32, u64, u64, *const u64, usize, *const c_char),
    pub(crate) named: extern "C" fn(u32, u64, *const c_char),
    pub(crate) freed: extern "C" fn(u32, u64),
    pub(crate) pauses: extern "C" fn(bool),
    /// Whether clocks of hosts are to be compared: the same on all ranks, also where nothing is recorded.
    pub(crate) compares_clocks: extern "C" fn() -> bool,
    /// A number below 2^31 of the host, which another one hardly has.
    pub(crate) host: extern "C" fn() -> u32,
    /// Nanoseconds of `CLOCK_MONOTONIC_RAW`.
    pub(crate) raw_clock: extern "C" fn() -> u64,
    /// A comparison: the other one's rank, the time here in the middle of it, the time there, how long it took.
    pub(crate) measured: extern "C" fn(u32, u64, u64, u64),
}

impl Tracer {
    /// Tells more of the call that the thread is in, in parts that the tracer takes.
    pub(crate) fn tell(&self, role: u32, numbers: &[u64]) {
        /// The tracer takes no more at once. A multiple of what is told of each completed request.
        const MOST: usize = 1 << 10;
        for part in numbers.chunks(MOST) {
            (self.objects)(role, part.as_ptr(), part.len());
        }
    }
}

/// The version of [`Tracer`].
const VERSION: u32 = 2;

/// Read by the code that wrappers go on in.
pub(crate) static TRACER: AtomicPtr<Tracer> = AtomicPtr::new(null_mut());

/// The tracer calls it when it is loaded, with a table that stays.
#[unsafe(no_mangle)]
unsafe extern "C" fn omptrace_mpi_connect(tracer: *mut Tracer) {
    // SAFETY: null, or the tracer's table, which begins with its version.
    if unsafe { tracer.cast::<u32>().as_ref() } == Some(&VERSION) {
        // Release; pairs with Acquire in `tracer`.
        TRACER.store(tracer, Ordering::Release);
    }
}

/// There is no tracer any more. A call that has begun goes on with its table.
pub(crate) fn forget() {
    // Relaxed: who sees the table still uses it, for it stays.
    TRACER.store(null_mut(), Ordering::Relaxed);
}

/// The tracer, where there is one.
#[inline(always)]
pub(crate) fn tracer() -> Option<&'static Tracer> {
    // Acquire; pairs with Release in `omptrace_mpi_connect`.
    // SAFETY: null, or the tracer's table, which stays.
    unsafe { TRACER.load(Ordering::Acquire).as_ref() }
}
