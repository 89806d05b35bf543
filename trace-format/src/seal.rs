//! Sealing a trace: one file, complete in itself, packed, with an index at its end.
//!
//! The sealed file is written beside the trace and takes its name when it is on disk, and only then the spool goes:
//! whenever sealing is interrupted, the trace is as it was.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::{fmt, mem, process};

use serde_json::{Map, Value, json};

use crate::block::{BLOCK_HEADER_BYTES, ClockPair, Codec};
use crate::chunks::Stored;
use crate::clock::that_tell;
use crate::codec::{Packer, pack_text};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::event::{Event, decode, is_wide_prefix, split};
use crate::metadata::Found;
use crate::predict::State;
use crate::process::started;
use crate::reader::{Ending, OpenError, Reader};
use crate::writer::{Index, chunk_header, metadata_header, push_words};

/// zstd's level. The program has ended and the processors are free, so that more can be had than while it ran.
const LEVEL: i32 = 3;
/// That of the metadata: short, but most of a short trace.
const METADATA_LEVEL: i32 = 9;

/// What a sealed trace holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Events of all streams.
    pub events: u64,
    /// Events that were not recorded, as the events `omptrace_lost` count them.
    pub lost: u64,
    /// Words about what turned tracing off: see [`crate::Metadata::told_failure`].
    pub failure: Option<String>,
    /// Streams.
    pub streams: u32,
    /// Bytes of the file.
    pub bytes: u64,
    /// What was wrong with the trace before it was sealed.
    pub diagnostics: Vec<Diagnostic>,
}

impl Sealed {
    /// True where all that happened is in the trace, but for what [`Sealed::lost`] counts.
    pub fn is_whole(&self) -> bool {
        let is_damage = |diagnostic: &Diagnostic| diagnostic.severity == Severity::Error;
        self.failure.is_none() && !self.diagnostics.iter().any(is_damage)
    }
}

/// Why a trace was not sealed; it is unharmed.
#[derive(Debug)]
#[non_exhaustive]
pub enum SealError {
    /// The trace cannot be read.
    Open(OpenError),
    /// The process that writes it still runs.
    Running,
    /// The sealed file cannot be written.
    Io(io::Error),
}

/// Seals the trace at `path`: takes the spool in and removes it, packs raw chunks, lays the keys of the JSON object
/// `additions` over the metadata. `progress` is told how many chunks of all are done.
///
/// Sealing again changes nothing, unless `additions` say something new. Chunks that cannot be read are left out;
/// [`Reader::diagnostics`] of the sealed trace tell of them.
///
/// # Errors
/// See [`SealError`].
pub fn seal(
    path: &Path,
    additions: Value,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Sealed, SealError> {
    // Of a symbolic link, the file behind it is replaced.
    let path = fs::canonicalize(path).map_err(OpenError::Io)?;
    let reader = Reader::open(&path)?;
    if reader.ending() == Ending::Running {
        return Err(SealError::Running);
    }
    let news = news(&reader, additions);
    if is_sealed(&reader) && news.is_empty() {
        let counted = copy(&reader, news, &mut Output::new(io::sink()), progress)?;
        return Ok(Sealed {
            bytes: reader.summary().file_bytes,
            ..counted
        });
    }
    let temporary = temporary(&path);
    let sealed = write(&reader, news, &temporary, progress)
        .and_then(|sealed| fs::rename(&temporary, &path).map(|()| sealed))
        .inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })?;
    if let Some(spool) = reader.spool_path() {
        fs::remove_file(spool)?;
    }
    Ok(sealed)
}

/// True where the file is what sealing makes.
fn is_sealed(reader: &Reader) -> bool {
    let mut diagnostics = reader.diagnostics().iter();
    reader.summary().sealed
        && reader.header().path.is_empty()
        && diagnostics.all(|diagnostic| diagnostic.while_sealing)
}

