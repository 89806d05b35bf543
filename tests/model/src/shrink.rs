//! Makes a case smaller, as long as the same number differs.

use crate::case::Case;
use crate::program::{CallClass, Kind, Ns, Schedule, Statement};

/// Rounds over all statements, at most.
const ROUNDS: usize = 6;

/// The smallest case that still `fails`.
pub fn shrink(case: &Case, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    for _ in 0..ROUNDS {
        let before = best.clone();
        remove_statements(&mut best, &mut fails);
        simplify_statements(&mut best, &mut fails);
        simplify_machine(&mut best, &mut fails);
        if best == before {
            break;
        }
    }
    best
}

fn keep_if(best: &mut Case, smaller: Case, fails: &mut impl FnMut(&Case) -> bool) -> bool {
    let is_kept = smaller != *best && fails(&smaller);
    if is_kept {
        *best = smaller;
    }
    is_kept
}

fn remove_statements(best: &mut Case, fails: &mut impl FnMut(&Case) -> bool) {
    let mut number = best.program.len();
    while number > 0 {
        number -= 1;
        let mut without = best.clone();
        without.program.edit(number, |body, index| drop(body.remove(index)));
        if keep_if(best, without, fails) {
            continue;
        }
        // Its statements in its place.
        let mut unwrapped = best.clone();
        unwrapped.program.edit(number, |body, index| {
            if let Some(inner) = body[index].body().cloned() {
                body.splice(index..=index, inner);
            }
        });
        keep_if(best, unwrapped, fails);
    }
}

fn simplify_statements(best: &mut Case, fails: &mut impl FnMut(&Case) -> bool) {
    let mut number = 0;
    while number < best.program.len() {
        let mut simpler = vec![];
        best.program.clone().edit(number, |body, index| simpler = simpler_kinds(&body[index].kind));
        for kind in simpler {
            let mut smaller = best.clone();
            smaller.program.edit(number, |body, index| {
                body[index] = Statement { code: body[index].code, kind };
            });
            keep_if(best, smaller, fails);
        }
        number += 1;
    }
}

fn round(ns: Ns) -> Ns {
    (ns / 1000).max(1) * 1000
}

/// Simpler forms of a statement, the most different first.
fn simpler_kinds(kind: &Kind) -> Vec<Kind> {
    let mut simpler = vec![];
    match kind {
        Kind::Work(times) => {
            simpler.push(Kind::Work(vec![1000]));
            simpler.push(Kind::Work(vec![round(times[0])]));
            simpler.push(Kind::Work(times.iter().map(|ns| round(*ns)).collect()));
        }
        Kind::Parallel { threads, body } if *threads > 1 => {
            simpler.push(Kind::Parallel { threads: threads - 1, body: body.clone() });
        }
        Kind::For { schedule, iterations, nowait, .. } => {
            let with = |schedule, iterations: &[Ns]| Kind::For {
                schedule,
                iterations: iterations.to_vec(),
                nowait: *nowait,
                reduction: None,
            };
            let fewer = &iterations[..iterations.len().max(2) - 1];
            simpler.push(with(Schedule::Static, iterations));
            simpler.push(with(*schedule, fewer));
            simpler.push(with(*schedule, &vec![1000; iterations.len()]));
            simpler.push(with(*schedule, iterations));
        }
        Kind::Ordered { iterations } if iterations.len() > 1 => {
            simpler.push(Kind::Ordered { iterations: iterations[1..].to_vec() });
        }
        Kind::Doacross { iterations } if iterations.len() > 1 => {
            simpler.push(Kind::Doacross { iterations: iterations[1..].to_vec() });
        }
        Kind::Sections { sections, nowait } if sections.len() > 1 => {
            simpler.push(Kind::Sections { sections: sections[1..].to_vec(), nowait: *nowait });
        }
        Kind::Masked { body } => simpler.push(Kind::Single { body: body.clone(), nowait: true }),
        Kind::Task(task) => {
            let mut with = |change: fn(&mut crate::program::Task)| {
                let mut task = task.clone();
                change(&mut task);
                simpler.push(Kind::Task(task));
            };
            with(|task| task.untied = false);
            with(|task| task.undeferred = false);
            with(|task| task.is_final = false);
            with(|task| (task.mergeable, task.priority) = (false, 0));
            with(|task| task.detach = None);
            with(|task| task.depend.truncate(task.depend.len().saturating_sub(1)));
        }
        Kind::Taskwait { depend } if !depend.is_empty() => {
            simpler.push(Kind::Taskwait { depend: vec![] });
            simpler.push(Kind::Taskwait { depend: depend[1..].to_vec() });
            simpler.push(Kind::Taskwait { depend: depend[..depend.len() - 1].to_vec() });
        }
        Kind::Call { ns, class } => {
            simpler.push(Kind::Work(vec![*ns]));
            simpler.push(Kind::Call { ns: 1000, class: *class });
            simpler.push(Kind::Call { ns: round(*ns), class: CallClass::Send });
        }
        _ => {}
    }
    simpler
}

fn simplify_machine(best: &mut Case, fails: &mut impl FnMut(&Case) -> bool) {
    let changes: [fn(&mut crate::simulate::Machine); 5] = [
        |machine| machine.has_outsider = false,
        |machine| machine.max_wake_up = 0,
        |machine| machine.is_first_come = true,
        |machine| machine.reports_ends_late = true,
        |machine| machine.threads = (machine.threads - 1).max(1),
    ];
    for change in changes {
        let mut simpler = best.clone();
        change(&mut simpler.machine);
        keep_if(best, simpler, fails);
    }
}
