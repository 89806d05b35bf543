//! What an archive says to its reader.

/// Words to the reader.
pub(super) struct Note {
    pub(super) process: u32,
    pub(super) text: String,
}
