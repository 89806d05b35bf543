//! How the numbers and answers of a run are gathered: processes side by side, each alone, and then merged.
//!
//! ```text
//! process --> Windowed --> numbers, answers --> sums and part --\
//! process --> Windowed --> numbers, answers --> sums and part ---> merged --> what is worth a replay
//! process --> Windowed --> replay, and a collector for each phase --> merged --> Stats
//! ```
//!
//! A process that is alone is analysed in [segments], where it has some.

pub(crate) mod gaps;
mod in_segments;
mod input;
mod options;
mod phase_windows;
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
use omptrace_trace_format::{Reader, Severity};

use crate::constructs::chunks::{ChunkCollector, ChunkDurations};
use in_segments::First;
use input::Merged;
use second_pass::Changes;

use crate::answers::effort;
use crate::answers::part::Part;
use crate::constructs::Collector;
use crate::constructs::counters::CounterCollector;
use crate::constructs::functions::{FunctionCollector, FunctionStats};
use crate::constructs::phases::PhaseCollector;
use crate::constructs::ranges::Ranges;
use crate::constructs::steps::Steps;
use crate::findings::counters::memory_bound;
use crate::findings::ranks::{idle_during_mpi, late_sender, rank_imbalance};
use crate::model::mpi;
use crate::model::rank_waits::RankWaits;
use crate::model::stats::{NEAR_EVENT_COST, PhaseStats, Stats};
use crate::overview::levels::{LevelCollector, Levels};
use crate::overview::mpi_efficiency::MpiEfficiency;
use crate::overview::{Gathering, Overview};
use crate::passes::selection::SelectedThreads;
use crate::passes::window::{Windowed, Windows};
use crate::rank_waits::spans::{AwaitedTimes, RankSpans};
use crate::states::collector::{self, Predicted};
use crate::summary::{Body, Earliest, Summarised, Summary};
use crate::what_if::scenario::Plan;

pub use input::Input;
use options::checkpoint_distance;
pub use options::{NoAnswer, Options};

/// Summaries that are merged before their sums are added to those of others.
const SUMMARIES_AT_ONCE: usize = 256;

/// The note where a part of a trace cannot be read.
const DAMAGED: &str = "a part of the trace is damaged or missing, so times and shares can be wrong: see the warnings, and omptrace check";

/// The note where nothing was replayed.
const WITHOUT_REPLAY: &str = "these numbers come from summaries, so savings are estimated without replaying the events; what_if, task_regions and phases require the events (--from events)";

impl Stats {
    /// The numbers of all `inputs`, with the names that `symbols` finds. The report says what was wrong with the inputs.
    pub fn of(inputs: &[&Reader], symbols: &symbols::Options) -> (Stats, Report) {
        let options = Options { symbols: symbols.clone(), ..Options::default() };
        // Nothing is selected, so that nothing can be missing.
        Stats::with(inputs, &options).unwrap_or_default()
    }

    /// Like [`Stats::of`], with options.
    ///
    /// # Errors
    /// Nothing is in the window, or no phase has the name.
    pub fn with(inputs: &[&Reader], options: &Options) -> Result<(Stats, Report), NoAnswer> {
        let run = Run::of(&Input::traces(inputs), options).in_segments();
        let (stats, _, report) = run.answers()?;
        Ok((stats, report))
    }

