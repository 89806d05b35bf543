//! OpenMP programs as data: a tree of statements, each with a code address by which traces and answers name it.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

/// Nanoseconds: since the start of the process, or a duration.
pub type Ns = u64;

/// A code address: the place of a statement. The addresses behind it, up to [`CODE_STEP`], are those of its parts.
pub type Code = u64;

/// From the address of one statement to that of the next.
pub const CODE_STEP: Code = 16;

/// A program: what its initial thread does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Its statements, in order.
    pub body: Vec<Statement>,
}

/// One construct, or some work.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Where it is.
    pub code: Code,
    /// What it does.
    pub kind: Kind,
}

/// How a loop is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// One block for each thread.
    Static,
    /// Chunks of this many iterations, in turn.
    StaticChunks(usize),
    /// Chunks of this many iterations, to whoever comes.
    Dynamic(usize),
    /// Chunks that become smaller, to whoever comes.
    Guided,
}

/// The type of a dependence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "OpenMP's names")]
pub enum Access {
    #[default]
    In,
    Out,
    Inout,
    Inoutset,
    Mutexinoutset,
}

impl Access {
    /// All of them.
    pub const ALL: [Access; 5] =
        [Access::In, Access::Out, Access::Inout, Access::Inoutset, Access::Mutexinoutset];

    /// Its name in a `depend` clause.
    pub fn name(self) -> &'static str {
        match self {
            Access::In => "in",
            Access::Out => "out",
            Access::Inout => "inout",
            Access::Inoutset => "inoutset",
            Access::Mutexinoutset => "mutexinoutset",
        }
    }

    /// Whether neighbouring tasks with this access do not wait for each other's completion.
    pub fn is_shared(self) -> bool {
        matches!(self, Access::In | Access::Inoutset | Access::Mutexinoutset)
    }
}

/// Dependences: the access, and the number of the variable.
pub type Dependences = Vec<(Access, u64)>;

/// An explicit task.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "OpenMP's clauses")]
pub struct Task {
    pub untied: bool,
    /// `if(0)`
    pub undeferred: bool,
    pub is_final: bool,
    pub mergeable: bool,
    pub priority: u64,
    /// The number of its event, where it is detachable.
    pub detach: Option<u32>,
    pub depend: Dependences,
    pub body: Vec<Statement>,
}

impl Task {
    /// Whether it is a `target nowait` construct.
    pub fn is_target(&self) -> bool {
        is_target(&self.body)
    }
}

/// Whether a task with this body is a `target nowait` construct.
pub fn is_target(body: &[Statement]) -> bool {
    matches!(body, [Statement { kind: Kind::Target { .. }, .. }])
}

/// What mutual exclusion is by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MutexKind {
    /// A critical region; the number is that of its name, 0 has none.
    Critical,
    /// A lock.
    Lock,
    /// A nestable lock.
    NestLock,
    /// Turns of an ordered loop.
    Ordered,
}

/// What a call of MPI is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names in `CallClass`")]
pub enum CallClass {
    Send,
    Collective,
    Management,
}

impl CallClass {
    /// All of them.
    pub const ALL: [CallClass; 3] = [CallClass::Send, CallClass::Collective, CallClass::Management];

    /// Its name in traces.
    pub fn name(self) -> &'static str {
        match self {
            CallClass::Send => "send",
            CallClass::Collective => "collective",
            CallClass::Management => "management",
        }
    }

    /// Its number in traces.
    pub fn number(self) -> u32 {
        match self {
            CallClass::Send => 1,
            CallClass::Collective => 10,
            CallClass::Management => 14,
        }
    }

    /// Whether data is moved, or may be.
    pub fn is_communication(self) -> bool {
        self != CallClass::Management
    }
}

