//! Reading a trace: opening it, and the events of each stream.
//!
//! **Reading never panics, takes no more memory than [`Limits`] says, and returns what can be read**, with a
//! [`Diagnostic`] for each thing that cannot. A trace whose process died, or still runs, is read with its spool.

use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use serde_json::{Map, Value};

use crate::block::{
    BLOCK_HEADER_BYTES, BlockKind, Chunk, Codec, FILE_HEADER_BYTES, FILE_MAGIC, FORMAT_VERSION,
    FileHeader, HeaderError,
};
use crate::clock::ClockMap;
use crate::codec::Unpacker;
use crate::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
use crate::event::{DecodeError, Event, decode, is_wide_prefix};
use crate::limits::Limits;
use crate::metadata::Metadata;
use crate::predict::State;
use crate::process::is_running;
use crate::scan::{Block, Blocks, find_blocks, read_block, read_up_to};
use crate::spool::{Spool, SpoolEntry, default_path};

/// An open trace. Reads are positioned, so that threads may share it.
#[derive(Debug)]
pub struct Reader {
    file: File,
    path: PathBuf,
    limits: Limits,
    header: FileHeader,
    spool: Option<Spool>,
    metadata_blocks: Vec<Block>,
    metadata_object: Map<String, Value>,
    metadata: Metadata,
    clock: ClockMap,
    ending: Ending,
    copies: Vec<Stored>,
    streams: Vec<Stream>,
    summary: Summary,
    diagnostics: Vec<Diagnostic>,
}

/// Why a file cannot be read at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be opened or read.
    Io(io::Error),
    /// It is no trace, or one that this version does not know.
    Header(HeaderError),
}

/// How the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It has not: the process runs on this machine.
    Running,
    /// The tracer wrote all it had; [`Metadata::end`] says why.
    Ended,
    /// The process was killed by this signal.
    Killed(i32),
    /// The process is gone and the tracer wrote no end.
    DidNotFinish,
}

/// The chunks of one thread, or of a device's queue.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its number, from 1.
    pub number: u32,
    copies: Range<usize>,
    chunks: usize,
    missing: u64,
}

/// What a trace consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the spool; 0 where there is none.
    pub spool_bytes: u64,
    /// Chunks of the file that are packed.
    pub chunks_packed: u64,
    /// Chunks of the file that are as the tracer had them.
    pub chunks_raw: u64,
    /// Chunks that only the spool has.
    pub chunks_in_spool: u64,
    /// Bytes of the events of all chunks, unpacked.
    pub event_bytes: u64,
    /// True where the file is sealed: complete in itself, and with an index.
    pub sealed: bool,
}

/// An event and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Raw ticks of the session's clock; [`ClockMap::ns`] makes nanoseconds of them.
    pub ticks: u64,
    /// The event.
    pub event: Event<'static>,
}

/// A chunk in one of the places where it may be.
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

    /// Copies of a chunk lie together in this order; the file's come first, as their check sum tells whether they
    /// are sound.
    fn order(&self) -> (u32, u32, bool, u64) {
        let chunk = self.chunk();
        match self {
            Stored::File(block) => (chunk.stream, chunk.sequence, false, block.offset),
            Stored::Spool(entry) => (chunk.stream, chunk.sequence, true, entry.offset),
        }
    }
}

fn is_same_chunk(a: &Stored, b: &Stored) -> bool {
    a.order().0 == b.order().0 && a.order().1 == b.order().1
}

impl Reader {
    /// Opens a trace, with its spool where it has one.
    ///
    /// # Errors
    /// The file cannot be read, or it is no trace. Damage is no error: see [`Reader::diagnostics`].
    pub fn open(path: &Path) -> Result<Reader, OpenError> {
        Reader::open_with(path, Limits::default())
    }