    /// Like [`Stats::of`], of traces and summaries. Where there is a process without a trace, nothing is replayed. A summary of
    /// a single process has what its replay showed.
    ///
    /// # Errors
    /// A summary makes no sense.
    pub fn of_inputs(inputs: &[Input<'_>], symbols: &symbols::Options) -> Result<(Stats, Report), NoAnswer> {
        let options = Options { symbols: symbols.clone(), ..Options::default() };
        Stats::of_sources(inputs, &options)
    }

    /// Like [`Stats::of_inputs`], with options. Only traces have what options select: a summary is of a whole process.
    ///
    /// # Errors
    /// Like [`Stats::with`], or a summary makes no sense.
    pub fn of_sources(inputs: &[Input<'_>], options: &Options) -> Result<(Stats, Report), NoAnswer> {
        let (stats, _, report) = Run::of(inputs, options).in_segments().answers()?;
        Ok((stats, report))
    }

    /// The numbers of the part of a trace before `end` raw ticks, from sums alone: what changes would gain is not replayed. Reads no
    /// more than that part.
    pub fn of_beginning(reader: &Reader, end: u64) -> Stats {
        let window = Some((Ns::MIN, reader.clock().ns(end)));
        let options = Options { window, ..Options::default() };
        let run = Run { replays: false, is_summarised: true, ..Run::of(&Input::traces(&[reader]), &options) };
        run.answers().map(|(stats, ..)| stats).unwrap_or_default()
    }

    /// Like [`Stats::of`], with a picture of what each thread did over time.
    pub fn with_overview(inputs: &[&Reader], symbols: &symbols::Options) -> (Stats, Overview, Report) {
        let options = Options { symbols: symbols.clone(), ..Options::default() };
        let run = Run { has_overview: true, ..Run::of(&Input::traces(inputs), &options) };
        // Nothing is selected, so that nothing can be missing.
        run.answers().unwrap_or_default()
    }

    /// The numbers of a trace, and what a summary of it has. `alone`: the numbers are whole, which takes a second pass.
    pub(crate) fn summarised(reader: &Reader, alone: bool) -> Summarised {
        let options = Options::default();
        let run = Run { is_summarised: true, replays: alone, ..Run::of(&Input::traces(&[reader]), &options) };
        let mut first = run.first_pass(0, None, None).unwrap_or_default();
        let body = Body {
            counters: first.counters.clone(),
            ..Body::of(&first.sums, &first.part, &first.functions, &first.phases)
        };
        let report = first.reports.first().cloned().unwrap_or_default();
        let earliest = first.earliest;
        let mut all = Merged::default();
        all.merge(std::mem::take(&mut first));
        // Nothing is selected, so that nothing can be missing.
        let (stats, more_phases) =
            run.finish(None, all).map(|finished| (finished.stats, finished.more_phases)).unwrap_or_default();
        Summarised { body, report, earliest, stats, more_phases }
    }
}

/// What a run's results are.
#[derive(Debug, Default)]
struct Finished {
    stats: Stats,
    overview: Overview,
    report: Report,
    more_phases: usize,
}

impl Run<'_> {
    fn answers(&self) -> Result<(Stats, Overview, Report), NoAnswer> {
        let windows = self.windows()?;
        let all = self.all(windows.as_ref())?;
        let finished = self.finish(windows.as_ref(), all)?;
        Ok((finished.stats, finished.overview, finished.report))
    }

    /// The first pass over all processes.
    fn all(&self, windows: Option<&Windows>) -> Result<Merged, NoAnswer> {
        // Summaries are short: many of them are merged at once, so that memory holds few results.
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

    /// When other ranks wait for each process of an MPI job; empty where nobody asks for that.
    fn awaited_times(&self, windows: Option<&Windows>) -> Vec<Arc<AwaitedTimes>> {
        let ranks = self.timeline.ranks().filter(|ranks| ranks.are_complete());
        match ranks.filter(|_| self.selected.is_all() && !self.is_summarised) {
            Some(ranks) => AwaitedTimes::of_job(ranks, self.members.len(), on_windows(windows)),
            None => Vec::new(),
        }
    }

    /// Makes answers of the first pass, with a second pass where that is worth it.
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
            // All steps, then each of the worst.
            windows_of_phases.push((name.clone(), of_steps.count, Windows::of(instances.clone())));
            windows_of_phases.extend(of_steps.worst.iter().map(|step| {
                let end = step.begin_ns.saturating_add_unsigned(step.duration_ns);
                (name.clone(), 1, Windows::of(vec![(step.begin_ns, end)]))
            }));
        }
        // What a change gains is the whole program's time.
        let plans = match options.selected.is_empty() && self.replays {
            true => part.plans(),
            false => Vec::new(),
        };
        // Of a part of a run, regions may be cut.
        let numbers = match &windows {
            None if !plans.is_empty() => part.numbers(),
            _ => Vec::new(),
        };
        let mut predicted: Option<Predicted> = None;
        let mut chunks = ChunkDurations::default();
        let mut of_phases: Vec<Part> = vec![Part::default(); windows_of_phases.len()];
        let has_chunks = self.has_overview && self.replays && sums.have_chunks();
        if !plans.is_empty() || !of_phases.is_empty() || has_chunks {
            for second in self.each(|number| {
                let changes = Changes { plans: &plans, numbers: &numbers, windows, has_chunks };
                self.second_pass(number, changes, &windows_of_phases)
            }) {
                predicted = Predicted::merge(predicted, second.predicted);
                chunks.merge(second.chunks);
                for (known, part) in of_phases.iter_mut().zip(second.phases) {
                    known.merge(part);
                }
            }
        }

        let mut stats = sums.stats();
        if let Some(ranks) = self.timeline.ranks().filter(|_| !rank_spans.is_empty()) {
            stats.rank_waits = Some(RankWaits::of(ranks, rank_spans, on_windows(windows)));
        }
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
            let accounting = |part: &Part| part.clone().answers(None).accounting;
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
        overview.stacks = std::mem::take(&mut functions.stacks).graph();
        if let Some(event_ps) = part.event_ps() {
            stats.constructs.iter_mut().for_each(|construct| construct.set_event_cost(event_ps));
            if stats.constructs.iter().any(|construct| construct.is_near_event_cost) {
                stats.notes.push(format!(
                    "{NEAR_EVENT_COST} marks constructs that on average take less time than recording three events ({:.0} ns each), so their time is mostly the tracer's",
                    event_ps as f64 / 1e3
                ));
            }
        }
        let replay = predicted.as_ref().map(|predicted| (&plans[..], predicted));
        stats.answers = part.answers(replay);
        let mut diagnostics = report.processes.iter().flat_map(|process| &process.diagnostics);
        if diagnostics.any(|diagnostic| diagnostic.severity == Severity::Error) {
            stats.answers.damage_note = Some(DAMAGED.to_owned());
        }
        if windows.is_none() && options.selected.is_empty() {
            let of_threads = (stats.answers.duration_ns, &stats.answers.efficiency);
            let ranks = self.timeline.ranks();
            stats.mpi_efficiency = MpiEfficiency::of(ranks, &stats.processes, of_threads);
            let of_ranks = rank_imbalance(ranks, &stats.processes, &stats.answers);
            let late = late_sender(stats.rank_waits.as_ref(), &stats.processes, &stats.answers);
            let idle = idle_during_mpi(&stats.answers);
            stats.answers.add_findings([of_ranks, late, idle].into_iter().flatten().collect());
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
                "{more_phases} more phases were not analysed: use --phase NAME to analyse one"
            ));
        }
        Ok(Finished { stats, overview, report, more_phases })
    }
}

