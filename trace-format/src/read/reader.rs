//! Opens a trace: its streams, its metadata, and how it ended.
//!
//! **Reading never panics, takes no more memory than [`Limits`] allows, and returns everything readable**, with a
//! [`Diagnostic`] for each part that is not. If the process died, or still runs, the trace is read together with its
//! spool.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, io};

use serde_json::{Map, Value};

use crate::clock::ClockMap;
use crate::layout::block::{
    BlockKind, ClockPair, Codec, FILE_HEADER_BYTES, FILE_MAGIC, FileHeader, HeaderError,
};
use crate::layout::codec::unpack_text;
use crate::live::liveness;
use crate::live::liveness::{Doubt, Liveness};
use crate::live::spool::{Spool, default_path};
use crate::metadata::Metadata;
use crate::read::block_index::{
    Block, Blocks, INDEX_ENTRY_BYTES, between, checked_payload, find_blocks, read_block, read_up_to,
};
use crate::read::chunks::{Chunks, Stored, is_same_chunk};
use crate::read::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, Severity};
pub use crate::read::events::{Events, Record};
use crate::read::limits::Limits;
use crate::read::regular_file::open_regular;
pub use crate::read::streams::Stream;
use crate::read::streams::streams_of;

/// An open trace. Reads use explicit offsets, so threads can share it.
#[derive(Debug)]
pub struct Reader {
    file: File,
    path: PathBuf,
    limits: Limits,
    header: FileHeader,
    spool: Option<Spool>,
    /// The header names a spool with events that are not in the file, and the spool is missing.
    lacks_spool: bool,
    metadata: Metadata,
    /// All metadata as JSON text: parsed values take many times the memory, and there may be thousands of readers.
    metadata_text: Vec<u8>,
    metadata_clocks: Vec<ClockPair>,
    clock: ClockMap,
    ending: Ending,
    copies: Vec<Stored>,
    /// The checkpoint blocks, by time.
    checkpoints: Vec<Block>,
    /// The remaining blocks: neither events nor metadata nor checkpoints.
    others: Vec<Block>,
    /// The ranges that no block covers, as offset and length.
    between: Vec<(u64, u64)>,
    streams: Vec<Stream>,
    summary: Summary,
    diagnostics: Vec<Diagnostic>,
    bytes_read: AtomicU64,
    /// By stream: its first events, once they were read.
    first_records: Vec<OnceLock<Box<[Record]>>>,
}

/// Number of a stream's first events that [`Reader::first_records`] keeps.
const FIRST_RECORDS: usize = 8;

/// Why a file cannot be read at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be opened or read.
    Io(io::Error),
    /// The file is not a trace, or has a version that is not supported.
    Header(HeaderError),
}

/// How the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The process still runs.
    Running,
    /// The tracer has written everything; [`Metadata::end`] tells why the session ended.
    Ended,
    /// The process was killed by this signal.
    Killed(i32),
    /// The process is gone and the tracer wrote no end of the session.
    DidNotFinish,
    /// The tracer wrote no end of the session, and it cannot be determined whether the process still runs.
    Unknown(Doubt),
}

/// Sizes and counts of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the spool; 0 if there is none.
    pub spool_bytes: u64,
    /// Number of packed chunks in the file.
    pub chunks_packed: u64,
    /// Number of raw chunks in the file.
    pub chunks_raw: u64,
    /// Number of chunks that are only in the spool.
    pub chunks_in_spool: u64,
    /// Bytes of the events of all chunks, unpacked.
    pub event_bytes: u64,
    /// Whether the file is sealed: complete in itself, with an index.
    pub sealed: bool,
    /// Bytes of the file that the summary takes; 0 if there is none.
    pub summary_bytes: u64,
    /// Number of checkpoints.
    pub checkpoints: u64,
    /// Bytes of the file that the checkpoints take.
    pub checkpoint_bytes: u64,
}

impl Reader {
    /// Opens a trace, with its spool if it has one.
    ///
    /// # Errors
    /// The file cannot be read, or is not a trace. Damage is not an error: see [`Reader::diagnostics`].
    pub fn open(path: &Path) -> Result<Reader, OpenError> {
        Reader::open_with(path, Limits::default())
    }

