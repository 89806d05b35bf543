//! Files of directories.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files in a directory whose names pass, sorted by name; empty if the directory cannot be read.
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

/// The existing paths with links resolved, each file only once.
pub(crate) fn each_file_once(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    paths
        .into_iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .filter(|path| path.metadata().is_ok_and(|file| seen.insert((file.dev(), file.ino()))))
        .collect()
}
