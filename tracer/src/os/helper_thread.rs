//! A thread of ours, which may have to end under the loader's lock.
//!
//! Between its creation and its first line of ours, a thread takes that lock (`__cxa_thread_atexit_impl`, for what Rust
//! keeps per thread). A runtime that is closed with `dlclose` calls `finalize` under it: so a thread that has not begun is
//! not waited for. From then on it may take no lock that others hold for long. It may make no thread-local value, as some
//! locks do when they are contended: it has [`crate::os::lock`].

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Builder;
use std::time::Duration;

use crate::os::lock::{Mutex, Semaphore};
use crate::os::system;

/// A thread, and what it leaves.
#[derive(Debug)]
pub(crate) struct HelperThread<T> {
    /// The semaphore that the thread sleeps on.
    wake_up: Semaphore,
    phase: Mutex<Phase<T>>,
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
        name: &str,
        work: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> io::Result<()> {
        let run = move || {
            if self.begin() {
                let left = catch_unwind(AssertUnwindSafe(work));
                *self.phase.lock() = Phase::Ended(left.ok().flatten());
                self.ended.post();
            }
        };
        let builder = Builder::new().name(name.into());
        system::without_signals(|| builder.spawn(run)).map(drop)
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
    pub(crate) fn end(&self, most: Option<Duration>) -> Option<T> {
        if self.has_begun() {
            self.ended.wait(most);
        }
        match &mut *self.phase.lock() {
            Phase::Ended(left) => left.take(),
            Phase::NotBegun | Phase::Working => None,
        }
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
            *phase = Phase::Working;
        }
        begins
    }
}