    /// Opens a trace with other limits than the default ones.
    ///
    /// # Errors
    /// Like [`Reader::open`].
    pub fn open_with(path: &Path, limits: Limits) -> Result<Reader, OpenError> {
        let mut diagnostics = Diagnostics::new(limits.max_diagnostics);
        let file = open_regular(path)?;
        let header = read_header(&file)?;
        let session = header.as_ref().ok().map(|header| header.session);
        let spool_path = match &header {
            Ok(header) => header.path.clone(),
            Err(_) => default_path(path).into_os_string().into_vec(),
        };
        // Open the spool first: a running process moves chunks from the spool to the file, never back.
        let spool = Spool::find(path, &spool_path, session, &limits, &mut diagnostics);
        let len = file.metadata()?.len();
        // With a spool, a hole in the file may be a chunk that is still there.
        let hole = match spool {
            Some(_) => DiagnosticKind::HoleOfSpool,
            None => DiagnosticKind::Hole,
        };
        let blocks = find_blocks(&file, len, header.as_ref().ok(), hole, &limits, &mut diagnostics)?;
        let header = match (header, blocks.session) {
            (Ok(header), _) => {
                if header.is_of_sealed_file() && blocks.without_index {
                    diagnostics.push(Diagnostic::new(DiagnosticKind::IndexMissing));
                }
                header
            }
            (Err(_), Some(session)) => {
                diagnostics.push(Diagnostic::new(DiagnosticKind::FileHeaderDamaged).at(0));
                unknown_header(session)
            }
            (Err(error), None) => return Err(OpenError::Header(error)),
        };
        // If the file's header is damaged, the spool's session could not be compared until here.
        let spool = spool.filter(|spool| spool.session == header.session);

        let mut overlay = Overlay::read(&file, &blocks, &limits, &mut diagnostics)?;
        if let Some(number) = spool.as_ref().and_then(|spool| spool.failure) {
            let failure = io::Error::from_raw_os_error(number).to_string();
            overlay.object.insert("failure".to_owned(), failure.into());
        }
        let (mut metadata, unknown) = Metadata::understand(&overlay.object);
        metadata.forget_known_rows();
        if unknown > 0 {
            diagnostics.push(Diagnostic::new(DiagnosticKind::MetadataKey).count(unknown));
        }
        // If tracing was turned off, the tracer wrote an end and left the spool.
        let needs_spool = metadata.end.is_none() || metadata.failure.is_some();
        let lacks_spool = spool.is_none() && !spool_path.is_empty() && needs_spool;
        if lacks_spool {
            diagnostics.push(Diagnostic::new(DiagnosticKind::SpoolMissing));
        }
        let copies = all_copies(&blocks, spool.as_ref());
        diagnostics.soften(|diagnostic| {
            diagnostic.kind == DiagnosticKind::BlockCut && spool_has(&copies, diagnostic)
        });
        let mode = metadata.settings.get("OMPTRACE_MODE");
        let gaps = match mode.is_some_and(|mode| mode == "flight") {
            true => DiagnosticKind::ChunksOverwritten,
            false => DiagnosticKind::ChunksMissing,
        };
        let clock = clock_map(&overlay, &copies, &metadata, &mut diagnostics);
        let streams = streams_of(&copies, gaps, &limits, &mut diagnostics);
        let of_checkpoints = of_kind(&blocks, BlockKind::CHECKPOINT);
        let mut checkpoints: Vec<Block> = of_checkpoints.filter(|_| blocks.indexed).copied().collect();
        checkpoints.sort_by_key(|block| block.header.clock.ticks);
        let is_read = |block: &&Block| {
            let kinds = [BlockKind::CHUNK, BlockKind::METADATA, BlockKind::CHECKPOINT];
            kinds.contains(&block.header.kind)
        };
        diagnostics.add_of_sealing(&metadata.found_while_sealing);
        let between = between(&blocks, header.bytes as u64);
        Ok(Reader {
            path: path.to_path_buf(),
            clock,
            ending: find_ending(&file, path, &header, &metadata, spool.as_ref()),
            summary: Summary {
                file_bytes: len,
                spool_bytes: spool.as_ref().map_or(0, |spool| spool.bytes),
                sealed: blocks.indexed,
                summary_bytes: of_kind(&blocks, BlockKind::SUMMARY).map(bytes_of).sum(),
                checkpoints: checkpoints.len() as u64,
                checkpoint_bytes: checkpoints.iter().map(bytes_of).sum(),
                ..chunk_sums(&copies)
            },
            diagnostics: diagnostics.take(),
            bytes_read: AtomicU64::new(0),
            first_records: streams.iter().map(|_| OnceLock::new()).collect(),
            file,
            limits,
            header,
            spool,
            lacks_spool,
            metadata,
            metadata_text: serde_json::to_vec(&overlay.object).unwrap_or_default(),
            metadata_clocks: overlay.clocks,
            streams,
            others: blocks.list.iter().filter(|it| !is_read(it)).copied().collect(),
            between,
            copies,
            checkpoints,
        })
    }

