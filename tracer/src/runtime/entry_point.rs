//! A stored entry point of the runtime.

use std::marker::PhantomData;
use std::mem::transmute_copy;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An entry point of type `F`, for callbacks and signal handlers; unset if the runtime does not have it, or it is not
/// needed.
#[derive(Debug)]
pub(crate) struct EntryPoint<F>(AtomicPtr<()>, PhantomData<F>);

impl<F: Copy> EntryPoint<F> {
    /// Unset.
    pub(crate) const fn new() -> EntryPoint<F> {
        const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
        EntryPoint(AtomicPtr::new(null_mut()), PhantomData)
    }

    /// Sets or clears the function returned by [`EntryPoint::get`].
    pub(crate) fn set(&self, function: Option<F>) {
        // SAFETY: of the same size, as `new` checks; every bit pattern is a pointer.
        let function = function.map_or(null_mut(), |function| unsafe { transmute_copy(&function) });
        // Relaxed: later callbacks see it by the runtime's own synchronization; a function of the runtime does not
        // depend on our data.
        self.0.store(function, Ordering::Relaxed);
    }

    /// The function, if set.
    #[inline]
    pub(crate) fn get(&self) -> Option<F> {
        // Relaxed: see `set`.
        let function = self.0.load(Ordering::Relaxed);
        // SAFETY: a pointer that is not null was stored by `set`, from an `F`.
        (!function.is_null()).then(|| unsafe { transmute_copy(&function) })
    }
}
