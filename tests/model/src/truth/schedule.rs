//! How long a program takes on another number of threads: it is simulated again.

use crate::program::{Kind, Ns, Program, Schedule, Statement};
use crate::simulate::{Machine, simulate};
use crate::truth::accounting::{Part, accounting};
use crate::truth::path;

/// The wall time that a prediction for a number of threads may say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The least.
    pub least: Ns,
    /// The most; `None` where nobody knows.
    pub most: Option<Ns>,
}

/// `program` with `threads` in each region that has as many as the widest one, and with one thread in each region where there is one.
pub fn with_threads(program: &Program, threads: usize) -> Program {
    fn change(body: &mut [Statement], from: usize, to: usize) {
        for statement in body {
            if let Kind::Parallel { threads, .. } = &mut statement.kind
                && (*threads == from || to == 1)
            {
                *threads = to;
            }
            change(statement.body_mut().map_or(&mut [], Vec::as_mut_slice), from, to);
        }
    }
    let mut changed = program.clone();
    let widest = program.widest();
    change(&mut changed.body, widest, threads);
    changed
}

/// Whether each thread's part of the work is the same in every execution: there are no tasks, and no chunks for whoever comes.
pub fn is_fixed(program: &Program) -> bool {
    !program.has(|kind| match kind {
        Kind::Task(_) | Kind::Taskloop { .. } | Kind::Single { .. } | Kind::Masked { .. } => true,
        Kind::Exclusive { .. } | Kind::Doacross { .. } | Kind::Ordered { .. } => true,
        Kind::For { schedule, .. } => matches!(schedule, Schedule::Dynamic(_) | Schedule::Guided),
        _ => false,
    })
}

/// What `program` takes on `threads`. Where the schedule is fixed, within 5 % of a simulation; else by the bounds of any schedule.
pub fn bounds(program: &Program, machine: &Machine, threads: usize) -> Option<Bounds> {
    let changed = with_threads(program, threads);
    let machine = Machine {
        threads: machine.threads.max(threads) + machine.threads,
        is_first_come: true,
        max_wake_up: 0,
        ..machine.clone()
    };
    let run = simulate(&changed, &machine)?;
    // One thread does all that there is, in whatever order.
    if threads == 1 || is_fixed(program) {
        let slack = run.end / 20 + 50;
        return Some(Bounds { least: run.end.saturating_sub(slack), most: Some(run.end + slack) });
    }
    let whole = accounting(&run, &Part::whole(&run));
    let regions = path::regions(&run);
    let in_regions: Ns = regions.values().map(|region| region.work).sum();
    let work: Ns = ["useful", "mpi", "mpi_other"].iter().map(|cause| whole.of(cause)).sum();
    let serial = work.saturating_sub(in_regions);
    let least: Ns = regions.values().map(|region| (region.work / region.threads).max(region.span)).sum();
    let most: Ns = regions.values().map(|region| region.work / region.threads + region.span).sum();
    let holds = program
        .has(|kind| matches!(kind, Kind::Exclusive { .. } | Kind::Ordered { .. } | Kind::Doacross { .. }));
    let slack = run.end / 50 + 200;
    Some(Bounds {
        least: (serial + least).saturating_sub(slack),
        most: (!holds).then_some(serial + most + slack),
    })
}
