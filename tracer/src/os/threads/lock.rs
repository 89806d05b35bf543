//! Waits for other threads using only futex(2). The standard library and others use functions of the C library, which
//! must not be called when the process ends ([`interpose::system_call`]).
//!
//! Nothing here allocates, or creates a thread-local value, which would take the loader's lock: see
//! [`crate::os::threads::helper_thread`].

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::os::sanitizer;
use crate::os::system;
use crate::os::time::clock::Stopwatch;

/// A mutex.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    /// [`FREE`], [`TAKEN`], or [`WAITED_FOR`].
    state: AtomicU32,
    value: UnsafeCell<T>,
}

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and a thread may be sleeping until it is free.
const WAITED_FOR: u32 = 2;

// SAFETY: the value is accessed only through a guard, of which there is one at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// Access to the value of a locked [`Mutex`].
#[derive(Debug)]
pub(crate) struct Guard<'m, T> {
    mutex: &'m Mutex<T>,
}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex { state: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Locks the mutex, waiting if necessary.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.try_lock().or_else(|| self.wait(None)).expect("it waits for ever")
    }

    /// Locks the mutex if it is free.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire; pairs with Release in `drop`: the previous owner's accesses are complete.
        self.state
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| self.taken())
    }

    /// Locks the mutex if it becomes free within `patience`: it may be held by this very thread, interrupted by a
    /// signal handler.
    pub(crate) fn try_lock_for(&self, patience: Duration) -> Option<Guard<'_, T>> {
        self.try_lock().or_else(|| self.wait(Some(patience)))
    }

    fn wait(&self, most: Option<Duration>) -> Option<Guard<'_, T>> {
        let waited = Stopwatch::start();
        // Acquire; as in `try_lock`. A thread that has waited cannot know whether others still wait.
        while self.state.swap(WAITED_FOR, Ordering::Acquire) != FREE {
            let left = match most {
                Some(most) => Some(most.checked_sub(waited.elapsed())?),
                None => None,
            };
            system::wait_while(&self.state, WAITED_FOR, left);
        }
        Some(self.taken())
    }

    fn taken(&self) -> Guard<'_, T> {
        sanitizer::acquire(&self.state);
        Guard { mutex: self }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this is the only guard.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        sanitizer::release(&self.mutex.state);
        // Release; pairs with Acquire in `try_lock`.
        if self.mutex.state.swap(FREE, Ordering::Release) == WAITED_FOR {
            system::wake(&self.mutex.state, 1);
        }
    }
}

/// A counting semaphore: each post lets one thread continue once.
#[derive(Debug, Default)]
pub(crate) struct Semaphore(AtomicU32);

impl Semaphore {
    pub(crate) const fn new() -> Semaphore {
        Semaphore(AtomicU32::new(0))
    }

    /// Lets one thread continue. May be called in a signal handler.
    pub(crate) fn post(&self) {
        // Release; pairs with Acquire in `wait`.
        self.0.fetch_add(1, Ordering::Release);
        system::wake(&self.0, 1);
    }

    /// Waits for a post, for at most `most`.
    pub(crate) fn wait(&self, most: Option<Duration>) {
        let waited = Stopwatch::start();
        let one_less = |count: u32| count.checked_sub(1);
        // Acquire; pairs with Release in `post`.
        while self.0.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_less).is_err() {
            let left = match most.map(|most| most.checked_sub(waited.elapsed())) {
                Some(None) => return,
                Some(left) => left,
                None => None,
            };
            system::wait_while(&self.0, 0, left);
        }
    }

    /// Discards posts for which no thread has waited.
    pub(crate) fn reset(&self) {
        // Acquire; pairs with Release in `post`: work announced by each post is visible.
        self.0.swap(0, Ordering::Acquire);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_lock() {
        static COUNT: Mutex<u64> = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| *COUNT.lock() += 1));
            }
        });
        assert_eq!(*COUNT.lock(), 40_000);
    }

    #[test]
    fn a_lock_that_stays_taken_is_waited_for_no_longer_than_allowed() {
        let mutex = Mutex::new(());
        let guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        assert!(mutex.try_lock_for(Duration::from_millis(2)).is_none());
        drop(guard);
        assert!(mutex.try_lock_for(Duration::ZERO).is_some());
    }

    #[test]
    fn each_wake_up_counts_once() {
        let semaphore = Semaphore::new();
        semaphore.post();
        semaphore.post();
        (0..2).for_each(|_| semaphore.wait(None));
        // No post is left.
        semaphore.wait(Some(Duration::from_millis(2)));
        std::thread::scope(|scope| {
            scope.spawn(|| semaphore.wait(None));
            semaphore.post();
        });
    }
}
