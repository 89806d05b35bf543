//! What all readers of traces share: threads for work that falls into parts, and hash maps for ids.
#![forbid(unsafe_code)]

pub mod fast_map;
pub mod thread_pool;
