//! Objects that are used again and never unmapped.
//!
//! A tool may ask for a task or a team at any moment, from a signal handler even, when another thread has just ended
//! it. It then reads an object that is stale, or belongs to something newer, but never memory that is gone.

use std::cell::Cell;
use std::sync::Mutex;

/// An object of a [`Pool`].
pub(crate) trait Pooled: Sync + Sized + 'static {
    /// A new object; [`Pool::take`] gives out objects that are as this one.
    fn new() -> Self;
    /// Makes a used object as a new one.
    fn reset(&self);
    /// The next free object of the list that this one is in.
    fn next(&self) -> &Cell<Option<&'static Self>>;
    /// What threads that ended left.
    fn left() -> &'static Mutex<Option<&'static Self>>;

    /// A new object that lives for ever.
    fn leaked() -> &'static Self {
        Box::leak(Box::new(Self::new()))
    }
}

/// A thread's free objects.
pub(crate) struct Pool<T: Pooled>(Cell<Option<&'static T>>);

impl<T: Pooled> Pool<T> {
    pub(crate) const fn new() -> Pool<T> {
        Pool(Cell::new(None))
    }

    /// An object as new, which nothing else uses.
    #[inline(always)]
    pub(crate) fn take(&self) -> &'static T {
        match self.0.get() {
            Some(free) => {
                self.0.set(free.next().get());
                free.reset();
                free
            }
            None => self.refill(),
        }
    }

    #[cold]
    fn refill(&self) -> &'static T {
        // `try_lock`: a forked child may find the lock held by a thread that it does not have.
        let left = T::left().try_lock().ok().and_then(|mut left| left.take());
        match left {
            Some(first) => {
                self.0.set(first.next().get());
                first.reset();
                first
            }
            None => T::leaked(),
        }
    }

    /// Takes back what nothing uses any more.
    #[inline(always)]
    pub(crate) fn give_back(&self, free: &'static T) {
        free.next().set(self.0.get());
        self.0.set(Some(free));
    }

    /// Leaves all free objects to other threads.
    pub(crate) fn leave_to_others(&self) {
        let Some(first) = self.0.take() else { return };
        let mut last = first;
        while let Some(next) = last.next().get() {
            last = next;
        }
        if let Ok(mut left) = T::left().try_lock() {
            last.next().set(left.take());
            *left = Some(first);
        }
    }
}
