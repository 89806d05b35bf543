//! What is known of a runtime.

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
    /// The time to hand out a chunk of a dynamic loop to one of several threads, in nanoseconds, without a tracer.
    pub chunk_cost_ns: u64,
    /// The time to create a deferred task without dependences, in nanoseconds, without a tracer; `None` if it was not measured.
    pub task_creation_ns: Option<u64>,
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

/// A fault of a runtime that the tracer must know so that the traced program comes to no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Once its first thread has ended, it crashes at the end of a `critical` if a tool wants `mutex_released`. Measured on
    /// LLVM 13 to 21 and Intel 2021.
    CrashesWithoutFirstThread,
    /// It aborts at a taskwait with dependences if a tool's data is in a certain place. Taskwaits share the place with the
    /// implicit tasks of workers. Measured on LLVM 13 to 22 and Intel 2021 to 2026. Earlier ones report no such task.
    WantsTaskwaitDataEmpty,
    /// Where a tool wants `dependences`, it writes behind the array if an undeferred task or a taskwait has a
    /// `mutexinoutset` or `inoutset` dependence. Measured on LLVM 13 to 22 and Intel 2021 to 2026.
    WritesBehindDependences,
    /// Where a tool wants `error`, it measures the message of an `error` directive that has none. LLVM 16 and 19 do; what is
    /// older crashes without a tool, too; Intel's of 2026 does not.
    WantsMessageOfError,
    /// A flush of a device's records is the last one for each buffer that is not full. What it gets later comes when it is full,
    /// and never if it does not get full. AMD's, whose version is LLVM's. Seen with AMD's code of 2022 to 2026.
    FlushesBufferOnce,
}
