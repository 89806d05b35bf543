//! Finds the blocks of a file.
//!
//! The index of a sealed file lists them. Without an index, each header tells where the next block starts. If there is
//! no sound header at that place, the next one is searched for at multiples of 8 bytes, where all blocks start.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::layout::block::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, BlockHeader, BlockKind, FileHeader, INDEX_MAGIC, SEALED_HEADER_BYTES,
    u64_at,
};
use crate::read::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
use crate::read::limits::Limits;

/// Bytes per step of the search.
const WINDOW_BYTES: usize = 1 << 20;
/// Bytes of an index entry.
pub(crate) const INDEX_ENTRY_BYTES: usize = 8 + BLOCK_HEADER_BYTES;
/// Bytes of the index after its entries.
pub(crate) const INDEX_TAIL_BYTES: usize = 16;

/// A block with a sound header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) offset: u64,
    pub(crate) header: BlockHeader,
    /// Bytes of the payload that are in the file: fewer than in the header if the file was cut.
    pub(crate) stored: u32,
}

/// The blocks that a file holds.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// Chunks and metadata of the session, by offset; with an index, all blocks that it lists.
    pub(crate) list: Vec<Block>,
    /// Start of the index; without one, the end of the file.
    pub(crate) end: u64,
    /// The session of the blocks; `None` if the file's header is damaged and there is no block.
    pub(crate) session: Option<u64>,
    /// The blocks were listed by an index.
    pub(crate) indexed: bool,
    /// The file has no index at all (a damaged index does not count as none).
    pub(crate) without_index: bool,
}

/// Finds the blocks after `header` or, if the header is damaged, those of the first block's session. `hole` is the
/// diagnostic for zeros between blocks.
pub(crate) fn find_blocks(
    file: &File,
    len: u64,
    header: Option<&FileHeader>,
    hole: DiagnosticKind,
    limits: &Limits,
    diagnostics: &mut Diagnostics,
) -> io::Result<Blocks> {
    let session = header.map(|header| header.session);
    let index = read_index(file, len, session, limits)?;
    if let Index::Sound(blocks) = index {
        return Ok(blocks);
    }
    let without_index = matches!(index, Index::Absent);
    if !without_index {
        diagnostics.push(Diagnostic::new(DiagnosticKind::IndexDamaged));
    }
    let mut scan = Scan {
        file,
        len,
        hole,
        limits,
        blocks: Blocks { session, end: len, without_index, ..Blocks::default() },
        foreign: 0,
        unknown: 0,
        left_out: 0,
    };
    scan.run(header, diagnostics)?;
    Ok(scan.blocks)
}

enum Index {
    Sound(Blocks),
    Damaged,
    Absent,
}

fn read_index(file: &File, len: u64, session: Option<u64>, limits: &Limits) -> io::Result<Index> {
    let mut bytes = Vec::new();
    let tail = len.saturating_sub(INDEX_TAIL_BYTES as u64);
    read_up_to(file, &mut bytes, tail, INDEX_TAIL_BYTES)?;
    if bytes.get(INDEX_TAIL_BYTES - 8..) != Some(&INDEX_MAGIC) {
        return Ok(Index::Absent);
    }
    let offset = u64_at(&bytes, 0);
    let most = limits.max_blocks as u64 * INDEX_ENTRY_BYTES as u64;
    let size = len.saturating_sub(offset);
    if size > most.saturating_add((BLOCK_HEADER_BYTES + INDEX_TAIL_BYTES) as u64) {
        return Ok(Index::Damaged);
    }
    read_up_to(file, &mut bytes, offset, size as usize)?;
    let blocks = indexed_blocks(&bytes, size, session, offset);
    Ok(blocks.map_or(Index::Damaged, Index::Sound))
}

