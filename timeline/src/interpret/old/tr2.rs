//! Tasks of runtimes with TR2, which report them differently.

use crate::interpret::*;

/// The tasks whose end was reported. Untied tasks report an end each time they are suspended.
#[derive(Default)]
pub(crate) struct FinishedTasks {
    /// Ranges of task ids: by first id, the last. Runtimes number tasks consecutively, so there are few ranges.
    ranges: BTreeMap<u64, u64>,
}

impl FinishedTasks {
    pub(crate) fn are_none(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn insert(&mut self, id: u64) {
        let before = self.ranges.range(..=id).next_back();
        let before = before.map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| id <= last) {
            return;
        }
        let joins = |(_, last): &(u64, u64)| last.checked_add(1) == Some(id);
        let first = before.filter(joins).map_or(id, |(first, _)| first);
        let next = id.checked_add(1);
        let last = next.and_then(|next| self.ranges.remove(&next));
        self.ranges.insert(first, last.unwrap_or(id));
    }

    fn contains(&self, id: u64) -> bool {
        let before = self.ranges.range(..=id).next_back();
        before.is_some_and(|(_, last)| id <= *last)
    }
}

impl Interpreter<'_, '_> {
    /// An event shows that the thread runs `task`. If no task is open there, it is an unannounced one.
    #[inline]
    pub(crate) fn note_base(&mut self, thread: usize, task: Id) {
        if self.dialect.tasks_beneath_unannounced
            && let Some(base) = task.known()
            && !self.threads[thread].is_in_task()
            && !self.tasks.contains_key(&base)
        {
            self.threads[thread].unannounced_base = Some(base);
        }
    }

    /// Whether the thread continues below all open tasks: the event names no task, or an unannounced one.
    pub(crate) fn is_beneath(&self, thread: usize, next: Id) -> bool {
        let is_base = || next.known() == self.threads[thread].unannounced_base;
        self.dialect.tasks_beneath_unannounced && (next == Id::UNSET || next.known().is_some() && is_base())
    }

    /// Whether the `task` that is created has already run in part, and continues.
    pub(crate) fn goes_on_in_parts(&mut self, thread: usize, e: &TaskCreate) -> bool {
        let id = e.new_task_data.0;
        if self.tasks.contains_key(&id) {
            return true;
        }
        if !self.finished_tasks.contains(id) {
            return false;
        }
        let construct = Construct::Task;
        let region = self.region(thread, construct, e.codeptr_ra);
        // If a reader starts after the task's end, the id means another task from here on.
        let meaning = Meaning::Task { task: TaskId(self.name_of_unset()), has_id: true };
        let frame = Frame::new(construct, id, region).with(meaning);
        let task = Task {
            event: self.stage.event,
            construct,
            region,
            flags: e.flags,
            parent: e.encountering_task_data.0,
            implicit_task: self.threads[thread].innermost_implicit_task(),
            state: TaskState::Suspended(vec![frame]),
            created: None,
            links: None,
            is_known_untied: true,
        };
        self.tasks.insert(id, task);
        true
    }

    /// Whether `task`, whose end is reported, is known to have continued after an earlier reported end.
    pub(crate) fn may_go_on(&mut self, task: u64) -> bool {
        let Some(alive) = self.tasks.get(&task) else {
            return false;
        };
        if !alive.is_known_untied {
            self.finished_tasks.insert(task);
        }
        alive.is_known_untied
    }

    /// The region of `members` ends, and their untied tasks with it.
    pub(crate) fn end_untied_tasks_of(&mut self, thread: usize, time: Ns, members: &[Member]) {
        let is_ended = |task: &Task| {
            let mut implicit = members.iter().map(|(_, task)| *task);
            task.is_known_untied && implicit.any(|id| Some(id) == task.implicit_task)
        };
        let ended = self.tasks.iter().filter(|(_, task)| is_ended(task));
        let mut ended: Vec<u64> = ended.map(|(id, _)| *id).collect();
        ended.sort_unstable();
        for id in ended {
            let Some(task) = self.tasks.remove(&id) else {
                continue;
            };
            self.forget_links(task.links);
            if let TaskState::Suspended(frames) = task.state
                && let Some(completed) = frames.first().and_then(Frame::end_of_event)
            {
                self.thread_event(thread, time, completed);
            }
        }
    }

    /// A task is created in a runtime that does not report switches.
    pub(crate) fn created_unswitched(&mut self, thread: usize, time: Ns, task: Id) {
        if self.dialect.tasks_created_when_they_run {
            self.repair(thread, time, Cause::TasksWithoutSwitch);
            return self.run_task(thread, time, Id::NULL, task);
        }
        let task = arguments!["task_data": id(task)];
        self.instant(thread, time, Construct::TaskCreated, Address(0), task);
    }

    /// A task is complete in a runtime that does not report switches.
    pub(crate) fn completed_unswitched(&mut self, thread: usize, time: Ns, task: Id) {
        if !self.dialect.tasks_created_when_they_run {
            self.repair(thread, time, Cause::TasksUnseen);
            let task = arguments!["task_data": id(task)];
            self.instant(thread, time, Construct::TaskCompleted, Address(0), task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_finished_tasks_are_kept_as_ranges() {
        let mut finished = FinishedTasks::default();
        for id in [5, 7, 6, 1, u64::MAX, 7, 2, 4] {
            finished.insert(id);
        }
        let ranges: Vec<_> = finished.ranges.iter().map(|(a, b)| (*a, *b)).collect();
        assert_eq!(ranges, [(1, 2), (4, 7), (u64::MAX, u64::MAX)]);
        for (id, is_in) in [(0, false), (2, true), (3, false), (6, true), (8, false)] {
            assert_eq!(finished.contains(id), is_in, "{id}");
        }
    }
}
