//! Opens files named by a user or a trace, but only regular files.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file, also through a symbolic link. Opening a pipe would wait for its writer, opening a device may
/// have an effect, and either may be endless.
///
/// # Errors
/// There is no such file, it is not a regular file ([`ErrorKind::NotSeekable`], with a message that names its
/// kind), or it cannot be read.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Checked before opening, because opening a device may have an effect.
    check(&fs::metadata(path)?)?;
    // The file may have been replaced with a pipe since; `O_NONBLOCK` avoids waiting for a writer.
    let file =
        File::options().read(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

fn check(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let what = format!("the path is {}, not a file", name_of(found.file_type()));
    Err(io::Error::new(ErrorKind::NotSeekable, what))
}

fn name_of(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [file, pipe, link] = ["file", "pipe", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "x").unwrap();
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert!(open_regular(&file).is_ok());
        for (path, what) in [(&*pipe, "a pipe"), (&*link, "a device"), (folder.path(), "a directory")] {
            let error = open_regular(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotSeekable);
            assert_eq!(error.to_string(), format!("the path is {what}, not a file"));
        }
    }
}
