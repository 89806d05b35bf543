//! Answers: where the threads' time went, why, on which line, and what fixing it would give.
//!
//! ```text
//! of_process --> part, merged with others in any order --> questions: changes worth a replay, then numbers and words
//! ```

mod critical_paths;
pub(crate) mod effort;
pub(crate) mod of_process;
pub(crate) mod part;
mod questions;

pub use crate::findings::{RULES, Rule};
pub use crate::model::accounting::Accounting;
pub use crate::model::answers::{
    Answers, Blame, Blocked, CriticalPath, Efficiency, Finding, FunctionName, FunctionShare, Moment,
    NO_FINDING, NotPredicted, NotSeen, OtherThreads, PathRow, RegionAnswer, SCHEMA, TaskRegion, WhatIf,
};
pub use crate::model::cause::Cause;
pub use crate::model::place::{Place, Position};
pub use crate::overview::{
    DURATION_CLASSES, Level, Overview, OverviewCell, OverviewRow, RegionShape, StepTime, Visits,
};
pub use crate::states::accountant::{Accountant, Due, ProcessAccount, State};
pub use crate::states::live_snapshot::{Glance, ThreadGlance};
pub use critical_paths::critical_paths;
