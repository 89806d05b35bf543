//! Finds traces of a run without a note: the process ran as another user, or saw other directories for temporary files.
//!
//! Each trace contains the environment variables of its process, and among them the run's registry, which is unique to
//! the run. Many runs may write traces to the same directory at the same time, for example one `record` per rank of a
//! job. So files whose names do not match the output's pattern are ignored, and of the others, only the start is read.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use omptrace_trace_format::{OpenError, Reader, first_metadata};

use crate::record::recorded_traces::Session;

/// The matching files in the directory of the output.
#[derive(Debug, Default)]
pub(crate) struct UnregisteredTraces {
    /// The traces of the run.
    pub(crate) sessions: Vec<Session>,
    /// New files of another user that may be traces of the run.
    pub(crate) unreadable: Vec<PathBuf>,
    /// The first place where traces of the run may be that could not be searched, and the reason.
    pub(crate) unseen: Option<(PathBuf, io::Error)>,
}

/// Clocks of file systems may be behind ours by this much, or by more according to [`behind`]. Older files do not
/// belong to the run.
const MAX_SKEW: Duration = Duration::from_secs(60);

/// Maximum number of files that are checked, because the directory may contain many others.
const MAX_FILES: usize = 10_000;

/// Finds traces of the run with this registry, which started at `since`, where the output's `pattern` places them.
pub(crate) fn find(
    pattern: &OsStr,
    registry: &Path,
    noted: &[Session],
    since: SystemTime,
) -> UnregisteredTraces {
    let pattern = Path::new(pattern);
    let noted_paths: BTreeSet<PathBuf> =
        noted.iter().filter_map(|session| fs::canonicalize(&session.trace).ok()).collect();
    let folders = folders(pattern.parent().unwrap_or(Path::new("/")));
    let behind = folders.iter().find_map(|folder| behind(folder));
    let oldest = since.checked_sub(MAX_SKEW.saturating_add(behind.unwrap_or_default()));
    let is_new = |path: &Path| {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        let changed = file.and_then(|file| file.modified().ok());
        changed.is_some_and(|changed| oldest.is_none_or(|oldest| changed >= oldest))
    };
    let name = pattern.file_name().unwrap_or_default();
    let mut unnoted = UnregisteredTraces::default();
    let files = folders.iter().flat_map(|folder| {
        let entries = fs::read_dir(folder).map_err(|error| unnoted.miss(folder, error));
        let entries = entries.into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    });
    let has_name = |path: &Path| path.file_name().is_some_and(|file| may_be(file, name));
    let mut paths: Vec<PathBuf> = files
        .filter(|path| has_name(path))
        .take(MAX_FILES)
        .filter(|path| is_new(path))
        .filter_map(|path| fs::canonicalize(path).ok())
        .filter(|path| !noted_paths.contains(path))
        .collect();
    paths.sort();
    paths.dedup();
    let registry_name = registry.file_name().unwrap_or_default().to_string_lossy();
    for trace in paths {
        // Files with anything unusual are left to the reader.
        let begin = first_metadata(&trace).ok().flatten().and_then(|json| String::from_utf8(json).ok());
        if begin.is_some_and(|json| !json.contains(&*registry_name)) {
            continue;
        }
        match Reader::open(&trace) {
            Ok(reader) if is_of_run(&reader, registry) => {
                let process = reader.metadata().process.as_ref();
                unnoted.sessions.push(Session {
                    pid: process.map_or(0, |process| process.pid),
                    number: u32::try_from(noted.len() + unnoted.sessions.len()).unwrap_or(u32::MAX),
                    trace,
                });
            }
            Err(OpenError::Io(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                unnoted.unreadable.push(trace);
            }
            Err(OpenError::Io(error)) => unnoted.miss(&trace, error),
            _ => {}
        }
    }
    unnoted
}

impl UnregisteredTraces {
    fn miss(&mut self, path: &Path, error: io::Error) {
        // A directory that does not exist contains no traces.
        if error.kind() != io::ErrorKind::NotFound {
            self.unseen.get_or_insert((path.to_owned(), error));
        }
    }
}

/// How far the clock for file times is behind ours: it may be a server's, and ours may be faked (faketime(1)).
fn behind(folder: &Path) -> Option<Duration> {
    let now = SystemTime::now();
    // The file has no name, or loses it immediately.
    let probe = tempfile::tempfile_in(folder).ok()?;
    let theirs = probe.metadata().ok()?.modified().ok()?;
    now.duration_since(theirs).ok()
}

fn is_of_run(reader: &Reader, registry: &Path) -> bool {
    let noted_in = reader.metadata().environment.get("OMPTRACE_REGISTRY");
    noted_in.is_some_and(|folder| *folder == registry.to_string_lossy())
}

/// The directories that match the pattern of a directory.
fn folders(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let is_pattern = matches!(part, Component::Normal(name) if literals(name).len() > 1);
        if is_pattern {
            let inside = found.iter().flat_map(|folder| {
                let entries = fs::read_dir(folder).into_iter().flatten().flatten();
                entries.map(|entry| entry.path())
            });
            found = inside
                .filter(|path| {
                    let name = path.file_name().unwrap_or_default();
                    path.is_dir() && may_be(name, part.as_os_str())
                })
                .take(MAX_FILES)
                .collect();
        } else {
            let name = literals(part.as_os_str()).concat();
            let name = OsString::from_vec(name);
            found.iter_mut().for_each(|folder| folder.push(&name));
        }
    }
    found
}

