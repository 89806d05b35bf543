//! Builds traces for tests, with the functions that the tracer uses.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use omptrace_trace_format::block::{
    BLOCK_HEADER_BYTES, CHUNK_HEADER_WORDS, CHUNK_MAGIC, Chunk, ChunkState, ClockPair, Codec, FileHeader,
};
use omptrace_trace_format::blocks::{chunk_header, metadata_block, push_words, unused_block};
use omptrace_trace_format::codec::Packer;
use omptrace_trace_format::event::Event;
use omptrace_trace_format::predict::State;
use omptrace_trace_format::spool::default_path;
use omptrace_trace_format::{Diagnostic, DiagnosticKind, Reader};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const SESSION: u64 = 0x5e55_1011;
const FIRST_TICKS: u64 = 1_000_000;
/// Ticks of the test's clock per chunk: 2 GHz, a chunk each second.
const CHUNK_TICKS: u64 = 2_000_000_000;

/// Whether tests should replace the files that they compare with: `OMPTRACE_BLESS=1`. Read the diff afterwards.
pub(crate) fn is_blessing() -> bool {
    std::env::var_os("OMPTRACE_BLESS").is_some_and(|value| value == "1")
}

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// The words of `events`, each a few ticks after the one before.
pub(crate) fn encode(first_id: u64, events: &[Event<'_>]) -> Vec<u64> {
    let mut state = State::new(first_id);
    let mut words = Vec::new();
    let mut out = [0; 512];
    for (index, event) in events.iter().enumerate() {
        let ticks = 100 * index as u64;
        let len = event.encode(&mut state, ticks, &mut out);
        words.extend_from_slice(&out[..len.expect("the event fits")]);
    }
    words
}

/// One event of each row, made of random numbers with this `seed`.
pub(crate) fn some_events(seed: u64) -> Vec<Event<'static>> {
    let mut random = random(seed);
    let state = State::new(0);
    (0..Event::ROWS).map(|row| Event::generate(row, &state, &mut random)).collect()
}

/// Both clocks at the start of chunk `sequence`.
pub(crate) fn clock(sequence: u64) -> ClockPair {
    ClockPair {
        ticks: FIRST_TICKS + sequence * CHUNK_TICKS,
        monotonic_raw_ns: 5_000_000_000 + sequence * 1_000_000_000,
        realtime_ns: 1_700_000_000_000_000_000 + sequence * 1_000_000_000,
    }
}

pub(crate) fn chunk(stream: u32, sequence: u32) -> Chunk {
    Chunk {
        stream,
        sequence,
        clock: clock(sequence.into()),
        first_id: u64::from(stream) << 40 | u64::from(sequence) << 8,
    }
}

/// A trace in its own temporary directory.
pub(crate) struct Trace {
    folder: TempDir,
    file: Vec<u8>,
    spool: Vec<u8>,
}

/// Bytes of a chunk in the spools made here.
const SPOOL_CHUNK_BYTES: usize = 16 << 10;

impl Trace {
    /// A file header and a first metadata block.
    pub(crate) fn new() -> Trace {
        Trace::with_metadata(json!({
            "tracer": "test",
            "clock": {"kind": "tsc", "ticks_per_second": 2.0e9, "uncertainty_ticks": 40},
        }))
    }

    pub(crate) fn with_metadata(object: Value) -> Trace {
        // No process has this number.
        Trace::of_process(u32::MAX, object)
    }

    pub(crate) fn of_process(pid: u32, object: Value) -> Trace {
        let mut trace = Trace {
            folder: tempfile::tempdir().expect("a temporary folder"),
            file: Vec::new(),
            spool: Vec::new(),
        };
        let spool = default_path(&trace.path());
        let header = FileHeader::of_trace(SESSION, pid, spool.as_os_str().as_encoded_bytes());
        trace.file.extend(header.encode());
        trace.metadata(object)
    }

    pub(crate) fn metadata(self, object: Value) -> Trace {
        self.metadata_at(clock(0), object)
    }

    pub(crate) fn metadata_at(mut self, clock: ClockPair, object: Value) -> Trace {
        self.file.extend(metadata_block(SESSION, clock, &object));
        self
    }

    /// The metadata of a session that ended as it should.
    pub(crate) fn end(self) -> Trace {
        self.metadata(json!({"end": {"how": "finalize"}}))
    }

    pub(crate) fn raw(mut self, chunk: Chunk, words: &[u64]) -> Trace {
        let mut payload = Vec::new();
        push_words(&mut payload, words);
        self.file.extend(chunk_header(SESSION, &chunk, words.len() as u32, 0, Codec::RAW, &payload));
        self.file.extend(payload);
        self
    }

