//! The inputs of commands.
//!
//! ```text
//! inputs            traces, and directories of traces
//! input_choice      their events, or the summaries stored in them
//! compared_runs     runs: traces, directories of a run's traces, answers in JSON
//! selection         the selected threads and the selected part of the time
//! launches          the traces that belong to one launch of a program
//! checkpoint_hint   a hint for windows that take long to read
//! source_files      the program's sources, as far as they may be shown
//! ```

pub(crate) mod checkpoint_hint;
pub(crate) mod compared_runs;
pub(crate) mod input_choice;
pub(crate) mod inputs;
pub(crate) mod launches;
pub(crate) mod selection;
pub(crate) mod source_files;