    /// Opens a trace and takes in no more than `limits` say.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_with(path: &Path, limits: Limits) -> Result<Reader, OpenError> {
        let mut diagnostics = Diagnostics::new(limits.max_diagnostics);
        let file = File::open(path)?;
        let header = read_header(&file)?;
        let session = header.as_ref().map(|header| header.session);
        let spool_path = match &header {
            Some(header) => header.path.clone(),
            None => default_path(path).into_os_string().into_vec(),
        };
        // The spool first: a running process moves chunks from there to the file, never back.
        let spool = Spool::find(path, &spool_path, session, &limits, &mut diagnostics);
        let len = file.metadata()?.len();
        let blocks = find_blocks(&file, len, session, &limits, &mut diagnostics)?;
        let header = match (header, blocks.session) {
            (Some(header), _) => header,
            (None, Some(session)) => {
                diagnostics.push(Diagnostic::new(DiagnosticKind::FileHeaderDamaged).at(0));
                unknown_header(session)
            }
            (None, None) => return Err(OpenError::Header(HeaderError::NotATrace)),
        };
        // Without the file's header, the spool's session was not compared yet.
        let spool = spool.filter(|spool| spool.session == header.session);
        if header.path.is_empty() && !blocks.indexed && session.is_some() {
            diagnostics.push(Diagnostic::new(DiagnosticKind::IndexMissing));
        }
        let mut reader = Reader {
            clock: ClockMap::new(None, Vec::new(), None, &mut Diagnostics::default()),
            path: path.to_path_buf(),
            summary: Summary {
                file_bytes: len,
                spool_bytes: spool.as_ref().map_or(0, |spool| spool.bytes),
                sealed: blocks.indexed,
                ..Summary::default()
            },
            ending: Ending::DidNotFinish,
            metadata_blocks: Vec::new(),
            metadata_object: Map::new(),
            metadata: Metadata::default(),
            copies: Vec::new(),
            streams: Vec::new(),
            diagnostics: Vec::new(),
            file,
            limits,
            header,
            spool,
        };
        reader.take_metadata(&blocks, &mut diagnostics)?;
        reader.take_chunks(&blocks, &mut diagnostics);
        reader.make_clock(&mut diagnostics);
        reader.ending = reader.find_ending();
        if reader.spool.is_none() && !spool_path.is_empty() && reader.metadata.end.is_none() {
            diagnostics.push(Diagnostic::new(DiagnosticKind::SpoolMissing));
        }
        reader.diagnostics = diagnostics.take();
        Ok(reader)
    }

    /// Where the trace was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's header. Where that is damaged, only the session in it is known.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// What the trace says about its session.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// How the session ended.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// From raw ticks to nanoseconds.
    pub fn clock(&self) -> &ClockMap {
        &self.clock
    }

    /// The streams that have chunks, by number.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// What was wrong when the trace was opened; what is wrong within chunks, [`Events::take_diagnostics`] tells.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// What the trace consists of.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The events of `stream`, which must be one of this reader's.
    pub fn events<'r>(&'r self, stream: &Stream) -> Events<'r> {
        Events {
            chunks: Chunks::new(self),
            copies: self.copies.get(stream.copies.clone()).unwrap_or(&[]),
            state: State::new(0),
            chunk: Chunk::default(),
            at: 0,
            damaged_events: 0,
        }
    }

    /// The copies of each chunk: those of the file in its order, then those that only the spool has, by time.
    pub(crate) fn chunks(&self) -> Vec<&[Stored]> {
        let mut chunks: Vec<&[Stored]> = self.copies.chunk_by(is_same_chunk).collect();
        chunks.sort_by_key(|copies| match &copies[0] {
            Stored::File(block) => (false, block.offset),
            Stored::Spool(entry) => (true, entry.header.chunk.clock.ticks),
        });
        chunks
    }

    /// Header and payload of each sound metadata block.
    pub(crate) fn metadata_blocks(&self) -> io::Result<Vec<([u8; BLOCK_HEADER_BYTES], Vec<u8>)>> {
        let read = |block: &Block| {
            let mut bytes = Vec::new();
            read_block(&self.file, block, &mut bytes)?;
            bytes.drain(..BLOCK_HEADER_BYTES.min(bytes.len()));
            Ok((block.header.encode(), bytes))
        };
        self.metadata_blocks.iter().map(read).collect()
    }

    /// All metadata as it is in the file, keys unknown to this version included.
    pub(crate) fn metadata_object(&self) -> &Map<String, Value> {
        &self.metadata_object
    }

    /// The spool that was taken in.
    pub(crate) fn spool_path(&self) -> Option<&Path> {
        self.spool.as_ref().map(|spool| &*spool.path)
    }

    /// The limits that the trace was opened with.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The file's permissions.
    pub(crate) fn permissions(&self) -> io::Result<std::fs::Permissions> {
        Ok(self.file.metadata()?.permissions())
    }

    /// Reads the metadata blocks and lays them over each other.
    fn take_metadata(&mut self, blocks: &Blocks, diagnostics: &mut Diagnostics) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut left = self.limits.max_metadata_bytes;
        for block in of_kind(blocks, BlockKind::METADATA) {
            let Some(rest) = left.checked_sub(block.stored.into()) else {
                diagnostics.push(Diagnostic::new(DiagnosticKind::LimitReached).at(block.offset));
                continue;
            };
            left = rest;
            if !read_block(&self.file, block, &mut bytes)? {
                let damaged = Diagnostic::new(DiagnosticKind::BlockHeaderDamaged);
                diagnostics.push(damaged.at(block.offset));
            }
            let object = checked_payload(block, &bytes).and_then(json_object);
            let Some(object) = object else {
                diagnostics.push(Diagnostic::new(DiagnosticKind::MetadataDamaged).at(block.offset));
                continue;
            };
            self.metadata_object.extend(object);
            self.metadata_blocks.push(*block);
        }
        if self.metadata_blocks.is_empty() {
            diagnostics.push(Diagnostic::new(DiagnosticKind::MetadataMissing));
        }
        let (metadata, unknown) = understand(&self.metadata_object);
        if unknown > 0 {
            diagnostics.push(Diagnostic::new(DiagnosticKind::MetadataKey).count(unknown));
        }
        self.metadata = metadata;
        Ok(())
    }

    /// Puts the chunks of file and spool in order and makes streams of them.
    fn take_chunks(&mut self, blocks: &Blocks, diagnostics: &mut Diagnostics) {
        self.copies
            .extend(of_kind(blocks, BlockKind::CHUNK).map(|block| Stored::File(*block)));
        if let Some(spool) = &self.spool {
            self.copies
                .extend(spool.chunks.iter().map(|entry| Stored::Spool(*entry)));
        }
        self.copies.sort_unstable_by_key(Stored::order);
        let (mut start, mut left_out) = (0, 0);
        for of_stream in self
            .copies
            .chunk_by(|a, b| a.chunk().stream == b.chunk().stream)
        {
            let copies = start..start + of_stream.len();
            start = copies.end;
            if self.streams.len() == self.limits.max_streams {
                left_out += 1;
                continue;
            }
            let stream = stream_of(of_stream, copies, &mut self.summary, diagnostics);
            self.streams.push(stream);
        }
        if left_out > 0 {
            diagnostics.push(Diagnostic::new(DiagnosticKind::LimitReached).count(left_out));
        }
    }

    fn make_clock(&mut self, diagnostics: &mut Diagnostics) {
        let metadata = self.metadata_blocks.iter().map(|block| block.header.clock);
        let start = metadata.clone().next();
        let chunks = self.copies.iter().map(|stored| stored.chunk().clock);
        let pairs = metadata.chain(chunks).collect();
        self.clock = ClockMap::new(start, pairs, self.metadata.clock.as_ref(), diagnostics);
    }

    fn find_ending(&self) -> Ending {
        let signal = self
            .metadata
            .record
            .as_ref()
            .and_then(|record| record.signal);
        let spool = self.spool.as_ref().map(|spool| &*spool.path);
        match signal {
            _ if self.metadata.end.is_some() => Ending::Ended,
            Some(signal) => Ending::Killed(signal),
            None if is_running(self.header.pid, &self.metadata, spool) => Ending::Running,
            None => Ending::DidNotFinish,
        }
    }
}

