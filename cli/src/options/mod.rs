//! Options that several commands have, and the texts that are made of all options.
//!
//! ```text
//! shared         the tracer, libgomp, folders with debug files, the selected part of a timeline
//! settings       an option for each of the tracer's variables
//! format_flags   options that only one format has
//! guides         the pages of the documentation that are in the program
//! units          times, sizes and parts, as they are written
//! version, man   `--version`, the man page, the completions
//! ```

pub(crate) mod format_flags;
pub(crate) mod guides;
pub(crate) mod help;
pub(crate) mod man;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod units;
pub(crate) mod version;
