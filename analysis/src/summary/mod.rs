//! Summaries: the results of analysing one process, stored in its trace, so that the events of thousands of traces need
//! not be read.
//!
//! ```text
//! trace --> first pass --> sums, part, functions, phases --\
//!       \-> second pass: results about the process alone ---> Summary, in the trace
//! summaries of other processes ---------------------------> merged as those of traces --> Stats
//! ```
//!
//! A summary contains all results of the first pass, so summaries merge to the same results as their traces, byte for
//! byte. Only the version of the analysis that wrote a summary uses it. Times are relative to the session's start.

pub(crate) mod map_as_pairs;
pub(crate) mod static_str;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use omptrace_symbols as symbols;
use omptrace_timeline::model::{Item, Ns, Sink, Wants};
use omptrace_timeline::{ProcessReport, Report, Start, why_no_samples};
use omptrace_trace_format::checkpoint::{self, thinned};
pub use omptrace_trace_format::summary::WriteError;
use omptrace_trace_format::summary::{self as stored, Packed};
use omptrace_trace_format::{Ending, Reader, Severity};
use serde::{Deserialize, Serialize};

use crate::answers::mergeable::MergeableAnswers;
use crate::constructs::counters::CounterSums;
use crate::constructs::functions::FunctionSums;
use crate::constructs::phases::Phases;
use crate::constructs::ranges::RangeStats;
use crate::constructs::steps::Steps;
use crate::constructs::stored_sums;
use crate::constructs::sums::Sums;
use crate::model::answers::{Answers, Finding, LoopAnswer, NotPredicted, OtherThreads, TaskRegion, WhatIf};
use crate::model::stats::{PhaseStats, Stats};

/// The version of the analysis: the program's version, and a number that is increased whenever results change between
/// two releases.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/20");

/// Maximum number of phase intervals in a summary. If a process has more, its summary contains sums only, and phases
/// are read from its events.
const MAX_INTERVALS: usize = 512;

/// Checkpoints take at most this many bytes, and at most one byte per this many bytes of the file. Further checkpoints
/// are left out.
const SHARE_OF_CHECKPOINTS: u64 = 100;
const MAX_CHECKPOINT_BYTES: u64 = 64 << 20;

/// A trace's summary, packed.
#[derive(Clone, Debug)]
pub struct Summary {
    path: PathBuf,
    pid: u32,
    head: Head,
    packed: Packed,
}

/// The facts about a process that are needed before its sums are decoded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Head {
    version: String,
    rank: Option<u32>,
    /// See [`Start::new`].
    realtime_ns: u64,
    uncertainty_ns: u64,
    /// See [`Start::on_host`]. Summaries of version 0.2.0 contain neither this field nor the next.
    #[serde(default)]
    boot: String,
    #[serde(default)]
    raw_ns: u64,
    /// The start of the session, as in the trace.
    began: Option<String>,
    name: String,
    runtime: String,
    ending: Option<End>,
    events: u64,
    lost: u64,
    /// The time of the last event.
    end_ns: Ns,
    /// Missing or repaired parts of the trace: severity and description.
    gaps: Vec<(u8, String)>,
    no_samples: Option<String>,
    /// Times stay the same, up to a constant, if the timeline starts earlier.
    is_movable: bool,
    has_phases: bool,
    has_alone: bool,
}

/// How the session ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum End {
    Ended,
    Killed(i32),
    DidNotFinish,
}

/// The results of the first pass, and the results of both passes about the process alone.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Body {
    #[serde(with = "stored_sums")]
    pub(crate) sums: Sums,
    pub(crate) part: MergeableAnswers,
    pub(crate) functions: FunctionSums,
    #[serde(default)]
    pub(crate) counters: CounterSums,
    pub(crate) phases: Option<Phases>,
    pub(crate) alone: Option<Alone>,
}

/// The result of [`Stats::summarised`].
pub(crate) struct Summarised {
    pub(crate) body: Body,
    pub(crate) report: Report,
    /// See [`Earliest`].
    pub(crate) earliest: Ns,
    pub(crate) stats: Stats,
    /// Number of phases that were not analysed.
    pub(crate) more_phases: usize,
}

/// Results that require the replay of a single process: fields of [`Stats`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Alone {
    findings: Vec<Finding>,
    what_if: Vec<WhatIf>,
    other_threads: Vec<OtherThreads>,
    not_predicted: Vec<NotPredicted>,
    task_regions: Vec<TaskRegion>,
    loops: Vec<LoopAnswer>,
    replay_error_ns: Option<i64>,
    phases: Vec<PhaseStats>,
    more_phases: usize,
    #[serde(default)]
    ranges: Vec<RangeStats>,
    #[serde(default)]
    steps: Option<Steps>,
}

impl Alone {
    fn of(stats: &Stats, more_phases: usize) -> Alone {
        let answers = &stats.answers;
        Alone {
            findings: answers.findings.clone(),
            what_if: answers.what_if.clone(),
            other_threads: answers.other_threads.clone(),
            not_predicted: answers.not_predicted.clone(),
            task_regions: answers.task_regions.clone(),
            loops: answers.loops.clone(),
            replay_error_ns: answers.replay_error_ns,
            phases: stats.phases.clone(),
            more_phases,
            ranges: stats.ranges.clone(),
            steps: stats.steps.clone(),
        }
    }