/// Offset of the index in a file of `len` bytes, and the last block that it lists. Reads nothing else of the file.
pub(crate) fn last_indexed(file: &File, len: u64) -> io::Result<Option<(u64, Block)>> {
    const END_BYTES: usize = INDEX_ENTRY_BYTES + INDEX_TAIL_BYTES;

    let mut bytes = Vec::new();
    let end = len.saturating_sub(END_BYTES as u64);
    read_up_to(file, &mut bytes, end, END_BYTES)?;
    if bytes.len() < END_BYTES || bytes[END_BYTES - INDEX_MAGIC.len()..] != INDEX_MAGIC {
        return Ok(None);
    }
    let index = u64_at(&bytes, INDEX_ENTRY_BYTES);
    let last = BlockHeader::decode(&bytes[8..]).map(|header| Block {
        offset: u64_at(&bytes, 0),
        header,
        stored: header.payload_bytes,
    });
    let ends_there = |block: &Block| block.offset.checked_add(block.header.stride()) == Some(index);
    Ok(last.filter(ends_there).map(|block| (index, block)))
}

/// The blocks listed by the index block `bytes`, which has `size` bytes and starts at `offset`. In a crafted file, its
/// payload may be shorter than the index's tail.
fn indexed_blocks(bytes: &[u8], size: u64, session: Option<u64>, offset: u64) -> Option<Blocks> {
    let header = BlockHeader::decode(bytes)?;
    let payload = bytes.get(BLOCK_HEADER_BYTES..)?;
    let is_index = header.kind == BlockKind::INDEX
        && session.is_none_or(|session| session == header.session)
        && header.stride() == size
        && header.payload_crc == crc32fast::hash(payload);
    let entries = payload.len().checked_sub(INDEX_TAIL_BYTES)?;
    if !is_index {
        return None;
    }
    entries_of(payload.get(..entries)?, header.session, offset)
}

/// The blocks listed by an index; `None` if they overlap, or lie outside the file.
fn entries_of(entries: &[u8], session: u64, end: u64) -> Option<Blocks> {
    let mut blocks = Blocks { session: Some(session), end, indexed: true, ..Blocks::default() };
    let mut free = SEALED_HEADER_BYTES as u64;
    for entry in entries.chunks(INDEX_ENTRY_BYTES) {
        let offset = u64_at(entry, 0);
        let header = BlockHeader::decode(entry.get(8..)?)?;
        let next = offset.checked_add(header.stride())?;
        if offset < free || next > end || header.session != session {
            return None;
        }
        free = next;
        blocks.list.push(Block { offset, header, stored: header.payload_bytes });
    }
    Some(blocks)
}

/// A walk through a file without an index.
struct Scan<'f> {
    file: &'f File,
    len: u64,
    hole: DiagnosticKind,
    limits: &'f Limits,
    blocks: Blocks,
    foreign: u64,
    unknown: u64,
    left_out: u64,
}

