//! Where an output goes: to stdout, into a pipe, or to a file that appears when it is complete.
//!
//! Every command that writes what a user named asks here. A file with events is never replaced, since nobody can make it
//! again, and no input is. Whatever fails, what was there before is there still.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use omptrace_trace_format::kind_of;
use tempfile::NamedTempFile;

use crate::output::failure::{Failure, Result};
use crate::output::{streams, temp_files};

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
    /// Prepares to write `path`, and to read `inputs` meanwhile.
    ///
    /// # Errors
    /// It is a folder, has events or is an input, or cannot be written.
    pub(crate) fn open(path: &Path, inputs: &[&Path]) -> Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::Stdout);
        }
        let failed = |error: io::Error| {
            let failure = Failure::because(format!("cannot write {}", path.display()), &error);
            match folder_of(path) {
                folder if error.kind() == io::ErrorKind::NotFound && !folder.exists() => {
                    failure.hint(format!("there is no directory {}", folder.display()))
                }
                _ => failure.hint("choose another file"),
            }
        };
        let existing = match fs::metadata(path) {
            Ok(existing) => Some(existing),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if let Some(existing) = &existing {
            if existing.is_dir() {
                return Err(Failure::new(format!("{} is a directory", path.display()))
                    .hint("give the path of a file"));
            }
            refuse_to_replace(path, inputs).map_err(|what| Failure::new(what).hint("choose another file"))?;
            if is_stdout(existing) {
                return Ok(Target::Stdout);
            }
            if !existing.is_file() || is_descriptor(path) {
                return Ok(Target::Special(path.to_owned()));
            }
        }
        let path = behind_links(path);
        // Readable as the user's other files are: the umask is applied.
        let mut builder = tempfile::Builder::new();
        builder.prefix(".omptrace-").permissions(Permissions::from_mode(0o666));
        let unfinished = temp_files::make(|| builder.tempfile_in(folder_of(&path))).map_err(failed)?;
        if let Some(existing) = existing {
            // As the one was that it takes the place of.
            let mode = Permissions::from_mode(existing.mode() & 0o777);
            unfinished.as_file().set_permissions(mode).map_err(failed)?;
        }
        Ok(Target::File { unfinished, path })
    }

    /// The writer for the output.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn writer(&self) -> io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Target::Stdout => streams::data(),
            // A file that is open already goes on where it ends.
            Target::Special(path) => Box::new(match path.is_file() {
                true => File::options().append(true).open(path)?,
                false => File::options().write(true).open(path)?,
            }),
            Target::File { unfinished, .. } => Box::new(unfinished.as_file().try_clone()?),
        })
    }

    /// Gives the file its name; returns its size.
    ///
    /// # Errors
    /// It cannot have that name, as where a trace has got it meanwhile.
    pub(crate) fn finish(self) -> io::Result<Option<u64>> {
        match self {
            Target::Stdout | Target::Special(_) => Ok(None),
            Target::File { unfinished, path } => {
                refuse_to_replace(&path, &[]).map_err(io::Error::other)?;
                // A pipe or a device has got the name meanwhile.
                if fs::metadata(&path).is_ok_and(|there| !there.is_file()) {
                    let what = format!("{} is no longer a file", path.display());
                    return Err(io::Error::other(what));
                }
                let file = unfinished.persist(path).map_err(|error| error.error)?;
                Ok(Some(file.metadata()?.len()))
            }
        }
    }
}

/// Whether the file has events, and so is not to be lost. One that is not there has none.
pub(crate) fn has_events(path: &Path) -> bool {
    matches!(kind_of(path), Ok(Some(_)))
}