/// The pieces of a pattern between its placeholders; one more than there are placeholders.
fn literals(pattern: &OsStr) -> Vec<Vec<u8>> {
    let mut pieces = vec![Vec::new()];
    let mut bytes = pattern.as_bytes().iter();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.clone().next()) {
            (b'%', Some(b'%')) => {
                bytes.next();
                pieces.last_mut().expect("one at least").push(b'%');
            }
            (b'%', Some(b'e' | b'h' | b'p' | b'r' | b't')) => {
                bytes.next();
                pieces.push(Vec::new());
            }
            _ => pieces.last_mut().expect("one at least").push(*byte),
        }
    }
    pieces
}

/// Whether the name may result from the pattern: it contains the pieces in order. If a name was taken, the tracer
/// inserts a number before the extension.
fn may_be(name: &OsStr, pattern: &OsStr) -> bool {
    let pieces = literals(pattern);
    let mut rest = name.as_bytes();
    for (index, piece) in pieces.iter().enumerate() {
        let extension = piece.iter().rposition(|byte| *byte == b'.').unwrap_or(0);
        let parts: &[&[u8]] = match index + 1 == pieces.len() {
            true => &[&piece[..extension], &piece[extension..]],
            false => &[piece],
        };
        for part in parts.iter().filter(|part| !part.is_empty()) {
            match rest.windows(part.len()).position(|bytes| bytes == *part) {
                Some(0) => rest = &rest[part.len()..],
                Some(at) if index > 0 || parts.len() > 1 => rest = &rest[at + part.len()..],
                _ => return false,
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use omptrace_trace_format::block::{ClockPair, FileHeader};
    use omptrace_trace_format::blocks::metadata_block;
    use serde_json::json;

    use crate::system::io_counts::reads_of;

    use super::*;

    #[test]
    fn names_may_come_of_patterns() {
        for (name, pattern, may) in [
            ("app.12.omptrace", "%e.%p.omptrace", true),
            ("app.12.2.omptrace", "%e.%p.omptrace", true),
            ("x.omptrace", "x.omptrace", true),
            ("x.2.omptrace", "x.omptrace", true),
            ("y.omptrace", "x.omptrace", false),
            ("x-3.omptrace", "x-%r.omptrace", true),
            ("yx-3.omptrace", "x-%r.omptrace", false),
            ("50%-7", "50%%-%p", true),
            ("notes.txt", "%e.%p.omptrace", false),
        ] {
            assert_eq!(may_be(name.as_ref(), pattern.as_ref()), may, "{name} {pattern}");
        }
    }

    #[test]
    fn traces_of_other_runs_are_not_taken_and_hardly_read() {
        let folder = tempfile::tempdir().unwrap();
        let since = SystemTime::now();
        let write = |name: &str, registry: &str| {
            let metadata = json!({ "environment": { "OMPTRACE_REGISTRY": registry } });
            let mut trace = FileHeader::of_trace(9, 7, &[]).encode();
            trace.extend(metadata_block(9, ClockPair::default(), &metadata));
            fs::write(folder.path().join(name), trace).unwrap();
        };
        write("x.1.omptrace", "/tmp/omptrace-ours");
        write("x.2.omptrace", "/tmp/omptrace-other");
        write("y.1.omptrace", "/tmp/omptrace-ours");
        fs::write(folder.path().join("x.3.omptrace"), "no trace").unwrap();
        let pattern = folder.path().join("x.%p.omptrace");
        let found = find(pattern.as_os_str(), Path::new("/tmp/omptrace-ours"), &[], since);
        for number in 10..60 {
            write(&format!("x.{number}.omptrace"), "/tmp/omptrace-other");
            write(&format!("y.{number}.omptrace"), "/tmp/omptrace-other");
        }
        let reads = reads_of(|| {
            let again = find(pattern.as_os_str(), Path::new("/tmp/omptrace-ours"), &[], since);
            assert_eq!(again.sessions.len(), 1);
        });
        assert!(reads < 200, "{reads} reads for 102 traces of other runs");
        let names = found.sessions.iter().map(|session| session.trace.file_name().unwrap().to_owned());
        assert_eq!(names.collect::<Vec<_>>(), ["x.1.omptrace"]);
    }

    #[test]
    fn folders_with_placeholders_are_those_that_are_there() {
        let top = tempfile::tempdir().unwrap();
        for name in ["run-1", "run-2", "other", "50%"] {
            fs::create_dir(top.path().join(name)).unwrap();
        }
        let mut found = folders(&top.path().join("run-%r"));
        found.sort();
        assert_eq!(found, ["run-1", "run-2"].map(|name| top.path().join(name)));
        assert_eq!(folders(&top.path().join("50%%")), [top.path().join("50%")]);
    }
}
