//! Per-thread counters of the kernel and the CPU, read when a construct, a task or a wait begins or ends.
//!
//! ```text
//! boundary: read the thread's counters -> an event in the thread's chunk
//!    |
//!    v
//! the usual callback -> its event
//! ```
//!
//! Off by default, except for the CPU time at the start and end of threads. If counters are off, the usual callbacks
//! are registered, so events have no extra cost.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`reading`] | the counters of a session, and a reading |
//! | [`boundaries`] | the callbacks that read counters |
//! | [`cpu_time`] | the CPU time of the process and its threads, which is always read |
//! | [`processor`] | which of the CPU's counters are available |

mod boundaries;
pub(crate) mod cpu_time;
mod processor;
mod reading;

pub(crate) use boundaries::put_in_front;
pub(crate) use reading::{SESSION_HOOKS, are_wanted};
