//! The threads of one process: the state of each thread, the cause of its time, and the threads and places to blame for
//! waits.
//!
//! A thread is in one state from one event to the next. When a state ends, its time is attributed to a cause, and if
//! the thread kept others waiting during that time, it is blamed for their waits. See `docs/analysis.md` for the
//! definitions.

pub(crate) mod barrier;
pub(crate) mod blamed_functions;
pub(crate) mod collector;
pub(crate) mod concurrency;
pub(crate) mod live_snapshot;
mod members;
pub(crate) mod observed;
pub(crate) mod observer;
pub(crate) mod process_states;
pub(crate) mod region_kind;
mod samples;
mod segments;
mod shared_state;
mod task_graph_recorder;
mod thread_state;
mod transitions;

use std::collections::{BTreeMap, VecDeque};

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::Reports;
use omptrace_timeline::model::{LockId, Ns, TaskId, TeamId, ThreadEvent, ThreadRole};

use crate::critical_path::{self, Chain, Chains, Step};
use crate::model::cause::Cause;
use crate::model::function_number::ByFunction;
use crate::model::place_id::PlaceId;
use crate::model::state_sums::{Block, Sums};
use crate::model::sum::Sum as _;
use crate::model::upcoming::Upcoming;
use crate::model::within::Within;
use crate::model::worst_instances::Instance;
use crate::passes::gaps::Gaps;
use crate::scaling::region_scaling::Scaling;
use crate::states::barrier::{Barrier, Clocks};
use crate::states::concurrency::{Change, Concurrency};
use crate::states::observer::{AwaitedMutex, StateObserver};
use crate::states::region_kind::Kind;
use crate::what_if::{PredictedTimes, Scenarios, Unwaited};
use members::helpers::Helper;
use samples::Samples;
use shared_state::{Arrivals, Lock, LockSlot, LockTable, Parent, Task, Team};
use task_graph_recorder::Graphs;

use thread_state::{Burst, ChainEnd, GroupId, Membership, Open, State, ThreadState, longer_work};

/// Maximum number of open barriers of a team. More occur only in contradictory traces, in which members skip barriers.
const MAX_OPEN_BARRIERS: usize = 64;

/// The states of one process's threads, updated event by event.
#[derive(Debug)]
pub(crate) struct Threads<const S: usize> {
    pub(crate) scenarios: Scenarios<S>,
    begin: Ns,
    latest: Ns,
    reports: Reports,
    is_overwritten: bool,
    /// The steps of the critical path are kept.
    is_drawn: bool,
    /// Whether events are currently counted.
    is_inside: bool,
    has_begun: bool,
    /// By location: the thread's index; `None` for locations that are not threads of the program.
    by_location: Vec<Option<usize>>,
    /// For runtimes that do not report members: the outermost open region.
    outermost_open: Option<usize>,
    /// By location.
    helpers: FastMap<usize, Helper<S>>,
    /// The places of the tasks of serial code that helpers are running.
    serial_helpers: Vec<PlaceId>,
    threads: Vec<ThreadState<S>>,
    teams: Vec<Team<S>>,
    free: Vec<usize>,
    by_id: FastMap<TeamId, usize>,
    locks: LockTable<S>,
    tasks: FastMap<TaskId, Task<S>>,
    /// By open taskgroup: the chain ends of its completed tasks. The next field numbers the groups.
    groups: FastMap<GroupId, ChainEnd<S>>,
    groups_begun: GroupId,
    /// Incremented when the process leaves its last open parallel region: chain ends of earlier epochs delay nobody any more.
    epoch: u64,
    gaps: Gaps,
    activity: Concurrency,
    /// Number of threads in a state other than [`State::Rests`].
    busy: u32,
    chains: Chains,
    graphs: Option<Graphs>,
    samples: Samples,
    sums: Sums,
    /// Receives the states, if present.
    pub(crate) observer: Option<Box<dyn StateObserver>>,
}

