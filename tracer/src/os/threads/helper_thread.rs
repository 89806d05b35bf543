//! A thread of ours, which may have to begin and to end under the loader's lock.
//!
//! A library's constructor holds that lock, and may wait for a team of threads. So neither the thread that starts this one
//! nor this one may take the lock. `std::thread` does so on both, by `__cxa_thread_atexit_impl`, for what it keeps per
//! thread. So the thread is one of `pthread_create`, without anything of the standard library's.
//!
//! A C library may take the lock all the same before the thread's first line of ours (glibc 2.34). A runtime that is closed
//! with `dlclose` calls `finalize` under it: so a thread that has not begun is not waited for. From then on it may take no
//! lock that others hold for long. It may make no thread-local value, as some locks do when they are contended: it has
//! [`crate::os::threads::lock`].

use std::ffi::{CStr, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::os::system;
use crate::os::threads::lock::{Mutex, Semaphore};
use crate::os::time::clock::Stopwatch;
use crate::os::unwatched::Unwatched;

/// Bytes of the stack of such a thread: what packs chunks has its buffers on the heap.
const STACK_BYTES: usize = 2 << 20;

/// How often a thread that is waited for is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A thread, and what it leaves.
#[derive(Debug)]
pub(crate) struct HelperThread<T> {
    /// The semaphore that the thread sleeps on.
    wake_up: Semaphore,
    phase: Mutex<Phase<T>>,
    /// Its id, as the system has it.
    id: AtomicI32,
    /// The phase is [`Phase::Ended`], for each that waited for it.
    ended: Semaphore,
}

/// How far the thread has come.
#[derive(Debug)]
enum Phase<T> {
    /// There is no thread, or it is not ours yet.
    NotBegun,
    /// It does its work.
    Working,
    /// It does nothing any more. With what it leaves, until somebody takes that.
    Ended(Option<T>),
}

impl<T: Send> HelperThread<T> {
    pub(crate) const fn new() -> HelperThread<T> {
        HelperThread {
            wake_up: Semaphore::new(),
            phase: Mutex::new(Phase::NotBegun),
            id: AtomicI32::new(0),
            ended: Semaphore::new(),
        }
    }

    /// Starts it and does not wait for it: the runtime may be starting under the loader's lock. Without the program's
    /// signals; what a panic leaves undone, whoever ends the session does.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub(crate) fn start(
        &'static self,
        name: &'static CStr,
        work: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> io::Result<()> {
        let run = move || {
            if self.begin() {
                let _unwatched = Unwatched::begin();
                let left = catch_unwind(AssertUnwindSafe(work));
                *self.phase.lock() = Phase::Ended(left.ok().flatten());
                self.ended.post();
            }
        };
        spawn(name, Box::new(run))
    }

    /// Lets the thread go on where it sleeps.
    pub(crate) fn wake(&self) {
        self.wake_up.post();
    }

    /// On the thread: sleeps until [`HelperThread::wake`], at most `most`.
    pub(crate) fn sleep(&self, most: Duration) {
        self.wake_up.wait(Some(most));
        // One is enough for all that was to be done.
        self.wake_up.reset();
    }

    /// Waits until it has ended, as its work says that it shall, at most `most`; it does nothing any more where it has not
    /// begun. Returns what it leaves, once. For one caller at a time.
    ///
    /// A thread that is gone is not waited for: a filter of system calls (seccomp(2)) may have killed it at one of them.
    pub(crate) fn end(&self, most: Option<Duration>) -> Option<T> {
        if self.has_begun() {
            let waited = Stopwatch::start();
            let left = || most.map_or(LOOK, |most| most.saturating_sub(waited.elapsed()).min(LOOK));
            while !self.has_ended() && !left().is_zero() && self.is_there() {
                self.ended.wait(Some(left()));
            }
        }
        match &mut *self.phase.lock() {
            Phase::Ended(left) => left.take(),
            Phase::NotBegun | Phase::Working => None,
        }
    }

    /// Whether it does nothing any more, as its work has said.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(*self.phase.lock(), Phase::Ended(_))
    }

    fn is_there(&self) -> bool {
        // Relaxed: stored before the phase, behind the lock.
        system::is_thread_there(self.id.load(Ordering::Relaxed))
    }

    /// Whether it has; where it has not, it never will.
    fn has_begun(&self) -> bool {
        let mut phase = self.phase.lock();
        let has_begun = matches!(*phase, Phase::Working);
        if matches!(*phase, Phase::NotBegun) {
            *phase = Phase::Ended(None);
        }
        has_begun
    }

    /// False where it was ended before.
    fn begin(&self) -> bool {
        let mut phase = self.phase.lock();
        let begins = matches!(*phase, Phase::NotBegun);
        if begins {
            self.id.store(system::thread_id(), Ordering::Relaxed);
            *phase = Phase::Working;
        }
        begins
    }
}

