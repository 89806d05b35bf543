//! What events mean: one arm per event of the table. Exhaustive, so a new row asks for its meaning here.

use ompt_sys as ompt;
use omptrace_trace_format::clock::ClockMap;
use omptrace_trace_format::event::*;
use omptrace_trace_format::field::{Address, Id, MonitoringChange};

use crate::fast_map::FastMap;
use crate::names::{Construct, DeviceEvent};
use crate::sink::{Argument, Category, FlowKind, Interval, LocationKind, Ns, Value, argument};
use crate::timeline::dialect::Dialect;
use crate::timeline::locks::Locks;
use crate::timeline::repair::Cause;
use crate::timeline::stage::Stage;
use crate::timeline::tasks::{Task, TaskState, Tasks};
use crate::timeline::thread::{Frame, Thread};

/// Interprets the merged events of one process.
pub(crate) struct Interpreter<'t, 's> {
    stage: &'t mut Stage<'s>,
    dialect: Dialect,
    clock: SessionClock<'t>,
    /// In the order of the trace's streams.
    threads: Vec<Thread>,
    thread_names: Vec<String>,
    teams: FastMap<u64, Team>,
    tasks: Tasks,
    locks: Locks,
    recording: Recording,
    /// Events that the tracer lost.
    lost: u64,
}

/// Times of a session as times of the timeline.
#[derive(Clone, Copy)]
pub(crate) struct SessionClock<'t> {
    pub(crate) map: &'t ClockMap,
    /// The session's start on the timeline.
    pub(crate) start: Ns,
}

impl SessionClock<'_> {
    #[inline]
    pub(crate) fn time(&self, ticks: u64) -> Ns {
        self.start.saturating_add(self.map.ns(ticks)).max(0)
    }
}

/// A parallel region that has not ended.
struct Team {
    codeptr_ra: Address,
    /// Thread and implicit task of each member that has begun.
    members: Vec<(usize, u64)>,
}

/// Whether events are being recorded.
#[derive(Default)]
struct Recording {
    paused_since: Option<Ns>,
    /// Its track, once there was a pause.
    track: Option<crate::sink::LocationId>,
}

/// Arguments of a region: `[name: value, ...]`.
macro_rules! arguments {
    ($($name:literal: $value:expr),* $(,)?) => { &[$(argument($name, $value)),*] };
}

/// An id, in words where the runtime gave none.
fn id(id: Id) -> Value<'static> {
    match id {
        Id::NULL => Value::Text("null"),
        Id::UNSET => Value::Text("unset"),
        Id(number) => Value::Hex(number),
    }
}

fn uint(number: impl Into<u64>) -> Value<'static> {
    Value::Uint(number.into())
}

fn int(number: impl Into<i64>) -> Value<'static> {
    Value::Int(number.into())
}

fn hex(number: impl Into<u64>) -> Value<'static> {
    Value::Hex(number.into())
}

/// Tells a critical, atomic or ordered region, which nests on its thread, from a lock, which does not.
fn is_block_structured(kind: ompt::ompt_mutex_t) -> bool {
    matches!(
        kind,
        ompt::ompt_mutex_critical | ompt::ompt_mutex_atomic | ompt::ompt_mutex_ordered
    )
}

fn is_barrier(kind: ompt::ompt_sync_region_t) -> bool {
    !matches!(
        kind,
        ompt::ompt_sync_region_taskwait
            | ompt::ompt_sync_region_taskgroup
            | ompt::ompt_sync_region_reduction
    )
}

impl<'t, 's> Interpreter<'t, 's> {
    /// Interprets a process whose threads are `threads`, each with its name.
    pub(crate) fn new(
        stage: &'t mut Stage<'s>,
        dialect: Dialect,
        clock: SessionClock<'t>,
        threads: Vec<Thread>,
        thread_names: Vec<String>,
    ) -> Self {
        Interpreter {
            stage,
            dialect,
            clock,
            threads,
            thread_names,
            teams: FastMap::default(),
            tasks: Tasks::default(),
            locks: Locks::default(),
            recording: Recording::default(),
            lost: 0,
        }
    }

