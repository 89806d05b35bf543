//! Byte layouts: the header of the trace file, the header of each block, and the spool.
//!
//! # The trace file
//!
//! ```text
//! +-------------+-------+-------+-----+-------+- - - - -+
//! | file header | block | block | ... | block |  index  |      each starts at a multiple of 8 bytes
//! +-------------+-------+-------+-----+-------+- - - - -+
//! ```
//!
//! | bytes of the file header | what |
//! | --- | --- |
//! | 0..8 | magic `OMPTRACE` |
//! | 8..12 | [`FORMAT_VERSION`] |
//! | 12..16 | 0x01020304 in the byte order of all numbers (little-endian) |
//! | 16..24 | session: the same number in every block and in the spool |
//! | 24..28 | process id |
//! | 28..32 | length of the spool's path |
//! | 32..36 | CRC-32 of all other bytes |
//! | 36..40 | bytes of the header, behind which the first block begins; 0 means 4096 |
//! | 40.. | absolute path of the spool, in the file system's bytes; empty once the spool was sealed into the file |
//!
//! While the session runs, the header occupies a page, so that it has room for the path. The header of a sealed file
//! has 40 bytes. If the spool was missing when the file was sealed, the header keeps the path, and the spool can still
//! be added.
//!
//! Bytes that no table describes are zero.
//!
//! | bytes of a block header (96) | what |
//! | --- | --- |
//! | 0..8 | magic `OMPTBLCK` |
//! | 8..12 | CRC-32 of bytes 12..96 |
//! | 12..16 | CRC-32 of the payload as stored |
//! | 16 | [`BlockKind`] |
//! | 17 | [`Codec`] |
//! | 20..24 | bytes of the payload as stored; the next block follows at a multiple of 8 |
//! | 24..28 | stream |
//! | 28..32 | sequence number within the stream |
//! | 32..40 | clock: raw ticks; the base of a chunk's events |
//! | 40..48 | `CLOCK_MONOTONIC_RAW` at that tick, in nanoseconds |
//! | 48..56 | `CLOCK_REALTIME` at that tick, in nanoseconds |
//! | 56..64 | the stream's newest id before the chunk |
//! | 64..68 | words of the chunk's events |
//! | 68..72 | number of events of the chunk; 0 if they were not counted |
//! | 72..80 | session |
//!
//! A hole of zeros may lie between blocks if a writer reserved space and died. Space known to be unused is a block of
//! its own kind, whose payload was never written. The last block of a sealed file is the index:
//!
//! | bytes of the index's payload | what |
//! | --- | --- |
//! | 8 for each block | the block's offset |
//! | 96 | a copy of the block's header |
//! | last 16..8 | the index block's offset |
//! | last 8 | magic `OMPTINDX` |
//!
//! # The spool
//!
//! Chunks in memory that is shared with a file, so that the kernel keeps them when the process is killed. The spool
//! starts with a page like the file header (magic `OMPTSPOL`, 28..32 bytes per chunk, 40.. absolute path of the trace
//! up to a zero). Chunks of the given size follow. A chunk is a header of sixteen words, followed by the words of its
//! events:
//!
//! | word | what |
//! | --- | --- |
//! | 0 | magic `OMPTCHNK` |
//! | 1 | [`ChunkState`] |
//! | 2 | stream, and sequence number in the upper half |
//! | 3 | base: raw ticks |
//! | 4 | `CLOCK_MONOTONIC_RAW` at the base |
//! | 5 | `CLOCK_REALTIME` at the base |
//! | 6 | the stream's newest id before the chunk |
//! | 7 | words published: stored (release) after each event |
//! | 8 | in one of all chunks, the error number (`errno`) that turned tracing off; 0 if none did |
//!
//! To reuse a chunk, the tracer marks it free, then writes its header, then marks it active. A chunk is identified by
//! its stream and sequence number, and counts once even if it is found in several places.

use std::fmt;

/// The version of the format; 1 is the first.
pub const FORMAT_VERSION: u32 = 1;
/// Size of the header of a spool and of an unsealed trace file, in bytes: a page.
pub const FILE_HEADER_BYTES: usize = 4096;
/// Size of a sealed file's header in bytes, the minimum.
pub const SEALED_HEADER_BYTES: usize = 40;
/// Bytes of a block header.
pub const BLOCK_HEADER_BYTES: usize = 96;
/// Words of the header of a chunk in the spool.
pub const CHUNK_HEADER_WORDS: usize = 16;
/// First bytes of a trace file.
pub const FILE_MAGIC: [u8; 8] = *b"OMPTRACE";
/// First bytes of a block.
pub const BLOCK_MAGIC: [u8; 8] = *b"OMPTBLCK";
/// First bytes of a spool.
pub const SPOOL_MAGIC: [u8; 8] = *b"OMPTSPOL";
/// Last bytes of a sealed file.
pub const INDEX_MAGIC: [u8; 8] = *b"OMPTINDX";
/// First word of a chunk in the spool.
pub const CHUNK_MAGIC: u64 = u64::from_le_bytes(*b"OMPTCHNK");
/// Maximum length of the spool's path in a header, in bytes.
pub const MAX_SPOOL_PATH: usize = FILE_HEADER_BYTES - PATH_OFFSET;

