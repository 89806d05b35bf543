//! A lock for callbacks: a thread that waits for it makes no thread-local value with a destructor, which would take the
//! loader's lock.

use std::sync::{self, MutexGuard, PoisonError};

/// The standard library's lock, which waits by futex(2). What a panic leaves is as good as anything.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Waits until it is free.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
