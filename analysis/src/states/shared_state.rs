//! What threads share: teams with their barriers, locks, tasks.

use std::ops::{Index, IndexMut};

use super::*;

/// The chain ends of the members that have arrived at a barrier, and of its tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals<const S: usize> {
    pub(super) left: ChainEnd<S>,
    /// By scenario: the sum of the times that the members have reached without waiting.
    pub(super) unwaited: Unwaited<S>,
    /// When the last member arrived, and the place of its work.
    pub(super) arrived: PredictedTimes<S>,
    pub(super) last_member: Option<PlaceId>,
    /// The scenarios that spread tasks evenly and apply to a task that was run in this barrier.
    pub(super) spread_tasks: u16,
    /// When the work before the barrier began, and the longest time for which one mutex was held during that work.
    pub(super) began: PredictedTimes<S>,
    pub(super) held: Ns,
}

/// A parallel region that is open.
#[derive(Debug)]
pub(super) struct Team<const S: usize> {
    pub(super) region: PlaceId,
    /// The outermost region around this one.
    pub(super) outermost: PlaceId,
    pub(super) is_outermost: bool,
    /// The outermost team and the innermost team around this one.
    pub(super) outermost_slot: Option<usize>,
    pub(super) around: Option<usize>,
    /// For a nested region: its taskgroup, because its tasks are complete at its end.
    pub(super) group: Option<GroupId>,
    /// At least a part of the region is analysed.
    pub(super) is_counted: bool,
    /// The region was opened in a `single` or `masked` region.
    pub(super) is_in_single: bool,
    pub(super) begin: Ns,
    pub(super) size: Option<u32>,
    pub(super) begun: u32,
    /// When the last barrier was over, and how long each mutex was held since then.
    pub(super) began: PredictedTimes<S>,
    pub(super) held: FastMap<LockSlot, u64>,
    /// The members that have not left.
    pub(super) members: Vec<usize>,
    pub(super) barriers: VecDeque<Barrier>,
    /// The number of the first barrier in `barriers`.
    pub(super) first: u64,
    /// The arrivals at each barrier in `barriers`.
    pub(super) arrivals: VecDeque<Arrivals<S>>,
    pub(super) fork: ChainEnd<S>,
    pub(super) join: ChainEnd<S>,
    /// Number of threads that wait for tasks, and number of threads that run one.
    pub(super) waiting: u32,
    pub(super) running: u32,
    /// The number of hidden helpers that run a task, and their latest chain end.
    pub(super) helpers: u32,
    pub(super) outside: Option<Box<ChainEnd<S>>>,
    pub(super) now: Ns,
    pub(super) by_tasks: f64,
    /// Time during which no thread of the team ran a task.
    pub(super) taskless: u64,
    pub(super) is_over: bool,
}

impl<const S: usize> Arrivals<S> {
    pub(super) fn new() -> Self {
        Arrivals {
            left: ChainEnd::never(),
            unwaited: Unwaited::default(),
            arrived: PredictedTimes::never(),
            last_member: None,
            spread_tasks: 0,
            began: PredictedTimes::never(),
            held: 0,
        }
    }

    /// A member arrives or ends a task: its chain end is `now`, and it has `waited`. `added`: its previous
    /// contribution.
    pub(super) fn add(
        &mut self,
        now: &ChainEnd<S>,
        (waited, added): (&[Ns; S], &mut [Ns; S]),
        scenarios: &Scenarios<S>,
    ) {
        self.left.raise(now);
        self.unwaited.add(&now.stamp, waited, added, scenarios);
    }

    /// The time by which the work would be done if it were spread evenly over this many members. Holds of one mutex
    /// cannot overlap.
    pub(super) fn in_balance(&self, scenario: usize, members: u32) -> Ns {
        let mean = self.unwaited.mean(scenario, members);
        mean.max(self.began.time(scenario).wrapping_add(self.held))
    }
}

impl<const S: usize> Team<S> {
    pub(super) fn size(&self) -> u32 {
        self.size.unwrap_or(self.begun).max(1)
    }

