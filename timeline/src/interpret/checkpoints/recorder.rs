//! Checkpoints of a trace that is interpreted from its start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ompt_sys as ompt;
use omptrace_symbols::Table;
use omptrace_symbols::fast_map::FastMap;
use omptrace_trace_format::checkpoint::{Checkpoint, Packed};
use omptrace_trace_format::event::Event;
use omptrace_trace_format::field::domain;
use omptrace_trace_format::{Reader, Record};

use super::restart::Restart;
use super::{Head, VERSION, may_have_checkpoints};
use crate::devices::{Devices, Survey};
use crate::interpret::annotations::is_of_process;
use crate::interpret::endpoint::endpoint;
use crate::interpret::item_emitter::Stage;
use crate::interpret::{Interpreter, Parts};
use crate::model::manner::Manner;
use crate::model::null_sink::NullSink;
use crate::model::{Ns, ProcessId};
use crate::replay::stream::Timed;
use crate::threads::open_regions::{Progress, Thread};

/// The distance from one checkpoint to the next is this many times that to the next attempt, after one that failed.
/// After each, that is twice as far, up to the second.
const RETRY: u64 = 1 << 8;
const MAX_RETRY: u64 = 1 << 3;
/// In this part of the distance, a checkpoint waits for the end of a parallel region. After the next part, it waits for quiet no longer.
const PATIENCE: u64 = 1 << 2;
const PATIENCE_FOR_QUIET: u64 = 1 << 4;
/// No event for this long, so that counters of the timeline show what there is.
const QUIET_NS: Ns = 1_000;
/// Events of a checkpoint, at most.
const MAX_EVENTS: usize = 1 << 12;
/// Ranges of ids in a checkpoint, at most.
const MAX_RANGES: usize = 1 << 12;
/// Events that may matter are looked through when they are as many, and twice as many as did matter.
const CANDIDATES: usize = 1 << 15;
/// Of more than these, those of tasks are forgotten. Stops a program of millions of tasks that wait: it has no checkpoint until these
/// have run.
const MAX_CANDIDATES: usize = 1 << 16;

/// Takes note of events whose effect lasts, and makes checkpoints of them.
pub(crate) struct Recorder<'r> {
    reader: &'r Reader,
    candidates: Vec<Candidate>,
    /// When the candidates are looked through next.
    crowded: usize,
    /// Events of modules, all of which last.
    modules: Vec<Candidate>,
    /// Where locks were made that are not destroyed, by `wait_id`.
    locks: BTreeMap<u64, Candidate>,
    /// Events from one checkpoint to the next.
    distance: u64,
    /// The number of the event before which the next checkpoint is due, and that before which it is tried next.
    due: u64,
    next: u64,
    retry: u64,
    /// The newest event's time, and whether it ended a parallel region.
    last: (u64, Ns),
    ends_region: bool,
    made: Vec<Packed>,
    /// The trace has something of which checkpoints know nothing.
    is_off: bool,
}

/// An event that may matter later.
struct Candidate {
    /// Its number.
    event: u64,
    thread: usize,
    record: Record,
}

/// An event that matters, by its number.
#[derive(Clone, Copy)]
struct Needed {
    event: u64,
    /// How far the region has come that it begins.
    progress: Option<Progress>,
    /// It matters only that a wait went on after it, on this thread.
    resumes: Option<usize>,
}

impl Needed {
    fn of(event: u64) -> Needed {
        Needed { event, progress: None, resumes: None }
    }
}

