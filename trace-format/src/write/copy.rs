//! Copies traces into sealed files: unchanged, or with other texts.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::{fmt, mem};

use serde_json::{Map, Value, json};

use crate::clock::relevant_pairs;
use crate::event::predict::State;
use crate::event::{Event, MAX_WIDE_WORDS, decode, is_wide_prefix, split};
use crate::layout::block::{BLOCK_HEADER_BYTES, ClockPair, Codec};
use crate::layout::codec::{Packer, pack_text};
use crate::live::liveness::Doubt;
use crate::metadata::Found;
use crate::read::chunks::Stored;
use crate::read::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, Severity};
use crate::read::reader::{OpenError, Reader};
use crate::write::blocks::{Index, chunk_header, metadata_header, push_words};

/// zstd's level. The program has ended and the CPUs are free, so packing may take longer than while it ran.
const LEVEL: i32 = 3;
/// zstd's level for the metadata, which is short, but the largest part of a short trace.
const METADATA_LEVEL: i32 = 9;

/// What a sealed trace contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Number of events in all streams.
    pub events: u64,
    /// Number of events in streams of samples.
    pub sample_events: u64,
    /// Number of samples.
    pub samples: u64,
    /// Number of events that were not recorded, according to the `omptrace_lost` events.
    pub lost: u64,
    /// Number of samples that were not recorded, according to the `omptrace_samples_lost` events.
    pub samples_lost: u64,
    /// A message about the error that turned tracing off: see [`crate::Metadata::failure_message`].
    pub failure: Option<String>,
    /// Number of streams, without those of samples.
    pub streams: u32,
    /// Bytes of the file.
    pub bytes: u64,
    /// The flaws of the trace before it was sealed.
    pub diagnostics: Vec<Diagnostic>,
    /// A spool whose events are in the sealed trace, but which was kept because it also belongs to another trace, or
    /// could not be removed.
    pub spool_left: Option<PathBuf>,
}

impl Sealed {
    /// Whether the trace is complete except for what [`Sealed::lost`] and [`Sealed::samples_lost`] count.
    pub fn is_whole(&self) -> bool {
        let is_damage = |diagnostic: &Diagnostic| diagnostic.severity == Severity::Error;
        self.failure.is_none() && !self.diagnostics.iter().any(is_damage)
    }
}

/// Why a trace was not sealed; the trace is unchanged.
#[derive(Debug)]
#[non_exhaustive]
pub enum SealError {
    /// The trace cannot be read.
    Open(OpenError),
    /// The process that writes it still runs.
    Running,
    /// It cannot be determined whether that process still runs.
    Unknown(Doubt),
    /// Another program is sealing the trace.
    Busy,
    /// Another program replaced or changed the trace in the meantime.
    Changed,
    /// The trace contains more than this version can read, and sealing would drop it.
    Unreadable(Diagnostic),
    /// The sealed file cannot be written.
    Io(io::Error),
}

/// Flaws that a reader of the sealed trace finds again.
pub(super) const STAYS: [DiagnosticKind; 2] = [DiagnosticKind::SpoolMissing, DiagnosticKind::SpoolDamaged];

pub(super) fn stays(reader: &Reader, diagnostic: &Diagnostic) -> bool {
    reader.lacks_spool() && STAYS.contains(&diagnostic.kind)
}

/// Flaws of the reader, not of the trace: another reader, or another attempt, can read what this one leaves out.
const OF_READER: [DiagnosticKind; 4] = [
    DiagnosticKind::LimitReached,
    DiagnosticKind::ReadFailed,
    DiagnosticKind::UnknownBlock,
    DiagnosticKind::ChunkCodec,
];

/// What happens to an event in a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Copied unchanged.
    Kept,
    /// Copied as changed. Only for rows that have the wide encoding alone.
    Changed,
    /// Left out.
    LeftOut,
}

/// Decides what happens to an event, and may change it.
pub(super) type Change<'c> = dyn FnMut(&mut Event<'static>) -> Fate + 'c;