    /// The path at which the trace was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's header. If it is damaged, only the session is known.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The trace's description of its session.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// How the session ended.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// The map from raw ticks to nanoseconds.
    pub fn clock(&self) -> &ClockMap {
        &self.clock
    }

    /// The streams that have chunks, by number.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// The flaws found when the trace was opened, and when it was sealed. Flaws within chunks are returned by
    /// [`Events::take_diagnostics`].
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Sizes and counts of the trace.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Bytes of events, unpacked, read by all [`Events`] so far, for showing progress from any thread. Repeated reading
    /// counts again. Reading a whole undamaged trace once adds [`Summary::event_bytes`].
    pub fn event_bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// The time at which all threads together had recorded `bytes` bytes of events (unpacked), in raw ticks, with the
    /// precision of a chunk; `None` if the trace has fewer. Reads no events.
    pub fn ticks_at_event_bytes(&self, bytes: u64) -> Option<u64> {
        let chunks = self.copies.chunk_by(is_same_chunk).filter_map(<[Stored]>::first);
        let mut chunks: Vec<(u64, u64)> =
            chunks.map(|stored| (stored.chunk().clock.ticks, stored.event_bytes())).collect();
        chunks.sort_unstable();
        let mut sum = 0_u64;
        let mut ends = chunks.into_iter().filter_map(|(ticks, of_chunk)| {
            let before = sum;
            sum = sum.saturating_add(of_chunk);
            (before >= bytes).then_some(ticks)
        });
        ends.next()
    }