/// `None` where the header is damaged; perhaps the blocks behind it are not.
fn read_header(file: &File) -> Result<Option<FileHeader>, OpenError> {
    let mut page = Vec::new();
    read_up_to(file, &mut page, 0, FILE_HEADER_BYTES)?;
    match FileHeader::decode(&page, FILE_MAGIC) {
        Ok(header) => Ok(Some(header)),
        Err(HeaderError::Damaged | HeaderError::NotATrace) if page.len() == FILE_HEADER_BYTES => {
            Ok(None)
        }
        Err(error) => Err(OpenError::Header(error)),
    }
}

fn unknown_header(session: u64) -> FileHeader {
    FileHeader {
        magic: FILE_MAGIC,
        version: FORMAT_VERSION,
        session,
        pid: 0,
        chunk_bytes: 0,
        path: Vec::new(),
    }
}

fn of_kind(blocks: &Blocks, kind: BlockKind) -> impl Iterator<Item = &Block> {
    blocks
        .list
        .iter()
        .filter(move |block| block.header.kind == kind)
}

/// The payload of a block that was read with its header; `None` where it is cut or its check sum is wrong.
fn checked_payload<'b>(block: &Block, bytes: &'b [u8]) -> Option<&'b [u8]> {
    let payload = bytes.get(BLOCK_HEADER_BYTES..)?;
    let sound = payload.len() == block.header.payload_bytes as usize
        && crc32fast::hash(payload) == block.header.payload_crc;
    sound.then_some(payload)
}

