//! State shared by all parts of the interpretation: the sink, the names, and the numbers assigned so far.

use ompt_sys as ompt;
use omptrace_symbols::Table;
use omptrace_trace_format::field::Address;

use crate::model::manner::Manner;
use crate::model::repairs::Repairs;
use crate::model::{
    Anchor, Argument, Awaited, Count, CountValue, Counter, CounterId, Enter, FunctionId, FunctionKind,
    Instant, Interval, Item, Leave, Link, LinkKind, Location, LocationId, LocationKind, Ns, Part, Point,
    ProcessId, RegionId, Reports, Sample, Sink, StackFrame, TaskId, TeamId, ThreadEvent, Wants,
};
use crate::names::Names;
use crate::names::construct::Construct;
use crate::samples::functions::Functions;
use crate::tasks::causes::Causes;

/// Number of combinations of task flags whose names are kept.
const MAX_TASK_FLAGS: usize = 64;

pub(crate) struct Stage<'s> {
    pub(crate) sink: &'s mut dyn Sink,
    wants: Wants,
    /// Whether the sink needs to know how threads meet in regions.
    pub(crate) wants_meetings: bool,
    /// Whether counters are wanted.
    pub(crate) wants_counts: bool,
    pub(crate) names: Names,
    functions: Functions,
    /// Whether the chunks of loops are wanted.
    pub(crate) chunks: bool,
    /// Regions nested this deep or deeper are not shown.
    pub(crate) max_depth: usize,
    /// Repairs in the current process.
    pub(crate) repairs: Repairs,
    /// The last pause of the recording in the current process.
    pub(crate) pause: Option<(Ns, Ns)>,
    /// The number of the current event, counted from 1 for each process.
    pub(crate) event: u64,
    process: ProcessId,
    causes: Causes,
    next_location: u32,
    next_counter: u32,
    next_link: u64,
    /// The names of the task flags that have occurred, which are few.
    task_flags: Vec<(ompt::ompt_task_flag_t, Box<str>)>,
}

/// The names of a task's flags, and their position in `task_flags`.
pub(crate) struct FlagWords {
    place: usize,
    pub(crate) words: Box<str>,
}

