//! Explicit tasks: their creation, execution, and waits for them.

use crate::model::task_levels::MAX_LEVEL;
use crate::states::*;

/// The tasks of a stretch in which a thread creates many.
const BURST: u32 = 100;

impl<const S: usize> Threads<S> {
    pub(in crate::states) fn current_task(&self, thread: usize) -> Parent {
        let of_thread = &self.threads[thread];
        for open in of_thread.open.iter().rev() {
            match open.kind {
                Kind::Task => return open.task.map_or(Parent::Unknown, Parent::Task),
                Kind::Member => {
                    return open.team.map_or(Parent::Unknown, |team| Parent::Member(thread, team));
                }
                _ => {}
            }
        }
        Parent::Unknown
    }

    /// The end of the chains of a task's completed children.
    fn children(&mut self, parent: Parent) -> Option<&mut ChainEnd<S>> {
        match parent {
            Parent::Unknown => None,
            Parent::Task(task) => {
                let children = &mut self.tasks.get_mut(&task)?.children;
                Some(children.get_or_insert_with(|| Box::new(ChainEnd::never())))
            }
            Parent::Member(thread, team) => {
                let memberships = &mut self.threads[thread].memberships;
                let membership = memberships.iter_mut().find(|m| m.team == team)?;
                Some(&mut membership.children)
            }
        }
    }

    pub(in crate::states) fn create_task(
        &mut self,
        thread: usize,
        task: TaskId,
        region: PlaceId,
        is_undeferred: bool,
    ) {
        let group = self.current_group(thread);
        self.graph_create(thread, task, is_undeferred, group);
        let parent = self.current_task(thread);
        let level = match parent {
            // The level is only counted, so a replay need not look the creator up.
            Parent::Task(parent) if Self::COUNTS => self.tasks.get(&parent).map_or(0, |parent| parent.level),
            _ => 0,
        };
        let level = (level + 1).min(MAX_LEVEL);
        let created = Task {
            start: self.threads[thread].now,
            children: None,
            fulfilled: None,
            is_fulfilled_late: false,
            parent,
            team: self.threads[thread].memberships.last().map(|innermost| innermost.team),
            group,
            region,
            is_dependent: false,
            level,
            successors: Vec::new(),
        };
        self.tasks.insert(task, created);
        if self.is_inside && Self::COUNTS {
            let sums = self.sums.tasks.at(region);
            sums.created += 1;
            sums.levels.add(level);
        }
    }

    /// Counts the creation of a task. Between the two times, the thread had no other event.
    pub(in crate::states) fn count_creation(
        &mut self,
        thread: usize,
        (since, until): (Ns, Ns),
        has_dependences: bool,
    ) {
        if !(self.is_inside && Self::COUNTS) {
            return;
        }
        let follows = self.threads[thread].has_created_at.replace(until) == Some(since);
        let Some(outermost) = self.threads[thread].memberships.first() else {
            return;
        };
        let sums = self.sums.regions.at(self.teams[outermost.team].outermost);
        sums.tasks += 1;
        sums.tasks_with_dependences += u64::from(has_dependences);
        if follows {
            sums.creation_times.add(until.abs_diff(since));
        }
    }

    /// Records a stretch in which the thread created [`BURST`] tasks, as an instance of the places of the first and the
    /// last one. It weighs the more, the shorter it is.
    pub(in crate::states) fn extend_burst(&mut self, thread: usize, time: Ns, place: PlaceId) {
        let of_thread = &mut self.threads[thread];
        if !(self.is_inside && Self::COUNTS) || of_thread.memberships.is_empty() {
            return;
        }
        let burst = of_thread.burst.get_or_insert(Burst { first: place, begin: time, tasks: 0 });
        burst.tasks += 1;
        if burst.tasks < BURST {
            return;
        }
        let Burst { first, begin, .. } = *burst;
        of_thread.burst = None;
        let weight = f64::from(BURST) * 1e9 / time.abs_diff(begin).max(1) as f64;
        let instance = Instance { begin, end: time, location: of_thread.location, weight };
        self.sums.instances.at(Cause::Useful, place).add_alone(instance);
        if first != place {
            self.sums.instances.at(Cause::Useful, first).add_alone(instance);
        }
    }