    /// The next event of the process: that of thread number `thread`.
    pub(crate) fn event(&mut self, thread: usize, time: Ns, event: &Event<'static>) {
        self.settle_mutex_wait(thread, time, event);
        match event {
            // Locations are named and ordered before the first event.
            Event::ThreadBegin(_) | Event::ThreadInfo(_) => {}
            Event::ThreadEnd(_) => self.threads[thread].close_all(self.stage, time),

            Event::ParallelBegin(e) => self.parallel_begin(thread, time, e),
            Event::ParallelEnd(e) => self.parallel_end(thread, time, e),
            Event::ImplicitTaskBegin(e) => self.implicit_task_begin(thread, time, e),
            Event::ImplicitTaskEnd(e) => self.implicit_task_end(thread, time, e),

            Event::Work(e) => self.work(thread, time, e),
            Event::Masked(e) => {
                let task = task_argument(e.task_data);
                self.scope(
                    thread,
                    time,
                    e.endpoint,
                    Construct::Masked,
                    0,
                    e.codeptr_ra,
                    &[task],
                );
            }
            Event::Dispatch(e) => self.dispatch(thread, time, e),

            Event::SyncRegion(e) => self.sync_region(thread, time, e),
            Event::SyncRegionWait(e) => {
                let (construct, task) = (
                    Construct::SyncRegionWait(e.kind),
                    task_argument(e.task_data),
                );
                self.scope(
                    thread,
                    time,
                    e.endpoint,
                    construct,
                    0,
                    e.codeptr_ra,
                    &[task],
                );
            }
            Event::Reduction(e) => {
                let task = task_argument(e.task_data);
                self.scope(
                    thread,
                    time,
                    e.endpoint,
                    Construct::Reduction,
                    0,
                    e.codeptr_ra,
                    &[task],
                );
            }

            Event::TaskCreate(e) => self.task_create(thread, time, e),
            Event::TaskSchedule(e) => {
                self.task_schedule(
                    thread,
                    time,
                    e.prior_task_data,
                    e.prior_task_status,
                    e.next_task_data,
                );
            }
            Event::TaskComplete(e) => {
                self.task_schedule(
                    thread,
                    time,
                    e.prior_task_data,
                    e.prior_task_status,
                    e.next_task_data,
                );
            }
            Event::TaskDependence(e) => self.task_dependence(e),
            Event::Dependences(e) => self.dependences(thread, time, e),

            Event::MutexAcquire(e) => self.mutex_acquire(thread, time, e),
            Event::MutexAcquired(e) => self.mutex_acquired(thread, time, e),
            Event::MutexReleased(e) => self.mutex_released(thread, time, e),
            Event::NestLock(e) => {
                let construct = Construct::NestLockAgain(e.endpoint);
                self.instant(
                    thread,
                    time,
                    construct,
                    e.codeptr_ra,
                    arguments!["wait_id": hex(e.wait_id.0)],
                );
            }
            Event::LockInit(e) => {
                let wait_id = arguments!["wait_id": hex(e.wait_id.0)];
                self.instant(
                    thread,
                    time,
                    Construct::MutexInit(e.kind),
                    e.codeptr_ra,
                    wait_id,
                );
            }
            Event::LockDestroy(e) => {
                let wait_id = arguments!["wait_id": hex(e.wait_id.0)];
                self.instant(
                    thread,
                    time,
                    Construct::MutexDestroy(e.kind),
                    e.codeptr_ra,
                    wait_id,
                );
            }

            Event::Flush(e) => self.instant(thread, time, Construct::Flush, e.codeptr_ra, &[]),
            Event::Cancel(e) => {
                let names: Vec<&str> = e.flags.names().collect();
                let names = names.join(" ");
                let arguments =
                    arguments!["flags": Value::Text(&names), "task_data": id(e.task_data)];
                self.instant(thread, time, Construct::Cancel, e.codeptr_ra, arguments);
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
                let arguments =
                    arguments!["device_num": int(e.device_num), "target_data": id(e.target_data)];
                let (construct, key) = (Construct::Target(e.kind), e.target_data.0);
                self.scope(
                    thread,
                    time,
                    e.endpoint,
                    construct,
                    key,
                    e.codeptr_ra,
                    arguments,
                );
            }
            Event::Target(e) => {
                let arguments =
                    arguments!["device_num": int(e.device_num), "target_id": hex(e.target_id.0)];
                let (construct, key) = (Construct::Target(e.kind), e.target_id.0);
                self.scope(
                    thread,
                    time,
                    e.endpoint,
                    construct,
                    key,
                    e.codeptr_ra,
                    arguments,
                );
            }
            Event::TargetDataOpEmi(e) => {
                let arguments = arguments![
                    "bytes": uint(e.bytes),
                    "src_device_num": int(e.src_device_num),
                    "dest_device_num": int(e.dest_device_num),
                    "host_op_id": id(e.host_op_id),
                ];
                let (construct, key) = (Construct::TargetDataOp(e.optype), e.host_op_id.0);
                self.scope(
                    thread,
                    time,
                    e.endpoint,
                    construct,
                    key,
                    e.codeptr_ra,
                    arguments,
                );
            }
            Event::TargetDataOp(e) => self.target_data_op(thread, time, e),
            Event::TargetSubmitEmi(e) => {
                let arguments = arguments![
                    "requested_num_teams": uint(e.requested_num_teams),
                    "host_op_id": id(e.host_op_id),
                ];
                let (construct, key) = (Construct::TargetSubmit, e.host_op_id.0);
                self.scope(
                    thread,
                    time,
                    e.endpoint,
                    construct,
                    key,
                    Address(0),
                    arguments,
                );
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
                let arguments =
                    arguments!["device_num": int(e.device_num), "type": Value::Text(&kind)];
                self.device(thread, time, DeviceEvent::Initialize, arguments);
            }
            Event::DeviceFinalize(e) => {
                self.device(
                    thread,
                    time,
                    DeviceEvent::Finalize,
                    arguments!["device_num": int(e.device_num)],
                );
            }
            Event::DeviceLoad(e) => {
                let arguments = arguments!["device_num": int(e.device_num), "bytes": uint(e.bytes)];
                self.device(thread, time, DeviceEvent::Load, arguments);
            }
            Event::DeviceUnload(e) => {
                self.device(
                    thread,
                    time,
                    DeviceEvent::Unload,
                    arguments!["device_num": int(e.device_num)],
                );
            }

            Event::Module(e) => self.stage.names.module(e),
            Event::Monitoring(e) => self.monitoring(time, e.change),
            Event::BufferFlush(e) => {
                let begin = self.clock.time(e.begin.0);
                let bytes = arguments!["bytes": uint(e.bytes)];
                self.span(thread, begin, time, Construct::BufferFlush, bytes);
            }
            Event::Lost(e) => {
                self.lost += e.events;
                let begin = self.clock.time(e.begin.0);
                self.span(
                    thread,
                    begin,
                    time,
                    Construct::Lost,
                    arguments!["events": uint(e.events)],
                );
            }
            Event::Unknown(e) => {
                self.repair(thread, time, Cause::UnknownEvent);
                let number = arguments!["number": uint(e.number)];
                self.instant(thread, time, Construct::Unknown, Address(0), number);
            }
        }
    }