/// What a statement does. Times by member of a team: the last one counts for all further members.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "OpenMP's constructs and clauses")]
pub enum Kind {
    /// The program's own code.
    Work(Vec<Ns>),
    Parallel {
        threads: usize,
        body: Vec<Statement>,
    },
    /// Each iteration's time. The reduction takes that time of each member.
    For {
        schedule: Schedule,
        iterations: Vec<Ns>,
        nowait: bool,
        reduction: Option<Ns>,
    },
    /// `schedule(static, 1)`: the time before the ordered region, and in it.
    Ordered {
        iterations: Vec<(Ns, Ns)>,
    },
    /// `schedule(static, 1) ordered(1)`: before `depend(sink: i-1)`, and from there to `depend(source)`.
    Doacross {
        iterations: Vec<(Ns, Ns)>,
    },
    Sections {
        sections: Vec<Ns>,
        nowait: bool,
    },
    Single {
        body: Vec<Statement>,
        nowait: bool,
    },
    Masked {
        body: Vec<Statement>,
    },
    /// A critical region, or what is done with a lock held.
    Exclusive {
        kind: MutexKind,
        number: u64,
        body: Vec<Statement>,
    },
    Barrier,
    Task(Task),
    /// A task for each statement.
    Taskloop {
        body: Vec<Statement>,
    },
    Taskwait {
        depend: Dependences,
    },
    Taskgroup {
        body: Vec<Statement>,
    },
    Taskyield,
    /// A point at which an untied task may move to another thread.
    SchedulingPoint,
    /// `omp_fulfill_event`
    Fulfil(u32),
    /// `cancel taskgroup`: tasks of the group that have not begun never do.
    CancelTaskgroup,
    /// A target construct whose host waits for the device.
    Target {
        ns: Ns,
    },
    /// A blocking MPI call.
    Call {
        ns: Ns,
        class: CallClass,
    },
}

impl Statement {
    /// The statements within it, where it is a block.
    pub fn body(&self) -> Option<&Vec<Statement>> {
        match &self.kind {
            Kind::Parallel { body, .. }
            | Kind::Single { body, .. }
            | Kind::Masked { body }
            | Kind::Exclusive { body, .. }
            | Kind::Task(Task { body, .. })
            | Kind::Taskloop { body }
            | Kind::Taskgroup { body } => Some(body),
            _ => None,
        }
    }

    /// Like [`Statement::body`].
    pub fn body_mut(&mut self) -> Option<&mut Vec<Statement>> {
        match &mut self.kind {
            Kind::Parallel { body, .. }
            | Kind::Single { body, .. }
            | Kind::Masked { body }
            | Kind::Exclusive { body, .. }
            | Kind::Task(Task { body, .. })
            | Kind::Taskloop { body }
            | Kind::Taskgroup { body } => Some(body),
            _ => None,
        }
    }
}

impl Program {
    /// Calls `visit` for each statement, outer ones first.
    pub fn each<'p>(&'p self, mut visit: impl FnMut(&'p Statement)) {
        fn go<'p>(body: &'p [Statement], visit: &mut impl FnMut(&'p Statement)) {
            for statement in body {
                visit(statement);
                go(statement.body().map_or(&[], Vec::as_slice), visit);
            }
        }
        go(&self.body, &mut visit);
    }

    /// How many statements there are.
    pub fn len(&self) -> usize {
        let mut count = 0;
        self.each(|_| count += 1);
        count
    }

    /// Whether there is no statement.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Whether a statement is one of these.
    pub fn has(&self, test: impl Fn(&Kind) -> bool) -> bool {
        let mut has = false;
        self.each(|statement| has |= test(&statement.kind));
        has
    }

    /// Calls `edit` for the block and the index in it of statement number `number`, outer ones first.
    pub fn edit(&mut self, number: usize, edit: impl FnOnce(&mut Vec<Statement>, usize)) {
        fn go<F: FnOnce(&mut Vec<Statement>, usize)>(
            body: &mut Vec<Statement>,
            left: &mut usize,
            edit: &mut Option<F>,
        ) {
            for index in 0..body.len() {
                if *left == 0 {
                    if let Some(edit) = edit.take() {
                        edit(body, index);
                    }
                    return;
                }
                *left -= 1;
                if let Some(inner) = body[index].body_mut() {
                    go(inner, left, edit);
                    if edit.is_none() {
                        return;
                    }
                }
            }
        }
        let mut left = number;
        go(&mut self.body, &mut left, &mut Some(edit));
    }