const BYTE_ORDER: u32 = 0x0102_0304;
const CRC_OFFSET: usize = 32;
const LENGTH_OFFSET: usize = 36;
const PATH_OFFSET: usize = SEALED_HEADER_BYTES;

// Blocks start at multiples of 8 bytes, so that a search for blocks can step by words; so do the spool's chunks.
const _: () = assert!(FILE_HEADER_BYTES.is_multiple_of(8) && BLOCK_HEADER_BYTES.is_multiple_of(8));
const _: () = assert!(SEALED_HEADER_BYTES.is_multiple_of(8) && PATH_OFFSET == LENGTH_OFFSET + 4);
const _: () = assert!(LENGTH_OFFSET == CRC_OFFSET + 4 && CHUNK_HEADER_WORDS * 8 == 128);

/// The content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockKind(pub u8);

impl BlockKind {
    /// Events of one stream.
    pub const CHUNK: BlockKind = BlockKind(1);
    /// A JSON object; the keys of later blocks take precedence.
    pub const METADATA: BlockKind = BlockKind(2);
    /// The offsets of all blocks; the last block of a sealed file.
    pub const INDEX: BlockKind = BlockKind(3);
    /// Unused space up to the next block. Its payload and check sum are undefined.
    pub const UNUSED: BlockKind = BlockKind(4);
    /// The results of an analysis, in the block before the index: see [`crate::read::summary`].
    pub const SUMMARY: BlockKind = BlockKind(5);
    /// The regions, tasks etc. that are open at some time, for readers that start there. Located before the summary:
    /// see [`crate::read::checkpoint`].
    pub const CHECKPOINT: BlockKind = BlockKind(6);
}

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codec(pub u8);

impl Codec {
    /// Uncompressed words, or uncompressed JSON.
    pub const RAW: Codec = Codec(0);
    /// Columns of a chunk's words, each compressed by zstd: see [`crate::layout::codec`].
    pub const COLUMNS: Codec = Codec(1);
    /// JSON, compressed by zstd: see [`crate::layout::codec::pack_text`].
    pub const ZSTD: Codec = Codec(2);
}

/// The owner of a chunk of the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkState(pub u64);

impl ChunkState {
    /// Not owned; its words are undefined.
    pub const FREE: ChunkState = ChunkState(0);
    /// Owned by a thread that writes events into it.
    pub const ACTIVE: ChunkState = ChunkState(1);
    /// Owned by the writer, or by the reader once the process has ended.
    pub const FULL: ChunkState = ChunkState(2);
}

/// A reading of the session's clock and of the system's clocks, taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockPair {
    /// Raw ticks of the session's clock.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC_RAW`, in nanoseconds.
    pub monotonic_raw_ns: u64,
    /// `CLOCK_REALTIME`, in nanoseconds since 1970.
    pub realtime_ns: u64,
}

/// A chunk's description, independent of where the chunk is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Its stream.
    pub stream: u32,
    /// The chunk's position in the stream, from 0.
    pub sequence: u32,
    /// Both clocks at the chunk's base; the events' ticks are relative to it.
    pub clock: ClockPair,
    /// The stream's newest id before the chunk.
    pub first_id: u64,
}

/// The header of a chunk in the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolChunk {
    /// Its owner.
    pub state: ChunkState,
    /// The chunk's description.
    pub chunk: Chunk,
    /// Words of its events.
    pub published: u64,
    /// The error number that turned tracing off, in any state of the chunk; 0 if none did.
    pub failure: u64,
    /// Number of lost events that no event reports, in any state of the chunk.
    pub unreported: u64,
}

impl SpoolChunk {
    /// Reads a header; `None` unless it starts with [`CHUNK_MAGIC`].
    pub fn decode(bytes: &[u8]) -> Option<SpoolChunk> {
        let word = |index: usize| u64_at(bytes, index * 8);
        (word(0) == CHUNK_MAGIC).then(|| SpoolChunk {
            state: ChunkState(word(1)),
            chunk: Chunk {
                stream: word(2) as u32,
                sequence: (word(2) >> 32) as u32,
                clock: ClockPair { ticks: word(3), monotonic_raw_ns: word(4), realtime_ns: word(5) },
                first_id: word(6),
            },
            published: word(7),
            failure: word(8),
            unreported: word(9),
        })
    }
}

