//! Computes the statistics and answers of a run: each process is analysed separately, in parallel, and the results are
//! merged.
//!
//! ```text
//! process --> Windowed --> numbers, answers --> sums and part --\
//! process --> Windowed --> numbers, answers --> sums and part ---> merged --> what is worth a replay
//! process --> Windowed --> replay, and a collector for each phase --> merged --> Stats
//! ```
//!
//! A single process is analysed in [segments], if it has any.

mod first_pass;
pub(crate) mod gaps;
mod in_segments;
mod input;
mod log_records;
mod of_job;
mod options;
mod phase_windows;
mod replay_log;
mod sample;
mod second_pass;
pub(crate) mod segments;
pub(crate) mod selection;
pub(crate) mod window;

use std::sync::Arc;

use omptrace_symbols::parallel::{self, in_parallel};
use omptrace_symbols::{self as symbols, Table};
use omptrace_timeline::model::{Item, Ns, Sink, Wants};
use omptrace_timeline::{
    KeptArguments, Manner, Ranks, Report, Segments, Start, Timeline, align, handed_over, origin, uncertainty,
    why_no_samples,
};
use omptrace_trace_format::checkpoint::Packed;
use omptrace_trace_format::{Reader, Severity};

use crate::constructs::chunks::{ChunkCollector, ChunkDurations};
use input::Merged;
use second_pass::Changes;

use crate::answers::effort;
use crate::answers::mergeable::MergeableAnswers;
use crate::constructs::Collector;
use crate::constructs::counters::CounterCollector;
use crate::constructs::functions::{FunctionCollector, FunctionStats};
use crate::constructs::phases::PhaseCollector;
use crate::constructs::ranges::Ranges;
use crate::constructs::steps::Steps;
use crate::findings::counters::memory_bound;
use crate::findings::hosts::oversubscribed_host;
use crate::findings::mpi_calls::Job;
use crate::findings::ranks::{idle_during_mpi, late_sender, rank_imbalance};
use crate::model::accounting::Accounting;
use crate::model::answers::Finding;
use crate::model::job_gains::JobGains;
use crate::model::mpi;
use crate::model::rank_traffic::RankTraffic;
use crate::model::rank_waits::RankWaits;
use crate::model::stats::{BasedOn, NEAR_EVENT_COST, PhaseStats, Stats};
use crate::overview::by_step::StepTimes;
use crate::overview::levels::{LevelCollector, Levels};
use crate::overview::mpi_efficiency::MpiEfficiency;
use crate::overview::{Overview, OverviewCollector};
use crate::passes::of_job::OfJob;
use crate::passes::selection::SelectedThreads;
use crate::passes::window::{Windowed, Windows};
use crate::rank_waits::call_waits::CallWaits;
use crate::rank_waits::site_places::SitePlaces;
use crate::rank_waits::spans::{AwaitedTimes, RankSpans};
use crate::rank_waits::traffic::Sites;
use crate::states::collector::{self, Predicted};
use crate::summary::{Body, Earliest, Summarised, Summary};
use crate::what_if::scenario::Plan;

pub use input::Input;
use options::checkpoint_distance;
pub use options::{NoAnswer, Options};
use sample::Sample;

/// Number of summaries that are merged with each other before they are added to the rest.
const SUMMARIES_AT_ONCE: usize = 256;

/// The note that is shown if a part of a trace cannot be read.
const DAMAGED: &str = "a part of the trace is damaged or missing, so times and shares can be wrong: see the warnings, and the output of omptrace check";

/// The note that is shown if nothing was replayed.
const WITHOUT_REPLAY: &str = "these numbers come from the summaries in the traces, so savings are estimated without replaying the events; what_if, task_regions and phases require the events (--from events)";

impl Stats {
    /// The statistics of all `inputs`, with the names that `symbols` finds. The report lists problems of the inputs.
    pub fn of(inputs: &[&Reader], symbols: &symbols::Options) -> (Stats, Report) {
        let options = Options { symbols: symbols.clone(), ..Options::default() };
        // Without a selection, there is always an answer.
        Stats::with(inputs, &options).unwrap_or_default()
    }