impl PhaseStats {
    fn of(name: String, count: u64, part: Part) -> PhaseStats {
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

/// A process of a run.
#[derive(Debug)]
struct Member<'a> {
    start: Start,
    reader: Option<&'a Reader>,
    summary: Option<&'a Summary>,
    /// Its number among those with a trace.
    number_of_trace: usize,
}

/// A run that is analysed.
#[derive(Debug)]
struct Run<'a> {
    /// In the timeline's order.
    members: Vec<Member<'a>>,
    /// Of those with a trace.
    timeline: Timeline<'a>,
    /// The timeline's start, in nanoseconds since 1970.
    origin: u64,
    uncertainty_ns: u64,
    options: &'a Options,
    selected: SelectedThreads,
    manner: Manner,
    /// How many threads give items to sinks beside the one that interprets.
    sink_threads: usize,
    /// A picture over time is gathered, too.
    has_overview: bool,
    /// A summary is made of it.
    is_summarised: bool,
    /// There is a second pass.
    replays: bool,
    /// The segments of the only process, all of which is analysed; `None` where that is done in one go.
    segments: Option<Segments>,
}

/// Where a time lies on the timeline that has windows only; itself where there are none.
fn on_windows(windows: Option<&Windows>) -> impl Fn(Ns) -> Ns {
    move |time| windows.map_or(time, |windows| windows.on(time))
}

/// Name, count and time of a phase.
type Phase = (String, u64, Windows);

