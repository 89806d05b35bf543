//! CPU time that a process used, and the share of it that recording took.

use serde::{Deserialize, Serialize};

/// The CPU time of a process, as far as its trace contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// The CPU time of its OpenMP threads. `None` if unknown.
    pub(crate) cpu: Option<Cpu>,
    /// The time that recording events took, summed over all threads. `None` if the cost of an event was not measured.
    pub(crate) recording_ns: Option<u64>,
    /// The part of `recording_ns` in which counters were read.
    #[serde(default)]
    pub(crate) counters_ns: u64,
    /// The cost of an event in picoseconds; `None` if it was not measured.
    pub(crate) event_ps: Option<u64>,
    /// Upper bound of the process's start-up time, during which no work of the program is certain. `None` if its CPU
    /// time is unknown.
    pub(crate) start_ns: Option<u64>,
    /// Whether external waits (outside of OpenMP) were recorded.
    pub(crate) has_external_waits: bool,
}

/// CPU time, summed over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Cpu {
    /// The total.
    pub(crate) all_ns: u64,
    /// The part that is certainly not spent waiting.
    pub(crate) work_ns: u64,
    /// The time that threads were ready to run while others had the CPUs; `None` if the system does not report it.
    pub(crate) delay_ns: Option<u64>,
    /// CPU time of the tracer's own threads; `None` if unknown.
    #[serde(default)]
    pub(crate) tracer_ns: Option<u64>,
}