    /// Like [`Stats::of`], with options.
    ///
    /// # Errors
    /// The window is empty, or no phase has this name.
    pub fn with(inputs: &[&Reader], options: &Options) -> Result<(Stats, Report), NoAnswer> {
        let run = Run::of(&Input::traces(inputs), options).in_segments();
        let (stats, _, report) = run.answers()?;
        Ok((stats, report))
    }

    /// Like [`Stats::of`], from traces and summaries. If a process has no trace, nothing is replayed. The summary of a
    /// single process contains the results of its replay.
    ///
    /// # Errors
    /// A summary is invalid.
    pub fn of_inputs(inputs: &[Input<'_>], symbols: &symbols::Options) -> Result<(Stats, Report), NoAnswer> {
        let options = Options { symbols: symbols.clone(), ..Options::default() };
        Stats::of_sources(inputs, &options)
    }

    /// Like [`Stats::of_inputs`], with options. Selections require traces, because a summary covers a whole process.
    ///
    /// # Errors
    /// Like [`Stats::with`], or a summary is invalid.
    pub fn of_sources(inputs: &[Input<'_>], options: &Options) -> Result<(Stats, Report), NoAnswer> {
        let (stats, _, report) = Run::of(inputs, options).in_segments().answers()?;
        Ok((stats, report))
    }

    /// The statistics of the first part of a trace, which contains about this many bytes of events, without a replay, so
    /// without findings and the savings of changes. Reads only that part. `None` if the trace has fewer events.
    pub fn of_beginning(reader: &Reader, event_bytes: u64) -> Option<Stats> {
        let end = reader.ticks_at_event_bytes(event_bytes)?;
        let window = Some((Ns::MIN, reader.clock().ns(end)));
        let options = Options { window, ..Options::default() };
        let run = Run { replays: false, is_summarised: true, ..Run::of(&Input::traces(&[reader]), &options) };
        let (stats, ..) = run.answers().ok()?;
        let share = event_bytes as f64 / reader.summary().event_bytes.max(1) as f64;
        Some(stats.estimated_from(BasedOn { share, windows: None }))
    }

    /// Like [`Stats::with`], and also an overview of the threads' states over time. `options` select everything.
    pub fn with_overview(inputs: &[&Reader], options: &Options) -> (Stats, Overview, Report) {
        let run = Run { has_overview: true, ..Run::of(&Input::traces(inputs), options).in_segments() };
        // Without a selection, there is always an answer.
        run.answers().unwrap_or_default()
    }

    /// The statistics of a trace, and the content of its summary. `alone`: includes the results of the second pass.
    pub(crate) fn summarised(reader: &Reader, alone: bool) -> Summarised {
        let options = Options::default();
        let run = Run { is_summarised: true, replays: alone, ..Run::of(&Input::traces(&[reader]), &options) };
        // With several processes, each thread analyses one.
        let mut run = match alone {
            true => run.with_new_checkpoints(),
            false => run,
        };
        let mut first = run.first_pass(0, None, None).unwrap_or_default();
        let body = Body {
            counters: first.counters.clone(),
            ..Body::of(&first.sums, &first.part, &first.functions, &first.phases)
        };
        let mut report = first.reports.first().cloned().unwrap_or_default();
        if let (Some(process), Some(checkpoints)) = (report.processes.first_mut(), run.checkpoints.take()) {
            process.checkpoints = checkpoints;
        }
        let earliest = first.earliest;
        let mut all = Merged::default();
        all.merge(std::mem::take(&mut first));
        // Without a selection, there is always an answer.
        let (stats, more_phases) =
            run.finish(None, all).map(|finished| (finished.stats, finished.more_phases)).unwrap_or_default();
        Summarised { body, report, earliest, stats, more_phases }
    }
}

/// The results of a run.
#[derive(Debug, Default)]
struct Finished {
    stats: Stats,
    overview: Overview,
    report: Report,
    more_phases: usize,
}

impl Run<'_> {
    fn answers(mut self) -> Result<(Stats, Overview, Report), NoAnswer> {
        let windows = match &self.sample {
            Some(sample) => Some(sample.windows.clone()),
            None => self.windows()?,
        };
        // The bins of charts must be the same for any number of jobs, so they need checkpoints of the trace.
        self.segments = self.segments_within(windows.as_ref(), !self.has_overview);
        let all = self.all(windows.as_ref())?;
        let finished = self.finish(windows.as_ref(), all)?;
        Ok((finished.stats, finished.overview, finished.report))
    }

    /// The first pass over all processes.
    fn all(&self, windows: Option<&Windows>) -> Result<Merged, NoAnswer> {
        // Summaries are short, so many are merged at once: memory then holds few results.
        let at_once = match self.members.iter().all(|member| member.summary.is_none()) {
            true => 1,
            false => SUMMARIES_AT_ONCE,
        };
        let numbers: Vec<usize> = (0..self.members.len()).collect();
        let awaited = self.awaited_times(windows);
        let merged = in_parallel(numbers.chunks(at_once).collect(), |numbers: &[usize]| {
            let mut merged = Merged::default();
            for number in numbers {
                let awaited = awaited.get(*number).cloned();
                merged.merge(self.first_pass(*number, windows.cloned(), awaited)?);
            }
            Ok(merged)
        });
        let mut all = Merged::default();
        for merged in merged {
            all.merge(merged?);
        }
        Ok(all)
    }

    /// Computes the answers from the first pass, and performs the second pass if it is worthwhile.
    fn finish(&self, windows: Option<&Windows>, all: Merged) -> Result<Finished, NoAnswer> {
        let options = self.options;
        let Merged {
            reports,
            mut sums,
            mut part,
            gathered,
            rank_spans,
            levels,
            phases,
            ranges,
            mut functions,
            counters,
            alone,
            replay_logs,
            ..
        } = all;
        let mut report = Report::of_shares(reports);
        report.uncertainty_ns = self.uncertainty_ns;
        if windows.is_some() && part.is_empty() {
            return Err(NoAnswer::Window { end: report.end });
        }
        if let Some(note) = self.timeline.alignment_note(self.uncertainty_ns) {
            sums.add_note(0, &note);
        }
        if let Some(note) = self.timeline.ranks().and_then(mpi::missing_ranks) {
            sums.add_note(0, &note);
        }
        for note in self.timeline.ranks().map_or(Vec::new(), Ranks::waiting_notes) {
            sums.add_note(0, &note);
        }

        let steps = Steps::choose(&ranges, phases.instances());
        let (mut windows_of_phases, mut more_phases) = match self.replays {
            true => self.phases(phases, windows),
            false => (Vec::new(), 0),
        };
        let analysed_phases = windows_of_phases.len();
        let mut stats_of_steps = steps.as_ref().map(|(name, instances)| Steps::of(name.clone(), instances));
        if let (Some((name, instances)), Some(of_steps)) = (&steps, &stats_of_steps)
            && self.replays
            && options.phase.is_none()
            && windows.is_none()
        {
            // First the windows of all steps, then of each of the worst.
            windows_of_phases.push((name.clone(), of_steps.count, Windows::of(instances.clone())));
            windows_of_phases.extend(of_steps.worst.iter().map(|step| {
                let end = step.begin_ns.saturating_add_unsigned(step.duration_ns);
                (name.clone(), 1, Windows::of(vec![(step.begin_ns, end)]))
            }));
        }
        // The savings of changes concern the whole program, so nothing is replayed if threads are selected.
        let plans = match options.selected.is_empty() && self.replays {
            true => part.plans(),
            false => Vec::new(),
        };
        // If only a part of the run is analysed, regions may be cut.
        let numbers = match &windows {
            None if !plans.is_empty() => part.numbers(),
            _ => Vec::new(),
        };
        let mut predicted: Option<Predicted> = None;
        let mut chunks = ChunkDurations::default();
        let mut of_phases: Vec<MergeableAnswers> = vec![MergeableAnswers::default(); windows_of_phases.len()];
        let has_chunks = self.has_overview && self.replays && sums.have_chunks();
        let step_times = match (&steps, &stats_of_steps) {
            (Some((_, instances)), Some(of_steps)) if self.has_overview && self.replays => {
                Some(StepTimes::new(instances, of_steps.steps_per_bin))
            }
            _ => None,
        };
        let mut by_step: Vec<Accounting> = Vec::new();
        if !plans.is_empty() || !of_phases.is_empty() || has_chunks || step_times.is_some() {
            for second in self.each(|number| {
                let steps = step_times.as_ref();
                let logs = &replay_logs[..];
                let changes = Changes { plans: &plans, numbers: &numbers, windows, has_chunks, steps, logs };
                self.second_pass(number, changes, &windows_of_phases)
            }) {
                predicted = Predicted::merge(predicted, second.predicted);
                chunks.merge(second.chunks);
                by_step.resize(by_step.len().max(second.steps.len()), Accounting::default());
                for (known, more) in by_step.iter_mut().zip(&second.steps) {
                    known.merge(more);
                }
                for (known, part) in of_phases.iter_mut().zip(second.phases) {
                    known.merge(part);
                }
            }
        }

        let mut stats = sums.stats();
        if let (Some(known), Some(ranks)) = (self.timeline.ranks(), &mut stats.ranks) {
            ranks.missing = known.missing();
        }
        stats.analysed = options.analysed();
        stats.sampling = functions.time();
        if stats.sampling.is_none() {
            stats.no_samples = self.why_no_samples();
        }
        stats.not_counted = counters.not_counted();
        let work = counters.work_counts();
        stats.counters = counters.into_stats();
        let of_steps = of_phases.split_off(analysed_phases);
        windows_of_phases.truncate(analysed_phases);
        if let (Some(steps), [all, worst @ ..]) = (&mut stats_of_steps, &of_steps[..]) {
            let accounting = |part: &MergeableAnswers| part.clone().answers(None).accounting;
            steps.explain(&accounting(all), &worst.iter().map(accounting).collect::<Vec<_>>());
        }
        stats.steps = stats_of_steps;
        stats.ranges = ranges.rows();
        let phases = windows_of_phases.into_iter().zip(of_phases);
        stats.phases = phases.map(|((name, count, _), part)| PhaseStats::of(name, count, part)).collect();
        stats.phases.sort_by(|a, b| b.duration_ns.cmp(&a.duration_ns).then_with(|| a.name.cmp(&b.name)));
        if let Some(windows) = windows {
            part.on_timeline(windows);
        }
        let mut overview = Overview::of(gathered, levels, part.useful());
        overview.chunks = chunks.powers();
        overview.steps = step_times.map_or(Vec::new(), |times| times.times(&by_step));
        overview.stacks = std::mem::take(&mut functions.stacks).graph();
        if let Some(event_ps) = part.event_ps() {
            stats.constructs.iter_mut().for_each(|construct| construct.set_event_cost(event_ps));
            if stats.constructs.iter().any(|construct| construct.is_near_event_cost) {
                stats.notes.push(format!(
                    "{NEAR_EVENT_COST} marks constructs that take, on average, less time than the tracer needs to record three events ({:.0} ns each); most of their recorded time is the tracer's own time",
                    event_ps as f64 / 1e3
                ));
            }
        }
        let replay = predicted.as_ref().map(|predicted| (&plans[..], predicted));
        stats.answers = part.answers(replay);
        let OfJob { additive, sites, call_waits } = self.set_job(&mut stats, rank_spans, windows);
        let mut diagnostics = report.processes.iter().flat_map(|process| &process.diagnostics);
        if diagnostics.any(|diagnostic| diagnostic.severity == Severity::Error) {
            stats.answers.damage_note = Some(DAMAGED.to_owned());
        }
        if windows.is_none() && options.selected.is_empty() {
            let of_threads = (stats.answers.duration_ns, &stats.answers.efficiency);
            let ranks = self.timeline.ranks();
            let ideal = stats.job_gains.as_ref().map_or(Err("the job was not replayed"), JobGains::ideal_ns);
            stats.mpi_efficiency = MpiEfficiency::of(ranks, &stats.processes, of_threads, ideal)
                .map(|efficiency| efficiency.with_additive(additive));
            let waits = stats.rank_waits.as_ref();
            let of_ranks = rank_imbalance(ranks, waits, &stats.processes, &stats.answers);
            let late = late_sender(waits, &stats.processes, &stats.answers);
            let idle = idle_during_mpi(&stats.answers);
            let readers = self.members.iter().map(|member| member.reader);
            let of_hosts = ranks.and_then(|_| oversubscribed_host(readers, &stats.processes, &stats.answers));
            let job = ranks.filter(|_| waits.is_some());
            let job =
                job.and_then(|ranks| Job::of(ranks, (&sites, &call_waits), &stats.processes, &stats.answers));
            let mut found: Vec<Finding> = [of_ranks, late, idle, of_hosts].into_iter().flatten().collect();
            found.extend(job.map_or(Vec::new(), |job| job.findings()));
            stats.answers.add_findings(found);
        }
        let answers = &stats.answers;
        let of_counters = memory_bound(&work, answers.threads.into(), answers.duration_ns);
        stats.answers.add_findings(of_counters);
        for finding in &mut stats.answers.findings {
            if let Some(owner) = ranges.owner(&finding.place.long()) {
                finding.evidence.insert("phase".to_owned(), owner.clone().into());
            }
        }
        stats.functions = functions.into_functions();
        FunctionStats::join(&mut stats.functions, &stats.answers);
        if !options.selected.is_empty() {
            stats.answers.findings.clear();
        }
        if let Some(alone) = alone.filter(|_| !self.replays && self.members.len() == 1) {
            more_phases = alone.into(&mut stats);
        } else if !self.replays && !self.is_summarised {
            stats.notes.push(WITHOUT_REPLAY.to_owned());
        }
        if more_phases > 0 {
            stats.notes.push(format!(
                "{more_phases} more phases were not analysed: use --phase NAME to analyse one of them"
            ));
        }
        Ok(Finished { stats, overview, report, more_phases })
    }
}

impl PhaseStats {
    fn of(name: String, count: u64, part: MergeableAnswers) -> PhaseStats {
        let answers = part.answers(None);
        PhaseStats {
            name,
            count,
            duration_ns: answers.duration_ns,
            threads: answers.threads,
            accounting: answers.accounting,
            efficiency: answers.efficiency,
        }
    }
}

/// A process of the run.
#[derive(Debug)]
struct Member<'a> {
    start: Start,
    reader: Option<&'a Reader>,
    summary: Option<&'a Summary>,
    /// The index of the process among those with a trace.
    number_of_trace: usize,
}