/// What a new thread does.
type Work = Box<dyn FnOnce() + Send>;

/// Starts a thread that does `work`, without the program's signals, and that nobody joins.
///
/// # Errors
/// The system has no thread to give.
fn spawn(name: &'static CStr, work: Work) -> io::Result<()> {
    extern "C" fn begin(start: *mut c_void) -> *mut c_void {
        // SAFETY: made by `spawn` for this thread alone.
        let mut start = unsafe { Box::from_raw(start.cast::<(&CStr, Option<Work>)>()) };
        system::name_thread(start.0);
        // The work says first that the thread is ours. Only then may memory be given back: `free` may be the program's.
        if let Some(work) = start.1.take() {
            work();
        }
        null_mut()
    }
    let start = Box::into_raw(Box::new((name, Some(work))));
    let error = system::without_signals(|| match create(begin, start.cast(), STACK_BYTES) {
        // All thread-local storage of the program's libraries is a part of the stack. It may be more than that.
        libc::EINVAL => create(begin, start.cast(), 0),
        result => result,
    });
    if error != 0 {
        // SAFETY: made above, and no thread has it.
        drop(unsafe { Box::from_raw(start) });
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(())
}

/// `pthread_create(3)` of a detached thread, with as much stack as is usual where `stack_bytes` is 0.
fn create(begin: extern "C" fn(*mut c_void) -> *mut c_void, start: *mut c_void, stack_bytes: usize) -> i32 {
    let mut attributes = MaybeUninit::uninit();
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the attributes are made first and given back last; `start` is for the thread that begins.
    unsafe {
        let error = libc::pthread_attr_init(attributes.as_mut_ptr());
        if error != 0 {
            return error;
        }
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        if stack_bytes > 0 {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack_bytes);
        }
        let error = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), begin, start);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(work: fn(&Semaphore) -> Option<u8>) -> (&'static HelperThread<u8>, &'static Semaphore) {
        let thread: &HelperThread<u8> = Box::leak(Box::new(HelperThread::new()));
        let semaphore: &Semaphore = Box::leak(Box::new(Semaphore::new()));
        let begun: &Semaphore = Box::leak(Box::new(Semaphore::new()));
        let work = move || {
            begun.post();
            work(semaphore)
        };
        thread.start(c"test", work).unwrap();
        begun.wait(None);
        (thread, semaphore)
    }

    #[test]
    fn a_thread_leaves_what_it_has_once() {
        let (thread, _) = started(|_| Some(7));
        assert_eq!(thread.end(None), Some(7));
        assert!(thread.has_ended());
        assert_eq!(thread.end(None), None);
    }

    #[test]
    fn a_thread_that_works_on_is_waited_for_as_long_as_allowed() {
        let (thread, semaphore) = started(|semaphore| {
            semaphore.wait(None);
            Some(7)
        });
        assert_eq!(thread.end(Some(Duration::from_millis(2))), None);
        assert!(!thread.has_ended());
        semaphore.post();
        assert_eq!(thread.end(None), Some(7));
    }

    #[test]
    fn a_thread_that_is_killed_is_not_waited_for() {
        let (thread, _) = started(|_| {
            // SAFETY: the thread alone ends, and unwinds nothing.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
            None
        });
        assert_eq!(thread.end(None), None);
        assert!(!thread.has_ended());
    }
}
