//! The omptrace file: event table, chunks, codecs, writer, reader, diagnostics.
#![forbid(unsafe_code)]

pub mod block;
pub mod event;
pub mod field;
pub mod metadata;
pub mod predict;
