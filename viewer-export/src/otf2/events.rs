//! The events of one location, as its `.evt` file has them.
//!
//! A time stands before the first event of a chunk, and before each event whose time is another than that of its
//! predecessor. An event's attributes stand between its time and itself.

use std::io;
use std::path::PathBuf;

use super::chunks::{Chunks, Site};
use super::encoding::significant_bytes;
use super::records::{Record, TIMESTAMP, put_record};

/// Bytes of a time.
const TIMESTAMP_BYTES: usize = 9;
/// The most bytes of an event that enters or leaves a region.
const REGION_EVENT_BYTES: usize = 2 + 4;

/// An event file that is being written.
pub(super) struct EventFile {
    chunks: Chunks,
    /// The time that the newest events of this chunk have.
    time: Option<u64>,
    /// The record that is being made.
    record: Vec<u8>,
}

impl EventFile {
    pub(super) fn create(path: PathBuf, chunk_bytes: usize) -> EventFile {
        EventFile {
            chunks: Chunks::create(path, chunk_bytes),
            time: None,
            record: Vec::new(),
        }
    }

    /// Makes room for an event at `time` of up to `len` bytes, attributes included.
    #[inline]
    fn begin(&mut self, time: u64, len: usize) {
        if self.chunks.room(TIMESTAMP_BYTES + len) {
            self.time = None;
        }
        if self.time != Some(time) {
            self.time = Some(time);
            let bytes = self.chunks.bytes();
            bytes.push(TIMESTAMP);
            bytes.extend_from_slice(&time.to_le_bytes());
        }
        self.chunks.count_event();
    }

    /// [`Enter`](super::records::Enter) or [`Leave`](super::records::Leave), by its number: these are most events.
    #[inline]
    pub(super) fn region(&mut self, id: u8, time: u64, attributes: &[u8], region: u32) {
        self.begin(time, attributes.len() + REGION_EVENT_BYTES);
        let bytes = self.chunks.bytes();
        bytes.extend_from_slice(attributes);
        // The event has no length but that of its number.
        let len = significant_bytes(region.into());
        let word = u64::from(id) | (len as u64) << 8 | u64::from(region) << 16;
        let end = bytes.len() + 2 + len;
        bytes.extend_from_slice(&word.to_le_bytes());
        bytes.truncate(end);
    }

    /// Any other event. Gives the place of its record.
    pub(super) fn event<R: Record>(&mut self, time: u64, attributes: &[u8], event: &R) -> Site {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        put_record(&mut record, event);
        self.begin(time, attributes.len() + record.len());
        self.chunks.bytes().extend_from_slice(attributes);
        let site = self.chunks.site();
        self.chunks.bytes().extend_from_slice(&record);
        self.record = record;
        site
    }

    /// Replaces bytes that are `distance` behind `site`.
    pub(super) fn patch(&mut self, site: Site, distance: usize, bytes: &[u8]) {
        self.chunks.patch(site, distance, bytes);
    }

    /// Gives the first event of the file another time.
    pub(super) fn set_first_time(&mut self, time: u64) {
        self.chunks.patch(Site::FIRST, 1, &time.to_le_bytes());
    }

    /// The number of events so far.
    pub(super) fn events(&self) -> u64 {
        self.chunks.events()
    }

    pub(super) fn failed(&self) -> bool {
        self.chunks.failed()
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// The first of all that was written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.chunks.finish()
    }
}
