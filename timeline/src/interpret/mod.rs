//! The meaning of events, with one arm per event of the table. The match is exhaustive, so a new row requires a new
//! arm.
//!
//! A dozen kinds of events make up most of a trace. Each of these has a function of its own, which is never inlined.
//! Code that starts and ends regions is always inlined, because a call costs as much as the code itself. Inlining
//! everything into one function was slower (docs/lab-notes/performance.md).

pub(crate) mod activity_counters;
pub(crate) mod annotations;
mod checkpoints;
mod commands;
mod counting;
pub(crate) mod endpoint;
mod external_waits;
pub(crate) mod item_emitter;
mod joins;
mod mpi_calls;
mod mutexes;
pub(crate) mod old;
mod regions;
mod samples;
mod scope;
mod states;
mod tasks;
mod team;

pub use checkpoints::may_have_checkpoints;
pub(crate) use checkpoints::{Recorder, Restart};
pub use regions::schedule;
pub(crate) use samples::Samples;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ompt_sys as ompt;
use omptrace_symbols::fast_map::FastMap;
use omptrace_trace_format::event::*;
use omptrace_trace_format::field::{Address, Id, MonitoringChange};
use omptrace_trace_format::metadata::{Metadata, Schema};

use crate::devices::{DeviceReport, Devices};
use crate::interpret::activity_counters::Counters as Counts;
use crate::interpret::annotations::{Annotations, Texts};
use crate::interpret::item_emitter::Stage;
use crate::interpret::old::collector::RepeatedForks;
use crate::interpret::old::tr2;
use crate::model::repairs::{Cause, Repairs};
use crate::model::session_clock::SessionClock;
use crate::model::{
    Anchor, Argument, Awaited, Category, Interval, Item, LinkKind, LocationKind, LockId, Ns, RegionId,
    TaskId, TeamId, ThreadEvent, Value, argument,
};
use crate::names::construct::{Construct, DeviceEvent};
use crate::runtime_quirks::Dialect;
use crate::runtime_quirks::event_selection::Selection;
use crate::runtime_quirks::issued_ids::GivenIds;
use crate::samples::availability::SampleSums;
use crate::tasks::dependences::Dependences as TaskDependences;
use crate::tasks::locks::{Acquisition, Locks};
use crate::tasks::state::{Task, TaskState, Tasks};
use crate::threads::open_regions::{Frame, Meaning, Thread};
use counting::Counting;
use joins::Join;
pub(crate) use mpi_calls::MpiKnowledge;
use mpi_calls::MpiWaits;
use scope::{Scope, hex, id, int, uint};
use states::States;
use team::{Member, Team};

/// Interprets the merged events of one process.
pub(crate) struct Interpreter<'t, 's> {
    stage: &'t mut Stage<'s>,
    dialect: Dialect,
    selection: Selection,
    clock: SessionClock<'t>,
    /// The threads, in the order of the trace's streams.
    threads: Vec<Thread>,
    thread_names: Vec<String>,
    teams: FastMap<u64, Team>,
    /// The buffer of a former team's members, for reuse.
    spare_members: Vec<Member>,
    tasks: Tasks,
    /// A task was detached or offloaded, so tasks may be unfinished when the region of a team of one reports its end.
    has_proxy_tasks: bool,
    /// Number of undeferred tasks that have not started because they depend on such a task, which the runtime may not
    /// report as one.
    delayed_tasks: usize,
    joins: Vec<Join>,
    repeated_forks: RepeatedForks,
    /// The ids of regions and of all kinds of tasks.
    given_ids: GivenIds,
    /// Regions that LLVM's runtime forks for the code that members of leagues execute, with their tasks; see
    /// [`Self::is_body_of_league`].
    bodies_of_leagues: BTreeMap<u64, Option<u64>>,
    tasks_of_leagues: BTreeSet<u64>,
    /// Number of tasks that ran without an id.
    unset_tasks: u64,
    /// Number of tasks that ran before their creation was reported, or without it.
    unannounced_tasks: u64,
    /// Ended tasks that may turn out to be untied, and continue.
    finished_tasks: tr2::FinishedTasks,
    /// By thread: its last number in a team. For runtimes that do not number members.
    usual_numbers: BTreeMap<usize, u32>,
    dependences: TaskDependences,
    locks: Locks,
    counters: Counts,
    counting: Counting,
    devices: Devices,
    recording: Recording,
    samples: Samples,
    sample_sums: SampleSums,
    states: States,
    mpi_waits: MpiWaits<'t>,
    annotations: Annotations,
    /// Number of events that the tracer lost.
    lost: u64,
    /// The tracer's table of events, which may contain more events than this program's.
    schema: &'t [Schema],
}