    pub(crate) fn packed(mut self, chunk: Chunk, words: &[u64]) -> Trace {
        let mut packer = Packer::new(1, words.len()).expect("zstd");
        let packed = packer.pack(words).expect("whole events");
        self.file.extend(chunk_header(
            SESSION,
            &chunk,
            words.len() as u32,
            packed.events,
            Codec::COLUMNS,
            packed.payload,
        ));
        self.file.extend(packed.payload);
        self
    }

    /// Adds an unused block.
    pub(crate) fn unused(mut self, bytes: usize) -> Trace {
        self.file.extend(unused_block(SESSION, bytes as u32));
        self.file.resize(self.file.len() + bytes - BLOCK_HEADER_BYTES, 0);
        self
    }

    /// Adds bytes that are not a block.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Trace {
        self.file.extend(bytes);
        self
    }

    /// Adds a chunk to the spool.
    pub(crate) fn spooled(mut self, chunk: Chunk, state: ChunkState, words: &[u64]) -> Trace {
        if self.spool.is_empty() {
            let header = FileHeader::of_spool(SESSION, u32::MAX, SPOOL_CHUNK_BYTES as u32, &[]);
            self.spool.extend(header.encode());
        }
        let mut all = vec![
            CHUNK_MAGIC,
            state.0,
            u64::from(chunk.sequence) << 32 | u64::from(chunk.stream),
            chunk.clock.ticks,
            chunk.clock.monotonic_raw_ns,
            chunk.clock.realtime_ns,
            chunk.first_id,
            words.len() as u64,
        ];
        all.resize(CHUNK_HEADER_WORDS, 0);
        all.extend(words);
        all.resize(SPOOL_CHUNK_BYTES / 8, 0);
        push_words(&mut self.spool, &all);
        self
    }

    /// Sets the error number that turned tracing off, in the spool's newest chunk.
    pub(crate) fn failed(mut self, number: u64) -> Trace {
        let header = self.spool.len() - SPOOL_CHUNK_BYTES;
        self.spool[header + 8 * 8..][..8].copy_from_slice(&number.to_le_bytes());
        self
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("test.omptrace")
    }

    /// Writes the trace and returns its path.
    pub(crate) fn write(&self) -> PathBuf {
        let path = self.path();
        fs::write(&path, &self.file).expect("the folder is ours");
        if !self.spool.is_empty() {
            fs::write(default_path(&path), &self.spool).expect("the folder is ours");
        }
        path
    }

    /// Writes the trace with its spool in `folder`. The spool's header names the trace or, like that of older tracers,
    /// does not.
    pub(crate) fn write_with_spool_in(&self, folder: &Path, names_the_trace: bool) -> PathBuf {
        let path = self.path();
        let spool = folder.join("test.omptrace.spool");
        let header = FileHeader::of_trace(SESSION, u32::MAX, spool.as_os_str().as_encoded_bytes());
        let mut file = header.encode();
        file.extend(&self.file[header.bytes..]);
        fs::write(&path, file).expect("the folder is ours");
        let named = if names_the_trace { path.as_os_str().as_encoded_bytes() } else { &[] };
        let header = FileHeader::of_spool(SESSION, u32::MAX, SPOOL_CHUNK_BYTES as u32, named);
        let mut bytes = header.encode();
        bytes.extend(&self.spool[header.bytes..]);
        fs::write(&spool, bytes).expect("the folder is ours");
        path
    }

    pub(crate) fn file(&self) -> &[u8] {
        &self.file
    }
}

/// Replaces the content of the file at `path` with `bytes`. `fs::write` empties the file first, after which some file
/// systems write to the disk at once; that is too slow for tests that do it for each byte.
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) {
    let file = File::options().write(true).create(true).truncate(false).open(path);
    let file = file.expect("the folder is ours");
    file.write_all_at(bytes, 0).expect("the folder is ours");
    file.set_len(bytes.len() as u64).expect("the folder is ours");
}

/// What a reader finds in a trace.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    /// Stream, ticks, and event.
    pub(crate) events: Vec<(u32, u64, Event<'static>)>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Found {
    pub(crate) fn kinds(&self) -> Vec<DiagnosticKind> {
        self.diagnostics.iter().map(|diagnostic| diagnostic.kind).collect()
    }
}

/// Reads a whole trace.
pub(crate) fn read(path: &Path) -> Found {
    let reader = Reader::open(path).expect("the trace can be opened");
    read_all(&reader)
}

pub(crate) fn read_all(reader: &Reader) -> Found {
    let mut found = Found { events: Vec::new(), diagnostics: reader.diagnostics().to_vec() };
    for stream in reader.streams() {
        let mut events = reader.events(stream);
        for record in &mut events {
            found.events.push((stream.number, record.ticks, record.event));
        }
        found.diagnostics.extend(events.take_diagnostics());
    }
    found
}
