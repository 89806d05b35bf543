//! Random MPI jobs whose ranks have OpenMP regions, in virtual time: what is true of each is known.
//!
//! ```text
//! seed -> Program -> simulate -> Run: calls, and what each rank does in each nanosecond -> write -> traces
//!            |                     `-> truth: the critical path, by walking backwards nanosecond by nanosecond
//!            `-> simulate again with other durations -> truth: what the job would gain
//! ```
//!
//! Each step of a program concerns some ranks, which take part in it one after the other, so no event queue is needed.

pub mod program;
pub mod simulate;
pub mod truth;
pub mod write;
