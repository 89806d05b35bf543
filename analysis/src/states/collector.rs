//! Receives a timeline and passes each thread's regions and events to its process.

use std::any::Any;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

use ompt_sys as ompt;
use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::Reports;
use omptrace_timeline::filter::ExtraInterval;
use omptrace_timeline::model::{
    Arguments, Awaited, Construct, Enter, Function, Instant, Interval, Item, Lifetime, Location,
    LocationKind, Ns, Part as Slice, Point, Process, Region, Sample, Sink, Summary, ThreadEvent, Value,
    Wants,
};

use crate::answers::mergeable::MergeableAnswers;
use crate::answers::of_process::{self, Names, Outcome};
use crate::devices::overlap::Queues;
use crate::model::accounting::Accounting;
use crate::model::answers::{FunctionName, NotSeen};
use crate::model::place::Place;
use crate::model::place_id::PlaceId;
use crate::model::region_table::Regions;
use crate::overview::by_step::{ByStep, StepTimes};
use crate::overview::{Gathered, OverviewCollector};
use crate::passes::segments::Continues;
use crate::passes::selection::SelectedThreads;
use crate::passes::window::Collects;
use crate::rank_waits::spans::{ProcessSpans, RankSpans};
use crate::scaling::loop_schedules::LoopTimes;
use crate::scaling::phase::Problem;
use crate::scaling::region_scaling::Scaling;
use crate::states::observed::Observed;
use crate::states::observer::{Span, Spans, StateObserver};
use crate::states::region_kind::{Kind, not_seen};
use crate::states::{Finished, Threads};
use crate::what_if::scenario::{Plan, Target};
use crate::what_if::{Change, ChangedPlaces, MAX_SCENARIOS, Scenarios};

impl FunctionName {
    /// The name of a timeline's function.
    pub fn of(function: &Function) -> FunctionName {
        FunctionName {
            function: function.name.clone(),
            module: function.module.clone(),
            file: function.file.clone(),
        }
    }
}

/// The argument with this name; 0 if there is none.
pub(crate) fn number(arguments: Arguments<'_>, name: &str) -> u64 {
    let mut numbers = arguments.iter().filter(|argument| argument.name == name);
    match numbers.next().map(|argument| argument.value) {
        Some(Value::Uint(number) | Value::Hex(number)) => number,
        _ => 0,
    }
}

/// The first iteration of a chunk, and its number of iterations.
pub(crate) fn iterations(arguments: Arguments<'_>) -> [u64; 2] {
    ["start", "iterations"].map(|name| number(arguments, name))
}

/// The results of replaying hypothetical changes.
#[derive(Clone, Debug)]
pub(crate) struct Predicted {
    /// By plan: the end of the last process.
    pub(crate) ends: [Ns; MAX_SCENARIOS],
    /// The times of regions on other numbers of threads.
    pub(crate) scaling: BTreeMap<Place, Scaling>,
    /// The times of loops with other schedules.
    pub(crate) loops: BTreeMap<Place, LoopTimes>,
}

impl Predicted {
    /// Merges two results; the operation is associative and commutative.
    pub(crate) fn merge(one: Option<Predicted>, other: Option<Predicted>) -> Option<Predicted> {
        let (mut both, other) = match (one, other) {
            (Some(one), Some(other)) => (one, other),
            (one, other) => return one.or(other),
        };
        for (end, later) in both.ends.iter_mut().zip(other.ends) {
            *end = (*end).max(later);
        }
        for (place, scaling) in &other.scaling {
            both.scaling.entry(place.clone()).or_default().merge(scaling);
        }
        for (place, times) in &other.loops {
            both.loops.entry(place.clone()).or_default().merge(times);
        }
        Some(both)
    }
}

