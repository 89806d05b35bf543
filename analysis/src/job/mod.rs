//! An MPI job as a whole: its critical path, and how long it would take with changes.
//!
//! ```text
//! waits of all ranks --walk--> times of the path, by rank and thread --RankSpans--> what the threads do then --path--> JobPath
//! calls of all ranks and what each needs (JobGraph) --replay, with changed durations--> gains --> JobGains
//! ```

mod computation;
pub(crate) mod gains;
pub(crate) mod path;
mod replay;
pub(crate) mod walk;
