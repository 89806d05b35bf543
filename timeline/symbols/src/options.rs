//! Where a reader looks for names.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where to look for names.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directories with debug files, searched before `/usr/lib/debug`: `.build-id/12/345678.debug`, files named by a
    /// `.gnu_debuglink`, and the modules themselves.
    pub debug_dirs: Vec<PathBuf>,
    /// Open files of modules, which may have been deleted since.
    pub kept: ModuleFiles,
}

/// Open files of modules.
#[derive(Clone, Debug, Default)]
pub struct ModuleFiles(Vec<(PathBuf, Arc<File>)>);

impl ModuleFiles {
    /// Adds the file of the module that the trace knows by `path`.
    pub fn add(&mut self, path: PathBuf, file: File) {
        self.0.push((path, Arc::new(file)));
    }

    /// The files of modules with this path.
    pub(crate) fn of(&self, path: &Path) -> impl Iterator<Item = &File> {
        let kept = self.0.iter().filter(move |(known, _)| known == path);
        kept.map(|(_, file)| &**file)
    }
}