/// A run to analyse.
#[derive(Debug)]
struct Run<'a> {
    /// The processes, in the timeline's order.
    members: Vec<Member<'a>>,
    /// The timeline of the processes with a trace.
    timeline: Timeline<'a>,
    /// The timeline's start, in nanoseconds since 1970.
    origin: u64,
    uncertainty_ns: u64,
    options: &'a Options,
    selected: SelectedThreads,
    manner: Manner,
    /// Number of threads that pass items to sinks, besides the interpreting thread.
    sink_threads: usize,
    /// Also computes the overview.
    has_overview: bool,
    /// The results are stored in a summary.
    is_summarised: bool,
    /// Performs a second pass.
    replays: bool,
    /// The only process may be analysed in segments.
    is_divisible: bool,
    /// Its segments; `None` if it is not analysed in segments.
    segments: Option<Segments>,
    /// The checkpoints of the only process, if they were created before the first pass.
    checkpoints: Option<Vec<Packed>>,
    /// Only these parts of the only process are read.
    sample: Option<Sample>,
}

/// Maps times to the compressed timeline, which has only windows; without windows, to themselves.
fn on_windows(windows: Option<&Windows>) -> impl Fn(Ns) -> Ns {
    move |time| windows.map_or(time, |windows| windows.on(time))
}

