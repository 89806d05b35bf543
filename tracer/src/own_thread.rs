//! A thread of ours, which may have to end under the loader's lock.
//!
//! Between its creation and its first line of ours, a thread takes that lock (`__cxa_thread_atexit_impl`, for what Rust
//! keeps per thread). A runtime that is closed with `dlclose` calls `finalize` under it: so a thread that has not begun is
//! not waited for. From then on it may take no lock that others hold for long, and none of parking_lot's, whose first
//! contention makes another thread-local value.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, Thread};

use crate::sanitizer;
use crate::system;

/// A thread, and what it leaves.
#[derive(Debug)]
pub(crate) struct OwnThread<T> {
    thread: OnceLock<Thread>,
    phase: Mutex<Phase<T>>,
    /// The phase is [`Phase::Ended`].
    ended: Condvar,
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

impl<T: Send> OwnThread<T> {
    pub(crate) const fn new() -> OwnThread<T> {
        OwnThread {
            thread: OnceLock::new(),
            phase: Mutex::new(Phase::NotBegun),
            ended: Condvar::new(),
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
                let mut phase = self.phase();
                *phase = Phase::Ended(left.ok().flatten());
                sanitizer::release(&self.phase);
                drop(phase);
                self.ended.notify_one();
            }
        };
        let builder = Builder::new().name(name.into());
        let handle = system::without_signals(|| builder.spawn(run))?;
        let _ = self.thread.set(handle.thread().clone());
        Ok(())
    }

    /// Wakes it up, where it is parked.
    pub(crate) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Waits until it has ended, which it was told to do; it does nothing any more where it has not begun. Returns what it
    /// leaves, once.
    pub(crate) fn end(&self) -> Option<T> {
        let mut phase = self.phase();
        loop {
            match &mut *phase {
                Phase::NotBegun => *phase = Phase::Ended(None),
                Phase::Working => {
                    sanitizer::release(&self.phase);
                    phase = self
                        .ended
                        .wait(phase)
                        .unwrap_or_else(PoisonError::into_inner);
                    sanitizer::acquire(&self.phase);
                }
                Phase::Ended(left) => return left.take(),
            }
        }
    }

    /// False where it was ended before.
    fn begin(&self) -> bool {
        let mut phase = self.phase();
        let begins = matches!(*phase, Phase::NotBegun);
        if begins {
            *phase = Phase::Working;
        }
        sanitizer::release(&self.phase);
        begins
    }

    fn phase(&self) -> MutexGuard<'_, Phase<T>> {
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        sanitizer::acquire(&self.phase);
        phase
    }
}
