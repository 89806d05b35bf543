//! What steps may fail with.

/// Errors here are read by a person at a terminal; nothing matches on their kind.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