/// A phase: its name, number of instances, and windows.
type Phase = (String, u64, Windows);

impl<'a> Run<'a> {
    fn of(inputs: &[Input<'a>], options: &'a Options) -> Run<'a> {
        // With several inputs, threads are used across processes instead of within one.
        let is_alone = inputs.len() == 1;
        let threads = parallel::threads();
        let mut members: Vec<Member<'a>> = inputs
            .iter()
            .map(|input| Member {
                start: input.start(),
                reader: input.trace,
                summary: input.summary,
                number_of_trace: 0,
            })
            .collect();
        let mut starts: Vec<Start> = members.iter().map(|member| member.start.clone()).collect();
        align(&mut starts);
        members.iter_mut().zip(starts).for_each(|(member, start)| member.start = start);
        members.sort_by(|a, b| a.start.cmp(&b.start));
        let mut traces = 0;
        for member in &mut members {
            member.number_of_trace = traces;
            traces += usize::from(member.reader.is_some());
        }
        let starts: Vec<Start> = members.iter().map(|member| member.start.clone()).collect();
        let readers: Vec<&Reader> = members.iter().filter_map(|member| member.reader).collect();
        let timeline = Timeline::among(&readers, &starts);
        let timeline = match options.analysed() {
            None => timeline.with_graph(),
            Some(_) => timeline.with_ranks(),
        };
        if timeline.ranks().is_some_and(Ranks::are_complete) {
            // A summary is about one process alone.
            let with_trace = members.iter_mut().filter(|member| member.reader.is_some());
            with_trace.for_each(|member| member.summary = None);
        }
        Run {
            timeline,
            origin: origin(&starts),
            uncertainty_ns: uncertainty(&starts),
            replays: traces == members.len(),
            members,
            options,
            selected: SelectedThreads(options.selected.clone()),
            manner: Manner {
                ahead: is_alone && threads > 1,
                // A phase gives no bounds for reading: it may be anywhere.
                window: options.window.filter(|_| options.phase.is_none()),
                ..Manner::default()
            },
            // With two CPUs, one decodes events and the other does the rest.
            sink_threads: match threads {
                3.. if is_alone => threads - 1,
                _ => 0,
            },
            has_overview: false,
            is_summarised: false,
            is_divisible: false,
            segments: None,
            checkpoints: None,
            sample: None,
        }
    }

