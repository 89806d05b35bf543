//! Containment of a call into the tracer: the program shall notice no panic, no cancellation that takes effect there, and no
//! other `errno`.
//!
//! A thread may be cancelled wherever it makes one of many system calls (pthreads(7), "Cancellation points"), as we do to
//! write a chunk. A program chooses a place where it may be cancelled; with one of ours, it would end in the middle of a
//! construct. The unwinding of our frames would be an abort. So nothing of ours is such a place: the request waits.

use std::ffi::c_int;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::os::system;
use crate::os::unwatched::Unwatched;

/// `PTHREAD_CANCEL_DISABLE`, of glibc and musl.
const DISABLE: c_int = 1;

unsafe extern "C" {
    /// POSIX; the libc crate has it for few systems.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// Words of 8 bytes: less than the calls that follow take.
const CLEARED: usize = 384;

/// Clears the stack that the next calls have. What is left there of the program's calls may point to memory that it has lost, and
/// what of our frames is never written keeps that in sight: LeakSanitizer would report less than alone.
#[inline(never)]
fn clear_stack() {
    let mut stack = [MaybeUninit::<u64>::uninit(); CLEARED];
    for word in &mut stack {
        // SAFETY: it is ours. Volatile: no call of memset, which may be the program's own and use OpenMP.
        unsafe { std::ptr::write_volatile(word, MaybeUninit::new(0)) };
    }
    black_box(&mut stack);
}

/// Runs `f` so that neither a panic nor a cancellation leaves it, and keeps `errno`. A program may say in a `critical` why
/// the call before it failed.
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
    // SAFETY: the state that was there. It is no cancellation point itself.
    unsafe { pthread_setcancelstate(before, &mut before) };
    result
}