/// The result of [`Threads::finish`].
#[derive(Debug)]
pub(crate) struct Finished<const S: usize> {
    /// By scenario: the end of the main thread.
    pub(crate) predicted: [Ns; S],
    pub(crate) scenarios: Scenarios<S>,
    pub(crate) sums: Sums,
    /// The times of regions on other numbers of threads, by place.
    pub(crate) scaling: BTreeMap<PlaceId, Scaling>,
    pub(crate) activity: Concurrency,
    /// Useful time of each selected thread.
    pub(crate) useful: Vec<u64>,
    /// The useful time on the critical path.
    pub(crate) path: u64,
    pub(crate) path_by_place: FastMap<u32, u64>,
    /// The CPU time on the critical path by function, as far as it was sampled.
    pub(crate) path_by_function: ByFunction,
    /// The steps of the critical path, if they are kept.
    pub(crate) steps: Vec<Step>,
    /// The observer that received the states, if any.
    pub(crate) observer: Option<Box<dyn StateObserver>>,
}

impl<const S: usize> Threads<S> {
    /// Whether times are summed by cause. A replay only predicts times.
    const COUNTS: bool = S == 0;

    /// Whether times are predicted. A single scenario (`S == 1`) only schedules regions on other numbers of threads.
    const PREDICTS: bool = S > 1;

    pub(crate) fn new(begin: Ns, reports: Reports, is_overwritten: bool, scenarios: Scenarios<S>) -> Self {
        Threads {
            scenarios,
            begin,
            latest: begin,
            reports,
            is_overwritten,
            is_drawn: false,
            is_inside: true,
            has_begun: false,
            by_location: Vec::new(),
            outermost_open: None,
            helpers: FastMap::default(),
            serial_helpers: Vec::new(),
            threads: Vec::new(),
            teams: Vec::new(),
            free: Vec::new(),
            by_id: FastMap::default(),
            locks: LockTable::default(),
            tasks: FastMap::default(),
            groups: FastMap::default(),
            groups_begun: 0,
            epoch: 0,
            gaps: Gaps::default(),
            activity: Concurrency::new(begin),
            busy: 0,
            chains: Chains::default(),
            graphs: None,
            samples: Samples::default(),
            sums: Sums::default(),
            observer: None,
        }
    }

    /// Keeps the steps of the critical path, for this many `processes`.
    pub(crate) fn draw_path(&mut self, processes: usize) {
        self.is_drawn = true;
        self.chains = Chains::for_drawing(processes);
    }

    /// Sets whether the following events are analysed. Outside, nothing is counted, and no time passes.
    pub(crate) fn set_inside(&mut self, is_inside: bool) {
        self.is_inside = is_inside;
    }

    /// Begins a window: the open regions and held mutexes are inside it. Earlier holders of other mutexes no longer
    /// matter.
    pub(crate) fn window_begins(&mut self) {
        for lock in &mut self.locks.all {
            if lock.holder.is_none() {
                lock.last = None;
            }
        }
        for slot in self.by_id.values() {
            let team = &mut self.teams[*slot];
            if !std::mem::replace(&mut team.is_counted, true) {
                *self.sums.visits.at(team.region) += 1;
                let sums = self.sums.regions.at(team.outermost);
                sums.max_team = sums.max_team.max(team.size());
            }
        }
    }

    /// Adds a thread. The runtime's own helpers do not belong to the program.
    pub(crate) fn add(&mut self, location: usize, role: ThreadRole, is_selected: bool) {
        if role == ThreadRole::Helper {
            self.helpers.insert(location, Helper::default());
            return;
        }
        let thread = self.threads.len();
        let known = self.by_location.len().max(location + 1);
        self.by_location.resize(known, None);
        self.by_location[location] = Some(thread);
        if let Some(observer) = &mut self.observer {
            observer.add_thread(location);
        }
        self.threads.push(ThreadState {
            location,
            role,
            is_selected,
            until: self.begin,
            has_created_at: None,
            burst: None,
            state: State::Rests,
            open: Vec::new(),
            next: Upcoming::default(),
            memberships: Vec::new(),
            shown: 0,
            is_busy: false,
            is_seen: false,
            is_released: false,
            waits_for_tasks: false,
            runs_task: false,
            by_tasks: 0.0,
            taskless: 0,
            fork_ns: 0,
            alone: None,
            chunk: None,
            iterations: 0,
            awaits: None,
            found_held: false,
            acquired: None,
            held: Vec::new(),
            serial_ns: 0,
            since_region_ns: 0,
            last_region: None,
            longest: (0, 0),
            useful: 0,
            epoch: 0,
            now: ChainEnd { stamp: PredictedTimes::new(self.begin), ..ChainEnd::never() },
            waited: [0; S],
            before_wait: (ChainEnd::never(), [0; S]),
            has_waited_until: None,
        });
        self.change_state(thread, self.begin);
    }

