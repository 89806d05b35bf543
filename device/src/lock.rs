//! A lock for callbacks: waiting for it creates no thread-local value with a destructor, which would take the loader's
//! lock.

use std::sync::{self, MutexGuard, PoisonError};

/// The standard library's mutex, which waits with futex(2). Ignores poisoning, because any state left by a panic is
/// valid.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Waits for the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
