//! An open region of a thread.

use ompt_sys as ompt;
use omptrace_trace_format::field::Id;

use crate::model::repairs::Cause;
use crate::model::{Awaited, Ns, Part, RegionId, TaskId, TeamId, ThreadEvent};
use crate::names::construct::Construct;

/// An open region.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) construct: Construct,
    /// What the end of the region names: the id of a task or region, an address, or 0.
    pub(crate) key: u64,
    pub(crate) region: RegionId,
    /// What the region means for other threads.
    pub(super) meaning: Meaning,
    /// The start of the current slice.
    pub(super) begin: Ns,
    /// Ends after this time are late: the end of the member's parallel region, or of the member itself.
    pub(super) limit: Ns,
    /// The region is the implicit task of a parallel region whose start is known.
    pub(super) is_member: bool,
    /// The end was reported, but the region is shown until its parallel region ends.
    pub(super) ended: bool,
    /// The region is currently not a slice, because a task runs on top of it.
    pub(super) paused: bool,
    /// The number of the current slice, counted from 1.
    pub(super) part: u32,
    /// The index of the innermost implicit task around the region; if it is one itself, its own index.
    pub(super) implicit_task: Option<u32>,
    /// For an implicit task: number of its team's barriers that the thread has entered.
    pub(super) barriers: u32,
    /// For a loop: number of chunks that the thread has received.
    pub(crate) chunks: u64,
    /// The iterations of these chunks.
    pub(crate) iterations: u64,
    /// The number of the event that started the region.
    pub(super) opened: u64,
    /// The number of another event that matters for the region, or 0. For a loop: its newest chunk. For a wait: the
    /// event after which it last continued. For a wait for a mutex: the acquisition by the thread that held the mutex
    /// when the wait started.
    pub(crate) further: u64,
}

/// What a region means for other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The region does not concern other threads.
    Alone,
    /// The thread forms a team.
    Team { team: TeamId, requested: u32 },
    /// The implicit task of a member.
    Member { team: TeamId, index: u32, size: u32 },
    /// An explicit task to which the thread switches.
    Task { task: TaskId, has_id: bool },
    /// A loop, whose iterations the team shares.
    Loop { schedule: ompt::ompt_work_t },
    /// The thread waits.
    Wait(Awaited),
}

impl Frame {
    pub(crate) fn new(construct: Construct, key: u64, region: RegionId) -> Frame {
        Frame {
            construct,
            key,
            region,
            meaning: Meaning::Alone,
            begin: 0,
            limit: Ns::MAX,
            is_member: false,
            ended: false,
            paused: false,
            part: 1,
            implicit_task: None,
            barriers: 0,
            chunks: 0,
            iterations: 0,
            opened: 0,
            further: 0,
        }
    }

    /// The same with the number of another event that matters for the region.
    pub(crate) fn after(self, further: u64) -> Frame {
        Frame { further, ..self }
    }

    /// The same with a meaning for other threads.
    #[inline(always)]
    pub(crate) fn with(self, meaning: Meaning) -> Frame {
        Frame { meaning, ..self }
    }

    /// The end of the region is not the end of the task, which ends when its event is fulfilled.
    pub(super) fn detach(&mut self) {
        self.meaning = Meaning::Alone;
    }

    /// The kind of the region's next slice.
    pub(super) fn next_part(&self) -> Part {
        match self.part {
            1 => Part::First,
            _ => Part::Further,
        }
    }

    /// The thread event for the final end of the region.
    pub(crate) fn end_of_event(&self) -> Option<ThreadEvent> {
        match self.meaning {
            Meaning::Team { team, .. } => Some(ThreadEvent::Join { team }),
            Meaning::Member { team, .. } => Some(ThreadEvent::TeamEnd { team }),
            Meaning::Task { task, .. } => Some(ThreadEvent::TaskComplete { task }),
            Meaning::Alone | Meaning::Loop { .. } | Meaning::Wait(_) => None,
        }
    }

    /// The thread event for entering the region.
    #[inline(always)]
    pub(super) fn event(&self) -> Option<ThreadEvent> {
        match self.meaning {
            Meaning::Alone | Meaning::Wait(_) => None,
            Meaning::Team { team, requested } => Some(ThreadEvent::Fork { team, requested }),
            Meaning::Member { team, index, size } => {
                Some(ThreadEvent::TeamBegin { team, index, size, task: Id(self.key).known().map(TaskId) })
            }
            Meaning::Task { task, has_id } => Some(ThreadEvent::TaskSwitch { task, has_id }),
            Meaning::Loop { schedule } => Some(ThreadEvent::Loop { schedule }),
        }
    }

    /// What the thread waits for in the region.
    #[inline(always)]
    pub(super) fn awaited(&self) -> Option<Awaited> {
        match self.meaning {
            Meaning::Wait(awaited) => Some(awaited),
            _ => None,
        }
    }

    /// The start of the current slice.
    pub(crate) fn begin(&self) -> Ns {
        self.begin
    }

    /// The implicit task of a parallel region whose start is known.
    pub(crate) fn member(construct: Construct, task: u64, region: RegionId) -> Frame {
        Frame { is_member: true, ..Frame::new(construct, task, region) }
    }

    /// The reason why the region lacks an end, if something else shows that it has ended; `None` if that is the
    /// expected sign.
    pub(super) fn cause_of_missing_end(&self) -> Option<Cause> {
        match self.construct {
            _ if self.ended => None,
            Construct::Chunk => None,
            Construct::Work(ompt::ompt_work_single_executor) => Some(Cause::SingleWithoutEnd),
            _ => Some(Cause::MissingEnd),
        }
    }

    /// The team of a member's implicit task, and the member's number.
    pub(crate) fn team_of_member(&self) -> Option<(TeamId, u32)> {
        match self.meaning {
            Meaning::Member { team, index, .. } => Some((team, index)),
            _ => None,
        }
    }

    /// Whether the thread waits in this region, apart from the tasks that it runs in the meantime.
    pub(super) fn is_wait_for_tasks(&self) -> bool {
        matches!(self.construct, Construct::SyncRegionWait(_) | Construct::Idle)
    }

    /// Whether the region's end was already reported.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the region continues when the one around it ends.
    pub(super) fn outlives_others(&self) -> bool {
        self.construct.is_phase() || self.construct == Construct::Idle
    }

    /// Whether the region is a task, to which everything inside the region belongs.
    pub(crate) fn is_task(&self) -> bool {
        self.is_explicit_task() || self.is_implicit_task()
    }

    /// Whether the region is a member's task. The initial tasks of a league are its members' tasks.
    pub(super) fn is_implicit_task(&self) -> bool {
        matches!(self.construct, Construct::ImplicitTask | Construct::InitialTask)
    }

    /// Whether the region is a task that can be suspended and resumed on another thread.
    pub(crate) fn is_explicit_task(&self) -> bool {
        matches!(
            self.construct,
            Construct::Task | Construct::UntiedTask | Construct::TargetTask | Construct::TaskwaitTask
        )
    }
}
