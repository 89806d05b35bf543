//! Writing: blocks, and the seal that makes a spool a whole file.

pub mod lock;
pub mod seal;
pub mod writer;
