//! The guard around a callback's work: a panic turns tracing off and never reaches the program.

use crate::hot::recorder::Mode;
use crate::os::containment::contained;
use crate::os::log::warning;

/// Runs what a callback does, contained: a panic turns tracing off.
pub(crate) fn guarded<T>(f: impl FnOnce() -> T) -> Option<T> {
    contained(f)
        .inspect_err(|_| {
            Mode::Off.set();
            warning!("internal error in a callback; tracing is off, the program goes on. Please report it");
        })
        .ok()
}
