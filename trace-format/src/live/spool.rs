//! The spool that the traced process left: the newest chunks of each stream (layout: [`crate::layout::block`]).

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use crate::layout::block::{
    CHUNK_HEADER_WORDS, ChunkState, FILE_HEADER_BYTES, FileHeader, SPOOL_MAGIC, SpoolChunk,
};
use crate::read::block_index::read_up_to;
use crate::read::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
use crate::read::limits::Limits;
use crate::read::regular_file::open_regular;
use crate::write::lock::is_same_entry;

const HEADER_BYTES: usize = CHUNK_HEADER_WORDS * 8;
/// Maximum number of chunks to look at while the program runs; the tracer creates no more.
const MAX_PLACES: usize = 16 << 10;
/// Linux error numbers; other values are damage.
const ERROR_NUMBERS: RangeInclusive<u64> = 1..=4095;

/// The spool's path unless the user chose another directory: next to the trace, with its name. A name too long for the
/// ending, and for the number that is appended if the path is taken, is cut.
pub fn default_path(trace: &Path) -> PathBuf {
    const ENDING: &str = ".spool";
    const MAX_NAME: usize = 255 - ENDING.len() - ".10000".len();

    let name = trace.file_name().unwrap_or_default().as_bytes();
    let mut most = name.len();
    if name.len() + ENDING.len() > 255 {
        most = MAX_NAME;
        // Do not cut within a UTF-8 character.
        while most > 0 && name[most] & 0xc0 == 0x80 {
            most -= 1;
        }
    }
    let mut name = std::ffi::OsStr::from_bytes(&name[..most]).to_os_string();
    name.push(ENDING);
    trace.with_file_name(name)
}

/// A spool, and its chunks that hold events.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    pub(crate) path: PathBuf,
    /// The trace's path, from the spool's header.
    trace: PathBuf,
    pub(crate) session: u64,
    pub(crate) bytes: u64,
    /// Capacity of a chunk in words.
    capacity: u64,
    pub(crate) chunks: Vec<SpoolEntry>,
    /// The error number that turned tracing off.
    pub(crate) failure: Option<i32>,
}

/// A chunk of the spool as it was when the spool was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpoolEntry {
    /// Byte offset in the spool.
    pub(crate) offset: u64,
    pub(crate) header: SpoolChunk,
}

/// The running process reused the chunk for other events.
#[derive(Debug)]
pub(crate) struct Recycled;

