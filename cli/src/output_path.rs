//! Where an export goes: to stdout, into a pipe, or to a file that appears when it is complete.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use omptrace_trace_format::Reader;
use omptrace_trace_format::block::FILE_MAGIC;
use tempfile::NamedTempFile;

use crate::failure::{Failure, Result};
use crate::temp_files;

/// Where the output goes.
pub(crate) enum Target {
    Stdout,
    /// A pipe or a device: written as it comes.
    Special(PathBuf),
    /// A file: written under another name, and given its own when it is complete.
    File {
        unfinished: NamedTempFile,
        path: PathBuf,
    },
}

impl Target {
    /// Prepares to write `path`.
    ///
    /// # Errors
    /// It is a folder or a trace, or cannot be written.
    pub(crate) fn open(path: &Path, inputs: &[Reader]) -> Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::Stdout);
        }
        let failed = |error: io::Error| {
            Failure::because(format!("cannot write {}", path.display()), &error)
                .hint("name another file with -o")
        };
        match fs::metadata(path) {
            Ok(existing) if existing.is_dir() => {
                return Err(Failure::new(format!("{} is a folder", path.display()))
                    .hint("name a file with -o"));
            }
            Ok(existing) if !existing.is_file() => return Ok(Target::Special(path.to_owned())),
            Ok(_) if is_trace(path) || is_input(path, inputs) => {
                return Err(Failure::new(format!(
                    "{} is a trace, and will not be overwritten",
                    path.display()
                ))
                .hint("name another file with -o"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        // Of a symbolic link, the file behind it is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        // Readable as the user's other files are: the umask is applied.
        let mut builder = tempfile::Builder::new();
        builder
            .prefix(".omptrace-")
            .permissions(Permissions::from_mode(0o666));
        let unfinished = temp_files::make(|| builder.tempfile_in(folder)).map_err(failed)?;
        Ok(Target::File { unfinished, path })
    }

    /// The writer for the output.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn writer(&self) -> io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Target::Stdout => Box::new(io::stdout()),
            Target::Special(path) => Box::new(File::options().write(true).open(path)?),
            Target::File { unfinished, .. } => Box::new(unfinished.as_file().try_clone()?),
        })
    }

    /// Gives the file its name; returns its size.
    ///
    /// # Errors
    /// It cannot have that name.
    pub(crate) fn finish(self) -> io::Result<Option<u64>> {
        match self {
            Target::Stdout | Target::Special(_) => Ok(None),
            Target::File { unfinished, path } => {
                let file = unfinished.persist(path).map_err(|error| error.error)?;
                Ok(Some(file.metadata()?.len()))
            }
        }
    }
}

/// Whether the file is a trace of ours.
pub(crate) fn is_trace(path: &Path) -> bool {
    let mut start = [0; FILE_MAGIC.len()];
    File::open(path)
        .is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && start == FILE_MAGIC)
}

fn is_input(path: &Path, inputs: &[Reader]) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    inputs
        .iter()
        .any(|input| identity(input.path()) == identity(path))
}
