//! The files of a release: where they lie, and what they run on.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::root;
use crate::result::Result;

/// The oldest glibc that the files run on, major and minor: that of RHEL 7 and of `manylinux_2_17`.
pub(super) const GLIBC: (u32, u32) = (2, 17);

/// Where releases are made.
pub(super) fn folder() -> PathBuf {
    root().join("dist")
}

/// The name of a file.
pub(super) fn file_name(path: &Path) -> &Path {
    path.file_name().expect("it has a name").as_ref()
}

/// The files of `dist/`, by name.
pub(super) fn artefacts() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder())
        .map_err(|error| format!("{}: {error}; cargo xtask dist makes it", folder().display()))?;
    let entries = entries.collect::<std::io::Result<Vec<_>>>()?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// The file of `dist/` whose name ends so; none where it was not asked for.
pub(super) fn artefact(end: &str) -> Result<Option<PathBuf>> {
    let is_it = |path: &PathBuf| path.to_string_lossy().ends_with(end);
    Ok(artefacts()?.into_iter().find(is_it))
}
