//! Sealing a trace, as `omptrace record` and `recover` do: makes one packed file, complete in itself, with an index at its end.
//!
//! The sealed file is written next to the trace and renamed to it once it is on disk. Only then the spool is removed,
//! so if sealing is interrupted, the trace is unchanged. A spool that may belong to another trace is kept.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{process, thread};

use serde_json::{Map, Value};

use crate::live::liveness::{boot, pid_namespace, started};
use crate::live::spool::{Spool, default_path};
use crate::read::diagnostic::Diagnostics;
use crate::read::reader::{Ending, OpenError, Reader};
use crate::write::copy::{Change, Output, STAYS, SealError, Sealed, copy, stays};
use crate::write::lock;
use crate::write::lock::{Purpose, Reach, State as LockState};

/// What [`seal`] does with a trace whose process may still run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InDoubt {
    /// It does not seal the trace.
    #[default]
    Refuse,
    /// It seals the trace, because the caller knows that the process has ended.
    Seal,
}

/// How long to wait for another program that is sealing the same trace.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(20);

/// Seals the trace at `path`: merges the spool into the file and removes it, packs raw chunks, and merges the keys of
/// the JSON object `additions` into the metadata. Calls `progress` with the number of finished chunks and of all
/// chunks.
///
/// Sealing a sealed trace changes nothing unless `additions` contains something new. Damaged chunks are left out;
/// [`Reader::diagnostics`] of the sealed trace reports them.
///
/// # Errors
/// See [`SealError`].
pub fn seal(
    path: &Path,
    additions: Value,
    in_doubt: InDoubt,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Sealed, SealError> {
    // For a symbolic link, replace its target.
    let path = fs::canonicalize(path).map_err(OpenError::Io)?;
    let locked = lock_trace(&path)?;
    let reader = Reader::open(&path)?;
    if let Some(locked) = &locked
        && id(&locked.metadata()?) != id(&reader.file_metadata()?)
    {
        return Err(SealError::Changed);
    }
    check_ended(&reader, in_doubt)?;
    let news = news(&reader, additions);
    let sealed = if is_sealed(&reader) && news.is_empty() {
        let object = reader.metadata_object();
        let counted = copy(&reader, object, &mut Output::new(io::sink()), None, progress)?;
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

/// Fails if the process that writes the trace still runs.
fn check_ended(reader: &Reader, in_doubt: InDoubt) -> Result<(), SealError> {
    match reader.ending() {
        Ending::Running => Err(SealError::Running),
        Ending::Unknown(doubt) if in_doubt == InDoubt::Refuse => Err(SealError::Unknown(doubt)),
        _ if reader.is_finishing() => Err(SealError::Running),
        _ => Ok(()),
    }
}

/// Writes a sealed copy of the trace of `reader` to `out`, with the given `metadata`, and with `change` applied to each
/// event that has the wide encoding. Summaries and checkpoints are not copied. Calls `progress` with the number of
/// finished chunks and of all chunks.
///
/// # Errors
/// See [`SealError`].
pub fn copy_changed(
    reader: &Reader,
    metadata: Map<String, Value>,
    change: &mut Change<'_>,
    out: impl Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Sealed, SealError> {
    check_ended(reader, InDoubt::Refuse)?;
    let mut output = Output::new(BufWriter::with_capacity(1 << 20, out));
    let sealed = copy(reader, metadata, &mut output, Some(change), progress)?;
    output.out.flush()?;
    Ok(sealed)
}

/// Replaces the trace with a sealed file, and removes the spool.
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
    // The new name must be on disk before the spool is removed, because they may be on two file systems. A file system
    // that cannot sync directories keeps their order.
    if let Some(folder) = path.parent() {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    let spool_left = match reader.spool() {
        Some(spool) => remove_spool(spool, path),
        None => remove_leftover_spool(reader, path),
    };
    Ok(Sealed { spool_left, ..sealed })
}

/// Takes the sealing lock of the trace; `None` if such locks are unavailable.
pub(crate) fn lock_trace(path: &Path) -> Result<Option<File>, SealError> {
    let since = Instant::now();
    // A pipe or a device is not a trace, which opening it will report.
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    loop {
        let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else {
            return Ok(None);
        };
        match lock::take(&file, Purpose::Sealing) {
            Err(_) => return Ok(None),
            // The previous holder of the lock has replaced the file: lock the new one.
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

/// Whether the file at `path` is the one that `reader` reads, with unchanged length.
pub(crate) fn is_unchanged(reader: &Reader, path: &Path) -> io::Result<bool> {
    let (now, then) = (fs::metadata(path)?, reader.file_metadata()?);
    Ok(id(&now) == id(&then) && now.len() == reader.summary().file_bytes)
}

/// Removes the spool if it belongs to this trace only, else returns its path.
fn remove_spool(spool: &Spool, trace: &Path) -> Option<PathBuf> {
    let is_removed = spool.belongs_to(trace)
        && match fs::remove_file(&spool.path) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
    (!is_removed).then(|| spool.path.clone())
}

/// Removes the spool of a sealed trace that a program left because it was killed before removing it.
fn remove_leftover_spool(reader: &Reader, path: &Path) -> Option<PathBuf> {
    let has_no_spool = reader.summary().sealed && reader.header().path.is_empty();
    let mut found = reader.metadata().found_while_sealing.iter();
    // Older versions sealed a trace without its missing spool irrevocably.
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

/// Whether sealing would leave the file unchanged.
fn is_sealed(reader: &Reader) -> bool {
    let mut diagnostics = reader.diagnostics().iter();
    reader.summary().sealed
        && (reader.header().path.is_empty() || reader.lacks_spool())
        && diagnostics.all(|diagnostic| diagnostic.while_sealing || stays(reader, diagnostic))
}

/// The keys of `additions` that are missing in the metadata or have other values there.
fn news(reader: &Reader, additions: Value) -> Map<String, Value> {
    let Value::Object(mut object) = additions else {
        return Map::new();
    };
    let there = reader.metadata_object();
    object.retain(|key, value| there.get(key) != Some(value));
    object
}

/// Maximum length of a file name in bytes.
const MAX_NAME: usize = 255;
/// Separates the trace's name from the process in the name of a temporary file.
const SEALING: &str = ".sealing.";

/// The path at which [`seal`] in this process writes the new file for the trace at `path`. No trace and no other
/// process on any host uses this name. The file is in the trace's directory, because renaming is atomic only within one
/// file system.
pub fn temporary(path: &Path) -> PathBuf {
    // For a symbolic link, replace its target.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = temporary_prefix(&path);
    name.push(own_suffix());
    path.with_file_name(name)
}

/// The common start of the names of all temporary files for this trace.
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

/// The process's id, then a hash of what distinguishes it from other processes with this id: host, container and start
/// time.
fn own_suffix() -> String {
    let pid = process::id();
    let mut hash = DefaultHasher::new();
    (boot(), pid_namespace(), started(pid)).hash(&mut hash);
    format!("{pid:010}.{:016x}", hash.finish())
}

/// Removes temporary files of programs that were killed while they sealed the trace at `path`, which is sealed now.
fn remove_interrupted(path: &Path) {
    let prefix = temporary_prefix(path);
    let folder = path.parent().unwrap_or(Path::new("/"));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let suffix = name.as_bytes().strip_prefix(prefix.as_bytes());
        // Older versions appended only the process id.
        let pid = suffix.and_then(|suffix| suffix.split(|byte| *byte == b'.').next());
        let pid = pid.and_then(|pid| str::from_utf8(pid).ok()?.parse().ok());
        if pid.is_some_and(|pid| is_interrupted(&entry.path(), pid)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether the program that wrote `file`, given its process id, no longer exists or holds the file's lock.
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

/// Writes the sealed file; its lock is held until the file is closed.
fn write(
    reader: &Reader,
    news: Map<String, Value>,
    path: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Sealed, File), SealError> {
    // Create a new file, never use one that somebody else has put there. It is private to the user until its
    // permissions are set to those of the trace.
    let create = || {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).open(path)
    };
    let file = create().or_else(|_| fs::remove_file(path).and_then(|()| create()))?;
    let _ = lock::take(&file, Purpose::Sealing);
    let trace = reader.file_metadata()?;
    // Only root can change a file's owner, and only root seals other users' traces.
    let _ = fchown(&file, Some(trace.uid()), Some(trace.gid()));
    file.set_permissions(trace.permissions())?;
    let mut output = Output::new(BufWriter::with_capacity(1 << 20, file));
    let mut object = reader.metadata_object();
    object.extend(news);
    let sealed = copy(reader, object, &mut output, None, progress)?;
    let file = output.out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok((sealed, file))
}
