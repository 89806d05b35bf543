//! What becomes of a trace after the run: timeline, exports, raw facts, summary, soundness.
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
//! Exporters see only [`sink::Sink`] calls, interpretation sees only events. Nothing here prints.
#![forbid(unsafe_code)]

mod check;
mod chrome;
mod dump;
mod fast_map;
mod format;
mod info;
mod json;
mod names;
mod nothing;
mod output;
mod perfetto;
mod sections;
pub mod sink;
pub mod symbols;
mod text;
pub mod timeline;

use std::io::{self, Write};

use omptrace_trace_format::Reader;
use symbols::Table;

pub use check::{Finding, check};
pub use dump::{dump_json, dump_text};
pub use format::{FORMATS, Format};
pub use info::Info;
pub use timeline::{Cause, ProcessReport, Repair, Repairs, Report};

/// How to convert.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Compress the output with gzip.
    pub gzip: bool,
    /// Where to look for names of code: for traces that bring none along, and for all where folders are given.
    pub symbols: symbols::Options,
}

/// Converts `inputs` to one timeline in `format`. `progress` is told now and then how many events are done.
///
/// # Errors
/// The first error of writing to `out`. A damaged input is no error: the report says what was wrong with it.
pub fn convert(
    inputs: &[&Reader],
    format: &Format,
    options: &ConvertOptions,
    out: Box<dyn Write + Send>,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Report> {
    let out = if options.gzip { output::gzip(out) } else { out };
    let mut sink = format.sink(out);
    let symbols = |reader: &Reader| Table::of(reader, &options.symbols);
    let report = timeline::replay_with(inputs, &symbols, &mut *sink, progress);
    sink.finish()?;
    Ok(report)
}