    /// Moves the results into `stats`. Returns the number of phases that were not analysed.
    pub(crate) fn into(self, stats: &mut Stats) -> usize {
        stats.answers = Answers {
            findings: self.findings,
            what_if: self.what_if,
            other_threads: self.other_threads,
            not_predicted: self.not_predicted,
            task_regions: self.task_regions,
            loops: self.loops,
            replay_error_ns: self.replay_error_ns,
            ..std::mem::take(&mut stats.answers)
        };
        stats.phases = self.phases;
        stats.ranges = self.ranges;
        let instances = stats.steps.take().map_or(Vec::new(), |steps| steps.instances);
        stats.steps = self.steps.map(|steps| Steps { instances, ..steps });
        self.more_phases
    }
}

/// Why no summary of a trace was made.
#[derive(Debug)]
#[non_exhaustive]
pub enum NoSummary {
    /// Names are looked up when the trace is read, so they may differ then.
    NamesLookedUpLater,
    /// The process is still running.
    Running,
    /// Writing failed.
    Write(WriteError),
}

impl fmt::Display for NoSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSummary::NamesLookedUpLater => {
                f.write_str("the trace does not contain the names of functions, so names are looked up each time the trace is read; to store the names in the trace, use omptrace symbolize")
            }
            NoSummary::Running => f.write_str("the process is still running"),
            NoSummary::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NoSummary {}

/// A summary that has not been written yet, and the statistics of the same trace.
#[derive(Debug)]
pub struct NewSummary {
    head: Head,
    body: Body,
    /// The checkpoints: places in the trace where reading can start.
    checkpoints: Vec<checkpoint::Packed>,
    /// The numbers of this trace.
    pub stats: Stats,
}

impl NewSummary {
    /// Analyses a trace. `alone`: also computes the results about the process alone, which takes a second pass.
    ///
    /// # Errors
    /// No summary can be made of this trace.
    pub fn of(reader: &Reader, alone: bool) -> Result<NewSummary, NoSummary> {
        if !reader.metadata().other.contains_key(symbols::KEY) {
            return Err(NoSummary::NamesLookedUpLater);
        }
        let ending = match reader.ending() {
            Ending::Running => return Err(NoSummary::Running),
            Ending::Ended => Some(End::Ended),
            Ending::Killed(signal) => Some(End::Killed(signal)),
            Ending::DidNotFinish => Some(End::DidNotFinish),
            Ending::Unknown(_) => None,
        };
        let Summarised { mut body, report, earliest, stats, more_phases } = Stats::summarised(reader, alone);
        body.alone = alone.then(|| Alone::of(&stats, more_phases));
        let of_process = report.processes.first().cloned().unwrap_or_default();
        let gaps = of_process.notes().into_iter();
        let head = Head {
            version: VERSION.to_owned(),
            rank: reader.metadata().rank(),
            realtime_ns: reader.clock().start_realtime_ns(),
            uncertainty_ns: reader.clock().realtime_uncertainty_ns(),
            boot: reader.metadata().machine.as_ref().map_or_else(String::new, |machine| machine.boot.clone()),
            raw_ns: reader.clock().start_raw_ns(),
            began: reader.metadata().start.clone(),
            ending,
            events: of_process.events,
            lost: of_process.lost,
            end_ns: report.end,
            gaps: gaps.map(|(severity, text)| (severity as u8, text)).collect(),
            no_samples: why_no_samples(reader),
            is_movable: is_movable(reader, earliest),
            has_phases: false,
            has_alone: false,
            name: of_process.name,
            runtime: of_process.runtime,
        };
        Ok(NewSummary { head, body, checkpoints: of_process.checkpoints, stats })
    }

    /// Writes the summary and checkpoints into the trace. If there is not enough room, leaves out the results about the
    /// process alone.
    ///
    /// # Errors
    /// If writing fails, the trace has no summary.
    pub fn write(&mut self, reader: &Reader) -> Result<(), NoSummary> {
        let mut text = self.text();
        if self.body.alone.is_some() && stored::is_too_large(&text) {
            self.body.alone = None;
            text = self.text();
        }
        let room = reader.summary().file_bytes / SHARE_OF_CHECKPOINTS;
        let checkpoints = thinned(std::mem::take(&mut self.checkpoints), room.min(MAX_CHECKPOINT_BYTES));
        stored::write(reader, &text, &checkpoints).map_err(NoSummary::Write)
    }

    /// The head as one line, followed by the rest.
    fn text(&mut self) -> Vec<u8> {
        self.head.has_phases = self.body.phases.is_some();
        self.head.has_alone = self.body.alone.is_some();
        let json = |value: serde_json::Result<Vec<u8>>| value.unwrap_or_default();
        let (head, body) = (serde_json::to_vec(&self.head), serde_json::to_vec(&self.body));
        [json(head), b"\n".to_vec(), json(body)].concat()
    }
}

