//! Explicit tasks, from their creation to their end.

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{Ns, TaskId};

use crate::schema::TaskRow;

/// The existing tasks.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    count: i64,
    open: FastMap<TaskId, TaskRow>,
}

impl Tasks {
    /// A thread creates a task at a place, as a child of another task.
    pub(crate) fn create(
        &mut self,
        id: TaskId,
        parent: Option<TaskId>,
        (thread, now): (i32, Ns),
        place: i32,
        (is_undeferred, is_final): (bool, bool),
    ) {
        let parent = parent.and_then(|parent| self.open.get(&parent));
        let row = TaskRow {
            task: self.count,
            parent: parent.map(|parent| parent.task),
            place,
            created_by: thread,
            created_ns: now,
            executed_by: None,
            begin_ns: None,
            end_ns: None,
            run_ns: 0,
            switches: 0,
            is_undeferred,
            is_final,
        };
        self.count += 1;
        self.open.insert(id, row);
    }

    /// A thread starts or resumes the task. Returns the task's number.
    pub(crate) fn switch(&mut self, id: TaskId, thread: i32, now: Ns) -> Option<i64> {
        let row = self.open.get_mut(&id)?;
        row.executed_by.get_or_insert(thread);
        row.begin_ns.get_or_insert(now);
        row.switches += 1;
        Some(row.task)
    }

    /// A thread executed the task for this long.
    pub(crate) fn ran(&mut self, id: TaskId, ns: Ns) {
        if let Some(row) = self.open.get_mut(&id) {
            row.run_ns += ns;
        }
    }

    /// The task is complete.
    pub(crate) fn complete(&mut self, id: TaskId, now: Ns) -> Option<TaskRow> {
        let row = self.open.remove(&id)?;
        Some(TaskRow { end_ns: Some(now), ..row })
    }

    /// The tasks whose end is missing, in the order of their numbers.
    pub(crate) fn rest(&mut self) -> Vec<TaskRow> {
        let mut rows: Vec<TaskRow> = self.open.drain().map(|(_, row)| row).collect();
        rows.sort_unstable_by_key(|row| row.task);
        rows
    }
}
