//! Interprets traces into a format's sink.

use std::io;

use omptrace_symbols::Table;
use omptrace_timeline::model::Sink;
use omptrace_timeline::{self as timeline, KeptArguments, Report, handed_over};
use omptrace_trace_format::Reader;

use crate::format::Format;
use crate::format::convert_options::ConvertOptions;

/// Interprets all processes, one after another, into `sink`, and finishes the sink.
pub(crate) fn replay_all(
    inputs: &[&Reader],
    format: &Format,
    options: &ConvertOptions,
    sink: Box<dyn Sink>,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Report> {
    replay(format, options, 1, sink, &mut |symbols, manner, sink| {
        timeline::replay_with(inputs, symbols, manner, sink, progress)
    })
}

/// An interpretation into this sink, with these symbol names.
pub(crate) type Interpret<'a> =
    dyn FnMut(&dyn Fn(&Reader) -> Table, timeline::Manner, &mut dyn Sink) -> Report + 'a;

/// Interprets the part that `options` select into `sink`, which has the given `format`, and finishes the sink. This is
/// the work of one of `workers`.
pub(crate) fn replay(
    format: &Format,
    options: &ConvertOptions,
    workers: usize,
    sink: Box<dyn Sink>,
    interpret: &mut Interpret<'_>,
) -> io::Result<Report> {
    let mut sink = options.selection.of(sink);
    let threads = options.threads() / workers;
    let manner = timeline::Manner {
        chunks: options.chunks,
        max_depth: format.max_depth,
        ahead: threads > 1,
        window: options.selection.window,
        ..timeline::Manner::default()
    };
    let symbols = |reader: &Reader| Table::of(reader, &options.symbols);
    // With two CPUs, decoding and writing leave no CPU for a thread that encodes.
    let report = handed_over(vec![&mut *sink], usize::from(threads > 2), KeptArguments::All, |sink| {
        interpret(&symbols, manner, sink)
    });
    sink.finish()?;
    Ok(report)
}
