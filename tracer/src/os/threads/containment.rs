//! Containment of a call into the tracer: the program shall notice no panic, no cancellation that takes effect there, and no
//! other `errno`.
//!
//! A thread may be cancelled wherever it makes one of many system calls (pthreads(7), "Cancellation points"), as we do to
//! write a chunk. A program chooses a place where it may be cancelled; with one of ours, it would end in the middle of a
//! construct. The unwinding of our frames would be an abort. So nothing of ours is such a place: the request waits.
//!
//! A program may also let a thread be cancelled anywhere (`PTHREAD_CANCEL_ASYNCHRONOUS`), if at its own risk: no function of OpenMP's
//! is made for that. Such programs live all the same where the runtime holds no lock. So a callback's thread can be unwound at each
//! instruction. Whatever is outside of [`contained`] has nothing to clean up and is `extern "C-unwind"`: else it would have a table
//! of the few calls from which it can be unwound, and the thread would abort at any other instruction.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::os::system;
use crate::os::unwatched::Unwatched;

/// `PTHREAD_CANCEL_DISABLE`, of glibc and musl.
const DISABLE: c_int = 1;

unsafe extern "C-unwind" {
    /// POSIX; the libc crate has it for few systems. A request that waits may take effect in it, and unwinds then.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// Runs `f` so that neither a panic nor a cancellation leaves it, and keeps `errno`. A program may say in a `critical` why
/// the call before it failed.
///
/// # Errors
/// The panic.
#[inline]
pub(crate) fn contained<T>(f: impl FnOnce() -> T) -> thread::Result<T> {
    contained_and(f, |result| result)
}

/// The same, with what `then` makes of the result, within the containment: it does not panic.
#[cold]
#[inline(never)]
pub(crate) fn contained_and<T, U>(f: impl FnOnce() -> T, then: impl FnOnce(thread::Result<T>) -> U) -> U {
    let mut call = Call { work: MaybeUninit::new((f, then)), result: MaybeUninit::uninit() };
    let mut before = DISABLE;
    // SAFETY: `before` is valid for writing.
    unsafe { pthread_setcancelstate(DISABLE, &mut before) };
    // SAFETY: what it needs is there, and it is called once.
    unsafe { call.make() };
    // SAFETY: the state that was there. It is no cancellation point itself.
    unsafe { pthread_setcancelstate(before, &mut before) };
    // SAFETY: made above.
    unsafe { call.result.assume_init() }
}

/// What is contained, and what it gives.
struct Call<W, U> {
    work: MaybeUninit<W>,
    result: MaybeUninit<U>,
}

impl<F: FnOnce() -> T, T, N: FnOnce(thread::Result<T>) -> U, U> Call<(F, N), U> {
    /// # Safety
    /// The work is there, and taken by this.
    #[inline(never)]
    unsafe extern "C" fn make(&mut self) {
        let errno = system::errno();
        // SAFETY: by this function's contract.
        let (f, then) = unsafe { self.work.assume_init_read() };
        let unwatched = Unwatched::begin();
        self.result.write(then(catch_unwind(AssertUnwindSafe(f))));
        drop(unwatched);
        system::set_errno(errno);
    }
}
