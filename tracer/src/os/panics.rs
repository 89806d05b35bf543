//! Reports panics of the tracer, which the program survives.

use std::panic;

use crate::os::log::warning;

/// From now on, reports a panic of the tracer in one line. The standard library would print several lines, using a lock
/// and memory that the program may hold or lack. The hook belongs to this library's copy of the standard library: a
/// Rust program has its own.
pub(crate) fn report_panics() {
    panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("no message");
        let text = text.replace(|c: char| c.is_control(), " ");
        let (file, line) = panic.location().map_or(("?", 0), |at| (at.file(), at.line()));
        warning!(
            "internal error at {file}:{line}: {text}; tracing may stop here, but the program continues. Please report this error"
        );
    }));
}
