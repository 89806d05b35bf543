//! Which call does something.

use crate::model::Ns;

/// The call that posts something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) thread: u32,
    /// Where the program makes the call: see [`Sites`](super::sites::Sites).
    pub(super) site: u32,
    /// When the call began.
    pub(super) begin: Ns,
}