/// Collects the answers of a timeline; if `S` is not 0, replays it in `S` scenarios instead.
#[derive(Debug, Default)]
pub(crate) struct Collector<const S: usize> {
    /// N, if the user gave it.
    threads: Option<NonZero<u32>>,
    /// The threads to account for.
    selected: SelectedThreads,
    /// The analysis is limited to windows.
    has_windows: bool,
    /// Samples are used to blame functions.
    has_functions: bool,
    plans: Vec<Plan>,
    scenarios: Scenarios<S>,
    regions: Regions,
    current: Option<Current<S>>,
    part: MergeableAnswers,
    /// By scenario: the end of the last process.
    predicted: Option<[Ns; S]>,
    /// The numbers of threads on which regions are scheduled.
    numbers: Vec<u32>,
    /// Maximum number of additional threads for scheduling.
    schedulers: usize,
    scaling: BTreeMap<Place, Scaling>,
    loops: BTreeMap<Place, LoopTimes>,
    /// Receives the threads' states, if present. While a process is analysed, the process holds it.
    observer: Option<Box<dyn StateObserver>>,
    gathered: Option<Gathered>,
    rank_spans: ProcessSpans,
    /// The accounting of each time step.
    by_step: Vec<Accounting>,
    /// The states of processes that have ended, which nobody has taken yet.
    spans: Vec<Span>,
    /// The lifetime of the process.
    life: (Ns, Ns),
    /// The timeline is a segment of the process. The next two fields are the segment's start and its results.
    is_of_segment: bool,
    began: Option<Ns>,
    ended: Option<Ended<S>>,
    /// The number of processes whose critical paths are drawn, and the paths so far.
    drawn: Option<usize>,
    paths: Vec<Arc<[ExtraInterval]>>,
}

/// The process that is being analysed.
#[derive(Debug)]
struct Current<const S: usize> {
    threads: Threads<S>,
    of: About,
}

/// A process that has ended, or a segment of a process.
#[derive(Debug)]
struct Ended<const S: usize> {
    finished: Finished<S>,
    end: Ns,
    /// See [`Outcome::tracer_ns`].
    tracer_ns: u64,
    of: About,
}

/// The metadata of a process.
#[derive(Debug)]
struct About {
    begin: Ns,
    lifetime: Lifetime,
    reports: Reports,
    processors: Option<u32>,
    queues: Queues,
    names: Names,
    /// The number of its first location.
    first: Option<u32>,
    /// Iterations of a loop waited for others by `ordered depend(sink)`.
    has_doacross: bool,
    /// Number of threads so far, and number of selected threads.
    seen: u32,
    selected: u32,
}

impl Collector<0> {
    /// A collector for a part of a run. `threads`: N, if the user gave it.
    pub(crate) fn new(threads: Option<NonZero<u32>>, selected: SelectedThreads) -> Self {
        Collector { threads, selected, ..Collector::default() }
    }

    /// Also collects an overview, and the spans to which waits of ranks are charged.
    pub(crate) fn with_observers(
        self,
        gathering: Option<OverviewCollector>,
        ranks: Option<RankSpans>,
    ) -> Self {
        let observer = Observed::of(gathering, ranks);
        let observer = observer.map(|observed| -> Box<dyn StateObserver> { Box::new(observed) });
        Collector { observer, ..self }
    }

    /// Also sums up each time step.
    pub(crate) fn with_steps(self, times: StepTimes) -> Self {
        Collector { observer: Some(Box::new(ByStep::new(times))), ..self }
    }

    /// The sums of the one process's time steps.
    pub(crate) fn finish_with_steps(self) -> Vec<Accounting> {
        self.by_step
    }

    /// Also blames functions, by samples.
    pub(crate) fn with_functions(self) -> Self {
        Collector { has_functions: true, ..self }
    }

    /// The sums, and the data for the overview and the spans of the only process.
    pub(crate) fn finish_with_observed(self) -> (MergeableAnswers, Option<Gathered>, ProcessSpans) {
        (self.part, self.gathered, self.rank_spans)
    }

    /// A collector that returns each state of the threads of a single process.
    pub(crate) fn observing() -> Self {
        Collector { observer: Some(Box::new(Spans::default())), ..Collector::default() }
    }

    /// Sets N, if the user gave it.
    pub(crate) fn with_threads(self, threads: Option<NonZero<u32>>) -> Self {
        Collector { threads, ..self }
    }