/// The first bytes of a trace file or a spool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// [`FILE_MAGIC`] for a trace file, [`SPOOL_MAGIC`] for a spool.
    pub magic: [u8; 8],
    /// The version of the format.
    pub version: u32,
    /// Bytes of the header; the first block or chunk follows.
    pub bytes: usize,
    /// The session's number.
    pub session: u64,
    /// The traced process.
    pub pid: u32,
    /// In a spool, bytes per chunk; in a trace file, the length of `path`.
    pub chunk_bytes: u32,
    /// In a trace file, the spool's path; in a spool, the trace's path, which older tracers did not write.
    pub path: Vec<u8>,
}

/// Why a page is not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The file is shorter than a header.
    TooShort,
    /// It does not begin with the magic.
    NotATrace,
    /// The file was written on a machine of the other byte order.
    ByteOrder,
    /// The format is newer than this reader.
    Version(u32),
    /// The check sum is wrong.
    Damaged,
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes(b.try_into().expect("four bytes")))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("eight bytes")))
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::TooShort => f.write_str("the file is too short to hold a header"),
            HeaderError::NotATrace => f.write_str("this is not an omptrace trace"),
            HeaderError::ByteOrder => {
                f.write_str("the trace was written on a machine with a different byte order")
            }
            HeaderError::Version(version) => {
                write!(
                    f,
                    "the trace has format version {version}, but this version of omptrace reads only format version {FORMAT_VERSION}"
                )
            }
            HeaderError::Damaged => f.write_str("the header is damaged"),
        }
    }
}

impl std::error::Error for HeaderError {}

impl FileHeader {
    /// The header of a trace file whose spool has the path `spool`, which is empty if there is no spool.
    pub fn of_trace(session: u64, pid: u32, spool: &[u8]) -> FileHeader {
        FileHeader {
            magic: FILE_MAGIC,
            version: FORMAT_VERSION,
            bytes: FILE_HEADER_BYTES,
            session,
            pid,
            chunk_bytes: 0,
            path: spool.to_vec(),
        }
    }

    /// The header of a spool for the trace at path `trace`, with chunks of `chunk_bytes` bytes.
    pub fn of_spool(session: u64, pid: u32, chunk_bytes: u32, trace: &[u8]) -> FileHeader {
        FileHeader { magic: SPOOL_MAGIC, chunk_bytes, ..FileHeader::of_trace(session, pid, trace) }
    }

    /// Returns the header of the sealed file: the shortest one, without the spool's path.
    pub fn sealed(&self) -> FileHeader {
        FileHeader { bytes: SEALED_HEADER_BYTES, path: Vec::new(), ..*self }
    }

    /// Whether this is a header made by [`FileHeader::sealed`]. The header of a running session is longer, even without
    /// a spool.
    pub(crate) fn is_of_sealed_file(&self) -> bool {
        self.bytes < FILE_HEADER_BYTES
    }

