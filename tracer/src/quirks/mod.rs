//! What is wrong with the runtimes that are known, by the names that they give themselves in `ompt_start_tool`.
//!
//! Each row is a fault that would harm the traced program, or a virtue that most runtimes lack. LLVM's runtime has had the
//! same name in all its versions, so a row for it says what *some* of them do. What the tracer does about each is where
//! the row's variant is used:
//!
//! | module | what it is |
//! | --- | --- |
//! | [`lock_after_exit`] | what LLVM's runtime cannot report when its first thread has ended |
//! | [`join_barrier`] | the place in LLVM's runtime that must be empty where a taskwait with dependences begins |
//! | [`undeferred`] | the dependences of undeferred tasks, which corrupt the heap of LLVM's runtime |

pub(crate) mod join_barrier;
pub(crate) mod lock_after_exit;
pub(crate) mod undeferred;

/// What the tracer must know of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quirk {
    /// Once its first thread has ended, it crashes at the end of a `critical` if a tool wants `mutex_released`
    /// ([`crate::quirks::lock_after_exit`]).
    CrashesWithoutFirstThread,
    /// It aborts at a taskwait with dependences if a tool's data is in the place that is for them and for the implicit tasks of
    /// workers ([`crate::quirks::join_barrier`]).
    WantsTaskwaitDataEmpty,
    /// Where a tool wants `dependences`, it writes behind the array if an undeferred task or a taskwait has a
    /// `mutexinoutset` or `inoutset` dependence ([`crate::quirks::undeferred`]).
    WritesBehindDependences,
    /// It accepts that a request for a buffer gets none ([`crate::devices`]). AMD's would write through the null pointer.
    AcceptsNoBuffer,
}

/// What the name begins with, and what is so. Measured: `CrashesWithoutFirstThread` on LLVM 13 to 21 and Intel 2021;
/// `WantsTaskwaitDataEmpty` and `WritesBehindDependences` on LLVM 13 to 22 and Intel 2021 to 2026. Earlier ones report no such task.
const QUIRKS: &[(&str, Quirk)] = &[
    ("LLVM", Quirk::CrashesWithoutFirstThread),
    ("Intel", Quirk::CrashesWithoutFirstThread),
    ("LLVM", Quirk::WantsTaskwaitDataEmpty),
    ("Intel", Quirk::WantsTaskwaitDataEmpty),
    ("LLVM", Quirk::WritesBehindDependences),
    ("Intel", Quirk::WritesBehindDependences),
    ("omptrace reference runtime", Quirk::AcceptsNoBuffer),
];

impl Quirk {
    /// Whether a runtime that calls itself `version` has it.
    pub(crate) fn is_of(self, version: &str) -> bool {
        QUIRKS
            .iter()
            .any(|(name, quirk)| *quirk == self && version.starts_with(name))
    }
}
