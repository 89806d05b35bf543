//! How threads meet in teams, tasks and locks.

use ompt_sys as ompt;

use crate::model::{LockId, RegionId, TaskId, TeamId, Wants};

/// How threads meet in teams, tasks and locks: what slices alone do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadEvent {
    /// The thread forms a team; the parallel region that it is for is entered next.
    Fork {
        /// The team.
        team: TeamId,
        /// How many threads were asked for.
        requested: u32,
    },
    /// The team is dissolved; its parallel region was left.
    Join {
        /// The team.
        team: TeamId,
    },
    /// The thread joins a team; its implicit task is entered next.
    TeamBegin {
        /// The team.
        team: TeamId,
        /// The thread's number in the team.
        index: u32,
        /// How many threads the team has.
        size: u32,
        /// The implicit task, where the trace gives it a number.
        task: Option<TaskId>,
    },
    /// The thread's implicit task, which is its innermost region, has ended. It is left when the parallel region ends or the
    /// tasks of that are complete.
    MemberDone,
    /// The thread leaves the team; its implicit task was left.
    TeamEnd {
        /// The team.
        team: TeamId,
    },
    /// The thread creates an explicit task.
    TaskCreate {
        /// The task.
        task: TaskId,
        /// The region that it will be entered as.
        region: RegionId,
        /// The task that creates it, explicit or implicit, where the trace gives that a number.
        parent: Option<TaskId>,
        /// The parent goes on only when the task is complete.
        is_undeferred: bool,
        /// Its descendants are executed at once, in its thread.
        is_final: bool,
    },
    /// A task may not start before another is complete. It comes after the creation of both, and before the first
    /// [`ThreadEvent::TaskSwitch`] to `to`. A taskwait with dependences is a task that never starts.
    TaskDependence {
        /// The task that must be complete. It may be so already.
        from: TaskId,
        /// The task that waits for it.
        to: TaskId,
    },
    /// The thread begins or resumes an explicit task, which is entered next. When that slice is left, the thread goes on
    /// with the task around it.
    TaskSwitch {
        /// The task.
        task: TaskId,
        /// Whether the trace gives that number. Else, when the task is suspended and goes on, it is another one to the timeline.
        has_id: bool,
    },
    /// The event of a detachable task is fulfilled.
    TaskFulfill {
        /// The task.
        task: TaskId,
        /// Whether its code has ended: then [`ThreadEvent::TaskComplete`] follows.
        is_late: bool,
    },
    /// The task is complete; it was left, unless it was cancelled before it ran.
    TaskComplete {
        /// The task.
        task: TaskId,
    },
    /// The thread gets a lock, critical, atomic or ordered region; the wait for it is left next.
    AcquireLock {
        /// The lock.
        lock: LockId,
        /// Its kind.
        kind: ompt::ompt_mutex_t,
        /// The acquisitions of the lock count up from 1.
        order: u32,
    },
    /// The thread releases what was acquired with that order; the hold of a region is left next.
    ReleaseLock {
        /// The lock.
        lock: LockId,
        /// The order of its acquisition.
        order: u32,
    },
    /// From now on, events of the process are recorded, or not.
    Recording {
        /// Whether they are.
        on: bool,
    },
    /// A loop is entered next.
    Loop {
        /// How it is scheduled.
        schedule: ompt::ompt_work_t,
    },
    /// The thread got these in the loop that is left next.
    Chunks {
        /// How many chunks.
        chunks: u64,
        /// Their iterations.
        iterations: u64,
    },
    /// A lock is made.
    InitLock {
        /// The lock.
        lock: LockId,
        /// Where: the region of the instant that comes next.
        region: RegionId,
    },
    /// The thread releases what was not reported to be acquired.
    ReleaseUnseen {
        /// The lock.
        lock: LockId,
        /// Its kind.
        kind: ompt::ompt_mutex_t,
        /// Where: the region of the instant that comes next.
        region: RegionId,
    },
    /// A sample of the thread was taken now. The sample itself may come later, when its stack is known. Those of a
    /// thread come in the order in which they were taken.
    Sampled {
        /// The CPU time that it represents.
        weight_ns: u64,
    },
}

impl ThreadEvent {
    /// The optional items that it belongs to.
    #[inline(always)]
    pub fn wanted_as(&self) -> Wants {
        match self {
            ThreadEvent::TaskCreate { .. } => Wants::TASK_CREATIONS,
            ThreadEvent::Sampled { .. } => Wants::SAMPLE_TIMES,
            _ => Wants::THREAD_EVENTS,
        }
    }
}