fn json_object(payload: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(payload).ok()
}

/// The metadata of `object`, and how many of its keys have values that make no sense: they are left out.
fn understand(object: &Map<String, Value>) -> (Metadata, u64) {
    if let Ok(metadata) = serde_json::from_value(Value::Object(object.clone())) {
        return (metadata, 0);
    }
    let is_understood = |key: &String, value: &Value| {
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        serde_json::from_value::<Metadata>(Value::Object(alone)).is_ok()
    };
    let mut object = object.clone();
    let keys = object.len();
    object.retain(|key, value| is_understood(key, value));
    let unknown = (keys - object.len()) as u64;
    let metadata = serde_json::from_value(Value::Object(object)).unwrap_or_default();
    (metadata, unknown)
}

/// The stream of `all` copies of its chunks, which lie at `copies`; what it adds to the summary, and what is missing.
fn stream_of(
    all: &[Stored],
    copies: Range<usize>,
    summary: &mut Summary,
    diagnostics: &mut Diagnostics,
) -> Stream {
    let number = all[0].chunk().stream;
    let mut stream = Stream {
        number,
        copies,
        chunks: 0,
        missing: 0,
    };
    let (mut next, mut twice) = (0, 0);
    for copies in all.chunk_by(is_same_chunk) {
        let sequence = copies[0].chunk().sequence;
        let gap = u64::from(sequence) - next;
        if gap > 0 {
            let missing = Diagnostic::new(DiagnosticKind::ChunksMissing).count(gap);
            diagnostics.push(missing.chunk(number, next as u32));
            stream.missing += gap;
        }
        next = u64::from(sequence) + 1;
        stream.chunks += 1;
        let in_file = |stored: &&Stored| matches!(stored, Stored::File(_));
        twice += copies.iter().filter(in_file).count().saturating_sub(1);
        match &copies[0] {
            Stored::File(block) => {
                let raw = block.header.codec == Codec::RAW;
                summary.chunks_raw += u64::from(raw);
                summary.chunks_packed += u64::from(!raw);
                summary.event_bytes += u64::from(block.header.words) * 8;
            }
            Stored::Spool(entry) => {
                summary.chunks_in_spool += 1;
                summary.event_bytes += entry.header.published * 8;
            }
        }
    }
    if twice > 0 {
        let twice = Diagnostic::new(DiagnosticKind::ChunkTwice).count(twice as u64);
        diagnostics.push(Diagnostic {
            stream: Some(number),
            ..twice
        });
    }
    stream
}

impl Stream {
    /// Chunks found.
    pub fn chunks(&self) -> usize {
        self.chunks
    }

    /// Chunks that must have been between those found, and before them.
    pub fn missing(&self) -> u64 {
        self.missing
    }
}

/// Reads chunks one after the other into the same buffers.
#[derive(Debug)]
pub(crate) struct Chunks<'r> {
    reader: &'r Reader,
    /// The chunk as it was stored: for one from the file, its block.
    pub(crate) bytes: Vec<u8>,
    /// Its words.
    pub(crate) words: Vec<u64>,
    unpacker: Option<Unpacker>,
    pub(crate) diagnostics: Diagnostics,
}