/// Whether events are being recorded.
#[derive(Default)]
struct Recording {
    paused_since: Option<Ns>,
    /// The track, once there was a pause.
    track: Option<crate::model::LocationId>,
}

/// Arguments of a region: `[name: value, ...]`.
macro_rules! arguments {
    ($($name:literal: $value:expr),* $(,)?) => { &[$(argument($name, $value)),*] };
}
use arguments;

/// The parts of a trace's metadata that are needed to interpret its events.
#[derive(Clone, Copy)]
struct Parts<'t> {
    dialect: Dialect,
    selection: Selection,
    /// See [`Interpreter::schema`].
    schema: &'t [Schema],
}

impl<'t, 's> Interpreter<'t, 's> {
    /// Interprets the process that `metadata` describes. `threads`: its threads with their names.
    pub(crate) fn new(
        stage: &'t mut Stage<'s>,
        metadata: &'t Metadata,
        clock: SessionClock<'t>,
        threads: Vec<Thread>,
        thread_names: Vec<String>,
        devices: Devices,
        repeated_forks: RepeatedForks,
    ) -> Self {
        let parts = Parts {
            dialect: Dialect::of(metadata),
            selection: Selection::of(metadata),
            schema: &metadata.schema,
        };
        Interpreter {
            counting: Counting::of(metadata),
            states: States::of(metadata),
            repeated_forks,
            ..Interpreter::of_parts(stage, parts, clock, threads, thread_names, devices)
        }
    }

    fn of_parts(
        stage: &'t mut Stage<'s>,
        Parts { dialect, selection, schema }: Parts<'t>,
        clock: SessionClock<'t>,
        threads: Vec<Thread>,
        thread_names: Vec<String>,
        devices: Devices,
    ) -> Self {
        let counters = Counts::new(&threads);
        Interpreter {
            stage,
            dialect,
            selection,
            clock,
            threads,
            thread_names,
            teams: FastMap::default(),
            spare_members: Vec::new(),
            tasks: Tasks::default(),
            has_proxy_tasks: false,
            delayed_tasks: 0,
            joins: Vec::new(),
            repeated_forks: RepeatedForks::default(),
            given_ids: GivenIds::default(),
            bodies_of_leagues: BTreeMap::new(),
            tasks_of_leagues: BTreeSet::new(),
            unset_tasks: 0,
            unannounced_tasks: 0,
            finished_tasks: tr2::FinishedTasks::default(),
            usual_numbers: BTreeMap::new(),
            dependences: TaskDependences::default(),
            locks: Locks::default(),
            counters,
            counting: Counting::default(),
            devices,
            recording: Recording::default(),
            samples: Samples::default(),
            sample_sums: SampleSums::default(),
            states: States::default(),
            mpi_waits: MpiWaits::default(),
            annotations: Annotations::default(),
            lost: 0,
            schema,
        }
    }

    /// Also reports samples, as `samples` specifies.
    pub(crate) fn with_samples(self, samples: Samples) -> Self {
        Interpreter { samples, ..self }
    }

    /// Also shows what is known about MPI calls from other ranks.
    pub(crate) fn with_mpi(self, known: MpiKnowledge<'t>) -> Self {
        Interpreter { mpi_waits: MpiWaits::of(known), ..self }
    }

    /// Also resolves names that the program registered.
    pub(crate) fn with_texts(self, texts: Arc<Texts>) -> Self {
        Interpreter { annotations: Annotations::of(texts), ..self }
    }

