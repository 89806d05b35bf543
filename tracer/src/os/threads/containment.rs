//! Contains calls into the tracer: the program must not notice a panic, a cancellation that takes effect in the tracer,
//! or a changed `errno`.
//!
//! A thread can be cancelled in many system calls (pthreads(7), "Cancellation points"), which the tracer makes, too,
//! for example to write a chunk. A program chooses where it may be cancelled; if a thread were cancelled in the tracer,
//! it would end in the middle of a construct, and unwinding our frames would abort. So cancellation is disabled in the
//! tracer: the request stays pending.

use std::ffi::c_int;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::os::system;
use crate::os::unwatched::Unwatched;

/// `PTHREAD_CANCEL_DISABLE`, in glibc and musl.
const DISABLE: c_int = 1;

unsafe extern "C" {
    /// POSIX; the libc crate defines it only for few systems.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// Number of 8-byte words to clear: fewer than the following calls use.
const CLEARED: usize = 384;

/// Clears the stack memory of the next calls. Remains of the program's frames may contain pointers to leaked memory,
/// which unwritten parts of our frames would keep reachable: LeakSanitizer would report fewer leaks than without the
/// tracer.
#[inline(never)]
fn clear_stack() {
    let mut stack = [MaybeUninit::<u64>::uninit(); CLEARED];
    for word in &mut stack {
        // SAFETY: it is our own. Volatile, so that it does not become a call of memset, which may be the program's own
        // and use OpenMP.
        unsafe { std::ptr::write_volatile(word, MaybeUninit::new(0)) };
    }
    black_box(&mut stack);
}

/// Runs `f`, stops panics and cancellation from leaving it, and preserves `errno`: a program may print in a `critical`
/// region why the call before it failed.
///
/// # Errors
/// The panic.
pub(crate) fn contained<T>(f: impl FnOnce() -> T) -> thread::Result<T> {
    let mut before = DISABLE;
    // SAFETY: `before` is valid for writing.
    unsafe { pthread_setcancelstate(DISABLE, &mut before) };
    let errno = system::errno();
    clear_stack();
    let unwatched = Unwatched::begin();
    let result = catch_unwind(AssertUnwindSafe(f));
    drop(unwatched);
    system::set_errno(errno);
    // SAFETY: restores the previous state. This call is not a cancellation point.
    unsafe { pthread_setcancelstate(before, &mut before) };
    result
}
