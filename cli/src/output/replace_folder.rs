//! A folder that an export is written into, which appears when it is complete.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use omptrace_trace_format::Reader;
use omptrace_viewer_export::FolderParts;
use tempfile::TempDir;

use crate::output::failure::{Failure, Result};
use crate::output::output_path::refuse_to_replace;
use crate::output::temp_files;

/// Where the archive goes: written under another name, and given its own when it is complete.
pub(crate) struct Folder {
    unfinished: TempDir,
    path: PathBuf,
    parts: FolderParts,
    /// The folder is there already, and stays: a shell may be in it, or a file system be mounted there.
    is_there: bool,
    /// What is written joins what is there.
    is_part: bool,
}

impl Folder {
    /// Prepares to write `path`. An archive that is there is replaced when the new one is complete.
    ///
    /// # Errors
    /// Something else is there, an input is in it, or it cannot be written.
    pub(crate) fn open(path: &Path, parts: FolderParts, is_part: bool, inputs: &[Reader]) -> Result<Folder> {
        let failed = |error: io::Error| {
            Failure::because(format!("cannot write {}", path.display()), &error)
                .hint("choose another directory with -o")
        };
        if path == Path::new("-") {
            return Err(Failure::new("an archive is a directory and cannot be written to stdout")
                .hint("give a directory with -o"));
        }
        let is_there = match fs::symlink_metadata(path) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed(error)),
        };
        // Of a symbolic link, the folder behind it is written.
        let path = if is_there { fs::canonicalize(path).map_err(failed)? } else { path.to_owned() };
        if is_there {
            refuse_inputs_in(&path, inputs).map_err(failed)?;
            // Others may be writing their parts.
            if !is_part {
                existing(&path, &parts, None).map_err(failed)?;
            }
        }
        // Who reads a data set never sees files that are not complete.
        let place = match path.parent() {
            _ if is_there && !is_part => &path,
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // Readable as the user's other folders are: the umask is applied.
        let mut builder = tempfile::Builder::new();
        builder.prefix(".omptrace-").permissions(Permissions::from_mode(0o777));
        let unfinished = temp_files::make(|| builder.tempdir_in(place)).map_err(failed)?;
        Ok(Folder { unfinished, path, parts, is_there, is_part })
    }

    /// The path to write into.
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
        if self.is_part {
            fs::create_dir_all(&self.path)?;
            refuse_other_division(unfinished, &self.path)?;
            temp_files::finish(|| join(unfinished, &self.path))?;
        } else if self.is_there {
            temp_files::finish(|| {
                remove(existing(&self.path, &self.parts, Some(unfinished))?)?;
                move_archive(&self.parts, unfinished, &self.path)
            })?;
        } else {
            fs::rename(unfinished, &self.path)?;
            // Under its name it stays.
            let _ = self.unfinished.keep();
        }
        Ok(bytes)
    }
}

/// Moves all files to their names, where they take the place of older ones. The anchors of parts are the same.
fn join(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&to)?;
            join(&entry.path(), &to)?;
        } else {
            refuse_to_replace(&to, &[]).map_err(io::Error::other)?;
            fs::rename(entry.path(), to)?;
        }
    }
    Ok(())
}

/// The number of parts that a file of a table belongs to: `part-1-of-4.parquet`.
fn division(name: &OsStr) -> Option<&str> {
    let name = Path::new(name);
    let is_table = name.extension() == Some(OsStr::new("parquet"));
    let stem = name.file_stem()?.to_str().filter(|_| is_table)?;
    Some(stem.split_once("-of-").map_or("1", |(_, parts)| parts))
}