    /// The events of `stream`, which must be one of this reader's.
    pub fn events<'r>(&'r self, stream: &Stream) -> Events<'r> {
        Events::new(self.chunks(), self.copies_of(stream), &self.bytes_read)
    }

    /// The first events of the stream at `index` of [`Reader::streams`], at most eight. The stream's first chunk is
    /// unpacked only once.
    pub fn first_records(&self, index: usize) -> &[Record] {
        let (Some(known), Some(stream)) = (self.first_records.get(index), self.streams.get(index)) else {
            return &[];
        };
        known.get_or_init(|| self.events(stream).take(FIRST_RECORDS).collect())
    }

    /// The events of `stream`, starting with the last chunk that starts at `ticks` or before.
    pub fn events_from<'r>(&'r self, stream: &Stream, ticks: u64) -> Events<'r> {
        let copies = self.copies_of(stream);
        let begun = copies.partition_point(|stored| stored.chunk().clock.ticks <= ticks);
        let chunk = copies[..begun].last();
        let is_before = |stored: &Stored| chunk.is_some_and(|chunk| !is_same_chunk(stored, chunk));
        let before = copies[..begun].iter().take_while(|stored| is_before(stored));
        Events::new(self.chunks(), &copies[before.count()..], &self.bytes_read)
    }

    /// The flaws of everything that neither [`Reader::open`] nor [`Reader::events`] reads: the summary, checkpoints,
    /// blocks of other kinds, further copies of chunks, and bytes that no block covers. Reads all of these, which takes
    /// time.
    pub fn flaws_elsewhere(&self) -> Vec<Diagnostic> {
        let mut flaws = Diagnostics::new(self.limits.max_diagnostics);
        let mut bytes = Vec::new();
        let mut is_whole = |block: &Block| {
            matches!(read_block(&self.file, block, &mut bytes), Ok(true))
                && checked_payload(block, &bytes).is_some()
        };
        for block in self.others.iter().filter(|block| !is_whole(block)) {
            let kind = match block.header.kind {
                BlockKind::SUMMARY => DiagnosticKind::SummaryDamaged,
                _ => DiagnosticKind::OtherBlockDamaged,
            };
            flaws.push(Diagnostic::new(kind).at(block.offset));
        }
        let mut checkpoints = self.checkpoints.iter().filter(|block| !is_whole(block));
        if let Some(first) = checkpoints.next() {
            let damaged = Diagnostic::new(DiagnosticKind::CheckpointDamaged).at(first.offset);
            flaws.push(damaged.count(1 + checkpoints.count() as u64));
        }
        for copies in self.copies.chunk_by(is_same_chunk) {
            for copy in &copies[1..] {
                if let Stored::File(block) = copy
                    && !is_whole(block)
                {
                    let damaged = Diagnostic::new(DiagnosticKind::ChunkCopyDamaged);
                    let header = &block.header;
                    flaws.push(damaged.at(block.offset).chunk(header.stream, header.sequence));
                }
            }
        }
        for (offset, len) in &self.between {
            if !self.is_padding(*offset, *len) {
                let between = Diagnostic::new(DiagnosticKind::BytesBetween).at(*offset);
                flaws.push(between.count(*len));
            }
        }
        let unchecked = self.summary.chunks_in_spool;
        if unchecked > 0 && self.ending != Ending::Running {
            flaws.push(Diagnostic::new(DiagnosticKind::SpoolUnchecked).count(unchecked));
        }
        flaws.take()
    }

    /// Whether these bytes are zeros that pad a payload.
    fn is_padding(&self, offset: u64, len: u64) -> bool {
        let mut bytes = Vec::new();
        len < 8
            && read_up_to(&self.file, &mut bytes, offset, len as usize).is_ok()
            && bytes.iter().all(|byte| *byte == 0)
    }

    /// Whether all chunks are in the file with correct check sums, and no flaw was found. Reads the whole file.
    pub fn is_sound(&self) -> bool {
        let is_note = |diagnostic: &Diagnostic| diagnostic.severity <= Severity::Note;
        let mut bytes = Vec::new();
        let mut is_whole = |stored: &Stored| match stored {
            Stored::File(block) => {
                matches!(read_block(&self.file, block, &mut bytes), Ok(true))
                    && checked_payload(block, &bytes).is_some()
            }
            Stored::Spool(_) => false,
        };
        self.diagnostics.iter().all(is_note) && self.copies.iter().all(&mut is_whole)
    }

    /// The checkpoint blocks, by time.
    pub(crate) fn checkpoint_blocks(&self) -> &[Block] {
        &self.checkpoints
    }

    /// The file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The copies of all chunks of `stream`; the copies of a chunk are adjacent.
    pub(crate) fn copies_of(&self, stream: &Stream) -> &[Stored] {
        self.copies.get(stream.copies.clone()).unwrap_or(&[])
    }

    /// The events of the first chunk of `stream`; none if that chunk no longer exists.
    pub(crate) fn first_events<'r>(&'r self, stream: &Stream) -> Events<'r> {
        let copies = self.copies_of(stream);
        let of_first = copies.iter().take_while(|stored| stored.chunk().sequence == 0);
        Events::new(self.chunks(), &copies[..of_first.count()], &self.bytes_read)
    }

    /// The time of the last event, in raw ticks; 0 if there is none. Reads the last chunk of each stream.
    pub fn last_ticks(&self) -> u64 {
        let last = self.streams.iter().map(|stream| {
            let events = self.last_events(stream, 1);
            events.last().map_or(0, |record| record.ticks)
        });
        last.max().unwrap_or(0)
    }

    /// The events of the last `chunks` chunks of `stream`, or of all if there are fewer.
    pub(crate) fn last_events<'r>(&'r self, stream: &Stream, chunks: usize) -> Events<'r> {
        let copies = self.copies_of(stream);
        let mut begins: Vec<usize> = Vec::new();
        let mut begin = 0;
        for of_chunk in copies.chunk_by(is_same_chunk) {
            begins.push(begin);
            begin += of_chunk.len();
        }
        let wanted = begins.len().saturating_sub(chunks);
        let begin = begins.get(wanted).copied().unwrap_or(0);
        Events::new(self.chunks(), &copies[begin..], &self.bytes_read)
    }

    /// Returns a reader of this trace's chunks.
    pub(crate) fn chunks(&self) -> Chunks<'_> {
        Chunks::new(&self.file, self.spool.as_ref(), &self.limits)
    }

    /// The copies of each chunk: first the chunks in the file in its order, then those that are only in the spool, by
    /// time.
    pub(crate) fn copies_of_each(&self) -> Vec<&[Stored]> {
        let mut chunks: Vec<&[Stored]> = self.copies.chunk_by(is_same_chunk).collect();
        chunks.sort_by_key(|copies| match &copies[0] {
            Stored::File(block) => (false, block.offset),
            Stored::Spool(entry) => (true, entry.header.chunk.clock.ticks),
        });
        chunks
    }

    /// The clock pairs of the sound metadata blocks, in the file's order, without the empty ones of metadata added
    /// later.
    pub(crate) fn metadata_clocks(&self) -> Vec<ClockPair> {
        let clocks = self.metadata_clocks.iter().copied();
        clocks.filter(|clock| *clock != ClockPair::default()).collect()
    }

    /// All metadata of the file, including keys unknown to this version.
    pub fn metadata_object(&self) -> Map<String, Value> {
        serde_json::from_slice(&self.metadata_text).unwrap_or_default()
    }

    /// The spool that is read with the file.
    pub(crate) fn spool(&self) -> Option<&Spool> {
        self.spool.as_ref()
    }

    /// Whether the header names a spool with events that are not in the file, and the spool is missing.
    pub(crate) fn lacks_spool(&self) -> bool {
        self.lacks_spool
    }

    /// Whether the session's end is written, but its tracer has yet to remove the spool.
    pub(crate) fn is_finishing(&self) -> bool {
        self.ending == Ending::Ended
            && liveness::is_finishing(&self.file, &self.path, self.header.pid, &self.metadata)
    }

    /// Whether the process, which was running when the trace was opened, still runs and has its spool. A doubtful case
    /// counts as no.
    pub(crate) fn still_runs(&self) -> bool {
        let spool = self.spool.as_ref().map(|spool| &*spool.path);
        let is_there = spool.is_none_or(Path::exists);
        self.ending == Ending::Running
            && is_there
            && liveness::of(&self.file, &self.path, self.header.pid, &self.metadata, spool)
                == Liveness::Running
    }

    /// The limits that the trace was opened with.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The file's metadata in the file system.
    pub(crate) fn file_metadata(&self) -> io::Result<std::fs::Metadata> {
        self.file.metadata()
    }
}