impl<'r> Recorder<'r> {
    /// For the trace of `reader`, which is interpreted from its start, with a checkpoint every `distance` events.
    pub(crate) fn new(reader: &'r Reader, distance: u64) -> Recorder<'r> {
        Recorder {
            reader,
            candidates: Vec::new(),
            crowded: CANDIDATES,
            modules: Vec::new(),
            locks: BTreeMap::new(),
            distance,
            due: distance,
            next: distance,
            retry: distance / RETRY + 1,
            last: (0, Ns::MIN),
            ends_region: false,
            made: Vec::new(),
            is_off: !may_have_checkpoints(reader.metadata()),
        }
    }

    /// The checkpoints.
    pub(crate) fn finish(self) -> Vec<Packed> {
        self.made
    }

    /// `interpreter` is about to get an event of `thread`.
    #[inline(always)]
    pub(crate) fn before(&mut self, interpreter: &Interpreter<'_, '_>, thread: usize, timed: &Timed) {
        if self.is_off {
            return;
        }
        let number = interpreter.stage.event + 1;
        if number >= self.next {
            self.perhaps(interpreter, timed, number);
        }
        self.last = (timed.record.ticks, timed.time);
        self.ends_region = matches!(timed.record.event, Event::ParallelEnd(_));
        match lasting(&timed.record.event) {
            Lasting::No if !timed.was_raised => {}
            _ => self.keep(interpreter, number, thread, timed),
        }
    }

    #[inline(never)]
    fn keep(&mut self, interpreter: &Interpreter<'_, '_>, event: u64, thread: usize, timed: &Timed) {
        let candidate = Candidate { event, thread, record: timed.record.clone() };
        match lasting(&timed.record.event) {
            _ if timed.was_raised => self.turn_off(),
            Lasting::Unknown => self.turn_off(),
            Lasting::Always => self.keep_always(candidate),
            Lasting::Perhaps | Lasting::No => self.candidates.push(candidate),
        }
        if self.candidates.len() >= self.crowded {
            self.forget(interpreter);
        }
    }

    fn keep_always(&mut self, candidate: Candidate) {
        match &candidate.record.event {
            Event::LockInit(e) => {
                self.locks.insert(e.wait_id.0, candidate);
            }
            Event::LockDestroy(e) => {
                self.locks.remove(&e.wait_id.0);
            }
            _ => self.modules.push(candidate),
        }
    }

    fn turn_off(&mut self) {
        self.is_off = true;
        self.candidates = Vec::new();
        self.modules = Vec::new();
        self.locks = BTreeMap::new();
    }

    /// Forgets the candidates that do not matter any more.
    #[cold]
    fn forget(&mut self, interpreter: &Interpreter<'_, '_>) {
        let needed = interpreter.needed(&self.candidates);
        let mut needed = needed.iter().map(|needed| needed.event).peekable();
        self.candidates.retain(|candidate| {
            while needed.next_if(|event| *event < candidate.event).is_some() {}
            needed.peek() == Some(&candidate.event)
        });
        if self.candidates.len() > MAX_CANDIDATES {
            let is_of_task = |event: &Event<'_>| {
                matches!(event, Event::TaskCreate(_) | Event::TaskSchedule(_) | Event::TaskComplete(_))
            };
            self.candidates.retain(|candidate| !is_of_task(&candidate.record.event));
        }
        self.crowded = CANDIDATES.max(2 * self.candidates.len());
    }

    /// A checkpoint is due before the event of that number.
    #[cold]
    fn perhaps(&mut self, interpreter: &Interpreter<'_, '_>, next: &Timed, number: u64) {
        let (ticks, time) = self.last;
        let waited = number - self.due;
        let patience = self.distance / PATIENCE;
        let is_time = match waited.checked_sub(patience) {
            None => self.ends_region && interpreter.is_between_regions(),
            Some(waited) => {
                next.time.saturating_sub(time) >= QUIET_NS || waited >= self.distance / PATIENCE_FOR_QUIET
            }
        };
        if !is_time || next.record.ticks <= ticks {
            return;
        }
        match self.checkpoint(interpreter, next.record.ticks) {
            Some(checkpoint) => {
                self.made.push(checkpoint);
                self.due = number + self.distance;
                self.next = self.due;
                self.retry = self.distance / RETRY + 1;
            }
            None => {
                self.next = number + self.retry;
                self.retry = (self.distance / MAX_RETRY + 1).min(2 * self.retry);
            }
        }
    }

    /// A checkpoint that was tried: `None` where there cannot be one now.
    fn checkpoint(&self, interpreter: &Interpreter<'_, '_>, ticks: u64) -> Option<Packed> {
        let is_small = interpreter.tasks.len() + self.locks.len() <= MAX_EVENTS
            && interpreter.given_ids.len() <= MAX_RANGES
            && interpreter.threads.len() <= MAX_EVENTS;
        let state = is_small.then(|| interpreter.state()).flatten()?;
        let needed = interpreter.needed(&self.candidates);
        if needed.len() > MAX_EVENTS {
            return None;
        }
        let checkpoint = self.of(interpreter, &needed, ticks)?;
        let restart = Restart::of(self.reader, checkpoint.clone())?;

        let mut sink = NullSink;
        let manner = Manner { checkpoints: Some(self.distance), ..Manner::default() };
        let mut stage = Stage::new(&mut sink, manner);
        stage.begin_process(ProcessId(0), Table::default(), Default::default());
        stage.names = interpreter.stage.names.clone();
        let mut tried = interpreter.anew(&mut stage);
        tried.begin_at(&restart);
        if tried.state()? != state {
            return None;
        }
        checkpoint.pack()
    }

