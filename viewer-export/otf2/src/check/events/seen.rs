//! What the events so far show about programs and tasks.

use std::fmt;

use crate::encoding::CommRef;

/// The first and last times of a process.
#[derive(Default)]
pub(super) struct Program {
    pub(super) first: Option<u64>,
    pub(super) last: u64,
    pub(super) begin: Option<u64>,
    pub(super) end: Option<u64>,
}

/// Identifies a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TaskName {
    pub(super) team: CommRef,
    pub(super) creating_thread: u32,
    pub(super) generation: u32,
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaskName { team: CommRef(team), creating_thread, generation } = self;
        write!(f, "task {generation} that thread {creating_thread} of team {team} created")
    }
}

/// The task to which open regions belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// The implicit task of the location's team with this index.
    Implicit(usize),
    Explicit(TaskName),
}
