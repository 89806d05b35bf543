//! The facts that a timeline was made of: events, losses, repairs, and how bad each is.

use std::collections::BTreeMap;

use omptrace_symbols::Problem;
use omptrace_trace_format::checkpoint::Packed;
use omptrace_trace_format::event::Event;
use omptrace_trace_format::{Diagnostic, DiagnosticKind, Ending, Severity};

use crate::devices::DeviceReport;
use crate::model::Ns;
use crate::model::repairs::{Cause, Repair, Repairs};
use crate::model::thread_introduction::ThreadIntroduction;
use crate::samples::availability::SampleSums;

/// The number of modules with the same problem that are listed one by one.
const FEW_MODULES: usize = 3;

/// The facts that a timeline was made of.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The processes, in the timeline's order.
    pub processes: Vec<ProcessReport>,
    /// The last event's time.
    pub end: Ns,
    /// How far the clocks of different processes may be apart; 0 for a single process.
    pub uncertainty_ns: u64,
    /// The size of the one file that was written, before compression; else 0.
    pub exported_bytes: u64,
    /// Arrows that lead from one file of a series to another: none shows them.
    pub cut_arrows: u64,
}

impl Report {
    /// The processes that were interpreted as [`Timeline::replay`](crate::Timeline::replay) takes them, counted from each first process.
    pub fn of_shares(shares: Vec<Report>) -> Report {
        let end = shares.iter().map(|share| share.end).max().unwrap_or(0);
        let mut shares: Vec<_> = shares.into_iter().map(|share| share.processes.into_iter()).collect();
        let mut processes = Vec::new();
        // The first share has as many as any.
        while let Some(process) = shares.first_mut().and_then(Iterator::next) {
            processes.push(process);
            processes.extend(shares[1..].iter_mut().filter_map(Iterator::next));
        }
        Report { processes, end, ..Report::default() }
    }
}

/// The facts that the timeline of one process was made of.
#[derive(Clone, Debug, Default)]
pub struct ProcessReport {
    /// The process's name in the timeline.
    pub name: String,
    /// The version of its OpenMP runtime; empty where it is not known.
    pub runtime: String,
    /// How the session ended.
    pub ending: Option<Ending>,
    /// The threads of its streams, in the order of the trace.
    pub threads: Vec<ThreadIntroduction>,
    /// Events read.
    pub events: u64,
    /// The events of each stream, in the order of the trace; empty unless [`crate::Manner::counts`] asks for them.
    pub counts: Vec<EventCounts>,
    /// Events that the tracer had lost.
    pub lost: u64,
    /// How many samples there are, and how many were lost.
    pub samples: SampleSums,
    /// Words about what turned tracing off: see [`omptrace_trace_format::Metadata::failure_message`].
    pub failure: Option<String>,
    /// Whether recording was off for a while, and then on again.
    pub paused: bool,
    /// The repairs.
    pub repairs: Repairs,
    /// The facts that the timelines of devices were made of, by number.
    pub devices: BTreeMap<i32, DeviceReport>,
    /// The flaws of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The modules whose code has no source lines, and why.
    pub unnamed: Vec<(String, Problem)>,
    /// Of a process that was not interpreted: what its summary says is missing or repaired.
    pub summarised: Vec<(Severity, String)>,
    /// Its checkpoints, where [`crate::Manner::checkpoints`] asks for them: see [`omptrace_trace_format::checkpoint`].
    pub checkpoints: Vec<Packed>,
}

/// The events of a stream, counted by name.
#[derive(Clone, Debug, Default)]
pub struct EventCounts {
    /// By the event's number: a table lookup per event, not a search by name.
    by_number: Vec<(&'static str, u64)>,
}

impl EventCounts {
    pub(crate) fn add(&mut self, event: &Event<'_>) {
        let number = usize::from(event.number());
        if self.by_number.len() <= number {
            self.by_number.resize(number + 1, ("", 0));
        }
        let (name, count) = &mut self.by_number[number];
        *name = event.name();
        *count += 1;
    }

    /// Each name that was met, and its events.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = self.by_number.iter().copied();
        all.filter(|(_, count)| *count > 0)
    }

    /// All events.
    pub fn total(&self) -> u64 {
        self.by_number.iter().map(|(_, count)| count).sum()
    }
}

impl ProcessReport {
    /// Words about everything that is missing or repaired, each with how bad it is; empty for a sound trace.
    pub fn notes(&self) -> Vec<(Severity, String)> {
        // What a summary says has the losses, too.
        let losses = self.losses().filter(|_| self.summarised.is_empty());
        let lost = losses.map(|(severity, _, text)| (severity, text));
        let diagnostics =
            self.diagnostics.iter().map(|diagnostic| (diagnostic.severity, diagnostic.to_string()));
        let repairs = self.repairs.iter().map(|repair| {
            let text = format!("{} ({})", repair.cause.text(), repair.count);
            (self.severity(repair), text)
        });
        let unnamed = self.unnamed_by_problem().into_iter();
        lost.chain(diagnostics)
            .chain(repairs)
            .chain(unnamed.map(|text| (Severity::Warning, text)))
            .chain(self.summarised.iter().cloned())
            .collect()
    }

