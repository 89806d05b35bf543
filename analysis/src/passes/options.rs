//! What is analysed, and why there may be no answer.

use std::error::Error;
use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;

use omptrace_symbols as symbols;
use omptrace_timeline::MIN_SEGMENT_EVENTS;
use omptrace_timeline::model::Ns;
use omptrace_trace_format::Reader;

use crate::model::stats::Analysed;

/// Events from one checkpoint to the next, at most: a fraction of a second to read.
const MAX_CHECKPOINT_DISTANCE: u64 = 1 << 19;
/// Checkpoints of a shorter trace, about: enough to divide it among as many CPUs.
const CHECKPOINTS: u64 = 32;
/// Bytes of an event, at least, before it is packed.
const EVENT_BYTES: u64 = 8;

/// The selection of what is analysed, and the ways of analysis.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where names are looked up.
    pub symbols: symbols::Options,
    /// The threads that each process could have run on. Where more were busy at one time, those count.
    pub threads: Option<NonZero<u32>>,
    /// Only the time from the first to before the second, in nanoseconds since the timeline's start.
    pub window: Option<(Ns, Ns)>,
    /// Only the time from the start of the first of these steps to the end of the second; they count from 1.
    pub steps: Option<(u64, u64)>,
    /// Only the time in which a thread of any process was in the phase of this name.
    pub phase: Option<String>,
    /// Only these threads are accounted for, by name or number; all where there are none.
    pub selected: Vec<String>,
    /// Events of a segment that one thread analyses, at least; `None` for as many as are worth it. The numbers are the same.
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

/// Why there is no answer: mostly, there is nothing where the user looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The timeline ends before the window.
    Window {
        /// When it ends.
        end: Ns,
    },
    /// No phase has the name.
    Phase {
        /// The names that there are.
        known: Vec<String>,
    },
    /// There are no such steps.
    Steps {
        /// How many there are.
        count: u64,
    },
    /// The summary of the trace at this path makes no sense.
    Summary(PathBuf),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::Window { end } => {
                write!(f, "the window is empty: the timeline ends at {}s", *end as f64 / 1e9)
            }
            NoAnswer::Phase { .. } => f.write_str("there is no phase of that name"),
            NoAnswer::Steps { count: 0 } => f.write_str("the trace has no time steps"),
            NoAnswer::Steps { count } => write!(f, "there are no such steps: the trace has {count}"),
            NoAnswer::Summary(path) => {
                write!(f, "the summary in {} is inconsistent", path.display())
            }
        }
    }
}

impl Error for NoAnswer {}

/// Events from one checkpoint to the next, in the trace of `reader`.
pub(super) fn checkpoint_distance(reader: &Reader) -> u64 {
    let events = reader.summary().event_bytes / EVENT_BYTES;
    (events / CHECKPOINTS).clamp(MIN_SEGMENT_EVENTS, MAX_CHECKPOINT_DISTANCE)
}