    /// Whether there is no use in going on.
    pub(crate) fn sink_failed(&self) -> bool {
        self.stage.sink.failed()
    }

    /// The process has no more events; `time` is that of the last. What is open ends. Gives the number of lost events.
    pub(crate) fn finish(mut self, time: Ns) -> u64 {
        for thread in &mut self.threads {
            thread.close_all(self.stage, time);
        }
        self.locks.finish(self.stage, &self.thread_names, time);
        if let Some(begin) = self.recording.paused_since.take() {
            self.recording_was_off(begin, time);
        }
        self.lost
    }

    /// A region with begin and end.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a column of the events' own signatures"
    )]
    fn scope(
        &mut self,
        thread: usize,
        time: Ns,
        endpoint: ompt::ompt_scope_endpoint_t,
        construct: Construct,
        key: u64,
        codeptr_ra: Address,
        arguments: &[Argument<'_>],
    ) {
        let begins = matches!(endpoint, ompt::ompt_scope_begin | ompt::ompt_scope_beginend);
        let ends = matches!(endpoint, ompt::ompt_scope_end | ompt::ompt_scope_beginend);
        if begins {
            let frame = Frame::new(construct, key, self.stage.region(construct, codeptr_ra));
            self.threads[thread].open(self.stage, time, frame, arguments);
        }
        if ends {
            self.close(thread, time, construct, key);
        }
        if !begins && !ends {
            self.repair(thread, time, Cause::UnknownEndpoint);
        }
    }

    /// Counts something that was mended.
    pub(crate) fn repair(&mut self, thread: usize, time: Ns, cause: Cause) {
        let stream = self.threads[thread].stream;
        self.stage.repairs.add(cause, stream, time);
    }

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
        let at = self.threads[thread].point(time);
        self.stage.instant(at, construct, codeptr_ra, arguments);
    }

    fn device(&mut self, thread: usize, time: Ns, event: DeviceEvent, arguments: &[Argument<'_>]) {
        self.instant(
            thread,
            time,
            Construct::Device(event),
            Address(0),
            arguments,
        );
    }

    /// Something of ours that took from `begin` to `end`.
    fn span(
        &mut self,
        thread: usize,
        begin: Ns,
        end: Ns,
        construct: Construct,
        arguments: &[Argument<'_>],
    ) {
        let frame = Frame::new(construct, 0, self.stage.region(construct, Address(0)));
        let thread = &mut self.threads[thread];
        thread.open(self.stage, begin.min(end), frame, arguments);
        thread.close(self.stage, end, construct, 0, &[]);
    }

    /// An event of `task` begins: what other tasks have open above it on this thread has ended unseen, and so has a
    /// parallel region that it encountered.
    fn in_task(&mut self, thread: usize, time: Ns, task: Id) {
        let stack = self.threads[thread].stack();
        let Some(index) = stack
            .iter()
            .rposition(|frame| frame.is_task() && frame.key == task.0)
        else {
            return;
        };
        let own = index + 1..self.threads[thread].task_end(index);
        let is_parallel =
            |frame: &Frame| matches!(frame.construct, Construct::Parallel | Construct::Teams);
        let depth = stack[own.clone()]
            .iter()
            .position(is_parallel)
            .map_or(own.end, |inside| own.start + inside);
        if depth < stack.len() {
            self.threads[thread].close_unended(self.stage, time, depth);
        }
    }
}

/// Parallel regions and the implicit tasks of their members.
impl Interpreter<'_, '_> {
    fn parallel_begin(&mut self, thread: usize, time: Ns, e: &ParallelBegin) {
        self.in_task(thread, time, e.encountering_task_data);
        let construct = if e.flags.contains(ompt::ompt_parallel_league) {
            Construct::Teams
        } else {
            Construct::Parallel
        };
        let frame = Frame::new(
            construct,
            e.parallel_data.0,
            self.stage.region(construct, e.codeptr_ra),
        );
        let arguments = arguments![
            "parallel_data": id(e.parallel_data),
            "requested_parallelism": uint(e.requested_parallelism),
        ];
        self.threads[thread].open(self.stage, time, frame, arguments);
        if e.parallel_data.known().is_some() {
            let team = Team {
                codeptr_ra: e.codeptr_ra,
                members: Vec::new(),
            };
            self.teams.insert(e.parallel_data.0, team);
        }
    }

    /// Members that are still open report their ends late, or never: they end now.
    fn parallel_end(&mut self, thread: usize, time: Ns, e: &ParallelEnd) {
        let key = e.parallel_data.0;
        if let Some(team) = self.teams.remove(&key)
            && self.dialect.late_worker_ends
        {
            for (member, task) in team.members {
                if member != thread {
                    self.threads[member].set_limit(task, time);
                }
            }
        }
        let is_teams = |frame: &Frame| frame.construct == Construct::Teams && frame.key == key;
        let construct = if self.threads[thread].stack().iter().any(is_teams) {
            Construct::Teams
        } else {
            Construct::Parallel
        };
        self.close(thread, time, construct, key);
    }

    fn implicit_task_begin(&mut self, thread: usize, time: Ns, e: &ImplicitTaskBegin) {
        let team = self.teams.get_mut(&e.parallel_data.0);
        let codeptr_ra = team.as_ref().map_or(Address(0), |team| team.codeptr_ra);
        let construct = if e.flags.contains(ompt::ompt_task_initial) {
            Construct::InitialTask
        } else {
            Construct::ImplicitTask
        };
        match team {
            Some(team) => team.members.push((thread, e.task_data.0)),
            // The process's initial task belongs to a region that no runtime announces.
            None if construct == Construct::InitialTask => {}
            None => self.repair(thread, time, Cause::UnannouncedRegion),
        }
        let already_open = self.threads[thread]
            .stack()
            .iter()
            .any(|frame| frame.construct == construct && frame.key == e.task_data.0);
        if construct == Construct::InitialTask && self.dialect.initial_task_created && already_open
        {
            return;
        }
        let frame = Frame::new(
            construct,
            e.task_data.0,
            self.stage.region(construct, codeptr_ra),
        );
        let arguments = arguments![
            "parallel_data": id(e.parallel_data),
            "task_data": id(e.task_data),
            "index": uint(e.index),
            "actual_parallelism": uint(e.actual_parallelism),
        ];
        self.threads[thread].open(self.stage, time, frame, arguments);
    }

    /// Only the task's id counts: runtimes pass no region, and the index and team size of a later one.
    fn implicit_task_end(&mut self, thread: usize, time: Ns, e: &ImplicitTaskEnd) {
        let is_it = |frame: &&Frame| frame.is_task() && frame.key == e.task_data.0;
        let open = self.threads[thread].stack().iter().rev().find(is_it);
        let construct = open.map_or(Construct::ImplicitTask, |frame| frame.construct);
        self.close(thread, time, construct, e.task_data.0);
    }

    fn work(&mut self, thread: usize, time: Ns, e: &Work) {
        if e.endpoint == ompt::ompt_scope_begin {
            self.in_task(thread, time, e.task_data);
            self.end_single(thread, time);
        }
        let arguments = arguments!["count": uint(e.count), "task_data": id(e.task_data)];
        self.scope(
            thread,
            time,
            e.endpoint,
            Construct::Work(e.work_type),
            0,
            e.codeptr_ra,
            arguments,
        );
    }

    /// A worksharing region or barrier begins: a single region in the same task has ended, for neither may be closely
    /// nested in it.
    fn end_single(&mut self, thread: usize, time: Ns) {
        let stack = self.threads[thread].stack();
        let single = Construct::Work(ompt::ompt_work_single_executor);
        if self.dialect.single_without_end
            && stack.last().is_some_and(|top| top.construct == single)
        {
            let depth = stack.len() - 1;
            self.threads[thread].close_unended(self.stage, time, depth);
        }
    }

    fn dispatch(&mut self, thread: usize, time: Ns, e: &Dispatch) {
        let construct = Construct::Dispatch(e.kind);
        if e.kind == ompt::ompt_dispatch_section {
            self.instant(thread, time, construct, e.instance, &[]);
        } else {
            let chunk = arguments!["start": hex(e.start), "iterations": uint(e.iterations)];
            self.instant(thread, time, construct, Address(0), chunk);
        }
    }

    fn sync_region(&mut self, thread: usize, time: Ns, e: &SyncRegion) {
        if e.endpoint == ompt::ompt_scope_begin {
            self.in_task(thread, time, e.task_data);
            if is_barrier(e.kind) {
                self.end_single(thread, time);
            }
        }
        let task = task_argument(e.task_data);
        self.scope(
            thread,
            time,
            e.endpoint,
            Construct::SyncRegion(e.kind),
            0,
            e.codeptr_ra,
            &[task],
        );
    }
}

fn task_argument(task_data: Id) -> Argument<'static> {
    argument("task_data", id(task_data))
}

