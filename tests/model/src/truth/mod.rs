//! What is true of a run, by plain means.

pub mod accounting;
pub mod blame;
pub mod clauses;
pub mod constructs;
pub mod path;
pub mod replay;
pub mod schedule;
pub mod threads;
