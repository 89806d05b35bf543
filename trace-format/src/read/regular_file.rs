//! Opening what a user or a trace names: regular files only.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file, or the one behind a symbolic link. To open a pipe would wait for its writer, a device may act when it
/// is opened, and either may have no end.
///
/// # Errors
/// There is no such file, it is not a regular one ([`ErrorKind::NotSeekable`], with words that say what it is), or it
/// cannot be read.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Asked first, for the open alone may have an effect.
    check(&fs::metadata(path)?)?;
    // Somebody may have put a pipe there meanwhile: nobody waits for its writer.
    let file =
        File::options().read(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

fn check(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let what = format!("it is {}, not a file", name_of(found.file_type()));
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
            assert_eq!(error.to_string(), format!("it is {what}, not a file"));
        }
    }
}
