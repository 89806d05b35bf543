//! The guard around a callback's work: a panic turns tracing off and never reaches the program.

use crate::os::threads::containment::contained;
use crate::recorder::recorder::Mode;

/// Runs what a callback does, contained: a panic, which was reported, turns tracing off.
pub(crate) fn guarded<T>(f: impl FnOnce() -> T) -> Option<T> {
    contained(f).inspect_err(|_| Mode::Off.set()).ok()
}
