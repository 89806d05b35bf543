//! Inputs of the fuzzer as traces on disk.
//!
//! An input that begins with `OMPTRACE` is a file as it is. Any other is what follows a file's first page, and behind
//! its first `OMPTSPOL` the spool: bytes per chunk (4), and the chunks. Check sums and sessions are made right in both,
//! or hardly any mutation would get past them: [`repair`].

pub mod archive;
pub mod choice;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use omptrace_trace_format::block::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, BlockKind, FILE_HEADER_BYTES, FILE_MAGIC, FileHeader, INDEX_MAGIC,
    SPOOL_MAGIC,
};
use omptrace_trace_format::{Limits, Reader};

/// The session of every input that has no first page of its own.
const SESSION: u64 = 1;
/// A block whose header has this in the place of its check sum stays as it is, and so is damaged.
const DAMAGED: [u8; 4] = *b"BAD!";
/// Bytes of an index's payload for each block, and behind the last.
const INDEX_ENTRY_BYTES: usize = 8 + BLOCK_HEADER_BYTES;
const INDEX_TAIL_BYTES: usize = 16;

/// Opens `data` as a trace, if it can be one.
pub fn open(data: &[u8]) -> Option<Reader> {
    static FILES: OnceLock<[Scratch; 2]> = OnceLock::new();
    let [file, spool] = FILES.get_or_init(|| [Scratch::new(), Scratch::new()]);
    let (file_bytes, spool_bytes) = trace(data, spool.path.as_os_str().as_encoded_bytes());
    file.hold(&file_bytes);
    spool.hold(&spool_bytes);
    let limits = Limits { max_chunk_bytes: 1 << 20, ..Limits::default() };
    Reader::open_with(&file.path, limits).ok()
}

/// The bytes of file and spool that are made of `data`; the file names `spool` as its spool's path.
pub fn trace(data: &[u8], spool: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let cut = data.windows(8).position(|window| window == SPOOL_MAGIC);
    let (blocks, chunks) = data.split_at(cut.unwrap_or(data.len()));
    if data.starts_with(&FILE_MAGIC) {
        return (blocks.to_vec(), chunks.to_vec());
    }
    let spool = if chunks.is_empty() { &[] } else { spool };
    let header = FileHeader::of_trace(SESSION, 0, spool);
    let mut file = [&header.encode()[..], blocks].concat();
    repair(&mut file);
    let Some((size, chunks)) = chunks.get(8..).and_then(|rest| rest.split_first_chunk()) else {
        return (file, Vec::new());
    };
    let header = FileHeader::of_spool(SESSION, 0, u32::from_le_bytes(*size), &[]);
    (file, [&header.encode()[..], chunks].concat())
}

/// Makes the session and the check sums of all blocks right, and the index's copies of their headers. (Offsets: the
/// table of [`omptrace_trace_format::block`].)
fn repair(file: &mut [u8]) {
    for at in (FILE_HEADER_BYTES..file.len()).step_by(8) {
        let (before, block) = file.split_at_mut(at);
        if !block.starts_with(&BLOCK_MAGIC) || block.len() < BLOCK_HEADER_BYTES {
            continue;
        }
        let (header, rest) = block.split_at_mut(BLOCK_HEADER_BYTES);
        if header[8..12] == DAMAGED {
            continue;
        }
        let len = u32::from_le_bytes(header[20..24].try_into().expect("four bytes")) as usize;
        if let Some(payload) = rest.get_mut(..len) {
            if header[16] == BlockKind::INDEX.0 {
                repair_index(before, payload);
            }
            header[12..16].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
            let padded = len.next_multiple_of(8);
            if header[16] == BlockKind::INDEX.0 && padded < INDEX_TAIL_BYTES {
                // As if the tail were there: it lies in the header's last bytes, in part or as a whole.
                let tail = BLOCK_HEADER_BYTES + padded - INDEX_TAIL_BYTES;
                let place = &mut header[tail..];
                place[..8].copy_from_slice(&(before.len() as u64).to_le_bytes());
                let room = place.len() - 8;
                place[8..].copy_from_slice(&INDEX_MAGIC[..room]);
            }
        }
        header[72..80].copy_from_slice(&SESSION.to_le_bytes());
        let crc = crc32fast::hash(&header[12..]);
        header[8..12].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Copies the headers that an index points to, `file` being what comes before it, and returns where the index is.
fn repair_index(file: &[u8], payload: &mut [u8]) {
    for entry in payload.chunks_exact_mut(INDEX_ENTRY_BYTES) {
        let offset = u64::from_le_bytes(entry[..8].try_into().expect("eight bytes")) as usize;
        let end = offset.saturating_add(BLOCK_HEADER_BYTES);
        if let Some(header) = file.get(offset..end) {
            entry[8..].copy_from_slice(header);
        }
    }
    if let Some(tail) = payload.len().checked_sub(INDEX_TAIL_BYTES) {
        payload[tail..tail + 8].copy_from_slice(&(file.len() as u64).to_le_bytes());
    }
}

/// A file in memory, without a name of its own: nothing is left of it however the fuzzer ends.
struct Scratch {
    file: File,
    path: PathBuf,
}

impl Scratch {
    fn new() -> Scratch {
        let file = tempfile::tempfile_in(memory()).expect("a temporary file");
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Scratch { file, path }
    }

    fn hold(&self, bytes: &[u8]) {
        let written = || -> io::Result<()> {
            self.file.set_len(0)?;
            self.file.write_all_at(bytes, 0)
        };
        written().expect("the file is ours");
    }
}

/// A folder in memory, where there is one.
pub fn memory() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { shm.to_path_buf() } else { std::env::temp_dir() }
}
