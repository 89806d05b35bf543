//! Ends a session, for all generations.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::dialects::old::collector;
use crate::dialects::thread_state;
use crate::os::threads::containment::contained;
use crate::os::threads::stack;
use crate::runtime::lookup::Lookup;
use crate::samples;
use crate::session;

/// Whether the runtime will call the tool's finalizer.
static FINALIZE_IS_DUE: AtomicBool = AtomicBool::new(false);

/// Sets whether the runtime of the starting session will call the tool's finalizer.
pub(crate) fn finalize_is_due(is_due: bool) {
    // Relaxed: read when the program ends.
    FINALIZE_IS_DUE.store(is_due, Ordering::Relaxed);
}

/// Whether the session's runtime will call the tool's finalizer.
pub(crate) fn is_finalize_due() -> bool {
    // Relaxed: as above.
    FINALIZE_IS_DUE.load(Ordering::Relaxed)
}

/// Ends the session; `how` is stored in the trace.
pub(crate) fn end(how: &str) {
    finalize_is_due(false);
    // After a panic, the trace looks as after a kill: the reader reads the spool, too.
    let end = || {
        collector::end();
        session::finish(how);
        thread_state::read_by(None);
        samples::ask_by(None);
        Lookup::forget();
    };
    let _ = contained(|| stack::with_much(end));
}
