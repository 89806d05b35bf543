//! Prints one line on stderr when something needs the user's attention; nothing else is ever printed.

use std::fmt::Arguments;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::os::signals;
use crate::os::threads::containment::contained;

/// How much is printed (`OMPTRACE_LOG`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Level {
    /// Nothing.
    Quiet = 0,
    /// Problems that cost the user events or the trace.
    Warn = 1,
    /// Also the trace's path.
    Info = 2,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);

/// Sets how much is printed from now on.
pub(crate) fn set_level(level: Level) {
    // Relaxed: a message more or less.
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Writes `message` to stderr with one write(2), if the level allows it. The standard library's stderr has a lock,
/// which may be held by a thread that does not exist in a forked child.
pub(crate) fn say(level: Level, message: Arguments<'_>) {
    // Relaxed: as above.
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let line = format!("omptrace: {message}\n");
    // A failed write has nowhere to be reported.
    let _ = contained(|| signals::write_without_signal(libc::STDERR_FILENO, line.as_bytes()));
}

/// `warning!("...")`: one line on stderr.
macro_rules! warning {
    ($($argument:tt)*) => { $crate::os::log::say($crate::os::log::Level::Warn, format_args!($($argument)*)) };
}
/// `info!("...")`: one line on stderr if the user asked for it.
macro_rules! info {
    ($($argument:tt)*) => { $crate::os::log::say($crate::os::log::Level::Info, format_args!($($argument)*)) };
}
pub(crate) use {info, warning};