impl<'s> Stage<'s> {
    pub(crate) fn new(sink: &'s mut dyn Sink, manner: Manner) -> Stage<'s> {
        let wants = sink.wants();
        Stage {
            wants,
            wants_meetings: wants.contains(Wants::THREAD_EVENTS) || wants.contains(Wants::CAUSES),
            // A reader that starts at a checkpoint needs the counters' state.
            wants_counts: wants.contains(Wants::COUNTS) || manner.checkpoints.is_some(),
            sink,
            names: Names::default(),
            functions: Functions::default(),
            chunks: manner.chunks,
            max_depth: manner.max_depth.unwrap_or(usize::MAX),
            repairs: Repairs::default(),
            pause: None,
            event: 0,
            process: ProcessId(0),
            causes: Causes::default(),
            next_location: 0,
            next_counter: 0,
            next_link: 1,
            task_flags: Vec::new(),
        }
    }

    /// Begins `process`. `symbols`: the names of its code addresses. `reports`: what its runtime reports.
    pub(crate) fn begin_process(&mut self, process: ProcessId, symbols: Table, reports: Reports) {
        self.process = process;
        self.causes = Causes::new(reports);
        self.names.next_process(symbols);
        self.repairs = Repairs::default();
        self.pause = None;
        self.event = 0;
    }

    pub(crate) fn location(&mut self, kind: LocationKind, name: String) -> LocationId {
        let id = LocationId(self.next_location);
        self.next_location += 1;
        self.item(&Item::Location(&Location { id, process: self.process, kind, name }));
        id
    }

    pub(crate) fn counter(&mut self, name: String, unit: &'static str) -> CounterId {
        let id = CounterId(self.next_counter);
        self.next_counter += 1;
        self.item(&Item::Counter(&Counter { id, process: self.process, name, unit }));
        id
    }

    /// The region of `construct` at `codeptr_ra`. `around`: the open regions around it, innermost first.
    #[inline(always)]
    pub(crate) fn region(
        &mut self,
        construct: Construct,
        codeptr_ra: Address,
        around: impl Iterator<Item = RegionId>,
    ) -> RegionId {
        self.names.region(self.sink, construct, codeptr_ra, around)
    }

    /// Lends the names of a task's flags, including unknown bits. They must be given back.
    #[inline]
    pub(crate) fn lend_task_flags(&mut self, flags: ompt::ompt_task_flag_t) -> FlagWords {
        match self.task_flags.iter().position(|(known, _)| *known == flags) {
            Some(place) => FlagWords { place, words: std::mem::take(&mut self.task_flags[place].1) },
            None => self.new_task_flags(flags),
        }
    }

    #[cold]
    fn new_task_flags(&mut self, flags: ompt::ompt_task_flag_t) -> FlagWords {
        let mut words: Vec<String> = flags.names().map(str::to_owned).collect();
        if flags.unknown_bits() != 0 {
            words.push(format!("{:#x}", flags.unknown_bits()));
        }
        let place = self.task_flags.len();
        // Invalid events may have any combination of flags.
        if place < MAX_TASK_FLAGS {
            self.task_flags.push((flags, Box::default()));
        }
        FlagWords { place, words: words.join(" ").into() }
    }

    /// Takes back what [`Stage::lend_task_flags`] lent.
    #[inline]
    pub(crate) fn take_back(&mut self, lent: FlagWords) {
        if let Some((_, words)) = self.task_flags.get_mut(lent.place) {
            *words = lent.words;
        }
    }

    /// Passes on an item that every sink receives.
    pub(crate) fn item(&mut self, item: &Item<'_>) {
        self.sink.item(item);
    }

    /// A region starts or continues.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        at: Point,
        region: RegionId,
        (part, awaited): (Part, Option<Awaited>),
        arguments: &[Argument<'_>],
    ) {
        self.sink.item(&Item::Enter(Enter { at, region, part, awaited, arguments }));
    }

    /// The innermost region ends.
    #[inline(always)]
    pub(crate) fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        self.sink.item(&Item::Leave(Leave { at, arguments }));
    }

