//! Objects that are used again and never unmapped.
//!
//! A tool may ask for a task or a team at any moment, from a signal handler even, when another thread has just ended
//! it. It then reads an object that is stale, or belongs to something newer, but never memory that is gone.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};

/// An object of a [`Pool`].
pub(crate) trait Pooled: Sync + Sized + 'static {
    /// A new object; [`Pool::take`] gives out objects that are as this one.
    fn new() -> Self;
    /// Makes a used object as a new one.
    fn reset(&self);
    /// The next free object of the list that this one is in.
    fn next(&self) -> &Cell<Option<&'static Self>>;
    /// The batches that threads have too many of, or left when they ended.
    fn left() -> &'static Mutex<Vec<Batch<Self>>>;

    /// A new object that lives for ever.
    fn leaked() -> &'static Self {
        Box::leak(Box::new(Self::new()))
    }
}

/// Free objects: the first of a list, and how many there are.
#[derive(Debug)]
pub(crate) struct Batch<T: 'static>(&'static T, usize);

/// A thread's free objects.
pub(crate) struct Pool<T: Pooled> {
    first: Cell<Option<&'static T>>,
    count: Cell<usize>,
}

/// How many free objects a thread keeps. A thread that creates all tasks, and others that run them, would otherwise need
/// more and more.
const MAX_KEPT: usize = 256;
/// How often a thread tries to get the lock of what others left.
const MAX_TRIES: usize = 100;

impl<T: Pooled> Pool<T> {
    pub(crate) const fn new() -> Pool<T> {
        Pool { first: Cell::new(None), count: Cell::new(0) }
    }

    /// An object as new, which nothing else uses.
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

    /// Takes back what nothing uses any more.
    #[inline(always)]
    pub(crate) fn give_back(&self, free: &'static T) {
        free.next().set(self.first.get());
        self.first.set(Some(free));
        self.count.set(self.count.get() + 1);
        if self.count.get() >= MAX_KEPT {
            self.leave_to_others();
        }
    }

    /// Leaves all free objects to other threads.
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

/// The batches that others left, unless the lock cannot be had. A forked child may find it held by a thread that it does not
/// have.
fn lock<T: Pooled>() -> Option<MutexGuard<'static, Vec<Batch<T>>>> {
    (0..MAX_TRIES).find_map(|_| {
        std::hint::spin_loop();
        T::left().try_lock().ok()
    })
}