/// Explicit tasks.
impl Interpreter<'_, '_> {
    fn task_create(&mut self, thread: usize, time: Ns, e: &TaskCreate) {
        let flags = e.flags;
        if flags.contains(ompt::ompt_task_initial) {
            return self.initial_task_create(thread, time, e);
        }
        self.in_task(thread, time, e.encountering_task_data);
        let construct = if flags.contains(ompt::ompt_task_target) {
            Construct::TargetTask
        } else if flags.contains(ompt::ompt_task_taskwait) {
            Construct::TaskwaitTask
        } else if flags.contains(ompt::ompt_task_untied) {
            Construct::UntiedTask
        } else {
            Construct::Task
        };
        let at = self.threads[thread].point(time);
        let Some(new_task) = e.new_task_data.known() else {
            return;
        };
        let task = Task {
            construct,
            region: self.stage.region(construct, e.codeptr_ra),
            flags: flags.0,
            ndeps: 0,
            state: TaskState::Created,
            // An undeferred task runs at once in the same place.
            created: (!flags.contains(ompt::ompt_task_undeferred)).then_some(at),
            predecessors: Vec::new(),
            successors: Vec::new(),
        };
        self.tasks.insert(new_task, task);
    }

    fn initial_task_create(&mut self, thread: usize, time: Ns, e: &TaskCreate) {
        if self.dialect.initial_task_created {
            let construct = Construct::InitialTask;
            let frame = Frame::new(
                construct,
                e.new_task_data.0,
                self.stage.region(construct, Address(0)),
            );
            let task = arguments!["task_data": id(e.new_task_data)];
            self.threads[thread].open(self.stage, time, frame, task);
        }
    }

