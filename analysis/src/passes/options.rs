//! The selection of what is analysed, and the reasons why there may be no answer.

use std::error::Error;
use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;

use omptrace_symbols as symbols;
use omptrace_timeline::MIN_SEGMENT_EVENTS;
use omptrace_timeline::model::Ns;
use omptrace_trace_format::Reader;

use crate::model::stats::Analysed;

/// Maximum number of events between two checkpoints, which take a fraction of a second to read.
const MAX_CHECKPOINT_DISTANCE: u64 = 1 << 19;
/// Approximate number of checkpoints in shorter traces: enough to divide the trace among that many CPUs.
const CHECKPOINTS: u64 = 32;
/// Minimum number of bytes of an unpacked event.
pub(super) const EVENT_BYTES: u64 = 8;

/// Which part of a run is analysed, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where symbol names are looked up.
    pub symbols: symbols::Options,
    /// The number of threads that each process could have used. If more threads were busy at one time, their number is
    /// used.
    pub threads: Option<NonZero<u32>>,
    /// Analyses only this half-open interval, in nanoseconds since the timeline's start.
    pub window: Option<(Ns, Ns)>,
    /// Analyses only the time from the start of the first of these steps to the end of the second. Steps are counted
    /// from 1.
    pub steps: Option<(u64, u64)>,
    /// Analyses only the time during which a thread of any process was in the phase with this name.
    pub phase: Option<String>,
    /// Analyses only these threads, given by name or number; all threads if empty.
    pub selected: Vec<String>,
    /// Minimum number of events per segment; `None` for a reasonable default. Does not change the results.
    pub min_segment_events: Option<u64>,
}

impl Options {
    pub(super) fn analysed(&self) -> Option<Analysed> {
        let is_all =
            self.window.is_none() && self.steps.is_none() && self.phase.is_none() && self.selected.is_empty();
        let (begin, end) = self.window.unzip();
        (!is_all).then(|| Analysed {
            window_begin_ns: begin,
            window_end_ns: end.filter(|end| *end < Ns::MAX),
            phase: self.phase.clone(),
            first_step: self.steps.map(|(first, _)| first),
            last_step: self.steps.map(|(_, last)| last),
            threads: self.selected.clone(),
        })
    }
}

/// Why there is no answer: usually because the selected part is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The timeline ends before the window.
    Window {
        /// The timeline's end.
        end: Ns,
    },
    /// No phase has this name.
    Phase {
        /// The names of all phases.
        known: Vec<String>,
    },
    /// There are no steps with these numbers.
    Steps {
        /// The number of steps.
        count: u64,
    },
    /// The summary of the trace at this path is invalid.
    Summary(PathBuf),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::Window { end } => {
                write!(f, "the window is empty: the timeline ends at {}s", *end as f64 / 1e9)
            }
            NoAnswer::Phase { .. } => f.write_str("the trace has no phase of that name"),
            NoAnswer::Steps { count: 0 } => f.write_str("the trace has no time steps"),
            NoAnswer::Steps { count } => {
                write!(f, "the trace does not have these time steps: its last time step is {count}")
            }
            NoAnswer::Summary(path) => {
                write!(f, "the summary in {} is inconsistent", path.display())
            }
        }
    }
}

impl Error for NoAnswer {}

/// The number of events between two checkpoints of the trace of `reader`.
pub(super) fn checkpoint_distance(reader: &Reader) -> u64 {
    distance_of_at_least(MIN_SEGMENT_EVENTS, reader)
}

/// The same, but at least this number.
pub(super) fn distance_of_at_least(least: u64, reader: &Reader) -> u64 {
    let events = reader.summary().event_bytes / EVENT_BYTES;
    (events / CHECKPOINTS).clamp(least.min(MAX_CHECKPOINT_DISTANCE), MAX_CHECKPOINT_DISTANCE)
}
