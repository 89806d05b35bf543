//! Finds all traces that a run wrote: each session of the tracer leaves a note in a directory.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::output::failure::{Failure, Result};
use crate::output::temp_files;

/// The directory of notes, which is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Registry {
    folder: TempDir,
}

/// A session of the tracer. Its note is a symbolic link named `PID.N` to the trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Session {
    /// The traced process.
    pub(crate) pid: u32,
    /// Number of the session among those with this process id: a process that executes another program has one session
    /// for each program.
    pub(crate) number: u32,
    /// Its trace.
    pub(crate) trace: PathBuf,
}

/// All notes, each list sorted. Other files are ignored.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Sessions whose traces exist.
    pub(crate) sessions: Vec<Session>,
    /// Traces that no longer exist.
    pub(crate) moved: Vec<PathBuf>,
    /// Why processes were not traced: the targets of links named `PID.failed`.
    pub(crate) failures: Vec<String>,
    /// Libraries that preloaded libraries do not reach: the targets of links named `PID.deepbind.N` and
    /// `PID.dlmopen.N`.
    pub(crate) apart: BTreeSet<SeparateNamespace>,
    /// The program has removed the directory.
    pub(crate) is_gone: bool,
    /// Why existing notes may be missing here.
    pub(crate) unread: Option<io::Error>,
}

/// A library that a process loaded in such a way that it does not see preloaded libraries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeparateNamespace {
    /// Its path, or its name if the program passed no directory.
    pub(crate) library: PathBuf,
    /// How it was loaded.
    pub(crate) how: &'static str,
}

/// Replaces a session's number in the names of failure notes.
const FAILED: &str = "failed";

/// How a program loads a library that sees its own symbols first.
pub(crate) const DEEPBIND: &str = "dlopen with RTLD_DEEPBIND";

/// Name prefixes of notes about libraries in separate namespaces, followed by a number; and what the program did.
const APART: &[(&str, &str)] = &[("deepbind.", DEEPBIND), ("dlmopen.", "dlmopen")];

impl Registry {
    /// Creates the directory, which only this user can read.
    ///
    /// # Errors
    /// The directory cannot be created among temporary files.
    pub(crate) fn new() -> Result<Registry> {
        let folder = temp_files::make(|| TempDir::with_prefix("omptrace-")).map_err(|error| {
            let place = env::temp_dir();
            let what = format!("cannot create a temporary directory in {}", place.display());
            Failure::because(what, &error).hint("set TMPDIR to a writable directory")
        })?;
        Ok(Registry { folder })
    }

    /// The value of OMPTRACE_REGISTRY.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The notes so far.
    pub(crate) fn notes(&self) -> Notes {
        let mut notes = Notes::default();
        let entries = match fs::read_dir(self.folder()) {
            Ok(entries) => entries,
            Err(error) => {
                notes.is_gone = error.kind() == io::ErrorKind::NotFound;
                notes.unread = Some(error).filter(|_| !notes.is_gone);
                return notes;
            }
        };
        for note in entries {
            let note = match note {
                Ok(note) => note,
                Err(error) => {
                    notes.unread = Some(error);
                    break;
                }
            };
            let name = note.file_name();
            let place = name.to_str().and_then(|name| name.split_once('.'));
            let (Some((pid, number)), Ok(target)) = (place, fs::read_link(note.path())) else {
                continue;
            };
            match (pid.parse(), number.parse()) {
                (Ok(pid), Ok(number)) if target.is_file() => {
                    notes.sessions.push(Session { pid, number, trace: target })
                }
                (Ok(_), Ok::<u32, _>(_)) => notes.moved.push(target),
                (Ok::<u32, _>(_), Err(_)) if number == FAILED => {
                    notes.failures.push(target.to_string_lossy().into_owned());
                }
                (Ok::<u32, _>(_), Err(_)) => {
                    let mut ways = APART.iter();
                    let way = ways.find(|(name, _)| number.starts_with(name));
                    notes.apart.extend(way.map(|(_, how)| SeparateNamespace { library: target, how }));
                }
                _ => {}
            }
        }
        notes.sessions.sort();
        notes.moved.sort();
        notes.failures.sort();
        notes
    }
}

/// The traces of all sessions that are noted in a directory so far.
pub(crate) fn traces_in(registry: &Path) -> Vec<PathBuf> {
    let notes = fs::read_dir(registry).into_iter().flatten().flatten();
    let trace = |note: fs::DirEntry| {
        let name = note.file_name();
        let (pid, number) = name.to_str()?.split_once('.')?;
        let (Ok(_), Ok(_)) = (pid.parse::<u32>(), number.parse::<u32>()) else {
            return None;
        };
        fs::read_link(note.path()).ok().filter(|it| it.is_file())
    };
    let mut traces: Vec<PathBuf> = notes.filter_map(trace).collect();
    traces.sort();
    traces
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn notes_are_sorted_and_others_passed_over() {
        let registry = Registry::new().unwrap();
        let folder = registry.folder().to_owned();
        let trace = folder.join("x.omptrace");
        fs::write(&trace, "").unwrap();
        for name in ["12.1", "9.2", "9.1", "torn", "9.x"] {
            symlink(&trace, folder.join(name)).unwrap();
        }
        symlink("/no/such/trace", folder.join("13.1")).unwrap();
        symlink("the disk is full", folder.join("15.failed")).unwrap();
        for name in ["16.deepbind.1", "17.deepbind.1", "16.dlmopen.2"] {
            symlink("/plugin.so", folder.join(name)).unwrap();
        }
        fs::write(folder.join("14.1"), "").unwrap();
        let notes = registry.notes();
        let ids: Vec<_> = notes.sessions.iter().map(|session| (session.pid, session.number)).collect();
        assert_eq!(ids, [(9, 1), (9, 2), (12, 1)]);
        assert_eq!(traces_in(&folder), [&*trace; 3]);
        assert_eq!(notes.moved, [Path::new("/no/such/trace")]);
        assert_eq!(notes.failures, ["the disk is full"]);
        let apart: Vec<_> = notes.apart.iter().map(|apart| apart.how).collect();
        assert_eq!(apart, ["dlmopen", "dlopen with RTLD_DEEPBIND"]);
        fs::remove_dir_all(&folder).unwrap();
        assert!(registry.notes().is_gone);
    }
}