    /// Calls `work` for each process, on any number of threads; the results are in the timeline's order.
    fn each<T: Send>(&self, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
        in_parallel((0..self.members.len()).collect(), work)
    }

    /// Interprets one process.
    fn replay(&self, number: usize, sinks: Vec<&mut dyn Sink>) -> Report {
        self.replay_in(self.manner, number, sinks)
    }

    fn replay_in(&self, manner: Manner, number: usize, sinks: Vec<&mut dyn Sink>) -> Report {
        self.handed_over(sinks, |sink| self.interpret(manner, number, sink))
    }

    /// Calls `work` with a sink that passes items on to `sinks`, on other threads if there are any.
    fn handed_over<R>(&self, sinks: Vec<&mut dyn Sink>, work: impl FnOnce(&mut dyn Sink) -> R) -> R {
        handed_over(sinks, self.sink_threads, KeptArguments::Counts, work)
    }

    /// Interprets one process on this thread.
    fn interpret(&self, manner: Manner, number: usize, sink: &mut dyn Sink) -> Report {
        let symbols = |reader: &Reader| Table::of(reader, &self.options.symbols);
        let (number, step) = (self.members[number].number_of_trace, self.members.len());
        match &self.sample {
            Some(sample) => self.timeline.replay_excerpts(&sample.excerpts, &symbols, manner, sink),
            None => self.timeline.replay(number, step.max(1), &symbols, manner, sink, &mut |_| {}),
        }
    }