    /// The states that have ended since the last call.
    pub(crate) fn take_spans(&mut self) -> Vec<Span> {
        let of_current = self.current.as_mut().map(|current| &mut current.threads);
        let observer = of_current.and_then(|threads| threads.observer.as_deref_mut());
        let spans = observer.and_then(|observer| (observer as &mut dyn Any).downcast_mut::<Spans>());
        std::mem::take(spans.map_or(&mut self.spans, |spans| &mut spans.ready))
    }

    /// The sums of the only process, and its lifetime.
    pub(crate) fn finish_with_life(self) -> (MergeableAnswers, (Ns, Ns)) {
        (self.part, self.life)
    }

    /// Keeps the steps of critical paths, for this many `processes`.
    pub(crate) fn drawing(processes: usize) -> Self {
        Collector { drawn: Some(processes), ..Collector::default() }
    }

    /// The critical path of each process, in the timeline's order.
    pub(crate) fn paths(self) -> Vec<Arc<[ExtraInterval]>> {
        self.paths
    }
}

impl<const S: usize> Collector<S> {
    /// Replays these plans, as many as there are scenarios, and schedules regions on these numbers of threads.
    pub(crate) fn replaying(plans: &[Plan], numbers: Vec<u32>) -> Self {
        let (mut changes, mut at_end) = ([Change::Nothing; S], 0);
        for (scenario, plan) in plans.iter().take(S).enumerate() {
            changes[scenario] = plan.change;
            if plan.target == Target::Serial(None) {
                at_end |= 1 << scenario;
            }
        }
        Collector {
            plans: plans.iter().take(S).cloned().collect(),
            scenarios: Scenarios::new(changes, at_end),
            numbers,
            ..Collector::default()
        }
    }

    /// The result; `None` if there was no process.
    pub(crate) fn predicted(self) -> Option<Predicted> {
        let (predicted, scaling, loops) = (self.predicted?, self.scaling, self.loops);
        let mut ends = [Ns::MIN; MAX_SCENARIOS];
        ends.iter_mut().zip(predicted).for_each(|(end, predicted)| *end = predicted);
        Some(Predicted { ends, scaling, loops })
    }
}

impl Collector<1> {
    /// Only schedules regions on these numbers of threads, using up to `schedulers` additional threads.
    pub(crate) fn scheduling(numbers: Vec<u32>, schedulers: usize) -> Self {
        Collector { numbers, schedulers, ..Collector::default() }
    }

    /// The result of scheduling, combined with the ends that another collector predicted.
    pub(crate) fn scheduled(self, predicted: Option<Predicted>) -> Option<Predicted> {
        let (scaling, loops) = (self.scaling, self.loops);
        predicted.map(|predicted| Predicted { scaling, loops, ..predicted })
    }
}

impl<const S: usize> Collector<S> {
    fn process(&mut self, process: &Process) {
        let lifetime = process.lifetime;
        let begin = lifetime.started.unwrap_or(lifetime.traced_from);
        let scenarios = std::mem::take(&mut self.scenarios);
        let (reports, is_overwritten) = (process.reports, process.is_overwritten);
        let mut threads = Threads::new(begin, reports, is_overwritten, scenarios);
        threads.observer = self.observer.take();
        if let Some(observer) = &mut threads.observer {
            observer.begin_process(begin, lifetime.ended);
        }
        if let Some(processes) = self.drawn {
            threads.draw_path(processes);
        }
        if !self.numbers.is_empty() {
            threads.schedule_on(self.numbers.clone(), self.schedulers);
        }
        let of = About {
            begin,
            lifetime,
            reports: process.reports,
            processors: process.processors,
            queues: Queues::default(),
            names: Names { process: process.name.clone(), threads: Vec::new() },
            first: None,
            has_doacross: false,
            seen: 0,
            selected: 0,
        };
        self.current = Some(Current { threads, of });
    }

