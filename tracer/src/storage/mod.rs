//! What a trace consists of while the program runs: chunks in file-backed memory, and the trace file.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`spool`] | the file that threads share, with free and full chunks |
//! | [`trace_file`] | the trace file |

pub(crate) mod spool;
pub(crate) mod trace_file;