    /// Returns the header's bytes. Leaves out a path that is longer than [`MAX_SPOOL_PATH`].
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; self.bytes.max(SEALED_HEADER_BYTES)];
        let path = if self.path.len() <= page.len() - PATH_OFFSET { &self.path[..] } else { &[] };
        let number = if self.magic == SPOOL_MAGIC { self.chunk_bytes } else { path.len() as u32 };
        page[..8].copy_from_slice(&self.magic);
        page[8..12].copy_from_slice(&self.version.to_le_bytes());
        page[12..16].copy_from_slice(&BYTE_ORDER.to_le_bytes());
        page[16..24].copy_from_slice(&self.session.to_le_bytes());
        page[24..28].copy_from_slice(&self.pid.to_le_bytes());
        page[28..32].copy_from_slice(&number.to_le_bytes());
        let bytes = page.len() as u32;
        page[LENGTH_OFFSET..PATH_OFFSET].copy_from_slice(&bytes.to_le_bytes());
        page[PATH_OFFSET..PATH_OFFSET + path.len()].copy_from_slice(path);
        let crc = Self::crc(&page);
        page[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
        page
    }

    /// The check sum of all bytes other than its own, so that any damage is detected.
    fn crc(page: &[u8]) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&page[..CRC_OFFSET]);
        crc.update(&page[LENGTH_OFFSET..]);
        crc.finalize()
    }

    /// Reads the header of a file that starts with `page` (at most [`FILE_HEADER_BYTES`] bytes) and is expected to
    /// start with `magic`.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn decode(page: &[u8], magic: [u8; 8]) -> Result<FileHeader, HeaderError> {
        if !page.starts_with(&magic) {
            let cut = page.len() < 8 && magic.starts_with(page);
            return Err(if cut { HeaderError::TooShort } else { HeaderError::NotATrace });
        }
        if page.len() < SEALED_HEADER_BYTES {
            return Err(HeaderError::TooShort);
        }
        if u32_at(page, 12) == BYTE_ORDER.swap_bytes() {
            return Err(HeaderError::ByteOrder);
        }
        let version = u32_at(page, 8);
        let bytes = match u32_at(page, LENGTH_OFFSET) as usize {
            0 => FILE_HEADER_BYTES,
            bytes if (SEALED_HEADER_BYTES..=FILE_HEADER_BYTES).contains(&bytes) => bytes,
            _ => return Err(HeaderError::Damaged),
        };
        let page = page.get(..bytes).ok_or(HeaderError::TooShort)?;
        let number = u32_at(page, 28);
        let path_len = if magic == SPOOL_MAGIC {
            let path = page.get(PATH_OFFSET..).unwrap_or_default();
            let end = path.iter().position(|byte| *byte == 0);
            end.unwrap_or(path.len())
        } else {
            number as usize
        };
        if u32_at(page, CRC_OFFSET) != Self::crc(page) {
            return Err(HeaderError::Damaged);
        }
        if version == 0 || version > FORMAT_VERSION {
            return Err(HeaderError::Version(version));
        }
        let path = page.get(PATH_OFFSET..PATH_OFFSET.saturating_add(path_len));
        Ok(FileHeader {
            magic,
            version,
            bytes,
            session: u64_at(page, 16),
            pid: u32_at(page, 24),
            chunk_bytes: number,
            path: path.ok_or(HeaderError::Damaged)?.to_vec(),
        })
    }
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The content of the block.
    pub kind: BlockKind,
    /// How its payload is stored.
    pub codec: Codec,
    /// Bytes of the payload as stored.
    pub payload_bytes: u32,
    /// CRC-32 of the payload as stored.
    pub payload_crc: u32,
    /// The stream of a chunk; 0 for other blocks.
    pub stream: u32,
    /// The chunk's place in its stream, from 0.
    pub sequence: u32,
    /// The time at which the chunk, or the metadata, starts.
    pub clock: ClockPair,
    /// The stream's newest id before the chunk.
    pub first_id: u64,
    /// Words of the chunk's events.
    pub words: u32,
    /// Events of the chunk; 0 if they were not counted.
    pub events: u32,
    /// The session's number.
    pub session: u64,
}

impl BlockHeader {
    /// Returns the header for another payload, given as it is stored.
    pub fn with_payload(self, codec: Codec, payload: &[u8]) -> BlockHeader {
        BlockHeader {
            codec,
            payload_bytes: payload.len() as u32,
            payload_crc: crc32fast::hash(payload),
            ..self
        }
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..8].copy_from_slice(&BLOCK_MAGIC);
        bytes[12..16].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[16] = self.kind.0;
        bytes[17] = self.codec.0;
        bytes[20..24].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.stream.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.clock.ticks.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.clock.monotonic_raw_ns.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.clock.realtime_ns.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.first_id.to_le_bytes());
        bytes[64..68].copy_from_slice(&self.words.to_le_bytes());
        bytes[68..72].copy_from_slice(&self.events.to_le_bytes());
        bytes[72..80].copy_from_slice(&self.session.to_le_bytes());
        let crc = crc32fast::hash(&bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header; `None` unless its magic and check sum are right.
    pub fn decode(bytes: &[u8]) -> Option<BlockHeader> {
        let bytes = bytes.get(..BLOCK_HEADER_BYTES)?;
        if bytes[..8] != BLOCK_MAGIC || u32_at(bytes, 8) != crc32fast::hash(&bytes[12..]) {
            return None;
        }
        Some(BlockHeader {
            kind: BlockKind(bytes[16]),
            codec: Codec(bytes[17]),
            payload_bytes: u32_at(bytes, 20),
            payload_crc: u32_at(bytes, 12),
            stream: u32_at(bytes, 24),
            sequence: u32_at(bytes, 28),
            clock: ClockPair {
                ticks: u64_at(bytes, 32),
                monotonic_raw_ns: u64_at(bytes, 40),
                realtime_ns: u64_at(bytes, 48),
            },
            first_id: u64_at(bytes, 56),
            words: u32_at(bytes, 64),
            events: u32_at(bytes, 68),
            session: u64_at(bytes, 72),
        })
    }

    /// The description of the chunk.
    pub fn chunk(&self) -> Chunk {
        Chunk { stream: self.stream, sequence: self.sequence, clock: self.clock, first_id: self.first_id }
    }

    /// Bytes from this header to the next one.
    pub fn stride(&self) -> u64 {
        BLOCK_HEADER_BYTES as u64 + u64::from(self.payload_bytes).next_multiple_of(8)
    }
}