/// Writes everything that `reader` can read to a sealed file, with `object` as its metadata.
pub(super) fn copy(
    reader: &Reader,
    object: Map<String, Value>,
    output: &mut Output<impl Write>,
    mut change: Option<&mut Change<'_>>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Sealed, SealError> {
    let session = reader.header().session;
    output.header(reader)?;
    let object = Value::from(object);
    output.all_metadata(session, &reader.metadata_clocks(), &object)?;
    let mut sealed = Sealed {
        streams: reader.streams().len() as u32,
        failure: reader.metadata().failure_message(),
        ..Sealed::default()
    };
    let mut of_samples = BTreeSet::new();
    let mut chunks = reader.chunks();
    let mut packer = Packer::new(LEVEL, 0)?;
    let mut raw = Vec::new();
    let all = reader.copies_of_each();
    for (done, copies) in all.iter().enumerate() {
        progress(done as u64, all.len() as u64);
        let Some(stored) = chunks.read(copies) else {
            continue;
        };
        if count(&chunks.words, &mut sealed) {
            of_samples.insert(stored.chunk().stream);
        }
        let changed = change.as_mut().and_then(|change| changed(&chunks.words, *change));
        if let Stored::File(block) = stored
            && block.header.codec == Codec::COLUMNS
            && changed.is_none()
        {
            output.block(&block.header.encode(), &chunks.bytes[BLOCK_HEADER_BYTES..])?;
            continue;
        }
        let words = changed.as_ref().unwrap_or(&chunks.words);
        let (payload, events, codec) = match packer.pack(words) {
            Some(packed) => (packed.payload, packed.events, Codec::COLUMNS),
            None => {
                raw.clear();
                push_words(&mut raw, words);
                (&raw[..], 0, Codec::RAW)
            }
        };
        let header = chunk_header(session, &stored.chunk(), words.len() as u32, events, codec, payload);
        output.block(&header, payload)?;
    }
    sealed.streams -= of_samples.len() as u32;
    progress(all.len() as u64, all.len() as u64);
    sealed.diagnostics = all_diagnostics(reader, chunks.diagnostics);
    let mut news = sealed.diagnostics.iter();
    if let Some(flaw) = news.find(|news| !news.while_sealing && OF_READER.contains(&news.kind)) {
        return Err(SealError::Unreadable(flaw.clone()));
    }
    let before = &reader.metadata().found_while_sealing;
    let lasting = sealed.diagnostics.iter();
    let lasting = lasting.filter(|diagnostic| !stays(reader, diagnostic));
    let found = all_found(before, lasting);
    if found.len() > before.len() {
        let found = json!({ "found_while_sealing": found });
        output.metadata(session, ClockPair::default(), &found)?;
    }
    output.index(session)?;
    sealed.bytes = output.offset;
    Ok(sealed)
}

/// The words of a chunk after applying `change` to its events; `None` if all are kept. Events that cannot be decoded
/// are left out, because they may contain any text.
fn changed(words: &[u64], change: &mut Change<'_>) -> Option<Vec<u64>> {
    // Any state will do: only wide events are decoded, which are not predicted.
    let mut state = State::new(0);
    let mut changed: Option<Vec<u64>> = None;
    let mut before = 0;
    for event in split(words) {
        let mut decoded = is_wide_prefix(event[0]).then(|| decode(event, &mut state));
        let fate = match &mut decoded {
            None => Fate::Kept,
            Some(Ok(decoded)) => change(&mut decoded.event),
            Some(Err(_)) => Fate::LeftOut,
        };
        if fate != Fate::Kept {
            changed.get_or_insert_with(|| words[..before].to_vec());
        }
        if let Some(changed) = &mut changed {
            match (fate, decoded) {
                (Fate::Kept, _) => changed.extend_from_slice(event),
                (Fate::Changed, Some(Ok(decoded))) => push_event(&decoded.event, decoded.ticks, changed),
                _ => {}
            }
        }
        before += event.len();
    }
    changed
}

/// Appends the event, making room for texts of any length.
fn push_event(event: &Event<'_>, ticks: u64, words: &mut Vec<u64>) {
    let begin = words.len();
    let mut room = 1 << 8;
    while room <= MAX_WIDE_WORDS * 2 {
        words.resize(begin + room, 0);
        if let Some(len) = event.encode(&mut State::new(0), ticks, &mut words[begin..]) {
            words.truncate(begin + len);
            return;
        }
        room *= 2;
    }
    words.truncate(begin);
}

/// Counts the events of the chunk `words`. Returns whether they are samples.
fn count(words: &[u64], sealed: &mut Sealed) -> bool {
    // Any state will do: only wide events are decoded, which are not predicted.
    let mut state = State::new(0);
    let (mut events, mut is_of_samples) = (0, false);
    for event in split(words) {
        events += 1;
        if !is_wide_prefix(event[0]) {
            continue;
        }
        match decode(event, &mut state).map(|decoded| decoded.event) {
            Ok(Event::Lost(lost)) => sealed.lost = sealed.lost.saturating_add(lost.events),
            Ok(Event::SamplesLost(lost)) => {
                sealed.samples_lost = sealed.samples_lost.saturating_add(lost.samples);
            }
            Ok(Event::SampleStream(_)) => is_of_samples |= events == 1,
            Ok(Event::Sample(_)) => sealed.samples += 1,
            _ => {}
        }
    }
    sealed.events += events;
    if is_of_samples {
        sealed.sample_events += events;
    }
    is_of_samples
}

