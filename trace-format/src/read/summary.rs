//! A summary in a sealed trace: what an analysis found, in the block before the index. It says nothing about its content.
//!
//! Who wants summaries of thousands of traces reads the file's header, its last bytes and that block, and nothing else.
//! [Checkpoints](crate::read::checkpoint) come of the same analysis, and lie before it.

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

/// The most bytes of a summary's block, its header and its entry in the index included.
pub const MAX_BYTES: usize = 64 << 10;
/// The most bytes of its text.
const MAX_TEXT_BYTES: u64 = 4 << 20;
/// zstd's level: a summary is written once and read often.
const LEVEL: i32 = 9;

/// The summary of a trace, packed as it is in the file.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The process.
    pub pid: u32,
    payload: Vec<u8>,
}

impl Packed {
    /// The summary's text; `None` where it makes no sense.
    pub fn text(&self) -> Option<Vec<u8>> {
        unpack_text(&self.payload, MAX_TEXT_BYTES).ok()
    }
}

/// Reads the summary of the trace at `path`; `None` where it has none, or a damaged one.
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

/// Why a trace got no summary; it is as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The summary would take more than [`MAX_BYTES`].
    TooLarge,
    /// The trace is not sealed.
    NotSealed,
    /// The trace cannot be written, or another program changes it.
    Seal(SealError),
}

/// The text of a summary, packed; `None` where it takes too much.
fn pack(text: &[u8]) -> Option<Vec<u8>> {
    let is_short = text.len() as u64 <= MAX_TEXT_BYTES;
    let payload = is_short.then(|| pack_text(text, LEVEL)).flatten()?;
    (BLOCK_HEADER_BYTES + payload.len() + INDEX_ENTRY_BYTES <= MAX_BYTES).then_some(payload)
}

/// Whether a summary of `text` would take more than [`MAX_BYTES`].
pub fn is_too_large(text: &[u8]) -> bool {
    pack(text).is_none()
}

/// Puts `text` as its summary into the sealed trace that `reader` reads, and `checkpoints` before it, in the place of those that
/// it has.
///
/// The blocks and the index behind them are written at the place of the old index, in one write. Should that be interrupted, the
/// trace has no index: readers find its blocks one after the other, and sealing it again writes an index.
///
/// # Errors
/// See [`WriteError`]. Where the summary is too large, the checkpoints are written.
pub fn write(reader: &Reader, text: &[u8], checkpoints: &[checkpoint::Packed]) -> Result<(), WriteError> {
    let payload = pack(text);
    if payload.is_some() || !checkpoints.is_empty() {
        write_blocks(reader, payload.as_deref(), checkpoints)?;
    }
    payload.map(|_| ()).ok_or(WriteError::TooLarge)
}

/// Like [`write`]: `summary` is packed.
fn write_blocks(
    reader: &Reader,
    summary: Option<&[u8]>,
    checkpoints: &[checkpoint::Packed],
) -> Result<(), WriteError> {
    if !reader.summary().sealed || !reader.header().path.is_empty() {
        return Err(WriteError::NotSealed);
    }
    // Of a symbolic link, the file behind it.
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
        // Mostly a full disk: the room of the old bytes is still the file's.
        let _ = file.write_all_at(&old, begin);
        let _ = file.set_len(len);
        WriteError::from(error)
    })
}

/// The entries of an index at `end` but for those of a summary and of checkpoints, which come last; and where these begin.
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
            WriteError::TooLarge => write!(f, "it would be larger than {} KiB", MAX_BYTES >> 10),
            WriteError::NotSealed => f.write_str("the trace is not complete"),
            WriteError::Seal(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}
