//! Completes traces: takes spools in, adds names of code (sealing), analyses them for summaries (summaries). Copies
//! them without what identifies people and machines (anonymise).

pub(crate) mod anonymise;
pub(crate) mod sealing;
pub(crate) mod summaries;
