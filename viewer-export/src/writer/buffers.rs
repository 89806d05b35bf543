//! What an export's bytes are collected in, and where they end.

use std::io::Write;

/// Bytes that are collected before they are written.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// The receiving end of an export.
pub(crate) type Writer = Box<dyn Write + Send>;

/// With room for what goes beyond before it is drained.
pub(crate) fn new_buffer() -> Vec<u8> {
    Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 8)
}
