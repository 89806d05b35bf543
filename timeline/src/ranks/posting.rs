//! Which call does something, and what functions are called.

use std::num::NonZeroU32;

use crate::model::Ns;

/// The number of a call in the list of a rank's calls, plus one.
pub(super) type CallNumber = NonZeroU32;

/// The call that posts something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) thread: u32,
    /// Where the program makes the call: see [`Sites`](super::sites::Sites).
    pub(super) site: u32,
    /// Its number among the thread's calls: see [`CallList`](super::call_list::CallList).
    pub(super) call: Option<CallNumber>,
    /// When the call began.
    pub(super) begin: Ns,
}

/// The time that a thread is in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) thread: u32,
    /// As above.
    pub(super) site: u32,
    pub(super) call: Option<CallNumber>,
    pub(super) begin: Ns,
    pub(super) end: Ns,
}

impl Span {
    /// The call.
    pub(super) fn posting(self) -> Posting {
        Posting { thread: self.thread, site: self.site, call: self.call, begin: self.begin }
    }
}

/// Any source or tag.
pub(super) const ANY: i32 = -1;

/// A function's name in C.
pub(super) fn name_of(function: u32) -> &'static str {
    omptrace_mpi_api::function(function).map_or("", |function| function.name)
}
