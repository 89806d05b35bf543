//! What a file shows about the OpenMP runtime that it is or contains. Runtimes are recognised by the names of their
//! libraries.

use std::path::Path;

use omptrace_runtimes::{Runtime, Vendor};

use crate::system::elf;

/// The runtime that the file is, according to its name.
pub(crate) fn known(path: &Path) -> Option<&'static Runtime> {
    Runtime::of_library(&path.file_name()?.to_string_lossy())
}

/// Whether the file is GCC's runtime, according to its name.
pub(crate) fn is_libgomp(path: &Path) -> bool {
    Vendor::Gnu.makes(path.as_os_str().as_encoded_bytes())
}

/// How a runtime and a tool find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolsInterface {
    /// The runtime loads the tool. All such runtimes may define the entry point that a tool replaces (OpenMP 5.2,
    /// section 19.2.1).
    Loads,
    /// The tool must be in the program from its start: runtimes with TR2 (2014) and the first ones with TR4 call a tool
    /// that they find there, and those with the Collector API (2007) wait for requests.
    Preloaded,
}

/// The runtime's tools interface, if it has one.
pub(crate) fn tools_interface(path: &Path) -> Option<ToolsInterface> {
    // The variables that runtimes read: whether to use a tool, and which one to load.
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

/// Whether a program for libgomp would run on this runtime, and could be traced. The runtime must define the functions
/// that GCC's code calls, with GCC's symbol versions. LLVM's runtime before version 10 lacks `GOMP_5.0`.
pub(crate) fn can_stand_in_for_libgomp(path: &Path) -> bool {
    elf::defines(path, &["GOMP_parallel_reductions"]) && tools_interface(path) == Some(ToolsInterface::Loads)
}

/// Whether a program contains a runtime that looks for a tool at its start. Such a runtime finds its own empty tool,
/// because preloaded libraries come after the program's own symbols.
pub(crate) fn finds_its_own_tool(program: &Path) -> bool {
    let defines = |names: &[&str]| elf::defines(program, names);
    let is_tr2 = defines(&["ompt_tool", "ompt_initialize"]) && !defines(&["ompt_start_tool"]);
    is_linked_statically(program) && is_tr2
}

/// Whether an OpenMP runtime is linked into the program's file.
pub(crate) fn is_linked_statically(program: &Path) -> bool {
    elf::defines(program, &["omp_get_max_threads", "GOMP_parallel", "__kmpc_fork_call"])
}

/// Whether a library with this name may be a suitable runtime.
pub(crate) fn may_stand_in(name: &str) -> bool {
    Runtime::of_library(name).is_some_and(|runtime| runtime.has_entries_of_libgomp)
}
