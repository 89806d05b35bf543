//! Parts that all readers of traces share: threads for work that can be divided, and hash maps for ids.
#![forbid(unsafe_code)]

pub mod fast_map;
pub mod thread_pool;
