//! The lines of a callback as GCC's adapter and LLVM's older runtimes make them.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{flags, line, mutex, sync, work};
use crate::callback::{Callback, Id, Scope, Status, Sync, Work};
use crate::program::{Access, Code, MutexKind};
use crate::run::Run;

/// The loops of which turns are taken.
pub(super) fn ordered_loops(run: &Run) -> BTreeSet<Code> {
    let of = |callback: &Callback| match callback {
        Callback::MutexAcquire { kind: MutexKind::Ordered, code, .. } => Some(code - 5),
        _ => None,
    };
    run.callbacks.iter().filter_map(|(.., callback)| of(callback)).collect()
}

/// Iterations and sections, by the place of their construct.
pub(super) fn counts(run: &Run) -> BTreeMap<Code, usize> {
    let of = |callback: &Callback| match callback {
        Callback::Work { scope: Scope::Begin, code, count, .. } => Some((*code, *count)),
        _ => None,
    };
    run.callbacks.iter().filter_map(|(.., callback)| of(callback)).collect()
}

/// The barriers of static loops, for which GCC calls the runtime as for explicit ones.
pub(super) fn barriers_of_gcc(run: &Run) -> BTreeSet<Code> {
    let ordered = ordered_loops(run);
    let of = |callback: &Callback| match callback {
        Callback::Work { kind: Work::LoopStatic, scope: Scope::Begin, code, .. } => Some(*code),
        _ => None,
    };
    let places = run.callbacks.iter().filter_map(|(.., callback)| of(callback));
    places.filter(|place| !ordered.contains(place)).map(|place| place + 3).collect()
}

/// What GCC's code does not say of a thread's tasks, and the adapter keeps.
#[derive(Default)]
pub(super) struct Singles {
    /// Ends of single regions that are not reported yet, by task.
    open: BTreeMap<Id, Callback>,
    /// Tasks whose last construct was a single region.
    last: BTreeSet<Id>,
    /// Barriers that are taken for those of single regions.
    barriers: BTreeSet<(Id, Code)>,
}

/// The lines of a callback as the adapter makes it. GCC's code says how many iterations there are. It calls the runtime alike for explicit
/// barriers and for those of static loops and of single regions. One that follows a single region is taken for its own. The end of a
/// single region comes with the next construct.
pub(super) fn lines_of_gcc(
    callback: &Callback,
    explicit: &BTreeSet<Code>,
    counts: &BTreeMap<Code, usize>,
    singles: &mut Singles,
) -> Vec<String> {
    let mut of_gcc = callback.clone();
    let mut ended = None;
    match &mut of_gcc {
        Callback::Work { kind: Work::SingleExecutor, scope: Scope::End, of, .. } => {
            singles.open.insert(of.task, callback.clone());
            return vec![];
        }
        Callback::Work { kind, scope, of, code, count } => {
            ended = singles.open.remove(&of.task);
            if matches!(kind, Work::SingleExecutor | Work::SingleOther) {
                singles.last.insert(of.task);
            } else if *scope == Scope::Begin {
                singles.last.remove(&of.task);
            }
            if *scope == Scope::End {
                let known = counts.get(code).or(counts.get(&(*code - 1)));
                *count = known.copied().unwrap_or(*count);
            }
        }
        Callback::SyncRegion { kind, scope: at, of, code }
        | Callback::SyncWait { kind, scope: at, of, code } => {
            let is_barrier = !matches!(kind, Sync::Taskwait | Sync::Taskgroup);
            if is_barrier && *at == Scope::Begin {
                ended = singles.open.remove(&of.task);
            }
            let is_explicit = *kind == Sync::ExplicitBarrier || explicit.contains(code);
            if is_barrier && is_explicit {
                // The first event of four that each barrier has, and the last.
                let is_region = matches!(callback, Callback::SyncRegion { .. });
                if is_region && *at == Scope::Begin && singles.last.remove(&of.task) {
                    singles.barriers.insert((of.task, *code));
                }
                let is_of_single = singles.barriers.contains(&(of.task, *code));
                if is_of_single && is_region && *at == Scope::End {
                    singles.barriers.remove(&(of.task, *code));
                }
                let text = line(callback);
                let (begin, end) = text.split_once("kind=").unwrap_or((&text, ""));
                let (_, end) = end.split_once(' ').unwrap_or(("", end));
                let number = if is_of_single { 8 } else { 1 };
                let own = format!("{begin}kind={number} {end}");
                return ended.iter().map(line).chain([own]).collect();
            }
            if is_barrier && *at == Scope::Begin {
                singles.last.remove(&of.task);
            }
        }
        _ => {}
    }
    ended.iter().chain([&of_gcc]).map(line).collect()
}

