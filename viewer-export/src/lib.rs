//! Exports traces: a timeline as Chrome JSON, Perfetto, OTF2, text or tables, and raw events.
//!
//! ```no_run
//! use omptrace_trace_format::Reader;
//! use omptrace_viewer_export::{ConvertOptions, Format, convert};
//!
//! let trace = Reader::open("stencil.4242.omptrace".as_ref())?;
//! let chrome = Format::by_name("chrome").expect("a format");
//! let out = Box::new(std::fs::File::create("stencil.json")?);
//! convert(&[&trace], chrome, &ConvertOptions::default(), out, &mut |_events| {})?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Exporters see only [items](omptrace_timeline::model::Item), interpretation sees only events. Nothing here prints.
#![forbid(unsafe_code)]

mod chrome;
mod convert;
mod convert_segments;
mod dump;
mod firefox;
mod folded;
mod format;
mod otf2;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
mod phase_frames;
mod pprof;
mod replay;
mod text;
mod writer;

pub use convert::{convert, convert_split, convert_to_folder};
pub use dump::{dump_json, dump_text};
pub use format::convert_options::ConvertOptions;
pub use format::options::{FolderParts, FormatOption, FormatOptions};
pub use format::{FORMATS, Format};
#[cfg(feature = "parquet")]
pub use omptrace_columns::{JobPart, splits};
pub use writer::split_output::NextFile;
