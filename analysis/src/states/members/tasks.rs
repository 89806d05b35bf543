//! Explicit tasks: where they are created, run and awaited.

use crate::states::*;

impl<const S: usize> Threads<S> {
    pub(in crate::states) fn current_task(&self, lane: usize) -> Parent {
        let of_thread = &self.all[lane];
        for open in of_thread.open.iter().rev() {
            match open.kind {
                Kind::Task => return open.task.map_or(Parent::Unknown, Parent::Task),
                Kind::Member => {
                    return open.team.map_or(Parent::Unknown, |team| Parent::Member(lane, team));
                }
                _ => {}
            }
        }
        Parent::Unknown
    }

    /// What the children of a task left that are complete, to be added to.
    fn children(&mut self, parent: Parent) -> Option<&mut Left<S>> {
        match parent {
            Parent::Unknown => None,
            Parent::Task(task) => {
                let children = &mut self.tasks.get_mut(&task)?.children;
                Some(children.get_or_insert_with(|| Box::new(Left::never())))
            }
            Parent::Member(lane, team) => {
                let memberships = &mut self.all[lane].memberships;
                let membership = memberships.iter_mut().find(|m| m.team == team)?;
                Some(&mut membership.children)
            }
        }
    }

    pub(in crate::states) fn create_task(
        &mut self,
        lane: usize,
        task: TaskId,
        region: PlaceId,
        is_undeferred: bool,
    ) {
        self.graph_create(lane, task, is_undeferred);
        let parent = self.current_task(lane);
        let created = Task {
            start: self.all[lane].now,
            children: None,
            parent,
            region,
            is_dependent: false,
            successors: Vec::new(),
        };
        self.tasks.insert(task, created);
        if self.is_inside && Self::COUNTS {
            self.sums.tasks.at(region).created += 1;
        }
    }

    /// The task `to` cannot begin before `from` is complete.
    pub(in crate::states) fn depend(&mut self, lane: usize, from: TaskId, to: TaskId) {
        self.graph_depend(lane, from, to);
        let Some(from) = self.tasks.get_mut(&from) else {
            return;
        };
        from.successors.push(to);
        if self.is_inside
            && Self::COUNTS
            && let Some(to) = self.tasks.get_mut(&to)
            && !std::mem::replace(&mut to.is_dependent, true)
        {
            self.sums.tasks.at(to.region).dependent += 1;
        }
    }

    pub(in crate::states) fn begin_task(&mut self, lane: usize, time: Ns, task: Option<TaskId>) {
        let of_thread = &mut self.all[lane];
        if let Some(task) = task.and_then(|task| self.tasks.get(&task)) {
            of_thread.now.chain = of_thread.now.chain.max(task.start.chain);
            let stamp = &mut of_thread.now.stamp;
            stamp.meet(time, &task.start.stamp, 0, &mut of_thread.waited);
        }
        let Some(membership) = of_thread.memberships.last_mut() else {
            return;
        };
        let Some(number) = membership.inside else {
            return;
        };
        membership.tasks_inside += 1;
        if membership.tasks_inside == 1 {
            let team = &mut self.teams[membership.team];
            let size = team.size();
            if let Some((barrier, _)) = team.barrier(number) {
                if Self::COUNTS {
                    barrier.until(time, size);
                }
                barrier.running += 1;
            }
        }
    }

    pub(in crate::states) fn leave_task(&mut self, lane: usize, time: Ns, region: PlaceId) {
        let of_thread = &mut self.all[lane];
        let Some(membership) = of_thread.memberships.last_mut() else {
            return;
        };
        let Some(number) = membership.inside else {
            return;
        };
        if membership.tasks_inside == 0 {
            return;
        }
        membership.tasks_inside -= 1;
        let team = &mut self.teams[membership.team];
        let size = team.size();
        if let Some((barrier, arrivals)) = team.barrier(number) {
            if Self::COUNTS {
                barrier.until(time, size);
            }
            let is_done = membership.tasks_inside == 0;
            barrier.running = barrier.running.saturating_sub(is_done.into());
            arrivals.last_task = Some(region);
            let counted = (&of_thread.waited, &mut membership.added);
            arrivals.add(&of_thread.now, counted, &self.scenarios);
        }
    }

    pub(in crate::states) fn complete_task(&mut self, lane: usize, task: TaskId) {
        let Some(done) = self.tasks.remove(&task) else {
            return;
        };
        let mut end = self.all[lane].now;
        for successor in &done.successors {
            if let Some(successor) = self.tasks.get_mut(successor) {
                successor.start.raise(&end);
            }
        }
        // Those who wait for a taskgroup wait for its descendants.
        if let Some(children) = &done.children {
            end.raise(children);
        }
        if let Some(children) = self.children(done.parent) {
            children.raise(&end);
        }
    }

    /// The thread has waited for the tasks of its task.
    pub(in crate::states) fn take_children(&mut self, lane: usize, time: Ns, is_wait: bool) {
        self.graph_wait(lane);
        let task = self.current_task(lane);
        if let Some(children) = self.children(task).copied() {
            let Lane { now, waited, .. } = &mut self.all[lane];
            now.chain = now.chain.max(children.chain);
            if is_wait {
                now.stamp.meet(time, &children.stamp, 0, waited);
            }
        }
    }
}