    /// The reason why no process has samples in the analysed part.
    fn why_no_samples(&self) -> Option<String> {
        let reason = |member: &Member<'_>| match (member.summary, member.reader) {
            (Some(summary), _) => summary.why_no_samples(),
            (None, Some(reader)) => why_no_samples(reader),
            (None, None) => None,
        };
        let mut reasons = self.members.iter().map(reason);
        // If there are samples at all, they lie outside of the windows or belong to other threads.
        let outside = "the analysed part of the run has no samples".to_owned();
        let reason = reasons.next()?;
        match reasons.all(|other| other.is_some()) {
            true => reason.or(Some(outside)),
            false => Some(outside),
        }
    }

    fn collector(&self) -> collector::Collector<0> {
        collector::Collector::new(self.options.threads, self.selected.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::constructs::phases::Phases;
    use crate::constructs::sums::Sums;

    /// Traces of old runtimes, each by a different program.
    pub(super) fn historic_traces() -> Vec<Reader> {
        traces(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../viewer-export/tests/historic"))
    }

    /// The traces in this folder.
    pub(super) fn traces(folder: &Path) -> Vec<Reader> {
        let entries = fs::read_dir(folder).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let is_trace = |path: &std::path::PathBuf| path.extension().is_some_and(|kind| kind == "omptrace");
        let mut paths: Vec<_> = paths.filter(is_trace).collect();
        paths.sort();
        let readers = paths.iter().map(|path| Reader::open(path).expect("a trace"));
        readers.collect()
    }

    type Merged = (Sums, MergeableAnswers, Phases);

    fn merged((mut sums, mut part, mut phases): Merged, other: &Merged) -> Merged {
        sums.merge(other.0.clone());
        part.merge(other.1.clone());
        phases.merge(other.2.clone());
        (sums, part, phases)
    }

    fn all<'m>(parts: impl Iterator<Item = &'m Merged>) -> Merged {
        parts.fold(Merged::default(), merged)
    }

    /// Merging in any order and grouping gives the same result, byte for byte.
    #[test]
    fn processes_merge_in_any_order_and_grouping() {
        let readers = historic_traces();
        let inputs: Vec<&Reader> = readers.iter().collect();
        let options = Options::default();
        let run = Run::of(&Input::traces(&inputs), &options);
        let each = run.each(|number| {
            let first = run.first_pass(number, None, None).expect("results");
            (first.sums, first.part, first.phases)
        });
        assert!(each.len() > 10, "{} traces", each.len());
        let whole = all(each.iter());
        assert!(!whole.1.is_empty());
        let json = |(sums, part, _): Merged| {
            let mut stats = sums.stats();
            stats.answers = part.answers(None);
            serde_json::to_string(&stats).expect("JSON")
        };
        let expected = json(whole.clone());

        assert_eq!(all(each.iter().rev()), whole);
        for size in 1..each.len() {
            let groups: Vec<Merged> = each.chunks(size).map(|group| all(group.iter())).collect();
            assert_eq!(all(groups.iter()), whole, "groups of {size}");
            assert_eq!(all(groups.iter().rev()), whole, "groups of {size}");
            // Parts of every `size`-th process.
            let parts: Vec<Merged> =
                (0..size).map(|first| all(each.iter().skip(first).step_by(size))).collect();
            let merged = all(parts.iter().rev());
            assert_eq!(merged, whole, "one in {size}");
            assert_eq!(json(merged), expected, "one in {size}");
        }
    }
}
