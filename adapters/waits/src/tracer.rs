//! The tracer's two functions: null until it is there.

use core::ffi::c_void;
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use omptrace_trace_format::field::WaitKind;

/// Gives the time where the calling thread is recorded, else 0.
type Begins = extern "C" fn() -> u64;
/// Takes a call that is over: the time before it, the kind and the object of the wait, and the call's return address.
type Ends = extern "C" fn(u64, u32, u64, *const c_void);

static BEGINS: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static ENDS: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The tracer calls it when it is loaded.
#[unsafe(no_mangle)]
extern "C" fn omptrace_waits_connect(begins: Begins, ends: Ends) {
    // Relaxed: ordered by the next store.
    ENDS.store(ends as *mut c_void, Ordering::Relaxed);
    // Release; pairs with Acquire in `wait`.
    BEGINS.store(begins as *mut c_void, Ordering::Release);
}

/// Whether there is a tracer.
#[inline(always)]
pub(crate) fn is_there() -> bool {
    // Relaxed: only whether.
    !BEGINS.load(Ordering::Relaxed).is_null()
}

/// A call that may wait.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) kind: WaitKind,
    pub(crate) object: u64,
    pub(crate) return_address: *const c_void,
}

/// Does what `call` does, and tells the tracer. Where the call is left by unwinding, as a thread is cancelled, there was no wait.
#[inline(always)]
pub(crate) fn wait<R: Copy>(it: Call, call: impl FnOnce() -> R + Copy) -> R {
    // Acquire; pairs with Release in `omptrace_waits_connect`.
    let begins = BEGINS.load(Ordering::Acquire);
    // SAFETY: null, or the tracer's function.
    let Some(begins) = (unsafe { transmute::<*mut c_void, Option<Begins>>(begins) }) else {
        return call();
    };
    let begin = begins();
    let result = call();
    if begin != 0 {
        // SAFETY: the tracer's function, stored before the other.
        let ends = unsafe { transmute::<*mut c_void, Ends>(ENDS.load(Ordering::Relaxed)) };
        let errno = errno();
        ends(begin, it.kind.0, it.object, it.return_address);
        set_errno(errno);
    }
    result
}

/// The thread's `errno`.
#[inline(always)]
pub(crate) fn errno() -> i32 {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() }
}

/// Sets the thread's `errno`.
#[inline(always)]
pub(crate) fn set_errno(errno: i32) {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() = errno }
}
