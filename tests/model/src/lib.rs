//! Random OpenMP programs, executed in virtual time: what is true of each is known, and judges what `omptrace stats` says of its trace.
//!
//! ```text
//! seed -> generate -> Program -> simulate -> Run -> write -> trace -> omptrace stats --json -.
//!                                             |                                              v
//!                                             `-> truth: accounting, path, blame, ...  -> compare -> differences -> shrink
//! ```
//!
//! No line of the analysis or the timeline is in it: truth is found by sums over intervals, longest paths in an explicit graph, and by
//! simulating a changed program again. The definitions are those of `docs/analysis.md`.
#![forbid(unsafe_code)]

pub mod callback;
pub mod case;
pub mod compare;
pub mod generate;
pub mod judge;
pub mod known;
pub mod program;
pub mod random;
pub mod run;
pub mod shrink;
pub mod simulate;
pub mod truth;
pub mod write;
