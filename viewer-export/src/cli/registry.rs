//! How `record` learns of every trace that a run wrote: each session of the tracer leaves a note in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::cli::failure::{Failure, Result};
use crate::cli::unfinished;

/// The folder of notes, which goes away with this value.
#[derive(Debug)]
pub(crate) struct Registry {
    folder: TempDir,
}

/// A session of the tracer. Its note is a symbolic link named `PID.N` to the trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Session {
    /// The process that it traced.
    pub(crate) pid: u32,
    /// Counts sessions with that process id: a process that executes another program has one for each.
    pub(crate) number: u32,
    /// Its trace.
    pub(crate) trace: PathBuf,
}

impl Registry {
    /// Makes the folder, which only this user can read.
    ///
    /// # Errors
    /// The place for temporary files does not take one.
    pub(crate) fn new() -> Result<Registry> {
        let folder = unfinished::make(|| TempDir::with_prefix("omptrace-")).map_err(|error| {
            Failure::because("cannot make a temporary folder", &error)
                .hint("name a folder that can be written to in TMPDIR")
        })?;
        Ok(Registry { folder })
    }

    /// The value of OMPTRACE_REGISTRY.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The sessions noted so far, in order of process id and number. What is no note is passed over.
    pub(crate) fn sessions(&self) -> Vec<Session> {
        let mut sessions: Vec<Session> = fs::read_dir(self.folder())
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|note| {
                let name = note.file_name();
                let (pid, number) = name.to_str()?.split_once('.')?;
                Some(Session {
                    pid: pid.parse().ok()?,
                    number: number.parse().ok()?,
                    trace: fs::read_link(note.path()).ok()?,
                })
            })
            .filter(|session| session.trace.is_file())
            .collect();
        sessions.sort();
        sessions
    }
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
        fs::write(folder.join("14.1"), "").unwrap();
        let ids: Vec<_> = registry
            .sessions()
            .iter()
            .map(|session| (session.pid, session.number))
            .collect();
        assert_eq!(ids, [(9, 1), (9, 2), (12, 1)]);
        drop(registry);
        assert!(!folder.exists());
    }
}
