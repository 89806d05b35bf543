//! Explicit tasks: creation, dependences, who runs which, completion.

use super::{Event, Frame, Simulator, Task, Wait};
use crate::callback::{Callback, Status, TaskFlags};
use crate::program::{self, Access, Code, Dependences, Ns, Statement};
use crate::run::{Activity, Edge, PieceId};

impl<'p> Simulator<'p> {
    /// Creates a task with this body.
    pub(super) fn create(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        (clauses, body): (&program::Task, &'p [Statement]),
        code: Code,
    ) {
        let (id, team) = (self.id(), self.tasks[task].team);
        let is_included = clauses.undeferred || self.tasks[task].is_final;
        let depend: &[(Access, u64)] = if is_included { &[] } else { &clauses.depend };
        let is_target = self.machine.helpers > 0 && !is_included && program::is_target(body);
        let flags = TaskFlags {
            undeferred: is_included,
            untied: clauses.untied || is_target,
            is_final: clauses.is_final || self.tasks[task].is_final,
            mergeable: clauses.mergeable,
            is_taskwait: false,
            is_target,
        };
        let creator = self.tasks[task].id;
        let has_dependences = !depend.is_empty();
        self.emit(
            time,
            thread,
            Callback::TaskCreate { task: creator, new: id, flags, has_dependences, code },
        );
        let new = self.tasks.len();
        let before =
            vec![(self.tasks[task].current, Edge::Task), (self.threads[thread].current, Edge::Thread)];
        let start = self.piece(time, thread, before);
        let group = self.tasks[task].open_groups.last().copied().or(self.tasks[task].group);
        let event = clauses.detach.filter(|_| !is_included);
        self.tasks.push(Task {
            id,
            code,
            frames: vec![Frame::Block { body, next: 0 }],
            parent: Some(task),
            iteration: self.next_iteration.take(),
            group,
            start,
            team,
            index: self.tasks[task].index,
            is_untied: clauses.untied,
            is_target,
            is_undeferred: is_included,
            is_final: flags.is_final,
            event,
            ..Task::default()
        });
        self.tasks[task].children += 1;
        self.teams[team].outstanding += 1;
        self.run.teams[team].tasks += u64::from(!is_included);
        if let Some(group) = group {
            self.groups[group].left += 1;
        }
        if let Some(event) = event {
            self.events.insert(event, Event { task: Some(new), is_fulfilled: false });
        }
        if has_dependences {
            self.depend(time, thread, task, new, &depend.to_vec());
        }
        if is_included {
            self.begin_task(time, thread, new, Status::Switch);
        } else if self.tasks[new].predecessors == 0 {
            self.make_ready(time, new);
            self.wake_team(time, team);
        }
    }

    /// Task `new` of `task` waits for those that accessed its variables before.
    pub(super) fn depend(&mut self, time: Ns, thread: usize, task: usize, new: usize, depend: &Dependences) {
        let id = self.tasks[new].id;
        // Compilers give both to the runtime alike.
        let alike = |access| if access == Access::Out { Access::Inout } else { access };
        let list = depend.iter().map(|(access, variable)| (alike(*access), *variable)).collect();
        self.emit(time, thread, Callback::Dependences { task: id, list });
        let mut before = Vec::new();
        for (access, variable) in depend {
            let accesses = self.tasks[task].accesses.entry(*variable).or_default();
            if !(access.is_shared() && *access == accesses.access && !accesses.last.is_empty()) {
                accesses.before = std::mem::take(&mut accesses.last);
                accesses.access = *access;
            }
            accesses.last.push(new);
            before.extend(accesses.before.iter().copied());
            if *access == Access::Mutexinoutset {
                self.tasks[new].exclusive.push((task, *variable));
            }
        }
        before.sort_unstable();
        before.dedup();
        before.retain(|other| *other != new);
        for other in before {
            if self.tasks[other].is_done {
                let end = self.tasks[other].end;
                self.tasks[new].earlier_ends.push(end);
                continue;
            }
            self.tasks[other].successors.push(new);
            self.tasks[new].predecessors += 1;
            let (before, after) = (self.tasks[other].id, id);
            self.emit(time, thread, Callback::TaskDependence { before, after });
        }
    }

    /// `taskwait depend(...)`: an empty undeferred task with these dependences.
    pub(super) fn wait_for(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        depend: &Dependences,
        code: Code,
    ) {
        let flags =
            TaskFlags { undeferred: true, is_taskwait: true, mergeable: true, ..TaskFlags::default() };
        let creator = self.tasks[task].id;
        self.emit(
            time,
            thread,
            Callback::TaskCreate { task: creator, new: 0, flags, has_dependences: true, code },
        );
        let new = self.tasks.len();
        let start = self.tasks[task].current;
        let (team, index) = (self.tasks[task].team, self.tasks[task].index);
        self.tasks.push(Task { code, start, team, index, is_undeferred: true, ..Task::default() });
        self.depend(time, thread, task, new, depend);
        self.tasks[task].wait = Some(Wait::Predecessors { task: new, code });
    }

    pub(super) fn end_wait_for(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        empty: usize,
    ) -> Option<bool> {
        if self.tasks[empty].predecessors > 0 {
            return None;
        }
        self.tasks[task].wait = None;
        self.emit(
            time,
            thread,
            Callback::TaskSchedule { prior: 0, status: Status::TaskwaitComplete, next: None },
        );
        self.tasks[empty].is_done = true;
        let ends = std::mem::take(&mut self.tasks[empty].predecessor_ends);
        let piece = self.meet(time, thread, &ends, Edge::Meeting);
        let earlier = std::mem::take(&mut self.tasks[empty].earlier_ends);
        self.run.pieces[piece].before.extend(earlier.into_iter().map(|end| (end, Edge::Task)));
        self.tasks[empty].end = piece;
        for next in std::mem::take(&mut self.tasks[empty].successors) {
            self.satisfy(time, next, piece);
        }
        self.does(thread, time, Activity::Useful);
        Some(true)
    }

    /// One predecessor of `task` is done.
    fn satisfy(&mut self, time: Ns, task: usize, end: PieceId) {
        let team = self.tasks[task].team;
        self.tasks[task].predecessors -= 1;
        self.tasks[task].predecessor_ends.push(end);
        if self.tasks[task].predecessors == 0 && self.tasks[task].id != 0 {
            self.make_ready(time, task);
        }
        self.wake_team(time, team);
    }

    /// A ready task that a thread may run while its task `waiting` waits. By the task scheduling constraint, a tied one must descend
    /// from every suspended tied task of the thread. The innermost of these descends from the others.
    pub(super) fn pick(&mut self, thread: usize, waiting: usize) -> Option<usize> {
        let team = self.tasks[waiting].team;
        let suspended = self.threads[thread].tasks.iter().rev().map(|task| &self.tasks[*task]);
        let tied = suspended.zip(self.threads[thread].tasks.iter().rev());
        let tied = tied
            .filter(|(task, _)| !task.is_implicit && !task.is_untied && task.team == team)
            .map(|(_, task)| *task)
            .next();
        let is_allowed = |new: usize| {
            // One that goes on has its variables already.
            let is_new = !self.tasks[new].has_begun;
            if is_new && self.tasks[new].exclusive.iter().any(|variable| self.in_use.contains(variable)) {
                return false;
            }
            let Some(tied) = tied else { return true };
            let ancestors = std::iter::successors(self.tasks[new].parent, |task| self.tasks[*task].parent);
            self.tasks[new].is_untied || ancestors.into_iter().any(|task| task == tied)
        };
        let ready = &self.teams[team].ready;
        let allowed: Vec<usize> = (0..ready.len()).filter(|index| is_allowed(ready[*index])).collect();
        let choice = match allowed.len() {
            0 => return None,
            _ if self.machine.is_first_come => 0,
            count => self.random.below(count as u64) as usize,
        };
        Some(self.teams[team].ready.remove(allowed[choice]))
    }

    pub(super) fn begin_task(&mut self, time: Ns, thread: usize, new: usize, status: Status) {
        let below = self.threads[thread].tasks.last().copied().unwrap_or(0);
        let team = self.tasks[new].team;
        let group = self.tasks[new].group;
        let can_be = !self.tasks[new].has_begun && !self.tasks[new].is_undeferred;
        let is_discarded = can_be && group.is_some_and(|group| self.groups[group].is_cancelled);
        let (prior, next) = (self.tasks[below].id, Some(self.tasks[new].id));
        if !is_discarded {
            self.emit(time, thread, Callback::TaskSchedule { prior, status, next });
        }
        let mut after = vec![self.tasks[new].start];
        if let Some(iteration) =
            self.tasks[new].iteration.filter(|_| !is_discarded && !self.tasks[new].has_begun)
        {
            let of = self.context(new);
            self.emit(time, thread, Callback::TaskloopChunk { of, iteration });
        }
        if !self.tasks[new].has_begun {
            self.tasks[new].has_begun = true;
            self.tasks[new].current = self.tasks[new].start;
            after.extend(self.tasks[new].predecessor_ends.clone());
            let exclusive = self.tasks[new].exclusive.clone();
            self.in_use.extend(exclusive);
        }
        if self.tasks[below].is_implicit && !is_discarded {
            self.run.teams[team].running.push((time, 1));
        }
        self.threads[thread].tasks.push(new);
        let piece = self.meet(time, thread, &after, Edge::Meeting);
        let left = self.tasks[new].left.take();
        self.run.pieces[piece].before.extend(left.map(|left| (left, Edge::Thread)));
        let earlier = std::mem::take(&mut self.tasks[new].earlier_ends);
        self.run.pieces[piece].before.extend(earlier.into_iter().map(|end| (end, Edge::Task)));
        if is_discarded {
            self.tasks[new].frames.clear();
            self.end_discarded(time, thread, new);
            return;
        }
        self.does(thread, time, Activity::Useful);
    }

    /// A task of a cancelled group ends before it begins.
    fn end_discarded(&mut self, time: Ns, thread: usize, task: usize) {
        self.threads[thread].tasks.pop();
        let below = self.threads[thread].tasks.last().copied().unwrap_or(0);
        let (prior, next) = (self.tasks[task].id, Some(self.tasks[below].id));
        self.emit(time, thread, Callback::TaskSchedule { prior, status: Status::Cancel, next });
        let before =
            vec![(self.tasks[task].current, Edge::Task), (self.threads[thread].current, Edge::Thread)];
        let piece = self.piece(time, thread, before);
        self.complete(time, task, piece);
        self.release_barrier(time, thread, self.tasks[task].team);
    }

    pub(super) fn end_task(&mut self, time: Ns, thread: usize, task: usize) {
        self.threads[thread].tasks.pop();
        let below = self.threads[thread].tasks.last().copied().unwrap_or(0);
        let event = self.tasks[task].event;
        let is_fulfilled = event.is_none_or(|event| self.events[&event].is_fulfilled);
        let is_cancelled = self.tasks[task].group.is_some_and(|group| self.groups[group].is_cancelled);
        let status = match (is_fulfilled, is_cancelled) {
            (false, _) => Status::Detach,
            (true, true) => Status::Cancel,
            (true, false) => Status::Complete,
        };
        let (prior, next, team) = (self.tasks[task].id, Some(self.tasks[below].id), self.tasks[task].team);
        self.emit(time, thread, Callback::TaskSchedule { prior, status, next });
        self.returns_from(thread, time, task, below);
        let (current, of_thread) = (self.tasks[task].current, self.threads[thread].current);
        if self.tasks[task].is_undeferred {
            // Its creator goes on behind it.
            let piece = self.piece(time, thread, vec![(current, Edge::Meeting), (of_thread, Edge::Thread)]);
            self.tasks[below].current = piece;
            self.threads[thread].current = piece;
        }
        self.does_below(thread, time);
        if !is_fulfilled {
            self.tasks[task].is_detached = true;
            return;
        }
        let mut before = vec![(current, Edge::Task), (of_thread, Edge::Thread)];
        before.extend(self.tasks[task].fulfilled_by.iter().map(|piece| (*piece, Edge::Meeting)));
        let piece = self.piece(time, thread, before);
        self.complete(time, task, piece);
        self.release_barrier(time, thread, team);
    }

    /// The thread has left `task`, for now or for good, and is in the task `below` again.
    fn returns_from(&mut self, thread: usize, time: Ns, task: usize, below: usize) {
        let team = &mut self.run.teams[self.tasks[task].team];
        if self.tasks[below].is_implicit {
            team.running.push((time, -1));
        }
        // Also below a task that waits for this one.
        let stack = self.threads[thread].tasks.iter().rev();
        let implicit = stack.map(|task| &self.tasks[*task]).find(|task| task.is_implicit);
        if let Some(Some(Wait::Barrier { number, .. })) = implicit.map(|task| &task.wait) {
            team.barriers[*number].tasks.insert(self.tasks[task].code);
        }
    }

    /// What the thread does in the task that it returns to, if that does not wait.
    fn does_below(&mut self, thread: usize, time: Ns) {
        let below = self.threads[thread].tasks.last().copied().unwrap_or(0);
        if self.tasks[below].wait.is_none() {
            self.does(thread, time, Activity::Useful);
        }
    }

    fn complete(&mut self, time: Ns, task: usize, end: PieceId) {
        let team = self.tasks[task].team;
        self.tasks[task].is_done = true;
        self.tasks[task].end = end;
        self.teams[team].outstanding -= 1;
        self.teams[team].task_ends.push(end);
        if let Some(parent) = self.tasks[task].parent {
            self.tasks[parent].children -= 1;
            self.tasks[parent].children_ends.push(end);
        }
        if let Some(group) = self.tasks[task].group {
            self.groups[group].left -= 1;
            self.groups[group].ends.push(end);
        }
        let exclusive = self.tasks[task].exclusive.clone();
        self.in_use.retain(|variable| !exclusive.contains(variable));
        for next in self.tasks[task].successors.clone() {
            self.satisfy(time, next, end);
        }
        let thread = self.run.pieces[end].thread;
        self.release_barrier(time, thread, team);
        self.wake_team(time, team);
    }

    pub(super) fn fulfil(&mut self, time: Ns, thread: usize, task: usize, event: u32) {
        let state = self.events.entry(event).or_default();
        state.is_fulfilled = true;
        let Some(of) = state.task else { return };
        let is_late = self.tasks[of].is_detached;
        let status = if is_late { Status::LateFulfill } else { Status::EarlyFulfill };
        let prior = self.tasks[of].id;
        self.emit(time, thread, Callback::TaskSchedule { prior, status, next: None });
        let current = self.tasks[task].current;
        if is_late {
            let before = vec![
                (self.threads[thread].current, Edge::Thread),
                (current, Edge::Task),
                (self.tasks[of].current, Edge::Meeting),
            ];
            let piece = self.piece(time, thread, before);
            self.complete(time, of, piece);
        } else {
            self.tasks[of].fulfilled_by.push(current);
        }
    }

    /// An untied task gives its thread away; any thread may go on with it.
    pub(super) fn suspend(&mut self, time: Ns, thread: usize, task: usize) {
        let tasks = &self.threads[thread].tasks;
        let is_free = self.tasks[task].is_untied && !self.tasks[task].is_undeferred;
        let Some(&below) = tasks.len().checked_sub(2).and_then(|index| tasks.get(index)) else {
            return;
        };
        if !is_free || self.tasks[below].wait.is_none() {
            return;
        }
        let (prior, next, team) = (self.tasks[task].id, Some(self.tasks[below].id), self.tasks[task].team);
        self.emit(time, thread, Callback::TaskSchedule { prior, status: Status::Switch, next });
        self.tasks[task].start = self.tasks[task].current;
        self.tasks[task].left = Some(self.threads[thread].current);
        self.threads[thread].tasks.pop();
        self.returns_from(thread, time, task, below);
        self.teams[team].ready.push(task);
        self.wake_team(time, team);
        if self.random.chance(50) {
            self.threads[thread].rests_until = Some(time + 60 + self.machine.max_wake_up);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::program::{Access, Kind, Program, Statement, Task};
    use crate::simulate::{Machine, simulate};

    #[test]
    fn an_untied_task_goes_on_with_its_exclusive_variables() {
        let statement = |code, kind| Statement { code, kind };
        let body = vec![
            statement(0x1020, Kind::Work(vec![1000])),
            statement(0x1030, Kind::SchedulingPoint),
            statement(0x1040, Kind::Work(vec![2000])),
        ];
        let depend = vec![(Access::Mutexinoutset, 0)];
        let task = Kind::Task(Task { untied: true, depend, body, ..Task::default() });
        let region = Kind::Parallel { threads: 1, body: vec![statement(0x1010, task)] };
        let machine = Machine {
            seed: 1,
            threads: 1,
            max_wake_up: 0,
            is_first_come: true,
            reports_ends_late: true,
            shares_sections: false,
            helpers: 0,
            has_outsider: false,
        };
        let run = simulate(&Program { body: vec![statement(0x1000, region)] }, &machine);
        assert!(run.is_some_and(|run| run.end >= 3000), "it waits for itself");
    }
}