/// The keys of `additions` that the metadata lacks or says otherwise.
fn news(reader: &Reader, additions: Value) -> Map<String, Value> {
    let Value::Object(mut object) = additions else {
        return Map::new();
    };
    let there = reader.metadata_object();
    object.retain(|key, value| there.get(key) != Some(value));
    object
}

/// Bytes that file systems take for a name.
const LONGEST_NAME: usize = 255;
/// Between the trace's name and the process id in the name of a file that is to become a sealed trace.
const SEALING: &str = ".sealing.";

/// Where [`seal`] in this process writes what is to become the trace at `path`. A name that no trace has, in the trace's
/// folder: a name is changed at once only within one file system.
pub fn temporary(path: &Path) -> PathBuf {
    // Of a symbolic link, the file behind it is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    let suffix = format!("{SEALING}{}", process::id());
    if name.len() + suffix.len() > LONGEST_NAME {
        let mut hash = DefaultHasher::new();
        name.hash(&mut hash);
        name = format!(".{:016x}", hash.finish()).into();
    }
    name.push(suffix);
    path.with_file_name(name)
}

/// The trace that the file at `path` was to become, where the process that sealed it is gone. On another machine it may
/// be there: such a file is of no use only when the trace is sealed.
pub fn interrupted(path: &Path) -> Option<PathBuf> {
    let (trace, pid) = path.file_name()?.to_str()?.rsplit_once(SEALING)?;
    let is_gone = started(pid.parse().ok()?).is_none();
    is_gone.then(|| path.with_file_name(trace))
}

fn write(
    reader: &Reader,
    news: Map<String, Value>,
    path: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Sealed> {
    // Anew, and for the user alone until it is as the trace is: never what somebody else has put there.
    let create = || {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).open(path)
    };
    let file = create().or_else(|_| fs::remove_file(path).and_then(|()| create()))?;
    let trace = reader.file_metadata()?;
    // Only root can give a file away, and only root seals the traces of others.
    let _ = fchown(&file, Some(trace.uid()), Some(trace.gid()));
    file.set_permissions(trace.permissions())?;
    let mut output = Output::new(BufWriter::with_capacity(1 << 20, file));
    let sealed = copy(reader, news, &mut output, progress)?;
    let file = output
        .out
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(sealed)
}

