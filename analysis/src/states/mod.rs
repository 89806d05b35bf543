//! The threads of one process: the state of each, the cause that its time goes to, and whom waits are due to.
//!
//! A thread is in one state from one event to the next. When a state ends, its time goes to a cause; who kept others
//! waiting in that time is charged for it. See `docs/analysis.md` for the definitions.

pub(crate) mod accountant;
pub(crate) mod barrier;
pub(crate) mod blamed_functions;
pub(crate) mod collector;
pub(crate) mod concurrency;
pub(crate) mod live_snapshot;
mod members;
pub(crate) mod observed;
pub(crate) mod observer;
pub(crate) mod region_kind;
mod samples;
mod segments;
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
use crate::model::within::Within;
use crate::model::worst_instances::Instance;
use crate::passes::gaps::Gaps;
use crate::scaling::region_scaling::Scaling;
use crate::states::barrier::{Barrier, Clocks};
use crate::states::concurrency::{Activity, Change};
use crate::states::observer::{Due, StateObserver};
use crate::states::region_kind::Kind;
use crate::what_if::{Scenarios, Stamp, Unwaited};
use members::helpers::Helper;
use samples::Samples;
use task_graph_recorder::Graphs;

use thread_state::{GroupId, Lane, Left, Membership, Next, Open, State, longer_work};

/// Barriers of a team that are open at once. More are nonsense: members skip barriers that others wait at.
const MAX_OPEN_BARRIERS: usize = 64;

/// The chains of the members that have arrived at a barrier, and of its tasks.
#[derive(Clone, Copy, Debug)]
struct Arrivals<const S: usize> {
    left: Left<S>,
    /// The sum of what each has come to without waiting.
    unwaited: Unwaited<S>,
    /// When the last member arrived, and where it worked.
    arrived: Stamp<S>,
    last_member: Option<PlaceId>,
    /// The scenarios in which tasks are spread evenly that were run in it.
    spread_tasks: u16,
    /// When the work before the barrier began, and how long the mutex was held in it that was held longest.
    began: Stamp<S>,
    held: Ns,
}

/// A parallel region that is open.
#[derive(Debug)]
struct Team<const S: usize> {
    region: PlaceId,
    /// The outermost region that it lies in.
    outermost: PlaceId,
    is_outermost: bool,
    /// The teams that it lies in: the outermost, and the innermost.
    outermost_slot: Option<usize>,
    around: Option<usize>,
    /// Of a region inside: its tasks are complete at its end, as those of a taskgroup.
    group: Option<GroupId>,
    /// It lies in what is analysed, at least in part.
    is_counted: bool,
    /// It was opened in a single or masked region.
    is_in_single: bool,
    begin: Ns,
    size: Option<u32>,
    begun: u32,
    /// When the last barrier was over, and how long each mutex was held since.
    began: Stamp<S>,
    held: FastMap<LockId, u64>,
    /// Its members that have not left.
    members: Vec<usize>,
    barriers: VecDeque<Barrier>,
    /// The number of the first in `barriers`.
    first: u64,
    /// The arrivals at each in `barriers`.
    arrivals: VecDeque<Arrivals<S>>,
    fork: Left<S>,
    join: Left<S>,
    /// Threads that wait for tasks, and those that run one.
    waiting: u32,
    running: u32,
    /// The hidden helpers among these, and the latest that they have done.
    helpers: u32,
    outside: Option<Box<Left<S>>>,
    now: Ns,
    by_tasks: f64,
    /// How long nobody ran a task.
    taskless: u64,
    is_over: bool,
}

impl<const S: usize> Arrivals<S> {
    fn new() -> Self {
        Arrivals {
            left: Left::never(),
            unwaited: Unwaited::default(),
            arrived: Stamp::never(),
            last_member: None,
            spread_tasks: 0,
            began: Stamp::never(),
            held: 0,
        }
    }

    /// A member has arrived or is done with a task: it is at `now` and has `waited`. `added`: what it has added so far.
    fn add(&mut self, now: &Left<S>, (waited, added): (&[Ns; S], &mut [Ns; S]), scenarios: &Scenarios<S>) {
        self.left.raise(now);
        self.unwaited.add(&now.stamp, waited, added, scenarios);
    }

