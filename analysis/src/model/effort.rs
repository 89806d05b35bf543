//! How much CPU time a process had, and what recording took of it.

use serde::{Deserialize, Serialize};

/// CPU time of a process, as far as its trace has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// That of its OpenMP threads, and what of it they needed. `None` where it is not known.
    pub(crate) cpu: Option<Cpu>,
    /// What recording the events took its threads, all together. `None` where no cost was measured.
    pub(crate) recording_ns: Option<u64>,
    /// What an event costs, in picoseconds; `None` as above.
    pub(crate) event_ps: Option<u64>,
    /// How long the process may have taken to start: no program's work is certain in it. `None` where its CPU time is not known.
    pub(crate) start_ns: Option<u64>,
    /// Whether waits that are not OpenMP's were recorded.
    pub(crate) has_external_waits: bool,
}

/// CPU time of threads, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Cpu {
    /// All of it.
    pub(crate) all_ns: u64,
    /// The part that is certainly no wait.
    pub(crate) work_ns: u64,
    /// How long threads were ready to run, and others had the CPUs; `None` where the system does not say.
    pub(crate) delay_ns: Option<u64>,
}
