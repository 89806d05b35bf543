//! The same case without a construct. A difference that is still there is of another kind than those that need the construct.

use crate::case::Case;
use crate::program::{Access, Kind, Program, Schedule, Statement, Task};
use crate::write::Dialect;

/// What takes the place of a statement.
fn edit(body: &mut Vec<Statement>, change: &impl Fn(Statement) -> Vec<Statement>) {
    let old = std::mem::take(body);
    for mut statement in old {
        if let Some(inner) = statement.body_mut() {
            edit(inner, change);
        }
        body.extend(change(statement));
    }
}

fn change(program: &mut Program, change: impl Fn(Statement) -> Vec<Statement>) {
    edit(&mut program.body, &change);
}

/// Calls `simplify` for each explicit task.
fn each_task(program: &mut Program, simplify: impl Fn(&mut Task)) {
    change(program, |mut statement| {
        if let Kind::Task(task) = &mut statement.kind {
            simplify(task);
        }
        vec![statement]
    });
}

/// Calls `simplify` for each statement, which gives the kind of another, if it changes.
fn each_kind(program: &mut Program, simplify: impl Fn(&Kind) -> Option<Kind>) {
    change(program, |mut statement| {
        if let Some(kind) = simplify(&statement.kind) {
            statement.kind = kind;
        }
        vec![statement]
    });
}

/// A loop for whoever comes.
fn dynamic(iterations: Vec<u64>, nowait: bool) -> Kind {
    Kind::For { schedule: Schedule::Dynamic(1), iterations, nowait, reduction: None }
}

/// `case` without what [`Case::features`] calls `feature`; `None` where nothing can take its place.
pub fn without(case: &Case, feature: &str) -> Option<Case> {
    let mut changed = case.clone();
    let program = &mut changed.program;
    match feature {
        // Another runtime reports the same program.
        "libgomp" | "llvm 9" | "llvm 6" | "tr4" | "collector" => changed.dialect = Dialect::Llvm,
        "helpers" => each_task(program, |task| {
            if let [Statement { kind: Kind::Target { ns }, code }] = task.body[..] {
                task.body = vec![Statement { code, kind: Kind::Work(vec![ns]) }];
            }
        }),
        "prompt ends" => changed.machine.reports_ends_late = true,
        // Teams of one thread become one of two, which no kind that needs one thread explains.
        "one thread" => each_kind(program, |kind| match kind {
            Kind::Parallel { threads: 1, body } => Some(Kind::Parallel { threads: 2, body: body.clone() }),
            _ => None,
        }),
        "nested" => unnest(&mut program.body, 0),
        "static" | "static chunks" => each_kind(program, |kind| match kind {
            Kind::For {
                schedule: Schedule::Static | Schedule::StaticChunks(_), iterations, nowait, ..
            } => Some(dynamic(iterations.clone(), *nowait)),
            _ => None,
        }),
        "ordered" => each_kind(program, |kind| match kind {
            Kind::Ordered { iterations } => {
                Some(dynamic(iterations.iter().map(|(before, inside)| before + inside).collect(), false))
            }
            _ => None,
        }),
        "doacross" => each_kind(program, |kind| match kind {
            Kind::Doacross { iterations } => {
                Some(dynamic(iterations.iter().map(|(before, inside)| before + inside).collect(), false))
            }
            _ => None,
        }),
        "sections" => each_kind(program, |kind| match kind {
            Kind::Sections { sections, nowait } => Some(dynamic(sections.clone(), *nowait)),
            _ => None,
        }),
        "masked" => each_kind(program, |kind| match kind {
            Kind::Masked { body } => Some(Kind::Single { body: body.clone(), nowait: true }),
            _ => None,
        }),
        "single nowait" => each_kind(program, |kind| match kind {
            Kind::Single { body, nowait: true } => Some(Kind::Single { body: body.clone(), nowait: false }),
            _ => None,
        }),
        "mutex" => change(program, |statement| match statement.kind {
            Kind::Exclusive { body, .. } => body,
            _ => vec![statement],
        }),
        "outsider" => changed.machine.has_outsider = false,
        "mpi" => each_kind(program, |kind| match kind {
            Kind::Call { ns, .. } => Some(Kind::Work(vec![*ns])),
            _ => None,
        }),
        "untied" => each_task(program, |task| task.untied = false),
        "undeferred" => each_task(program, |task| (task.undeferred, task.is_final) = (false, false)),
        "detach" => each_task(program, |task| task.detach = None),
        "depend" => each_task(program, |task| task.depend.clear()),
        "taskwait" => change(program, |statement| match statement.kind {
            Kind::Taskwait { .. } => vec![],
            _ => vec![statement],
        }),
        "taskwait elsewhere" => {
            program.drop_waits_elsewhere();
        }
        "taskwait depend" => each_kind(program, |kind| match kind {
            Kind::Taskwait { depend } if !depend.is_empty() => Some(Kind::Taskwait { depend: vec![] }),
            _ => None,
        }),
        "taskgroup" => change(program, |statement| match statement.kind {
            Kind::Taskgroup { body } => body,
            Kind::Taskloop { body } => {
                let task = |inner: Statement| Statement {
                    code: statement.code + 8,
                    kind: Kind::Task(Task { body: vec![inner], ..Task::default() }),
                };
                body.into_iter().map(task).collect()
            }
            _ => vec![statement],
        }),
        "inoutset" => each_task(program, |task| {
            for (access, _) in &mut task.depend {
                if matches!(access, Access::Inoutset | Access::Mutexinoutset) {
                    *access = Access::Inout;
                }
            }
        }),
        _ => return None,
    }
    Some(changed)
}

/// What regions inside do is done by the member of the team around.
fn unnest(body: &mut Vec<Statement>, depth: usize) {
    let old = std::mem::take(body);
    for mut statement in old {
        let is_region = matches!(statement.kind, Kind::Parallel { .. });
        if let Some(inner) = statement.body_mut() {
            unnest(inner, depth + usize::from(is_region));
        }
        match statement.kind {
            Kind::Parallel { body: inner, .. } if depth > 0 => body.extend(inner),
            _ => body.push(statement),
        }
    }
}
