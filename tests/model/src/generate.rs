//! Random programs: a family says which constructs occur, the size how many.

use crate::program::{
    Access, CODE_STEP, CallClass, Code, Dependences, Kind, MutexKind, Ns, Program, Schedule, Statement, Task,
};
use crate::random::Random;

/// A group of programs with some constructs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Family {
    pub name: &'static str,
    pub loops: bool,
    /// Loops, singles and masked regions with unlike times, also with `nowait`.
    pub uneven: bool,
    pub ordered: bool,
    pub mutexes: bool,
    pub singles: bool,
    pub masked: bool,
    /// Tasks, taskwaits and grandchildren.
    pub tasks: bool,
    pub dependences: bool,
    /// `if(0)`, `final`, mergeable, priorities, taskyield.
    pub clauses: bool,
    pub taskgroups: bool,
    pub untied: bool,
    pub detached: bool,
    pub cancellation: bool,
    /// How many regions may be open within each other.
    pub depth: usize,
    /// Teams smaller than the widest.
    pub narrow: bool,
    pub devices: bool,
}

const NONE: Family = Family {
    name: "",
    loops: false,
    uneven: false,
    ordered: false,
    mutexes: false,
    singles: false,
    masked: false,
    tasks: false,
    dependences: false,
    clauses: false,
    taskgroups: false,
    untied: false,
    detached: false,
    cancellation: false,
    depth: 1,
    narrow: false,
    devices: false,
};

/// The families. Their order is part of what a seed means.
pub const FAMILIES: [Family; 14] = [
    Family { name: "loops", loops: true, ..NONE },
    Family { name: "uneven loops", loops: true, uneven: true, singles: true, ..NONE },
    Family { name: "ordered", ordered: true, loops: true, uneven: true, ..NONE },
    Family { name: "mutexes", mutexes: true, uneven: true, loops: true, ..NONE },
    Family { name: "narrow teams", narrow: true, uneven: true, singles: true, mutexes: true, ..NONE },
    Family { name: "nested regions", depth: 3, uneven: true, loops: true, singles: true, ..NONE },
    Family { name: "masked", masked: true, uneven: true, singles: true, ..NONE },
    Family { name: "tasks", tasks: true, singles: true, ..NONE },
    Family { name: "dependences", tasks: true, singles: true, dependences: true, ..NONE },
    Family {
        name: "task clauses",
        tasks: true,
        singles: true,
        clauses: true,
        uneven: true,
        mutexes: true,
        ..NONE
    },
    Family { name: "taskgroups", tasks: true, singles: true, taskgroups: true, ..NONE },
    Family {
        name: "untied and detached",
        tasks: true,
        singles: true,
        dependences: true,
        untied: true,
        detached: true,
        ..NONE
    },
    Family { name: "cancellation", tasks: true, singles: true, taskgroups: true, cancellation: true, ..NONE },
    Family {
        name: "everything",
        loops: true,
        uneven: true,
        ordered: true,
        mutexes: true,
        singles: true,
        masked: true,
        tasks: true,
        dependences: true,
        clauses: true,
        taskgroups: true,
        untied: true,
        detached: true,
        depth: 2,
        narrow: true,
        devices: true,
        ..NONE
    },
];

/// The address of a program's first statement.
const FIRST_CODE: Code = 0x1010;
/// Tasks of a program, at most.
const MAX_TASKS: usize = 25;

struct Generator {
    random: Random,
    family: Family,
    /// Statements that may still be made.
    left: usize,
    code: Code,
    events: u32,
    tasks: usize,
    /// The runtime has helpers for target tasks.
    has_helpers: bool,
}

/// Whether LLVM's hidden helpers run the target tasks of a seed.
pub fn has_helpers(seed: u64) -> bool {
    seed / FAMILIES.len() as u64 % 6 == 4
}

/// Whether the program of a seed calls MPI.
pub fn has_calls(seed: u64) -> bool {
    matches!(seed / FAMILIES.len() as u64 % 5, 0 | 4)
}

/// The program of a seed, with about `size` statements.
pub fn generate(seed: u64, family: Family, threads: usize, size: usize) -> Program {
    let mut generator = Generator {
        random: Random::new(seed),
        family,
        left: size,
        code: FIRST_CODE - CODE_STEP,
        events: 0,
        tasks: 0,
        has_helpers: has_helpers(seed),
    };
    let mut body = vec![generator.work(1)];
    for _ in 0..1 + generator.random.below(if size > 12 { 3 } else { 1 }) {
        let team = generator.team(threads);
        let region = generator.region(team, 1);
        body.extend([region, generator.work(1)]);
        if family.devices && generator.random.chance(30) {
            let ns = generator.ns();
            body.push(generator.statement(Kind::Target { ns }));
        }
    }
    if has_calls(seed) {
        generator.add_calls(&mut body);
    }
    Program { body }
}

impl Generator {
    fn statement(&mut self, kind: Kind) -> Statement {
        self.code += CODE_STEP;
        self.left = self.left.saturating_sub(1);
        Statement { code: self.code, kind }
    }

