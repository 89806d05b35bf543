//! Random OpenMP programs, executed in virtual time: what is true of each is known, and checks what `omptrace stats` says of its trace.
//!
//! ```text
//! seed -> generate -> Program -> simulate -> Run -> write -> trace -> omptrace stats --json -.
//!                                             |                                              v
//!                                             `-> truth: accounting, path, blame, ...  -> compare -> differences -> shrink
//! ```
//!
//! No line of the analysis or the timeline is in it. Truth is found by sums over intervals, and by longest paths in an explicit graph.
//! A changed program is simulated again. The definitions are those of `docs/analysis.md`.
#![forbid(unsafe_code)]

pub mod callback;
pub mod case;
pub mod checker;
pub mod compare;
pub mod generate;
pub mod job;
pub mod known;
pub mod play;
pub mod program;
pub mod random;
pub mod run;
pub mod shrink;
pub mod simulate;
pub mod truth;
pub mod without;
pub mod write;
