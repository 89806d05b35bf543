//! Detects traces and spools by their content, for code that is about to replace a file.

use std::fmt;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::layout::block::{BLOCK_MAGIC, CHUNK_MAGIC, FILE_MAGIC, INDEX_MAGIC, SPOOL_MAGIC};
use crate::read::block_index::read_up_to;
use crate::read::regular_file::open_regular;

/// A file with events, which cannot be recreated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A trace, sealed or not.
    Trace,
    /// The spool of a program that runs or was killed, with its newest events.
    Spool,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Trace => "a trace",
            FileKind::Spool => "a spool, which contains the newest events of a trace",
        })
    }
}

/// Number of bytes at the start of a file that are searched for blocks and chunks if the file's header is damaged.
const BEGIN_BYTES: usize = 64 << 10;

/// Whether the file holds events; `None` if it is something else. Damaged files count, too: one magic number of a
/// header, an index, a block or a chunk is sufficient.
///
/// # Errors
/// The file cannot be read, so that it may be anything.
pub fn kind_of(path: &Path) -> io::Result<Option<FileKind>> {
    let file = open_regular(path)?;
    let mut begin = Vec::new();
    read_up_to(&file, &mut begin, 0, BEGIN_BYTES)?;
    for (magic, kind) in [(FILE_MAGIC, FileKind::Trace), (SPOOL_MAGIC, FileKind::Spool)] {
        if begin.starts_with(&magic) {
            return Ok(Some(kind));
        }
    }
    for word in begin.chunks(8) {
        if word == BLOCK_MAGIC {
            return Ok(Some(FileKind::Trace));
        }
        if word == CHUNK_MAGIC.to_le_bytes() {
            return Ok(Some(FileKind::Spool));
        }
    }
    let mut end = [0; INDEX_MAGIC.len()];
    let at = file.metadata()?.len().checked_sub(end.len() as u64);
    let has_index = at.is_some_and(|at| file.read_exact_at(&mut end, at).is_ok());
    Ok((has_index && end == INDEX_MAGIC).then_some(FileKind::Trace))
}
