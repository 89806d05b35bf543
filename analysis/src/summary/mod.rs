//! Summaries: what the analysis of one process found, kept in its trace, so that thousands of traces need not be read.
//!
//! ```text
//! trace --> first pass --> sums, part, functions, phases --\
//!       \-> second pass: what is known of it alone ---------> Summary, in the trace
//! summaries of other processes ---------------------------> merged as those of traces --> Stats
//! ```
//!
//! A summary has all that the first pass finds, so that what processes merge to is that of their traces, byte for byte. It is
//! used by the version of the analysis that made it, and by no other. Times count from the session's start.

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

use crate::answers::part::Part;
use crate::constructs::counters::CounterSums;
use crate::constructs::functions::FunctionSums;
use crate::constructs::phases::Phases;
use crate::constructs::ranges::RangeStats;
use crate::constructs::steps::Steps;
use crate::constructs::sums::Sums;
use crate::constructs::wire;
use crate::model::answers::{Answers, Finding, LoopAnswer, NotPredicted, OtherThreads, TaskRegion, WhatIf};
use crate::model::stats::{PhaseStats, Stats};

/// The version of the analysis: that of the program, and a number that grows with each change between two releases.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/18");

/// Intervals of phases in a summary, at most. A process with more has its sums there, and its phases in its events only.
const MAX_INTERVALS: usize = 512;

/// Checkpoints take one byte of the file in as many, and this many bytes at most. Of more, some are left out.
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

/// The facts about a process that are needed before its sums are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Head {
    version: String,
    rank: Option<u32>,
    /// See [`Start::new`].
    realtime_ns: u64,
    uncertainty_ns: u64,
    /// See [`Start::on_host`]. Summaries of version 0.2.0 have neither.
    #[serde(default)]
    boot: String,
    #[serde(default)]
    raw_ns: u64,
    /// When the session began, as the trace says it.
    began: Option<String>,
    name: String,
    runtime: String,
    ending: Option<End>,
    events: u64,
    lost: u64,
    /// The last event's time.
    end_ns: Ns,
    /// What is missing or was repaired: how bad that is, and words about it.
    gaps: Vec<(u8, String)>,
    no_samples: Option<String>,
    /// No time would be another one on a timeline that begins earlier.
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

/// What the first pass found, and what both passes found of the process alone.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Body {
    #[serde(with = "wire")]
    pub(crate) sums: Sums,
    pub(crate) part: Part,
    pub(crate) functions: FunctionSums,
    #[serde(default)]
    pub(crate) counters: CounterSums,
    pub(crate) phases: Option<Phases>,
    pub(crate) alone: Option<Alone>,
}

/// What [`Stats::summarised`] finds.
pub(crate) struct Summarised {
    pub(crate) body: Body,
    pub(crate) report: Report,
    /// See [`Earliest`].
    pub(crate) earliest: Ns,
    pub(crate) stats: Stats,
    /// Phases that were not analysed.
    pub(crate) more_phases: usize,
}

/// What replays of one process show: fields of [`Stats`].
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

    /// Puts it where it belongs; the phases that were not analysed are returned.
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

/// Why a trace has no summary.
#[derive(Debug)]
#[non_exhaustive]
pub enum NoSummary {
    /// Names are looked up when the trace is read, and may be others then.
    NamesLookedUpLater,
    /// Its process runs.
    Running,
    /// It was not written.
    Write(WriteError),
}

impl fmt::Display for NoSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSummary::NamesLookedUpLater => {
                f.write_str("names of functions are looked up each time the trace is read (omptrace symbolize stores them)")
            }
            NoSummary::Running => f.write_str("the process is still running"),
            NoSummary::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NoSummary {}

/// The summary of a trace that is not written yet, and the numbers that come with it.
#[derive(Debug)]
pub struct NewSummary {
    head: Head,
    body: Body,
    /// Places in the trace where reading can begin.
    checkpoints: Vec<checkpoint::Packed>,
    /// The numbers of this trace.
    pub stats: Stats,
}

impl NewSummary {
    /// Analyses a trace. `alone`: also what is known of the process alone, which takes a second pass.
    ///
    /// # Errors
    /// The trace can have none.
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

    /// Writes it into the trace, with checkpoints. Where there is no room for all of it, what is known of the process alone is left
    /// out.
    ///
    /// # Errors
    /// The trace has none then.
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

    /// The head, and the rest behind the first line's end.
    fn text(&mut self) -> Vec<u8> {
        self.head.has_phases = self.body.phases.is_some();
        self.head.has_alone = self.body.alone.is_some();
        let json = |value: serde_json::Result<Vec<u8>>| value.unwrap_or_default();
        let (head, body) = (serde_json::to_vec(&self.head), serde_json::to_vec(&self.body));
        [json(head), b"\n".to_vec(), json(body)].concat()
    }
}

impl Summary {
    /// The summary of the trace at `path`; `None` where it has none of this version.
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

    /// Whether it has all that both passes find of the process alone.
    pub fn has_alone(&self) -> bool {
        self.head.has_alone
    }

    /// Whether it can replace the first pass over several processes where a second one reads events.
    pub fn has_phases(&self) -> bool {
        self.head.has_phases
    }

    /// Whether it can be merged with those of other processes.
    pub fn is_movable(&self) -> bool {
        self.head.is_movable
    }

    /// When the session began, as the trace says it.
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

    /// The last event's time on a timeline on which the session began at `start`, and what was wrong with the trace.
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

    /// The sums of the process, which gets this number, on a timeline on which its session began at `start`; `None` where they
    /// make no sense.
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

/// Whether sums of some dozens of such texts are no larger than a number can be. 2^58 ns are 9 years of thread time.
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
        // Short ones are not parsed twice.
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

/// The head and the rest of a summary's text.
fn halves(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == b'\n');
    let end = end.unwrap_or(text.len());
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

impl Body {
    pub(crate) fn of(sums: &Sums, part: &Part, functions: &FunctionSums, phases: &Phases) -> Body {
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

/// Whether a trace's times would be the same, but for a constant, on a timeline that begins earlier: nothing comes before the
/// session's start. `earliest` is the begin of the first operation of a device.
fn is_movable(reader: &Reader, earliest: Ns) -> bool {
    let begins_after = |stream| {
        let first = reader.events(stream).next();
        first.is_none_or(|first| reader.clock().ns(first.ticks) >= 0)
    };
    earliest > 0 && reader.streams().iter().all(begins_after)
}

/// Finds the begin of the first operation of a device.
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
