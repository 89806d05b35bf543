//! A loop that a thread is in.

use ompt_sys as ompt;

/// What the thread has got of the loop so far.
#[derive(Clone, Copy, Default)]
pub(super) struct OpenLoop {
    pub(super) schedule: Option<ompt::ompt_work_t>,
    pub(super) chunks: u64,
    pub(super) iterations: u64,
}
