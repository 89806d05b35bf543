//! Tasks: each is created once, runs only while it exists, and leaves the regions that it enters.

use super::seen::{Task, TaskName};
use super::{Checker, in_order};
use crate::check::faults::Fault;

impl Checker<'_> {
    /// The open regions of the task that a location is running.
    pub(super) fn stack(&mut self, index: usize, time: u64) -> &mut Vec<u64> {
        let task = self.sources[index].task;
        if let Task::Explicit(name) = task
            && !self.tasks.contains_key(&name)
        {
            self.fault(Fault::TaskUnknown, index, time);
        }
        match task {
            Task::Implicit(place) => &mut self.sources[index].implicit[place],
            Task::Explicit(name) => self.tasks.entry(name).or_default(),
        }
    }

    pub(super) fn leave(&mut self, index: usize, time: u64, region: u64) {
        let stack = self.stack(index, time);
        let entered = stack.iter().rposition(|open| *open == region);
        let is_newest = entered.is_some_and(|place| place + 1 == stack.len());
        if let Some(place) = entered {
            stack.truncate(place);
        }
        if !is_newest {
            self.fault(Fault::Nesting, index, time);
        }
    }

    pub(super) fn task_create(&mut self, index: usize, time: u64, task: TaskName) {
        self.early.remove(&task);
        if self.tasks.contains_key(&task) && self.early.is_empty() {
            self.fault(Fault::TaskTwice, index, time);
        }
        self.tasks.entry(task).or_default();
    }

    pub(super) fn task_switch(&mut self, index: usize, time: u64, task: TaskName) {
        let rank = task.creating_thread as usize;
        let creator = self.members(task.team).as_ref().and_then(|members| members.get(rank).copied());
        let source = &mut self.sources[index];
        if task.generation == 0 {
            let place = source.teams.iter().rposition(|(team, _)| *team == task.team);
            source.task = Task::Implicit(place.unwrap_or(0));
            if creator != Some(source.location) {
                self.fault(Fault::NotAMember, index, time);
            }
            return;
        }
        source.task = Task::Explicit(task);
        if creator.is_none() {
            self.fault(Fault::NotAMember, index, time);
        }
        if !self.tasks.contains_key(&task) {
            self.early.insert(task, time);
            self.tasks.insert(task, Vec::new());
        }
    }

    pub(super) fn task_complete(&mut self, index: usize, time: u64, task: TaskName) {
        match self.tasks.remove(&task) {
            None => self.fault(Fault::TaskUnknown, index, time),
            Some(open) if !open.is_empty() => self.fault(Fault::TaskNotLeft, index, time),
            Some(_) => {}
        }
    }

    /// All tasks must be complete.
    pub(super) fn finish_tasks(&mut self) {
        for (task, _) in in_order(&self.early) {
            self.faults.add(Fault::TaskUnknown, || task.to_string());
        }
        for (task, open) in in_order(&self.tasks) {
            let fault = if open.is_empty() { Fault::TaskNotComplete } else { Fault::NotLeft };
            self.faults.add(fault, || task.to_string());
        }
    }
}
