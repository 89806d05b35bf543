//! The choice between the events of traces and the summaries stored in them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use omptrace_analysis::Input;
use omptrace_analysis::summary::Summary;
use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::Reader;

use crate::input::{inputs, launches};
use crate::output::failure::Result;
use crate::system::fd_limit;

/// With more traces, nothing is replayed unless the user requests it.
pub(crate) const MAX_REPLAYED: usize = 64;

/// What is read of traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadFrom {
    // Summaries where traces have them; events for what needs them, of up to `MAX_REPLAYED` traces.
    #[default]
    Auto,
    // Summaries where traces have them. Nothing is replayed.
    Summaries,
    // Events, also where traces have summaries.
    Events,
}

/// Where numbers come from.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct SourceOptions {
    /// Whether to read the summaries that `record` and `recover` store in the traces, or the events themselves; the
    /// result is the same
    #[arg(long, value_name = "WHAT", default_value_t, value_enum)]
    pub(crate) from: ReadFrom,
}

/// What is needed in addition to sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Nothing else.
    Sums,
    /// A replay.
    Replay,
    /// A part of the run, or other names, which summaries do not contain.
    Events,
}

/// Open traces, and summaries of other traces.
#[derive(Debug)]
pub(crate) struct Sources {
    of_each: Vec<(Option<Reader>, Option<Summary>)>,
}

impl Sources {
    /// Opens the inputs, as far as needed.
    ///
    /// # Errors
    /// Like [`inputs::traces`] and [`inputs::open`].
    pub(crate) fn open(paths: &[PathBuf], from: ReadFrom, wanted: Wanted) -> Result<Sources> {
        let paths = inputs::traces(paths)?;
        let has_summaries = from != ReadFrom::Events && wanted != Wanted::Events;
        let summaries: Vec<Option<Summary>> = match has_summaries {
            // If a trace cannot be read, opening it below fails with the reason.
            true => in_parallel(paths.iter().collect(), |path: &PathBuf| Summary::read(path).ok().flatten()),
            false => paths.iter().map(|_| None).collect(),
        };
        let replays = has_summaries
            && wanted == Wanted::Replay
            && from == ReadFrom::Auto
            && paths.len() <= MAX_REPLAYED;
        if let [Some(summary)] = &summaries[..]
            && (summary.has_alone() || !replays)
        {
            let summary = Some(summary.clone());
            return Ok(Sources { of_each: vec![(None, summary)] });
        }
        let _ = fd_limit::allow_most();
        let is_alone = paths.len() == 1;
        let of_each = paths.iter().zip(summaries).map(|(path, summary)| {
            let is_usable =
                |summary: &Summary| (is_alone || summary.is_movable()) && (!replays || summary.has_phases());
            let summary = summary.filter(is_usable);
            let reader = match replays || summary.is_none() {
                true => Some(inputs::open(path)?),
                false => None,
            };
            Ok((reader, summary))
        });
        Ok(Sources { of_each: of_each.collect::<Result<_>>()? })
    }

    /// The inputs of the analysis.
    pub(crate) fn inputs(&self) -> Vec<Input<'_>> {
        self.of_each
            .iter()
            .map(|(trace, summary)| Input { trace: trace.as_ref(), summary: summary.as_ref() })
            .collect()
    }

    /// The open traces.
    pub(crate) fn readers(&self) -> Vec<&Reader> {
        self.of_each.iter().filter_map(|(trace, _)| trace.as_ref()).collect()
    }

    /// The launches to which the traces belong, as indexes of inputs, in the order of their starts; a single launch if
    /// not all traces are open.
    pub(crate) fn launches(&self) -> Vec<Vec<usize>> {
        let readers = self.readers();
        match readers.len() == self.of_each.len() {
            true => launches::of(&readers),
            false => vec![(0..self.of_each.len()).collect()],
        }
    }

    /// The start of the first process, as in its trace; empty if no trace contains it.
    pub(crate) fn began(&self) -> &str {
        let began = self.of_each.iter().filter_map(|(trace, summary)| {
            let of_trace = trace.as_ref().and_then(|reader| reader.metadata().start.as_deref());
            of_trace.or_else(|| summary.as_ref()?.began())
        });
        began.min().unwrap_or_default()
    }
}
