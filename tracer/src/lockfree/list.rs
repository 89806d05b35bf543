//! A grow-only list of items that threads take and give back.

use crate::sync::{AtomicBool, AtomicPtr, Ordering};

/// The list, as the pointer to its first item.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) AtomicPtr<T>);

/// The list's fields in each item. All zeros means that no thread has the item.
#[derive(Debug)]
pub(crate) struct Link<T> {
    pub(crate) taken: AtomicBool,
    pub(crate) next: AtomicPtr<T>,
}

/// An item of a [`List`].
pub(crate) trait Linked: Sized + 'static {
    /// The item's link.
    fn link(&self) -> &Link<Self>;
}

impl<T: Linked> List<T> {
    /// All items, whether taken or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static T> {
        let of = |thing: *mut T| {
            // SAFETY: `push` was given a reference that stays valid.
            unsafe { thing.as_ref() }
        };
        // Acquire; pairs with Release in `push`: a thread that sees an item sees its content.
        std::iter::successors(of(self.0.load(Ordering::Acquire)), move |thing| {
            // Relaxed: stored before the item was pushed, and never changed.
            of(thing.link().next.load(Ordering::Relaxed))
        })
    }

    /// Takes an item that no thread has.
    pub(crate) fn take(&self) -> Option<&'static T> {
        self.iter().find(|thing| thing.link().claim())
    }

    /// Adds an item that is not in a list.
    pub(crate) fn push(&self, thing: &'static T) {
        let link = thing.link();
        let new = std::ptr::from_ref(thing).cast_mut();
        // Relaxed: the head is only passed on. Threads that have seen an item read its `next`; the chain of exchanges
        // that leads here releases the heads before it.
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

    /// Empties the list; only while there is no other thread.
    pub(crate) fn forget(&self) {
        // Relaxed: there is no other thread.
        self.0.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
}

impl<T> Link<T> {
    /// Takes the item for the calling thread; false if another thread has it.
    pub(crate) fn claim(&self) -> bool {
        // Acquire; pairs with Release in `give_back`: the previous owner's accesses are complete.
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives the item back. The calling thread no longer uses it.
    pub(crate) fn give_back(&self) {
        // Release; pairs with Acquire in `claim`.
        self.taken.store(false, Ordering::Release);
    }
}
