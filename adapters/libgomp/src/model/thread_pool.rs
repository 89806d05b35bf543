//! Pools of objects that are reused and never unmapped.
//!
//! A tool may query a task or a team at any time, even from a signal handler, when another thread has just ended it.
//! The tool then reads an object that is stale or has been reused, but never freed memory.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};

/// An object of a [`Pool`].
pub(crate) trait Pooled: Sync + Sized + 'static {
    /// Creates an object; [`Pool::take`] returns objects in the same state.
    fn new() -> Self;
    /// Resets a used object to the state of a new one.
    fn reset(&self);
    /// The next object in the free list that contains this one.
    fn next(&self) -> &Cell<Option<&'static Self>>;
    /// The batches for all threads: surplus objects, and those of threads that ended.
    fn left() -> &'static Mutex<Vec<Batch<Self>>>;

    /// A new object that is never freed.
    fn leaked() -> &'static Self {
        Box::leak(Box::new(Self::new()))
    }
}

/// Free objects: the first of a linked list, and their number.
#[derive(Debug)]
pub(crate) struct Batch<T: 'static>(&'static T, usize);

/// A thread's free objects.
pub(crate) struct Pool<T: Pooled> {
    first: Cell<Option<&'static T>>,
    count: Cell<usize>,
}

/// How many free objects a thread retains. Without a limit, memory would grow if one thread creates all tasks and
/// others run them.
const MAX_KEPT: usize = 256;
/// How often a thread tries to lock the shared batches.
const MAX_TRIES: usize = 100;

impl<T: Pooled> Pool<T> {
    pub(crate) const fn new() -> Pool<T> {
        Pool { first: Cell::new(None), count: Cell::new(0) }
    }

    /// An object in the state of a new one, which nothing else uses.
    #[inline(always)]
    pub(crate) fn take(&self) -> &'static T {
        match self.first.get() {
            Some(free) => self.take_first(free),
            None => self.refill(),
        }
    }

    #[inline(always)]
    fn take_first(&self, first: &'static T) -> &'static T {
        self.first.set(first.next().get());
        self.count.set(self.count.get() - 1);
        first.reset();
        first
    }

    #[cold]
    fn refill(&self) -> &'static T {
        match lock::<T>().and_then(|mut left| left.pop()) {
            Some(Batch(first, count)) => {
                self.count.set(count);
                self.take_first(first)
            }
            None => T::leaked(),
        }
    }

    /// Returns an object that nothing uses any more.
    #[inline(always)]
    pub(crate) fn give_back(&self, free: &'static T) {
        free.next().set(self.first.get());
        self.first.set(Some(free));
        self.count.set(self.count.get() + 1);
        if self.count.get() >= MAX_KEPT {
            self.leave_to_others();
        }
    }

    /// Makes all free objects of the thread available to other threads.
    #[cold]
    pub(crate) fn leave_to_others(&self) {
        let Some(first) = self.first.get() else {
            return;
        };
        if let Some(mut left) = lock::<T>() {
            left.push(Batch(first, self.count.get()));
            self.first.set(None);
            self.count.set(0);
        }
    }
}

/// The shared batches, unless they cannot be locked: in a forked child, a thread that the child does not have may hold
/// the lock.
fn lock<T: Pooled>() -> Option<MutexGuard<'static, Vec<Batch<T>>>> {
    (0..MAX_TRIES).find_map(|_| {
        std::hint::spin_loop();
        T::left().try_lock().ok()
    })
}