/// Writes a sealed file of all that `reader` can read, `news` laid over its metadata.
fn copy(
    reader: &Reader,
    news: Map<String, Value>,
    output: &mut Output<impl Write>,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Sealed> {
    let session = reader.header().session;
    output.header(reader)?;
    let mut object = reader.metadata_object();
    object.extend(news);
    let object = Value::from(object);
    output.all_metadata(session, &reader.metadata_clocks(), &object)?;
    let mut sealed = Sealed {
        streams: reader.streams().len() as u32,
        failure: reader.metadata().told_failure(),
        ..Sealed::default()
    };
    let mut chunks = reader.chunks();
    let mut packer = Packer::new(LEVEL, 0)?;
    let mut raw = Vec::new();
    let all = reader.copies_of_each();
    for (done, copies) in all.iter().enumerate() {
        progress(done as u64, all.len() as u64);
        let Some(stored) = chunks.read(copies) else {
            continue;
        };
        count(&chunks.words, &mut sealed);
        if let Stored::File(block) = stored
            && block.header.codec == Codec::COLUMNS
        {
            output.block(&block.header.encode(), &chunks.bytes[BLOCK_HEADER_BYTES..])?;
            continue;
        }
        let words = chunks.words.len() as u32;
        let (payload, events, codec) = match packer.pack(&chunks.words) {
            Some(packed) => (packed.payload, packed.events, Codec::COLUMNS),
            None => {
                raw.clear();
                push_words(&mut raw, &chunks.words);
                (&raw[..], 0, Codec::RAW)
            }
        };
        let header = chunk_header(session, &stored.chunk(), words, events, codec, payload);
        output.block(&header, payload)?;
    }
    progress(all.len() as u64, all.len() as u64);
    sealed.diagnostics = all_diagnostics(reader, chunks.diagnostics);
    let before = &reader.metadata().found_while_sealing;
    let found = all_found(before, &sealed.diagnostics);
    if found.len() > before.len() {
        let found = json!({ "found_while_sealing": found });
        output.metadata(session, ClockPair::default(), &found)?;
    }
    output.index(session)?;
    sealed.bytes = output.offset;
    Ok(sealed)
}

/// Adds the events of `words` to the sums.
fn count(words: &[u64], sealed: &mut Sealed) {
    // Only wide events are decoded, which predict nothing.
    let mut state = State::new(0);
    for event in split(words) {
        sealed.events += 1;
        if is_wide_prefix(event[0])
            && let Ok(decoded) = decode(event, &mut state)
            && let Event::Lost(lost) = decoded.event
        {
            sealed.lost = sealed.lost.saturating_add(lost.events);
        }
    }
}

fn all_diagnostics(reader: &Reader, mut of_chunks: Diagnostics) -> Vec<Diagnostic> {
    let mut all = Diagnostics::new(reader.limits().max_diagnostics);
    let opening = reader.diagnostics().iter().cloned();
    opening
        .chain(of_chunks.take())
        .for_each(|diagnostic| all.push(diagnostic));
    all.take()
}

/// What earlier sealing found, and what of `diagnostics` is new. What sealing leaves out can be seen nowhere else afterwards.
fn all_found(before: &[Found], diagnostics: &[Diagnostic]) -> Vec<Found> {
    let mut all = before.to_vec();
    let known: BTreeSet<&Found> = before.iter().collect();
    let is_grave = |diagnostic: &&Diagnostic| diagnostic.severity > Severity::Note;
    let grave = diagnostics.iter().filter(is_grave);
    let now = grave.filter(|diagnostic| !diagnostic.while_sealing);
    all.extend(
        now.map(Diagnostic::found)
            .filter(|found| !known.contains(found)),
    );
    all
}

/// A sealed file being written.
struct Output<W> {
    out: W,
    offset: u64,
    index: Index,
}

impl<W: Write> Output<W> {
    fn new(out: W) -> Output<W> {
        Output {
            out,
            offset: 0,
            index: Index::default(),
        }
    }

    fn header(&mut self, reader: &Reader) -> io::Result<()> {
        let header = reader.header().sealed();
        self.offset = header.bytes as u64;
        self.out.write_all(&header.encode())
    }

    /// Writes the whole metadata in one block, and an empty one for each further clock that the reader needs: each block
    /// takes 200 bytes, its entry of the index included.
    fn all_metadata(
        &mut self,
        session: u64,
        clocks: &[ClockPair],
        object: &Value,
    ) -> io::Result<()> {
        let start = clocks.first().copied().unwrap_or_default();
        self.metadata(session, start, object)?;
        for clock in &that_tell(start, clocks.to_vec())[1..] {
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

    /// Writes a metadata block, packed where that saves something.
    fn metadata(&mut self, session: u64, clock: ClockPair, object: &Value) -> io::Result<()> {
        let (header, json) = metadata_header(session, clock, object);
        match pack_text(&json, METADATA_LEVEL) {
            Some(packed) => {
                self.block(&header.with_payload(Codec::ZSTD, &packed).encode(), &packed)
            }
            None => self.block(&header.encode(), &json),
        }
    }

    /// Writes the index, with which the file ends.
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
            SealError::Running => f.write_str("the process that writes the trace still runs"),
            SealError::Io(error) => write!(f, "the sealed trace cannot be written: {error}"),
        }
    }
}

impl std::error::Error for SealError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SealError::Open(error) => Some(error),
            SealError::Running => None,
            SealError::Io(error) => Some(error),
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
