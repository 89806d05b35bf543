//! The tracer's functions, which are unknown until the tracer is loaded.

use core::ffi::{c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The begin of a call.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CallBegins {
    pub(crate) function: u32,
    pub(crate) class: u32,
    /// The communicator, window, file, request or message; 0 if there is none.
    pub(crate) object: u64,
    /// See [`peer`].
    pub(crate) peer: i32,
    /// See [`tag`].
    pub(crate) tag: i32,
    pub(crate) count: u64,
    pub(crate) datatype: u64,
    /// Return address in the program.
    pub(crate) code: *const c_void,
}

/// The end of a call.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CallEnds {
    pub(crate) function: u32,
    pub(crate) class: u32,
    /// Error code of the call: 0 for success.
    pub(crate) result: i32,
    pub(crate) peer: i32,
    pub(crate) tag: i32,
    /// The request, or the new object; 0 if there is none.
    pub(crate) object: u64,
    /// Number of bytes received, read or written, according to the status.
    pub(crate) bytes: u64,
    pub(crate) code: *const c_void,
}

/// The result of a call that did not return. MPI's error codes are not negative.
pub(crate) const ABANDONED: i32 = -1;

/// Special values instead of a rank, the same for all MPI libraries.
pub(crate) mod peer {
    pub(crate) const ANY: i32 = -1;
    pub(crate) const PROC_NULL: i32 = -2;
    pub(crate) const ROOT: i32 = -3;
    pub(crate) const NONE: i32 = -4;
    /// The operation was cancelled: there was no message.
    pub(crate) const CANCELLED: i32 = -5;
}

/// Special values instead of a tag, the same for all MPI libraries.
pub(crate) mod tag {
    pub(crate) const ANY: i32 = -1;
    pub(crate) const NONE: i32 = -4;
}

/// Roles of numbers that are reported for a call.
pub(crate) mod role {
    /// Handles of the requests that the call waits for.
    pub(crate) const AWAITED: u32 = 1;
    /// For each completed request: handle, peer, tag, bytes.
    pub(crate) const COMPLETED: u32 = 2;
    /// Handles of persistent requests.
    pub(crate) const STARTED: u32 = 3;
    /// Number of tests before the call that completed nothing, the function of the last one, the number of tests whose
    /// duration was measured, and the sum of these durations in nanoseconds.
    pub(crate) const FRUITLESS: u32 = 4;
    /// The received message of `MPI_Isendrecv`: source, tag, number of elements, datatype.
    pub(crate) const RECEIVED: u32 = 5;
    /// For each persistent request whose handle changed when it was started: the old and the new handle.
    pub(crate) const REPLACED: u32 = 6;
}

/// Kinds of objects that are reported to the tracer.
pub(crate) mod kind {
    pub(crate) const COMMUNICATOR: u32 = 1;
    pub(crate) const WINDOW: u32 = 3;
    pub(crate) const FILE: u32 = 4;
    pub(crate) const DATATYPE: u32 = 5;
    pub(crate) const REQUEST: u32 = 6;
}

/// The functions of the tracer.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Tracer {
    version: u32,
    /// MPI is about to be initialized: starts a session if there is none.
    pub(crate) starts: extern "C" fn() -> bool,
    /// Reports the properties of the library and the process, as JSON.
    pub(crate) describe: extern "C" fn(*const c_char),
    /// False if the thread is not recorded; then the call's end is not reported.
    pub(crate) begins: extern "C" fn(&CallBegins) -> bool,
    pub(crate) ends: extern "C" fn(&CallEnds),
    /// Further numbers for the call that the thread is in: [`role`], numbers, their count.
    pub(crate) objects: extern "C" fn(u32, *const u64, usize),
    /// Reports an object: kind, handle, parent, numbers, their count, name.
    pub(crate) defined: extern "C" fn(u32, u64, u64, *const u64, usize, *const c_char),
    pub(crate) named: extern "C" fn(u32, u64, *const c_char),
    pub(crate) freed: extern "C" fn(u32, u64),
    pub(crate) pauses: extern "C" fn(bool),
    /// Whether clocks of hosts are compared: the same on all ranks, including those that are not recorded.
    pub(crate) compares_clocks: extern "C" fn() -> bool,
    /// A number below 2^31 that identifies the host with high probability.
    pub(crate) host: extern "C" fn() -> u32,
    /// Time of `CLOCK_MONOTONIC_RAW`, in nanoseconds.
    pub(crate) raw_clock: extern "C" fn() -> u64,
    /// Reports a comparison: the peer's rank, the own time in the middle of it, the peer's time, and the round trip
    /// time.
    pub(crate) measured: extern "C" fn(u32, u64, u64, u64),
}

impl Tracer {
    /// Reports further numbers for the call that the thread is in, in parts that the tracer accepts.
    pub(crate) fn tell(&self, role: u32, numbers: &[u64]) {
        /// Maximum count that the tracer accepts at once. A multiple of the number of words for each completed request.
        const MOST: usize = 1 << 10;
        for part in numbers.chunks(MOST) {
            (self.objects)(role, part.as_ptr(), part.len());
        }
    }
}

/// The version of [`Tracer`].
const VERSION: u32 = 2;

/// Read by `omptrace_mpi_call`, to which wrappers jump.
pub(crate) static TRACER: AtomicPtr<Tracer> = AtomicPtr::new(null_mut());

/// Called by the tracer when it is loaded, with a table that is never freed.
#[unsafe(no_mangle)]
unsafe extern "C" fn omptrace_mpi_connect(tracer: *mut Tracer) {
    // SAFETY: null, or the tracer's table, which begins with its version.
    if unsafe { tracer.cast::<u32>().as_ref() } == Some(&VERSION) {
        // Release; pairs with Acquire in `tracer`.
        TRACER.store(tracer, Ordering::Release);
    }
}

/// Disconnects the tracer. A call that has begun continues to use its table.
pub(crate) fn forget() {
    // Relaxed: a thread that still sees the table may use it, because it is never freed.
    TRACER.store(null_mut(), Ordering::Relaxed);
}

/// The tracer, if there is one.
#[inline(always)]
pub(crate) fn tracer() -> Option<&'static Tracer> {
    // Acquire; pairs with Release in `omptrace_mpi_connect`.
    // SAFETY: null, or the tracer's table, which is never freed.
    unsafe { TRACER.load(Ordering::Acquire).as_ref() }
}
