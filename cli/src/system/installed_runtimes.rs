//! The OpenMP runtimes installed on this machine, and their paths.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use omptrace_runtimes::{InstallFolder, RUNTIMES, Runtime};

use crate::system::elf;
use crate::system::folders::{each_file_once, files_in};
use crate::system::library_search::Loader;
use crate::system::openmp_runtime::{can_stand_in_for_libgomp, may_stand_in};
use crate::system::python_packages;

/// All OpenMP runtimes found in the loader's directories, then in the directories of LLVM, AMD, Intel and NVIDIA, then
/// next to this program.
pub(crate) fn all(loader: &Loader) -> Vec<PathBuf> {
    let mut found = libraries(loader, |name| Runtime::of_library(name).is_some());
    found.extend(python_packages::runtimes_of_this_program());
    each_file_once(found)
}

/// The libraries with such names in the loader's directories, and in those where vendors install runtimes.
pub(crate) fn libraries(loader: &Loader, passes: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = loader.libraries(&passes);
    for folder in vendor_folders() {
        found.extend(files_in(&folder, &passes));
    }
    let mut found = each_file_once(found);
    found.retain(|path| matches!(elf::read(path), Ok(Some(elf::Elf::Native(_)))));
    found
}

/// The runtime on which programs for libgomp should run: the newest LLVM runtime, otherwise any other suitable one.
/// `None` if none is installed.
pub(crate) fn stand_in_for_libgomp(loader: &Loader) -> Option<PathBuf> {
    let installed = vendor_folders().into_iter().flat_map(|folder| files_in(&folder, may_stand_in));
    installed
        .chain(loader.libraries(may_stand_in))
        .chain(python_packages::runtimes_of_this_program())
        .filter_map(|path| fs::canonicalize(path).ok())
        .find(|path| can_stand_in_for_libgomp(path))
}

/// Compilers' directories that the loader does not know, the newest release of each first.
fn vendor_folders() -> Vec<PathBuf> {
    let folders = RUNTIMES.iter().flat_map(|runtime| runtime.folders);
    folders.flat_map(releases).collect()
}

/// The existing directories `ROOT/PREFIX*/INSIDE`, highest number first.
fn releases(folder: &InstallFolder) -> Vec<PathBuf> {
    let InstallFolder { prefix, inside, .. } = *folder;
    let root = folder.root.replace("%m", env::consts::ARCH);
    let root = match (root.strip_prefix("~/"), env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(&root),
    };
    let mut releases = files_in(&root, |name| name.starts_with(prefix));
    releases.sort_by_key(|path| std::cmp::Reverse(numbers(path)));
    releases.into_iter().map(|release| release.join(inside)).filter(|folder| folder.is_dir()).collect()
}

/// The numbers in a directory's name, so that `llvm-9` comes before `llvm-14`.
fn numbers(path: &Path) -> Vec<u64> {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .split(|character: char| !character.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_number() {
        assert!(numbers(Path::new("/usr/lib/llvm-9")) < numbers(Path::new("/usr/lib/llvm-14")));
        assert!(numbers(Path::new("2024.2.1")) < numbers(Path::new("2025.0")));
    }
}