    /// The task `to` cannot start before `from` is complete.
    pub(in crate::states) fn depend(&mut self, thread: usize, from: TaskId, to: TaskId) {
        self.graph_depend(thread, from, to);
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

    pub(in crate::states) fn begin_task(&mut self, thread: usize, time: Ns, task: Option<TaskId>) {
        let of_thread = &mut self.threads[thread];
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
                barrier.run();
            }
        }
    }

    pub(in crate::states) fn leave_task(&mut self, thread: usize, time: Ns, open: &Open) {
        let of_thread = &mut self.threads[thread];
        // If the task resumes on another thread, that part comes after this one.
        if let Some(task) = open.task.and_then(|task| self.tasks.get_mut(&task)) {
            task.start.raise(&of_thread.now);
        }
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
            arrivals.spread_tasks |= self.scenarios.tasks_balanced(open.region);
            let counted = (&of_thread.waited, &mut membership.added);
            arrivals.add(&of_thread.now, counted, &self.scenarios);
        }
    }

    /// A task is complete.
    pub(in crate::states) fn complete_task(&mut self, thread: usize, task: TaskId) {
        let end = self.threads[thread].now;
        let is_late = self.tasks.get(&task).is_some_and(|task| task.is_fulfilled_late);
        self.complete(task, end);
        if !is_late {
            self.graph_complete(thread, task);
        }
    }

    /// The event of a detached task is fulfilled. `is_late`: the task's code has already ended.
    pub(in crate::states) fn fulfil_task(&mut self, thread: usize, task: TaskId, is_late: bool) {
        let now = self.threads[thread].now;
        if let Some(task) = self.tasks.get_mut(&task) {
            task.fulfilled = Some(Box::new(now));
            task.is_fulfilled_late = is_late;
        }
        self.graph_fulfil(thread, task, is_late);
    }

    /// A task is complete. `end`: the chain end of the thread that completed it.
    pub(in crate::states) fn complete(&mut self, task: TaskId, mut end: ChainEnd<S>) {
        let Some(done) = self.tasks.remove(&task) else {
            return;
        };
        // A detached task may be complete later than its code.
        end.raise(&done.start);
        if let Some(fulfilled) = &done.fulfilled {
            end.raise(fulfilled);
        }
        for successor in &done.successors {
            if let Some(successor) = self.tasks.get_mut(successor) {
                successor.start.raise(&end);
            }
        }
        if let Some(group) = done.group.and_then(|group| self.groups.get_mut(&group)) {
            group.raise(&end);
        }
        if let Some(children) = self.children(done.parent) {
            children.raise(&end);
        }
    }

    /// The thread has waited for the child tasks of its current task.
    pub(in crate::states) fn take_children(&mut self, thread: usize, time: Ns, is_wait: bool) {
        self.graph_wait(thread);
        let task = self.current_task(thread);
        match self.children(task).copied() {
            Some(children) if is_wait => self.meet_tasks(thread, time, &children),
            Some(children) => {
                let now = &mut self.threads[thread].now;
                now.chain = now.chain.max(children.chain);
            }
            None => {}
        }
    }

    /// The thread has waited for tasks up to now. Time in which no thread of the team ran a task has no cause.
    pub(in crate::states) fn await_tasks(&mut self, thread: usize, time: Ns, place: PlaceId, ns: u64) {
        let is_serial = self.threads[thread].memberships.is_empty();
        if is_serial && !self.serial_helpers.is_empty() {
            return self.blame_helpers(thread, Cause::TaskWait, time - ns.cast_signed(), ns);
        }
        let of_thread = &mut self.threads[thread];
        let uncaused = match of_thread.memberships.last() {
            None => ns,
            Some(innermost) => {
                let team = &mut self.teams[innermost.team];
                team.until(time);
                let since = std::mem::replace(&mut of_thread.taskless, team.taskless);
                (team.taskless - since).min(ns)
            }
        };
        if uncaused > 0 && of_thread.is_selected {
            self.sums.uncaused_at.at(Cause::TaskWait, place).grow_by(uncaused);
            // No thread is to blame, so the moment is that of the thread that waits.
            let (location, weight) = (of_thread.location, uncaused as f64);
            let moment = Instance { begin: time - uncaused.cast_signed(), end: time, location, weight };
            self.sums.instances.at(Cause::TaskWait, place).add(moment);
        }
    }

    /// A task interrupted the wait that has just ended: the wait continues, and covers tasks that are not complete yet.
    #[cold]
    pub(in crate::states) fn go_on_waiting(&mut self, thread: usize) {
        let of_thread = &mut self.threads[thread];
        (of_thread.now, of_thread.waited) = of_thread.before_wait;
    }

    pub(in crate::states) fn begin_group(&mut self) -> GroupId {
        self.groups_begun += 1;
        self.groups.insert(self.groups_begun, ChainEnd::never());
        self.groups_begun
    }

    /// The innermost taskgroup to which a task belongs if the thread creates it now.
    fn current_group(&self, thread: usize) -> Option<GroupId> {
        for open in self.threads[thread].open.iter().rev() {
            match open.kind {
                Kind::TaskGroup => return open.group,
                Kind::Task => return self.tasks.get(&open.task?)?.group,
                Kind::Member => return self.teams[open.team?].group,
                _ => {}
            }
        }
        None
    }

    /// The thread has waited for the tasks of its innermost taskgroup.
    pub(in crate::states) fn take_group(&mut self, thread: usize, time: Ns) {
        let innermost = self.threads[thread].open.iter().rev().find(|open| open.kind == Kind::TaskGroup);
        match innermost.and_then(|open| open.group) {
            Some(group) => self.meet_group(thread, time, group),
            // The runtime reports only the wait.
            None => self.take_children(thread, time, true),
        }
    }

    fn meet_group(&mut self, thread: usize, time: Ns, group: GroupId) {
        self.graph_wait_for_group(thread, group);
        if let Some(tasks) = self.groups.get(&group).copied() {
            self.meet_tasks(thread, time, &tasks);
        }
    }

    /// The thread has waited for the dependences of the empty task `task`.
    pub(in crate::states) fn take_dependences(&mut self, thread: usize, time: Ns, task: Option<TaskId>) {
        if let Some(task) = task.and_then(|task| self.tasks.get(&task)) {
            let dependences = task.start;
            self.meet_tasks(thread, time, &dependences);
        }
    }

    /// The thread has waited for these tasks.
    fn meet_tasks(&mut self, thread: usize, time: Ns, tasks: &ChainEnd<S>) {
        let ThreadState { now, waited, .. } = &mut self.threads[thread];
        now.chain = now.chain.max(tasks.chain);
        now.stamp.meet(time, &tasks.stamp, 0, waited);
    }

    pub(in crate::states) fn end_group(&mut self, thread: usize, time: Ns, group: Option<GroupId>) {
        let Some(group) = group else { return };
        self.meet_group(thread, time, group);
        self.groups.remove(&group);
    }
}
