//! How threads meet in teams, tasks and locks.

use ompt_sys as ompt;

use crate::model::{LockId, RegionId, TaskId, TeamId, Wants};

/// How threads meet in teams, tasks and locks, which slices alone do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadEvent {
    /// The thread forms a team. Its parallel region starts next.
    Fork {
        /// The team.
        team: TeamId,
        /// The requested number of threads.
        requested: u32,
    },
    /// The team is dissolved. Its parallel region has ended.
    Join {
        /// The team.
        team: TeamId,
    },
    /// The thread joins a team. Its implicit task starts next.
    TeamBegin {
        /// The team.
        team: TeamId,
        /// The thread's number in the team.
        index: u32,
        /// The number of threads of the team.
        size: u32,
        /// The implicit task, if the trace contains its id.
        task: Option<TaskId>,
    },
    /// The thread's implicit task, which is its innermost region, has ended. The region is left when the parallel
    /// region ends or its tasks are complete.
    MemberDone,
    /// The thread leaves the team. Its implicit task has been left.
    TeamEnd {
        /// The team.
        team: TeamId,
    },
    /// The thread creates an explicit task.
    TaskCreate {
        /// The task.
        task: TaskId,
        /// The region of the task's slices.
        region: RegionId,
        /// The task that creates it, explicit or implicit, if the trace contains its id.
        parent: Option<TaskId>,
        /// The parent continues only when the task is complete.
        is_undeferred: bool,
        /// Its descendants are executed immediately by its thread.
        is_final: bool,
        /// It has a `depend` clause.
        has_dependences: bool,
    },
    /// A task may not start before another is complete. This event follows the creation of both tasks, and precedes the
    /// first [`ThreadEvent::TaskSwitch`] to `to`. A taskwait with dependences is a task that never starts.
    TaskDependence {
        /// The task that must be complete; it may already be.
        from: TaskId,
        /// The waiting task.
        to: TaskId,
    },
    /// The thread starts or resumes an explicit task, whose slice starts next. At the end of the slice, the thread
    /// continues with the task around it.
    TaskSwitch {
        /// The task.
        task: TaskId,
        /// Whether the id comes from the trace. If not, a suspended and resumed task counts as two tasks on the
        /// timeline.
        has_id: bool,
    },
    /// The event of a detachable task is fulfilled.
    TaskFulfill {
        /// The task.
        task: TaskId,
        /// Whether the task's code has ended; then [`ThreadEvent::TaskComplete`] follows.
        is_late: bool,
    },
    /// The task is complete. Its slice has ended, unless it was cancelled before it ran.
    TaskComplete {
        /// The task.
        task: TaskId,
    },
    /// The thread acquires a lock, critical, atomic or ordered region. The end of the wait for it comes next.
    AcquireLock {
        /// The lock.
        lock: LockId,
        /// Its kind.
        kind: ompt::ompt_mutex_t,
        /// The acquisition's number, counted from 1 for each lock.
        order: u32,
    },
    /// The thread releases the acquisition with this number. The end of a region that holds it comes next.
    ReleaseLock {
        /// The lock.
        lock: LockId,
        /// The number of the acquisition.
        order: u32,
    },
    /// The recording of the process's events is switched on or off.
    Recording {
        /// Whether it is switched on.
        on: bool,
    },
    /// A loop starts next.
    Loop {
        /// Its schedule.
        schedule: ompt::ompt_work_t,
    },
    /// What the thread received of the loop whose end comes next.
    Chunks {
        /// Number of chunks.
        chunks: u64,
        /// Number of iterations in these chunks.
        iterations: u64,
    },
    /// A lock is created.
    InitLock {
        /// The lock.
        lock: LockId,
        /// The region of the instant that comes next.
        region: RegionId,
    },
    /// The thread releases a mutex whose acquisition was not reported.
    ReleaseUnseen {
        /// The lock.
        lock: LockId,
        /// Its kind.
        kind: ompt::ompt_mutex_t,
        /// The region of the instant that comes next.
        region: RegionId,
    },
    /// A sample of the thread was taken now. The sample itself may follow later, when its stack is known. The samples
    /// of a thread are in the order in which they were taken.
    Sampled {
        /// The CPU time that it represents.
        weight_ns: u64,
    },
}

impl ThreadEvent {
    /// The optional items to which the event belongs.
    #[inline(always)]
    pub fn wanted_as(&self) -> Wants {
        match self {
            ThreadEvent::TaskCreate { .. } => Wants::TASK_CREATIONS,
            ThreadEvent::Sampled { .. } => Wants::SAMPLE_TIMES,
            _ => Wants::THREAD_EVENTS,
        }
    }
}
