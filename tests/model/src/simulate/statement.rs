//! What each statement does, and how its parts go on.

use std::collections::VecDeque;

use super::exclusion::mutex_id;
use super::{Frame, Group, LoopFrame, Simulator, Wait};
use crate::callback::{Callback, Scope, Sync, Work};
use crate::program::{self, Code, Kind, Ns, Schedule, Statement};
use crate::run::{Activity, Edge, PieceId};

/// The block of iterations of a member: first, count.
fn block(len: usize, index: usize, members: usize) -> (usize, usize) {
    let (each, rest) = (len / members, len % members);
    (index * each + index.min(rest), each + usize::from(index < rest))
}

fn chunks(len: usize, chunk: usize) -> VecDeque<(usize, usize)> {
    let chunk = chunk.max(1);
    (0..len).step_by(chunk).map(|start| (start, chunk.min(len - start))).collect()
}

fn guided(len: usize, members: usize) -> VecDeque<(usize, usize)> {
    let (mut chunks, mut start) = (VecDeque::new(), 0);
    while start < len {
        let chunk = ((len - start) / (2 * members)).max(1);
        chunks.push_back((start, chunk));
        start += chunk;
    }
    chunks
}

fn of_member(times: &[Ns], index: usize) -> Ns {
    times.get(index).or(times.last()).copied().unwrap_or(0)
}

impl<'p> Simulator<'p> {
    fn worksharing(&mut self, task: usize) -> usize {
        self.tasks[task].worksharings += 1;
        self.tasks[task].worksharings - 1
    }

    /// Where a single or masked region begins in the order of tasks: whoever is idle could take it, from the barrier before on.
    fn strand(&mut self, task: usize) -> PieceId {
        let team = self.tasks[task].team;
        if self.is_alone_inside(team) {
            return self.tasks[task].current;
        }
        let barriers = self.run.teams[team].barriers.iter().rev();
        let since = barriers.into_iter().find_map(|barrier| barrier.release);
        let since = since.unwrap_or(self.teams[team].fork);
        std::mem::replace(&mut self.tasks[task].current, since)
    }

    pub(super) fn end_strand(&mut self, task: usize, before: PieceId) {
        let team = self.tasks[task].team;
        if self.is_alone_inside(team) {
            return;
        }
        let end = std::mem::replace(&mut self.tasks[task].current, before);
        self.teams[team].task_ends.push(end);
    }

    /// A region inside that has one thread is work of that thread: nobody else could take what is in it.
    pub(super) fn is_alone_inside(&self, team: usize) -> bool {
        let record = &self.run.teams[team];
        record.members.len() == 1 && record.outer.is_some_and(|outer| outer > 0)
    }

