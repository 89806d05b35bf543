//! Buffers for an export's bytes, and their destination.

use std::io::Write;

/// Number of bytes that are collected before they are written.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// The receiving end of an export.
pub(crate) type Writer = Box<dyn Write + Send>;

/// A buffer with room for the bytes that are appended before it is drained.
pub(crate) fn new_buffer() -> Vec<u8> {
    Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 8)
}
