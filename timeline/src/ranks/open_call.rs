//! A call that a thread is in when the trace ends.

/// What an open call waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenCall {
    pub(super) function: u32,
    /// Places of sends, receives, collective operations and fences.
    pub(super) sends: Vec<usize>,
    pub(super) receives: Vec<usize>,
    pub(super) collectives: Vec<usize>,
    pub(super) fences: Vec<usize>,
}
