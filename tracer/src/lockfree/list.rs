//! A list that only grows, of things that threads take and give back.

use crate::sync::{AtomicBool, AtomicPtr, Ordering};

/// A list, by its head.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) AtomicPtr<T>);

/// The list's field in each thing. All zeros is a thing that nobody has.
#[derive(Debug)]
pub(crate) struct Link<T> {
    pub(crate) taken: AtomicBool,
    pub(crate) next: AtomicPtr<T>,
}

/// A thing for a [`List`].
pub(crate) trait Linked: Sized + 'static {
    /// Its link.
    fn link(&self) -> &Link<Self>;
}

impl<T: Linked> List<T> {
    /// All things, whether somebody has them or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static T> {
        let of = |thing: *mut T| {
            // SAFETY: `push` was given a reference that is valid for ever.
            unsafe { thing.as_ref() }
        };
        // Acquire; pairs with Release in `push`: who sees a thing sees what it holds.
        std::iter::successors(of(self.0.load(Ordering::Acquire)), move |thing| {
            // Relaxed: stored before the thing was pushed, and never again.
            of(thing.link().next.load(Ordering::Relaxed))
        })
    }

    /// A thing that nobody had; now the caller has it.
    pub(crate) fn take(&self) -> Option<&'static T> {
        self.iter().find(|thing| thing.link().claim())
    }

    /// Adds a thing that is in no list.
    pub(crate) fn push(&self, thing: &'static T) {
        let link = thing.link();
        let new = std::ptr::from_ref(thing).cast_mut();
        // Relaxed: the head is only handed on. Threads that have seen a thing read its `next`; the chain of exchanges that
        // leads here releases the heads before it.
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            link.next.store(head, Ordering::Relaxed);
            // Release; pairs with Acquire in `iter`.
            match self.0.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    /// Empties the list; only where no other thread is.
    pub(crate) fn forget(&self) {
        // Relaxed: nobody else is there.
        self.0.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
}

impl<T> Link<T> {
    /// Makes the thing the calling thread's; false where another thread has it.
    pub(crate) fn claim(&self) -> bool {
        // Acquire; pairs with Release in `give_back`: what the last one did to the thing is done.
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Lets another thread have the thing. The calling thread does not use it any more.
    pub(crate) fn give_back(&self) {
        // Release; pairs with Acquire in `claim`.
        self.taken.store(false, Ordering::Release);
    }
}
