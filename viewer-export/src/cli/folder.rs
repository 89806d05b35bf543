//! A folder that an export is written into, which appears when it is complete.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::cli::failure::{Failure, Result};

/// The file without which a folder is no archive.
const ANCHOR: &str = "traces.otf2";
/// What else an archive of ours consists of.
const PARTS: [&str; 3] = ["traces", "traces.def", "traces.marker"];

/// Where the archive goes: written under another name, and given its own when it is complete.
pub(crate) struct Folder {
    unfinished: TempDir,
    path: PathBuf,
}

impl Folder {
    /// Prepares to write `path`. An archive that is there is replaced when the new one is complete.
    ///
    /// # Errors
    /// Something else is there, or it cannot be written.
    pub(crate) fn open(path: &Path) -> Result<Folder> {
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
        match fs::read_dir(path).and_then(is_replaceable) {
            Ok(true) => {}
            Ok(false) => {
                let what = format!("{} is no archive, and not empty", path.display());
                return Err(Failure::new(what).hint("name another folder with -o"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        // Of a symbolic link, the folder behind it is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // Readable as the user's other folders are: the umask is applied.
        let unfinished = tempfile::Builder::new()
            .prefix(".omptrace-")
            .permissions(Permissions::from_mode(0o777))
            .tempdir_in(parent)
            .map_err(failed)?;
        Ok(Folder { unfinished, path })
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
        if self.path.exists() {
            remove_archive(&self.path)?;
        }
        let bytes = size(self.unfinished.path())?;
        fs::rename(self.unfinished.path(), &self.path)?;
        // Under its name it stays.
        let _ = self.unfinished.keep();
        Ok(bytes)
    }
}

/// Whether a folder holds nothing but an archive as we write them.
fn is_replaceable(entries: fs::ReadDir) -> io::Result<bool> {
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name());
    }
    let is_ours =
        |name: &std::ffi::OsString| name == ANCHOR || PARTS.iter().any(|part| name == part);
    Ok(names.iter().all(is_ours))
}

/// The anchor goes first: what is left is no archive at any time.
fn remove_archive(folder: &Path) -> io::Result<()> {
    for name in [ANCHOR].iter().chain(&PARTS) {
        let path = folder.join(name);
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(folder)
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
