//! Whose fault the waits in MPI calls are: what the rank that others wait for does meanwhile.
//!
//! ```text
//! Joints of all ranks --> AwaitedTimes: when others wait for a rank
//! states of a rank's threads --> RankSpans: its waits, and what it does while others wait for it
//! waits of all ranks + what others do meanwhile --> RankWaits
//! ```
//!
//! Each nanosecond of a wait is charged to what the awaited thread does in that nanosecond. Where that thread waits in a call of
//! MPI itself, the charge is passed on to the rank that it waits for, and so on: the first cause is a rank that does not wait.

pub(crate) mod charge;
pub(crate) mod spans;