impl Spool {
    /// Finds the spool of `session`, next to the trace or at the path in the trace's header; `None` if there is no such
    /// file. `path` is empty for a sealed trace, which has no spool. For a copied trace, a copied spool takes
    /// precedence, because the other one still belongs to the original. Both files may have been renamed since.
    pub(crate) fn find(
        trace: &Path,
        path: &[u8],
        session: Option<u64>,
        limits: &Limits,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spool> {
        let named = Path::new(std::ffi::OsStr::from_bytes(path));
        let beside = trace.with_file_name(named.file_name()?);
        let mut is_damaged = false;
        for path in [&*beside, &*default_path(trace), named] {
            let Ok(file) = open_regular(path) else {
                continue;
            };
            let spool = Spool::read(file, path.to_path_buf(), session, limits, diagnostics);
            if spool.is_some() {
                if fs::canonicalize(path).ok() != fs::canonicalize(named).ok() {
                    diagnostics.push(Diagnostic::new(DiagnosticKind::SpoolMoved));
                }
                return spool;
            }
            // A file with only the default name of a spool may be anything.
            is_damaged |= path.file_name() == named.file_name();
        }
        if is_damaged {
            diagnostics.push(Diagnostic::new(DiagnosticKind::SpoolDamaged));
        }
        None
    }

    fn read(
        file: File,
        path: PathBuf,
        session: Option<u64>,
        limits: &Limits,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spool> {
        let bytes = file.metadata().ok()?.len();
        let mut page = [0; FILE_HEADER_BYTES];
        file.read_exact_at(&mut page, 0).ok()?;
        let header = FileHeader::decode(&page, SPOOL_MAGIC).ok()?;
        let chunk_bytes = header.chunk_bytes as usize;
        if session.is_some_and(|session| session != header.session)
            || chunk_bytes < HEADER_BYTES
            || chunk_bytes > limits.max_chunk_bytes
        {
            return None;
        }
        let mut spool = Spool {
            file,
            path,
            trace: PathBuf::from(OsString::from_vec(header.path)),
            session: header.session,
            bytes,
            capacity: (chunk_bytes - HEADER_BYTES) as u64 / 8,
            chunks: Vec::new(),
            failure: None,
        };
        spool.list(chunk_bytes, limits, diagnostics);
        Some(spool)
    }

    /// Whether the spool belongs to the trace at `trace` and to no other: it is next to the trace and has its name, or
    /// its header names this trace. After one of the two files was copied, linked or renamed, neither is the case.
    pub(crate) fn belongs_to(&self, trace: &Path) -> bool {
        let is_same_file = || {
            let (found, read) = (fs::symlink_metadata(&self.path), self.file.metadata());
            let (Ok(found), Ok(read)) = (found, read) else {
                return false;
            };
            (found.dev(), found.ino()) == (read.dev(), read.ino())
        };
        let is_beside = is_same_entry(&self.path, &default_path(trace));
        (is_beside || is_same_entry(&self.trace, trace)) && is_same_file()
    }

    /// Reads the headers of all chunks.
    fn list(&mut self, chunk_bytes: usize, limits: &Limits, diagnostics: &mut Diagnostics) {
        let (mut senseless, mut left_out, mut unreported) = (0, 0, 0_u64);
        let offsets = (FILE_HEADER_BYTES as u64..self.bytes).step_by(chunk_bytes);
        for (index, offset) in offsets.enumerate() {
            if index == limits.max_blocks {
                left_out = (self.bytes - offset) / chunk_bytes as u64;
                break;
            }
            let Some(bytes) = self.header_bytes(offset) else {
                continue;
            };
            let header = SpoolChunk::decode(&bytes);
            let failure = header.map_or(0, |header| header.failure);
            if ERROR_NUMBERS.contains(&failure) {
                self.failure = Some(failure as i32);
            }
            unreported = unreported.saturating_add(header.map_or(0, |header| header.unreported));
            let header = header.filter(|header| {
                matches!(header.state, ChunkState::FREE | ChunkState::ACTIVE | ChunkState::FULL)
                    && header.published <= self.capacity
            });
            match header {
                Some(header) if header.state == ChunkState::FREE => {}
                Some(header) => self.take(SpoolEntry { offset, header }),
                // Zeros: the place has not been used yet.
                None => senseless += u64::from(bytes != [0; HEADER_BYTES]),
            }
        }
        for (kind, count) in [
            (DiagnosticKind::SpoolChunkDamaged, senseless),
            (DiagnosticKind::LimitReached, left_out),
            (DiagnosticKind::EventsUnreported, unreported),
        ] {
            if count > 0 {
                diagnostics.push(Diagnostic::new(kind).count(count));
            }
        }
    }

    /// Adds a chunk with a header that is read again, unless the chunk was freed or reused since its header was read:
    /// the header read first may have been a mix of two headers.
    fn take(&mut self, entry: SpoolEntry) {
        let again = self.same_chunk(&entry);
        if let Some(header) = again.filter(|header| header.state != ChunkState::FREE) {
            self.chunks.push(SpoolEntry { header, ..entry });
        }
    }

    fn header_bytes(&self, offset: u64) -> Option<[u8; HEADER_BYTES]> {
        let mut bytes = [0; HEADER_BYTES];
        // Acquire, twice; pairs with Release in the tracer's `Header`: what was read before the header is not newer
        // than the header, and what is read after it is not older. The kernel copies both; only these fences keep a CPU
        // that reorders loads from mixing them.
        fence(Ordering::Acquire);
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        fence(Ordering::Acquire);
        Some(bytes)
    }

    /// Reads the header of `entry`'s chunk again; `None` if it is another chunk's by now. A freed chunk still has its
    /// words, because whoever reuses it writes its header first.
    fn same_chunk(&self, entry: &SpoolEntry) -> Option<SpoolChunk> {
        SpoolChunk::decode(&self.header_bytes(entry.offset)?)
            .filter(|header| header.chunk == entry.header.chunk)
    }

    /// The chunks that hold events now, in any state (a freed chunk still has its events), and the number of lost
    /// events that no event reports.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub(crate) fn places(&self) -> io::Result<(Vec<SpoolEntry>, u64)> {
        let chunk_bytes = self.capacity as usize * 8 + HEADER_BYTES;
        // The spool may have grown.
        let bytes = self.file.metadata()?.len();
        let offsets = (FILE_HEADER_BYTES as u64..bytes).step_by(chunk_bytes);
        let (mut places, mut unreported) = (Vec::new(), 0_u64);
        for offset in offsets.take(MAX_PLACES) {
            let header = self.header_bytes(offset);
            let Some(header) = header.and_then(|bytes| SpoolChunk::decode(&bytes)) else {
                continue;
            };
            unreported = unreported.saturating_add(header.unreported);
            let holds_events = (1..=self.capacity).contains(&header.published);
            // A header that is being written may be a mix of two headers.
            let entry = SpoolEntry { offset, header };
            if holds_events && let Some(header) = self.same_chunk(&entry) {
                places.push(SpoolEntry { offset, header });
            }
        }
        Ok((places, unreported))
    }

    /// Space that the spool occupies on disk, or in memory, in bytes; its holes do not count.
    pub(crate) fn bytes_now(&self) -> u64 {
        self.file.metadata().map_or(0, |file| file.blocks() * 512)
    }

    /// Words that a chunk holds.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Reads the words published in a chunk into `words`, starting with word number `from`.
    ///
    /// The process may still run. The published length is read before the words, so that all words below it are
    /// complete. The header is read again after the words, to make sure that they belong to this chunk. If the chunk
    /// was freed, its published length may be reset; the listed length stays valid as long as the header is this
    /// chunk's.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub(crate) fn words(
        &self,
        entry: &SpoolEntry,
        from: u64,
        bytes: &mut Vec<u8>,
        words: &mut Vec<u64>,
    ) -> io::Result<Result<(), Recycled>> {
        words.clear();
        let Some(now) = self.same_chunk(entry) else {
            return Ok(Err(Recycled));
        };
        let published = now.published.max(entry.header.published);
        let published = published.min(self.capacity);
        read_up_to(
            &self.file,
            bytes,
            entry.offset + HEADER_BYTES as u64 + from * 8,
            published.saturating_sub(from) as usize * 8,
        )?;
        if self.same_chunk(entry).is_none() {
            return Ok(Err(Recycled));
        }
        words.extend(bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes));
        Ok(Ok(()))
    }
}
