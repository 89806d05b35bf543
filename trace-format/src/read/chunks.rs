//! Reads chunks from the file, the spool, or both.

use std::fs::File;

use crate::layout::block::{BLOCK_HEADER_BYTES, Chunk, Codec};
use crate::layout::codec::Unpacker;
use crate::live::spool::{Spool, SpoolEntry};
use crate::read::block_index::{Block, checked_payload, read_block};
use crate::read::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
use crate::read::limits::Limits;

/// A copy of a chunk, in one of its places.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored {
    File(Block),
    Spool(SpoolEntry),
}

impl Stored {
    pub(crate) fn chunk(&self) -> Chunk {
        match self {
            Stored::File(block) => block.header.chunk(),
            Stored::Spool(entry) => entry.header.chunk,
        }
    }

    /// Size of the chunk's events in bytes, unpacked.
    pub(crate) fn event_bytes(&self) -> u64 {
        match self {
            Stored::File(block) => u64::from(block.header.words).saturating_mul(8),
            Stored::Spool(entry) => entry.header.published.saturating_mul(8),
        }
    }

    /// Sort key: copies of a chunk are adjacent, and the file's copy comes first, because its check sum tells whether
    /// it is sound.
    pub(crate) fn order(&self) -> (u32, u32, bool, u64) {
        let chunk = self.chunk();
        match self {
            Stored::File(block) => (chunk.stream, chunk.sequence, false, block.offset),
            Stored::Spool(entry) => (chunk.stream, chunk.sequence, true, entry.offset),
        }
    }
}

/// Whether both are copies of the same chunk.
pub(crate) fn is_same_chunk(a: &Stored, b: &Stored) -> bool {
    a.order().0 == b.order().0 && a.order().1 == b.order().1
}

/// Reads chunks, reusing its buffers.
#[derive(Debug)]
pub(crate) struct Chunks<'r> {
    file: &'r File,
    spool: Option<&'r Spool>,
    limits: &'r Limits,
    /// The last chunk as it was stored; for a chunk from the file, its whole block.
    pub(crate) bytes: Vec<u8>,
    /// The words of the last chunk.
    pub(crate) words: Vec<u64>,
    unpacker: Option<Unpacker>,
    pub(crate) diagnostics: Diagnostics,
}

impl<'r> Chunks<'r> {
    pub(crate) fn new(file: &'r File, spool: Option<&'r Spool>, limits: &'r Limits) -> Chunks<'r> {
        Chunks {
            file,
            spool,
            limits,
            bytes: Vec::new(),
            words: Vec::new(),
            unpacker: None,
            diagnostics: Diagnostics::new(limits.max_diagnostics),
        }
    }

    /// Reads the first sound one of a chunk's `copies`. If none is complete, but the file ends within a raw chunk,
    /// reads the words that are there. `None` if nothing can be read.
    pub(crate) fn read<'s>(&mut self, copies: &'s [Stored]) -> Option<&'s Stored> {
        let mut flaw = None;
        for stored in copies {
            match self.read_copy(stored) {
                Ok(()) => {
                    if flaw.is_some() {
                        self.report(DiagnosticKind::ChunkCopyDamaged, stored);
                    }
                    return Some(stored);
                }
                Err(kind) => flaw = flaw.or(Some((kind, stored))),
            }
        }
        if let Some(stored) = copies.iter().find(|stored| self.read_cut(stored)) {
            return Some(stored);
        }
        let (kind, stored) = flaw?;
        self.report(kind, stored);
        None
    }

    fn report(&mut self, kind: DiagnosticKind, stored: &Stored) {
        let chunk = stored.chunk();
        let mut diagnostic = Diagnostic::new(kind).chunk(chunk.stream, chunk.sequence);
        if let Stored::File(block) = stored {
            diagnostic = diagnostic.at(block.offset);
        }
        self.diagnostics.push(diagnostic);
    }

    fn read_copy(&mut self, stored: &Stored) -> Result<(), DiagnosticKind> {
        match stored {
            Stored::File(block) => self.read_file(block),
            Stored::Spool(entry) => {
                let spool = self.spool.ok_or(DiagnosticKind::ReadFailed)?;
                spool
                    .words(entry, 0, &mut self.bytes, &mut self.words)
                    .map_err(|_| DiagnosticKind::ReadFailed)?
                    .map_err(|_| DiagnosticKind::SpoolRecycled)
            }
        }
    }

    fn read_file(&mut self, block: &Block) -> Result<(), DiagnosticKind> {
        let limit = self.limits.max_chunk_bytes;
        if block.header.payload_bytes as usize > limit {
            return Err(DiagnosticKind::LimitReached);
        }
        let same_header =
            read_block(self.file, block, &mut self.bytes).map_err(|_| DiagnosticKind::ReadFailed)?;
        if !same_header {
            self.report(DiagnosticKind::BlockHeaderDamaged, &Stored::File(*block));
        }
        let payload = checked_payload(block, &self.bytes).ok_or(DiagnosticKind::ChunkDamaged)?;
        match block.header.codec {
            Codec::RAW => put_words(payload, &mut self.words),
            Codec::COLUMNS => {
                let unpacker = match &mut self.unpacker {
                    Some(unpacker) => unpacker,
                    none => none.insert(Unpacker::new().map_err(|_| DiagnosticKind::ReadFailed)?),
                };
                unpacker
                    .unpack(payload, limit / 8, &mut self.words)
                    .map_err(|_| DiagnosticKind::ChunkDamaged)?;
            }
            _ => return Err(DiagnosticKind::ChunkCodec),
        }
        Ok(())
    }

    /// Reads the words of a raw chunk within which the file ends; its check sum is not checked. The missing words were
    /// reported when the file was opened.
    fn read_cut(&mut self, stored: &Stored) -> bool {
        let Stored::File(block) = stored else {
            return false;
        };
        let cut = block.stored < block.header.payload_bytes && block.header.codec == Codec::RAW;
        let small = block.stored as usize <= self.limits.max_chunk_bytes;
        if !cut || !small || read_block(self.file, block, &mut self.bytes).is_err() {
            return false;
        }
        put_words(self.bytes.get(BLOCK_HEADER_BYTES..).unwrap_or(&[]), &mut self.words);
        true
    }
}

/// Replaces the content of `words` with a raw payload.
fn put_words(payload: &[u8], words: &mut Vec<u64>) {
    words.clear();
    words.extend(payload.as_chunks().0.iter().copied().map(u64::from_le_bytes));
}
