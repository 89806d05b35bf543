//! Whether a runtime may be collecting the dependences of a task that the thread created.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the calling thread's runtime may be filling the array.
#[derive(Debug)]
pub(crate) struct Collecting(AtomicBool);

impl Collecting {
    pub(crate) const fn new() -> Collecting {
        Collecting(AtomicBool::new(false))
    }

    /// The runtime may be collecting from now on.
    pub(crate) fn begin(&self) {
        // SeqCst; pairs with `is_going_on`: either who asks sees this thread, or this thread sees what was stored before.
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the thread's runtime may be collecting, asked by any thread.
    pub(crate) fn is_going_on(&self) -> bool {
        // SeqCst; pairs with `begin`.
        self.0.load(Ordering::SeqCst)
    }

    /// The runtime has called `dependences`, or the thread has ended.
    pub(crate) fn end(&self) {
        // Release; pairs with `is_going_on`: the runtime has read the callback.
        self.0.store(false, Ordering::Release);
    }
}
