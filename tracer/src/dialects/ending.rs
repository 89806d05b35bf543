//! The end of a session, whoever ends it.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::dialects::old::collector;
use crate::dialects::thread_state;
use crate::os::threads::containment::contained;
use crate::os::threads::stack;
use crate::runtime::lookup::Lookup;
use crate::samples;
use crate::session;

/// The runtime will call when it is done.
static FINALIZE_IS_DUE: AtomicBool = AtomicBool::new(false);

/// Whether the runtime of the session that begins will call when it is done.
pub(crate) fn finalize_is_due(is_due: bool) {
    // Relaxed: read when the program ends.
    FINALIZE_IS_DUE.store(is_due, Ordering::Relaxed);
}

/// Whether the runtime of the session will call when it is done.
pub(crate) fn is_finalize_due() -> bool {
    // Relaxed: as above.
    FINALIZE_IS_DUE.load(Ordering::Relaxed)
}

/// Ends the session; `how` goes into the trace.
pub(crate) fn end(how: &str) {
    finalize_is_due(false);
    // What a panic leaves is what a kill leaves: the reader takes the spool in.
    let end = || {
        collector::end();
        session::finish(how);
        thread_state::read_by(None);
        samples::ask_by(None);
        Lookup::forget();
    };
    let _ = contained(|| stack::with_much(end));
}