/// # Errors
/// A table is there whose rows were divided otherwise: some would be there twice.
fn refuse_other_division(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            let to = to.join(entry.file_name());
            if to.is_dir() {
                refuse_other_division(&entry.path(), &to)?;
            }
            continue;
        }
        let name = entry.file_name();
        let Some(parts) = division(&name) else {
            continue;
        };
        for there in fs::read_dir(to)? {
            let there = there?.file_name();
            if let Some(others) = division(&there).filter(|others| *others != parts) {
                let what = format!(
                    "{} already contains rows of the same process, but divided into {others} parts instead of {parts}: use the same N of --part I/N for all parts",
                    to.display()
                );
                return Err(io::Error::other(what));
            }
        }
    }
    Ok(())
}

fn refuse_inputs_in(folder: &Path, inputs: &[Reader]) -> io::Result<()> {
    for input in inputs.iter().map(Reader::path) {
        if fs::canonicalize(input)?.starts_with(folder) {
            let what = format!("the directory contains the input {}", input.display());
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}

/// The files of an archive to remove before another takes its place. The anchor is first, so that what is left is no archive
/// at any time, and each folder comes behind its files. Nothing in an empty folder. `ours` is passed over.
///
/// # Errors
/// The folder holds something that is not part of an archive. The user may want to keep it.
fn existing(folder: &Path, known: &FolderParts, ours: Option<&Path>) -> io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if ours.is_some_and(|ours| ours.file_name() == Some(&entry.file_name())) {
            continue;
        }
        let mut folders = known.folders.iter();
        let of_folder = folders.find(|(name, _)| is_called(&entry.file_name(), name));
        if let Some((_, extensions)) = of_folder
            && entry.file_type()?.is_dir()
        {
            files_in(&entry.path(), extensions, &mut parts)?;
        } else {
            let is_part = |name: &OsStr| name == known.anchor || known.files.iter().any(|file| name == *file);
            parts.push(file_named(&entry, is_part)?);
        }
    }
    let anchor = folder.join(known.anchor);
    match parts.iter().position(|part| *part == anchor) {
        Some(place) => parts[..=place].rotate_right(1),
        None if parts.is_empty() => {}
        None => {
            let what = format!(
                "the directory is neither empty nor an archive (it does not contain {})",
                known.anchor
            );
            return Err(io::Error::other(what));
        }
    }
    Ok(parts)
}

/// Whether a folder has this name. One that ends with `=` is that of all folders that begin so.
fn is_called(folder: &OsStr, name: &str) -> bool {
    match name.ends_with('=') {
        true => folder.to_str().is_some_and(|folder| folder.starts_with(name)),
        false => folder == name,
    }
}

/// The files in a folder of an archive and in its partitions, and then the folder.
fn files_in(folder: &Path, extensions: &[&str], parts: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_partition = name.to_str().is_some_and(|name| name.contains('='));
        if is_partition && entry.file_type()?.is_dir() {
            files_in(&entry.path(), extensions, parts)?;
            continue;
        }
        let has_extension = |name: &OsStr| extensions.iter().any(|of| extension(name) == Some(of));
        parts.push(file_named(&entry, has_extension)?);
    }
    parts.push(folder.to_owned());
    Ok(())
}

/// The path of a plain file whose name passes. A link is none: it is not ours.
fn file_named(entry: &DirEntry, passes: impl Fn(&OsStr) -> bool) -> io::Result<PathBuf> {
    if entry.file_type()?.is_file() && passes(&entry.file_name()) {
        refuse_to_replace(&entry.path(), &[]).map_err(io::Error::other)?;
        return Ok(entry.path());
    }
    let path = entry.path();
    let what = format!("the directory contains {}, which is not part of an archive", path.display());
    Err(io::Error::other(what))
}

fn extension(name: &OsStr) -> Option<&str> {
    Path::new(name).extension()?.to_str()
}

/// File by file: other files that come meanwhile stay.
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
fn move_archive(parts: &FolderParts, from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        if name != parts.anchor {
            fs::rename(from.join(&name), to.join(&name))?;
        }
    }
    fs::rename(from.join(parts.anchor), to.join(parts.anchor))
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
