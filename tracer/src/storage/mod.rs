//! What a trace consists of while the program runs: chunks in memory that a file backs, and the trace file.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`spool`] | the file that threads share: free and full chunks |
//! | [`trace_file`] | the trace file |

pub(crate) mod spool;
pub(crate) mod trace_file;