    /// Interprets the next event of the process, which belongs to thread number `thread`.
    #[inline(always)]
    pub(crate) fn event(&mut self, thread: usize, time: Ns, event: &Event<'static>) {
        if time >= self.mpi_waits.next {
            self.end_mpi_waits(time);
        }
        self.stage.event += 1;
        self.settle_unended(thread, time, event);
        self.interpret(thread, time, event);
        let wait = self.threads[thread].settle(self.stage, time);
        if self.stage.wants_counts {
            self.counters.wait(self.stage, thread, time, wait);
            self.counters.tasks(self.stage, time, self.tasks.len());
        }
        if self.states.are_on() {
            self.states.settle(self.stage, thread, time, wait);
        }
    }

    #[inline(always)]
    fn interpret(&mut self, thread: usize, time: Ns, event: &Event<'static>) {
        match event {
            // Locations were named and sorted before the first event.
            Event::ThreadBegin(_) | Event::ThreadInfo(_) => {}
            Event::ThreadEnd(_) => {
                self.threads[thread].close_all(self.stage, time);
                self.states.end(self.stage, thread, time);
            }

            Event::ParallelBegin(e) => self.parallel_begin(thread, time, e),
            Event::ParallelEnd(e) => self.parallel_end(thread, time, e),
            Event::ImplicitTaskBegin(e) => self.implicit_task_begin(thread, time, e),
            Event::ImplicitTaskEnd(e) => self.implicit_task_end(thread, time, e),

            Event::Idle(e) => {
                let scope = Scope::new(e.endpoint, Construct::Idle);
                self.flat_scope(thread, time, scope, &[]);
            }

            Event::ThreadState(e) if self.states.are_on() => {
                let name = &self.thread_names[thread];
                let answer = (e.state, e.wait_id.0);
                self.states.answered(self.stage, (thread, name), time, answer);
            }
            Event::ThreadState(e) => {
                let wait_id = arguments!["wait_id": hex(e.wait_id.0)];
                let construct = Construct::ThreadState(e.state);
                self.instant(thread, time, construct, Address(0), wait_id);
            }

            Event::MutexWait(e) => {
                let wait_id = arguments!["wait_id": hex(e.wait_id.0)];
                let scope = Scope::new(e.endpoint, Construct::MutexWait(e.kind));
                self.flat_scope(thread, time, scope, wait_id);
            }
            Event::ExternalWait(e) => self.external_wait(thread, time, e),
            Event::CallBegin(e) => self.call_begin(thread, time, e),
            Event::CallEnd(e) => self.call_end(thread, time, e),
            Event::AnnotationBegin(e) => self.annotation_begin(thread, time, e),
            Event::AnnotationEnd(e) => self.annotation_end(thread, time, e),
            Event::AnnotationMark(e) => self.annotation_mark(thread, time, e),
            Event::AnnotationValue(e) => self.annotation_value(thread, time, e),
            Event::AnnotationMemory(e) => self.annotation_memory(time, e),
            Event::AnnotationSpan(e) => self.annotation_span(thread, e),
            // The pause itself is a separate event.
            Event::AnnotationPause(_) => {}
            // Used when messages are matched, or read before the first event.
            Event::CallObjects(_)
            | Event::ObjectDefined(_)
            | Event::ObjectNamed(_)
            | Event::ObjectFreed(_)
            | Event::ClockMeasured(_) => {}
            Event::Ordered(e) => {
                let construct = Construct::MutexHold(ompt::ompt_mutex_ordered);
                let region = arguments!["parallel_data": id(e.parallel_data)];
                self.flat_scope(thread, time, Scope::new(e.endpoint, construct), region);
            }
            // The parent is visible in the stack of the thread that forks.
            Event::ParentRegion(_) => {}
            Event::CollectorEvent(e) => {
                let number = arguments!["number": uint(e.number)];
                self.instant(thread, time, Construct::CollectorEvent, Address(0), number);
            }

            Event::Work(e) => self.work(thread, time, e),
            Event::Masked(e) => {
                let scope = Scope::new(e.endpoint, Construct::Masked).at(e.codeptr_ra);
                self.scope(thread, time, scope, &[task_argument(e.task_data)]);
            }
            Event::Dispatch(e) => self.dispatch(thread, time, e),

            Event::SyncRegion(e) => self.sync_region(thread, time, e),
            Event::SyncRegionWait(e) => self.sync_region_wait(thread, time, e),
            Event::Reduction(e) => {
                let scope = Scope::new(e.endpoint, Construct::Reduction).at(e.codeptr_ra);
                self.scope(thread, time, scope, &[task_argument(e.task_data)]);
            }

            Event::TaskCreate(e) => self.task_create(thread, time, e),
            Event::TaskSchedule(e) => {
                self.task_schedule(thread, time, e.prior_task_data, e.prior_task_status, e.next_task_data);
            }
            Event::TaskComplete(e) => {
                self.task_schedule(thread, time, e.prior_task_data, e.prior_task_status, e.next_task_data);
            }
            Event::TaskDependence(e) => self.task_dependence(thread, e),
            Event::Dependences(e) => self.dependences(thread, time, e),

            Event::MutexAcquire(e) => self.mutex_acquire(thread, time, e),
            Event::MutexAcquired(e) => self.mutex_acquired(thread, time, e),
            Event::MutexReleased(e) => self.mutex_released(thread, time, e),
            Event::NestLock(e) => {
                let construct = Construct::NestLockAgain(e.endpoint);
                self.instant(thread, time, construct, e.codeptr_ra, arguments!["wait_id": hex(e.wait_id.0)]);
            }
            Event::LockInit(e) => {
                let wait_id = arguments!["wait_id": hex(e.wait_id.0)];
                let construct = Construct::MutexInit(e.kind);
                let lock = LockId(e.wait_id.0);
                let region = self.region(thread, construct, e.codeptr_ra);
                self.thread_event(thread, time, ThreadEvent::InitLock { lock, region });
                self.instant(thread, time, construct, e.codeptr_ra, wait_id);
            }
            Event::LockDestroy(e) => {
                let wait_id = arguments!["wait_id": hex(e.wait_id.0)];
                self.instant(thread, time, Construct::MutexDestroy(e.kind), e.codeptr_ra, wait_id);
            }

            Event::Flush(e) => self.instant(thread, time, Construct::Flush, e.codeptr_ra, &[]),
            Event::Cancel(e) => {
                let names: Vec<&str> = e.flags.names().collect();
                let names = names.join(" ");
                let arguments = arguments!["flags": Value::Text(&names), "task_data": id(e.task_data)];
                self.instant(thread, time, Construct::Cancel, e.codeptr_ra, arguments);
                if e.flags.0 & ompt::ompt_cancel_discarded_task.0 != 0 {
                    self.task_discarded(thread, time, e.task_data);
                }
            }
            Event::Error(e) => {
                let message = e.message.lossy();
                let severity = e.severity.name().unwrap_or("unknown");
                let arguments =
                    arguments!["severity": Value::Text(severity), "message": Value::Text(&message)];
                self.instant(thread, time, Construct::Error, e.codeptr_ra, arguments);
            }
            Event::ControlTool(e) => self.control_tool(thread, time, e),

            Event::TargetEmi(e) => {
                let arguments = arguments!["device_num": int(e.device_num), "target_data": id(e.target_data)];
                let scope = Scope::new(e.endpoint, Construct::Target(e.kind))
                    .with_key(e.target_data.0)
                    .at(e.codeptr_ra);
                self.scope(thread, time, scope, arguments);
                let at = self.threads[thread].point(time);
                self.devices.target(thread, at, e);
            }
            Event::Target(e) => {
                let arguments = arguments!["device_num": int(e.device_num), "target_id": hex(e.target_id.0)];
                let scope = Scope::new(e.endpoint, Construct::Target(e.kind))
                    .with_key(e.target_id.0)
                    .at(e.codeptr_ra);
                self.scope(thread, time, scope, arguments);
            }
            Event::TargetDataOpEmi(e) => {
                let arguments = arguments![
                    "bytes": uint(e.bytes),
                    "src_device_num": int(e.src_device_num),
                    "dest_device_num": int(e.dest_device_num),
                    "host_op_id": id(e.host_op_id),
                ];
                let scope = Scope::new(e.endpoint, Construct::TargetDataOp(e.optype))
                    .with_key(e.host_op_id.0)
                    .at(e.codeptr_ra);
                self.scope(thread, time, scope, arguments);
                let at = self.threads[thread].point(time);
                self.devices.data_op(self.stage, thread, at, e);
            }
            Event::TargetDataOp(e) => self.target_data_op(thread, time, e),
            Event::TargetSubmitEmi(e) => {
                let arguments = arguments![
                    "requested_num_teams": uint(e.requested_num_teams),
                    "host_op_id": id(e.host_op_id),
                ];
                let scope = Scope::new(e.endpoint, Construct::TargetSubmit).with_key(e.host_op_id.0);
                self.scope(thread, time, scope, arguments);
                let at = self.threads[thread].point(time);
                self.devices.submit(self.stage, thread, at, e);
            }
            Event::TargetSubmit(e) => {
                let arguments = arguments![
                    "requested_num_teams": uint(e.requested_num_teams),
                    "host_op_id": hex(e.host_op_id.0),
                ];
                self.instant(thread, time, Construct::TargetSubmit, Address(0), arguments);
            }
            Event::TargetMap(e) => {
                let items = arguments!["nitems": uint(e.nitems)];
                self.instant(thread, time, Construct::TargetMap, e.codeptr_ra, items);
            }
            Event::TargetMapEmi(e) => {
                let items = arguments!["nitems": uint(e.nitems)];
                self.instant(thread, time, Construct::TargetMap, e.codeptr_ra, items);
            }

            Event::DeviceInitialize(e) => {
                let kind = e.r#type.lossy();
                let arguments = arguments!["device_num": int(e.device_num), "type": Value::Text(&kind)];
                self.device(thread, time, DeviceEvent::Initialize, arguments);
            }
            Event::DeviceFinalize(e) => {
                self.device(thread, time, DeviceEvent::Finalize, arguments!["device_num": int(e.device_num)]);
            }
            Event::DeviceLoad(e) => {
                let arguments = arguments!["device_num": int(e.device_num), "bytes": uint(e.bytes)];
                self.device(thread, time, DeviceEvent::Load, arguments);
                self.devices.load(e);
            }
            Event::DeviceUnload(e) => {
                self.device(thread, time, DeviceEvent::Unload, arguments!["device_num": int(e.device_num)]);
            }

            // The survey of devices has read these events.
            Event::DeviceStream(_) | Event::DeviceClock(_) | Event::DeviceTranslation(_) => {}
            Event::DeviceRecord(e) => {
                let repaired = self.devices.record(self.stage, self.clock, e);
                self.repaired(thread, time, repaired);
            }
            Event::DeviceKernel(e) => {
                let repaired = self.devices.kernel(self.stage, self.clock, e);
                self.repaired(thread, time, repaired);
            }
            Event::DeviceNativeRecord(e) => {
                let repaired = self.devices.native_record(self.stage, self.clock, e);
                self.repaired(thread, time, repaired);
            }
            Event::DeviceImage(e) => self.devices.image(e),

            Event::Module(e) => self.know_module(e),
            Event::Monitoring(e) => self.monitoring(thread, time, e.change),
            Event::BufferFlush(e) => {
                let begin = self.clock.time(e.begin.0);
                let bytes = arguments!["bytes": uint(e.bytes)];
                self.span(thread, begin, time, Construct::BufferFlush, bytes);
            }
            Event::Counters(e) => self.counters(thread, time, e),
            Event::Lost(e) => {
                self.counting.lost(thread);
                self.lost = self.lost.saturating_add(e.events);
                let begin = self.clock.time(e.begin.0);
                self.span(thread, begin, time, Construct::Lost, arguments!["events": uint(e.events)]);
            }
            Event::Sample(e) => {
                let sums = &mut self.sample_sums;
                sums.samples += 1;
                sums.weight_ns = sums.weight_ns.saturating_add(e.weight_ns);
                self.sample(thread, time, e);
            }
            Event::Context(e) => self.context(thread, e),
            Event::SamplesLost(e) => {
                let sums = &mut self.sample_sums;
                sums.lost = sums.lost.saturating_add(e.samples);
                sums.lost_ns = sums.lost_ns.saturating_add(e.weight_ns);
            }
            Event::SampleStream(_) => {}
            Event::Unknown(e) => {
                self.unknown(thread, time, e);
            }
        }
    }

