//! A thread of the tracer, which may have to start and end while the loader's lock is held.
//!
//! A library's constructor holds that lock, and may wait for a team of threads. So neither the thread that starts this
//! one nor this one may take the lock. `std::thread` does so on both, with `__cxa_thread_atexit_impl`, for its
//! thread-local data. So the thread is created with `pthread_create`, and uses no thread-local data of the standard
//! library.
//!
//! Nevertheless, the C library may take the lock before the thread executes our first line (glibc 2.34). A runtime that
//! is closed with `dlclose` calls `finalize` under the lock, so a thread that has not started is not waited for. Once
//! started, the thread may take no lock that others hold for long. It may create no thread-local value, as some
//! contended locks do; it uses [`crate::os::threads::lock`].

use std::ffi::{CStr, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::os::threads::lock::{Mutex, Semaphore};
use crate::os::time::clock::Stopwatch;
use crate::os::unwatched::Unwatched;
use crate::os::{signals, system};

/// Bytes of the thread's stack; packing chunks has its buffers on the heap.
const STACK_BYTES: usize = 2 << 20;

/// Interval at which a waiting thread checks whether the helper thread still exists.
const LOOK: Duration = Duration::from_millis(100);

/// A helper thread and its result.
#[derive(Debug)]
pub(crate) struct HelperThread<T> {
    /// The semaphore that the thread sleeps on.
    wake_up: Semaphore,
    phase: Mutex<Phase<T>>,
    /// The thread's id.
    id: AtomicI32,
    /// Posted for each waiting thread once the phase is [`Phase::Ended`].
    ended: Semaphore,
}

/// The thread's progress.
#[derive(Debug)]
enum Phase<T> {
    /// There is no thread, or it has not started yet.
    NotBegun,
    /// The thread is working.
    Working,
    /// The thread has finished. Holds the result until it is taken.
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

    /// Starts the thread without waiting for it, because the runtime may be starting under the loader's lock. The
    /// thread blocks the program's signals. If it panics, the thread that ends the session does the remaining work.
    ///
    /// # Errors
    /// The system cannot create a thread.
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

    /// Wakes the thread if it sleeps.
    pub(crate) fn wake(&self) {
        self.wake_up.post();
    }

    /// Called on the thread: sleeps until [`HelperThread::wake`], for at most `most`.
    pub(crate) fn sleep(&self, most: Duration) {
        self.wake_up.wait(Some(most));
        // One wake-up covers all work so far.
        self.wake_up.reset();
    }

    /// Waits for at most `most` until the thread has finished, as its work should have been told to do. A thread that
    /// has not started never will. Returns the thread's result, once. For one caller at a time.
    ///
    /// A thread that no longer exists is not waited for: a system call filter (seccomp(2)) may have killed it.
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

    /// Whether the thread has finished.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(*self.phase.lock(), Phase::Ended(_))
    }

    fn is_there(&self) -> bool {
        // Relaxed: stored before the phase, which is under the lock.
        system::is_thread_there(self.id.load(Ordering::Relaxed))
    }

    /// Whether the thread has started. If not, it never will.
    fn has_begun(&self) -> bool {
        let mut phase = self.phase.lock();
        let has_begun = matches!(*phase, Phase::Working);
        if matches!(*phase, Phase::NotBegun) {
            *phase = Phase::Ended(None);
        }
        has_begun
    }

    /// Marks the thread as started; false if it was ended before.
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

/// The work of a new thread.
type Work = Box<dyn FnOnce() + Send>;

/// Starts a detached thread that executes `work`, without the program's signals.
///
/// # Errors
/// The system cannot create a thread.
fn spawn(name: &'static CStr, work: Work) -> io::Result<()> {
    extern "C" fn begin(start: *mut c_void) -> *mut c_void {
        // SAFETY: made by `spawn` for this thread alone.
        let mut start = unsafe { Box::from_raw(start.cast::<(&CStr, Option<Work>)>()) };
        system::name_thread(start.0);
        // The work first marks the thread as started. Memory may be freed only after that, because `free` may be the
        // program's.
        if let Some(work) = start.1.take() {
            work();
        }
        null_mut()
    }
    let start = Box::into_raw(Box::new((name, Some(work))));
    let error = signals::without_signals(|| match create(begin, start.cast(), STACK_BYTES) {
        // The stack includes the thread-local storage of all the program's libraries, which may be larger than the
        // requested stack.
        libc::EINVAL => create(begin, start.cast(), 0),
        result => result,
    });
    if error != 0 {
        // SAFETY: made above, and no thread has received it.
        drop(unsafe { Box::from_raw(start) });
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(())
}

/// `pthread_create(3)` for a detached thread; if `stack_bytes` is 0, with the default stack size.
fn create(begin: extern "C" fn(*mut c_void) -> *mut c_void, start: *mut c_void, stack_bytes: usize) -> i32 {
    let mut attributes = MaybeUninit::uninit();
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the attributes are initialized first and destroyed last; `start` is passed to the new thread.
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
            // SAFETY: only this thread ends, and nothing is unwound.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
            None
        });
        assert_eq!(thread.end(None), None);
        assert!(!thread.has_ended());
    }
}
