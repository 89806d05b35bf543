//! Executes a program in virtual time, on N threads, by OpenMP's rules.
//!
//! One loop over pairs of a time and a thread. A thread does all that it can at a moment. Then it works, so that its next turn comes when
//! the work is done, or it waits. Whoever changes something wakes those that may wait for it, which takes a nanosecond at least. A thread
//! that is woken asks its condition again. So nothing polls, and no event is without a cause.

mod exclusion;
mod statement;
mod tasks;
mod teams;

pub(crate) use exclusion::mutex_id;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::callback::{Callback, Context, Id, Scope, Sync, Work};
use crate::program::{CallClass, Code, MutexKind, Ns, Program, Statement};
use crate::random::Random;
use crate::run::{Activity, Doing, Edge, Piece, PieceId, Run, Span, TeamRecord};

/// A program that has not ended by then waits for itself.
const MAX_STEPS: usize = 100_000;
/// The same for each statement of a long program.
const STEPS_OF_A_STATEMENT: usize = 100;

/// How the machine and the runtime behave.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Decides what the program leaves open: who gets which task, how long a thread takes to wake up.
    pub seed: u64,
    /// The threads that there are.
    pub threads: usize,
    /// A wake-up takes 1 ns to this long; 0 is as 1.
    pub max_wake_up: Ns,
    /// Tasks begin in the order of their creation; else in any.
    pub is_first_come: bool,
    /// Workers report the end of a region when the next begins, as they mostly do.
    pub reports_ends_late: bool,
    /// Sections go to whoever comes, as in GCC; else by blocks.
    pub shares_sections: bool,
    /// A thread outside of OpenMP calls MPI, whenever it likes.
    pub has_outsider: bool,
    /// The runtime's hidden helpers, of which all but the first run target tasks that are not waited for.
    pub helpers: usize,
}

/// The id of the helpers' region; behind it are those of their tasks.
pub(crate) const HELPERS: Id = 900_000;

/// Where the thread outside of OpenMP calls MPI.
const OUTSIDE: Code = 0x800;

/// Executes `program`; `None` where it waits for itself.
pub fn simulate(program: &Program, machine: &Machine) -> Option<Run> {
    let mut simulator = Simulator::new(program, machine.clone());
    let steps = MAX_STEPS.max(STEPS_OF_A_STATEMENT * program.len());
    simulator.play(steps).then(|| simulator.finish())
}

/// What a task or a thread waits for.
#[derive(Clone, Debug)]
enum Wait {
    Barrier {
        number: usize,
        kind: Sync,
        code: Code,
    },
    Taskwait {
        code: Code,
    },
    /// The tasks that the empty task of a `taskwait` with dependences depends on.
    Predecessors {
        task: usize,
        code: Code,
    },
    Group {
        group: usize,
        code: Code,
    },
    Mutex {
        kind: MutexKind,
        number: u64,
        body: usize,
        code: Code,
    },
    Turn {
        the_loop: usize,
        iteration: usize,
        inside: Ns,
        code: Code,
        strand: PieceId,
    },
    /// `depend(sink: i-1)`
    Sink {
        the_loop: usize,
        iteration: usize,
        inside: Ns,
        code: Code,
        since: Ns,
    },
    /// A region that the task has opened.
    Region,
    /// A hidden helper has no target task to run.
    Helper,
}

/// Where a task is.
#[derive(Clone, Debug)]
enum Frame<'p> {
    Block {
        body: &'p [Statement],
        next: usize,
    },
    Single {
        code: Code,
        is_nowait: bool,
        strand: PieceId,
    },
    Masked {
        code: Code,
        strand: PieceId,
    },
    Taskloop {
        tasks: &'p [Statement],
        next: usize,
        group: usize,
        code: Code,
    },
    Group {
        group: usize,
        code: Code,
    },
    Loop(Box<LoopFrame>),
    OrderedLoop {
        own: VecDeque<(usize, Ns, Ns)>,
        the_loop: usize,
        code: Code,
        doacross: Option<PieceId>,
    },
    /// The work before the ordered region is done. The strand is where the member's own chain goes on; of a doacross
    /// loop, that is with the loop.
    AskTurn {
        the_loop: usize,
        iteration: usize,
        inside: Ns,
        code: Code,
        strand: Option<PieceId>,
    },
    EndTurn {
        the_loop: usize,
        iteration: usize,
        code: Code,
        strand: Option<PieceId>,
    },
    Release {
        kind: MutexKind,
        number: u64,
        code: Code,
        is_nested: bool,
    },
    /// A reduction's results are combined, then the loop's barrier comes.
    EndReduction {
        code: Code,
        is_nowait: bool,
    },
    EndTarget {
        code: Code,
        target: Id,
    },
    EndCall {
        code: Code,
        class: CallClass,
    },
}

