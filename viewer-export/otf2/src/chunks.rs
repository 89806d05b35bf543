//! A file in chunks of equal size, each of which can be read separately.
//!
//! ```text
//! chunk   03 42, numbers of its first and last event (full); records; 00 up to the chunk's size
//! last    03 42, ...; records; 02 01, where the file ends
//! ```
//!
//! A record never straddles chunks, and at least one 00 follows the last record of a chunk. The last chunk never has
//! the full size: readers that compute the number of chunks from the file's size would expect another one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::buffer::{Buffer, Out};
use crate::records::{CHUNK_HEADER, END_OF_BUFFER, END_OF_CHUNK, END_OF_FILE, LITTLE_ENDIAN};

/// Bytes of a chunk's header.
const HEADER_BYTES: usize = 18;

/// A chunked file to which data is being written. It is open only during a write, because there may be more files than
/// a process may have open.
#[derive(Debug)]
pub struct Chunks {
    path: PathBuf,
    chunk_bytes: usize,
    /// The current, incomplete chunk.
    chunk: Buffer,
    /// Number of complete chunks.
    complete: u64,
    /// Number of event records; 0 in files of definitions.
    events: u64,
    /// Number of events before this chunk.
    events_before: u64,
    error: Option<io::Error>,
}

/// The position of bytes in a file that are filled in later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    offset: u64,
}

impl Site {
    /// The position of a file's first record.
    pub const FIRST: Site = Site { offset: HEADER_BYTES as u64 };
}

impl Chunks {
    /// Creates the file.
    pub fn create(path: PathBuf, chunk_bytes: usize) -> Chunks {
        let error = File::create(&path).err();
        let mut chunks = Chunks {
            path,
            chunk_bytes,
            chunk: Buffer::new(chunk_bytes),
            complete: 0,
            events: 0,
            events_before: 0,
            error,
        };
        chunks.begin_chunk();
        chunks
    }

    fn begin_chunk(&mut self) {
        self.chunk.clear();
        self.chunk.store([CHUNK_HEADER, LITTLE_ENDIAN], 2);
        self.chunk.fill(HEADER_BYTES);
        self.events_before = self.events;
    }

    /// Makes room for a record of up to `len` bytes. True if the record will be the first one in a new chunk.
    #[inline]
    pub fn room(&mut self, len: usize) -> bool {
        let is_full = self.chunk.len() + len >= self.chunk_bytes;
        if is_full {
            self.end_chunk();
        }
        is_full
    }

    #[cold]
    fn end_chunk(&mut self) {
        const { assert!(END_OF_CHUNK == 0) };
        self.chunk.fill(self.chunk_bytes);
        self.write_chunk();
        self.complete += 1;
        self.begin_chunk();
    }

    /// The buffer for a record, after [`Chunks::room`].
    #[inline]
    pub fn bytes(&mut self) -> &mut Buffer {
        &mut self.chunk
    }

    /// Counts the newest record as an event.
    #[inline]
    pub fn count_event(&mut self) {
        self.events += 1;
    }

    /// Number of events written.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The position of the next byte.
    pub fn site(&self) -> Site {
        Site { offset: self.complete * self.chunk_bytes as u64 + self.chunk.len() as u64 }
    }

    /// Replaces the bytes at `distance` after `site`.
    pub fn patch(&mut self, site: Site, distance: usize, bytes: &[u8]) {
        let offset = site.offset + distance as u64;
        let chunk_start = self.complete * self.chunk_bytes as u64;
        match offset.checked_sub(chunk_start) {
            Some(inside) => {
                let inside = inside as usize;
                self.chunk.bytes_mut()[inside..inside + bytes.len()].copy_from_slice(bytes);
            }
            None => self.write_at(bytes, offset),
        }
    }

    fn write_chunk(&mut self) {
        // An empty file of definitions contains these numbers, too.
        let numbers = [self.events_before + 1, self.events];
        let bytes = self.chunk.bytes_mut();
        bytes[2..10].copy_from_slice(&numbers[0].to_le_bytes());
        bytes[10..HEADER_BYTES].copy_from_slice(&numbers[1].to_le_bytes());
        let chunk = std::mem::take(&mut self.chunk);
        self.write_at(chunk.bytes(), self.complete * self.chunk_bytes as u64);
        self.chunk = chunk;
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) {
        if self.error.is_none() {
            let file = File::options().write(true).open(&self.path);
            let written = file.and_then(|file| file.write_all_at(bytes, offset));
            self.error = written.err();
        }
    }

    /// Whether writing has failed.
    pub fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Writes the remaining data.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(&mut self) -> io::Result<()> {
        const END: [u8; 2] = [END_OF_FILE, END_OF_BUFFER];

        self.room(END.len());
        self.chunk.store(END, END.len());
        self.write_chunk();
        self.chunk = Buffer::default();
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_chunk_is_never_full() {
        let folder = tempfile::tempdir().expect("a folder");
        for records in 0..20 {
            let path = folder.path().join("file");
            let mut chunks = Chunks::create(path.clone(), 32);
            for record in 0..records {
                chunks.room(3);
                chunks.bytes().store([9, 1, record], 3);
                chunks.count_event();
            }
            chunks.finish().expect("written");
            let bytes = std::fs::read(&path).expect("a file");
            assert_ne!(bytes.len() % 32, 0);
            let (whole, last) = bytes.as_chunks::<32>();
            assert!(whole.iter().all(|chunk| chunk[31] == END_OF_CHUNK));
            assert_eq!(last[last.len() - 2..], [END_OF_FILE, END_OF_BUFFER]);
            assert_eq!(last[10], records, "the number of the last event");
        }
    }
}
