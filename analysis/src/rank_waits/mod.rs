//! Charges waits in MPI calls to what the awaited rank does meanwhile.
//!
//! ```text
//! Joints of all ranks --> AwaitedTimes: the times in which others wait for a rank
//! states of a rank's threads --> RankSpans: its waits, and what it does while others wait for it
//! waits of all ranks + what others do meanwhile --> RankWaits
//! first calls of call sites --> SitePlaces --> RankTraffic
//! ```
//!
//! Each nanosecond of a wait is charged to what the awaited thread does in that nanosecond. If that thread waits in an MPI call
//! itself, the charge is passed on to the rank for which it waits, and so on: the first cause is a rank that does not wait.

mod activity;
pub(crate) mod call_waits;
pub(crate) mod charge;
mod intervals;
mod process_path;
mod serialised;
pub(crate) mod site_places;
pub(crate) mod spans;
pub(crate) mod traffic;