    #[inline(always)]
    fn thread(&mut self, location: usize, time: Ns) -> Option<usize> {
        let thread = (*self.by_location.get(location)?)?;
        if Self::COUNTS {
            if self.chains.is_full() {
                self.sum_up_chains();
            }
            if self.activity.is_overfull() {
                self.sweep();
            }
        }
        self.latest = self.latest.max(time);
        if !self.has_begun {
            self.first_event(time);
        }
        Some(thread)
    }

    #[cold]
    fn first_event(&mut self, time: Ns) {
        self.has_begun = true;
        if self.is_overwritten && !self.gaps.is_open() {
            self.gaps.begin(self.begin);
            self.gaps.end(time);
            self.push_activity(self.begin, Change::Pauses);
            self.push_activity(time, Change::Records);
        }
    }

    fn push_activity(&mut self, time: Ns, change: Change) {
        if Self::COUNTS {
            self.activity.push(time, change);
        }
    }

    /// A region starts. If it is a wait for a mutex, `lock` is the mutex.
    pub(crate) fn enter(
        &mut self,
        location: usize,
        time: Ns,
        region: PlaceId,
        kind: Kind,
        lock: Option<LockId>,
    ) {
        let Some(thread) = self.thread(location, time) else {
            return self.helper_enters(location, time, region, kind);
        };
        let time = self.settle(thread, time);
        self.threads[thread].is_seen = true;
        let next = self.threads[thread].next.take();
        if kind != Kind::Task {
            self.threads[thread].has_waited_until = None;
        }
        // The initial tasks of a league are the tasks of its members.
        let kind = match kind {
            Kind::Initial if next.joined.is_some() => Kind::Member,
            other => other,
        };
        let mut open = Open {
            region,
            kind,
            since: time,
            team: None,
            has_begun: false,
            is_done: false,
            task: next.task,
            group: None,
            strand: (0, None),
            is_barrier: false,
        };
        self.threads[thread].shown += usize::from(kind.shows_activity());
        if kind.shows_activity() || kind.is_mpi_call() {
            self.end_of_barrier_cost(thread, Cause::Barrier);
        }
        if kind.meets_others() {
            self.pause_serial(thread);
        }
        match kind {
            Kind::Parallel => {
                if Self::COUNTS {
                    let requested = self.sums.requested.entry(region).or_insert(u32::MAX);
                    *requested = next.requested.min(*requested);
                }
                open.team = next.forked.map(|id| self.fork(thread, time, id, region));
            }
            Kind::Member => {
                if let Some((id, size)) = next.joined {
                    open.team = self.join_team(thread, time, id, size);
                }
            }
            Kind::Barrier { is_last } => open.is_barrier = self.arrive(thread, time, (region, is_last)),
            Kind::Task => {
                if self.threads[thread].has_waited_until.take() == Some(time) {
                    self.go_on_waiting(thread);
                }
                self.begin_task(thread, time, next.task);
            }
            Kind::TaskGroup => open.group = Some(self.begin_group()),
            Kind::MutexWait(cause) => self.await_lock(thread, time, lock, cause),
            Kind::MutexHold => self.hold(thread, region),
            _ => {}
        }
        self.threads[thread].open.push(open);
        self.graph_enter(thread, kind);
        if Self::COUNTS && kind == Kind::Submit {
            let target = transitions::target(&self.threads[thread].open);
            let sums = self.sums.targets.entry(target).or_default();
            sums.kernels += u64::from(self.is_inside);
        }
        if kind == Kind::Chunk && self.works_on_chunks(thread) {
            return;
        }
        self.change_state(thread, time);
    }