    /// Takes away taskwaits of implicit tasks in another construct than creations: in another single or masked region, or outside of
    /// these. Whether there was one.
    pub fn drop_waits_elsewhere(&mut self) -> bool {
        drop_waits_elsewhere(&mut self.body)
    }

    /// The most threads that a parallel construct asks for.
    pub fn widest(&self) -> usize {
        let mut widest = 1;
        self.each(|statement| {
            if let Kind::Parallel { threads, .. } = statement.kind {
                widest = widest.max(threads);
            }
        });
        widest
    }

    /// How many regions are open within each other at most, as the text has it.
    pub fn depth(&self) -> usize {
        fn of(body: &[Statement]) -> usize {
            let depth = |statement: &Statement| {
                let inner = of(statement.body().map_or(&[], Vec::as_slice));
                inner + usize::from(matches!(statement.kind, Kind::Parallel { .. }))
            };
            body.iter().map(depth).max().unwrap_or(0)
        }
        of(&self.body)
    }
}

/// The constructs in which an implicit task creates others: single and masked regions, 0 outside of these.
fn creating(body: &[Statement], construct: Code) -> BTreeSet<Code> {
    let mut constructs = BTreeSet::new();
    for statement in body {
        match &statement.kind {
            Kind::Task(_) | Kind::Taskloop { .. } => drop(constructs.insert(construct)),
            Kind::Parallel { .. } => {}
            Kind::Single { body, .. } | Kind::Masked { body } => {
                constructs.extend(creating(body, statement.code));
            }
            _ => constructs.extend(creating(statement.body().map_or(&[], Vec::as_slice), construct)),
        }
    }
    constructs
}

fn drop_waits_elsewhere(body: &mut Vec<Statement>) -> bool {
    fn within(body: &mut Vec<Statement>, construct: Code, creating: &BTreeSet<Code>) -> bool {
        let before = body.len();
        let is_elsewhere = creating.iter().any(|other| *other != construct);
        body.retain(|statement| !is_elsewhere || !matches!(statement.kind, Kind::Taskwait { .. }));
        let mut is_changed = body.len() < before;
        for statement in body {
            let code = statement.code;
            is_changed |= match &mut statement.kind {
                Kind::Parallel { body, .. } => drop_waits_elsewhere(body),
                Kind::Single { body, .. } | Kind::Masked { body } => within(body, code, creating),
                Kind::Exclusive { body, .. } | Kind::Taskgroup { body } => within(body, construct, creating),
                _ => false,
            };
        }
        is_changed
    }
    let creating = creating(body, 0);
    within(body, 0, &creating)
}

/// OpenMP pseudo-code: a pragma for each construct, with its address behind it.
impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_block(f, &self.body, 1)
    }
}

