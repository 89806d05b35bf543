//! From the facts of one or more traces to one timeline.
//!
//! ```text
//! Reader: streams --merge--> events in time's order --interpret--> nested regions, flows, tracks --> Sink
//!                                        |                 |
//!                             clock: ticks to ns     dialect: the runtime's quirks
//!                                                    repair: what was repaired, counted
//! ```
//!
//! Memory grows with what is alive at once, never with the number of events. That is threads, open regions, tasks that are not
//! complete, and the tasks with dependences of those; and locks and distinct code addresses. Equal traces give equal calls.
#![forbid(unsafe_code)]

mod causes;
mod construct;
mod counters;
mod dependences;
mod devices;
mod dialect;
mod emitter;
mod energy;
mod event_selection;
pub mod filter;
mod functions;
mod given_ids;
mod hand_over;
mod helpers;
mod interpret;
mod locations;
mod locks;
mod manner;
mod merge;
mod names;
pub mod null_sink;
mod repair;
mod replay;
mod report;
mod reports;
mod sampling;
mod segments;
mod session_clock;
pub mod sink;
mod stream;
mod tasks;
mod thread;
mod thread_introduction;

pub use devices::{ClockSource, DeviceClockReport, DeviceReport, MemoryOfPlace};
pub use dialect::Dialect;
pub use event_selection::halves;
pub use hand_over::{KeptArguments, handed_over};
pub use interpret::{may_have_checkpoints, schedule};
pub use locations::display_order;
pub(crate) use locations::introductions;
pub use manner::Manner;
pub use merge::records_in_order;
pub use repair::{Cause, Place, Repair, Repairs};
pub use replay::{
    Start, Timeline, alignment_note, lifetime, origin, process_name, replay, replay_with, uncertainty,
};
pub use report::{EventCounts, ProcessReport, Report};
pub use reports::Reports;
pub use sampling::{SampleSums, why_no_samples};
pub use segments::{FromSegment, MAX_SEGMENTS, MAX_STREAMS, MIN_SEGMENT_EVENTS, Segments};
pub use thread_introduction::{FirstRegion, Membership, ThreadIntroduction};
