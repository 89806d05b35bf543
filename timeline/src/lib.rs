//! Interprets the events of one or more traces as one timeline.
//!
//! ```text
//! Reader: streams --merge--> events in time's order --interpret--> nested regions, flows, tracks --> Sink
//!                                        |                 |
//!                             clock: ticks to ns     dialect: the runtime's quirks
//!                                                    repair: what was repaired, counted
//! ```
//!
//! Memory grows with what exists at the same time, never with the number of events: threads, open regions, incomplete
//! tasks and the tasks on which these depend, locks, and distinct code addresses. Equal traces lead to equal calls of
//! the sink.
#![forbid(unsafe_code)]

mod devices;
pub mod filter;
mod interpret;
pub mod model;
mod names;
mod ranks;
mod replay;
mod runtime_quirks;
mod samples;
mod tasks;
mod threads;

pub use devices::{ClockSource, DeviceClockReport, DeviceReport, MemoryOfPlace};
pub use interpret::{may_have_checkpoints, schedule};
pub use model::manner::Manner;
pub use model::null_sink;
pub use model::repairs::{Cause, Place, Repair, Repairs};
pub use model::thread_introduction::{FirstRegion, Membership, ThreadIntroduction};
pub use omptrace_runtimes::TaskCreation;
pub use ranks::{
    CallBlock, CallId, CallSite, CollectiveSite, Forbidden, Gate, HostClocks, IdleWaits, JobGraph, Joint,
    Joints, LongestOperation, MessageCounts, Need, Needed, PairMessages, RankCall, RankGraph, RankMessages,
    Ranks, Traffic, Unmatched, UnsuccessfulTests, WaitKind, WaitingRank, match_after,
};
pub use replay::alignment::{Start, align, alignment_note, origin, uncertainty};
pub use replay::excerpts::Excerpts;
pub use replay::merge::records_in_order;
pub use replay::parallel_sinks::{KeptArguments, handed_over};
pub use replay::process::{lifetime, process_name, processors};
pub use replay::report::{EventCounts, ProcessReport, Report};
pub use replay::segments::{Boundary, FromSegment, MAX_SEGMENTS, MAX_STREAMS, MIN_SEGMENT_EVENTS, Segments};
pub use replay::{Timeline, replay, replay_with};
pub use runtime_quirks::Dialect;
pub use runtime_quirks::capabilities::{Reports, waits_are_short_where_oversubscribed};
pub use runtime_quirks::event_selection::halves;
pub use samples::availability::{SampleSums, why_no_samples};
pub use threads::locations::display_order;
pub(crate) use threads::locations::introductions;