impl Summary {
    /// The summary of the trace at `path`; `None` if the trace has no summary of this version.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> io::Result<Option<Summary>> {
        let Some(packed) = stored::read(path)? else {
            return Ok(None);
        };
        let text = packed.text().unwrap_or_default();
        let (head, _) = halves(&text);
        let head: Option<Head> = serde_json::from_slice(head).ok();
        let head = head.filter(|head| head.version == VERSION);
        Ok(head.map(|head| Summary { path: path.to_owned(), pid: packed.pid, head, packed }))
    }

    /// The trace.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the summary contains the results of both passes about the process alone.
    pub fn has_alone(&self) -> bool {
        self.head.has_alone
    }

    /// Whether the summary can replace the first pass over several processes if a second pass reads events.
    pub fn has_phases(&self) -> bool {
        self.head.has_phases
    }

    /// Whether the summary can be merged with summaries of other processes.
    pub fn is_movable(&self) -> bool {
        self.head.is_movable
    }

    /// The start of the session, as in the trace.
    pub fn began(&self) -> Option<&str> {
        self.head.began.as_deref()
    }

    pub(crate) fn why_no_samples(&self) -> Option<String> {
        self.head.no_samples.clone()
    }

    pub(crate) fn start(&self) -> Start {
        let head = &self.head;
        Start::new(head.rank, self.pid, &self.path, head.realtime_ns, head.uncertainty_ns)
            .on_host(&head.boot, head.raw_ns)
    }

    /// The time of the last event on a timeline on which the session starts at `start`, and the problems of the trace.
    pub(crate) fn report(&self, start: Ns) -> (Ns, ProcessReport) {
        let head = &self.head;
        let ending = head.ending.map(|ending| match ending {
            End::Ended => Ending::Ended,
            End::Killed(signal) => Ending::Killed(signal),
            End::DidNotFinish => Ending::DidNotFinish,
        });
        let severity = |number: u8| match number {
            0 => Severity::Note,
            1 => Severity::Warning,
            _ => Severity::Error,
        };
        let gaps = head.gaps.iter();
        let report = ProcessReport {
            name: head.name.clone(),
            runtime: head.runtime.clone(),
            ending,
            events: head.events,
            lost: head.lost,
            summarised: gaps.map(|(number, text)| (severity(*number), text.clone())).collect(),
            ..ProcessReport::default()
        };
        (head.end_ns.saturating_add(start), report)
    }

    /// The sums of the process, renumbered as `number`, on a timeline on which its session starts at `start`; `None` if
    /// they are invalid.
    pub(crate) fn body(&self, number: u32, start: Ns) -> Option<Body> {
        let text = self.packed.text()?;
        let (_, body) = halves(&text);
        if !has_sensible_numbers(body) {
            return None;
        }
        let mut body: Body = serde_json::from_slice(body).ok()?;
        body.sums = body.sums.numbered(number);
        body.part.shift(start);
        if let Some(phases) = &mut body.phases {
            phases.shift(start);
        }
        Some(body)
    }
}

/// Whether the numbers are so small that the sum over some dozens of such summaries does not overflow. 2^58 ns are 9
/// years of thread time.
fn has_sensible_numbers(json: &[u8]) -> bool {
    const MAX: u64 = 1 << 58;
    let (mut is_text, mut is_escaped, mut digits) = (false, false, 0_usize);
    for (at, byte) in json.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'0'..=b'9' if !is_text => {
                digits += 1;
                continue;
            }
            _ => {}
        }
        // Shorter numbers fit anyway.
        if digits > 17 {
            let number = std::str::from_utf8(&json[at - digits..at]).ok();
            let number = number.and_then(|number| number.parse::<u64>().ok());
            if number.is_none_or(|number| number > MAX) {
                return false;
            }
        }
        digits = 0;
    }
    true
}

/// The head line and the rest of a summary's text.
fn halves(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == b'\n');
    let end = end.unwrap_or(text.len());
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

impl Body {
    pub(crate) fn of(
        sums: &Sums,
        part: &MergeableAnswers,
        functions: &FunctionSums,
        phases: &Phases,
    ) -> Body {
        Body {
            sums: sums.clone(),
            part: part.clone(),
            functions: functions.clone(),
            counters: CounterSums::default(),
            phases: (phases.intervals() <= MAX_INTERVALS).then(|| phases.clone()),
            alone: None,
        }
    }
}

/// Whether times stay the same, up to a constant, if the timeline starts earlier: nothing comes before the session's
/// start. `earliest`: the start of the first device operation.
fn is_movable(reader: &Reader, earliest: Ns) -> bool {
    let begins_after = |stream| {
        let first = reader.events(stream).next();
        first.is_none_or(|first| reader.clock().ns(first.ticks) >= 0)
    };
    earliest > 0 && reader.streams().iter().all(begins_after)
}

/// Finds the start of the first device operation.
#[derive(Debug)]
pub(crate) struct Earliest(pub(crate) Ns);

impl Sink for Earliest {
    fn wants(&self) -> Wants {
        Wants::NONE
    }

    fn item(&mut self, item: &Item<'_>) {
        if let Item::Interval(interval) = item {
            self.0 = self.0.min(interval.begin);
        }
    }
}
