//! Workarounds for faults of runtimes that would harm the traced program. The table in `omptrace-runtimes` lists the
//! faults of each runtime.
//!
//! | fault | module | harm |
//! | --- | --- | --- |
//! | `CrashesWithoutFirstThread` | [`lock_after_exit`] | LLVM's runtime crashes in a report after its first thread has ended |
//! | `WantsTaskwaitDataEmpty` | [`join_barrier`] | LLVM's runtime aborts if a data word is not zero when a taskwait with dependences begins |
//! | `WritesBehindDependences` | [`undeferred_dependences`] | reporting the dependences of undeferred tasks corrupts the heap of LLVM's runtime |
//! | none: any version | [`crate::recorder::initial_task`] | at the end of an initial task, the pointers may be invalid |
//! | `WantsMessageOfError` | [`withheld`] | registering a callback makes the runtime crash |
//! | `FlushesBufferOnce` | [`crate::devices`] | flushing devices at the program's request loses records |

pub(crate) mod join_barrier;
pub(crate) mod lock_after_exit;
pub(crate) mod undeferred_dependences;
pub(crate) mod withheld;
