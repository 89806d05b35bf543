//! Counters of threads: the kernel's and the processor's, read where a construct, a task or a wait begins or ends.
//!
//! ```text
//! boundary: read the thread's counters -> a row in the thread's chunk
//!    |
//!    v
//! the usual callback -> its event
//! ```
//!
//! Off unless the user asks for them: then the usual callbacks are registered, and events cost what they cost without.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`reading`] | the counters of a session, and a reading |
//! | [`boundaries`] | the callbacks that read |
//! | [`processor`] | which of the processor's counters a thread can have |

mod boundaries;
mod processor;
mod reading;

pub(crate) use boundaries::put_in_front;
pub(crate) use reading::{PART, are_wanted};
