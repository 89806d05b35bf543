//! The OpenMP runtimes of this machine: known by the names of their libraries.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::elf;
use crate::loader::{Loader, each_file_once, files_in};

/// Whose runtime it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    /// LLVM's `libomp`, and those that AMD and others make of it.
    Llvm,
    /// Intel's `libiomp5`.
    Intel,
    /// GCC's `libgomp`: it has no tools interface.
    Gnu,
    /// NVIDIA's `libnvomp`.
    Nvidia,
    /// Sun's and Oracle's `libmtsk`.
    Oracle,
    /// OpenUH's `libopenmp`.
    OpenUh,
}

impl Vendor {
    /// Whose runtime a library of this name is; `None` for any other library.
    ///
    /// The wheels of Python carry a libgomp of their own under a name such as `libgomp-a34b3233.so.1.0.0`.
    pub(crate) fn of(library: &str) -> Option<Vendor> {
        let rest = |prefix| library.strip_prefix(prefix);
        let ends_a_name = |rest: &str| {
            // GCC's offloading loads `libgomp-plugin-nvptx.so.1` and others.
            rest.starts_with(['.', '-']) && rest.contains(".so") && !rest.starts_with("-plugin")
        };
        if rest("libgomp").is_some_and(ends_a_name) {
            Some(Vendor::Gnu)
        } else if rest("libiomp5").is_some_and(ends_a_name) {
            Some(Vendor::Intel)
        } else if rest("libnvomp").is_some_and(ends_a_name) {
            Some(Vendor::Nvidia)
        } else if rest("libmtsk").is_some_and(ends_a_name) {
            Some(Vendor::Oracle)
        } else if rest("libopenmp").is_some_and(ends_a_name) {
            Some(Vendor::OpenUh)
        } else if rest("libomp5").or(rest("libomp")).is_some_and(ends_a_name) {
            // Not libompd, libomptarget, libomptrace.
            Some(Vendor::Llvm)
        } else {
            None
        }
    }

    /// The name that users know.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Vendor::Llvm => "LLVM",
            Vendor::Intel => "Intel",
            Vendor::Gnu => "GCC",
            Vendor::Nvidia => "NVIDIA",
            Vendor::Oracle => "Oracle",
            Vendor::OpenUh => "OpenUH",
        }
    }
}

/// Whose runtime the file is, by its name.
pub(crate) fn vendor(path: &Path) -> Option<Vendor> {
    Vendor::of(&path.file_name()?.to_string_lossy())
}

/// How a runtime and a tool find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolsInterface {
    /// The runtime loads the tool. All that can define the entry that a tool takes the place of (OpenMP 5.2, section
    /// 19.2.1).
    Loads,
    /// The tool must be in the program from its start: the runtime calls what it finds there (TR2 of 2014, and the first
    /// runtimes of TR4), or waits to be asked (the Collector API of 2007).
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
    } else if elf::defines(
        path,
        &["__omp_collector_api", "ompt_initialize", "ompt_tool"],
    ) {
        Some(ToolsInterface::Preloaded)
    } else {
        None
    }
}

/// Whether the runtime can be traced.
pub(crate) fn has_tools_interface(path: &Path) -> bool {
    tools_interface(path).is_some()
}

/// Whether a program for libgomp would run on this runtime, and be traced: it defines what GCC's code calls, under the
/// versions that GCC gave it (fails for LLVM before 10, which lacks `GOMP_5.0`).
pub(crate) fn can_stand_in_for_libgomp(path: &Path) -> bool {
    elf::defines(path, &["GOMP_parallel_reductions"])
        && tools_interface(path) == Some(ToolsInterface::Loads)
}

/// Whether a program contains a runtime that looks for a tool at its start, which finds the empty one that the runtime brings
/// along: what is preloaded comes behind the program's own.
pub(crate) fn finds_its_own_tool(program: &Path) -> bool {
    let defines = |names: &[&str]| elf::defines(program, names);
    let is_tr2 = defines(&["ompt_tool", "ompt_initialize"]) && !defines(&["ompt_start_tool"]);
    is_linked_statically(program) && is_tr2
}