    fn task_schedule(
        &mut self,
        thread: usize,
        time: Ns,
        prior: Id,
        status: ompt::ompt_task_status_t,
        next: Id,
    ) {
        match status {
            // These do not switch: the thread goes on with what it does.
            ompt::ompt_task_early_fulfill => self.task_fulfilled(thread, time, prior),
            ompt::ompt_task_late_fulfill => {
                self.task_fulfilled(thread, time, prior);
                self.task_is_done(thread, time, prior);
            }
            ompt::ompt_taskwait_complete => self.task_is_done(thread, time, prior),

            ompt::ompt_task_complete | ompt::ompt_task_cancel => {
                let cancelled = status == ompt::ompt_task_cancel;
                self.leave_task(thread, time, prior, cancelled);
                self.task_is_done(thread, time, prior);
                self.run_task(thread, time, next);
            }
            // Its code has run; it is complete when its event is fulfilled.
            ompt::ompt_task_detach => {
                self.leave_task(thread, time, prior, false);
                self.run_task(thread, time, next);
            }
            _ => self.run_task(thread, time, next),
        }
    }

    fn task_fulfilled(&mut self, thread: usize, time: Ns, task: Id) {
        self.instant(
            thread,
            time,
            Construct::TaskFulfill,
            Address(0),
            arguments!["task_data": id(task)],
        );
    }

