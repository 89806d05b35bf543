//! The known OpenMP runtimes: **one row per runtime** in [`RUNTIMES`]. The tracer, the readers of traces and the
//! program look up a runtime by its library's name, or by the version that it reports.
//!
//! Differences between generations of the tools interface are not listed here. The tracer detects the generation, and
//! the readers have a row for each difference in `timeline`'s `runtime_quirks`.
#![forbid(unsafe_code)]

mod runtime;
mod table;

pub use runtime::{Fault, InstallFolder, Runtime, TaskCreation, Vendor};
pub use table::RUNTIMES;

impl Vendor {
    /// Whether the library at `path` is a runtime of this vendor, judging by its file name: see
    /// [`Runtime::of_library`].
    pub fn makes(self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next();
        let runtime = name.and_then(|name| Runtime::of_library(str::from_utf8(name).ok()?));
        runtime.is_some_and(|runtime| runtime.vendor == self)
    }
}

impl Runtime {
    /// The runtime whose library has this name; `None` for any other library.
    ///
    /// Python wheels contain their own libgomp, with a name such as `libgomp-a34b3233.so.1.0.0`.
    pub fn of_library(name: &str) -> Option<&'static Runtime> {
        let is_named = |library: &str| {
            let rest = name.strip_prefix(library);
            // GCC's offloading plugins are named like `libgomp-plugin-nvptx.so.1`.
            rest.is_some_and(|rest| {
                rest.starts_with(['.', '-']) && rest.contains(".so") && !rest.starts_with("-plugin")
            })
        };
        let mut all = RUNTIMES.iter();
        all.find(|runtime| runtime.libraries.iter().any(|name| is_named(name)))
    }

    /// The runtime that reports this version, if it can be identified by that.
    pub fn of_version(version: &str) -> Option<&'static Runtime> {
        let reports = |begin: &str| version.starts_with(begin);
        RUNTIMES.iter().find(|runtime| runtime.version.is_some_and(reports))
    }

    /// Whether a library's file name is that of a runtime, or of a library that belongs to one.
    pub fn has_code_in(library: &str) -> bool {
        let stem = library.split(['.', '-']).next().unwrap_or(library);
        let mut names = RUNTIMES.iter().flat_map(|runtime| runtime.libraries.iter().chain(runtime.parts));
        names.any(|name| *name == stem)
    }
}

impl Fault {
    /// Whether a runtime that reports `version` may have this fault.
    pub fn is_of(self, version: &str) -> bool {
        Runtime::of_version(version).is_some_and(|runtime| runtime.faults.contains(&self))
    }
}
