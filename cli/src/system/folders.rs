//! Files of directories.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files of a directory whose name passes, in order of name. A directory that cannot be read has none.
pub(crate) fn files_in(folder: &Path, passes: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| passes(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

/// The paths that exist, links followed, without those of a file that came before.
pub(crate) fn each_file_once(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    paths
        .into_iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .filter(|path| path.metadata().is_ok_and(|file| seen.insert((file.dev(), file.ino()))))
        .collect()
}
