//! The processes to analyse, and the results of the first pass over them.

use std::path::PathBuf;

use omptrace_timeline::model::Ns;
use omptrace_timeline::{Report, Start};
use omptrace_trace_format::Reader;

use crate::answers::mergeable::MergeableAnswers;
use crate::constructs::counters::CounterSums;
use crate::constructs::functions::FunctionSums;
use crate::constructs::phases::Phases;
use crate::constructs::ranges::Ranges;
use crate::constructs::sums::Sums;
use crate::overview::Gathered;
use crate::overview::levels::Levels;
use crate::passes::replay_log::ReplayLog;
use crate::rank_waits::spans::ProcessSpans;
use crate::summary::{Alone, Summary};

/// A process to analyse: its trace, its summary, or both. A summary replaces the first pass.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Its trace.
    pub trace: Option<&'a Reader>,
    /// Its summary.
    pub summary: Option<&'a Summary>,
}

impl<'a> Input<'a> {
    /// Traces without summaries.
    pub fn traces(readers: &[&'a Reader]) -> Vec<Input<'a>> {
        let of = |reader: &&'a Reader| Input { trace: Some(*reader), summary: None };
        readers.iter().map(of).collect()
    }

    /// The paths of the traces in the timeline's order, so that a process's number is the index of its path.
    pub fn paths_in_order(inputs: &[Input<'_>]) -> Vec<PathBuf> {
        let mut starts: Vec<Start> = inputs.iter().map(Input::start).collect();
        starts.sort();
        starts.into_iter().map(Start::into_path).collect()
    }

    pub(super) fn start(&self) -> Start {
        match (self.trace, self.summary) {
            (Some(reader), _) => Start::of(reader),
            (None, Some(summary)) => summary.start(),
            (None, None) => Start::default(),
        }
    }
}

/// The results of the first pass over some processes.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// By process, in the timeline's order.
    pub(super) reports: Vec<Report>,
    pub(super) sums: Sums,
    pub(super) part: MergeableAnswers,
    pub(super) gathered: Vec<Gathered>,
    /// Of each process, where waits of ranks are charged.
    pub(super) rank_spans: Vec<ProcessSpans>,
    pub(super) levels: Levels,
    pub(super) phases: Phases,
    pub(super) ranges: Ranges,
    pub(super) functions: FunctionSums,
    pub(super) counters: CounterSums,
    /// For a single process: the part of its summary that is about this process alone.
    pub(super) alone: Option<Alone>,
    pub(super) earliest: Ns,
    /// For a single process: what the second pass needs, if it was kept; of each segment.
    pub(super) replay_logs: Vec<ReplayLog>,
}

impl Merged {
    /// Adds the results of the next processes.
    pub(super) fn merge(&mut self, next: Merged) {
        self.reports.extend(next.reports);
        self.sums.merge(next.sums);
        self.part.merge(next.part);
        self.gathered.extend(next.gathered);
        self.rank_spans.extend(next.rank_spans);
        self.levels.extend(next.levels);
        self.phases.merge(next.phases);
        self.ranges.merge(next.ranges);
        self.functions.merge(next.functions);
        self.counters.merge(next.counters);
        self.alone = next.alone;
        self.earliest = next.earliest;
        self.replay_logs = next.replay_logs;
    }
}