/// The region of each implicit task.
pub(super) fn regions_of_members(run: &Run) -> BTreeMap<Id, Id> {
    let of = |callback: &Callback| match callback {
        Callback::ImplicitTask { scope: Scope::Begin, parallel: Some(parallel), task, .. } => {
            Some((*task, *parallel))
        }
        _ => None,
    };
    run.callbacks.iter().filter_map(|(.., callback)| of(callback)).collect()
}

/// The line of a callback as LLVM 9.0 makes it.
pub(super) fn line_of_llvm_9(callback: &Callback) -> String {
    let text = line(callback);
    let kind = |from: &str, to: u32| text.replacen(&format!("kind={from} "), &format!("kind={to} "), 1);
    match callback {
        Callback::ParallelBegin { .. } | Callback::ParallelEnd { .. } => format!("{text} flags=2"),
        Callback::Work { kind: of @ (Work::LoopStatic | Work::LoopDynamic | Work::LoopGuided), .. } => {
            kind(work(*of), 1)
        }
        Callback::SyncRegion { kind: of @ (Sync::WorksharingBarrier | Sync::ParallelBarrier), .. }
        | Callback::SyncWait { kind: of @ (Sync::WorksharingBarrier | Sync::ParallelBarrier), .. } => {
            kind(sync(*of), 2)
        }
        _ => text,
    }
}

/// The line of a callback in the form in which `tr4-stable` was recorded.
pub(super) fn line_of_tr4(callback: &Callback, regions: &BTreeMap<Id, Id>) -> String {
    let text = line_of_draft(callback);
    let without_place = || text.split(" code=").next().unwrap_or_default().to_owned();
    match callback {
        Callback::ParallelBegin { .. } | Callback::ParallelEnd { .. } => {
            format!("{} flags=1", without_place())
        }
        // The end of the thread that encountered the region names it.
        Callback::ImplicitTask { scope: Scope::End, task, index: 0, .. } => {
            let region = regions.get(task).map_or("-".to_owned(), Id::to_string);
            text.replace("parallel=-", &format!("parallel={region}"))
        }
        Callback::SyncRegion { .. } | Callback::SyncWait { .. } => without_place(),
        Callback::TaskCreate { flags: bits, .. } => {
            text.replace(&format!("flags={}", flags(*bits)), "flags=3")
        }
        _ => text,
    }
}

/// The line of a callback with the numbers of TR6, in the form in which LLVM 6.0 was recorded.
pub(super) fn line_of_draft(callback: &Callback) -> String {
    let text = line(callback);
    let kind = |from: &str, to: u32| text.replacen(&format!("kind={from} "), &format!("kind={to} "), 1);
    match callback {
        Callback::InitialTask(_) => "task_create task=- new=1 flags=1".to_owned(),
        Callback::ParallelBegin { .. } | Callback::ParallelEnd { .. } => format!("{text} flags=2"),
        Callback::ImplicitTask { .. } => text.replace(" flags=2", " flags=0"),
        Callback::Work { kind: of @ (Work::LoopStatic | Work::LoopDynamic | Work::LoopGuided), .. } => {
            kind(work(*of), 1)
        }
        Callback::SyncRegion { kind: of, .. } | Callback::SyncWait { kind: of, .. } => {
            let number = match of {
                Sync::ExplicitBarrier | Sync::WorksharingBarrier | Sync::ParallelBarrier => 1,
                Sync::Taskwait => 2,
                Sync::Taskgroup => 3,
            };
            kind(sync(*of), number)
        }
        Callback::MutexAcquire { kind: of, .. }
        | Callback::MutexAcquired { kind: of, .. }
        | Callback::MutexReleased { kind: of, .. } => {
            let number = match of {
                MutexKind::Lock => 0x11,
                MutexKind::NestLock => 0x12,
                MutexKind::Critical => 0x13,
                MutexKind::Ordered => 0x20,
            };
            kind(mutex(*of), number)
        }
        Callback::TaskSchedule { status: Status::Switch, .. } => text.replace("status=switch", "status=4"),
        Callback::Dependences { task, list } => {
            // The numbers of `in` and `out` are exchanged.
            let exchanged = |access| match access {
                Access::In => Access::Out,
                Access::Out => Access::In,
                other => other,
            };
            let list = list.iter().map(|(access, variable)| (exchanged(*access), *variable)).collect();
            line(&Callback::Dependences { task: *task, list })
        }
        _ => text,
    }
}
