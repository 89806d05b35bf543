//! A thread: its state, its open regions and its parts in teams.

use super::*;

/// A taskgroup of the process, by number.
pub(super) type GroupId = u64;

/// The state of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// It is in no team and does not run the program.
    #[default]
    Rests,
    /// It runs the program, at this place; `None` in serial code.
    Useful(Option<PlaceId>),
    /// It loses time at this place.
    Loses(Cause, PlaceId),
    /// It is in a barrier of its team.
    InBarrier(PlaceId),
}

/// An open region of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) region: PlaceId,
    pub(super) kind: Kind,
    pub(super) since: Ns,
    /// The thing that it belongs to: of [`Kind::Parallel`] and [`Kind::Member`], the team.
    pub(super) team: Option<usize>,
    /// Whether the thread's own implicit task has begun, of [`Kind::Parallel`].
    pub(super) has_begun: bool,
    /// Whether the implicit task has ended before its region does, of [`Kind::Member`].
    pub(super) is_done: bool,
    /// The task, of [`Kind::Task`].
    pub(super) task: Option<TaskId>,
    /// The taskgroup, of [`Kind::TaskGroup`].
    pub(super) group: Option<GroupId>,
    /// The phase that its strand was looked for in, and that strand.
    pub(super) strand: (u64, Option<u32>),
    /// The barrier that it is the outermost region of.
    pub(super) is_barrier: bool,
}

/// The facts about the region that is entered next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Next {
    pub(super) forked: Option<TeamId>,
    pub(super) requested: u32,
    pub(super) joined: Option<(TeamId, u32)>,
    pub(super) task: Option<TaskId>,
}

/// A thread's part in a team.
#[derive(Clone, Copy, Debug)]
pub(super) struct Membership<const S: usize> {
    pub(super) team: usize,
    /// Barriers that it has arrived at.
    pub(super) barriers: u64,
    /// The number of the one that it is in.
    pub(super) inside: Option<u64>,
    /// Explicit tasks that it runs in there, on top of each other.
    pub(super) tasks_inside: u32,
    /// Time inside a barrier that is nobody's lateness. It is charged to the join or to the barrier when the next event
    /// tells which barrier it was.
    pub(super) own: u64,
    pub(super) own_place: PlaceId,
    /// The clocks of the barrier that it is in or late for, when the state began.
    pub(super) clocks: Clocks,
    pub(super) by_late: f64,
    pub(super) by_tasks: f64,
    /// In the team around: what the thread had waited since the last barrier, and its longest piece of work.
    pub(super) around: ([Ns; S], (u64, PlaceId)),
    /// The longest piece of work before the last barrier.
    pub(super) longest: (u64, PlaceId),
    /// By scenario, this member's share of [`Arrivals::unwaited`], so that it can be replaced.
    pub(super) added: [Ns; S],
    /// The latest of the tasks that its implicit task created.
    pub(super) children: ChainEnd<S>,
}

/// A thread.
#[derive(Debug)]
pub(super) struct ThreadState<const S: usize> {
    pub(super) location: usize,
    pub(super) role: ThreadRole,
    /// Its time is accounted for.
    pub(super) is_selected: bool,
    /// Until when its time is accounted.
    pub(super) until: Ns,
    /// When it created a task last.
    pub(super) has_created_at: Option<Ns>,
    pub(super) state: State,
    pub(super) open: Vec<Open>,
    pub(super) next: Next,
    pub(super) memberships: Vec<Membership<S>>,
    /// Number of open regions that make this thread count as active.
    pub(super) shown: usize,
    /// Whether it has entered anything.
    pub(super) is_seen: bool,
    /// Whether it is busy, as the sweep knows it.
    pub(super) is_busy: bool,
    /// Its region has ended; the event that ends this thread's implicit task is still to come.
    pub(super) is_released: bool,
    /// Its state in the team that it is a member of: it waits for tasks, it runs one. And the team's clock when that began.
    pub(super) waits_for_tasks: bool,
    pub(super) runs_task: bool,
    pub(super) by_tasks: f64,
    /// The clock of the time in which nobody of the team runs a task, likewise.
    pub(super) taskless: u64,
    /// Fork time before the team is known.
    pub(super) fork_ns: u64,
    /// The strands of the single region and of the chunk that it is in.
    pub(super) alone: Option<u32>,
    pub(super) chunk: Option<u32>,
    /// The iterations of the static loop that it is in, all threads together.
    pub(super) iterations: u64,
    /// The lock that it waits for.
    pub(super) awaits: Option<LockId>,
    /// The lock that it acquired last.
    pub(super) acquired: Option<LockId>,
    /// The mutexes that it has, or had and others have now.
    pub(super) held: Vec<LockId>,
    /// Serial work until now, and since the last region.
    pub(super) serial_ns: u64,
    pub(super) since_region_ns: u64,
    pub(super) last_region: Option<PlaceId>,
    /// The longest piece of work since the last barrier, and where it was.
    pub(super) longest: (u64, PlaceId),
    pub(super) useful: u64,
    /// The [`Threads::epoch`] of `now`.
    pub(super) epoch: u64,
    pub(super) now: ChainEnd<S>,
    /// By scenario, the time that it has waited for others since the last barrier.
    pub(super) waited: [Ns; S],
    /// `now` and `waited` before the wait for tasks that has just ended: a task that comes next has interrupted it.
    pub(super) before_wait: (ChainEnd<S>, [Ns; S]),
    /// When that was.
    pub(super) has_waited_until: Option<Ns>,
}

/// The longer one of two pieces of work, and of two that are as long, the one after.
pub(super) fn longer_work(before: (u64, PlaceId), after: (u64, PlaceId)) -> (u64, PlaceId) {
    if after.0 < before.0 { before } else { after }
}

/// The end of a dependence chain of a thread, team, lock or task, which whoever waits for it takes over.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainEnd<const S: usize> {
    /// The longest chain to there.
    pub(super) chain: Chain,
    /// When that was, and would have been.
    pub(super) stamp: Stamp<S>,
}

impl<const S: usize> ChainEnd<S> {
    /// Nothing was left.
    pub(super) fn never() -> Self {
        ChainEnd { chain: Chain::default(), stamp: Stamp::never() }
    }

    /// Both this and `other` are awaited.
    pub(super) fn raise(&mut self, other: &ChainEnd<S>) {
        self.chain = self.chain.max(other.chain);
        self.stamp.raise(&other.stamp);
    }
}