    /// An instant event on a thread.
    pub(crate) fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.sink.item(&Item::Instant(Instant { at, region, arguments }));
    }

    /// Whether the sink wants counters of threads.
    pub(crate) fn wants_counters(&self) -> bool {
        self.wants.contains(Wants::COUNTERS)
    }

    /// Whether the sink wants MPI messages.
    pub(crate) fn wants_mpi(&self) -> bool {
        self.wants.contains(Wants::MPI)
    }

    /// Whether the sink wants annotations word for word.
    pub(crate) fn wants_annotations(&self) -> bool {
        self.wants.contains(Wants::ANNOTATIONS)
    }

    /// Whether the sink wants samples with their phases as frames.
    pub(crate) fn wants_phase_frames(&self) -> bool {
        self.wants.contains(Wants::PHASE_FRAMES)
    }

    /// Whether the sink wants samples.
    pub(crate) fn wants_samples(&self) -> bool {
        self.wants.contains(Wants::SAMPLES)
    }

    /// The function of a sample with these properties.
    pub(crate) fn function(
        &mut self,
        name: String,
        module: String,
        file: Option<String>,
        kind: FunctionKind,
    ) -> FunctionId {
        let key = (name, module, file, kind);
        self.functions.intern(self.sink, key)
    }

    /// A frame for something without code of its own.
    pub(crate) fn marker(&mut self, name: &str, kind: FunctionKind) -> StackFrame {
        let function = self.function(name.to_owned(), String::new(), None, kind);
        StackFrame { function, line: None }
    }

    /// The part of `function` that the runtime calls, after `caller` has called the runtime.
    pub(crate) fn outlined(&mut self, function: FunctionId, caller: FunctionId) -> FunctionId {
        self.functions.outlined(self.sink, function, caller)
    }

    /// A sample in the user's model.
    pub(crate) fn sample(&mut self, sample: &Sample<'_>) {
        self.sink.item(&Item::Sample(*sample));
    }

    /// An interval on a track.
    pub(crate) fn interval(&mut self, interval: Interval<'_>) {
        self.sink.item(&Item::Interval(interval));
    }

    /// The counter has this value from `time` on.
    pub(crate) fn count(&mut self, counter: CounterId, time: Ns, value: impl Into<CountValue>) {
        if self.wants_counts {
            self.sink.item(&Item::Count(Count { counter, time, value: value.into() }));
        }
    }

    /// A thread meets other threads.
    #[inline(always)]
    pub(crate) fn thread_event(&mut self, at: Point, event: ThreadEvent) {
        if self.wants.contains(event.wanted_as()) {
            self.sink.item(&Item::ThreadEvent(at, event));
        }
    }

    /// A causal link between two points.
    #[inline(always)]
    pub(crate) fn link(&mut self, kind: LinkKind, from: (Point, Anchor), to: (Point, Anchor)) {
        if self.wants.contains(kind.wanted_as()) {
            self.wanted_link(kind, from, to);
        }
    }

    #[inline(always)]
    fn wanted_link(&mut self, kind: LinkKind, (from, cause): (Point, Anchor), (to, effect): (Point, Anchor)) {
        self.sink.item(&Item::Link(Link { id: self.next_link, kind, from, cause, to, effect }));
        self.next_link += 1;
    }

    /// Whether the sink wants causes: links that viewers do not show.
    #[inline(always)]
    pub(crate) fn wants_causes(&self) -> bool {
        self.wants.contains(Wants::CAUSES)
    }

    /// Like [`Stage::link`], for causes, whose ends need no anchors.
    #[cold]
    pub(crate) fn cause(&mut self, kind: LinkKind, from: Point, to: Point) {
        if self.wants_causes() && from.location != to.location {
            let time = from.time.min(to.time);
            let from = Point { time, ..from };
            self.wanted_link(kind, (from, Anchor::Moment), (to, Anchor::Moment));
        }
    }

    /// A thread starts to wait.
    #[inline(always)]
    pub(crate) fn waits(&mut self, at: Point, awaited: Option<Awaited>) {
        if self.wants_causes()
            && let Some(awaited) = awaited
        {
            self.causes.waits(at, awaited);
        }
    }

    /// A thread, which has waited in a region of `construct` since `begin`, continues at `at`.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, construct: Construct, begin: Ns, at: Point, awaited: Awaited) {
        if self.wants_causes()
            && let Some((kind, from)) = self.causes.of_end(construct, begin, awaited)
        {
            self.cause(kind, from, at);
        }
    }

    /// At `at`, `task` is complete, a child of `parent`. `task` itself waits for no more children.
    #[inline(always)]
    pub(crate) fn task_ended(&mut self, task: TaskId, parent: TaskId, at: Point) {
        if self.wants_causes() {
            self.causes.forget_task(task);
            self.causes.child_ended(parent, at);
        }
    }

    /// The team has ended, and the implicit tasks of its `members` with it.
    #[cold]
    pub(crate) fn team_ended(&mut self, team: TeamId, members: impl Iterator<Item = TaskId>) {
        self.causes.forget_team(team);
        members.for_each(|task| self.causes.forget_task(task));
    }

    /// The end time of a region whose end is missing, on a thread that had its last event at `last` and its next one at
    /// `time`: the start of a pause, if there is one in between.
    pub(crate) fn end_of_unended(&self, last: Ns, time: Ns) -> Ns {
        match self.pause {
            Some((begin, end)) if last <= begin && end <= time => begin,
            _ => time,
        }
    }
}
