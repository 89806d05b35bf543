//! Steps that consist only of data.

use serde::{Deserialize, Serialize};

/// An event on the calling thread, and the thread's state at that time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Collect {
    /// `OMP_COLLECTORAPI_EVENT`.
    pub event: u32,
    /// `OMP_COLLECTOR_API_THR_STATE`.
    pub state: u32,
    /// The wait id, if the state is a wait.
    pub wait_id: u64,
    /// The parallel region, or 0.
    pub region: u64,
    /// The parent region, or 0; `None` on a thread that is not a team's master.
    pub parent: Option<u64>,
}

/// How the runtime finds the initializer, and which runtime it resembles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// `ompt_initialize`, as specified by the report, and in LLVM 3.7.
    Initialize,
    /// `ompt_tool`, which returns the initializer: LLVM from 3.8 on.
    Tool,
    /// `ompt_initialize`, with any number as an event: OpenUH.
    OpenUh,
    /// `ompt_tool`, with data instead of ids in callbacks and entry points: the OMPT group's branch `omp4-buffer`.
    Omp4Buffer,
}

/// An event on the calling thread, with its arguments as words, except for frames, which are made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tr2 {
    /// `ompt_event_t`.
    pub event: u32,
    /// The words, in order; for a frame, 1, or 0 for NULL.
    pub words: Vec<u64>,
}

/// Target regions on a device, one after the other: memory is allocated, written, worked on, read and freed.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Offload {
    /// The device's number.
    pub device: u32,
    /// The first of the two slots for `target_data` and `host_op_id`, which other threads must not use.
    pub slot: u32,
    /// Number of regions.
    pub times: u32,
    /// Duration of each operation.
    pub busy_us: u64,
    /// The memory is associated with the host's, and disassociated before it is freed.
    pub associates: bool,
}