fn all_diagnostics(reader: &Reader, mut of_chunks: Diagnostics) -> Vec<Diagnostic> {
    let mut all = Diagnostics::new(reader.limits().max_diagnostics);
    let opening = reader.diagnostics().iter().cloned();
    opening.chain(of_chunks.take()).for_each(|diagnostic| all.push(diagnostic));
    all.take()
}

/// The flaws found by earlier sealing, and those of `diagnostics` that are new. Flaws that sealing removes are visible
/// nowhere else afterwards.
fn all_found<'d>(before: &[Found], diagnostics: impl Iterator<Item = &'d Diagnostic>) -> Vec<Found> {
    let mut all = before.to_vec();
    let known: BTreeSet<&Found> = before.iter().collect();
    let is_grave = |diagnostic: &&Diagnostic| diagnostic.severity > Severity::Note;
    let grave = diagnostics.filter(is_grave);
    let now = grave.filter(|diagnostic| !diagnostic.while_sealing);
    all.extend(now.map(Diagnostic::found).filter(|found| !known.contains(found)));
    all
}

/// A sealed file that is being written.
pub(super) struct Output<W> {
    pub(super) out: W,
    offset: u64,
    index: Index,
}

impl<W: Write> Output<W> {
    pub(super) fn new(out: W) -> Output<W> {
        Output { out, offset: 0, index: Index::default() }
    }

    fn header(&mut self, reader: &Reader) -> io::Result<()> {
        let header = match reader.lacks_spool() {
            true => reader.header().clone(),
            false => reader.header().sealed(),
        };
        self.offset = header.bytes as u64;
        self.out.write_all(&header.encode())
    }

    /// Writes all metadata in one block, and an empty block for each further clock pair that the reader needs. Each
    /// takes 200 bytes, including its index entry.
    fn all_metadata(&mut self, session: u64, clocks: &[ClockPair], object: &Value) -> io::Result<()> {
        let start = clocks.first().copied().unwrap_or_default();
        self.metadata(session, start, object)?;
        for clock in &relevant_pairs(start, clocks.to_vec())[1..] {
            self.metadata(session, *clock, &json!({}))?;
        }
        Ok(())
    }

    /// Writes a block.
    fn block(&mut self, header: &[u8], payload: &[u8]) -> io::Result<()> {
        let padding = payload.len().next_multiple_of(8) - payload.len();
        self.index.push(self.offset, header);
        self.offset += (header.len() + payload.len() + padding) as u64;
        self.out.write_all(header)?;
        self.out.write_all(payload)?;
        self.out.write_all(&[0; 8][..padding])
    }

    /// Writes a metadata block, packed if that makes it shorter.
    fn metadata(&mut self, session: u64, clock: ClockPair, object: &Value) -> io::Result<()> {
        let (header, json) = metadata_header(session, clock, object);
        match pack_text(&json, METADATA_LEVEL) {
            Some(packed) => self.block(&header.with_payload(Codec::ZSTD, &packed).encode(), &packed),
            None => self.block(&header.encode(), &json),
        }
    }

    /// Writes the index, the last block of the file.
    fn index(&mut self, session: u64) -> io::Result<()> {
        let index = mem::take(&mut self.index).finish(session, self.offset);
        self.offset += index.len() as u64;
        self.out.write_all(&index)
    }
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SealError::Open(error) => error.fmt(f),
            SealError::Running => f.write_str("the process that writes the trace is still running"),
            SealError::Unknown(doubt) => {
                write!(
                    f,
                    "omptrace cannot determine here whether the process that writes the trace is still running, because {doubt}"
                )
            }
            SealError::Busy => f.write_str("another program is finishing the trace"),
            SealError::Changed => f.write_str("another program changed the trace in the meantime"),
            SealError::Unreadable(flaw) => write!(
                f,
                "the trace was left unchanged, because events that this version of omptrace cannot read would be lost: {flaw}"
            ),
            SealError::Io(error) => write!(f, "the finished trace cannot be written: {error}"),
        }
    }
}

impl std::error::Error for SealError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SealError::Open(error) => Some(error),
            SealError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<OpenError> for SealError {
    fn from(error: OpenError) -> SealError {
        SealError::Open(error)
    }
}

impl From<io::Error> for SealError {
    fn from(error: io::Error) -> SealError {
        SealError::Io(error)
    }
}
