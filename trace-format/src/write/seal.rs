//! Sealing a trace: one file, complete in itself, packed, with an index at its end.
//!
//! The sealed file is written beside the trace and takes its name when it is on disk. Only then the spool goes, so
//! whenever sealing is interrupted, the trace is as it was. What has another trace's name, or lies elsewhere, stays.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, mem, process, thread};

use serde_json::{Map, Value, json};

use crate::clock::relevant_pairs;
use crate::event::predict::State;
use crate::event::{Event, decode, is_wide_prefix, split};
use crate::layout::block::{BLOCK_HEADER_BYTES, ClockPair, Codec};
use crate::layout::codec::{Packer, pack_text};
use crate::live::liveness::{Doubt, boot, pid_namespace, started};
use crate::live::spool::{Spool, default_path};
use crate::metadata::Found;
use crate::read::chunks::Stored;
use crate::read::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, Severity};
use crate::read::reader::{Ending, OpenError, Reader};
use crate::write::lock;
use crate::write::lock::{Purpose, Reach, State as LockState};
use crate::write::writer::{Index, chunk_header, metadata_header, push_words};

/// zstd's level. The program has ended and the processors are free, so that more can be had than while it ran.
const LEVEL: i32 = 3;
/// The level for the metadata: short, but most of a short trace.
const METADATA_LEVEL: i32 = 9;

/// The content of a sealed trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Events of all streams.
    pub events: u64,
    /// Those of streams of samples.
    pub sample_events: u64,
    /// Samples.
    pub samples: u64,
    /// Events that were not recorded, as the events `omptrace_lost` count them.
    pub lost: u64,
    /// Samples that were not recorded, as the events `omptrace_samples_lost` count them.
    pub samples_lost: u64,
    /// Words about what turned tracing off: see [`crate::Metadata::failure_message`].
    pub failure: Option<String>,
    /// Streams, without those of samples.
    pub streams: u32,
    /// Bytes of the file.
    pub bytes: u64,
    /// The flaws of the trace before it was sealed.
    pub diagnostics: Vec<Diagnostic>,
    /// A spool whose events are in the sealed trace and that stays: it is another trace's too, or could not be removed.
    pub spool_left: Option<PathBuf>,
}

impl Sealed {
    /// True where all that happened is in the trace, but for what [`Sealed::lost`] and [`Sealed::samples_lost`] count.
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
    /// Whether that process still runs cannot be seen from here.
    Unknown(Doubt),
    /// Another program is sealing it.
    Busy,
    /// Somebody else replaced it, or wrote to it, meanwhile.
    Changed,
    /// It has more than this version can read, and sealing would drop it.
    Unreadable(Diagnostic),
    /// The sealed file cannot be written.
    Io(io::Error),
}

/// The way in which [`seal`] treats a trace whose process may still run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InDoubt {
    /// It leaves the trace alone.
    #[default]
    Refuse,
    /// It seals the trace: the caller knows that the process has ended.
    Seal,
}

/// How long a program waits for another one that seals the same trace.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it asks.
const PAUSE: Duration = Duration::from_millis(20);