    /// True where the thread's turn goes on.
    pub(super) fn statement(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        statement: &'p Statement,
    ) -> bool {
        let (team, index, code, of) =
            (self.tasks[task].team, self.tasks[task].index, statement.code, self.context(task));
        let members = self.run.teams[team].members.len();
        match &statement.kind {
            Kind::Work(times) => {
                self.spend(time, thread, of_member(times, index), Activity::Useful);
                return false;
            }
            Kind::Parallel { threads, body } => {
                return self.fork(time, thread, task, *threads, body, code);
            }
            Kind::For { schedule, iterations, nowait, reduction } => {
                let number = self.worksharing(task);
                let len = iterations.len();
                let mut own = VecDeque::new();
                let mut shared = None;
                let kind = match schedule {
                    Schedule::Static => {
                        own.extend(Some(block(len, index, members)).filter(|(_, count)| *count > 0));
                        Work::LoopStatic
                    }
                    Schedule::StaticChunks(chunk) => {
                        own.extend(chunks(len, *chunk).into_iter().skip(index).step_by(members));
                        Work::LoopStatic
                    }
                    Schedule::Dynamic(chunk) => {
                        shared = Some(chunks(len, *chunk));
                        Work::LoopDynamic
                    }
                    Schedule::Guided => {
                        shared = Some(guided(len, members));
                        Work::LoopGuided
                    }
                };
                let shared = shared.map(|chunks| {
                    self.teams[team].shared_chunks.entry(number).or_insert(chunks);
                    number
                });
                self.emit_work(time, thread, Scope::Begin, (kind, code), (of, len));
                self.tasks[task].frames.push(Frame::Loop(Box::new(LoopFrame {
                    kind,
                    own,
                    shared,
                    iterations: iterations.clone(),
                    is_nowait: *nowait,
                    reduction: *reduction,
                    code,
                    has_chunks: true,
                    reported: false,
                    strand: None,
                })));
            }
            Kind::Sections { sections, nowait } => {
                let number = self.worksharing(task);
                let len = sections.len();
                let (start, count) = block(len, index, members);
                let kind = Work::Sections;
                self.emit_work(time, thread, Scope::Begin, (kind, code), (of, len));
                let is_shared = self.machine.shares_sections;
                if is_shared {
                    self.teams[team].shared_chunks.entry(number).or_insert(chunks(len, 1));
                } else if count > 0 {
                    self.emit(time, thread, Callback::Section { of, instance: code });
                }
                self.tasks[task].frames.push(Frame::Loop(Box::new(LoopFrame {
                    kind,
                    own: (start..start + count).map(|section| (section, 1)).collect(),
                    shared: is_shared.then_some(number),
                    iterations: sections.clone(),
                    is_nowait: *nowait,
                    reduction: None,
                    code,
                    has_chunks: false,
                    reported: false,
                    strand: None,
                })));
            }
            Kind::Ordered { iterations } | Kind::Doacross { iterations } => {
                let the_loop = self.worksharing(task);
                let (kind, count) = (Work::LoopStatic, iterations.len());
                self.emit_work(time, thread, Scope::Begin, (kind, code), (of, count));
                let own = iterations.iter().enumerate().skip(index).step_by(members);
                let own = own.map(|(number, (before, inside))| (number, *before, *inside)).collect();
                let is_doacross = matches!(statement.kind, Kind::Doacross { .. });
                let doacross = if is_doacross { Some(self.strand(task)) } else { None };
                self.tasks[task].frames.push(Frame::OrderedLoop { own, the_loop, code, doacross });
            }
            Kind::Single { body, nowait } => {
                let number = self.worksharing(task);
                if self.teams[team].taken_singles.contains(&number) {
                    let kind = Work::SingleOther;
                    self.emit_work(time, thread, Scope::Begin, (kind, code), (of, 1));
                    self.emit_work(time, thread, Scope::End, (kind, code), (of, 1));
                    if !nowait {
                        self.arrive(time, thread, task, Sync::WorksharingBarrier, code + 3);
                    }
                } else {
                    self.teams[team].taken_singles.push(number);
                    let kind = Work::SingleExecutor;
                    self.emit_work(time, thread, Scope::Begin, (kind, code), (of, 1));
                    let strand = self.strand(task);
                    self.tasks[task].frames.push(Frame::Single { code, is_nowait: *nowait, strand });
                    self.tasks[task].frames.push(Frame::Block { body, next: 0 });
                }
            }
            Kind::Masked { body } if index == 0 => {
                self.emit(time, thread, Callback::Masked { scope: Scope::Begin, of, code });
                let strand = self.strand(task);
                self.tasks[task].frames.push(Frame::Masked { code, strand });
                self.tasks[task].frames.push(Frame::Block { body, next: 0 });
            }
            Kind::Masked { .. } => {}
            Kind::Exclusive { kind, number, body } => {
                self.ask_mutex(time, thread, task, (*kind, *number), (body, code));
            }
            Kind::Barrier => self.arrive(time, thread, task, Sync::ExplicitBarrier, code),
            Kind::Task(clauses) => self.create(time, thread, task, (clauses, &clauses.body), code),
            Kind::Taskloop { body } => self.taskloop(time, thread, task, body, code),
            Kind::Taskwait { depend } if !depend.is_empty() && !self.tasks[task].is_final => {
                self.wait_for(time, thread, task, depend, code);
            }
            Kind::Taskwait { .. } => {
                let (kind, scope) = (Sync::Taskwait, Scope::Begin);
                self.emit_sync(time, thread, scope, (kind, code), of);
                self.tasks[task].wait = Some(Wait::Taskwait { code });
            }
            Kind::Taskgroup { body } => {
                let group = self.open_group(time, thread, task, code);
                self.tasks[task].frames.push(Frame::Group { group, code });
                self.tasks[task].frames.push(Frame::Block { body, next: 0 });
            }
            Kind::Taskyield => {
                if let Some(new) = self.pick(thread, task) {
                    self.begin_task(time, thread, new, crate::callback::Status::Yield);
                }
            }
            Kind::SchedulingPoint => self.suspend(time, thread, task),
            Kind::Fulfil(event) => self.fulfil(time, thread, task, *event),
            Kind::CancelTaskgroup => {
                let group = self.tasks[task].group;
                let id = self.tasks[task].id;
                if let Some(group) = group {
                    self.emit(time, thread, Callback::CancelTaskgroup { task: id, code });
                    self.groups[group].is_cancelled = true;
                    // The task ends here.
                    self.tasks[task].frames.clear();
                }
            }
            Kind::Target { ns } => {
                let target = self.id();
                let id = self.tasks[task].id;
                self.emit(time, thread, Callback::Target { scope: Scope::Begin, task: id, target, code });
                let operation = self.id();
                self.emit(time, thread, Callback::TargetSubmit { scope: Scope::Begin, target, operation });
                self.emit(time, thread, Callback::TargetSubmit { scope: Scope::End, target, operation });
                self.tasks[task].frames.push(Frame::EndTarget { code, target });
                self.spend(time, thread, *ns, Activity::Target);
                return false;
            }
            Kind::Call { ns, class } => {
                let class = *class;
                self.emit(time, thread, Callback::Call { scope: Scope::Begin, class, code });
                self.tasks[task].frames.push(Frame::EndCall { code, class });
                self.spend(time, thread, *ns, Activity::Call(class));
                return false;
            }
        }
        true
    }

