//! The file's layout: blocks, and how numbers are stored in them (docs/format.md).

pub mod block;
pub mod codec;