/// Seals the trace at `path`: takes the spool in and removes it, and packs raw chunks. It lays the keys of the JSON object
/// `additions` over the metadata. `progress` is called with how many chunks of all are done.
///
/// Sealing again changes nothing, unless `additions` say something new. Chunks that are damaged are left out;
/// [`Reader::diagnostics`] of the sealed trace report them.
///
/// # Errors
/// See [`SealError`].
pub fn seal(
    path: &Path,
    additions: Value,
    in_doubt: InDoubt,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Sealed, SealError> {
    // Of a symbolic link, the file behind it is replaced.
    let path = fs::canonicalize(path).map_err(OpenError::Io)?;
    let locked = lock_trace(&path)?;
    let reader = Reader::open(&path)?;
    if let Some(locked) = &locked
        && id(&locked.metadata()?) != id(&reader.file_metadata()?)
    {
        return Err(SealError::Changed);
    }
    match reader.ending() {
        Ending::Running => return Err(SealError::Running),
        Ending::Unknown(doubt) if in_doubt == InDoubt::Refuse => {
            return Err(SealError::Unknown(doubt));
        }
        _ if reader.is_finishing() => return Err(SealError::Running),
        _ => {}
    }
    let news = news(&reader, additions);
    let sealed = if is_sealed(&reader) && news.is_empty() {
        let counted = copy(&reader, news, &mut Output::new(io::sink()), progress)?;
        Sealed {
            bytes: reader.summary().file_bytes,
            spool_left: remove_leftover_spool(&reader, &path),
            ..counted
        }
    } else {
        replace(&reader, news, &path, progress)?
    };
    remove_interrupted(&path);
    Ok(sealed)
}

/// Puts a sealed file in the place of the trace, and removes the spool.
fn replace(
    reader: &Reader,
    news: Map<String, Value>,
    path: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Sealed, SealError> {
    let temporary = temporary(path);
    let written = write(reader, news, &temporary, progress).and_then(|(sealed, _locked)| {
        if !is_unchanged(reader, path)? {
            return Err(SealError::Changed);
        }
        fs::rename(&temporary, path)?;
        Ok(sealed)
    });
    let sealed = written.inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })?;
    // The new name must be on disk before the spool goes: they may lie on two file systems. One that cannot do that for
    // folders keeps their order.
    if let Some(folder) = path.parent() {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    let spool_left = match reader.spool() {
        Some(spool) => remove_spool(spool, path),
        None => remove_leftover_spool(reader, path),
    };
    Ok(Sealed { spool_left, ..sealed })
}

/// Takes the lock of those who seal the trace; `None` where such locks cannot be had.
pub(crate) fn lock_trace(path: &Path) -> Result<Option<File>, SealError> {
    let since = Instant::now();
    // A pipe or a device is no trace, which whoever reads it says.
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    loop {
        let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else {
            return Ok(None);
        };
        match lock::take(&file, Purpose::Sealing) {
            Err(_) => return Ok(None),
            // The one who had the lock has put another file there.
            Ok(true) if fs::metadata(path).is_ok_and(|now| !is_same(&file, &now)) => {}
            Ok(true) => return Ok(Some(file)),
            Ok(false) if since.elapsed() > PATIENCE => return Err(SealError::Busy),
            Ok(false) => thread::sleep(PAUSE),
        }
    }
}

fn id(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn is_same(file: &File, found: &fs::Metadata) -> bool {
    file.metadata().is_ok_and(|file| id(&file) == id(found))
}

/// True where the file at `path` is the one that `reader` reads, and as long as it was.
pub(crate) fn is_unchanged(reader: &Reader, path: &Path) -> io::Result<bool> {
    let (now, then) = (fs::metadata(path)?, reader.file_metadata()?);
    Ok(id(&now) == id(&then) && now.len() == reader.summary().file_bytes)
}

/// Removes the spool where it belongs to this trace alone; else returns its path.
fn remove_spool(spool: &Spool, trace: &Path) -> Option<PathBuf> {
    let is_removed = spool.belongs_to(trace)
        && match fs::remove_file(&spool.path) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
    (!is_removed).then(|| spool.path.clone())
}

/// Removes the spool that a program left beside a sealed trace: it was killed before it removed the spool itself.
fn remove_leftover_spool(reader: &Reader, path: &Path) -> Option<PathBuf> {
    let has_no_spool = reader.summary().sealed && reader.header().path.is_empty();
    let mut found = reader.metadata().found_while_sealing.iter();
    // Older versions sealed a trace without its spool for good.
    let was_missing = found.any(|found| STAYS.iter().any(|kind| kind.name() == found.kind));
    if !has_no_spool || was_missing {
        return None;
    }
    let spool = Spool::find(
        path,
        default_path(path).as_os_str().as_bytes(),
        Some(reader.header().session),
        reader.limits(),
        &mut Diagnostics::new(0),
    )?;
    remove_spool(&spool, path)
}

/// True where the file is what sealing makes.
fn is_sealed(reader: &Reader) -> bool {
    let mut diagnostics = reader.diagnostics().iter();
    reader.summary().sealed
        && (reader.header().path.is_empty() || reader.lacks_spool())
        && diagnostics.all(|diagnostic| diagnostic.while_sealing || stays(reader, diagnostic))
}

/// The flaws that a reader of the sealed trace finds again.
const STAYS: [DiagnosticKind; 2] = [DiagnosticKind::SpoolMissing, DiagnosticKind::SpoolDamaged];

fn stays(reader: &Reader, diagnostic: &Diagnostic) -> bool {
    reader.lacks_spool() && STAYS.contains(&diagnostic.kind)
}

/// Flaws of the reader, and none of the trace: another reader, or another try, finds what this one leaves out.
const OF_READER: [DiagnosticKind; 4] = [
    DiagnosticKind::LimitReached,
    DiagnosticKind::ReadFailed,
    DiagnosticKind::UnknownBlock,
    DiagnosticKind::ChunkCodec,
];

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
const MAX_NAME: usize = 255;
/// Between the trace's name and the process in the name of a file that is to become a sealed trace.
const SEALING: &str = ".sealing.";

/// Where [`seal`] in this process writes what is to become the trace at `path`. No trace and no other process
/// of any host has that name. It is in the trace's folder, since a file moves at once only within one file system.
pub fn temporary(path: &Path) -> PathBuf {
    // Of a symbolic link, the file behind it is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = temporary_prefix(&path);
    name.push(own_suffix());
    path.with_file_name(name)
}

/// The begin of the names of all such files.
fn temporary_prefix(path: &Path) -> OsString {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    if name.len() + SEALING.len() + own_suffix().len() > MAX_NAME {
        let mut hash = DefaultHasher::new();
        name.hash(&mut hash);
        name = format!(".{:016x}", hash.finish()).into();
    }
    name.push(SEALING);
    name
}

/// The process's id, then what another process with this id differs in: its host, its container, its start.
fn own_suffix() -> String {
    let pid = process::id();
    let mut hash = DefaultHasher::new();
    (boot(), pid_namespace(), started(pid)).hash(&mut hash);
    format!("{pid:010}.{:016x}", hash.finish())
}

/// Removes what programs left that were killed while they sealed the trace at `path`, which is sealed now.
fn remove_interrupted(path: &Path) {
    let prefix = temporary_prefix(path);
    let folder = path.parent().unwrap_or(Path::new("/"));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let suffix = name.as_bytes().strip_prefix(prefix.as_bytes());
        // Older versions wrote the process id alone.
        let pid = suffix.and_then(|suffix| suffix.split(|byte| *byte == b'.').next());
        let pid = pid.and_then(|pid| str::from_utf8(pid).ok()?.parse().ok());
        if pid.is_some_and(|pid| is_interrupted(&entry.path(), pid)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// True where the program that wrote `file` is gone: it had this process id, and the lock on the file.
fn is_interrupted(file: &Path, pid: u32) -> bool {
    let Ok(opened) =
        OpenOptions::new().read(true).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK).open(file)
    else {
        return false;
    };
    let reach = Reach::of(file);
    let nobody_elsewhere = match lock::state(&opened, Purpose::Sealing) {
        LockState::Held => false,
        LockState::Free => reach != Reach::Unknown,
        LockState::Unsupported => reach == Reach::Kernel,
    };
    nobody_elsewhere && started(pid).is_none()
}

/// Writes the sealed file; its lock is held as long as the file is not closed.
fn write(
    reader: &Reader,
    news: Map<String, Value>,
    path: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Sealed, File), SealError> {
    // Anew, and for the user alone until it is as the trace is: never what somebody else has put there.
    let create = || {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).open(path)
    };
    let file = create().or_else(|_| fs::remove_file(path).and_then(|()| create()))?;
    let _ = lock::take(&file, Purpose::Sealing);
    let trace = reader.file_metadata()?;
    // Only root can give a file away, and only root seals the traces of others.
    let _ = fchown(&file, Some(trace.uid()), Some(trace.gid()));
    file.set_permissions(trace.permissions())?;
    let mut output = Output::new(BufWriter::with_capacity(1 << 20, file));
    let sealed = copy(reader, news, &mut output, progress)?;
    let file = output.out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok((sealed, file))
}

/// Writes a sealed file of all that `reader` can read, `news` laid over its metadata.
fn copy(
    reader: &Reader,
    news: Map<String, Value>,
    output: &mut Output<impl Write>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Sealed, SealError> {
    let session = reader.header().session;
    output.header(reader)?;
    let mut object = reader.metadata_object();
    object.extend(news);
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

/// Adds the events of a chunk, which are `words`, to the sums. True where they are samples.
fn count(words: &[u64], sealed: &mut Sealed) -> bool {
    // Only wide events are decoded, which predict nothing.
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

/// The findings of earlier sealing, and those of `diagnostics` that are new. What sealing leaves out can be seen nowhere
/// else afterwards.
fn all_found<'d>(before: &[Found], diagnostics: impl Iterator<Item = &'d Diagnostic>) -> Vec<Found> {
    let mut all = before.to_vec();
    let known: BTreeSet<&Found> = before.iter().collect();
    let is_grave = |diagnostic: &&Diagnostic| diagnostic.severity > Severity::Note;
    let grave = diagnostics.filter(is_grave);
    let now = grave.filter(|diagnostic| !diagnostic.while_sealing);
    all.extend(now.map(Diagnostic::found).filter(|found| !known.contains(found)));
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

    /// Writes the whole metadata in one block, and an empty one for each further clock that the reader needs. Each block
    /// takes 200 bytes, its entry of the index included.
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

    /// Writes a metadata block, packed where that saves something.
    fn metadata(&mut self, session: u64, clock: ClockPair, object: &Value) -> io::Result<()> {
        let (header, json) = metadata_header(session, clock, object);
        match pack_text(&json, METADATA_LEVEL) {
            Some(packed) => self.block(&header.with_payload(Codec::ZSTD, &packed).encode(), &packed),
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
            SealError::Running => f.write_str("the process that writes the trace is still running"),
            SealError::Unknown(doubt) => {
                write!(
                    f,
                    "whether the process that writes the trace is still running cannot be determined here: {doubt}"
                )
            }
            SealError::Busy => f.write_str("another program is finishing the trace"),
            SealError::Changed => f.write_str("another program changed the trace in the meantime"),
            SealError::Unreadable(flaw) => write!(
                f,
                "the trace was left unchanged, because events that this version cannot read would be lost: {flaw}"
            ),
            SealError::Io(error) => write!(f, "the sealed trace cannot be written: {error}"),
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
