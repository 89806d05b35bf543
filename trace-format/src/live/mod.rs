//! Traces of programs that still run or were killed: the spool that threads share, and its followers.

pub mod follow;
pub mod liveness;
pub mod spool;
