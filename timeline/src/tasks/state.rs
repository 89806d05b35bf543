//! The explicit tasks that are alive: created, perhaps suspended, not complete.

use ompt_sys as ompt;
use omptrace_symbols::fast_map::FastMap;

use crate::model::{Anchor, Point, RegionId};
use crate::names::construct::Construct;
use crate::tasks::dependences::NodeId;
use crate::threads::open_regions::Frame;

/// Alive tasks by id.
pub(crate) type Tasks = FastMap<u64, Task>;

/// A task that is alive.
pub(crate) struct Task {
    /// The number of the event that created it.
    pub(crate) event: u64,
    pub(crate) construct: Construct,
    /// The task that created it.
    pub(crate) parent: u64,
    /// The implicit task that its creation lies in.
    pub(crate) implicit_task: Option<u64>,
    pub(crate) region: RegionId,
    /// `ompt_task_flag_t`.
    pub(crate) flags: ompt::ompt_task_flag_t,
    pub(crate) state: TaskState,
    /// Where the flow from its creation to its start begins; `None` where no arrow helps.
    pub(crate) created: Option<Point>,
    /// Its dependences: most tasks have none.
    pub(crate) links: Option<Box<Links>>,
    /// It has gone on after an end that was reported, so more parts of it may follow.
    pub(crate) is_known_untied: bool,
}

impl Task {
    /// Whether it is undeferred and has not run: it waits for a task that it depends on.
    pub(crate) fn is_delayed(&self) -> bool {
        let is_undeferred = self.flags.contains(ompt::ompt_task_undeferred);
        is_undeferred && matches!(self.state, TaskState::Created)
    }

    pub(crate) fn links(&mut self) -> &mut Links {
        self.links.get_or_insert_default()
    }
}

/// The dependences of a task, to earlier and to later ones.
#[derive(Default)]
pub(crate) struct Links {
    /// The number of its dependences.
    pub(crate) ndeps: u32,
    /// How siblings find it that depend on it.
    pub(crate) node: Option<NodeId>,
    /// The ends of the tasks that it depends on: flows to its start begin there.
    pub(crate) predecessors: Vec<(Point, Anchor)>,
    /// Tasks that wait for its end.
    pub(crate) successors: Vec<u64>,
}

/// Where a task is.
pub(crate) enum TaskState {
    /// It has not run yet.
    Created,
    /// Its regions are on the stack of the thread at this place in the list of threads; others may run above it.
    OnThread(usize),
    /// It is suspended and its regions wait for a thread.
    Suspended(Vec<Frame>),
    /// It runs, nested too deep to be on a stack.
    Hidden,
    /// Its code has run; it is complete when its event is fulfilled.
    Detached,
}
