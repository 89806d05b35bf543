//! The summary in a sealed trace: the results of an analysis, in the block before the index. This module does not
//! interpret the content.
//!
//! A program that wants the summaries of thousands of traces reads only the file's header, its last bytes and the
//! summary block. [Checkpoints](crate::read::checkpoint) are made by the same analysis, and located before the summary.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::layout::block::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, Codec, FILE_MAGIC, FileHeader, SEALED_HEADER_BYTES, u64_at,
};
use crate::layout::codec::{pack_text, unpack_text};
use crate::read::block_index::{
    Block, INDEX_ENTRY_BYTES, INDEX_TAIL_BYTES, checked_payload, last_indexed, read_block, read_up_to,
};
use crate::read::checkpoint;
use crate::read::reader::{OpenError, Reader};
use crate::read::regular_file::open_regular;
use crate::write::blocks::{Index, summary_header};
use crate::write::copy::SealError;
use crate::write::seal::{is_unchanged, lock_trace};

/// Maximum size of a summary's block in bytes, including its header and its index entry.
pub const MAX_BYTES: usize = 64 << 10;
/// Maximum size of a summary's text in bytes.
const MAX_TEXT_BYTES: u64 = 4 << 20;
/// zstd's level: a summary is written once and read often.
const LEVEL: i32 = 9;

/// The summary of a trace, packed as in the file.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The traced process's id.
    pub pid: u32,
    payload: Vec<u8>,
}

impl Packed {
    /// The summary's text; `None` if the payload is invalid.
    pub fn text(&self) -> Option<Vec<u8>> {
        unpack_text(&self.payload, MAX_TEXT_BYTES).ok()
    }
}

/// Reads the summary of the trace at `path`; `None` if it has none, or it is damaged.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> io::Result<Option<Packed>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    read_up_to(&file, &mut bytes, 0, SEALED_HEADER_BYTES)?;
    let Ok(header) = FileHeader::decode(&bytes, FILE_MAGIC) else {
        return Ok(None);
    };
    let Some((_, block)) = last_indexed(&file, file.metadata()?.len())? else {
        return Ok(None);
    };
    let is_summary = is_summary(&block) && block.header.session == header.session;
    if !is_summary || !read_block(&file, &block, &mut bytes)? {
        return Ok(None);
    }
    Ok(checked_payload(&block, &bytes).map(|payload| Packed { pid: header.pid, payload: payload.to_vec() }))
}

fn is_summary(block: &Block) -> bool {
    let header = &block.header;
    header.kind == BlockKind::SUMMARY
        && header.codec == Codec::ZSTD
        && header.payload_bytes as usize <= MAX_BYTES
}

/// Why no summary was written; the trace is unchanged.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The summary would take more than [`MAX_BYTES`].
    TooLarge,
    /// The trace is not sealed.
    NotSealed,
    /// The trace cannot be written, or another program is changing it.
    Seal(SealError),
}

/// Packs a summary's text; `None` if it is too large.
fn pack(text: &[u8]) -> Option<Vec<u8>> {
    let is_short = text.len() as u64 <= MAX_TEXT_BYTES;
    let payload = is_short.then(|| pack_text(text, LEVEL)).flatten()?;
    (BLOCK_HEADER_BYTES + payload.len() + INDEX_ENTRY_BYTES <= MAX_BYTES).then_some(payload)
}

/// Whether a summary of `text` would take more than [`MAX_BYTES`].
pub fn is_too_large(text: &[u8]) -> bool {
    pack(text).is_none()
}

/// Writes `text` as the summary of the sealed trace of `reader`, with `checkpoints` before it. Both replace those that
/// the trace has.
///
/// The blocks and the index are written at the place of the old index, in one write. If that is interrupted, the trace
/// has no index: readers then find its blocks one after the other, and sealing the trace again writes an index.
///
/// # Errors
/// See [`WriteError`]. If the summary is too large, the checkpoints are written nevertheless.
pub fn write(reader: &Reader, text: &[u8], checkpoints: &[checkpoint::Packed]) -> Result<(), WriteError> {
    let payload = pack(text);
    if payload.is_some() || !checkpoints.is_empty() {
        write_blocks(reader, payload.as_deref(), checkpoints)?;
    }
    payload.map(|_| ()).ok_or(WriteError::TooLarge)
}

