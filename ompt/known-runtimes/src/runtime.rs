//! What is known about a runtime.

/// The maker of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// LLVM's `libomp`, and the runtimes that AMD and others derive from it.
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
    /// The names of its library, without the part that starts with a dot or hyphen.
    pub libraries: &'static [&'static str],
    /// The names of libraries that belong to it without being runtimes.
    pub parts: &'static [&'static str],
    /// The start of the version text that it passes to `ompt_start_tool`.
    pub version: Option<&'static str>,
    /// Faults of some of its versions. All versions of LLVM's runtime report the same version text.
    pub faults: &'static [Fault],
    /// The time to hand out a chunk of a dynamic loop to one of several threads, in nanoseconds, without a tracer.
    pub chunk_cost_ns: u64,
    /// The most that creating a deferred task costs, without a tracer; `None` if it was not measured.
    pub task_creation: Option<TaskCreation>,
    /// Whether programs built by GCC can run on it.
    pub has_entries_of_libgomp: bool,
    /// Where it is installed, other than in the loader's directories.
    pub folders: &'static [InstallFolder],
    /// `doctor`'s remark if the library has no tools interface.
    pub without_interface: &'static str,
    /// The remedy if a program's library has no tools interface.
    pub remedy: &'static str,
}

/// The directories `ROOT/PREFIX*/INSIDE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstallFolder {
    /// The directory of the releases. A `~` is the user's home, `%m` the machine's architecture.
    pub root: &'static str,
    /// The start of the name of a release's directory.
    pub prefix: &'static str,
    /// The library's directory within a release.
    pub inside: &'static str,
}

/// The most that creating a deferred task usually costs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCreation {
    /// Without dependences.
    pub plain_ns: u64,
    /// With dependences, which the runtime looks up in a table of the parent task.
    pub with_dependences_ns: u64,
}

impl TaskCreation {
    /// The mean of so many tasks, of which some have dependences.
    pub fn mean_ns(self, tasks: u64, with_dependences: u64) -> u64 {
        let share = with_dependences.min(tasks) as f64 / tasks.max(1) as f64;
        let more = self.with_dependences_ns.saturating_sub(self.plain_ns);
        self.plain_ns + (more as f64 * share) as u64
    }
}

/// A fault of a runtime for which the tracer needs a workaround to protect the traced program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Once its first thread has ended, the runtime crashes at the end of a `critical` region if a tool wants
    /// `mutex_released`. Observed with LLVM 13 to 21 and Intel 2021.
    CrashesWithoutFirstThread,
    /// The runtime aborts at a taskwait with dependences if a certain data word of the tool is not zero. Taskwaits
    /// share this word with the implicit tasks of workers. Observed with LLVM 13 to 22 and Intel 2021 to 2026. Earlier
    /// versions report no such task.
    WantsTaskwaitDataEmpty,
    /// If a tool wants `dependences`, the runtime writes past an array's end if an undeferred task or a taskwait has a
    /// `mutexinoutset` or `inoutset` dependence. Observed with LLVM 13 to 22 and Intel 2021 to 2026.
    WritesBehindDependences,
    /// If a tool wants `error`, the runtime computes the length of an `error` directive's message even if there is
    /// none. Observed with LLVM 16 and 19; older versions crash without a tool, too; Intel 2026 does not.
    WantsMessageOfError,
    /// Flushing a device's records is effective only once for each buffer that is not full. Later records in the buffer
    /// are delivered only when it is full. Concerns AMD's runtime, which reports LLVM's version. Observed with AMD's
    /// code of 2022 to 2026.
    FlushesBufferOnce,
}
