//! Notes of an archive to its reader.

/// A note to the reader.
pub(super) struct Note {
    pub(super) process: u32,
    pub(super) text: String,
}