    /// The code of `task` ends on this thread.
    fn leave_task(&mut self, thread: usize, time: Ns, task: Id, cancelled: bool) {
        let is_it = |frame: &&Frame| frame.is_explicit_task() && frame.key == task.0;
        let Some(construct) = self.threads[thread]
            .stack()
            .iter()
            .rev()
            .find(is_it)
            .map(|frame| frame.construct)
        else {
            // A task that was cancelled before it ran has nothing to end.
            if !cancelled && task.known().is_some() {
                self.repair(thread, time, Cause::EndWithoutBegin);
            }
            return;
        };
        let arguments: &[_] = if cancelled {
            arguments!["cancelled": Value::Text("yes")]
        } else {
            &[]
        };
        self.threads[thread].close(self.stage, time, construct, task.0, arguments);
    }

    /// `task` is complete: its id is free, and tasks that depend on it may start.
    fn task_is_done(&mut self, thread: usize, time: Ns, task: Id) {
        let Some(done) = self.tasks.remove(&task.0) else {
            return;
        };
        let at = self.threads[thread].point(time);
        for successor in done.successors {
            if let Some(successor) = self.tasks.get_mut(&successor) {
                successor.predecessors.push(at);
            }
        }
    }

    /// From now on the thread runs `task`.
    fn run_task(&mut self, thread: usize, time: Ns, task: Id) {
        if task == Id::NULL {
            return;
        }
        let is_it = |frame: &Frame| frame.is_task() && frame.key == task.0;
        if let Some(index) = self.threads[thread].stack().iter().rposition(is_it) {
            return self.suspend_above(thread, time, index);
        }
        let Some(alive) = self.tasks.get_mut(&task.0) else {
            return self.start_unannounced(thread, time, task);
        };
        match std::mem::replace(&mut alive.state, TaskState::OnThread(thread)) {
            TaskState::Created => self.start_task(thread, time, task.0),
            TaskState::Suspended(frames) => self.threads[thread].resume(self.stage, time, frames),
            TaskState::OnThread(other) => {
                let frames = self.take_from(other, time, task.0);
                self.threads[thread].resume(self.stage, time, frames);
            }
        }
    }

    /// The first time that `task` runs.
    fn start_task(&mut self, thread: usize, time: Ns, task: u64) {
        let Some(alive) = self.tasks.get_mut(&task) else {
            return;
        };
        let frame = Frame::new(alive.construct, task, alive.region);
        let all = arguments![
            "task_data": hex(task),
            "flags": hex(alive.flags),
            "ndeps": uint(alive.ndeps),
        ];
        let arguments = if alive.ndeps > 0 { &all[..] } else { &all[..2] };
        let created = alive.created.take();
        let predecessors = std::mem::take(&mut alive.predecessors);
        self.threads[thread].open(self.stage, time, frame, arguments);
        let to = self.threads[thread].point(time);
        if let Some(from) = created {
            self.stage.flow(FlowKind::TaskCreate, from, to);
        }
        for from in predecessors {
            self.stage.flow(FlowKind::TaskDependence, from, to);
        }
    }

    /// A task runs whose creation was not reported, or lost.
    fn start_unannounced(&mut self, thread: usize, time: Ns, task: Id) {
        if task.known().is_some() {
            self.repair(thread, time, Cause::UnannouncedTask);
        }
        let construct = Construct::Task;
        let frame = Frame::new(construct, task.0, self.stage.region(construct, Address(0)));
        self.threads[thread].open(self.stage, time, frame, arguments!["task_data": id(task)]);
    }

