//! Completes traces: takes spools in, adds names of code (sealing), analyses them for summaries (summaries).

pub(crate) mod sealing;
pub(crate) mod summaries;
