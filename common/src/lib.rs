//! Parts that all readers of traces share: threads for work that can be divided, hash maps for ids, and names as people may
//! see them.
#![forbid(unsafe_code)]

pub mod fast_map;
pub mod printable;
pub mod thread_pool;
