//! A function of the runtime's that is kept.

use std::marker::PhantomData;
use std::mem::transmute_copy;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An entry point of type `F`, for callbacks and signal handlers; none where the runtime has none, or nobody needs it.
#[derive(Debug)]
pub(crate) struct EntryPoint<F>(AtomicPtr<()>, PhantomData<F>);

impl<F: Copy> EntryPoint<F> {
    /// None yet.
    pub(crate) const fn new() -> EntryPoint<F> {
        const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
        EntryPoint(AtomicPtr::new(null_mut()), PhantomData)
    }

    /// From now on [`EntryPoint::get`] gives this function, or none.
    pub(crate) fn set(&self, function: Option<F>) {
        // SAFETY: of one size, as `new` checks; every bit pattern is a pointer.
        let function = function.map_or(null_mut(), |function| unsafe { transmute_copy(&function) });
        // Relaxed: who is called next sees it by the runtime's own order; a function of the runtime needs no data of ours.
        self.0.store(function, Ordering::Relaxed);
    }

    /// The function.
    #[inline]
    pub(crate) fn get(&self) -> Option<F> {
        // Relaxed: see `set`.
        let function = self.0.load(Ordering::Relaxed);
        // SAFETY: only `set` stores what is not null, and that is an `F`.
        (!function.is_null()).then(|| unsafe { transmute_copy(&function) })
    }
}
