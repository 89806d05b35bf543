//! Counters of threads: the kernel's and the processor's, read where a construct, a task or a wait begins or ends.
//!
//! ```text
//! boundary: read the thread's counters -> a row in the thread's chunk
//!    |
//!    v
//! the usual callback -> its event
//! ```
//!
//! Off unless the user asks for them, but for the processor time at the begin and end of threads: then the usual callbacks are registered, and events cost what they cost without.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`reading`] | the counters of a session, and a reading |
//! | [`boundaries`] | the callbacks that read |
//! | [`cpu_time`] | the processor time of the process and its threads, which is always read |
//! | [`processor`] | which of the processor's counters a thread can have |

mod boundaries;
pub(crate) mod cpu_time;
mod processor;
mod reading;

pub(crate) use boundaries::put_in_front;
pub(crate) use reading::{SESSION_HOOKS, are_wanted};