impl Scan<'_> {
    fn run(&mut self, header: Option<&FileHeader>, diagnostics: &mut Diagnostics) -> io::Result<()> {
        let mut offset = match header {
            Some(header) => header.bytes as u64,
            None => self.search(SEALED_HEADER_BYTES as u64)?.0,
        };
        while offset < self.len {
            match self.header_at(offset)? {
                Some(header) => offset = self.accept(offset, header, diagnostics),
                None => offset = self.skip(offset, diagnostics)?,
            }
        }
        for (kind, count) in [
            (DiagnosticKind::OtherSession, self.foreign),
            (DiagnosticKind::UnknownBlock, self.unknown),
            (DiagnosticKind::LimitReached, self.left_out),
        ] {
            if count > 0 {
                diagnostics.push(Diagnostic::new(kind).count(count));
            }
        }
        Ok(())
    }

    fn header_at(&self, offset: u64) -> io::Result<Option<BlockHeader>> {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(BlockHeader::decode(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds the block at `offset` and returns where the next one should start.
    fn accept(&mut self, offset: u64, header: BlockHeader, diagnostics: &mut Diagnostics) -> u64 {
        // A growing file may have received this header after `len` was determined.
        let room = self.len.saturating_sub(offset + BLOCK_HEADER_BYTES as u64);
        let stored = u64::from(header.payload_bytes).min(room) as u32;
        let session = *self.blocks.session.get_or_insert(header.session);
        if header.session != session {
            self.foreign += 1;
        } else if self.blocks.list.len() == self.limits.max_blocks {
            self.left_out += 1;
        } else {
            if stored < header.payload_bytes && header.kind != BlockKind::UNUSED {
                let missing = u64::from(header.payload_bytes - stored);
                let mut cut = Diagnostic::new(DiagnosticKind::BlockCut).at(offset);
                if header.kind == BlockKind::CHUNK {
                    cut = cut.chunk(header.stream, header.sequence);
                }
                diagnostics.push(cut.count(missing));
            }
            match header.kind {
                BlockKind::CHUNK | BlockKind::METADATA => {
                    self.blocks.list.push(Block { offset, header, stored })
                }
                // An index that is not the file's last block means that a sealed file was appended to. Summaries are
                // read only on request. Checkpoints cover what was before them, and are unusable if the index is lost.
                BlockKind::INDEX | BlockKind::UNUSED => {}
                BlockKind::SUMMARY | BlockKind::CHECKPOINT => {}
                _ => self.unknown += 1,
            }
        }
        offset + header.stride()
    }

    /// Called if there is no sound header at `offset`: continues at the next one and reports the skipped bytes.
    fn skip(&mut self, offset: u64, diagnostics: &mut Diagnostics) -> io::Result<u64> {
        let (next, is_hole) = self.search(offset)?;
        // A growing file may have received a header there in the meantime.
        if next == offset {
            return Ok(next);
        }
        let kind = if is_hole { self.hole } else { DiagnosticKind::BytesSkipped };
        diagnostics.push(Diagnostic::new(kind).at(offset).count(next - offset));
        Ok(next)
    }

    /// Offset of the first sound header from `offset` on, or the end of the file; and whether all bytes before it are
    /// zero.
    fn search(&self, offset: u64) -> io::Result<(u64, bool)> {
        let mut bytes = Vec::new();
        let mut is_hole = true;
        let mut at = offset;
        let next = 'search: loop {
            read_up_to(self.file, &mut bytes, at, WINDOW_BYTES)?;
            if bytes.is_empty() {
                break at;
            }
            for (index, word) in bytes.chunks(8).enumerate() {
                let here = at + index as u64 * 8;
                if word == BLOCK_MAGIC && self.header_at(here)?.is_some() {
                    break 'search here;
                }
                is_hole &= word.iter().all(|byte| *byte == 0);
            }
            at += bytes.len() as u64;
        };
        Ok((next, is_hole))
    }
}

/// The ranges that no block covers, as offset and length, including the zeros that pad payloads. Without an index,
/// there are only such zeros: [`Scan`] reports what it skips.
pub(crate) fn between(blocks: &Blocks, header_bytes: u64) -> Vec<(u64, u64)> {
    let mut between = Vec::new();
    let mut end = header_bytes;
    let mut padded = header_bytes;
    let mut until = |end: u64, next: u64| {
        if end < next {
            between.push((end, next - end));
        }
    };
    for block in &blocks.list {
        until(end, if blocks.indexed { block.offset } else { padded });
        end = block.offset + BLOCK_HEADER_BYTES as u64 + u64::from(block.stored);
        padded = (block.offset + block.header.stride()).min(blocks.end);
    }
    until(end, if blocks.indexed { blocks.end } else { padded });
    between
}

/// Reads up to `len` bytes at `offset` into `bytes`: fewer if the file ends before.
pub(crate) fn read_up_to(file: &File, bytes: &mut Vec<u8>, offset: u64, len: usize) -> io::Result<()> {
    bytes.resize(len, 0);
    let mut read = 0;
    while read < len {
        match file.read_at(&mut bytes[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                bytes.clear();
                return Err(error);
            }
        }
    }
    bytes.truncate(read);
    Ok(())
}

/// Reads the header and payload of `block`. Returns false if the header in the file has changed since the block was
/// found.
pub(crate) fn read_block(file: &File, block: &Block, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let len = BLOCK_HEADER_BYTES + block.stored as usize;
    read_up_to(file, bytes, block.offset, len)?;
    Ok(BlockHeader::decode(bytes) == Some(block.header))
}

/// The payload of a block read by [`read_block`]; `None` if it is cut off or its check sum is wrong.
pub(crate) fn checked_payload<'b>(block: &Block, bytes: &'b [u8]) -> Option<&'b [u8]> {
    let payload = bytes.get(BLOCK_HEADER_BYTES..)?;
    let sound = payload.len() == block.header.payload_bytes as usize
        && crc32fast::hash(payload) == block.header.payload_crc;
    sound.then_some(payload)
}