    /// When the work of this many members would be done, if it were spread evenly: no mutex is held by two at a time.
    fn in_balance(&self, scenario: usize, members: u32) -> Ns {
        let mean = self.unwaited.mean(scenario, members);
        mean.max(self.began.time(scenario).wrapping_add(self.held))
    }
}

impl<const S: usize> Team<S> {
    fn size(&self) -> u32 {
        self.size.unwrap_or(self.begun).max(1)
    }

    fn barrier(&mut self, number: u64) -> Option<(&mut Barrier, &mut Arrivals<S>)> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        Some((self.barriers.get_mut(index)?, self.arrivals.get_mut(index)?))
    }

    /// Goes on to `time` with the clock of waits for tasks.
    fn until(&mut self, time: Ns) {
        if time <= self.now {
            return;
        }
        let ns = time.abs_diff(self.now);
        self.now = time;
        match self.running {
            0 => self.taskless.grow_by(ns),
            running => self.by_tasks += ns as f64 * f64::from(self.waiting) / f64::from(running),
        }
    }
}

/// A lock, critical, ordered or atomic region.
#[derive(Clone, Debug)]
struct Lock<const S: usize> {
    cause: Cause,
    /// The [`Threads::epoch`] of `last` and `release`.
    epoch: u64,
    /// The threads that wait for it.
    waiters: Vec<usize>,
    now: Ns,
    /// Where it was acquired.
    holder: Option<PlaceId>,
    last: Option<PlaceId>,
    since: Ns,
    /// The holder's.
    location: usize,
    /// The holder had to wait for it.
    has_waited: bool,
    release: Left<S>,
    /// A team behind whose barrier it is free at another time, and that time.
    freed: Option<(usize, Stamp<S>)>,
}

/// An explicit task.
#[derive(Clone, Debug)]
struct Task<const S: usize> {
    /// The chains that must be there before it starts: its creation, tasks that it depends on.
    start: Left<S>,
    /// `None` where no child is complete: many tasks have none, and there may be many tasks.
    children: Option<Box<Left<S>>>,
    parent: Parent,
    /// Who fulfilled its event.
    fulfilled: Option<Box<Left<S>>>,
    /// Its code had ended by then.
    is_fulfilled_late: bool,
    /// The team that waits for it.
    team: Option<usize>,
    /// The innermost taskgroup that it is a task of.
    group: Option<GroupId>,
    /// Where it was created.
    region: PlaceId,
    /// It had to wait for another.
    is_dependent: bool,
    /// 1 of those that implicit tasks create, one more of the tasks that these create.
    level: u8,
    successors: Vec<TaskId>,
}

/// Whose child a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Parent {
    #[default]
    Unknown,
    Task(TaskId),
    /// The implicit task of a thread, in a team.
    Member(usize, usize),
}

/// The states of one process's threads, event by event.
#[derive(Debug)]
pub(crate) struct Threads<const S: usize> {
    pub(crate) scenarios: Scenarios<S>,
    begin: Ns,
    latest: Ns,
    reports: Reports,
    is_overwritten: bool,
    /// The longest chain's steps are kept.
    is_drawn: bool,
    /// True where what comes now is counted.
    is_inside: bool,
    has_begun: bool,
    /// By location; `None` of those that are no threads of the program's.
    lanes: Vec<Option<usize>>,
    /// Of a runtime that reports no members: the outermost region that is open.
    outermost_open: Option<usize>,
    /// By location.
    helpers: FastMap<usize, Helper<S>>,
    /// The places of the tasks of serial code that helpers run now.
    serial_helpers: Vec<PlaceId>,
    all: Vec<Lane<S>>,
    teams: Vec<Team<S>>,
    free: Vec<usize>,
    by_id: FastMap<TeamId, usize>,
    locks: FastMap<LockId, Lock<S>>,
    tasks: FastMap<TaskId, Task<S>>,
    /// What the complete tasks of the taskgroups left that are open, and how many there were.
    groups: FastMap<GroupId, Left<S>>,
    groups_begun: GroupId,
    /// How often the last parallel region has ended that was open. Behind that, nobody waits for what others did before.
    epoch: u64,
    gaps: Gaps,
    activity: Activity,
    /// The threads that do not rest.
    busy: u32,
    chains: Chains,
    graphs: Option<Graphs>,
    samples: Samples,
    sums: Sums,
    /// The picture over time, where one is wanted.
    pub(crate) observer: Option<Box<dyn StateObserver>>,
}

