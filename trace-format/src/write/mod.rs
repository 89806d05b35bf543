//! Writing: blocks, and sealing, which turns a trace and its spool into one complete file.

pub mod blocks;
pub(crate) mod copy;
pub mod lock;
pub mod seal;