    /// Things that were never recorded: how bad that is, its name for programs, and words about it.
    pub fn losses(&self) -> impl Iterator<Item = (Severity, &'static str, String)> {
        let lost = (self.lost > 0).then(|| {
            let text = format!("events were lost while tracing ({})", self.lost);
            (Severity::Warning, "lost", text)
        });
        let samples = (self.samples.lost > 0).then(|| {
            let text = format!("samples were lost while tracing ({})", self.samples.lost);
            (Severity::Warning, "samples_lost", text)
        });
        let failure = self.failure.clone();
        let failure = failure.map(|text| (Severity::Error, "tracing_off", text));
        failure.into_iter().chain(lost).chain(samples)
    }

    /// A line for each module without source lines, or for all that have the same problem where they are many. Programs in
    /// Python load dozens of libraries.
    fn unnamed_by_problem(&self) -> Vec<String> {
        let mut by_problem: Vec<(Problem, Vec<&str>)> = Vec::new();
        for (module, problem) in &self.unnamed {
            match by_problem.iter_mut().find(|(known, _)| known == problem) {
                Some((_, modules)) => modules.push(module),
                None => by_problem.push((*problem, vec![module])),
            }
        }
        let lines = |(problem, modules): (Problem, Vec<&str>)| match &modules[..] {
            [first, further @ ..] if further.len() >= FEW_MODULES => {
                vec![format!("{first} and {} other modules: {problem}", further.len())]
            }
            few => few.iter().map(|module| format!("{module}: {problem}")).collect(),
        };
        by_problem.into_iter().flat_map(lines).collect()
    }

    /// How bad it is that something was repaired. In a trace that lost nothing, a missing end is one that the runtime did
    /// not report. Threads that run when the process ends have such ends. What lacks its begin began while recording was
    /// off, or before what a flight recorder kept. Of a process that runs, one stream is read after the other, and all may
    /// be.
    pub fn severity(&self, repair: &Repair) -> Severity {
        let is_running = self.ending == Some(Ending::Running);
        let is_expected = match repair.cause {
            Cause::MissingEnd => is_running || self.ending == Some(Ending::Ended),
            Cause::EndWithoutBegin | Cause::UnannouncedTask | Cause::UnannouncedRegion => {
                is_running || self.paused || self.is_of_flight_recorder()
            }
            _ => false,
        };
        if is_expected && self.lost_nothing() { Severity::Note } else { repair.cause.severity() }
    }

    fn lost_nothing(&self) -> bool {
        let is_damage = |diagnostic: &Diagnostic| diagnostic.severity == Severity::Error;
        self.lost == 0 && self.failure.is_none() && !self.diagnostics.iter().any(is_damage)
    }

    /// Whether older events were overwritten, as a flight recorder does.
    fn is_of_flight_recorder(&self) -> bool {
        is_overwritten(&self.diagnostics)
    }
}

pub(crate) fn is_overwritten(diagnostics: &[Diagnostic]) -> bool {
    let mut kinds = diagnostics.iter().map(|diagnostic| diagnostic.kind);
    kinds.any(|kind| kind == DiagnosticKind::ChunksOverwritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_modules_without_lines_are_one_note() {
        let with = |modules: &[(&str, Problem)]| {
            let modules = modules.iter();
            let report = ProcessReport {
                unnamed: modules.map(|(name, problem)| ((*name).to_owned(), *problem)).collect(),
                ..ProcessReport::default()
            };
            report.notes().into_iter().map(|(_, note)| note).collect::<Vec<_>>()
        };
        let (none, gone) = (Problem::NoDebugInfo, Problem::Missing);
        assert_eq!(with(&[("a", none), ("b", gone), ("c", none), ("d", none)]).len(), 4);
        let notes = with(&[("a", none), ("b", gone), ("c", none), ("d", none), ("e", none)]);
        assert_eq!(notes, [format!("a and 3 other modules: {none}"), format!("b: {gone}"),]);
    }

    #[test]
    fn what_a_running_process_lacks_is_no_fault() {
        let mut repairs = Repairs::default();
        repairs.add(Cause::MissingEnd, 1, 0);
        repairs.add(Cause::UnannouncedRegion, 1, 0);
        let severities = |ending, lost| {
            let report = ProcessReport {
                ending: Some(ending),
                lost,
                repairs: repairs.clone(),
                ..ProcessReport::default()
            };
            let severities: Vec<_> = repairs.iter().map(|repair| report.severity(repair)).collect();
            severities
        };
        use Severity::{Note, Warning};
        assert_eq!(severities(Ending::Running, 0), [Note, Note]);
        assert_eq!(severities(Ending::Running, 1), [Warning, Warning]);
        assert_eq!(severities(Ending::Ended, 0), [Note, Warning]);
        assert_eq!(severities(Ending::DidNotFinish, 0), [Warning, Warning]);
    }

    #[test]
    fn what_a_summary_says_is_said_once() {
        let said = (Severity::Warning, "events were lost while tracing (3)".to_owned());
        let report = ProcessReport { lost: 3, summarised: vec![said.clone()], ..ProcessReport::default() };
        assert_eq!(report.notes(), [said]);
    }
}