impl<'a> Run<'a> {
    fn of(inputs: &[Input<'a>], options: &'a Options) -> Run<'a> {
        // Where processes are read side by side, processors are busy with those.
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
        let timeline = Timeline::among(&readers, &starts).with_ranks();
        if timeline.ranks().is_some_and(Ranks::are_complete) {
            // A summary is of one process alone.
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
                // A phase may be anywhere.
                window: options.window.filter(|_| options.phase.is_none()),
                ..Manner::default()
            },
            // On two processors one decodes, and the other does the rest.
            sink_threads: match threads {
                3.. if is_alone => threads - 1,
                _ => 0,
            },
            has_overview: false,
            is_summarised: false,
            segments: None,
        }
    }

    /// The results of `work` for each process, in the timeline's order, for any number of workers.
    fn each<T: Send>(&self, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
        in_parallel((0..self.members.len()).collect(), work)
    }

    /// Interprets a process alone.
    fn replay(&self, number: usize, sinks: Vec<&mut dyn Sink>) -> Report {
        self.replay_in(self.manner, number, sinks)
    }

    fn replay_in(&self, manner: Manner, number: usize, sinks: Vec<&mut dyn Sink>) -> Report {
        let symbols = |reader: &Reader| Table::of(reader, &self.options.symbols);
        let (number, step) = (self.members[number].number_of_trace, self.members.len());
        handed_over(sinks, self.sink_threads, KeptArguments::Counts, |sink| {
            self.timeline.replay(number, step.max(1), &symbols, manner, sink, &mut |_| {})
        })
    }

    /// Why no process has samples in what is analysed.
    fn why_no_samples(&self) -> Option<String> {
        let reason = |member: &Member<'_>| match (member.summary, member.reader) {
            (Some(summary), _) => summary.why_no_samples(),
            (None, Some(reader)) => why_no_samples(reader),
            (None, None) => None,
        };
        let mut reasons = self.members.iter().map(reason);
        // Where there are some, they lie in no window, or are of other threads.
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

    /// The results of one process.
    fn first_pass(
        &self,
        number: usize,
        windows: Option<Windows>,
        awaited: Option<Arc<AwaitedTimes>>,
    ) -> Result<Merged, NoAnswer> {
        let member = &self.members[number];
        if let Some(summary) = member.summary {
            return self.of_summary(number as u32, summary, &member.start);
        }
        let (of_functions, of_counters) = (windows.clone(), windows.clone());
        let collector = || Collector::new(number as u32, self.selected.clone());
        let in_segments = self.of_segments(self.manner, || First {
            phases: PhaseCollector::default(),
            numbers: collector().of_segment(),
            answers: self.collector().of_segment(),
        });
        let mut numbers = Numbers {
            phases: PhaseCollector::default(),
            windowed: Windowed::new(windows.clone(), collector()),
        };
        let is_whole = windows.is_none();
        let processes = self.members.len();
        let gathering = self.has_overview.then(|| Gathering::new(processes));
        let has_spans = awaited.is_some();
        let ranks = awaited.zip(member.reader).map(|(awaited, reader)| RankSpans::of(awaited, reader));
        let collector = self.collector().with_observers(gathering, ranks).with_functions();
        let mut answers = Windowed::new(windows, collector);
        let mut functions = FunctionCollector::new(of_functions, self.selected.clone());
        if self.has_overview {
            functions = functions.with_stacks();
        }
        let counting = member.reader.and_then(|it| it.metadata().counting.as_ref());
        let mut counters = CounterCollector::new(of_counters, self.selected.clone(), counting);
        let mut earliest = Earliest(Ns::MAX);
        let mut levels = LevelCollector::default();
        let mut sinks: Vec<&mut dyn Sink> = vec![&mut numbers, &mut answers];
        // Each item costs each sink, also where it has no use for it.
        let reader = member.reader;
        if reader.is_some_and(|reader| why_no_samples(reader).is_none()) {
            sinks.push(&mut functions);
        }
        if counting.is_some() {
            sinks.push(&mut counters);
        }
        if self.is_summarised {
            sinks.push(&mut earliest);
        }
        if self.has_overview {
            sinks.push(&mut levels);
        }
        let with_checkpoints = Manner {
            checkpoints: reader.filter(|_| self.is_summarised).map(checkpoint_distance),
            ..self.manner
        };
        let report = match in_segments {
            Some((first, report)) => {
                numbers.phases = first.phases;
                numbers.windowed.inner = first.numbers;
                answers.inner = first.answers;
                report
            }
            None => self.replay_in(with_checkpoints, number, sinks),
        };
        let (mut part, gathered, spans) = answers.inner.finish_with_observed();
        if reader.is_some_and(mpi::is_unseen) {
            part.set_unseen_mpi();
        }
        let mut sums = numbers.windowed.inner.sums();
        let (phases, ranges) = numbers.phases.finish();
        let process = report.processes.first();
        if is_whole && let Some(process) = process {
            sums.set_memory(number as u32, &process.devices);
        }
        if is_whole
            && self.selected.is_all()
            && self.options.threads.is_none()
            && let (Some(reader), Some(process)) = (reader, process)
        {
            let metadata = reader.metadata();
            sums.set_cpu_times(number as u32, metadata);
            if let Some(of_process) = sums.processes.get(&(number as u32)) {
                part.set_effort(|life| effort::of_process(metadata, process, of_process, life));
            }
        }
        let ending = process.and_then(|process| process.ending);
        sums.set_account(number as u32, ending, part.account());
        Ok(Merged {
            reports: vec![report],
            sums,
            part,
            gathered: gathered.into_iter().collect(),
            rank_spans: has_spans.then_some(spans).into_iter().collect(),
            levels: levels.levels(),
            phases,
            ranges,
            functions: functions.sums(),
            counters: counters.sums(),
            alone: None,
            earliest: earliest.0,
        })
    }

    fn of_summary(&self, number: u32, summary: &Summary, start: &Start) -> Result<Merged, NoAnswer> {
        let start = start.offset(self.origin);
        let body = summary.body(number, start);
        let body = body.ok_or_else(|| NoAnswer::Summary(summary.path().to_owned()))?;
        let (end, process) = summary.report(start);
        Ok(Merged {
            reports: vec![Report { processes: vec![process], end, ..Report::default() }],
            sums: body.sums,
            part: body.part,
            gathered: Vec::new(),
            rank_spans: Vec::new(),
            levels: Levels::default(),
            phases: body.phases.unwrap_or_default(),
            ranges: Ranges::default(),
            functions: body.functions,
            counters: body.counters,
            alone: body.alone,
            earliest: 0,
        })
    }
}

