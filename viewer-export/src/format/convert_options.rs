//! The options of a conversion.

use std::num::NonZero;

use omptrace_symbols as symbols;
use omptrace_symbols::parallel::processors;
use omptrace_timeline::filter::Selection;

use crate::format::options::FormatOptions;
use crate::writer::buffers::Writer;
use crate::writer::output;
use crate::writer::output::Output;

/// Options of a conversion.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Compress the output with gzip.
    pub gzip: bool,
    /// Where symbol names are looked up: for traces without stored names, and for all traces if directories are given.
    pub symbols: symbols::Options,
    /// Shows each chunk of dynamic and guided loops.
    pub chunks: bool,
    /// The part of the timeline that is exported.
    pub selection: Selection,
    /// Options of single formats.
    pub format: FormatOptions,
    /// For table formats: writes only one of `n` parts, counted from 1, which contains every `n`-th process.
    pub part: Option<(NonZero<usize>, NonZero<usize>)>,
    /// Maximum number of threads; by default, the number of CPUs. Does not change the export.
    pub threads: Option<NonZero<usize>>,
    /// Minimum number of events per segment, if a file is written in segments;
    /// [`MIN_SEGMENT_EVENTS`](omptrace_timeline::MIN_SEGMENT_EVENTS) by default.
    pub min_segment_events: Option<u64>,
}

impl ConvertOptions {
    pub(crate) fn threads(&self) -> usize {
        self.threads.map_or_else(processors, NonZero::get)
    }

    /// Whether other threads decode events ahead and write output.
    pub(crate) fn is_parallel(&self) -> bool {
        self.threads() > 1
    }

    /// `out`, with compression if requested.
    pub(crate) fn compressed(&self, out: Writer) -> Writer {
        if self.gzip { output::gzip(out) } else { out }
    }

    /// A format's output, which writes to `out`.
    pub(crate) fn output(&self, out: Writer) -> Output {
        if self.is_parallel() { Output::behind(out) } else { Output::new(out) }
    }
}
