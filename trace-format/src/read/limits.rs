//! Limits on the memory that a reader uses, whatever a file contains.

/// Limits on what a reader allocates. The defaults allow any trace that the tracer writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all metadata. Stops a file whose metadata is one endless JSON text; parsed, it takes about twenty times
    /// as much memory.
    pub max_metadata_bytes: u64,
    /// Bytes of a chunk's words. Stops a packed chunk of some bytes that unpacks to gigabytes.
    pub max_chunk_bytes: usize,
    /// Blocks of the file, and chunks of the spool. Stops a file that consists of headers, each of which would take
    /// more memory than file space, and a spool that consists of holes.
    pub max_blocks: usize,
    /// Streams. Stops a file in which each block names another stream.
    pub max_streams: usize,
    /// Diagnostics of opening a trace, and of reading a stream. Stops a file in which every block is damaged.
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
