//! A call that a thread is in when the trace ends.

/// What an open call waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenCall {
    pub(super) function: u32,
    /// Places of sends, receives and collective operations.
    pub(super) sends: Vec<usize>,
    pub(super) receives: Vec<usize>,
    pub(super) collectives: Vec<usize>,
}