/// The result of [`Threads::finish`].
#[derive(Debug)]
pub(crate) struct Finished<const S: usize> {
    /// When the main thread would have ended, by scenario.
    pub(crate) predicted: [Ns; S],
    pub(crate) scenarios: Scenarios<S>,
    pub(crate) sums: Sums,
    /// The times of regions on other numbers of threads, by place.
    pub(crate) scaling: BTreeMap<PlaceId, Scaling>,
    pub(crate) activity: Activity,
    /// Useful time of each thread that is accounted for.
    pub(crate) useful: Vec<u64>,
    /// The longest chain.
    pub(crate) path: u64,
    pub(crate) path_by_place: FastMap<u32, u64>,
    /// Its processor time by function, as far as there are samples.
    pub(crate) path_by_function: ByFunction,
    /// The longest chain's steps, for those who draw it.
    pub(crate) steps: Vec<Step>,
    /// Who sees the states, where somebody does.
    pub(crate) observer: Option<Box<dyn StateObserver>>,
}

impl<const S: usize> Threads<S> {
    /// Whether times are summed up by cause. A replay only asks when threads would have been where.
    const COUNTS: bool = S == 0;

    /// Whether times are predicted. One scenario alone is for who only schedules regions on other numbers of threads.
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
            lanes: Vec::new(),
            outermost_open: None,
            helpers: FastMap::default(),
            serial_helpers: Vec::new(),
            all: Vec::new(),
            teams: Vec::new(),
            free: Vec::new(),
            by_id: FastMap::default(),
            locks: FastMap::default(),
            tasks: FastMap::default(),
            groups: FastMap::default(),
            groups_begun: 0,
            epoch: 0,
            gaps: Gaps::default(),
            activity: Activity::new(begin),
            busy: 0,
            chains: Chains::default(),
            graphs: None,
            samples: Samples::default(),
            sums: Sums::default(),
            observer: None,
        }
    }

    /// Keeps the longest chain's steps, where this many `processes` are drawn.
    pub(crate) fn draw_path(&mut self, processes: usize) {
        self.is_drawn = true;
        self.chains = Chains::for_drawing(processes);
    }

    /// Sets whether what comes now lies in what is analysed. Outside, nothing is counted and no time passes.
    pub(crate) fn set_inside(&mut self, is_inside: bool) {
        self.is_inside = is_inside;
    }

    /// Begins the time that is analysed: regions that are open lie in it, and mutexes that are held. Who had another one before is no
    /// matter.
    pub(crate) fn window_begins(&mut self) {
        for lock in self.locks.values_mut() {
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

    /// Takes in a thread; the runtime's own helpers are not the program's.
    pub(crate) fn add(&mut self, location: usize, role: ThreadRole, is_selected: bool) {
        if role == ThreadRole::Helper {
            self.helpers.insert(location, Helper::default());
            return;
        }
        let lane = self.all.len();
        let known = self.lanes.len().max(location + 1);
        self.lanes.resize(known, None);
        self.lanes[location] = Some(lane);
        if let Some(observer) = &mut self.observer {
            observer.add_thread(location);
        }
        self.all.push(Lane {
            location,
            role,
            is_selected,
            until: self.begin,
            has_created_at: None,
            state: State::Rests,
            open: Vec::new(),
            next: Next::default(),
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
            acquired: None,
            held: Vec::new(),
            serial_ns: 0,
            since_region_ns: 0,
            last_region: None,
            longest: (0, 0),
            useful: 0,
            epoch: 0,
            now: Left { stamp: Stamp::new(self.begin), ..Left::never() },
            waited: [0; S],
            before_wait: (Left::never(), [0; S]),
            has_waited_until: None,
        });
        self.change_state(lane, self.begin);
    }

    #[inline(always)]
    fn lane(&mut self, location: usize, time: Ns) -> Option<usize> {
        let lane = (*self.lanes.get(location)?)?;
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
        Some(lane)
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

    /// A region begins, which is the wait for `lock` where it is one.
    pub(crate) fn enter(
        &mut self,
        location: usize,
        time: Ns,
        region: PlaceId,
        kind: Kind,
        lock: Option<LockId>,
    ) {
        let Some(lane) = self.lane(location, time) else {
            return self.helper_enters(location, time, region, kind);
        };
        let time = self.settle(lane, time);
        self.all[lane].is_seen = true;
        let next = std::mem::take(&mut self.all[lane].next);
        if kind != Kind::Task {
            self.all[lane].has_waited_until = None;
        }
        // The initial tasks of a league are its members' tasks.
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
        self.all[lane].shown += usize::from(kind.shows_activity());
        if kind.shows_activity() || kind.is_mpi_call() {
            self.end_of_barrier_cost(lane, Cause::Barrier);
        }
        if kind.meets_others() {
            self.pause_serial(lane);
        }
        match kind {
            Kind::Parallel => {
                if Self::COUNTS {
                    let requested = self.sums.requested.entry(region).or_insert(u32::MAX);
                    *requested = next.requested.min(*requested);
                }
                open.team = next.forked.map(|id| self.fork(lane, time, id, region));
            }
            Kind::Member => {
                if let Some((id, size)) = next.joined {
                    open.team = self.join_team(lane, time, id, size);
                }
            }
            Kind::Barrier { is_last } => open.is_barrier = self.arrive(lane, time, (region, is_last)),
            Kind::Task => {
                if self.all[lane].has_waited_until.take() == Some(time) {
                    self.go_on_waiting(lane);
                }
                self.begin_task(lane, time, next.task);
            }
            Kind::TaskGroup => open.group = Some(self.begin_group()),
            Kind::MutexWait(cause) => self.await_lock(lane, time, lock, cause),
            Kind::MutexHold => self.hold(lane, region),
            _ => {}
        }
        self.all[lane].open.push(open);
        self.graph_enter(lane, kind);
        if Self::COUNTS && kind == Kind::Submit {
            let target = transitions::target(&self.all[lane].open);
            let sums = self.sums.targets.entry(target).or_default();
            sums.kernels += u64::from(self.is_inside);
        }
        self.change_state(lane, time);
    }

    /// The thread waits next for what the empty task `task` depends on.
    pub(crate) fn awaits_dependences(&mut self, location: usize, task: TaskId) {
        if let Some(Some(lane)) = self.lanes.get(location) {
            self.all[*lane].next.task = Some(task);
        }
    }

    /// A wait for tasks begins, which goes on behind each task that interrupts it.
    pub(crate) fn count_taskwait(&mut self) {
        self.sums.taskwaits += u64::from(self.is_inside);
    }

    /// A wait begins for `object`, which is not OpenMP's.
    pub(crate) fn external_wait(&mut self, region: PlaceId, object: u64) {
        if self.is_inside && Self::COUNTS {
            let sums = self.sums.external.entry(region).or_default();
            sums.waits += 1;
            sums.object.merge(Within::One(object));
        }
    }

    /// The host makes an operation of this many bytes on a device's data.
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
        let Some(lane) = self.lane(location, time) else {
            return self.helper_leaves(location, time);
        };
        let time = self.settle(lane, time);
        let Some(open) = self.all[lane].open.pop() else {
            return;
        };
        self.all[lane].shown -= usize::from(open.kind.shows_activity());
        self.graph_leave(lane, open.kind);
        let of_thread = &mut self.all[lane];
        of_thread.has_waited_until = open.kind.is_wait_for_tasks().then_some(time);
        if open.kind.is_wait_for_tasks() {
            of_thread.before_wait = (of_thread.now, of_thread.waited);
        }
        match open.kind {
            Kind::Member if open.team.is_some() => self.leave_team(lane, time),
            Kind::Barrier { is_last } if open.is_barrier => self.depart(lane, time, is_last),
            Kind::Task => self.leave_task(lane, time, &open),
            Kind::MutexWait(_) => self.await_no_more(lane, time),
            Kind::TaskSync { is_wait } => self.take_children(lane, time, is_wait),
            Kind::GroupWait => self.take_group(lane, time),
            Kind::DependWait => self.take_dependences(lane, time, open.task),
            Kind::TaskGroup => self.end_group(lane, time, open.group),
            _ => {}
        }
        self.change_state(lane, time);
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
        // A sample is no event of the program's: with samples and without, its last event is the same.
        if let ThreadEvent::Sampled { weight_ns } = event {
            return self.sampled(location, weight_ns);
        }
        let Some(lane) = self.lane(location, time) else {
            match (event, self.helpers.get_mut(&location)) {
                (ThreadEvent::TaskSwitch { task, .. }, Some(helper)) => helper.next = Some(task),
                (ThreadEvent::TaskComplete { task }, Some(_)) => self.helper_completes(time, task),
                _ => {}
            }
            return;
        };
        match event {
            ThreadEvent::Fork { team, requested } => {
                self.all[lane].next.forked = Some(team);
                self.all[lane].next.requested = requested;
            }
            ThreadEvent::TeamBegin { team, size, .. } => {
                self.all[lane].next.joined = Some((team, size));
            }
            ThreadEvent::Join { team } => self.join(lane, time, team),
            ThreadEvent::MemberDone => self.member_done(lane, time),
            ThreadEvent::TaskCreate { task, region, is_undeferred, .. } => {
                let since = self.all[lane].until;
                self.settle(lane, time);
                self.count_creation(lane, (since, time));
                self.pause_serial(lane);
                self.create_task(lane, task, region.0, is_undeferred);
            }
            ThreadEvent::Chunks { chunks, .. } => {
                let of_thread = &self.all[lane];
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
            ThreadEvent::TaskSwitch { task, .. } => self.all[lane].next.task = Some(task),
            ThreadEvent::TaskComplete { task } => {
                self.settle(lane, time);
                self.complete_task(lane, task);
            }
            ThreadEvent::TaskFulfill { task, is_late } => {
                self.settle(lane, time);
                self.fulfil_task(lane, task, is_late);
            }
            ThreadEvent::TaskDependence { from, to } => self.depend(lane, from, to),
            ThreadEvent::AcquireLock { lock, .. } => {
                let time = self.settle(lane, time);
                self.pause_serial(lane);
                self.acquire(lane, time, lock);
            }
            ThreadEvent::ReleaseLock { lock, .. } => {
                let time = self.settle(lane, time);
                self.pause_serial(lane);
                self.release(lane, time, lock);
            }
            _ => {}
        }
    }

    /// From `time` on, nothing is recorded.
    fn pause(&mut self, time: Ns) {
        self.gaps.begin(time);
        self.push_activity(time, Change::Pauses);
    }

    /// The process ends; its last event was at `last`.
    pub(crate) fn finish(mut self, last: Ns, end: Ns) -> Finished<S> {
        let last = last.max(self.latest);
        let end = end.max(last);
        // From then on nothing was recorded: the tracer ended, or the process was killed.
        if last < end && !self.gaps.is_open() {
            self.pause(last);
        }
        for lane in 0..self.all.len() {
            self.settle(lane, end);
            self.end_of_barrier_cost(lane, Cause::Barrier);
            self.end_serial(lane, None);
        }
        if let Some(observer) = &mut self.observer {
            for lane in 0..self.all.len() {
                observer.add_gaps(lane, &mut self.gaps.inside(end));
            }
        }
        self.activity.finish(end);
        self.samples.end_serial(None, &mut self.sums);
        let chains = self.all.iter().map(|lane| lane.now.chain);
        let path = chains.fold(Chain::default(), Chain::max);
        let is_main = |lane: &&Lane<S>| lane.role == ThreadRole::Main;
        let main = self.all.iter().find(is_main).or(self.all.first());
        Finished {
            predicted: main.map_or([end; S], |main| main.now.stamp.times()),
            scenarios: self.scenarios,
            useful: self.all.iter().filter(|lane| lane.is_selected).map(|lane| lane.useful).collect(),
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
