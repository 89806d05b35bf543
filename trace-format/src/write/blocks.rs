//! Makes blocks: header and payload. Their writer decides where and when to write them.
//!
//! Every payload is padded to a multiple of 8 bytes, and its check sum includes the padding, so that every byte of a
//! file is covered by a check sum.

use serde::Serialize;

use crate::layout::block::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, Chunk, ClockPair, Codec, INDEX_MAGIC,
};

/// The header of a chunk's block with the given `payload`: for [`Codec::RAW`], the bytes of its `words` words. `events`
/// is 0 if they were not counted.
pub fn chunk_header(
    session: u64,
    chunk: &Chunk,
    words: u32,
    events: u32,
    codec: Codec,
    payload: &[u8],
) -> [u8; BLOCK_HEADER_BYTES] {
    BlockHeader {
        stream: chunk.stream,
        sequence: chunk.sequence,
        clock: chunk.clock,
        first_id: chunk.first_id,
        words,
        events,
        codec,
        ..header(BlockKind::CHUNK, session, payload)
    }
    .encode()
}

/// A metadata block, header and payload, for a JSON object: a [`Metadata`](crate::Metadata) or a part of one.
pub fn metadata_block(session: u64, clock: ClockPair, object: &impl Serialize) -> Vec<u8> {
    let (header, json) = metadata_header(session, clock, object);
    [&header.encode()[..], &json].concat()
}

/// The header and the payload of [`metadata_block`].
pub(crate) fn metadata_header(
    session: u64,
    clock: ClockPair,
    object: &impl Serialize,
) -> (BlockHeader, Vec<u8>) {
    // Serializing texts, numbers and maps with text keys cannot fail; if it did, an empty object would do.
    let mut json = serde_json::to_vec(object).unwrap_or_else(|_| b"{}".to_vec());
    json.resize(json.len().next_multiple_of(8), b' ');
    let header = BlockHeader { clock, ..header(BlockKind::METADATA, session, &json) };
    (header, json)
}

/// The header of an unused block of `bytes` bytes, including the header.
pub fn unused_block(session: u64, bytes: u32) -> [u8; BLOCK_HEADER_BYTES] {
    BlockHeader {
        payload_bytes: bytes - BLOCK_HEADER_BYTES as u32,
        ..header(BlockKind::UNUSED, session, &[])
    }
    .encode()
}

/// The header of a summary's block with the packed `payload`.
pub(crate) fn summary_header(session: u64, payload: &[u8]) -> [u8; BLOCK_HEADER_BYTES] {
    let header = header(BlockKind::SUMMARY, session, payload);
    header.with_payload(Codec::ZSTD, payload).encode()
}

/// The index of a file whose blocks are being written.
#[derive(Clone, Debug, Default)]
pub struct Index {
    payload: Vec<u8>,
}

impl Index {
    /// An index with these entries.
    pub(crate) fn of(entries: &[u8]) -> Index {
        Index { payload: entries.to_vec() }
    }

    /// Adds the block at `offset` with the encoded `header`.
    pub fn push(&mut self, offset: u64, header: &[u8]) {
        self.payload.extend_from_slice(&offset.to_le_bytes());
        self.payload.extend_from_slice(header);
    }

    /// The index block, header and payload, for writing at `offset`, the end of the file.
    pub fn finish(mut self, session: u64, offset: u64) -> Vec<u8> {
        self.payload.extend_from_slice(&offset.to_le_bytes());
        self.payload.extend_from_slice(&INDEX_MAGIC);
        let header = header(BlockKind::INDEX, session, &self.payload);
        [&header.encode()[..], &self.payload].concat()
    }
}

/// Appends the bytes of `words`: the payload of a raw chunk.
pub fn push_words(bytes: &mut Vec<u8>, words: &[u64]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// A header with the payload's size and check sum; all other fields are 0.
pub(crate) fn header(kind: BlockKind, session: u64, payload: &[u8]) -> BlockHeader {
    BlockHeader {
        kind,
        codec: Codec::RAW,
        payload_bytes: payload.len() as u32,
        payload_crc: crc32fast::hash(payload),
        stream: 0,
        sequence: 0,
        clock: ClockPair::default(),
        first_id: 0,
        words: 0,
        events: 0,
        session,
    }
}
