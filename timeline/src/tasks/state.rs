//! The existing explicit tasks: created, possibly suspended, not complete.

use ompt_sys as ompt;
use omptrace_symbols::fast_map::FastMap;

use crate::model::{Anchor, Point, RegionId};
use crate::names::construct::Construct;
use crate::tasks::dependences::NodeId;
use crate::threads::open_regions::Frame;

/// Existing tasks by id.
pub(crate) type Tasks = FastMap<u64, Task>;

/// An existing task.
pub(crate) struct Task {
    /// The number of the event that created it.
    pub(crate) event: u64,
    pub(crate) construct: Construct,
    /// The id of the creating task.
    pub(crate) parent: u64,
    /// The implicit task around its creation.
    pub(crate) implicit_task: Option<u64>,
    pub(crate) region: RegionId,
    /// `ompt_task_flag_t`.
    pub(crate) flags: ompt::ompt_task_flag_t,
    pub(crate) state: TaskState,
    /// The point where the flow from its creation to its start begins; `None` if there should be no arrow.
    pub(crate) created: Option<Point>,
    /// Its dependences; most tasks have none.
    pub(crate) links: Option<Box<Links>>,
    /// The task continued after a reported end, so further parts may follow.
    pub(crate) is_known_untied: bool,
}

impl Task {
    /// Whether the task is undeferred and has not run, so that it waits for a predecessor.
    pub(crate) fn is_delayed(&self) -> bool {
        let is_undeferred = self.flags.contains(ompt::ompt_task_undeferred);
        is_undeferred && matches!(self.state, TaskState::Created)
    }

    pub(crate) fn links(&mut self) -> &mut Links {
        self.links.get_or_insert_default()
    }
}

/// A task's dependences on earlier and later tasks.
#[derive(Default)]
pub(crate) struct Links {
    /// Number of dependences.
    pub(crate) ndeps: u32,
    /// The node by which later siblings find this task.
    pub(crate) node: Option<NodeId>,
    /// The ends of its predecessors, from which flows lead to its start.
    pub(crate) predecessors: Vec<(Point, Anchor)>,
    /// Tasks that depend on this one.
    pub(crate) successors: Vec<u64>,
}

/// The state of a task.
pub(crate) enum TaskState {
    /// It has not run yet.
    Created,
    /// Its regions are on the stack of the thread with this index; other regions may be above them.
    OnThread(usize),
    /// It is suspended. These regions wait to be resumed on a thread.
    Suspended(Vec<Frame>),
    /// It runs, but is nested too deeply to be on a stack.
    Hidden,
    /// Its code has ended; it is complete when its event is fulfilled.
    Detached,
}