    /// Whether the thread is in a dynamic loop, in which chunks do not change its state. Sums also depend on other threads.
    #[inline]
    fn works_on_chunks(&self, thread: usize) -> bool {
        let of_thread = &self.threads[thread];
        let mut regions = of_thread.open.iter().rev();
        let around = regions.find(|open| open.kind != Kind::Chunk).filter(|around| around.kind == Kind::Work);
        !Self::COUNTS
            && !of_thread.is_released
            && around.is_some_and(|around| of_thread.state == State::Useful(Some(around.region)))
    }

    /// The next wait is for the dependences of the empty task `task`.
    pub(crate) fn awaits_dependences(&mut self, location: usize, task: TaskId) {
        if let Some(Some(thread)) = self.by_location.get(location) {
            self.threads[*thread].next.set().task = Some(task);
        }
    }

    /// Counts a wait for tasks. It continues after each task that interrupts it.
    pub(crate) fn count_taskwait(&mut self) {
        self.sums.taskwaits += u64::from(self.is_inside);
    }

    /// Counts an external wait (outside of OpenMP) for `object`.
    pub(crate) fn external_wait(&mut self, region: PlaceId, object: u64) {
        if self.is_inside && Self::COUNTS {
            let sums = self.sums.external.entry(region).or_default();
            sums.waits += 1;
            sums.object.merge(Within::One(object));
        }
    }

    /// Counts a data operation of a device with this number of bytes.
    pub(crate) fn data_op(&mut self, region: PlaceId, bytes: u64) {
        if !self.is_inside || !Self::COUNTS {
            return;
        }
        let sums = self.sums.targets.entry(region).or_default();
        sums.data_ops += 1;
        sums.sized_ops += u64::from(bytes > 0);
        sums.bytes = sums.bytes.saturating_add(bytes);
    }

    pub(crate) fn leave(&mut self, location: usize, time: Ns) {
        let Some(thread) = self.thread(location, time) else {
            return self.helper_leaves(location, time);
        };
        let time = self.settle(thread, time);
        let Some(open) = self.threads[thread].open.pop() else {
            return;
        };
        self.threads[thread].shown -= usize::from(open.kind.shows_activity());
        self.graph_leave(thread, open.kind);
        let of_thread = &mut self.threads[thread];
        of_thread.has_waited_until = open.kind.is_wait_for_tasks().then_some(time);
        if open.kind.is_wait_for_tasks() {
            of_thread.before_wait = (of_thread.now, of_thread.waited);
        }
        match open.kind {
            Kind::Member if open.team.is_some() => self.leave_team(thread, time),
            Kind::Barrier { is_last } if open.is_barrier => self.depart(thread, time, is_last),
            Kind::Task => self.leave_task(thread, time, &open),
            Kind::MutexWait(_) => self.await_no_more(thread, time),
            Kind::TaskSync { is_wait } => self.take_children(thread, time, is_wait),
            Kind::GroupWait => self.take_group(thread, time),
            Kind::DependWait => self.take_dependences(thread, time, open.task),
            Kind::TaskGroup => self.end_group(thread, time, open.group),
            Kind::Chunk if self.works_on_chunks(thread) => return,
            _ => {}
        }
        self.change_state(thread, time);
    }