#[derive(Clone, Debug)]
struct LoopFrame {
    kind: crate::callback::Work,
    own: VecDeque<(usize, usize)>,
    /// The team's loop whose chunks go to whoever comes.
    shared: Option<usize>,
    iterations: Vec<Ns>,
    is_nowait: bool,
    reduction: Option<Ns>,
    code: Code,
    has_chunks: bool,
    reported: bool,
    /// Where the member's own chain goes on behind a static loop.
    strand: Option<PieceId>,
}

/// The tasks that last accessed a variable: the last set of the same access, and the set before.
#[derive(Clone, Debug, Default)]
struct Accesses {
    last: Vec<usize>,
    before: Vec<usize>,
    access: crate::program::Access,
}

#[derive(Clone, Debug, Default)]
struct Task<'p> {
    id: Id,
    code: Code,
    frames: Vec<Frame<'p>>,
    wait: Option<Wait>,
    parent: Option<usize>,
    team: usize,
    index: usize,
    is_implicit: bool,
    is_untied: bool,
    is_undeferred: bool,
    is_final: bool,
    /// Helpers run it.
    is_target: bool,
    has_begun: bool,
    is_detached: bool,
    is_done: bool,
    event: Option<u32>,
    /// The group that it belongs to, and those that it has opened.
    group: Option<usize>,
    open_groups: Vec<usize>,
    children: usize,
    children_ends: Vec<PieceId>,
    /// Tasks that must end before it begins, and those that wait for it.
    predecessors: usize,
    successors: Vec<usize>,
    predecessor_ends: Vec<PieceId>,
    /// Predecessors that were done before it was created.
    earlier_ends: Vec<PieceId>,
    /// What it executes of a taskloop.
    iteration: Option<usize>,
    /// Variables that it alone may use while it runs (`mutexinoutset`), by creator.
    exclusive: Vec<(usize, u64)>,
    accesses: BTreeMap<u64, Accesses>,
    fulfilled_by: Vec<PieceId>,
    /// The last piece of the thread that left it.
    left: Option<PieceId>,
    /// The piece that it begins after, and its last piece by its own order.
    start: PieceId,
    current: PieceId,
    end: PieceId,
    worksharings: usize,
    barriers: usize,
}

#[derive(Clone, Debug, Default)]
struct Team<'p> {
    id: Id,
    body: &'p [Statement],
    master: usize,
    encountering: usize,
    outstanding: usize,
    ready: Vec<usize>,
    taken_singles: Vec<usize>,
    shared_chunks: BTreeMap<usize, VecDeque<(usize, usize)>>,
    turns: BTreeMap<usize, usize>,
    task_ends: Vec<PieceId>,
    fork: PieceId,
    workers_gone: usize,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    tasks: Vec<usize>,
    current: PieceId,
    is_waiting: bool,
    /// Turns of an earlier generation are void.
    generation: u64,
    doing: Option<(Ns, Doing)>,
    spans: Vec<Span>,
    /// The implicit task whose end it has not reported, and its index.
    unreported: Option<(Id, usize)>,
    /// The team that it is about to join, and its index there.
    joins: Option<(usize, usize)>,
    /// It looks for no task before.
    rests_until: Option<Ns>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    left: usize,
    ends: Vec<PieceId>,
    is_cancelled: bool,
}

#[derive(Clone, Debug, Default)]
struct Mutex {
    holder: Option<usize>,
    depth: usize,
    queue: VecDeque<usize>,
    releases: Vec<PieceId>,
    since: Ns,
}

#[derive(Clone, Copy, Debug, Default)]
struct Event {
    task: Option<usize>,
    is_fulfilled: bool,
}

struct Simulator<'p> {
    machine: Machine,
    random: Random,
    run: Run,
    tasks: Vec<Task<'p>>,
    teams: Vec<Team<'p>>,
    threads: Vec<Thread>,
    groups: Vec<Group>,
    mutexes: BTreeMap<(MutexKind, u64), Mutex>,
    /// The bodies of exclusive statements that tasks wait to begin.
    bodies: Vec<&'p [Statement]>,
    events: BTreeMap<u32, Event>,
    in_use: Vec<(usize, u64)>,
    turns: BinaryHeap<Reverse<(Ns, usize, u64)>>,
    next_id: Id,
    /// What the next task executes of a taskloop.
    next_iteration: Option<usize>,
    /// Target tasks that helpers may run.
    ready_targets: VecDeque<usize>,
}