fn write_block(f: &mut Formatter<'_>, body: &[Statement], depth: usize) -> fmt::Result {
    for statement in body {
        let line = line(&statement.kind);
        let at = match statement.kind {
            Kind::Work(_) | Kind::Fulfil(_) => String::new(),
            _ => format!("   // at {:#x}", statement.code),
        };
        match statement.body() {
            None => writeln!(f, "{:pad$}{line}{at}", "", pad = depth * 2)?,
            Some(body) => {
                writeln!(f, "{:pad$}{line} {{{at}", "", pad = depth * 2)?;
                write_block(f, body, depth + 1)?;
                writeln!(f, "{:pad$}}}", "", pad = depth * 2)?;
            }
        }
    }
    Ok(())
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

fn clauses(list: &[(bool, &str)]) -> String {
    let used = list.iter().filter(|(is_used, _)| *is_used);
    used.map(|(_, name)| format!(" {name}")).collect()
}

fn depend(dependences: &Dependences) -> String {
    let clause = |(access, variable): &(Access, u64)| {
        let variable = char::from(b'a' + (*variable % 26) as u8);
        format!(" depend({}: {variable})", access.name())
    };
    dependences.iter().map(clause).collect()
}

fn pairs(iterations: &[(Ns, Ns)]) -> String {
    list(iterations.iter().map(|(before, inside)| format!("{before} + {inside}")))
}

fn line(kind: &Kind) -> String {
    match kind {
        Kind::Work(times) if times.len() == 1 => format!("work({});", times[0]),
        Kind::Work(times) => format!("work_of_member({});", list(times)),
        Kind::Parallel { threads, .. } => format!("parallel num_threads({threads})"),
        Kind::For { schedule, iterations, nowait, reduction } => {
            let schedule = match schedule {
                Schedule::Static => "static".to_owned(),
                Schedule::StaticChunks(chunk) => format!("static, {chunk}"),
                Schedule::Dynamic(chunk) => format!("dynamic, {chunk}"),
                Schedule::Guided => "guided".to_owned(),
            };
            let reduction = reduction.map_or(String::new(), |ns| format!(" reduction({ns})"));
            let nowait = clauses(&[(*nowait, "nowait")]);
            format!("for schedule({schedule}){reduction}{nowait} work({});", list(iterations))
        }
        Kind::Ordered { iterations } => {
            format!("for schedule(static, 1) ordered work + ordered work({});", pairs(iterations))
        }
        Kind::Doacross { iterations } => format!(
            "for schedule(static, 1) ordered(1) work + work behind depend(sink: i-1) ({});",
            pairs(iterations)
        ),
        Kind::Sections { sections, nowait } => {
            format!("sections{} work({});", clauses(&[(*nowait, "nowait")]), list(sections))
        }
        Kind::Single { nowait, .. } => format!("single{}", clauses(&[(*nowait, "nowait")])),
        Kind::Masked { .. } => "masked".to_owned(),
        Kind::Exclusive { kind: MutexKind::Critical, number: 0, .. } => "critical".to_owned(),
        Kind::Exclusive { kind: MutexKind::Critical, number, .. } => {
            format!("critical(name{number})")
        }
        Kind::Exclusive { kind: MutexKind::NestLock, number, .. } => {
            format!("with nestable lock {number}")
        }
        Kind::Exclusive { number, .. } => format!("with lock {number}"),
        Kind::Barrier => "barrier;".to_owned(),
        Kind::Task(task) if task.is_target() => {
            format!("target nowait{}", depend(&task.depend))
        }
        Kind::Task(task) => {
            let flags = clauses(&[
                (task.untied, "untied"),
                (task.undeferred, "if(0)"),
                (task.is_final, "final(1)"),
                (task.mergeable, "mergeable"),
            ]);
            let priority = match task.priority {
                0 => String::new(),
                priority => format!(" priority({priority})"),
            };
            let detach = task.detach.map_or(String::new(), |event| format!(" detach(e{event})"));
            format!("task{flags}{priority}{detach}{}", depend(&task.depend))
        }
        Kind::Taskloop { .. } => "taskloop grainsize(1), a task for each".to_owned(),
        Kind::Taskwait { depend: on } => format!("taskwait{};", depend(on)),
        Kind::Taskgroup { .. } => "taskgroup".to_owned(),
        Kind::Taskyield => "taskyield;".to_owned(),
        Kind::SchedulingPoint => "scheduling point;".to_owned(),
        Kind::Fulfil(event) => format!("omp_fulfill_event(e{event});"),
        Kind::CancelTaskgroup => "cancel taskgroup;".to_owned(),
        Kind::Target { ns } => format!("target: the device works {ns};"),
        Kind::Call { ns, class } => format!("MPI call ({}) of {ns};", class.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(code: Code, kind: Kind) -> Statement {
        Statement { code, kind }
    }

    fn task_and_wait() -> [Statement; 2] {
        let wait = Kind::Taskwait { depend: vec![] };
        [statement(0x10, Kind::Task(Task::default())), statement(0x20, wait)]
    }

    #[test]
    fn a_taskwait_waits_elsewhere_behind_the_construct_that_creates() {
        let [task, wait] = task_and_wait();
        let mut apart = Program { body: vec![statement(0x30, Kind::Masked { body: vec![task] }), wait] };
        assert!(apart.drop_waits_elsewhere());
        assert!(!apart.has(|kind| matches!(kind, Kind::Taskwait { .. })));
        let body = task_and_wait().to_vec();
        let mut together = Program { body: vec![statement(0x30, Kind::Single { body, nowait: false })] };
        assert!(!together.drop_waits_elsewhere());
        assert!(together.has(|kind| matches!(kind, Kind::Taskwait { .. })));
    }
}
