//! Writes, reads and checks archives in OTF2, the Open Trace Format of Score-P, Vampir and Scalasca, without the
//! reference library.
//!
//! ```text
//! records       the kinds of records, as a table; encoding: their bytes; buffer: where records are assembled
//! chunks        files in chunks
//! archive       the directory: anchor, definitions, one file of events per location
//! events        the events of a location
//! check         checks archives from any writer
//! ```
//!
//! To check an archive, pass its anchor:
//!
//! ```no_run
//! for finding in otf2_archive::check_archive("run/traces.otf2".as_ref()) {
//!     println!("{finding}");
//! }
//! ```
#![forbid(unsafe_code)]

pub mod archive;
pub mod buffer;
mod check;
pub mod chunks;
pub mod encoding;
pub mod events;
pub mod records;

pub use check::check_archive;