impl<'p> Simulator<'p> {
    fn new(program: &'p Program, machine: Machine) -> Simulator<'p> {
        let initial = Task {
            id: 1,
            is_implicit: true,
            frames: vec![Frame::Block { body: &program.body, next: 0 }],
            ..Task::default()
        };
        let mut simulator = Simulator {
            random: Random::new(machine.seed ^ 0x5851_f42d),
            run: Run::default(),
            tasks: vec![initial],
            teams: vec![Team::default()],
            threads: vec![Thread::default(); machine.threads.max(1) + machine.helpers],
            groups: vec![],
            mutexes: BTreeMap::new(),
            bodies: vec![],
            events: BTreeMap::new(),
            in_use: vec![],
            turns: BinaryHeap::new(),
            next_id: 1,
            next_iteration: None,
            ready_targets: VecDeque::new(),
            machine,
        };
        simulator.run.teams.push(TeamRecord { members: vec![0], asked: 1, ..TeamRecord::default() });
        simulator.piece(0, 0, vec![]);
        simulator
    }

    /// False where the program does not end.
    fn play(&mut self, steps: usize) -> bool {
        for thread in 0..self.threads.len() {
            self.does(thread, 0, Activity::Idle);
            if self.is_helper(thread) {
                self.tasks.push(Task {
                    id: HELPERS + 2 + thread as Id,
                    is_implicit: true,
                    wait: Some(Wait::Helper),
                    ..Task::default()
                });
                self.threads[thread].tasks.push(self.tasks.len() - 1);
                self.threads[thread].is_waiting = true;
                continue;
            }
            self.emit(0, thread, Callback::ThreadBegin { is_initial: thread == 0 });
        }
        self.emit(0, 0, Callback::InitialTask(crate::callback::Scope::Begin));
        self.threads[0].tasks.push(0);
        self.does(0, 0, Activity::Useful);
        self.schedule(0, 0);
        for _ in 0..steps {
            let Some(Reverse((time, thread, generation))) = self.turns.pop() else {
                return false;
            };
            if self.threads[thread].generation != generation {
                continue;
            }
            self.threads[thread].generation += 1;
            self.threads[thread].is_waiting = false;
            if self.turn(time, thread) {
                self.end_process(time);
                return true;
            }
        }
        false
    }

    fn finish(mut self) -> Run {
        self.run.helpers = self.machine.threads.max(1)..self.threads.len();
        if self.machine.has_outsider {
            self.add_outsider();
        }
        self.run.spans = self.threads.into_iter().map(|thread| thread.spans).collect();
        self.run
    }

    /// Calls of a thread that no team has, and that comes behind all others.
    fn add_outsider(&mut self) {
        let (outsider, class) = (self.threads.len(), CallClass::Send);
        let mut time = self.random.below(2000);
        while time < self.run.end {
            let end = self.run.end.min(time + self.random.below(9000));
            self.emit(time, outsider, Callback::Call { scope: Scope::Begin, class, code: OUTSIDE });
            self.emit(end, outsider, Callback::Call { scope: Scope::End, class, code: OUTSIDE });
            time = end + self.random.below(5000);
        }
    }

    /// What a thread does at a moment. True at the program's end.
    fn turn(&mut self, time: Ns, thread: usize) -> bool {
        if let Some((team, index)) = self.threads[thread].joins.take() {
            self.begin_member(time, thread, team, index);
        }
        while let Some(&task) = self.threads[thread].tasks.last() {
            let goes_on = if self.tasks[task].wait.is_some() {
                self.wait_again(time, thread, task)
            } else if let Some(frame) = self.tasks[task].frames.last().cloned() {
                self.continue_frame(time, thread, task, frame)
            } else if task == 0 {
                return true;
            } else if self.tasks[task].is_implicit {
                let is_worker = self.threads[thread].tasks.len() == 1 && thread != 0;
                let place = self.run.teams[self.tasks[task].team].place;
                let code = if is_worker { 0 } else { place };
                self.arrive(time, thread, task, Sync::ParallelBarrier, code);
                true
            } else {
                self.end_task(time, thread, task);
                true
            };
            if !goes_on {
                return false;
            }
        }
        false
    }

    /// Ends the wait of `task`, runs another task meanwhile, or waits on. False where the thread's turn is over.
    fn wait_again(&mut self, time: Ns, thread: usize, task: usize) -> bool {
        if let Some(goes_on) = self.end_wait(time, thread, task) {
            return goes_on;
        }
        if let Some(Wait::Helper) = self.tasks[task].wait {
            let next = self.ready_targets.pop_front();
            self.threads[thread].is_waiting = next.is_none();
            if next.is_none() {
                self.does(thread, time, Activity::Idle);
            }
            if let Some(new) = next {
                self.begin_task(time, thread, new, crate::callback::Status::Switch);
            }
            return next.is_some();
        }
        let Some(wait) = &self.tasks[task].wait else {
            return true;
        };
        let activity = match wait {
            Wait::Barrier { number, .. } => Activity::Barrier(*number),
            Wait::Taskwait { .. } | Wait::Predecessors { .. } | Wait::Group { .. } => Activity::TaskWait,
            Wait::Mutex { kind, number, .. } => Activity::Mutex(*kind, *number),
            Wait::Turn { .. } => Activity::Mutex(MutexKind::Ordered, self.tasks[task].team as u64),
            Wait::Sink { .. } => Activity::Useful,
            Wait::Region | Wait::Helper => Activity::Join,
        };
        if matches!(activity, Activity::Barrier(_) | Activity::TaskWait) {
            match self.threads[thread].rests_until {
                Some(until) if until > time => self.schedule(until, thread),
                _ => {
                    self.threads[thread].rests_until = None;
                    if let Some(new) = self.pick(thread, task) {
                        self.begin_task(time, thread, new, crate::callback::Status::Switch);
                        return true;
                    }
                }
            }
        }
        self.does(thread, time, activity);
        self.threads[thread].is_waiting = true;
        false
    }

    fn emit(&mut self, time: Ns, thread: usize, callback: Callback) {
        self.run.callbacks.push((time, thread, callback));
    }

    fn emit_work(
        &mut self,
        time: Ns,
        thread: usize,
        scope: Scope,
        (kind, code): (Work, Code),
        (of, count): (Context, usize),
    ) {
        let event = Callback::Work { kind, scope, of, count, code };
        self.emit(time, thread, event);
    }

    /// The two events of a synchronization that begins or ends: the wait lies in the region.
    fn emit_sync(&mut self, time: Ns, thread: usize, scope: Scope, (kind, code): (Sync, Code), of: Context) {
        let region = Callback::SyncRegion { kind, scope, of, code };
        let wait = Callback::SyncWait { kind, scope, of, code };
        let events = match scope {
            Scope::Begin => [region, wait],
            Scope::End => [wait, region],
        };
        for event in events {
            self.emit(time, thread, event);
        }
    }

    /// Whether the thread is one of the runtime's own.
    fn is_helper(&self, thread: usize) -> bool {
        thread >= self.machine.threads.max(1)
    }

    /// The task may begin: threads of its team may run it, or helpers.
    fn make_ready(&mut self, time: Ns, task: usize) {
        let is_target = self.tasks[task].is_target;
        if !is_target {
            let team = self.tasks[task].team;
            self.teams[team].ready.push(task);
            return;
        }
        self.ready_targets.push_back(task);
        for thread in self.machine.threads.max(1) + 1..self.threads.len() {
            self.wake(time, thread);
        }
    }

    fn id(&mut self) -> Id {
        self.next_id += 1;
        self.next_id
    }

    fn context(&self, task: usize) -> Context {
        let task = &self.tasks[task];
        Context { parallel: Some(self.teams[task.team].id), task: task.id }
    }

    fn wake_up_time(&mut self) -> Ns {
        1 + self.random.below(self.machine.max_wake_up)
    }

    fn schedule(&mut self, time: Ns, thread: usize) {
        let generation = self.threads[thread].generation;
        self.turns.push(Reverse((time, thread, generation)));
    }

    fn wake(&mut self, time: Ns, thread: usize) {
        if self.threads[thread].is_waiting {
            let wake_up = self.wake_up_time();
            self.schedule(time + wake_up, thread);
        }
    }

    fn wake_team(&mut self, time: Ns, team: usize) {
        for thread in self.run.teams[team].members.clone() {
            self.wake(time, thread);
        }
    }

    /// The innermost construct of a task.
    fn place(&self, task: usize) -> Code {
        let task = &self.tasks[task];
        let of_frame = |frame: &Frame<'_>| match frame {
            Frame::Single { code, .. }
            | Frame::Masked { code, .. }
            | Frame::OrderedLoop { code, .. }
            | Frame::EndTarget { code, .. }
            | Frame::EndCall { code, .. }
            | Frame::Release { kind: MutexKind::Critical, code, .. } => Some(*code),
            Frame::Loop(frame) => Some(frame.code),
            Frame::EndReduction { code, .. } => Some(*code + 4),
            // In an ordered region; a doacross loop has no strand of its own.
            Frame::EndTurn { code, strand: Some(_), .. } => Some(*code + 5),
            _ => None,
        };
        task.frames.iter().rev().find_map(of_frame).unwrap_or(task.code)
    }

