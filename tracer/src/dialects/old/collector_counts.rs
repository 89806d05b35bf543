//! Counts Collector API events that cannot be recorded.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::session::hooks::SessionHooks;

/// Callbacks on a thread during the tracer's own requests.
pub(crate) static WHILE_ASKING: AtomicU64 = AtomicU64::new(0);

/// Events for which the runtime did not report the thread's state or region.
pub(crate) static UNREPORTED: AtomicU64 = AtomicU64::new(0);

/// The part of a session for the counts.
#[derive(Debug)]
pub(crate) struct Counts;

pub(crate) static SESSION_HOOKS: Counts = Counts;

impl SessionHooks for Counts {
    /// A forked child counts from 0.
    fn in_child(&self) {
        // Relaxed: the child has one thread.
        WHILE_ASKING.store(0, Ordering::Relaxed);
        UNREPORTED.store(0, Ordering::Relaxed);
    }
}
