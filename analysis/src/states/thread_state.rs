//! A thread: its state, its open regions and its memberships in teams.

use super::*;

/// The number of a taskgroup, unique in the process.
pub(super) type GroupId = u64;

/// The state of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// The thread is in no team and does not run the program.
    #[default]
    Rests,
    /// The thread runs the program at this place; `None` in serial code.
    Useful(Option<PlaceId>),
    /// The thread loses time at this place.
    Loses(Cause, PlaceId),
    /// The thread is in a barrier of its team.
    InBarrier(PlaceId),
}

/// An open region of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) region: PlaceId,
    pub(super) kind: Kind,
    pub(super) since: Ns,
    /// For [`Kind::Parallel`] and [`Kind::Member`]: the team.
    pub(super) team: Option<usize>,
    /// For [`Kind::Parallel`]: whether the thread's own implicit task has started.
    pub(super) has_begun: bool,
    /// For [`Kind::Member`]: whether the implicit task has ended before its region.
    pub(super) is_done: bool,
    /// For [`Kind::Task`]: the task.
    pub(super) task: Option<TaskId>,
    /// For [`Kind::TaskGroup`]: the taskgroup.
    pub(super) group: Option<GroupId>,
    /// The strand of this region, and the number of the phase in which it was looked up.
    pub(super) strand: (u64, Option<u32>),
    /// The region is the outermost one of a barrier.
    pub(super) is_barrier: bool,
}

/// Facts about the region whose start comes next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Next {
    pub(super) forked: Option<TeamId>,
    pub(super) requested: u32,
    pub(super) joined: Option<(TeamId, u32)>,
    pub(super) task: Option<TaskId>,
}

/// A thread's membership in a team.
#[derive(Clone, Copy, Debug)]
pub(super) struct Membership<const S: usize> {
    pub(super) team: usize,
    /// Number of barriers at which the thread has arrived.
    pub(super) barriers: u64,
    /// The number of the barrier in which the thread is.
    pub(super) inside: Option<u64>,
    /// Number of nested explicit tasks that the thread is running inside the barrier.
    pub(super) tasks_inside: u32,
    /// Time inside a barrier that is nobody's lateness. It is charged to the join or to the barrier when the next event
    /// tells which barrier it was.
    pub(super) own: u64,
    pub(super) own_place: PlaceId,
    /// The values of the barrier in which the thread is or for which it is late, when the current state began.
    pub(super) clocks: Clocks,
    pub(super) by_late: f64,
    pub(super) by_tasks: f64,
    /// For the team around: the thread's `waited` and `longest` when it joined this team.
    pub(super) around: ([Ns; S], (u64, PlaceId)),
    /// The longest piece of work before the last barrier.
    pub(super) longest: (u64, PlaceId),
    /// By scenario, this member's share of [`Arrivals::unwaited`], so that it can be replaced.
    pub(super) added: [Ns; S],
    /// The latest chain end of the child tasks of the thread's implicit task.
    pub(super) children: ChainEnd<S>,
}

/// Consecutive task creations of a thread within an outermost region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// Where the first of the tasks was created.
    pub(super) first: PlaceId,
    pub(super) begin: Ns,
    pub(super) tasks: u32,
}

/// A thread.
#[derive(Debug)]
pub(super) struct ThreadState<const S: usize> {
    pub(super) location: usize,
    pub(super) role: ThreadRole,
    /// The thread's time is accounted for.
    pub(super) is_selected: bool,
    /// The time up to which the thread's time has been accounted for.
    pub(super) until: Ns,
    /// When the thread last created a task.
    pub(super) has_created_at: Option<Ns>,
    /// The tasks that the thread creates now.
    pub(super) burst: Option<Burst>,
    pub(super) state: State,
    pub(super) open: Vec<Open>,
    pub(super) next: Upcoming<Next>,
    pub(super) memberships: Vec<Membership<S>>,
    /// Number of open regions that make this thread count as active.
    pub(super) shown: usize,
    /// Whether the thread has entered any region.
    pub(super) is_seen: bool,
    /// Whether the thread is busy, as last reported to [`Concurrency`].
    pub(super) is_busy: bool,
    /// Its region has ended; the event that ends this thread's implicit task is still to come.
    pub(super) is_released: bool,
    /// Whether the thread waits for tasks of its innermost team, and whether it runs one; then the team's running sum
    /// when the current state began.
    pub(super) waits_for_tasks: bool,
    pub(super) runs_task: bool,
    pub(super) by_tasks: f64,
    /// The team's `taskless` time when the current state began.
    pub(super) taskless: u64,
    /// Time lost at the start of a region before the team is known.
    pub(super) fork_ns: u64,
    /// The strands of the single region and of the chunk in which the thread is.
    pub(super) alone: Option<u32>,
    pub(super) chunk: Option<u32>,
    /// The number of iterations of the static loop in which the thread is, over all threads.
    pub(super) iterations: u64,
    /// The lock that the thread waits for.
    pub(super) awaits: Option<LockSlot>,
    /// Whether another thread held that lock when this one asked for it.
    pub(super) found_held: bool,
    /// The lock that the thread acquired last.
    pub(super) acquired: Option<LockSlot>,
    /// The mutexes that the thread holds, or that others have taken over without a reported release.
    pub(super) held: Vec<LockSlot>,
    /// Serial work since it was last added to a place, and since the last region.
    pub(super) serial_ns: u64,
    pub(super) since_region_ns: u64,
    pub(super) last_region: Option<PlaceId>,
    /// The longest piece of work since the last barrier, and its place.
    pub(super) longest: (u64, PlaceId),
    pub(super) useful: u64,
    /// The [`Threads::epoch`] of `now`.
    pub(super) epoch: u64,
    pub(super) now: ChainEnd<S>,
    /// By scenario: the time that the thread has waited for others since the last barrier.
    pub(super) waited: [Ns; S],
    /// `now` and `waited` before the wait for tasks that has just ended. They are restored if a task starts
    /// immediately, because that task has interrupted the wait.
    pub(super) before_wait: (ChainEnd<S>, [Ns; S]),
    /// The end of that wait.
    pub(super) has_waited_until: Option<Ns>,
}

/// The longer of two pieces of work; if they are equally long, the later one.
pub(super) fn longer_work(before: (u64, PlaceId), after: (u64, PlaceId)) -> (u64, PlaceId) {
    if after.0 < before.0 { before } else { after }
}

/// The end of a dependence chain of a thread, team, lock or task, which whoever waits for it takes over.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainEnd<const S: usize> {
    /// The longest chain that ends here.
    pub(super) chain: Chain,
    /// The recorded time and the predicted times of the end.
    pub(super) stamp: PredictedTimes<S>,
}

impl<const S: usize> ChainEnd<S> {
    /// No chain end at all.
    pub(super) fn never() -> Self {
        ChainEnd { chain: Chain::default(), stamp: PredictedTimes::never() }
    }

    /// Combines two chain ends that are both awaited.
    pub(super) fn raise(&mut self, other: &ChainEnd<S>) {
        self.chain = self.chain.max(other.chain);
        self.stamp.raise(&other.stamp);
    }
}
