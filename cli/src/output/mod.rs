//! What commands write. stdout carries data, stderr carries words.
//!
//! ```text
//! streams            stdout and stderr, behind what keeps names from driving a terminal
//! message, failure   words for people: width, folding, quoting; what went wrong, with a hint
//! quoted_path        paths in commands that people copy
//! progress, gaps     bars; what a timeline lacks
//! json_output, csv   answers for programs, cut to what was asked for
//! sarif              findings for editors and code hosts; estimate: what is known from a part of a run
//! output_path        a file to write, which replaces no trace; replace_folder: a folder
//! conversion         an export, with what is said about it; view_annotations, view_steps: what `view` shows first
//! temp_files         what goes away when a signal ends the program; signals
//! ```

pub(crate) mod conversion;
pub(crate) mod csv;
pub(crate) mod estimate;
pub(crate) mod failure;
pub(crate) mod gaps;
pub(crate) mod json_output;
pub(crate) mod message;
pub(crate) mod output_path;
pub(crate) mod progress;
pub(crate) mod quoted_path;
pub(crate) mod replace_folder;
pub(crate) mod sarif;
pub(crate) mod signals;
pub(crate) mod streams;
pub(crate) mod temp_files;
pub(crate) mod view_annotations;
pub(crate) mod view_steps;
