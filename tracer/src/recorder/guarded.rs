//! Guards a callback's work: a panic turns tracing off and never reaches the program.

use crate::os::threads::containment::contained;
use crate::recorder::recorder::Mode;

/// Runs the work of a callback; a panic, which is already reported, turns tracing off.
pub(crate) fn guarded<T>(f: impl FnOnce() -> T) -> Option<T> {
    contained(f).inspect_err(|_| Mode::Off.set()).ok()
}
