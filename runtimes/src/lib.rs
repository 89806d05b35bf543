//! The OpenMP runtimes that are known: **one row per runtime** in [`RUNTIMES`]. The tracer, the readers of traces and the
//! program ask it by the name of a library, or by the version that a runtime reports.
//!
//! Differences between generations of the tools interface are not here. The tracer detects the generation, and the readers
//! have a row for each difference in `timeline`'s `dialect`.
#![forbid(unsafe_code)]

mod table;

pub use table::{Fault, RUNTIMES};

/// The maker of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// LLVM's `libomp`, and those that AMD and others make of it.
    Llvm,
    /// Intel's `libiomp5`.
    Intel,
    /// GCC's `libgomp`.
    Gnu,
    /// NVIDIA's `libnvomp`.
    Nvidia,
    /// Sun's and Oracle's `libmtsk`.
    Oracle,
    /// OpenUH's `libopenmp`.
    OpenUh,
    /// This project's runtime for tests.
    Reference,
}

impl Vendor {
    /// Whether the library at `path` is a runtime of this vendor, by its file name: see [`Runtime::of_library`].
    pub fn makes(self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next();
        let runtime = name.and_then(|name| Runtime::of_library(str::from_utf8(name).ok()?));
        runtime.is_some_and(|runtime| runtime.vendor == self)
    }
}

/// A runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Its maker.
    pub vendor: Vendor,
    /// The vendor's name.
    pub name: &'static str,
    /// The names of its library, each without what begins at a point or a hyphen.
    pub libraries: &'static [&'static str],
    /// The names of libraries that belong to it and are no runtime themselves.
    pub parts: &'static [&'static str],
    /// How the version begins that it passes to `ompt_start_tool`.
    pub version: Option<&'static str>,
    /// Faults that some of its versions have. LLVM's runtime has had the same version text in all of them.
    pub faults: &'static [Fault],
    /// The least time to hand out a chunk of a dynamic loop, in nanoseconds, without a tracer.
    pub chunk_cost_ns: u64,
    /// Whether programs that GCC built may run on it.
    pub has_entries_of_libgomp: bool,
    /// Where it is installed, other than in the loader's folders.
    pub folders: &'static [InstallFolder],
    /// The remark of `doctor` where the library has no tools interface.
    pub without_interface: &'static str,
    /// The remedy where a program's library has no tools interface.
    pub remedy: &'static str,
}

/// The folders `ROOT/PREFIX*/INSIDE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstallFolder {
    /// Where the releases are. A `~` is the user's home, `%m` the machine's architecture.
    pub root: &'static str,
    /// How the folder of a release begins.
    pub prefix: &'static str,
    /// Where in it the library is.
    pub inside: &'static str,
}

impl Runtime {
    /// The runtime whose library has this name; `None` for any other library.
    ///
    /// The wheels of Python have a libgomp of their own under a name such as `libgomp-a34b3233.so.1.0.0`.
    pub fn of_library(name: &str) -> Option<&'static Runtime> {
        let is_named = |library: &str| {
            let rest = name.strip_prefix(library);
            // GCC's offloading loads `libgomp-plugin-nvptx.so.1` and others.
            rest.is_some_and(|rest| {
                rest.starts_with(['.', '-']) && rest.contains(".so") && !rest.starts_with("-plugin")
            })
        };
        let mut all = RUNTIMES.iter();
        all.find(|runtime| runtime.libraries.iter().any(|name| is_named(name)))
    }

    /// The runtime that reports this version, if it is known by that.
    pub fn of_version(version: &str) -> Option<&'static Runtime> {
        let reports = |begin: &str| version.starts_with(begin);
        RUNTIMES
            .iter()
            .find(|runtime| runtime.version.is_some_and(reports))
    }

    /// Whether a library's file name is that of a runtime, or of a part of one.
    pub fn has_code_in(library: &str) -> bool {
        let stem = library.split(['.', '-']).next().unwrap_or(library);
        let mut names = RUNTIMES
            .iter()
            .flat_map(|runtime| runtime.libraries.iter().chain(runtime.parts));
        names.any(|name| *name == stem)
    }
}

impl Fault {
    /// Whether a runtime that reports `version` may have it.
    pub fn is_of(self, version: &str) -> bool {
        Runtime::of_version(version).is_some_and(|runtime| runtime.faults.contains(&self))
    }
}