/// Whether an OpenMP runtime is part of the program's file itself.
pub(crate) fn is_linked_statically(program: &Path) -> bool {
    elf::defines(
        program,
        &["omp_get_max_threads", "GOMP_parallel", "__kmpc_fork_call"],
    )
}

/// Every OpenMP runtime found: where the loader looks, then where LLVM, AMD, Intel and NVIDIA install theirs.
pub(crate) fn all(loader: &Loader) -> Vec<PathBuf> {
    let mut found = loader.libraries(|name| Vendor::of(name).is_some());
    for folder in vendor_folders() {
        found.extend(files_in(&folder, |name| Vendor::of(name).is_some()));
    }
    let mut found = each_file_once(found);
    found.retain(|path| matches!(elf::read(path), Ok(Some(elf::Elf::Native(_)))));
    found
}

/// Whether a library of this name may be such a runtime.
pub(crate) fn may_stand_in(name: &str) -> bool {
    matches!(Vendor::of(name), Some(Vendor::Llvm | Vendor::Intel))
}

/// The runtime that programs for libgomp shall run on: the newest of LLVM, else what else there is. `None` where none
/// is installed.
pub(crate) fn stand_in_for_libgomp(loader: &Loader) -> Option<PathBuf> {
    let installed = vendor_folders()
        .into_iter()
        .flat_map(|folder| files_in(&folder, may_stand_in));
    installed
        .chain(loader.libraries(may_stand_in))
        .filter_map(|path| fs::canonicalize(path).ok())
        .find(|path| can_stand_in_for_libgomp(path))
}

/// Folders of compilers that the loader does not know, the newest release of each first.
fn vendor_folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    folders.extend(releases("/usr/lib", "llvm-", "lib"));
    folders.extend(releases("/usr/lib64", "llvm", "lib64"));
    folders.extend(releases("/opt", "rocm", "llvm/lib"));
    folders.extend(releases("/opt/AMD", "aocc-compiler-", "lib"));
    for root in ["/opt/intel/oneapi/compiler", "~/intel/oneapi/compiler"] {
        for inside in ["lib", "linux/compiler/lib/intel64_lin"] {
            folders.extend(releases(root, "", inside));
        }
    }
    let machine = format!("/opt/nvidia/hpc_sdk/Linux_{}", env::consts::ARCH);
    folders.extend(releases(&machine, "", "compilers/lib"));
    folders
}

/// The folders `ROOT/PREFIX*/INSIDE` that exist, highest number first. A `~` is the user's home.
fn releases(root: &str, prefix: &str, inside: &str) -> Vec<PathBuf> {
    let root = match (root.strip_prefix("~/"), env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(root),
    };
    let mut releases = files_in(&root, |name| name.starts_with(prefix));
    releases.sort_by_key(|path| std::cmp::Reverse(numbers(path)));
    releases
        .into_iter()
        .map(|release| release.join(inside))
        .filter(|folder| folder.is_dir())
        .collect()
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
    fn runtimes_are_known_by_name() {
        for (name, vendor) in [
            ("libomp.so", Some(Vendor::Llvm)),
            ("libomp.so.5", Some(Vendor::Llvm)),
            ("libomp-19.so.5", Some(Vendor::Llvm)),
            ("libomp5.so", Some(Vendor::Llvm)),
            ("libiomp5.so", Some(Vendor::Intel)),
            ("libgomp.so.1", Some(Vendor::Gnu)),
            ("libgomp-a34b3233.so.1.0.0", Some(Vendor::Gnu)),
            ("libnvomp.so", Some(Vendor::Nvidia)),
            ("libmtsk.so.1", Some(Vendor::Oracle)),
            ("libopenmp.so.1", Some(Vendor::OpenUh)),
            ("libomptarget.so.22.1", None),
            ("libomptrace.so", None),
            ("libompd.so", None),
            ("libgomp-plugin-nvptx.so.1", None),
            ("libc.so.6", None),
        ] {
            assert_eq!(Vendor::of(name), vendor, "{name}");
        }
    }

    #[test]
    fn releases_are_ordered_by_number() {
        assert!(numbers(Path::new("/usr/lib/llvm-9")) < numbers(Path::new("/usr/lib/llvm-14")));
        assert!(numbers(Path::new("2024.2.1")) < numbers(Path::new("2025.0")));
    }
}
