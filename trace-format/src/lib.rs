//! The omptrace file: event table, chunks, codecs, writer, reader, diagnostics.
#![forbid(unsafe_code)]

pub mod block;
pub mod clock;
pub mod codec;
pub mod diagnostic;
pub mod event;
pub mod field;
pub mod limits;
pub mod metadata;
pub mod predict;
mod process;
pub mod reader;
mod scan;
pub mod seal;
pub mod spool;
pub mod writer;

pub use clock::ClockMap;
pub use diagnostic::{Diagnostic, DiagnosticKind, Severity};
pub use event::Event;
pub use limits::Limits;
pub use metadata::Metadata;
pub use reader::{Ending, Events, OpenError, Reader, Record, Stream, Summary};
pub use seal::{SealError, Sealed, seal};