/// Takes note of phases beside the numbers.
struct Numbers {
    phases: PhaseCollector,
    windowed: Windowed<Collector>,
}

impl Sink for Numbers {
    fn wants(&self) -> Wants {
        self.windowed.wants().and(self.phases.wants())
    }

    fn item(&mut self, item: &Item<'_>) {
        self.phases.item(item);
        self.windowed.item(item);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::constructs::phases::Phases;
    use crate::constructs::sums::Sums;

    /// Traces of old runtimes, each by another program.
    fn traces() -> Vec<Reader> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../viewer-export/tests/historic");
        let entries = fs::read_dir(folder).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let is_trace = |path: &std::path::PathBuf| path.extension().is_some_and(|kind| kind == "omptrace");
        let mut paths: Vec<_> = paths.filter(is_trace).collect();
        paths.sort();
        let readers = paths.iter().map(|path| Reader::open(path).expect("a trace"));
        readers.collect()
    }

    type Merged = (Sums, Part, Phases);

    fn merged((mut sums, mut part, mut phases): Merged, other: &Merged) -> Merged {
        sums.merge(other.0.clone());
        part.merge(other.1.clone());
        phases.merge(other.2.clone());
        (sums, part, phases)
    }

    fn all<'m>(parts: impl Iterator<Item = &'m Merged>) -> Merged {
        parts.fold(Merged::default(), merged)
    }

    /// Any order of merging gives the same whole, byte for byte.
    #[test]
    fn processes_merge_in_any_order_and_grouping() {
        let readers = traces();
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
            // Every `size`-th, from each of the first ones on.
            let parts: Vec<Merged> =
                (0..size).map(|first| all(each.iter().skip(first).step_by(size))).collect();
            let merged = all(parts.iter().rev());
            assert_eq!(merged, whole, "one in {size}");
            assert_eq!(json(merged), expected, "one in {size}");
        }
    }
}