    /// The task at `index` of the thread's stack goes on: tasks above it are suspended and leave the stack, where they
    /// would be in the way of its end.
    fn suspend_above(&mut self, thread: usize, time: Ns, index: usize) {
        let depth = self.threads[thread].task_end(index);
        let top = self.threads[thread].stack().len();
        if depth == top {
            return;
        }
        let mut frames = self.threads[thread].cut(self.stage, time, depth, top, &[]);
        while let Some(bottom) = frames.iter().rposition(Frame::is_task) {
            let task = frames.split_off(bottom);
            if let Some(alive) = self.tasks.get_mut(&task[0].key) {
                alive.state = TaskState::Suspended(task);
            } else {
                self.repair(thread, time, Cause::MissingEnd);
            }
        }
    }

    /// Takes `task` from the stack of the thread on which it was suspended.
    fn take_from(&mut self, thread: usize, time: Ns, task: u64) -> Vec<Frame> {
        let is_it = |frame: &Frame| frame.is_explicit_task() && frame.key == task;
        match self.threads[thread].stack().iter().rposition(is_it) {
            Some(from) => {
                let to = self.threads[thread].task_end(from);
                self.threads[thread].cut(self.stage, time, from, to, &[])
            }
            None => Vec::new(),
        }
    }

    fn task_dependence(&mut self, e: &TaskDependence) {
        if let Some(source) = self.tasks.get_mut(&e.src_task_data.0) {
            source.successors.push(e.sink_task_data.0);
        }
    }

    /// Tasks show the number of their dependences; those of a doacross loop show where they occur.
    fn dependences(&mut self, thread: usize, time: Ns, e: &Dependences<'_>) {
        if let Some(task) = self.tasks.get_mut(&e.task_data.0) {
            task.ndeps = u32::try_from(e.ndeps).unwrap_or(0);
            return;
        }
        let kind = e.deps.first().map(|dependence| dependence.dependence_type);
        let kind = kind.and_then(|kind| kind.name()).unwrap_or("unknown");
        let arguments =
            arguments!["dependence_type": Value::Text(kind), "task_data": id(e.task_data)];
        self.instant(thread, time, Construct::Doacross, Address(0), arguments);
    }
}

/// Locks, critical, atomic and ordered regions.
impl Interpreter<'_, '_> {
    fn mutex_acquire(&mut self, thread: usize, time: Ns, e: &MutexAcquire) {
        let construct = Construct::MutexWait(e.kind);
        let frame = Frame::new(
            construct,
            e.wait_id.0,
            self.stage.region(construct, e.codeptr_ra),
        );
        let wait_id = arguments!["wait_id": hex(e.wait_id.0)];
        self.threads[thread].open(self.stage, time, frame, wait_id);
    }

    /// A thread that waits has no other events. So an event that is not the wait's own end shows that it did not get
    /// the mutex: `omp_test_lock` failed, or a nested lock was its own already.
    fn settle_mutex_wait(&mut self, thread: usize, time: Ns, event: &Event<'_>) {
        let Some(&Frame {
            construct: construct @ Construct::MutexWait(kind),
            key,
            ..
        }) = self.threads[thread].stack().last()
        else {
            return;
        };
        match event {
            Event::MutexAcquired(_) | Event::BufferFlush(_) | Event::Lost(_) | Event::Module(_) => {
            }
            Event::Monitoring(_) | Event::ThreadInfo(_) => {}
            Event::NestLock(e) if e.wait_id.0 == key => self.close(thread, time, construct, key),
            _ => {
                // How long the attempt took is not known.
                let begin = self.threads[thread].last();
                let failed = arguments!["acquired": Value::Text("no")];
                self.threads[thread].close(self.stage, begin, construct, key, failed);
                if is_block_structured(kind) {
                    self.repair(thread, time, Cause::MissingEnd);
                }
            }
        }
    }

    fn mutex_acquired(&mut self, thread: usize, time: Ns, e: &MutexAcquired) {
        let is_wait = |frame: &&Frame| {
            matches!(frame.construct, Construct::MutexWait(_)) && frame.key == e.wait_id.0
        };
        match self.threads[thread]
            .stack()
            .last()
            .filter(is_wait)
            .map(|frame| frame.construct)
        {
            Some(construct) => self.close(thread, time, construct, e.wait_id.0),
            None => self.repair(thread, time, Cause::EndWithoutBegin),
        }
        if is_block_structured(e.kind) {
            let construct = Construct::MutexHold(e.kind);
            let frame = Frame::new(
                construct,
                e.wait_id.0,
                self.stage.region(construct, e.codeptr_ra),
            );
            let wait_id = arguments!["wait_id": hex(e.wait_id.0)];
            self.threads[thread].open(self.stage, time, frame, wait_id);
        } else {
            let time = self.threads[thread].point(time).time;
            self.locks
                .acquired(self.stage, &self.thread_names, e.wait_id.0, thread, time);
        }
    }

