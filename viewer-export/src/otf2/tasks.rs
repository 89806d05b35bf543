//! The identity of tasks in OTF2: the team, the thread that created the task, and the number of the task among those
//! that this thread created in the team. Number 0 is the thread's implicit task.

use omptrace_symbols::fast_map::FastMap;

use super::teams::TeamId;

/// A task of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// The implicit task in the thread's team with this index.
    Implicit(u32),
    /// An explicit task, by its id in the trace.
    Explicit(u64),
}

/// The identity of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskName {
    pub(super) team: TeamId,
    pub(super) creating_thread: u32,
    pub(super) generation: u32,
}

/// The existing explicit tasks.
#[derive(Default)]
pub(super) struct Tasks(FastMap<u64, TaskName>);

impl Tasks {
    /// Names the explicit task with this id in the trace.
    pub(super) fn create(&mut self, task: u64, name: TaskName) {
        self.0.insert(task, name);
    }

    /// The identity of an explicit task; `None` if its creation is not in the trace.
    pub(super) fn name(&self, task: u64) -> Option<TaskName> {
        self.0.get(&task).copied()
    }

    /// The task is complete.
    pub(super) fn complete(&mut self, task: u64) -> Option<TaskName> {
        self.0.remove(&task)
    }

    /// All further tasks belong to another process.
    pub(super) fn next_process(&mut self) {
        self.0.clear();
    }
}