    /// The checkpoint of the events that are `needed`.
    fn of(&self, interpreter: &Interpreter<'_, '_>, needed: &[Needed], ticks: u64) -> Option<Checkpoint> {
        let start = interpreter.clock.start;
        let streams = self.reader.streams();
        let stream = |thread: usize| streams.get(thread).map(|stream| stream.number);
        let (mut events, mut progress, mut resumed) = (Vec::new(), Vec::new(), Vec::new());
        let mut always: Vec<&Candidate> = self.modules.iter().chain(self.locks.values()).collect();
        always.sort_unstable_by_key(|candidate| candidate.event);
        let mut always = always.into_iter().peekable();
        for of_event in needed.chunk_by(|a, b| a.event == b.event) {
            let event = of_event[0].event;
            while let Some(other) = always.next_if(|other| other.event < event) {
                events.push((stream(other.thread)?, other.record.clone()));
            }
            let candidate = candidate(&self.candidates, event)?;
            if of_event.iter().any(|needed| needed.resumes.is_none()) {
                let far = of_event.iter().find_map(|needed| needed.progress);
                let place = events.len();
                progress.extend(far.map(|far| (place, far)));
                events.push((stream(candidate.thread)?, candidate.record.clone()));
            }
            for thread in of_event.iter().filter_map(|needed| needed.resumes) {
                resumed.push((events.len(), stream(thread)?, candidate.record.ticks));
            }
        }
        for other in always {
            events.push((stream(other.thread)?, other.record.clone()));
        }
        let repairs = interpreter.stage.repairs.iter().map(|repair| {
            let first = repair.first;
            let name = repair.cause.name().to_owned();
            (name, repair.count, first.stream, first.time - start)
        });
        let head = Head {
            version: VERSION.to_owned(),
            events: interpreter.stage.event,
            ends_region: self.ends_region && interpreter.is_between_regions(),
            lost: interpreter.lost,
            given: interpreter.given_ids.ranges().collect(),
            unset_tasks: interpreter.unset_tasks,
            unannounced_tasks: interpreter.unannounced_tasks,
            has_proxy_tasks: interpreter.has_proxy_tasks,
            repairs: repairs.collect(),
            progress,
            resumed,
            annotations: interpreter.annotations.state(start)?,
        };
        Some(Checkpoint { ticks, words: serde_json::to_vec(&head).ok()?, events })
    }
}

fn candidate(candidates: &[Candidate], event: u64) -> Option<&Candidate> {
    let place = candidates.binary_search_by_key(&event, |candidate| candidate.event);
    candidates.get(place.ok()?)
}

/// Whether the effect of an event lasts beyond it.
enum Lasting {
    No,
    /// Until something else ends.
    Perhaps,
    Always,
    /// The interpreter keeps what checkpoints do not have.
    Unknown,
}

#[inline(always)]
fn lasting(event: &Event<'_>) -> Lasting {
    if let Some(endpoint) = endpoint(event) {
        return match endpoint {
            ompt::ompt_scope_end => Lasting::No,
            _ => Lasting::Perhaps,
        };
    }
    match event {
        Event::ParallelBegin(_) | Event::ParallelEnd(_) | Event::ImplicitTaskBegin(_) => Lasting::Perhaps,
        Event::TaskCreate(_) | Event::TaskSchedule(_) | Event::TaskComplete(_) => Lasting::Perhaps,
        Event::MutexAcquire(_) | Event::MutexAcquired(_) | Event::MutexReleased(_) => Lasting::Perhaps,
        Event::Dispatch(_) | Event::ControlTool(_) => Lasting::Perhaps,
        Event::ThreadBegin(_) | Event::ThreadInfo(_) | Event::ThreadEnd(_) => Lasting::No,
        Event::ImplicitTaskEnd(_) => Lasting::Perhaps,
        Event::NestLock(_) | Event::Flush(_) => Lasting::No,
        Event::LockInit(_) | Event::LockDestroy(_) => Lasting::Always,
        Event::Cancel(_) | Event::Error(_) | Event::ParentRegion(_) => Lasting::No,
        Event::TaskDependence(_) | Event::Dependences(_) => Lasting::No,
        Event::BufferFlush(_) | Event::Lost(_) | Event::Unknown(_) => Lasting::No,
        Event::Monitoring(_) => Lasting::No,
        Event::Module(_) => Lasting::Always,
        // Ranges of the process are a part of the checkpoint.
        Event::AnnotationBegin(e) if is_of_process(e.kind) => Lasting::No,
        Event::AnnotationBegin(_) => Lasting::Perhaps,
        Event::AnnotationEnd(_) | Event::AnnotationMark(_) | Event::AnnotationSpan(_) => Lasting::No,
        Event::AnnotationValue(_) | Event::AnnotationMemory(_) | Event::AnnotationPause(_) => Lasting::No,
        Event::ObjectDefined(object) if object.domain == domain::ANNOTATIONS => Lasting::No,
        // Those of devices, samples, counters and the Collector API, and those that are new.
        _ => Lasting::Unknown,
    }
}

