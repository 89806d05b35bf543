//! Reading: a file's blocks, streams and events, within limits, and diagnostics for damage.

pub(crate) mod block_index;
pub mod checkpoint;
pub(crate) mod chunks;
pub mod diagnostic;
pub(crate) mod events;
pub(crate) mod file_kind;
pub(crate) mod finding;
pub(crate) mod first_metadata;
pub mod limits;
pub mod reader;
pub(crate) mod regular_file;
pub(crate) mod streams;
pub mod summary;
