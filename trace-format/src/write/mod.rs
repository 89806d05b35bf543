//! Writing: blocks, and the seal that makes a spool a whole file.

pub mod blocks;
pub(crate) mod copy;
pub mod lock;
pub mod seal;