    fn location(&mut self, location: &Location) {
        if let Some(Current { of, .. }) = &mut self.current {
            of.queues.location(location);
            of.first.get_or_insert(location.id.0);
        }
        if let (LocationKind::Thread { role, os_tid, stream }, Some(current)) =
            (location.kind, &mut self.current)
        {
            let id = location.id.0 as usize;
            let Current { threads, of } = current;
            let is_selected = self.selected.has(&location.name, of.seen, os_tid);
            of.seen += 1;
            of.selected += u32::from(is_selected);
            if let Some(observer) = &mut threads.observer {
                observer.add_stream(id, stream);
            }
            threads.add(id, role, is_selected);
            let names = &mut of.names.threads;
            names.resize(names.len().max(id + 1), None);
            names[id] = Some(location.name.clone());
        }
    }

    fn region(&mut self, region: &Region) {
        self.regions.add(region);
        if S == 0 {
            return;
        }
        let place = self.regions.places.last();
        let mut marks = ChangedPlaces::default();
        for (scenario, plan) in self.plans.iter().enumerate() {
            let bit = 1 << scenario;
            match &plan.target {
                Target::Everything => {}
                Target::Place(target) if Some(target) == place => marks.place |= bit,
                Target::Place(_) => {}
                Target::Places(targets) => {
                    if place.is_some_and(|place| targets.contains(place)) {
                        marks.place |= bit;
                    }
                }
                Target::Serial(before) if before.as_ref() == place => marks.before |= bit,
                Target::Serial(_) => {}
            }
        }
        let scenarios = match &mut self.current {
            Some(current) => &mut current.threads.scenarios,
            None => &mut self.scenarios,
        };
        scenarios.marks.push(marks);
    }

    fn enter(&mut self, enter: &Enter<Arguments<'_>>) {
        if let Some(current) = &mut self.current {
            let (at, region) = (enter.at, enter.region);
            let mut kind = self.regions.kinds[region.0 as usize];
            let location = at.location.0 as usize;
            if let Some(Awaited::Dependences { task }) = enter.awaited {
                kind = Kind::DependWait;
                current.threads.awaits_dependences(location, task);
            }
            let lock = match (enter.part, enter.awaited) {
                (Slice::First, Some(Awaited::Mutex { lock, .. })) => Some(lock),
                _ => None,
            };
            current.threads.enter(location, at.time, region.0, kind, lock);
            if enter.part == Slice::First && kind.is_wait_for_tasks() {
                current.threads.count_taskwait();
            }
            let construct = self.regions.constructs[region.0 as usize];
            if let (Slice::First, Construct::TargetDataOp(_)) = (enter.part, construct) {
                let bytes = number(enter.arguments, "bytes");
                current.threads.data_op(region.0, bytes);
            }
            if kind == Kind::ExternalWait && enter.part == Slice::First {
                let object = number(enter.arguments, "object");
                current.threads.external_wait(region.0, object);
            }
            if kind == Kind::StaticLoop {
                let iterations = number(enter.arguments, "count");
                current.threads.static_loop(location, iterations);
            }
            if kind == Kind::Chunk && current.threads.are_scheduled() {
                current.threads.dynamic_chunk(location, iterations(enter.arguments));
            }
        }
    }

    fn leave(&mut self, at: Point) {
        if let Some(current) = &mut self.current {
            current.threads.leave(at.location.0 as usize, at.time);
        }
    }

    fn thread_event(&mut self, at: Point, event: ThreadEvent) {
        if matches!(event, ThreadEvent::Sampled { .. }) && !self.has_functions {
            return;
        }
        if let Some(current) = &mut self.current {
            let location = at.location.0 as usize;
            current.threads.event(location, at.time, event);
        }
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        if let (Some(current), [callers @ .., innermost]) = (&mut self.current, sample.stack) {
            let location = sample.at.location.0 as usize;
            let spins = sample.activity.filter(|activity| activity.is_of_spinning());
            let spins = spins.and_then(|activity| Some((callers.last()?.function.0, activity)));
            let threads = &mut current.threads;
            threads.name_sample(location, innermost.function.0, spins);
        }
    }