    fn mutex_released(&mut self, thread: usize, time: Ns, e: &MutexReleased) {
        if is_block_structured(e.kind) {
            return self.close(thread, time, Construct::MutexHold(e.kind), e.wait_id.0);
        }
        let time = self.threads[thread].point(time).time;
        if !self
            .locks
            .released(self.stage, &self.thread_names, e.wait_id.0, thread, time)
        {
            self.repair(thread, time, Cause::EndWithoutBegin);
        }
    }
}

/// Devices, the user's commands, recording itself.
impl Interpreter<'_, '_> {
    fn target_data_op(&mut self, thread: usize, time: Ns, e: &TargetDataOp) {
        let op = self.dialect.data_op(e);
        let construct = Construct::TargetDataOp(op.optype);
        let arguments = arguments![
            "bytes": uint(op.bytes),
            "src_device_num": int(op.src_device_num),
            "dest_device_num": int(op.dest_device_num),
            "host_op_id": hex(op.host_op_id),
        ];
        match op.endpoint {
            Some(endpoint) => {
                self.scope(
                    thread,
                    time,
                    endpoint,
                    construct,
                    op.host_op_id,
                    op.codeptr_ra,
                    arguments,
                );
            }
            None => self.instant(thread, time, construct, op.codeptr_ra, arguments),
        }
    }

    /// Commands 64 and 65 begin and end a phase of the user's, by name.
    fn control_tool(&mut self, thread: usize, time: Ns, e: &ControlTool<'_>) {
        const PHASE_BEGIN: u64 = 64;
        const PHASE_END: u64 = 65;
        let name = e.text.lossy();
        match e.command {
            PHASE_BEGIN => {
                let region =
                    self.stage
                        .names
                        .named(self.stage.sink, Category::User, phase_name(&name));
                let frame = Frame::new(Construct::Phase, region.0.into(), region);
                self.threads[thread].open(
                    self.stage,
                    time,
                    frame,
                    arguments!["modifier": uint(e.modifier)],
                );
            }
            PHASE_END => self.phase_end(thread, time, &name),
            _ => {
                let arguments =
                    arguments!["command": uint(e.command), "modifier": uint(e.modifier)];
                self.instant(
                    thread,
                    time,
                    Construct::ControlTool,
                    e.codeptr_ra,
                    arguments,
                );
            }
        }
    }

    /// Without a name, the newest phase of the thread ends.
    fn phase_end(&mut self, thread: usize, time: Ns, name: &str) {
        let key = if name.is_empty() {
            let phases = |frame: &&Frame| frame.construct == Construct::Phase;
            self.threads[thread]
                .stack()
                .iter()
                .rev()
                .find(phases)
                .map_or(0, |frame| frame.key)
        } else {
            self.stage
                .names
                .named(self.stage.sink, Category::User, phase_name(name))
                .0
                .into()
        };
        self.close(thread, time, Construct::Phase, key);
    }

    fn monitoring(&mut self, time: Ns, change: MonitoringChange) {
        match change {
            MonitoringChange::pause | MonitoringChange::end => {
                self.recording.paused_since.get_or_insert(time);
            }
            MonitoringChange::resume => {
                if let Some(begin) = self.recording.paused_since.take() {
                    self.recording_was_off(begin, time);
                    self.stage.pause = Some((begin, time));
                }
            }
            // The session's start; and a flush changes nothing that is recorded.
            _ => {}
        }
    }

    fn recording_was_off(&mut self, begin: Ns, end: Ns) {
        if begin >= end {
            return;
        }
        let stage = &mut *self.stage;
        let new_track = || stage.location(LocationKind::Track, "recording".to_owned());
        let track = *self.recording.track.get_or_insert_with(new_track);
        stage.sink.interval(&Interval {
            track,
            name: "recording off",
            category: Category::Omptrace,
            begin,
            end,
            arguments: &[],
        });
    }
}

fn phase_name(name: &str) -> String {
    if name.is_empty() {
        "phase".to_owned()
    } else {
        name.to_owned()
    }
}
