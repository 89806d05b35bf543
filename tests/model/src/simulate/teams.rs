//! Forks, barriers and joins.

use super::{Frame, Simulator, Task, Team, Thread, Wait};
use crate::callback::{Callback, Scope, Sync};
use crate::program::{Code, Ns, Statement};
use crate::run::{Activity, Barrier, Edge, PieceId, TeamRecord};

impl<'p> Simulator<'p> {
    /// True where the thread's turn goes on.
    pub(super) fn fork(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        asked: usize,
        body: &'p [Statement],
        code: Code,
    ) -> bool {
        let is_free = |other: &Thread| {
            let is_idle = other.doing.is_some_and(|(_, doing)| doing.activity == Activity::Idle);
            is_idle && other.tasks.is_empty() && other.joins.is_none()
        };
        let free = (0..self.threads.len()).filter(|other| *other != thread && is_free(&self.threads[*other]));
        let mut members = vec![thread];
        members.extend(free.take(asked.saturating_sub(1)));
        let id = self.id();
        let encountering = self.tasks[task].id;
        self.emit(time, thread, Callback::ParallelBegin { parallel: id, task: encountering, asked, code });
        let team = self.teams.len();
        self.teams.push(Team {
            id,
            body,
            master: thread,
            encountering: task,
            fork: self.threads[thread].current,
            ..Team::default()
        });
        self.run.teams.push(TeamRecord {
            place: code,
            outer: Some(self.tasks[task].team),
            members: members.clone(),
            asked,
            begin: time,
            fork: self.threads[thread].current,
            ..TeamRecord::default()
        });
        self.tasks[task].wait = Some(Wait::Region);
        for (index, member) in members.iter().copied().enumerate().skip(1) {
            self.threads[member].joins = Some((team, index));
            self.threads[member].generation += 1;
            self.does(member, time, Activity::Fork);
            let wake_up = self.wake_up_time();
            self.schedule(time + wake_up, member);
        }
        self.does(thread, time, Activity::Fork);
        let begin = time + self.random.below(self.machine.max_wake_up);
        if begin > time {
            self.threads[thread].joins = Some((team, 0));
            self.schedule(begin, thread);
            return false;
        }
        self.begin_member(time, thread, team, 0);
        true
    }

    pub(super) fn begin_member(&mut self, time: Ns, thread: usize, team: usize, index: usize) {
        self.report_end(time, thread);
        let id = self.id();
        let fork = self.teams[team].fork;
        let (size, parallel) = (self.run.teams[team].members.len(), Some(self.teams[team].id));
        self.emit(
            time,
            thread,
            Callback::ImplicitTask { scope: Scope::Begin, parallel, task: id, size, index },
        );
        let task = self.tasks.len();
        // A region inside that has one thread comes in the order of the task around it.
        let is_alone = self.is_alone_inside(team);
        let current = if is_alone { self.tasks[self.teams[team].encountering].current } else { fork };
        self.tasks.push(Task {
            id,
            code: self.run.teams[team].place,
            is_implicit: true,
            team,
            index,
            current,
            frames: vec![Frame::Block { body: self.teams[team].body, next: 0 }],
            ..Task::default()
        });
        self.threads[thread].tasks.push(task);
        let forks = [fork];
        let others = if is_alone { &forks[..0] } else { &forks[..] };
        let piece = self.meet(time, thread, others, Edge::Meeting);
        self.run.pieces[piece].is_overhead = true;
        self.does(thread, time, Activity::Useful);
    }

    /// Reports the end of a region that the thread has left long since.
    fn report_end(&mut self, time: Ns, thread: usize) {
        if let Some((task, index)) = self.threads[thread].unreported.take() {
            self.leave_region(time, thread, task, 0, index, 0);
        }
    }

    fn leave_region(&mut self, time: Ns, thread: usize, task: u64, size: usize, index: usize, code: Code) {
        let of = crate::callback::Context { parallel: None, task };
        let (kind, scope) = (Sync::ParallelBarrier, Scope::End);
        self.emit_sync(time, thread, scope, (kind, code), of);
        self.emit(time, thread, Callback::ImplicitTask { scope, parallel: None, task, size, index });
    }

