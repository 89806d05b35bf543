//! Reads only the first metadata of a trace, for programs that search among very many traces.

use std::io;
use std::path::Path;

use crate::layout::block::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, Codec, FILE_MAGIC, FileHeader};
use crate::layout::codec::unpack_text;
use crate::read::block_index::read_up_to;
use crate::read::regular_file::open_regular;

/// Bytes read at first, which usually suffice.
const USUAL_BYTES: usize = 32 << 10;
/// Maximum size of the metadata in bytes, both stored and unpacked. Protects a program that reads many files from using
/// too much memory.
const MAX_BYTES: usize = 16 << 20;

/// The JSON of the first metadata block of the trace at `path`: the metadata written when the session began or, in a
/// sealed file, all metadata. `None` if the file is not a trace, is damaged there, or has too much metadata;
/// [`crate::Reader`] then tells which.
///
/// # Errors
/// The file cannot be read.
pub fn first_metadata(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    read_up_to(&file, &mut bytes, 0, USUAL_BYTES)?;
    let Ok(header) = FileHeader::decode(&bytes, FILE_MAGIC) else {
        return Ok(None);
    };
    let begin = header.bytes;
    let Some(block) = bytes.get(begin..).and_then(BlockHeader::decode) else {
        return Ok(None);
    };
    let len = block.payload_bytes as usize;
    if block.kind != BlockKind::METADATA || block.session != header.session || len > MAX_BYTES {
        return Ok(None);
    }
    let payload = begin + BLOCK_HEADER_BYTES..begin + BLOCK_HEADER_BYTES + len;
    if bytes.len() < payload.end {
        read_up_to(&file, &mut bytes, 0, payload.end)?;
    }
    let payload = bytes.get(payload).filter(|payload| crc32fast::hash(payload) == block.payload_crc);
    Ok(payload.and_then(|payload| match block.codec {
        Codec::RAW => Some(payload.to_vec()),
        Codec::ZSTD => unpack_text(payload, MAX_BYTES as u64).ok().filter(|text| text.len() < MAX_BYTES),
        _ => None,
    }))
}