/// The clock pairs of the sound metadata blocks, and their JSON objects merged.
#[derive(Debug, Default)]
struct Overlay {
    clocks: Vec<ClockPair>,
    object: Map<String, Value>,
}

impl Overlay {
    fn read(
        file: &File,
        blocks: &Blocks,
        limits: &Limits,
        diagnostics: &mut Diagnostics,
    ) -> io::Result<Overlay> {
        let mut overlay = Overlay::default();
        let mut bytes = Vec::new();
        let mut left = limits.max_metadata_bytes;
        for block in of_kind(blocks, BlockKind::METADATA) {
            let mut report = |kind| diagnostics.push(Diagnostic::new(kind).at(block.offset));
            if u64::from(block.stored) > left {
                report(DiagnosticKind::LimitReached);
                continue;
            }
            if !read_block(file, block, &mut bytes)? {
                report(DiagnosticKind::BlockHeaderDamaged);
            }
            let json = checked_payload(block, &bytes).and_then(|payload| text(block, payload, left));
            let len = json.as_ref().map_or(0, |json| json.len() as u64);
            let Some(rest) = left.checked_sub(len) else {
                report(DiagnosticKind::LimitReached);
                continue;
            };
            left = rest;
            match json.and_then(|json| serde_json::from_slice::<Map<_, _>>(&json).ok()) {
                Some(object) => {
                    overlay.object.extend(object);
                    overlay.clocks.push(block.header.clock);
                }
                None => report(DiagnosticKind::MetadataDamaged),
            }
        }
        if overlay.clocks.is_empty() {
            diagnostics.push(Diagnostic::new(DiagnosticKind::MetadataMissing));
        }
        Ok(overlay)
    }
}

/// A metadata block's JSON text. A packed text longer than `max_bytes` is cut off one byte after the limit.
fn text<'p>(block: &Block, payload: &'p [u8], max_bytes: u64) -> Option<Cow<'p, [u8]>> {
    match block.header.codec {
        Codec::ZSTD => unpack_text(payload, max_bytes.saturating_add(1)).ok().map(Cow::Owned),
        _ => Some(Cow::Borrowed(payload)),
    }
}