    fn ns(&mut self) -> Ns {
        1000 * (1 + self.random.below(9)) + self.random.below(97)
    }

    fn team(&mut self, threads: usize) -> usize {
        if self.family.narrow { 1 + self.random.below(threads as u64) as usize } else { threads }
    }

    fn work(&mut self, members: usize) -> Statement {
        let count = if self.family.uneven { members } else { 1 };
        let times = (0..count).map(|_| self.ns()).collect();
        self.statement(Kind::Work(times))
    }

    /// A few take no time.
    fn call(&mut self) -> Statement {
        let ns = if self.random.chance(5) { 0 } else { self.ns() };
        let class = CallClass::ALL[self.random.below(CallClass::ALL.len() as u64) as usize];
        self.statement(Kind::Call { ns, class })
    }

    /// Calls before and behind work, but for the program's first.
    fn add_calls(&mut self, body: &mut Vec<Statement>) {
        for mut statement in std::mem::take(body) {
            let is_work = matches!(statement.kind, Kind::Work(_));
            if let Some(inner) = statement.body_mut() {
                self.add_calls(inner);
            }
            let is_first = statement.code == FIRST_CODE;
            if is_work && !is_first && self.random.chance(25) {
                let call = self.call();
                body.push(call);
            }
            body.push(statement);
            if is_work && self.random.chance(25) {
                let call = self.call();
                body.push(call);
            }
        }
    }

    fn nowait(&mut self) -> bool {
        self.family.uneven && self.random.chance(25)
    }

    fn region(&mut self, threads: usize, depth: usize) -> Statement {
        let code = self.statement(Kind::Barrier).code;
        let mut body = vec![];
        for _ in 0..1 + self.random.below(4) {
            body.push(self.of_member(threads, depth));
        }
        Statement { code, kind: Kind::Parallel { threads, body } }
    }

    /// What each member of a team does.
    fn of_member(&mut self, members: usize, depth: usize) -> Statement {
        let family = self.family;
        if self.left == 0 {
            return self.work(members);
        }
        match self.random.below(12) {
            0 | 1 if family.loops => self.for_loop(),
            2 if family.loops && family.uneven => {
                let sections = self.times(5);
                let nowait = self.nowait();
                self.statement(Kind::Sections { sections, nowait })
            }
            3 | 4 if family.mutexes => self.exclusive(members, 0),
            5 => self.statement(Kind::Barrier),
            6 if family.ordered => {
                let count = 1 + self.random.below(6);
                let iterations = (0..count).map(|_| (self.ns(), self.ns())).collect();
                let is_doacross = self.random.chance(40);
                let kind =
                    if is_doacross { Kind::Doacross { iterations } } else { Kind::Ordered { iterations } };
                self.statement(kind)
            }
            7 if depth < family.depth => {
                let threads = 1 + self.random.below(3) as usize;
                self.region(threads, depth + 1)
            }
            7..=10 if family.singles || family.masked => {
                let code = self.statement(Kind::Barrier).code;
                let body = if family.tasks { self.of_task(0) } else { vec![self.work(1)] };
                let kind = if family.masked && self.random.chance(40) {
                    Kind::Masked { body }
                } else {
                    Kind::Single { body, nowait: self.nowait() }
                };
                Statement { code, kind }
            }
            11 if family.devices => {
                let ns = self.ns();
                self.statement(Kind::Target { ns })
            }
            _ => self.work(members),
        }
    }

    fn times(&mut self, most: u64) -> Vec<Ns> {
        (0..1 + self.random.below(most)).map(|_| self.ns()).collect()
    }

    fn for_loop(&mut self) -> Statement {
        let chunk = 1 + self.random.below(3) as usize;
        let schedule = match self.random.below(4) {
            0 => Schedule::Static,
            1 => Schedule::StaticChunks(chunk),
            2 => Schedule::Dynamic(chunk),
            _ => Schedule::Guided,
        };
        let mut iterations = self.times(8);
        // What a static loop is predicted from are like iterations.
        if matches!(schedule, Schedule::Static | Schedule::StaticChunks(_)) && !self.family.uneven {
            let first = iterations[0];
            iterations.fill(first);
        }
        let reduction = self.random.chance(20).then(|| 100 + self.random.below(900));
        let nowait = self.nowait();
        self.statement(Kind::For { schedule, iterations, nowait, reduction })
    }

    /// Mutexes within others have a higher number or kind, or are the same nestable lock: no two threads wait for each other.
    fn exclusive(&mut self, members: usize, least: u64) -> Statement {
        let rank = least + self.random.below(6 - least);
        let (kind, number) = match rank {
            0 | 1 => (MutexKind::Critical, rank),
            2 | 3 => (MutexKind::Lock, rank - 2),
            _ => (MutexKind::NestLock, rank - 4),
        };
        let code = self.statement(Kind::Barrier).code;
        let mut body = vec![self.work(members)];
        if self.random.chance(20) {
            let again = kind == MutexKind::NestLock;
            if again || rank < 5 {
                body.push(self.exclusive(members, if again { rank } else { rank + 1 }));
                body.push(self.work(members));
            }
        }
        Statement { code, kind: Kind::Exclusive { kind, number, body } }
    }

