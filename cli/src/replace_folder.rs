//! A folder that an export is written into, which appears when it is complete.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use omptrace_trace_format::Reader;
use tempfile::TempDir;

use crate::failure::{Failure, Result};
use crate::temp_files;

/// The file without which a folder is no archive.
const ANCHOR: &str = "traces.otf2";
/// The other files beside it.
const FILES: [&str; 2] = ["traces.def", "traces.marker"];
/// The folder beside it, of nothing but files with these extensions.
const LOCATIONS: &str = "traces";
const OF_LOCATIONS: [&str; 2] = ["def", "evt"];

/// Where the archive goes: written under another name, and given its own when it is complete.
pub(crate) struct Folder {
    unfinished: TempDir,
    path: PathBuf,
    /// The folder is there already, and stays: a shell may stand in it, or a file system be mounted there.
    is_there: bool,
}

impl Folder {
    /// Prepares to write `path`. An archive that is there is replaced when the new one is complete.
    ///
    /// # Errors
    /// Something else is there, an input is in it, or it cannot be written.
    pub(crate) fn open(path: &Path, inputs: &[Reader]) -> Result<Folder> {
        let failed = |error: io::Error| {
            Failure::because(format!("cannot write {}", path.display()), &error)
                .hint("name another folder with -o")
        };
        if path == Path::new("-") {
            return Err(
                Failure::new("an archive is a folder and cannot go to stdout")
                    .hint("name a folder with -o"),
            );
        }
        let is_there = match fs::symlink_metadata(path) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed(error)),
        };
        // Of a symbolic link, the folder behind it is written.
        let path = if is_there {
            fs::canonicalize(path).map_err(failed)?
        } else {
            path.to_owned()
        };
        let place = if is_there {
            refuse_inputs_in(&path, inputs).map_err(failed)?;
            parts(&path, None).map_err(failed)?;
            &path
        } else {
            match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            }
        };
        // Readable as the user's other folders are: the umask is applied.
        let mut builder = tempfile::Builder::new();
        builder
            .prefix(".omptrace-")
            .permissions(Permissions::from_mode(0o777));
        let unfinished = temp_files::make(|| builder.tempdir_in(place)).map_err(failed)?;
        Ok(Folder {
            unfinished,
            path,
            is_there,
        })
    }

    /// What to write into.
    pub(crate) fn path(&self) -> &Path {
        self.unfinished.path()
    }

    /// Gives the folder its name; returns the size of all that is in it.
    ///
    /// # Errors
    /// It cannot have that name.
    pub(crate) fn finish(self) -> io::Result<u64> {
        let unfinished = self.unfinished.path();
        let bytes = size(unfinished)?;
        if self.is_there {
            temp_files::finish(|| {
                remove(parts(&self.path, Some(unfinished))?)?;
                move_archive(unfinished, &self.path)
            })?;
        } else {
            fs::rename(unfinished, &self.path)?;
            // Under its name it stays.
            let _ = self.unfinished.keep();
        }
        Ok(bytes)
    }
}

fn refuse_inputs_in(folder: &Path, inputs: &[Reader]) -> io::Result<()> {
    for input in inputs.iter().map(Reader::path) {
        if fs::canonicalize(input)?.starts_with(folder) {
            let what = format!("the trace {} is in it", input.display());
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}

/// What of an archive to remove before another takes its place: the anchor first, so that what is left is no archive at
/// any time, and each folder behind its files. Nothing in an empty folder. `ours` is passed over.
///
/// # Errors
/// The folder holds something that is no part of an archive. The user may want to keep it.
fn parts(folder: &Path, ours: Option<&Path>) -> io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if ours.is_some_and(|ours| ours.file_name() == Some(&entry.file_name())) {
            continue;
        }
        if entry.file_name() == LOCATIONS && entry.file_type()?.is_dir() {
            for file in fs::read_dir(entry.path())? {
                let has_extension =
                    |name: &OsStr| OF_LOCATIONS.iter().any(|of| extension(name) == Some(of));
                parts.push(file_named(&file?, has_extension)?);
            }
            parts.push(entry.path());
        } else {
            let is_part = |name: &OsStr| name == ANCHOR || FILES.iter().any(|file| name == *file);
            parts.push(file_named(&entry, is_part)?);
        }
    }
    let anchor = folder.join(ANCHOR);
    match parts.iter().position(|part| *part == anchor) {
        Some(place) => parts[..=place].rotate_right(1),
        None if parts.is_empty() => {}
        None => {
            let what = format!("it is no archive, for {ANCHOR} is missing, and not empty");
            return Err(io::Error::other(what));
        }
    }
    Ok(parts)
}

/// The path of a plain file whose name passes. A link is none: it is not ours.
fn file_named(entry: &DirEntry, passes: impl Fn(&OsStr) -> bool) -> io::Result<PathBuf> {
    if entry.file_type()?.is_file() && passes(&entry.file_name()) {
        return Ok(entry.path());
    }
    let path = entry.path();
    let what = format!("{} is no part of an archive", path.display());
    Err(io::Error::other(what))
}

fn extension(name: &OsStr) -> Option<&str> {
    Path::new(name).extension()?.to_str()
}

/// File by file: what comes meanwhile and is none of them stays.
fn remove(parts: Vec<PathBuf>) -> io::Result<()> {
    for part in parts {
        if part.is_dir() {
            fs::remove_dir(part)?;
        } else {
            fs::remove_file(part)?;
        }
    }
    Ok(())
}

/// The anchor comes last: with it, the archive is complete.
fn move_archive(from: &Path, to: &Path) -> io::Result<()> {
    for name in FILES.into_iter().chain([LOCATIONS, ANCHOR]) {
        fs::rename(from.join(name), to.join(name))?;
    }
    Ok(())
}

fn size(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.metadata()? {
            folder if folder.is_dir() => size(&entry.path())?,
            file => file.len(),
        };
    }
    Ok(bytes)
}
