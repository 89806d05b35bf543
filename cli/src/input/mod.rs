//! What commands read.
//!
//! ```text
//! inputs            traces, and directories of them
//! input_choice      their events, or the summaries that they bring along
//! compared_runs     runs: traces, directories of a run's traces, answers in JSON
//! selection         the selected threads and the selected part of the time
//! launches          which traces are of one launch of a program
//! checkpoint_hint   a word on windows that take long to read
//! source_files      the program's sources, as far as they may be shown
//! ```

pub(crate) mod checkpoint_hint;
pub(crate) mod compared_runs;
pub(crate) mod input_choice;
pub(crate) mod inputs;
pub(crate) mod launches;
pub(crate) mod selection;
pub(crate) mod source_files;