    /// Families that are simple but for target tasks, where the runtime has helpers.
    fn has_target_tasks(&self) -> bool {
        let Family { clauses, taskgroups, untied, .. } = self.family;
        self.has_helpers && !(clauses || taskgroups || untied)
    }

    /// What one task does. Statements that wait come only where no event is left open, or its task might be waited for.
    fn of_task(&mut self, depth: usize) -> Vec<Statement> {
        let family = self.family;
        let mut body = vec![];
        let mut open: Vec<u32> = vec![];
        for _ in 0..1 + self.random.below(if depth > 0 { 3 } else { 5 }) {
            let choice = self.random.below(14);
            let statement = match choice {
                // `target nowait` is a task, whose thread waits for the device.
                0 if (family.devices || self.has_target_tasks()) && self.random.chance(40) => {
                    let code = self.statement(Kind::Barrier).code;
                    let ns = self.ns();
                    let target = Statement { code, kind: Kind::Target { ns } };
                    let mut depend = vec![];
                    if self.has_helpers && family.dependences {
                        depend = self.dependences();
                        depend.retain(|(access, _)| *access != Access::Mutexinoutset);
                    }
                    Statement {
                        code,
                        kind: Kind::Task(Task { body: vec![target], depend, ..Task::default() }),
                    }
                }
                0..=4 if depth < 3 && self.tasks < MAX_TASKS => self.task(depth, &mut open),
                5 if open.is_empty() => {
                    let depend = match family.dependences && self.random.chance(40) {
                        true => self.dependences(),
                        false => vec![],
                    };
                    self.statement(Kind::Taskwait { depend })
                }
                6 if family.taskgroups && depth < 3 && open.is_empty() => {
                    let code = self.statement(Kind::Barrier).code;
                    let body = self.of_task(depth + 1);
                    Statement { code, kind: Kind::Taskgroup { body } }
                }
                7 if family.clauses => self.statement(Kind::Taskyield),
                8 if family.taskgroups && open.is_empty() => {
                    let code = self.statement(Kind::Barrier).code;
                    let body = (0..1 + self.random.below(4)).map(|_| self.work(1)).collect();
                    Statement { code, kind: Kind::Taskloop { body } }
                }
                9 | 10 if !open.is_empty() => {
                    let event = open.remove(0);
                    let fulfil = self.statement(Kind::Fulfil(event));
                    if self.random.chance(50) {
                        // Another thread may do it.
                        let code = self.statement(Kind::Barrier).code;
                        let body = vec![self.work(3), fulfil];
                        Statement { code, kind: Kind::Task(Task { body, ..Task::default() }) }
                    } else {
                        fulfil
                    }
                }
                _ => self.work(1),
            };
            body.push(statement);
        }
        for event in open {
            if self.random.chance(60) {
                body.push(self.work(1));
            }
            body.push(self.statement(Kind::Fulfil(event)));
        }
        body
    }

    fn dependences(&mut self) -> Dependences {
        let mut depend = vec![];
        for variable in 0..3 {
            if self.random.chance(40) {
                let access = Access::ALL[self.random.below(Access::ALL.len() as u64) as usize];
                depend.push((access, variable));
            }
        }
        depend
    }

    fn task(&mut self, depth: usize, open: &mut Vec<u32>) -> Statement {
        let family = self.family;
        self.tasks += 1;
        let code = self.statement(Kind::Barrier).code;
        let mut task = Task { body: vec![self.work(1)], ..Task::default() };
        if family.mutexes && self.random.chance(15) {
            let exclusive = self.exclusive(1, 0);
            task.body.push(exclusive);
        }
        if self.random.chance(45) {
            let more = self.of_task(depth + 1);
            task.body.extend(more);
        }
        if family.untied && self.random.chance(35) {
            task.untied = true;
            let point = self.statement(Kind::SchedulingPoint);
            task.body.extend([point, self.work(1)]);
        }
        if family.clauses {
            task.undeferred = self.random.chance(20);
            task.is_final = self.random.chance(15);
            task.mergeable = self.random.chance(15);
            task.priority = if self.random.chance(15) { 1 + self.random.below(9) } else { 0 };
        }
        if family.dependences && !task.undeferred && self.random.chance(60) {
            task.depend = self.dependences();
        }
        let is_plain = !task.undeferred && !task.is_final && !family.clauses;
        if family.detached && is_plain && self.random.chance(25) {
            self.events += 1;
            task.detach = Some(self.events);
            if family.dependences && task.depend.is_empty() {
                task.depend = self.dependences();
            }
            open.push(self.events);
        } else if family.cancellation && self.random.chance(20) {
            let cancel = self.statement(Kind::CancelTaskgroup);
            task.body.push(cancel);
        }
        Statement { code, kind: Kind::Task(task) }
    }
}