    /// The repairs so far.
    pub(crate) fn repairs(&mut self) -> &mut Repairs {
        &mut self.stage.repairs
    }

    /// The sums of samples so far.
    pub(crate) fn sample_sums(&self) -> SampleSums {
        self.sample_sums
    }

    /// Whether the sink has failed, so that continuing is of no use.
    pub(crate) fn sink_failed(&self) -> bool {
        self.stage.sink.failed()
    }

    /// Ends the process: closes what is open at `time`, the time of the last event. Returns the number of lost events,
    /// and reports about devices.
    pub(crate) fn finish(mut self, time: Ns) -> (u64, BTreeMap<i32, DeviceReport>) {
        self.finish_samples();
        self.end_mpi_waits(time);
        self.finish_annotations(time);
        for thread in &mut self.threads {
            thread.close_all(self.stage, time);
        }
        for (holder, release) in self.locks.finish(self.stage, &self.thread_names, time) {
            self.thread_event(holder, time, release);
        }
        self.counters.finish(self.stage, time);
        self.states.finish(self.stage, time);
        if let Some(begin) = self.recording.paused_since.take() {
            self.recording_was_off(begin, time);
        }
        (self.lost, self.devices.finish(self.stage))
    }

    /// A module that was reported at a time that is possibly not interpreted.
    pub(crate) fn know_module(&mut self, module: &Module<'static>) {
        self.stage.names.module(module);
        self.devices.modules_changed();
    }

