//! A loop that a thread is executing.

use ompt_sys as ompt;

/// The chunks and iterations that the thread has received of the loop so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct OpenLoop {
    pub(crate) schedule: Option<ompt::ompt_work_t>,
    pub(crate) chunks: u64,
    pub(crate) iterations: u64,
}
