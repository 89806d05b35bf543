//! The explicit tasks that are alive: created, perhaps suspended, not complete.

use std::rc::Rc;

use crate::fast_map::FastMap;
use crate::names::Construct;
use crate::sink::{Point, RegionId};
use crate::timeline::dependences::Node;
use crate::timeline::thread::Frame;

/// Alive tasks by id.
pub(crate) type Tasks = FastMap<u64, Task>;

/// A task that is alive.
pub(crate) struct Task {
    pub(crate) construct: Construct,
    /// The task that created it.
    pub(crate) parent: u64,
    /// The implicit task that its creation lies in.
    pub(crate) implicit_task: Option<u64>,
    pub(crate) region: RegionId,
    /// `ompt_task_flag_t`.
    pub(crate) flags: u32,
    /// The number of its dependences.
    pub(crate) ndeps: u32,
    /// How siblings find it that depend on it.
    pub(crate) node: Option<Rc<Node>>,
    pub(crate) state: TaskState,
    /// Where a flow to its start begins: its creation (`None` where no arrow helps), then the ends of the tasks that it
    /// depends on.
    pub(crate) created: Option<Point>,
    pub(crate) predecessors: Vec<Point>,
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
}