    pub(crate) fn event(&mut self, location: usize, time: Ns, event: ThreadEvent) {
        if let ThreadEvent::Recording { on } = event {
            match (on, self.gaps.is_open()) {
                (true, true) => {
                    self.gaps.end(time);
                    self.push_activity(time, Change::Records);
                }
                (false, false) => self.pause(time),
                _ => {}
            }
            return;
        }
        // A sample is not an event of the program: sampling must not change the time of the last event.
        if let ThreadEvent::Sampled { weight_ns } = event {
            return self.sampled(location, weight_ns);
        }
        let Some(thread) = self.thread(location, time) else {
            match (event, self.helpers.get_mut(&location)) {
                (ThreadEvent::TaskSwitch { task, .. }, Some(helper)) => helper.next = Some(task),
                (ThreadEvent::TaskComplete { task }, Some(_)) => self.helper_completes(time, task),
                _ => {}
            }
            return;
        };
        match event {
            ThreadEvent::Fork { team, requested } => {
                let next = self.threads[thread].next.set();
                (next.forked, next.requested) = (Some(team), requested);
            }
            ThreadEvent::TeamBegin { team, size, .. } => {
                self.threads[thread].next.set().joined = Some((team, size));
            }
            ThreadEvent::Join { team } => self.join(thread, time, team),
            ThreadEvent::MemberDone => self.member_done(thread, time),
            ThreadEvent::TaskCreate { task, region, is_undeferred, has_dependences, .. } => {
                let since = self.threads[thread].until;
                self.settle(thread, time);
                self.count_creation(thread, (since, time), has_dependences);
                self.pause_serial(thread);
                self.create_task(thread, task, region.0, is_undeferred);
                self.extend_burst(thread, time, region.0);
            }
            ThreadEvent::Chunks { chunks, .. } => {
                let of_thread = &self.threads[thread];
                if let Some(open) = of_thread.open.last()
                    && self.is_inside
                    && Self::COUNTS
                {
                    *self.sums.chunks.at(open.region) += chunks;
                    let instances = self.sums.instances.at(Cause::Useful, open.region);
                    instances.add(Instance {
                        begin: open.since,
                        end: time,
                        location: of_thread.location,
                        weight: chunks as f64,
                    });
                }
            }
            ThreadEvent::TaskSwitch { task, .. } => self.threads[thread].next.set().task = Some(task),
            ThreadEvent::TaskComplete { task } => {
                self.settle(thread, time);
                self.complete_task(thread, task);
            }
            ThreadEvent::TaskFulfill { task, is_late } => {
                self.settle(thread, time);
                self.fulfil_task(thread, task, is_late);
            }
            ThreadEvent::TaskDependence { from, to } => self.depend(thread, from, to),
            ThreadEvent::AcquireLock { lock, .. } => {
                let time = self.settle(thread, time);
                self.pause_serial(thread);
                self.acquire(thread, time, lock);
            }
            ThreadEvent::ReleaseLock { lock, .. } => {
                let time = self.settle(thread, time);
                self.pause_serial(thread);
                self.release(thread, time, lock);
            }
            _ => {}
        }
    }

    /// Recording is off from `time` on.
    fn pause(&mut self, time: Ns) {
        self.gaps.begin(time);
        self.push_activity(time, Change::Pauses);
    }

    /// The process ends at `end`; its last event was at `last`.
    pub(crate) fn finish(mut self, last: Ns, end: Ns) -> Finished<S> {
        let last = last.max(self.latest);
        let end = end.max(last);
        // Nothing was recorded after the last event: the tracer had ended, or the process was killed.
        if last < end && !self.gaps.is_open() {
            self.pause(last);
        }
        for thread in 0..self.threads.len() {
            self.settle(thread, end);
            self.end_of_barrier_cost(thread, Cause::Barrier);
            self.end_serial(thread, None);
        }
        if let Some(observer) = &mut self.observer {
            for thread in 0..self.threads.len() {
                observer.add_gaps(thread, &mut self.gaps.inside(end));
            }
        }
        self.activity.finish(end);
        self.samples.end_serial(None, &mut self.sums);
        let chains = self.threads.iter().map(|thread| thread.now.chain);
        let path = chains.fold(Chain::default(), Chain::max);
        let is_main = |thread: &&ThreadState<S>| thread.role == ThreadRole::Main;
        let main = self.threads.iter().find(is_main).or(self.threads.first());
        Finished {
            predicted: main.map_or([end; S], |main| main.now.stamp.times()),
            scenarios: self.scenarios,
            useful: self
                .threads
                .iter()
                .filter(|thread| thread.is_selected)
                .map(|thread| thread.useful)
                .collect(),
            path: path.length,
            path_by_place: self.chains.by_place(path),
            path_by_function: self.samples.named(self.chains.samples(path)),
            steps: match self.is_drawn {
                true => self.chains.steps(path),
                false => Vec::new(),
            },
            sums: self.sums,
            scaling: self.graphs.map(Graphs::places).unwrap_or_default(),
            observer: self.observer,
            activity: self.activity,
        }
    }
}
