//! What a user wants of a conversion.

use std::num::NonZero;

use omptrace_symbols as symbols;
use omptrace_symbols::parallel::processors;
use omptrace_timeline::filter::Selection;

use crate::format::options::FormatOptions;
use crate::writer::buffers::Writer;
use crate::writer::output;
use crate::writer::output::Output;

/// How to convert.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Compress the output with gzip.
    pub gzip: bool,
    /// Where to look for names of code: for traces that bring none along, and for all where directories are given.
    pub symbols: symbols::Options,
    /// Show each chunk that a thread gets of a loop that is not static.
    pub chunks: bool,
    /// The part of the timeline that is exported.
    pub selection: Selection,
    /// Options that only one format has.
    pub format: FormatOptions,
    /// Of a format that is tables, only this part, from 1, of that number of parts `n`: every `n`-th process.
    pub part: Option<(NonZero<usize>, NonZero<usize>)>,
    /// How many threads may work at once, as many as there are CPUs where it is `None`. The export is the same.
    pub threads: Option<NonZero<usize>>,
    /// Events of a segment, at least, where a file is written in segments;
    /// [`MIN_SEGMENT_EVENTS`](omptrace_timeline::MIN_SEGMENT_EVENTS) where it is `None`.
    pub min_segment_events: Option<u64>,
}

impl ConvertOptions {
    pub(crate) fn threads(&self) -> usize {
        self.threads.map_or_else(processors, NonZero::get)
    }

    /// Whether others decode ahead and write behind.
    pub(crate) fn is_parallel(&self) -> bool {
        self.threads() > 1
    }

    /// Compresses what is written into `out` where that is wanted.
    pub(crate) fn compressed(&self, out: Writer) -> Writer {
        if self.gzip { output::gzip(out) } else { out }
    }

    /// The output of a format, which writes into `out`.
    pub(crate) fn output(&self, out: Writer) -> Output {
        if self.is_parallel() { Output::behind(out) } else { Output::new(out) }
    }
}
