//! The events of one location, in the format of its `.evt` file.
//!
//! A timestamp record precedes the first event of a chunk, and each event whose time differs from its predecessor's. An
//! event's attributes are between its timestamp and the event itself.

use std::io;
use std::path::PathBuf;

use crate::buffer::Out;
use crate::chunks::{Chunks, Site};
use crate::encoding::significant_bytes;
use crate::records::{Record, TIMESTAMP, put_record};

/// Bytes of a timestamp record.
const TIMESTAMP_BYTES: usize = 9;
/// Maximum number of bytes of an event that enters or leaves a region.
const REGION_EVENT_BYTES: usize = 2 + 4;
/// Records of up to this many bytes are assembled in the chunk itself.
const SHORT_RECORD_BYTES: usize = 64;

/// An event file to which data is being written.
#[derive(Debug)]
pub struct EventFile {
    chunks: Chunks,
    /// The time of the newest event in this chunk.
    time: Option<u64>,
}

impl EventFile {
    /// Creates the file of a location.
    pub fn create(path: PathBuf, chunk_bytes: usize) -> EventFile {
        EventFile { chunks: Chunks::create(path, chunk_bytes), time: None }
    }

    /// Makes room for an event at `time` of up to `len` bytes, and appends its timestamp and attributes.
    #[inline(always)]
    fn begin(&mut self, time: u64, attributes: &[u8], len: usize) {
        if self.chunks.room(TIMESTAMP_BYTES + attributes.len() + len) {
            self.time = None;
        }
        let bytes = self.chunks.bytes();
        if self.time != Some(time) {
            self.time = Some(time);
            bytes.store([TIMESTAMP], 1);
            bytes.store(time.to_le_bytes(), 8);
        }
        if !attributes.is_empty() {
            bytes.store_all(attributes);
        }
        self.chunks.count_event();
    }

    /// Appends [`Enter`](super::records::Enter) or [`Leave`](super::records::Leave), given by number. Most events are
    /// of these kinds.
    #[inline(always)]
    pub fn region(&mut self, id: u8, time: u64, attributes: &[u8], region: u32) {
        self.begin(time, attributes, REGION_EVENT_BYTES);
        // The event has no length field, apart from that of its compressed number.
        let len = significant_bytes(region.into());
        let word = u64::from(id) | (len as u64) << 8 | u64::from(region) << 16;
        self.chunks.bytes().store(word.to_le_bytes(), 2 + len);
    }

    /// Appends any other event. Returns the position of its record.
    #[inline(always)]
    pub fn event<R: Record>(&mut self, time: u64, attributes: &[u8], event: &R) -> Site {
        if R::MAX_BYTES > SHORT_RECORD_BYTES {
            return self.long_event(time, attributes, event);
        }
        self.begin(time, attributes, R::MAX_BYTES);
        let site = self.chunks.site();
        let bytes = self.chunks.bytes();
        bytes.store([R::ID, 0], 2);
        let start = bytes.len();
        event.put(bytes);
        let len = bytes.len() - start;
        bytes.bytes_mut()[start - 1] = len as u8;
        site
    }

    #[cold]
    fn long_event<R: Record>(&mut self, time: u64, attributes: &[u8], event: &R) -> Site {
        let mut record = Vec::new();
        put_record(&mut record, event);
        self.begin(time, attributes, record.len());
        let site = self.chunks.site();
        self.chunks.bytes().store_all(&record);
        site
    }

    /// Replaces the bytes at `distance` after `site`.
    pub fn patch(&mut self, site: Site, distance: usize, bytes: &[u8]) {
        self.chunks.patch(site, distance, bytes);
    }

    /// Changes the time of the first event in the file.
    pub fn set_first_time(&mut self, time: u64) {
        self.chunks.patch(Site::FIRST, 1, &time.to_le_bytes());
    }

    /// The number of events so far.
    pub fn events(&self) -> u64 {
        self.chunks.events()
    }

    /// Whether writing has failed.
    pub fn failed(&self) -> bool {
        self.chunks.failed()
    }

    /// Writes the remaining data.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(&mut self) -> io::Result<()> {
        self.chunks.finish()
    }
}
