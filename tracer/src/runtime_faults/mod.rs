//! Measures against faults of runtimes that would harm the traced program. The table of runtimes in `omptrace-runtimes` says
//! which runtime has which fault.
//!
//! | fault | module | what it is |
//! | --- | --- | --- |
//! | `CrashesWithoutFirstThread` | [`lock_after_exit`] | what LLVM's runtime cannot report when its first thread has ended |
//! | `WantsTaskwaitDataEmpty` | [`join_barrier`] | the place in LLVM's runtime that must be empty where a taskwait with dependences begins |
//! | `WritesBehindDependences` | [`undeferred_dependences`] | the dependences of undeferred tasks, which corrupt the heap of LLVM's runtime |
//! | none: any version | [`crate::recorder::initial_task`] | the end of an initial task, whose pointers may lead anywhere |
//! | `WantsMessageOfError` | [`withheld`] | callbacks whose registration alone harms the program |
//! | `FlushesBufferOnce` | [`crate::devices`] | no flush of devices at the program's wish |

pub(crate) mod join_barrier;
pub(crate) mod lock_after_exit;
pub(crate) mod undeferred_dependences;
pub(crate) mod withheld;