    pub(super) fn arrive(&mut self, time: Ns, thread: usize, task: usize, kind: Sync, code: Code) {
        let (team, of) = (self.tasks[task].team, self.context(task));
        let number = self.tasks[task].barriers;
        self.tasks[task].barriers += 1;
        self.emit_sync(time, thread, Scope::Begin, (kind, code), of);
        let arrivals = [(self.threads[thread].current, Edge::Thread), (self.tasks[task].current, Edge::Task)];
        let record = &mut self.run.teams[team];
        if record.barriers.len() <= number {
            record.barriers.resize(number + 1, Barrier::default());
        }
        let size = record.members.len();
        let barrier = &mut record.barriers[number];
        barrier.arrived += 1;
        barrier.is_last = kind == Sync::ParallelBarrier;
        barrier.arrivals.extend(arrivals);
        if barrier.arrived == size {
            barrier.all_arrived = Some(time);
        }
        self.tasks[task].wait = Some(Wait::Barrier { number, kind, code });
        self.release_barrier(time, thread, team);
    }

    /// The team's last barrier is over where all have arrived and no task is left.
    pub(super) fn release_barrier(&mut self, time: Ns, thread: usize, team: usize) {
        let outstanding = self.teams[team].outstanding;
        let Some(barrier) = self.run.teams[team].barriers.last() else {
            return;
        };
        if barrier.all_arrived.is_none() || barrier.release.is_some() || outstanding > 0 {
            return;
        }
        let mut before = barrier.arrivals.clone();
        let ends = std::mem::take(&mut self.teams[team].task_ends);
        before.extend(ends.into_iter().map(|end| (end, Edge::Meeting)));
        let piece = self.piece(time, thread, before);
        if let Some(barrier) = self.run.teams[team].barriers.last_mut() {
            (barrier.release, barrier.released) = (Some(piece), Some(time));
        }
        self.wake_team(time, team);
    }

    /// `None`: the barrier is not over. Else whether the thread's turn goes on.
    pub(super) fn end_barrier(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        (number, kind, code): (usize, Sync, Code),
    ) -> Option<bool> {
        let team = self.tasks[task].team;
        let release = self.run.teams[team].barriers[number].release?;
        let (is_master, size) = (thread == self.teams[team].master, self.run.teams[team].members.len());
        let is_last = kind == Sync::ParallelBarrier;
        if is_last && is_master && self.teams[team].workers_gone + 1 < size {
            return None;
        }
        self.tasks[task].wait = None;
        if !is_last {
            let (of, scope) = (self.context(task), Scope::End);
            self.emit_sync(time, thread, scope, (kind, code), of);
            self.leave_barrier(time, thread, release);
            self.does(thread, time, Activity::Useful);
            return Some(true);
        }
        let (id, index) = (self.tasks[task].id, self.tasks[task].index);
        if is_master {
            self.leave_region(time, thread, id, size, index, code);
        } else if self.machine.reports_ends_late {
            self.threads[thread].unreported = Some((id, index));
        } else {
            self.leave_region(time, thread, id, 0, index, 0);
        }
        self.leave_barrier(time, thread, release);
        self.threads[thread].tasks.pop();
        if is_master {
            self.join(time, thread, team);
            return Some(true);
        }
        self.does(thread, time, Activity::Join);
        self.teams[team].workers_gone += 1;
        let master = self.teams[team].master;
        self.wake(time, master);
        Some(false)
    }

    fn leave_barrier(&mut self, time: Ns, thread: usize, release: PieceId) {
        let piece = self.meet(time, thread, &[release], Edge::Meeting);
        self.run.pieces[piece].is_overhead = true;
    }

    /// The region ends; its encountering task goes on.
    fn join(&mut self, time: Ns, thread: usize, team: usize) {
        let around = self.teams[team].encountering;
        self.tasks[around].wait = None;
        self.tasks[around].current = self.threads[thread].current;
        let (parallel, task) = (self.teams[team].id, self.tasks[around].id);
        let code = self.run.teams[team].place;
        self.emit(time, thread, Callback::ParallelEnd { parallel, task, code });
        self.run.teams[team].end = time;
        for member in self.run.teams[team].members.clone() {
            let activity = if member == thread { Activity::Useful } else { Activity::Idle };
            self.does(member, time, activity);
        }
    }

    pub(super) fn end_process(&mut self, time: Ns) {
        for thread in 1..self.machine.threads.max(1) {
            self.report_end(time, thread);
            self.emit(time, thread, Callback::ThreadEnd);
        }
        self.emit(time, 0, Callback::InitialTask(Scope::End));
        self.emit(time, 0, Callback::ThreadEnd);
        (self.run.end, self.run.last) = (time, self.threads[0].current);
        for thread in &mut self.threads {
            if let Some((begin, doing)) = thread.doing.take()
                && begin < time
            {
                thread.spans.push(crate::run::Span { begin, end: time, doing });
            }
        }
    }
}
