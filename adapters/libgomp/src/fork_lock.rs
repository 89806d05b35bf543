//! A lock that forked children can have.

use core::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A lock, which another thread may hold at a fork. The child does not have that thread, and would wait for ever: so it has a value
/// of its own then.
#[derive(Debug)]
pub(crate) struct ForkLock<T: 'static> {
    first: Mutex<T>,
    /// The same in a child that found it locked; else NULL.
    of_child: AtomicPtr<Mutex<T>>,
}

impl<T: Default> ForkLock<T> {
    pub(crate) const fn new(value: T) -> ForkLock<T> {
        ForkLock { first: Mutex::new(value), of_child: AtomicPtr::new(null_mut()) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.current().lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> &Mutex<T> {
        // SAFETY: NULL, or leaked below. Relaxed: stored while the child has one thread.
        unsafe { self.of_child.load(Ordering::Relaxed).as_ref() }.unwrap_or(&self.first)
    }

    /// In a forked child. A value that is locked is forgotten.
    pub(crate) fn leave_to_parent(&self) {
        if matches!(self.current().try_lock(), Err(TryLockError::WouldBlock)) {
            let new = Box::leak(Box::new(Mutex::new(T::default())));
            self.of_child.store(new, Ordering::Relaxed);
        }
    }
}