    /// Like [`Simulator::place`], also taskgroups.
    fn construct(&self, task: usize) -> Code {
        let frames = &self.tasks[task].frames;
        let group = frames.iter().rposition(|frame| matches!(frame, Frame::Group { .. }));
        match group.map(|index| &frames[index..]) {
            // Nothing else within it.
            Some([Frame::Group { code, .. }, inner @ ..]) => {
                let is_block = |frame: &Frame<'_>| match frame {
                    Frame::Block { .. } => true,
                    Frame::Release { kind, .. } => *kind != MutexKind::Critical,
                    _ => false,
                };
                if inner.iter().all(is_block) { *code } else { self.place(task) }
            }
            _ => self.place(task),
        }
    }

    /// From now on the thread does this.
    fn does(&mut self, thread: usize, time: Ns, activity: Activity) {
        let tasks = &self.threads[thread].tasks;
        let innermost = tasks.last().copied();
        let implicit = tasks.iter().rev().copied().find(|task| self.tasks[*task].is_implicit);
        let at_barrier = implicit.and_then(|task| match self.tasks[task].wait {
            Some(Wait::Barrier { number, .. }) => Some(number),
            _ => None,
        });
        let place = innermost.map_or(0, |task| match &self.tasks[task].wait {
            Some(Wait::Turn { code, .. }) => code + 5,
            Some(
                Wait::Mutex { code, .. }
                | Wait::Barrier { code, .. }
                | Wait::Taskwait { code }
                | Wait::Predecessors { code, .. }
                | Wait::Group { code, .. },
            ) => *code,
            _ => self.place(task),
        });
        let doing = Doing {
            activity,
            place,
            construct: innermost.map_or(0, |task| self.construct(task)),
            team: innermost.map_or(0, |task| self.tasks[task].team),
            in_task: innermost.is_some_and(|task| !self.tasks[task].is_implicit),
            at_barrier,
        };
        let thread = &mut self.threads[thread];
        if let Some((begin, last)) = thread.doing {
            if last == doing {
                return;
            }
            if begin < time {
                thread.spans.push(Span { begin, end: time, doing: last });
            }
        }
        thread.doing = Some((time, doing));
    }

    /// A moment that comes after these pieces.
    fn piece(&mut self, time: Ns, thread: usize, before: Vec<(PieceId, Edge)>) -> PieceId {
        self.run.pieces.push(Piece {
            begin: time,
            end: time,
            thread,
            place: 0,
            team: self.threads[thread].tasks.last().map_or(0, |task| self.tasks[*task].team),
            region: 0,
            work: 0,
            is_call: false,
            before,
            is_overhead: false,
            releases: None,
        });
        self.run.pieces.len() - 1
    }

    /// The thread and its task go on after these pieces, too.
    fn meet(&mut self, time: Ns, thread: usize, others: &[PieceId], edge: Edge) -> PieceId {
        let mut before: Vec<(PieceId, Edge)> = others.iter().map(|piece| (*piece, edge)).collect();
        before.push((self.threads[thread].current, Edge::Thread));
        let task = self.threads[thread].tasks.last().copied();
        before.extend(task.map(|task| (self.tasks[task].current, Edge::Task)));
        let piece = self.piece(time, thread, before);
        self.threads[thread].current = piece;
        if let Some(task) = task {
            self.tasks[task].current = piece;
        }
        piece
    }

    /// The thread's task does this for `ns`; its next turn is then.
    fn spend(&mut self, time: Ns, thread: usize, ns: Ns, activity: Activity) {
        let piece = self.meet(time, thread, &[], Edge::Thread);
        let task = self.threads[thread].tasks.last().copied().unwrap_or(0);
        let region = self.run.outermost(self.tasks[task].team);
        let place = self.place(task);
        let piece = &mut self.run.pieces[piece];
        (piece.end, piece.region, piece.place) = (time + ns, region, place);
        piece.is_call = matches!(activity, Activity::Call(_));
        piece.work = if activity == Activity::Useful || piece.is_call { ns } else { 0 };
        self.does(thread, time, activity);
        self.schedule(time + ns, thread);
    }
}