/// Like [`write()`], with a packed summary.
fn write_blocks(
    reader: &Reader,
    summary: Option<&[u8]>,
    checkpoints: &[checkpoint::Packed],
) -> Result<(), WriteError> {
    if !reader.summary().sealed || !reader.header().path.is_empty() {
        return Err(WriteError::NotSealed);
    }
    // For a symbolic link, replace its target.
    let path = fs::canonicalize(reader.path())?;
    let _locked = lock_trace(&path)?;
    if !is_unchanged(reader, &path)? {
        return Err(SealError::Changed.into());
    }
    let file = OpenOptions::new().read(true).write(true).open(&path)?;
    let len = file.metadata()?.len();
    let (index, _) = last_indexed(&file, len)?.ok_or(WriteError::NotSealed)?;
    let mut old = Vec::new();
    read_up_to(&file, &mut old, index, (len - index) as usize)?;
    let entries = old
        .get(BLOCK_HEADER_BYTES..)
        .and_then(|payload| payload.get(..payload.len().checked_sub(INDEX_TAIL_BYTES)?))
        .ok_or(WriteError::NotSealed)?;
    let (kept, begin) = without_analysis(entries, index);
    let mut entries = Index::of(kept);
    read_up_to(&file, &mut old, begin, (len - begin) as usize)?;

    let session = reader.header().session;
    let mut new = Vec::new();
    for checkpoint in checkpoints {
        let (header, payload) = checkpoint.block(session);
        entries.push(begin + new.len() as u64, &header);
        new.extend_from_slice(&header);
        new.extend_from_slice(payload);
    }
    if let Some(payload) = summary {
        let header = summary_header(session, payload);
        entries.push(begin + new.len() as u64, &header);
        new.extend_from_slice(&header);
        new.extend_from_slice(payload);
    }
    new.extend(entries.finish(session, begin + new.len() as u64));
    let written = file
        .write_all_at(&new, begin)
        .and_then(|()| file.set_len(begin + new.len() as u64))
        .and_then(|()| file.sync_data());
    written.map_err(|error| {
        // The disk is probably full: restore the old bytes, for which the file has room.
        let _ = file.write_all_at(&old, begin);
        let _ = file.set_len(len);
        WriteError::from(error)
    })
}

/// The entries of an index at `end` without the last ones of checkpoints and a summary; and the offset at which their
/// blocks start.
fn without_analysis(mut entries: &[u8], end: u64) -> (&[u8], u64) {
    let mut begin = end;
    while let Some((rest, entry)) = entries.split_last_chunk::<INDEX_ENTRY_BYTES>() {
        let offset = u64_at(entry, 0);
        let is_of_analysis = BlockHeader::decode(&entry[8..]).is_some_and(|header| {
            let kinds = [BlockKind::SUMMARY, BlockKind::CHECKPOINT];
            kinds.contains(&header.kind) && offset.checked_add(header.stride()) == Some(begin)
        });
        if !is_of_analysis {
            break;
        }
        (entries, begin) = (rest, offset);
    }
    (entries, begin)
}

impl From<SealError> for WriteError {
    fn from(error: SealError) -> WriteError {
        WriteError::Seal(error)
    }
}

impl From<OpenError> for WriteError {
    fn from(error: OpenError) -> WriteError {
        WriteError::Seal(error.into())
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        WriteError::Seal(error.into())
    }
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WriteError::TooLarge => write!(f, "the summary would be larger than {} KiB", MAX_BYTES >> 10),
            WriteError::NotSealed => f.write_str("the trace is not complete"),
            WriteError::Seal(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}
