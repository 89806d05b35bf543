//! What `omptrace --version` says.

use std::sync::LazyLock;

use omptrace_trace_format::block::FORMAT_VERSION;

/// The version, the commit that it was built from, and the version of trace files that it writes.
pub(crate) fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        format!("{} ({}, trace format {FORMAT_VERSION})", env!("CARGO_PKG_VERSION"), env!("OMPTRACE_COMMIT"))
    });
    &TEXT
}
