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
    /// The thing that its end names: the id of a task or region, an address, or 0.
    pub(crate) key: u64,
    pub(crate) region: RegionId,
    /// Its meaning between threads.
    pub(super) meaning: Meaning,
    /// When it began, or went on after it was cut.
    pub(super) begin: Ns,
    /// Ends after this time are late: when the member's parallel region ended, or when the member itself did.
    pub(super) limit: Ns,
    /// It is the implicit task of a parallel region whose start is known.
    pub(super) is_member: bool,
    /// Its end was reported; it is shown until its parallel region ends.
    pub(super) ended: bool,
    /// It is no slice now, for a task runs on top.
    pub(super) paused: bool,
    /// Counts the slices that this region was cut into.
    pub(super) part: u32,
    /// The place of the innermost implicit task that this region lies in, or is.
    pub(super) implicit_task: Option<u32>,
    /// The barriers of its team that the thread has entered, if it is an implicit task.
    pub(super) barriers: u32,
    /// The chunks of a loop that this thread got.
    pub(crate) chunks: u64,
    /// Their iterations.
    pub(crate) iterations: u64,
    /// The number of the event that began it.
    pub(super) opened: u64,
    /// The number of another event that matters to it, or 0. Of a loop, that is its newest chunk; of a wait, the
    /// event after which it went on last. Of a wait for a mutex, it is the acquisition by the thread that had that
    /// when the wait began.
    pub(crate) further: u64,
}

/// The meaning of a region between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// No other thread has to do with it.
    Alone,
    /// The thread forms a team.
    Team { team: TeamId, requested: u32 },
    /// The implicit task of a member.
    Member { team: TeamId, index: u32, size: u32 },
    /// An explicit task, which the thread switches to.
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

    /// Returns it with the number of another event that matters to it.
    pub(crate) fn after(self, further: u64) -> Frame {
        Frame { further, ..self }
    }

    /// Returns it with a meaning between threads.
    #[inline(always)]
    pub(crate) fn with(self, meaning: Meaning) -> Frame {
        Frame { meaning, ..self }
    }

    /// Its end is none of the task's: that comes when the task's event is fulfilled.
    pub(super) fn detach(&mut self) {
        self.meaning = Meaning::Alone;
    }

    /// Which slice of the region is entered next.
    pub(super) fn next_part(&self) -> Part {
        match self.part {
            1 => Part::First,
            _ => Part::Further,
        }
    }

    /// The event between threads when the region has ended for good.
    pub(crate) fn end_of_event(&self) -> Option<ThreadEvent> {
        match self.meaning {
            Meaning::Team { team, .. } => Some(ThreadEvent::Join { team }),
            Meaning::Member { team, .. } => Some(ThreadEvent::TeamEnd { team }),
            Meaning::Task { task, .. } => Some(ThreadEvent::TaskComplete { task }),
            Meaning::Alone | Meaning::Loop { .. } | Meaning::Wait(_) => None,
        }
    }

    /// The event between threads when the thread enters the region.
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

    /// The thing that the thread waits for in it.
    #[inline(always)]
    pub(super) fn awaited(&self) -> Option<Awaited> {
        match self.meaning {
            Meaning::Wait(awaited) => Some(awaited),
            _ => None,
        }
    }

    /// When it began, or went on after it was cut.
    pub(crate) fn begin(&self) -> Ns {
        self.begin
    }

    /// The implicit task of a parallel region whose start is known.
    pub(crate) fn member(construct: Construct, task: u64, region: RegionId) -> Frame {
        Frame { is_member: true, ..Frame::new(construct, task, region) }
    }

    /// Why the region has no end, when something else shows that it has ended; `None` where it is the sign of it.
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

    /// Whether the thread waits in this region, but for the tasks that it runs meanwhile.
    pub(super) fn is_wait_for_tasks(&self) -> bool {
        matches!(self.construct, Construct::SyncRegionWait(_) | Construct::Idle)
    }

    /// Whether its end was reported already.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the region goes on when the one around it ends.
    pub(super) fn outlives_others(&self) -> bool {
        self.construct.is_phase() || self.construct == Construct::Idle
    }

    /// Whether the region is a task: what runs inside it belongs to that task.
    pub(crate) fn is_task(&self) -> bool {
        self.is_explicit_task() || self.is_implicit_task()
    }

    /// Whether the region is a member's task; the initial tasks of a league are its members' tasks.
    pub(super) fn is_implicit_task(&self) -> bool {
        matches!(self.construct, Construct::ImplicitTask | Construct::InitialTask)
    }

    /// Whether the region is a task that can be suspended and go on elsewhere.
    pub(crate) fn is_explicit_task(&self) -> bool {
        matches!(
            self.construct,
            Construct::Task | Construct::UntiedTask | Construct::TargetTask | Construct::TaskwaitTask
        )
    }
}
