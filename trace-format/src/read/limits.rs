//! How much a reader takes in, whatever a file says.

/// Bounds of what a reader allocates. The defaults hold any trace that the tracer writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all metadata. Stops a file whose metadata is one endless JSON text; in
    /// memory it takes some twenty times as much.
    pub max_metadata_bytes: u64,
    /// Bytes of a chunk's words. Stops a packed chunk of some bytes that unpacks to gigabytes.
    pub max_chunk_bytes: usize,
    /// Blocks of the file, and places for chunks in the spool. Stops a file of nothing but headers, each of which
    /// would take more memory here than there, and a spool of nothing but holes.
    pub max_blocks: usize,
    /// Streams. Stops a file in which each block names a stream of its own.
    pub max_streams: usize,
    /// Diagnostics of opening, and of reading a stream. Stops a file in which every block is damaged.
    pub max_diagnostics: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_metadata_bytes: 16 << 20,
            max_chunk_bytes: 64 << 20,
            max_blocks: 1 << 22,
            max_streams: 1 << 20,
            max_diagnostics: 1000,
        }
    }
}