    fn open_group(&mut self, time: Ns, thread: usize, task: usize, code: Code) -> usize {
        let (kind, scope, of) = (Sync::Taskgroup, Scope::Begin, self.context(task));
        self.emit(time, thread, Callback::SyncRegion { kind, scope, of, code });
        let group = self.groups.len();
        self.groups.push(Group::default());
        self.tasks[task].open_groups.push(group);
        group
    }

    fn taskloop(&mut self, time: Ns, thread: usize, task: usize, tasks: &'p [Statement], code: Code) {
        let group = self.open_group(time, thread, task, code);
        let (kind, of, count) = (Work::Taskloop, self.context(task), tasks.len());
        self.emit_work(time, thread, Scope::Begin, (kind, code), (of, count));
        self.tasks[task].frames.push(Frame::Taskloop { tasks, next: 0, group, code });
    }

    /// Creates the next task of a taskloop. An included one is complete before the next is created.
    fn next_of_taskloop(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        (tasks, next): (&'p [Statement], usize),
        (group, code): (usize, Code),
    ) {
        if next < tasks.len() {
            if let Some(Frame::Taskloop { next, .. }) = self.tasks[task].frames.last_mut() {
                *next += 1;
            }
            self.next_iteration = Some(next);
            let clauses = program::Task::default();
            self.create(time, thread, task, (&clauses, &tasks[next..=next]), code + 8);
            return;
        }
        let (kind, of, count) = (Work::Taskloop, self.context(task), tasks.len());
        self.emit_work(time, thread, Scope::End, (kind, code), (of, count));
        self.tasks[task].frames.pop();
        self.tasks[task].frames.push(Frame::Group { group, code });
    }

    /// True where the thread's turn goes on.
    pub(super) fn continue_frame(&mut self, time: Ns, thread: usize, task: usize, frame: Frame<'p>) -> bool {
        let of = self.context(task);
        match frame {
            Frame::Block { body, next } => {
                let Some(statement) = body.get(next) else {
                    self.tasks[task].frames.pop();
                    return true;
                };
                if let Some(Frame::Block { next, .. }) = self.tasks[task].frames.last_mut() {
                    *next += 1;
                }
                return self.statement(time, thread, task, statement);
            }
            Frame::Single { code, is_nowait, strand } => {
                self.tasks[task].frames.pop();
                self.end_strand(task, strand);
                let (kind, scope) = (Work::SingleExecutor, Scope::End);
                self.emit_work(time, thread, scope, (kind, code), (of, 1));
                if !is_nowait {
                    self.arrive(time, thread, task, Sync::WorksharingBarrier, code + 3);
                } else {
                    self.does(thread, time, Activity::Useful);
                }
            }
            Frame::Masked { code, strand } => {
                self.tasks[task].frames.pop();
                self.end_strand(task, strand);
                self.emit(time, thread, Callback::Masked { scope: Scope::End, of, code });
                self.does(thread, time, Activity::Useful);
            }
            Frame::Taskloop { tasks, next, group, code } => {
                self.next_of_taskloop(time, thread, task, (tasks, next), (group, code));
            }
            Frame::Group { group, code } => {
                self.tasks[task].frames.pop();
                let (kind, scope) = (Sync::Taskgroup, Scope::Begin);
                self.emit(time, thread, Callback::SyncWait { kind, scope, of, code });
                self.tasks[task].wait = Some(Wait::Group { group, code });
            }
            Frame::Loop(frame) => return self.next_chunk(time, thread, task, *frame),
            Frame::OrderedLoop { mut own, the_loop, code, doacross } => {
                let is_doacross = doacross.is_some();
                let Some((iteration, before, inside)) = own.pop_front() else {
                    self.tasks[task].frames.pop();
                    if let Some(strand) = doacross {
                        self.end_strand(task, strand);
                    }
                    let (kind, scope) = (Work::LoopStatic, Scope::End);
                    self.emit_work(time, thread, scope, (kind, code + 1), (of, 0));
                    self.arrive(time, thread, task, Sync::WorksharingBarrier, code + 3);
                    return true;
                };
                // Of a static loop that is not ordered, the first chunk only.
                if !is_doacross || iteration < self.run.teams[self.tasks[task].team].members.len() {
                    let instance = 0x7000 + thread as Code;
                    let (start, iterations) = (iteration, 1);
                    self.emit(time, thread, Callback::Chunk { of, instance, start, iterations });
                }
                if let Some(Frame::OrderedLoop { own: left, .. }) = self.tasks[task].frames.last_mut() {
                    *left = own;
                }
                let strand = if is_doacross { None } else { Some(self.strand(task)) };
                let next = Frame::AskTurn { the_loop, iteration, inside, code, strand };
                self.tasks[task].frames.push(next);
                self.spend(time, thread, before, Activity::Useful);
                return false;
            }
            Frame::AskTurn { the_loop, iteration, inside, code, strand } => {
                self.tasks[task].frames.pop();
                self.tasks[task].wait = Some(match strand {
                    None => Wait::Sink { the_loop, iteration, inside, code, since: time },
                    Some(strand) => {
                        let kind = program::MutexKind::Ordered;
                        let mutex = mutex_id(kind, self.tasks[task].team as u64);
                        self.emit(time, thread, Callback::MutexAcquire { kind, mutex, code: code + 5 });
                        Wait::Turn { the_loop, iteration, inside, code, strand }
                    }
                });
            }
            Frame::EndTurn { the_loop, iteration, code, strand } => {
                self.end_turn(time, thread, task, (the_loop, iteration), (code, strand));
            }
            Frame::Release { kind, number, code, is_nested } => {
                self.release_mutex(time, thread, task, (kind, number), (code, is_nested));
            }
            Frame::EndReduction { code, is_nowait } => {
                self.tasks[task].frames.pop();
                self.emit(time, thread, Callback::Reduction { scope: Scope::End, of, code: code + 4 });
                self.does(thread, time, Activity::Useful);
                if !is_nowait {
                    self.arrive(time, thread, task, Sync::WorksharingBarrier, code + 3);
                }
            }
            Frame::EndTarget { code, target } => {
                self.tasks[task].frames.pop();
                let id = self.tasks[task].id;
                self.emit(time, thread, Callback::Target { scope: Scope::End, task: id, target, code });
                self.does(thread, time, Activity::Useful);
            }
            Frame::EndCall { code, class } => {
                self.tasks[task].frames.pop();
                self.emit(time, thread, Callback::Call { scope: Scope::End, class, code });
                self.does(thread, time, Activity::Useful);
            }
        }
        true
    }

    fn next_chunk(&mut self, time: Ns, thread: usize, task: usize, mut frame: LoopFrame) -> bool {
        let (team, of, code) = (self.tasks[task].team, self.context(task), frame.code);
        let next = match frame.shared {
            None => frame.own.pop_front(),
            Some(number) => self.teams[team].shared_chunks.get_mut(&number).and_then(VecDeque::pop_front),
        };
        let Some((start, iterations)) = next else {
            self.tasks[task].frames.pop();
            if let Some(strand) = frame.strand {
                self.end_strand(task, strand);
            }
            let (kind, scope) = (frame.kind, Scope::End);
            self.emit_work(time, thread, scope, (kind, code + 1), (of, 0));
            if let Some(ns) = frame.reduction {
                self.emit(time, thread, Callback::Reduction { scope: Scope::Begin, of, code: code + 4 });
                self.tasks[task].frames.push(Frame::EndReduction { code, is_nowait: frame.is_nowait });
                self.spend(time, thread, ns, Activity::Reduction);
                return false;
            }
            if frame.is_nowait {
                self.does(thread, time, Activity::Useful);
            } else {
                self.arrive(time, thread, task, Sync::WorksharingBarrier, code + 3);
            }
            return true;
        };
        let instance = 0x7000 + thread as Code;
        // Of a static loop, runtimes report the first chunk of each thread.
        if frame.has_chunks && !(frame.reported && frame.shared.is_none()) {
            self.emit(time, thread, Callback::Chunk { of, instance, start, iterations });
        }
        if frame.kind == Work::Sections && frame.shared.is_some() {
            self.emit(time, thread, Callback::Section { of, instance: code });
        }
        frame.reported = true;
        let ns = frame.iterations[start..start + iterations].iter().sum();
        // Any thread could execute the chunk, or all that the thread has of a static loop, of which runtimes report the first chunk only.
        // Where a section ends, they do not say at all.
        let is_static = frame.shared.is_none();
        if frame.has_chunks && frame.strand.is_none() {
            frame.strand = Some(self.strand(task));
        }
        let strand = frame.strand.filter(|_| !is_static);
        if !is_static {
            frame.strand = None;
        }
        if let Some(Frame::Loop(left)) = self.tasks[task].frames.last_mut() {
            **left = frame;
        }
        self.spend(time, thread, ns, Activity::Useful);
        if let Some(strand) = strand {
            self.end_strand(task, strand);
        }
        false
    }

    /// `None`: the wait of `task` is not over. Else whether the thread's turn goes on.
    pub(super) fn end_wait(&mut self, time: Ns, thread: usize, task: usize) -> Option<bool> {
        match self.tasks[task].wait.clone()? {
            Wait::Region | Wait::Helper => None,
            Wait::Barrier { number, kind, code } => {
                self.end_barrier(time, thread, task, (number, kind, code))
            }
            Wait::Taskwait { code } => {
                if self.tasks[task].children > 0 {
                    return None;
                }
                let ends = self.tasks[task].children_ends.clone();
                self.end_sync(time, thread, task, (Sync::Taskwait, code), &ends);
                Some(true)
            }
            Wait::Group { group, code } => {
                if self.groups[group].left > 0 {
                    return None;
                }
                let ends = self.groups[group].ends.clone();
                self.tasks[task].open_groups.pop();
                self.end_sync(time, thread, task, (Sync::Taskgroup, code), &ends);
                Some(true)
            }
            Wait::Predecessors { task: empty, .. } => self.end_wait_for(time, thread, task, empty),
            Wait::Mutex { kind, number, body, code } => {
                self.take_mutex(time, thread, task, (kind, number), (body, code))
            }
            Wait::Turn { the_loop, iteration, inside, code, strand } => {
                self.take_turn(time, thread, task, (the_loop, iteration), (inside, code, strand))
            }
            Wait::Sink { the_loop, iteration, inside, code, since } => {
                self.pass_sink(time, thread, task, (the_loop, iteration), (inside, code, since))
            }
        }
    }

    fn end_sync(
        &mut self,
        time: Ns,
        thread: usize,
        task: usize,
        (kind, code): (Sync, Code),
        ends: &[PieceId],
    ) {
        let (scope, of) = (Scope::End, self.context(task));
        self.tasks[task].wait = None;
        self.emit_sync(time, thread, scope, (kind, code), of);
        self.meet(time, thread, ends, Edge::Meeting);
        self.does(thread, time, Activity::Useful);
    }
}