impl<'t> Interpreter<'t, '_> {
    /// One that has seen no event.
    fn anew<'u, 's>(&self, stage: &'u mut Stage<'s>) -> Interpreter<'u, 's>
    where
        't: 'u,
    {
        let threads = self
            .threads
            .iter()
            .map(|thread| Thread::new(thread.location, thread.stream, thread.is_helper, self.clock.start));
        let threads: Vec<Thread> = threads.collect();
        let streams = threads.iter().map(|thread| thread.stream);
        let devices = Devices::new(Survey::default(), BTreeMap::new(), std::iter::empty(), streams);
        let parts = Parts { dialect: self.dialect, selection: self.selection, schema: self.schema };
        Interpreter::of_parts(stage, parts, self.clock, threads, self.thread_names.clone(), devices)
            .with_texts(Arc::clone(&self.annotations.texts))
    }

    /// Whether no parallel region is open, nor anything else of a thread but what it is in.
    fn is_between_regions(&self) -> bool {
        self.teams.is_empty()
            && self.tasks.is_empty()
            && self.locks.held().is_empty()
            && self.threads.iter().all(Thread::is_between_regions)
    }

    /// The events of `candidates` by which the state can be had again, and how far they have come since. They are in order.
    fn needed(&self, candidates: &[Candidate]) -> Vec<Needed> {
        let mut needed = Vec::new();
        // Of a team, all that joins it and leaves it. The last one that a thread had shows where serial code goes on.
        let mut last: FastMap<usize, u64> = FastMap::default();
        for candidate in candidates {
            if let Event::ParallelEnd(e) = &candidate.record.event {
                last.insert(candidate.thread, e.parallel_data.0);
            }
        }
        let mut teams: BTreeSet<u64> = self.teams.keys().chain(last.values()).copied().collect();
        for (place, thread) in self.threads.iter().enumerate() {
            for (index, frame) in thread.stack().iter().enumerate() {
                self.needed_of_frame(&mut needed, candidates, place, index);
                teams.extend(frame.team().map(|team| team.0));
            }
        }
        let mut implicit_tasks = BTreeSet::new();
        for candidate in candidates {
            let is_of_team = match &candidate.record.event {
                Event::ParallelBegin(e) => teams.contains(&e.parallel_data.0),
                Event::ParallelEnd(e) => teams.contains(&e.parallel_data.0),
                Event::ImplicitTaskBegin(e) => {
                    let is_member = teams.contains(&e.parallel_data.0);
                    implicit_tasks.extend(is_member.then_some(e.task_data.0));
                    is_member
                }
                Event::ImplicitTaskEnd(e) => implicit_tasks.contains(&e.task_data.0),
                _ => false,
            };
            if is_of_team {
                needed.push(Needed::of(candidate.event));
            }
        }
        needed.extend(self.tasks.values().map(|task| Needed::of(task.event)));
        let held = self.locks.held().into_iter();
        needed.extend(held.map(|held| Needed::of(held.event)));
        needed.sort_by_key(|needed| needed.event);
        needed
    }

    /// What the region at `index` of the stack of the thread at `place` needs.
    fn needed_of_frame(
        &self,
        needed: &mut Vec<Needed>,
        candidates: &[Candidate],
        place: usize,
        index: usize,
    ) {
        let thread = &self.threads[place];
        let frame = &thread.stack()[index];
        let further = candidate(candidates, frame.further);
        let further = further.filter(|_| frame.further > 0);
        let mut iterations = 0;
        match further.map(|further| &further.record.event) {
            _ if frame.has_resumed() => {
                needed.push(Needed { resumes: Some(place), ..Needed::of(frame.further) })
            }
            Some(Event::Dispatch(newest)) => {
                iterations = newest.iterations;
                needed.push(Needed::of(frame.further));
            }
            // Whoever held the mutex when the wait began, and when it was released since.
            Some(Event::MutexAcquired(acquired)) => {
                needed.push(Needed::of(frame.further));
                let holder = further.map(|further| further.thread);
                let behind = candidates.partition_point(|other| other.event <= frame.further);
                let is_release = |other: &&Candidate| match &other.record.event {
                    Event::MutexReleased(e) => Some(other.thread) == holder && e.wait_id == acquired.wait_id,
                    _ => false,
                };
                let release = candidates[behind..].iter().find(is_release);
                needed.extend(release.map(|release| Needed::of(release.event)));
            }
            _ => {}
        }
        needed.push(Needed { progress: thread.progress(index, iterations), ..Needed::of(frame.opened()) });
    }
}
