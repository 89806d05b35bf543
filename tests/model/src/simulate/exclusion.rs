//! Critical regions, locks, and turns of ordered and doacross loops.

use super::{Frame, Simulator, Wait};
use crate::callback::{Callback, Id, Scope};
use crate::program::{Code, MutexKind, Ns, Statement};
use crate::run::{Activity, Edge, Hold, PieceId};

/// The id of a mutex in the trace.
pub(crate) fn mutex_id(kind: MutexKind, number: u64) -> Id {
    let base = match kind {
        MutexKind::Critical => 0x8000,
        MutexKind::Lock => 0x9000,
        MutexKind::NestLock => 0xa000,
        MutexKind::Ordered => 0x90_0000,
    };
    base + number
}

impl<'p> Simulator<'p> {
    pub(super) fn ask_mutex(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        (kind, number): (MutexKind, u64),
        (body, code): (&'p [Statement], Code),
    ) {
        let mutex = mutex_id(kind, number);
        self.emit(time, thread, Callback::MutexAcquire { kind, mutex, code });
        let state = self.mutexes.entry((kind, number)).or_default();
        if kind == MutexKind::NestLock && state.holder == Some(task) {
            state.depth += 1;
            self.emit(time, thread, Callback::NestLock { scope: Scope::Begin, mutex, code });
            self.tasks[task].frames.push(Frame::Release { kind, number, code, is_nested: true });
            self.tasks[task].frames.push(Frame::Block { body, next: 0 });
            return;
        }
        state.queue.push_back(thread);
        self.bodies.push(body);
        let body = self.bodies.len() - 1;
        self.tasks[task].wait = Some(Wait::Mutex { kind, number, body, code });
    }

    /// `None`: another thread has it, or comes first.
    pub(super) fn take_mutex(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        (kind, number): (MutexKind, u64),
        (body, code): (usize, Code),
    ) -> Option<bool> {
        let mutex = self.mutexes.get_mut(&(kind, number))?;
        if mutex.holder.is_some() || mutex.queue.front() != Some(&thread) {
            return None;
        }
        mutex.queue.pop_front();
        (mutex.holder, mutex.since) = (Some(task), time);
        let releases = mutex.releases.clone();
        let edge = self.mutex_edge(thread);
        self.tasks[task].wait = None;
        self.emit(time, thread, Callback::MutexAcquired { kind, mutex: mutex_id(kind, number), code });
        if !releases.is_empty() {
            self.meet(time, thread, &releases, edge);
        }
        self.tasks[task].frames.push(Frame::Release { kind, number, code, is_nested: false });
        self.tasks[task].frames.push(Frame::Block { body: self.bodies[body], next: 0 });
        self.does(thread, time, Activity::Useful);
        Some(true)
    }

    /// By what kind of edge a thread that gets a mutex now comes after those that had it.
    fn mutex_edge(&self, thread: usize) -> Edge {
        let doing = self.threads[thread].doing;
        let waited = doing.is_some_and(|(_, doing)| matches!(doing.activity, Activity::Mutex(..)));
        if waited { Edge::Mutex } else { Edge::FreeMutex }
    }

    pub(super) fn release_mutex(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        (kind, number): (MutexKind, u64),
        (code, is_nested): (Code, bool),
    ) {
        let id = mutex_id(kind, number);
        self.tasks[task].frames.pop();
        if is_nested {
            self.emit(time, thread, Callback::NestLock { scope: Scope::End, mutex: id, code: code + 6 });
            return;
        }
        self.emit(time, thread, Callback::MutexReleased { kind, mutex: id, code: code + 6 });
        let piece = self.meet(time, thread, &[], Edge::Thread);
        self.run.pieces[piece].releases = Some(code);
        let Some(mutex) = self.mutexes.get_mut(&(kind, number)) else {
            return;
        };
        mutex.holder = None;
        mutex.releases.push(piece);
        self.run.holds.push(Hold { begin: mutex.since, end: time, thread, kind, number, place: code });
        if let Some(&next) = mutex.queue.front() {
            self.wake(time, next);
        }
        self.does(thread, time, Activity::Useful);
    }

    pub(super) fn take_turn(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        (the_loop, iteration): (usize, usize),
        (inside, code, strand): (Ns, Code, PieceId),
    ) -> Option<bool> {
        let team = self.tasks[task].team;
        if *self.teams[team].turns.entry(the_loop).or_default() != iteration {
            return None;
        }
        let edge = self.mutex_edge(thread);
        self.tasks[task].wait = None;
        let (kind, mutex) = (MutexKind::Ordered, mutex_id(MutexKind::Ordered, team as u64));
        self.emit(time, thread, Callback::MutexAcquired { kind, mutex, code: code + 5 });
        let state = self.mutexes.entry((kind, team as u64)).or_default();
        state.since = time;
        if let Some(last) = state.releases.last().copied() {
            self.meet(time, thread, &[last], edge);
        }
        self.tasks[task].frames.push(Frame::EndTurn { the_loop, iteration, code, strand: Some(strand) });
        self.spend(time, thread, inside, Activity::Useful);
        Some(false)
    }

    pub(super) fn end_turn(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        (the_loop, iteration): (usize, usize),
        (code, strand): (Code, Option<PieceId>),
    ) {
        let team = self.tasks[task].team;
        self.tasks[task].frames.pop();
        let Some(strand) = strand else {
            let id = self.tasks[task].id;
            self.emit(time, thread, Callback::Doacross { task: id, is_source: true, iteration });
            *self.teams[team].turns.entry(the_loop).or_default() += 1;
            self.wake_team(time, team);
            return;
        };
        let (kind, mutex) = (MutexKind::Ordered, mutex_id(MutexKind::Ordered, team as u64));
        self.emit(time, thread, Callback::MutexReleased { kind, mutex, code: code + 6 });
        let piece = self.meet(time, thread, &[], Edge::Thread);
        self.run.pieces[piece].releases = Some(code + 5);
        let state = self.mutexes.entry((kind, team as u64)).or_default();
        state.releases.push(piece);
        let (begin, place) = (state.since, code + 5);
        self.run.holds.push(Hold { begin, end: time, thread, kind, number: team as u64, place });
        self.end_strand(task, strand);
        *self.teams[team].turns.entry(the_loop).or_default() += 1;
        self.wake_team(time, team);
    }

    /// `depend(sink: i-1)`: the wait is part of the program's own code, as runtimes report only its end.
    pub(super) fn pass_sink(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        (the_loop, iteration): (usize, usize),
        (inside, code, since): (Ns, Code, Ns),
    ) -> Option<bool> {
        let team = self.tasks[task].team;
        if *self.teams[team].turns.entry(the_loop).or_default() != iteration {
            return None;
        }
        self.tasks[task].wait = None;
        if since < time {
            let piece = self.meet(since, thread, &[], Edge::Thread);
            let (region, place) = (self.run.outermost(team), self.place(task));
            let piece = &mut self.run.pieces[piece];
            (piece.end, piece.region, piece.place, piece.work) = (time, region, place, time - since);
        }
        if iteration > 0 {
            let id = self.tasks[task].id;
            self.emit(
                time,
                thread,
                Callback::Doacross { task: id, is_source: false, iteration: iteration - 1 },
            );
        }
        self.tasks[task].frames.push(Frame::EndTurn { the_loop, iteration, code, strand: None });
        self.spend(time, thread, inside, Activity::Useful);
        Some(false)
    }
}