impl<'r> Chunks<'r> {
    pub(crate) fn new(reader: &'r Reader) -> Chunks<'r> {
        Chunks {
            reader,
            bytes: Vec::new(),
            words: Vec::new(),
            unpacker: None,
            diagnostics: Diagnostics::new(reader.limits.max_diagnostics),
        }
    }

    /// Reads the first sound one of a chunk's `copies`. Where none is whole, a raw chunk that the file cuts off still
    /// has its first words. `None` where nothing can be read.
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
                let spool = self.reader.spool.as_ref();
                let spool = spool.ok_or(DiagnosticKind::ReadFailed)?;
                spool
                    .words(entry, &mut self.bytes, &mut self.words)
                    .map_err(|_| DiagnosticKind::ReadFailed)?
                    .map_err(|_| DiagnosticKind::SpoolRecycled)
            }
        }
    }

    fn read_file(&mut self, block: &Block) -> Result<(), DiagnosticKind> {
        let limit = self.reader.limits.max_chunk_bytes;
        if block.header.payload_bytes as usize > limit {
            return Err(DiagnosticKind::LimitReached);
        }
        let same_header = read_block(&self.reader.file, block, &mut self.bytes)
            .map_err(|_| DiagnosticKind::ReadFailed)?;
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

    /// Reads what the file has of a raw chunk that it cuts off: its check sum cannot be right. That it is cut was
    /// told when the file was opened.
    fn read_cut(&mut self, stored: &Stored) -> bool {
        let Stored::File(block) = stored else {
            return false;
        };
        let cut = block.stored < block.header.payload_bytes && block.header.codec == Codec::RAW;
        let small = block.stored as usize <= self.reader.limits.max_chunk_bytes;
        if !cut || !small || read_block(&self.reader.file, block, &mut self.bytes).is_err() {
            return false;
        }
        put_words(
            self.bytes.get(BLOCK_HEADER_BYTES..).unwrap_or(&[]),
            &mut self.words,
        );
        true
    }
}

/// Replaces `words` by those of a raw payload.
fn put_words(payload: &[u8], words: &mut Vec<u64>) {
    words.clear();
    words.extend(
        payload
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(u64::from_le_bytes),
    );
}

/// The events of a stream, in its order. Chunks that are damaged are left out; see [`Events::take_diagnostics`].
#[derive(Debug)]
pub struct Events<'r> {
    chunks: Chunks<'r>,
    copies: &'r [Stored],
    state: State,
    chunk: Chunk,
    /// The next event's place in the chunk's words.
    at: usize,
    damaged_events: u64,
}

impl Events<'_> {
    /// What was wrong with the chunks so far.
    pub fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        self.chunks.diagnostics.take()
    }

    /// Goes on behind words that are no event: at the next event, or in the next chunk; false at the stream's end.
    #[cold]
    fn recover(&mut self, error: DecodeError) -> bool {
        let rest = &self.chunks.words[self.at..];
        match error {
            DecodeError::BadArguments { len } => {
                self.at += len;
                self.damaged_events += 1;
                return true;
            }
            // The process died between the prefix of a wide event and the event.
            _ if rest.is_empty() || (rest.len() == 1 && is_wide_prefix(rest[0])) => {}
            DecodeError::Truncated | DecodeError::UnknownKind(_) => {
                let count = rest.len() as u64;
                self.report(DiagnosticKind::ChunkCut, count);
            }
        }
        if self.damaged_events > 0 {
            let count = std::mem::take(&mut self.damaged_events);
            self.report(DiagnosticKind::EventsDamaged, count);
        }
        self.next_chunk()
    }

    fn report(&mut self, kind: DiagnosticKind, count: u64) {
        let diagnostic = Diagnostic::new(kind)
            .chunk(self.chunk.stream, self.chunk.sequence)
            .count(count);
        self.chunks.diagnostics.push(diagnostic);
    }

    /// Goes on to the next chunk that can be read; false at the stream's end.
    fn next_chunk(&mut self) -> bool {
        while let Some(first) = self.copies.first() {
            let same = self
                .copies
                .iter()
                .take_while(|stored| is_same_chunk(first, stored))
                .count();
            let (copies, rest) = self.copies.split_at(same);
            self.copies = rest;
            if let Some(stored) = self.chunks.read(copies) {
                self.chunk = stored.chunk();
                self.state.reset(self.chunk.first_id);
                self.at = 0;
                return true;
            }
        }
        self.chunks.words.clear();
        self.at = 0;
        false
    }
}

impl Iterator for Events<'_> {
    type Item = Record;

    #[inline]
    fn next(&mut self) -> Option<Record> {
        loop {
            match decode(&self.chunks.words[self.at..], &mut self.state) {
                Ok(decoded) => {
                    self.at += decoded.len;
                    return Some(Record {
                        ticks: self.chunk.clock.ticks.wrapping_add(decoded.ticks),
                        event: decoded.event,
                    });
                }
                Err(error) => {
                    if !self.recover(error) {
                        return None;
                    }
                }
            }
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(error) => write!(f, "the trace cannot be read: {error}"),
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