    fn instant(&mut self, instant: &Instant<Arguments<'_>>) {
        let Some(current) = &mut self.current else {
            return;
        };
        match self.regions.constructs[instant.region.0 as usize] {
            Construct::Dispatch(ompt::ompt_dispatch_ws_loop_chunk) => {
                let location = instant.at.location.0 as usize;
                current.threads.first_chunk(location, iterations(instant.arguments));
            }
            Construct::Doacross => {
                current.of.has_doacross = true;
                current.threads.problem(instant.at.location.0 as usize, Problem::Doacross);
            }
            Construct::Cancel => {
                current.threads.problem(instant.at.location.0 as usize, Problem::Cancelled);
            }
            _ => {}
        }
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        if let Some(current) = &mut self.current {
            current.of.queues.interval(interval);
        }
    }

    fn summary(&mut self, summary: &Summary) {
        let Some(Current { threads, of }) = self.current.take() else {
            return;
        };
        let ended = of.lifetime.ended;
        let end = ended.map_or(summary.end, |ended| ended.max(summary.end));
        let end = end.max(of.begin);
        let finished = threads.finish(summary.end, end);
        let tracer_ns = of.lifetime.tracer_ended.map_or(0, |(begin, done)| {
            let (begin, done) = (begin.max(summary.end), done.min(end));
            done.saturating_sub(begin).max(0).cast_unsigned()
        });
        let ended = Ended { finished, end, tracer_ns, of };
        match self.is_of_segment {
            true => self.ended = Some(ended),
            false => self.take_in(ended),
        }
    }

    /// Adds the results of a process.
    fn take_in(&mut self, ended: Ended<S>) {
        let Ended { mut finished, end, tracer_ns, of } = ended;
        // Nothing of the process is analysed.
        let is_absent = self.has_windows && end == of.begin || !self.selected.is_all() && of.selected == 0;
        self.scenarios = std::mem::take(&mut finished.scenarios);
        let names = &of.names.threads;
        self.life = (of.begin, end);
        if let Some(observer) = finished.observer.take() {
            let observer: Box<dyn Any> = observer;
            match observer.downcast::<Observed>() {
                Ok(observed) => {
                    let (process, sums) = (&of.names.process, &finished.sums);
                    let Observed { gathering, ranks } = *observed;
                    self.gathered = gathering
                        .map(|gathering| gathering.finish(process, names, self.life, sums, &self.regions));
                    let place = |id| of_process::place(&self.regions, &sums.serial_places, id);
                    self.rank_spans = ranks.map(|ranks| ranks.finish(place)).unwrap_or_default();
                }
                Err(other) => match other.downcast::<ByStep>() {
                    Ok(by_step) => self.by_step = by_step.finish(),
                    Err(other) => {
                        self.spans =
                            other.downcast().map_or_else(|_| Vec::new(), |spans: Box<Spans>| spans.finish())
                    }
                },
            }
        }
        if self.drawn.is_some() {
            let first = of.first.unwrap_or(0);
            self.paths.push(self.path(&finished, names, first));
        }
        if is_absent {
            return;
        }
        let place = |id| of_process::place(&self.regions, &finished.sums.serial_places, id);
        for (id, scaling) in &mut finished.scaling {
            for (id, times) in std::mem::take(&mut scaling.loops) {
                self.loops.entry(place(id)).or_default().merge(&times);
            }
            self.scaling.entry(place(*id)).or_default().merge(scaling);
        }
        let latest = self.predicted.get_or_insert([Ns::MIN; S]);
        for (latest, predicted) in latest.iter_mut().zip(finished.predicted) {
            *latest = (*latest).max(predicted);
        }
        // A replay does not count anything.
        if S > 0 {
            return;
        }
        let outcome = Outcome {
            finished,
            processors: of.processors,
            queues: of.queues,
            begin: of.begin,
            end,
            tracer_ns,
            chunk_cost: of.reports.chunk_cost_ns,
            task_creation: of.reports.task_creation,
            not_seen: not_seen(&of.reports, of.has_doacross)
                .map(|(cause, reason)| NotSeen { cause, reason })
                .collect(),
        };
        let part = MergeableAnswers::of(outcome, &self.regions, self.threads, &of.names);
        self.part.merge(part);
    }

