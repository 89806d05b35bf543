//! Answers: what the threads' time was spent on, why, at which line, and how much time a change would save.
//!
//! ```text
//! of_process --> mergeable, merged with others in any order --> conclusions: changes worth a replay, then numbers and words
//! ```

mod conclusions;
mod critical_paths;
pub(crate) mod effort;
pub(crate) mod mergeable;
pub(crate) mod of_process;

pub use crate::findings::{RULES, Rule, at, tracing_note};
pub use crate::model::accounting::Accounting;
pub use crate::model::answers::{
    Answers, Blame, Blocked, CriticalPath, Efficiency, Finding, FunctionName, FunctionShare, LoopAnswer,
    Moment, NotPredicted, NotSeen, OtherThreads, PathRow, RegionAnswer, SCHEMA, TaskRegion, UsefulAt, WhatIf,
};
pub use crate::model::cause::Cause;
pub use crate::model::place::{Place, Position};
pub use crate::overview::{
    DURATION_CLASSES, Level, Overview, OverviewCell, OverviewRow, RegionShape, StepTime, Visits,
};
pub use crate::states::live_snapshot::{LiveSnapshot, LiveThread};
pub use crate::states::process_states::{Accountant, AwaitedMutex, ProcessAccount, State};
pub use critical_paths::critical_paths;