/// The inner error means a damaged header; the blocks after it may be sound.
fn read_header(file: &File) -> Result<Result<FileHeader, HeaderError>, OpenError> {
    let mut page = Vec::new();
    read_up_to(file, &mut page, 0, FILE_HEADER_BYTES)?;
    match FileHeader::decode(&page, FILE_MAGIC) {
        Err(error @ (HeaderError::ByteOrder | HeaderError::Version(_))) => Err(OpenError::Header(error)),
        header => Ok(header),
    }
}

fn unknown_header(session: u64) -> FileHeader {
    FileHeader::of_trace(session, 0, &[])
}

/// Bytes that a block takes in the file, including its index entry.
fn bytes_of(block: &Block) -> u64 {
    block.header.stride() + INDEX_ENTRY_BYTES as u64
}

fn of_kind(blocks: &Blocks, kind: BlockKind) -> impl Iterator<Item = &Block> {
    blocks.list.iter().filter(move |block| block.header.kind == kind)
}

/// All chunks of file and spool, in [`Stored::order`].
fn all_copies(blocks: &Blocks, spool: Option<&Spool>) -> Vec<Stored> {
    let in_file = of_kind(blocks, BlockKind::CHUNK).map(|block| Stored::File(*block));
    let in_spool = spool.into_iter().flat_map(|spool| &spool.chunks);
    let mut copies: Vec<Stored> = in_file.chain(in_spool.map(|entry| Stored::Spool(*entry))).collect();
    copies.sort_unstable_by_key(Stored::order);
    copies
}

/// Whether the chunk of `diagnostic` is in the spool, where a failed write, for example to a full disk, leaves it.
fn spool_has(copies: &[Stored], diagnostic: &Diagnostic) -> bool {
    let in_spool = copies.iter().filter_map(|stored| match stored {
        Stored::File(_) => None,
        Stored::Spool(entry) => Some(entry.header.chunk),
    });
    let mut places = in_spool.map(|chunk| (Some(chunk.stream), Some(chunk.sequence)));
    places.any(|place| place == (diagnostic.stream, diagnostic.sequence))
}

/// Sizes and counts of chunks; of several copies of a chunk, the first counts.
fn chunk_sums(copies: &[Stored]) -> Summary {
    let mut sums = Summary::default();
    for copies in copies.chunk_by(is_same_chunk) {
        match &copies[0] {
            Stored::File(block) => {
                let is_raw = block.header.codec == Codec::RAW;
                sums.chunks_raw += u64::from(is_raw);
                sums.chunks_packed += u64::from(!is_raw);
            }
            Stored::Spool(_) => sums.chunks_in_spool += 1,
        }
        sums.event_bytes += copies[0].event_bytes();
    }
    sums
}

fn clock_map(
    overlay: &Overlay,
    copies: &[Stored],
    metadata: &Metadata,
    diagnostics: &mut Diagnostics,
) -> ClockMap {
    let of_metadata = overlay.clocks.iter().copied();
    let start = of_metadata.clone().next();
    let of_chunks = copies.iter().map(|stored| stored.chunk().clock);
    let pairs = of_metadata.chain(of_chunks).collect();
    ClockMap::new(start, pairs, metadata.clock.as_ref(), diagnostics)
}

fn find_ending(
    file: &File,
    path: &Path,
    header: &FileHeader,
    metadata: &Metadata,
    spool: Option<&Spool>,
) -> Ending {
    let signal = metadata.record.as_ref().and_then(|record| record.signal);
    if metadata.end.is_some() {
        return Ending::Ended;
    }
    if let Some(signal) = signal {
        return Ending::Killed(signal);
    }
    let spool = spool.map(|spool| &*spool.path);
    match liveness::of(file, path, header.pid, metadata, spool) {
        Liveness::Running => Ending::Running,
        Liveness::Ended => Ending::DidNotFinish,
        Liveness::Unknown(doubt) => Ending::Unknown(doubt),
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(error) => error.fmt(f),
            OpenError::Header(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io(error) => Some(error),
            OpenError::Header(error) => Some(error),
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Io(error)
    }
}
