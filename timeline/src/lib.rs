//! From the facts of one or more traces to one timeline.
//!
//! ```text
//! Reader: streams --merge--> events in time's order --interpret--> nested regions, flows, tracks --> Sink
//!                                        |                 |
//!                             clock: ticks to ns     dialect: the runtime's quirks
//!                                                    repair: what was repaired, counted
//! ```
//!
//! Memory grows with what is alive at once (threads, open regions, tasks that are not complete, and the tasks with
//! dependences of those; locks, distinct code addresses), never with the number of events. Equal traces give equal calls.
#![forbid(unsafe_code)]

mod counters;
mod dependences;
mod devices;
mod dialect;
mod emitter;
mod event_selection;
pub mod filter;
mod given_ids;
mod helpers;
mod interpret;
mod locations;
mod locks;
mod merge;
mod names;
pub mod null_sink;
mod repair;
mod replay;
mod report;
mod reports;
pub mod sink;
mod stream;
mod tasks;
mod thread;

pub use devices::{ClockSource, DeviceClockReport, DeviceReport};
pub use dialect::Dialect;
pub use event_selection::halves;
pub use interpret::schedule;
pub use locations::{ThreadIntroduction, display_order, introductions};
pub use merge::records_in_order;
pub use repair::{Cause, Place, Repair, Repairs};
pub use replay::{Manner, Timeline, lifetime, process_name, replay, replay_with};
pub use report::{ProcessReport, Report};
pub use reports::Reports;