    pub(super) fn barrier(&mut self, number: u64) -> Option<(&mut Barrier, &mut Arrivals<S>)> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        Some((self.barriers.get_mut(index)?, self.arrivals.get_mut(index)?))
    }

    /// The barrier with this number, if it is open.
    #[inline]
    pub(super) fn open_barrier(&mut self, number: u64) -> Option<&mut Barrier> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.barriers.get_mut(index)
    }

    /// Advances the running sums of waits for tasks to `time`.
    pub(super) fn until(&mut self, time: Ns) {
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
pub(super) struct Lock<const S: usize> {
    pub(super) id: LockId,
    pub(super) cause: Cause,
    /// The [`Threads::epoch`] of `last` and `release`.
    pub(super) epoch: u64,
    /// The waiting threads.
    pub(super) waiters: Vec<usize>,
    pub(super) now: Ns,
    /// The place at which the lock was acquired.
    pub(super) holder: Option<PlaceId>,
    pub(super) last: Option<PlaceId>,
    pub(super) since: Ns,
    /// The location of the holder.
    pub(super) location: usize,
    /// Another thread held the lock when the holder asked for it.
    pub(super) found_held: bool,
    pub(super) release: ChainEnd<S>,
    /// For members of this team, after a balanced barrier: the time at which the lock was free.
    pub(super) freed: Option<(usize, PredictedTimes<S>)>,
}

/// The number of a mutex in a [`LockTable`].
pub(super) type LockSlot = usize;

/// The mutexes of a process, numbered in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct LockTable<const S: usize> {
    slots: FastMap<LockId, LockSlot>,
    pub(super) all: Vec<Lock<S>>,
    /// The mutex that was looked up last.
    newest: Option<(LockId, LockSlot)>,
}

impl<const S: usize> LockTable<S> {
    /// The number of the mutex `id`, which is added if it is not known.
    #[inline]
    pub(super) fn slot(&mut self, id: LockId, new: impl FnOnce() -> Lock<S>) -> LockSlot {
        match self.newest {
            Some((newest, slot)) if newest == id => slot,
            _ => self.other_slot(id, new),
        }
    }

    #[inline(never)]
    fn other_slot(&mut self, id: LockId, new: impl FnOnce() -> Lock<S>) -> LockSlot {
        let all = &mut self.all;
        let slot = *self.slots.entry(id).or_insert_with(|| {
            all.push(new());
            all.len() - 1
        });
        self.newest = Some((id, slot));
        slot
    }

    pub(super) fn clear(&mut self) {
        *self = LockTable::default();
    }
}

impl<const S: usize> Index<LockSlot> for LockTable<S> {
    type Output = Lock<S>;

    #[inline]
    fn index(&self, slot: LockSlot) -> &Lock<S> {
        &self.all[slot]
    }
}

impl<const S: usize> IndexMut<LockSlot> for LockTable<S> {
    #[inline]
    fn index_mut(&mut self, slot: LockSlot) -> &mut Lock<S> {
        &mut self.all[slot]
    }
}

/// An explicit task.
#[derive(Clone, Debug)]
pub(super) struct Task<const S: usize> {
    /// The chains that must end before the task starts: its creation, and the tasks that it depends on.
    pub(super) start: ChainEnd<S>,
    /// The chain end of completed children. `None` if no child is complete: there may be many tasks, and many have no
    /// children.
    pub(super) children: Option<Box<ChainEnd<S>>>,
    pub(super) parent: Parent,
    /// The chain end of the thread that fulfilled its event.
    pub(super) fulfilled: Option<Box<ChainEnd<S>>>,
    /// The task's code had ended before its event was fulfilled.
    pub(super) is_fulfilled_late: bool,
    /// The team that waits for the task.
    pub(super) team: Option<usize>,
    /// The innermost taskgroup to which the task belongs.
    pub(super) group: Option<GroupId>,
    /// The place where the task was created.
    pub(super) region: PlaceId,
    /// The task had to wait for another task.
    pub(super) is_dependent: bool,
    /// Nesting level: 1 for tasks that implicit tasks create, and one more for each explicit task in between.
    pub(super) level: u8,
    pub(super) successors: Vec<TaskId>,
}

/// The creator of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Parent {
    #[default]
    Unknown,
    Task(TaskId),
    /// The implicit task of a thread in a team.
    Member(usize, usize),
}