    /// A segment begins. Passes on what is known of earlier events.
    #[cold]
    pub(crate) fn begin_segment(&mut self) {
        self.counters.show(self.stage);
        self.stage.item(&Item::Segment);
    }

    /// Ends a segment, after which others continue the interpretation. Returns the same as [`Interpreter::finish`].
    pub(crate) fn end_segment(mut self) -> (u64, BTreeMap<i32, DeviceReport>) {
        self.counters.show(self.stage);
        (self.lost, BTreeMap::new())
    }

    /// A thread meets other threads, inside a region.
    fn thread_event(&mut self, thread: usize, time: Ns, event: ThreadEvent) {
        let at = self.threads[thread].point(time);
        self.stage.thread_event(at, event);
    }

    /// A region starts, ends, or both.
    #[inline(never)]
    fn scope(&mut self, thread: usize, time: Ns, scope: Scope, arguments: &[Argument<'_>]) {
        self.frequent_scope(thread, time, scope, arguments);
    }

    /// Like [`Interpreter::scope`], for the most frequent events.
    #[inline(always)]
    fn frequent_scope(&mut self, thread: usize, time: Ns, scope: Scope, arguments: &[Argument<'_>]) {
        let Scope { endpoint, construct, key, codeptr_ra, meaning } = scope;
        let begins = matches!(endpoint, ompt::ompt_scope_begin | ompt::ompt_scope_beginend);
        let ends = matches!(endpoint, ompt::ompt_scope_end | ompt::ompt_scope_beginend);
        if begins {
            let region = self.region(thread, construct, codeptr_ra);
            let frame = Frame::new(construct, key, region).with(meaning);
            self.threads[thread].open(self.stage, time, frame, arguments);
        }
        if ends {
            self.close(thread, time, construct, key);
        }
        if !begins && !ends {
            self.repair(thread, time, Cause::UnknownEndpoint);
        }
    }

    /// The region of `construct` on a thread.
    #[inline(always)]
    fn region(&mut self, thread: usize, construct: Construct, codeptr_ra: Address) -> RegionId {
        self.stage.names.label = self.threads[thread].label;
        let around = self.threads[thread].regions();
        self.stage.region(construct, codeptr_ra, around)
    }

    /// Counts a repair.
    pub(crate) fn repair(&mut self, thread: usize, time: Ns, cause: Cause) {
        let stream = self.threads[thread].stream;
        self.stage.repairs.add(cause, stream, time);
    }

    fn repaired(&mut self, thread: usize, time: Ns, result: Result<(), Cause>) {
        if let Err(cause) = result {
            self.repair(thread, time, cause);
        }
    }

    #[inline(always)]
    fn close(&mut self, thread: usize, time: Ns, construct: Construct, key: u64) {
        if !self.threads[thread].close(self.stage, time, construct, key, &[]) {
            self.repair(thread, time, Cause::EndWithoutBegin);
        }
    }

    fn instant(
        &mut self,
        thread: usize,
        time: Ns,
        construct: Construct,
        codeptr_ra: Address,
        arguments: &[Argument<'_>],
    ) {
        let region = self.region(thread, construct, codeptr_ra);
        let at = self.threads[thread].instant(time);
        self.stage.instant(at, region, arguments);
    }

    fn device(&mut self, thread: usize, time: Ns, event: DeviceEvent, arguments: &[Argument<'_>]) {
        self.instant(thread, time, Construct::Device(event), Address(0), arguments);
    }

    /// An interval of the tracer's own activity, from `begin` to `end`.
    fn span(&mut self, thread: usize, begin: Ns, end: Ns, construct: Construct, arguments: &[Argument<'_>]) {
        let frame = Frame::new(construct, 0, self.region(thread, construct, Address(0)));
        let thread = &mut self.threads[thread];
        thread.make_way(self.stage, begin.min(end));
        thread.open(self.stage, begin.min(end), frame, arguments);
        thread.close(self.stage, end, construct, 0, &[]);
    }

    /// An event of `task` starts. Regions that other tasks have open above it on this thread must have ended unseen,
    /// and so must a parallel region that it encountered. `region`: the parallel region that the event names, if any.
    #[inline]
    fn in_task(&mut self, thread: usize, time: Ns, region: Id, task: Id) {
        let is_it = |frame: &Frame| frame.is_task() && frame.key == task.0;
        if !self.threads[thread].stack().last().is_some_and(is_it) {
            self.end_above_task(thread, time, region, task, false);
        }
    }

    /// `task` has created another task. Only a parallel region that it encountered must have ended, not tasks that run
    /// above it: LLVM's runtime divides a taskloop by tasks of its own, and reports the loop's task as the creator of
    /// the tasks that these create.
    #[inline]
    fn creates_task(&mut self, thread: usize, time: Ns, task: Id) {
        let is_it = |frame: &Frame| frame.is_task() && frame.key == task.0;
        if !self.threads[thread].stack().last().is_some_and(is_it) {
            self.end_above_task(thread, time, Id::NULL, task, true);
        }
    }

    /// For a serialized region that an explicit task encounters, LLVM passes the innermost region with the implicit
    /// task of the region around. So if the event names the innermost region, a task outside of that region does not
    /// show that anything has ended.
    fn end_above_task(&mut self, thread: usize, time: Ns, region: Id, task: Id, tasks_go_on: bool) {
        let inside = self.threads[thread].innermost_member_of(region);
        let from = inside.unwrap_or_default();
        let stack = self.threads[thread].stack();
        let Some(distance) = stack[from..].iter().rposition(|frame| frame.is_task() && frame.key == task.0)
        else {
            return;
        };
        let index = from + distance;
        let own = index + 1..self.threads[thread].task_end(index);
        let is_parallel = |frame: &Frame| matches!(frame.construct, Construct::Parallel | Construct::Teams);
        let of_parallel = stack[own.clone()].iter().position(is_parallel);
        if of_parallel.is_none() && tasks_go_on {
            return;
        }
        let depth = of_parallel.map_or(own.end, |inside| own.start + inside);
        if depth < stack.len() {
            self.threads[thread].close_unended(self.stage, time, depth);
        }
    }
}

fn task_argument(task_data: Id) -> Argument<'static> {
    argument("task_data", id(task_data))
}