    /// Marks the timeline as a segment of a process.
    pub(crate) fn of_segment(self) -> Self {
        Collector { is_of_segment: true, ..self }
    }

    #[cold]
    fn begin_segment(&mut self) {
        if let Some(Current { threads, .. }) = &mut self.current {
            threads.begin_segment();
            self.began = Some(threads.latest());
        }
    }

    /// The critical path of a process whose first location has number `first`.
    fn path(&self, finished: &Finished<S>, names: &[Option<String>], first: u32) -> Arc<[ExtraInterval]> {
        let mut places: FastMap<u32, Arc<str>> = FastMap::default();
        let names = names.iter();
        let names: Vec<Arc<str>> = names.map(|name| name.as_deref().unwrap_or_default().into()).collect();
        let steps = finished.steps.iter();
        let steps = steps.map(|step| {
            let name = places.entry(step.place).or_insert_with(|| {
                let serial = &finished.sums.serial_places;
                of_process::place(&self.regions, serial, step.place).long().into()
            });
            ExtraInterval {
                name: name.clone(),
                thread: Some(names.get(step.location).cloned().unwrap_or_default()),
                location: (step.location as u32).checked_sub(first),
                begin: step.begin,
                end: step.end,
            }
        });
        steps.collect()
    }

    pub(crate) fn finish(self) -> MergeableAnswers {
        self.part
    }
}

impl<const S: usize> Continues for Collector<S> {
    fn end_segment(&mut self) -> bool {
        let Some(Current { threads, of }) = self.current.take() else {
            return false;
        };
        let (end, is_between) = (threads.latest(), threads.is_between_regions());
        let finished = threads.end_segment();
        self.ended = Some(Ended { finished, end, tracer_ns: 0, of });
        is_between
    }

    fn append(&mut self, next: Self) -> bool {
        let (Some(own), Some(next_ended)) = (&mut self.ended, next.ended) else {
            return false;
        };
        let begin = own.end;
        let numbers = self.regions.append(next.regions);
        let Some(numbers) = numbers.filter(|_| next.began == Some(begin)) else {
            return false;
        };
        let known = |place: PlaceId| numbers[place as usize];
        let is_observed = own.finished.append(next_ended.finished, begin, &known);
        own.end = next_ended.end;
        own.tracer_ns = next_ended.tracer_ns;
        own.of.queues = next_ended.of.queues;
        own.of.has_doacross |= next_ended.of.has_doacross;
        is_observed && !own.finished.sums.is_full()
    }

    fn complete(&mut self) {
        if let Some(ended) = self.ended.take() {
            self.take_in(ended);
        }
    }
}

impl<const S: usize> Collects for Collector<S> {
    fn set_inside(&mut self, is_inside: bool) {
        self.has_windows = true;
        if let Some(current) = &mut self.current {
            current.threads.set_inside(is_inside);
        }
    }

    fn window_begins(&mut self) {
        if let Some(current) = &mut self.current {
            current.threads.window_begins();
        }
    }
}

impl<const S: usize> Sink for Collector<S> {
    fn wants(&self) -> Wants {
        match self.has_functions {
            true => Wants::THREAD_EVENTS.and(Wants::SAMPLES).and(Wants::SAMPLE_TIMES),
            false => Wants::THREAD_EVENTS,
        }
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Enter(enter) => self.enter(enter),
            Item::Leave(leave) => self.leave(leave.at),
            Item::ThreadEvent(at, event) => self.thread_event(*at, *event),
            Item::Interval(interval) => self.interval(interval),
            Item::Instant(instant) => self.instant(instant),
            Item::Process(process) => self.process(process),
            Item::Location(location) => self.location(location),
            Item::Region(region) => self.region(region),
            Item::Function(function) => self.regions.functions.push(FunctionName::of(function)),
            Item::Sample(sample) if self.has_functions => self.sample(sample),
            Item::Summary(_, summary) => self.summary(summary),
            Item::Segment => self.begin_segment(),
            _ => {}
        }
    }
}