/// Refuses a file that has events, that is an input, or that may be either. A pipe or a device is not looked at: what it has
/// would be gone, and it is not replaced.
///
/// # Errors
/// The words that say so.
pub(crate) fn refuse_to_replace(path: &Path, inputs: &[&Path]) -> std::result::Result<(), String> {
    let Ok(there) = fs::metadata(path) else {
        return Ok(());
    };
    let shown = path.display();
    let identity = |file: &fs::Metadata| (file.dev(), file.ino());
    let is_it = |input: &&Path| fs::metadata(input).is_ok_and(|input| identity(&input) == identity(&there));
    if !there.is_file() {
        return Ok(());
    }
    match kind_of(path) {
        Ok(Some(kind)) => Err(format!("{shown} is {kind} and will not be overwritten")),
        Ok(None) if inputs.iter().any(is_it) => {
            Err(format!("{shown} is an input and will not be overwritten"))
        }
        Ok(None) => Ok(()),
        Err(error) => {
            Err(format!("{shown} cannot be read ({error}) and may be a trace, so it will not be overwritten"))
        }
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The file behind symbolic links, which need not be there.
fn behind_links(path: &Path) -> PathBuf {
    /// As many as Linux follows.
    const MAX_LINKS: usize = 40;

    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => break,
        }
    }
    path
}

/// Whether the file is what stdout goes to: it is written through that, behind what is there.
fn is_stdout(file: &fs::Metadata) -> bool {
    let stdout = streams::stdout().as_fd().try_clone_to_owned();
    let stdout = stdout.and_then(|stdout| File::from(stdout).metadata());
    stdout.is_ok_and(|stdout| (stdout.dev(), stdout.ino()) == (file.dev(), file.ino()))
}

/// Whether the name is that of a descriptor, of which others may write to the file as well.
fn is_descriptor(path: &Path) -> bool {
    let names = ["/dev/stderr", "/dev/fd", "/proc/self/fd"];
    names.iter().any(|name| path.starts_with(name))
}

/// The failure where the output cannot be written.
pub(crate) fn cannot_write(output: &Path) -> impl Fn(io::Error) -> Failure {
    let doing = format!("cannot write {}", output.display());
    move |error| Failure::because(&doing, &error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        let failed = |failure: Failure| io::Error::other(failure.to_string());
        let target = Target::open(path, &[]).map_err(failed)?;
        target.writer()?.write_all(text.as_bytes())?;
        target.finish().map(|_| ())
    }

    #[test]
    fn a_file_keeps_its_mode_and_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, to_nothing, new] =
            ["file", "link", "to-nothing", "new"].map(|name| folder.path().join(name));
        fs::write(&file, "before").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        symlink("new", &to_nothing).unwrap();
        write(&link, "after").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        write(&to_nothing, "made").unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), "made");
        assert!([link, to_nothing].iter().all(|link| link.is_symlink()));
    }

    #[test]
    fn a_pipe_that_has_got_the_name_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let target = match Target::open(&path, &[]) {
            Ok(target) => target,
            Err(failure) => panic!("{failure}"),
        };
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = target.finish().unwrap_err().to_string();
        assert!(error.ends_with("is no longer a file"), "{error}");
        assert!(!fs::metadata(&path).unwrap().is_file());
    }

    #[test]
    fn what_holds_events_or_is_read_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for bytes in
            ["OMPTRACE", "OMPTSPOL", "damaged.OMPTBLCK", "damaged.OMPTCHNK", "the end of an OMPTINDX"]
        {
            fs::write(&file, bytes).unwrap();
            let error = write(&file, "lost").unwrap_err().to_string();
            assert!(error.contains("will not be overwritten"), "{error}");
            assert_eq!(fs::read_to_string(&file).unwrap(), bytes);
        }
        fs::write(&file, "{}").unwrap();
        let link = folder.path().join("link");
        fs::hard_link(&file, &link).unwrap();
        assert!(Target::open(&link, &[&file]).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_trace_that_came_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let target = Target::open(&file, &[]).unwrap();
        fs::write(&file, "OMPTRACE").unwrap();
        assert!(target.finish().is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "OMPTRACE");
    }

    #[test]
    fn errors_name_the_file_that_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(&folder.path().join("none/x.html"), "").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("none/x.html") && !error.contains(".omptrace-"), "{error}");
    }
}
