//! Steps that are data alone.

use serde::{Deserialize, Serialize};

/// An event on the calling thread, and what the thread is in then.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Collect {
    /// `OMP_COLLECTORAPI_EVENT`.
    pub event: u32,
    /// `OMP_COLLECTOR_API_THR_STATE`.
    pub state: u32,
    /// The id of what it waits for, where the state is a wait.
    pub wait_id: u64,
    /// The parallel region, or 0.
    pub region: u64,
    /// The region around it, or 0; `None` on a thread that is not the master of a team.
    pub parent: Option<u64>,
}

/// How the runtime finds the initializer, and what it is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// `ompt_initialize`, as the report has it, and LLVM 3.7.
    Initialize,
    /// `ompt_tool`, which returns it: LLVM from 3.8 on.
    Tool,
    /// `ompt_initialize`; any number is an event: OpenUH.
    OpenUh,
    /// `ompt_tool`; callbacks and entry points have data in the place of ids: the OMPT group's branch `omp4-buffer`.
    Omp4Buffer,
}

/// An event on the calling thread: its arguments as words, but for frames, which are made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tr2 {
    /// `ompt_event_t`.
    pub event: u32,
    /// The words, in order; a frame's is 1 for one, and 0 for NULL.
    pub words: Vec<u64>,
}

/// Target regions on a device, one after the other: memory is allocated, written, worked on, read and freed.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Offload {
    /// The device's number.
    pub device: u32,
    /// The first of the two slots for `target_data` and `host_op_id`; a thread's own.
    pub slot: u32,
    /// How many regions.
    pub times: u32,
    /// How long each operation takes.
    pub busy_us: u64,
    /// The memory is associated with the host's, and no longer before it is freed.
    pub associates: bool,
}
