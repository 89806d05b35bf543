//! Whether a runtime may be collecting the dependences of a task that this thread created.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the runtime may be filling an array of dependences on this thread.
#[derive(Debug)]
pub(crate) struct Collecting(AtomicBool);

impl Collecting {
    pub(crate) const fn new() -> Collecting {
        Collecting(AtomicBool::new(false))
    }

    /// From now on, the runtime may be collecting dependences.
    pub(crate) fn begin(&self) {
        // SeqCst; pairs with `is_going_on`: either the caller of `is_going_on` sees this thread, or this thread sees
        // what that caller has stored before.
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the runtime may be collecting dependences on this thread; called by any thread.
    pub(crate) fn is_going_on(&self) -> bool {
        // SeqCst; pairs with `begin`.
        self.0.load(Ordering::SeqCst)
    }

    /// The runtime has called `dependences`, or the thread has ended.
    pub(crate) fn end(&self) {
        // Release; pairs with `is_going_on`: the runtime has already read the callback.
        self.0.store(false, Ordering::Release);
    }
}
