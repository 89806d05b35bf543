//! The OpenMP runtimes of this machine: known by the names of their libraries.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use omptrace_runtimes::{InstallFolder, RUNTIMES, Runtime, Vendor};

use crate::elf;
use crate::loader::{Loader, each_file_once, files_in};
use crate::packages;

/// The runtime that the file is, by its name.
pub(crate) fn known(path: &Path) -> Option<&'static Runtime> {
    Runtime::of_library(&path.file_name()?.to_string_lossy())
}

/// Whether the file is GCC's runtime, by its name.
pub(crate) fn is_libgomp(path: &Path) -> bool {
    Vendor::Gnu.makes(path.as_os_str().as_encoded_bytes())
}

/// How a runtime and a tool find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolsInterface {
    /// The runtime loads the tool. All that can define the entry that a tool takes the place of (OpenMP 5.2, section
    /// 19.2.1).
    Loads,
    /// The tool must be in the program from its start. TR2 of 2014 and the first runtimes of TR4 call what they find there.
    /// The Collector API of 2007 waits to be asked.
    Preloaded,
}

/// The runtime's tools interface, if it has one.
pub(crate) fn tools_interface(path: &Path) -> Option<ToolsInterface> {
    // The variables that runtimes read: whether to use a tool, and which to load.
    let reads = |variable: &str| elf::contains(path, format!("{variable}\0").as_bytes());
    let loads_none = || reads("OMP_TOOL") && !reads("OMP_TOOL_LIBRARIES");
    if elf::defines(path, &["ompt_start_tool"]) {
        Some(match loads_none() {
            true => ToolsInterface::Preloaded,
            false => ToolsInterface::Loads,
        })
    } else if elf::defines(path, &["__omp_collector_api", "ompt_initialize", "ompt_tool"]) {
        Some(ToolsInterface::Preloaded)
    } else {
        None
    }
}

/// Whether the runtime can be traced.
pub(crate) fn has_tools_interface(path: &Path) -> bool {
    tools_interface(path).is_some()
}

/// Whether a program for libgomp would run on this runtime, and be traced. The runtime must define what GCC's code calls,
/// under the versions that GCC gave it. LLVM's before 10 lacks `GOMP_5.0`.
pub(crate) fn can_stand_in_for_libgomp(path: &Path) -> bool {
    elf::defines(path, &["GOMP_parallel_reductions"]) && tools_interface(path) == Some(ToolsInterface::Loads)
}

/// Whether a program contains a runtime that looks for a tool at its start. Such a runtime finds the empty tool that it
/// brings along, since what is preloaded comes behind the program's own.
pub(crate) fn finds_its_own_tool(program: &Path) -> bool {
    let defines = |names: &[&str]| elf::defines(program, names);
    let is_tr2 = defines(&["ompt_tool", "ompt_initialize"]) && !defines(&["ompt_start_tool"]);
    is_linked_statically(program) && is_tr2
}

/// Whether an OpenMP runtime is part of the program's file itself.
pub(crate) fn is_linked_statically(program: &Path) -> bool {
    elf::defines(program, &["omp_get_max_threads", "GOMP_parallel", "__kmpc_fork_call"])
}

/// Every OpenMP runtime found: where the loader looks, then where LLVM, AMD, Intel and NVIDIA install theirs, then beside this
/// program.
pub(crate) fn all(loader: &Loader) -> Vec<PathBuf> {
    let mut found = libraries(loader, |name| Runtime::of_library(name).is_some());
    found.extend(packages::runtimes_of_this_program());
    each_file_once(found)
}

/// The libraries of this machine with such names, in the loader's folders and in those where vendors install runtimes.
pub(crate) fn libraries(loader: &Loader, passes: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = loader.libraries(&passes);
    for folder in vendor_folders() {
        found.extend(files_in(&folder, &passes));
    }
    let mut found = each_file_once(found);
    found.retain(|path| matches!(elf::read(path), Ok(Some(elf::Elf::Native(_)))));
    found
}

/// Whether a library of this name may be such a runtime.
pub(crate) fn may_stand_in(name: &str) -> bool {
    Runtime::of_library(name).is_some_and(|runtime| runtime.has_entries_of_libgomp)
}

/// The runtime that programs for libgomp shall run on: the newest of LLVM, else what else there is. `None` where none
/// is installed.
pub(crate) fn stand_in_for_libgomp(loader: &Loader) -> Option<PathBuf> {
    let installed = vendor_folders().into_iter().flat_map(|folder| files_in(&folder, may_stand_in));
    installed
        .chain(loader.libraries(may_stand_in))
        .chain(packages::runtimes_of_this_program())
        .filter_map(|path| fs::canonicalize(path).ok())
        .find(|path| can_stand_in_for_libgomp(path))
}

/// Folders of compilers that the loader does not know, the newest release of each first.
fn vendor_folders() -> Vec<PathBuf> {
    let folders = RUNTIMES.iter().flat_map(|runtime| runtime.folders);
    folders.flat_map(releases).collect()
}

/// The folders `ROOT/PREFIX*/INSIDE` that exist, highest number first.
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

/// The numbers in a folder's name, so that `llvm-9` comes before `llvm-14`.
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
