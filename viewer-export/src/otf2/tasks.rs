//! Tasks as OTF2 names them: by the team, the thread that created them, and a number that counts what that created there.
//! Number 0 is the thread's implicit task.

use omptrace_symbols::fast_map::FastMap;

use super::teams::TeamId;

/// A task of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// The implicit task in the team at this place of the thread's teams.
    Implicit(u32),
    /// An explicit task, by its number in the trace.
    Explicit(u64),
}

/// The name of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskName {
    pub(super) team: TeamId,
    pub(super) creating_thread: u32,
    pub(super) generation: u32,
}

/// The explicit tasks that exist.
#[derive(Default)]
pub(super) struct Tasks(FastMap<u64, TaskName>);

impl Tasks {
    /// The explicit task with this number in the trace is called `name`.
    pub(super) fn create(&mut self, task: u64, name: TaskName) {
        self.0.insert(task, name);
    }

    /// The name of an explicit task; `None` where its creation is not in the trace.
    pub(super) fn name(&self, task: u64) -> Option<TaskName> {
        self.0.get(&task).copied()
    }

    /// The task is complete.
    pub(super) fn complete(&mut self, task: u64) -> Option<TaskName> {
        self.0.remove(&task)
    }

    /// All tasks from here on are of another process.
    pub(super) fn next_process(&mut self) {
        self.0.clear();
    }
}
