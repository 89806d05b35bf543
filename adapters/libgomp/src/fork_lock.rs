//! A lock that stays usable in forked children.

use core::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A lock that another thread may hold during a fork. The child does not have that thread and would wait for ever. So
/// the child then uses a new value.
#[derive(Debug)]
pub(crate) struct ForkLock<T: 'static> {
    first: Mutex<T>,
    /// The lock for a child in which the first one stays locked; otherwise NULL.
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

    /// Called in a forked child. Abandons the value if it is locked.
    pub(crate) fn leave_to_parent(&self) {
        if matches!(self.current().try_lock(), Err(TryLockError::WouldBlock)) {
            let new = Box::leak(Box::new(Mutex::new(T::default())));
            self.of_child.store(new, Ordering::Relaxed);
        }
    }
}
