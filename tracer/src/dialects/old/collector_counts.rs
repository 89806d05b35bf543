//! Events of the Collector API that are not as they should be, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::session::hooks::SessionHooks;

/// Callbacks that came while the tracer asked for something, on the thread that asked.
pub(crate) static WHILE_ASKING: AtomicU64 = AtomicU64::new(0);

/// Events of which the runtime did not say what the thread does, or in which region it is.
pub(crate) static UNREPORTED: AtomicU64 = AtomicU64::new(0);

/// The counts are those of one process.
#[derive(Debug)]
pub(crate) struct Counts;

pub(crate) static SESSION_HOOKS: Counts = Counts;

impl SessionHooks for Counts {
    /// A forked child counts for itself.
    fn in_child(&self) {
        // Relaxed: the child has one thread.
        WHILE_ASKING.store(0, Ordering::Relaxed);
        UNREPORTED.store(0, Ordering::Relaxed);
    }
}
