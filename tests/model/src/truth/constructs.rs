//! What `constructs` has: how often each construct was there, for how long, and what was waited in it.

use std::collections::BTreeMap;

use super::accounting::{intervals, overlap};
use super::threads::field_of;
use crate::callback::{Callback, Scope, Sync, Work};
use crate::program::{Code, MutexKind, Ns};
use crate::run::{Run, team_at};

/// How often, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Construct {
    pub count: u64,
    pub total: Ns,
}

/// The constructs by name and place.
pub fn constructs(run: &Run) -> BTreeMap<(&'static str, Code), Construct> {
    let mut constructs: BTreeMap<(&'static str, Code), Construct> = BTreeMap::new();
    let mut add = |name, place, begin: Ns, end: Ns| {
        let construct = constructs.entry((name, place)).or_default();
        construct.count += 1;
        construct.total += end - begin;
    };
    for team in run.teams.iter().skip(1) {
        add("parallel", team.place, team.begin, team.end);
    }
    for hold in &run.holds {
        match hold.kind {
            MutexKind::Critical => add("critical", hold.place, hold.begin, hold.end),
            MutexKind::Ordered => add("ordered", hold.place, hold.begin, hold.end),
            MutexKind::Lock | MutexKind::NestLock => {}
        }
    }
    for thread in 0..run.spans.len() {
        let mut own: Vec<_> = run.callbacks.iter().filter(|(_, of, _)| *of == thread).collect();
        own.sort_by_key(|(time, ..)| *time);
        let mut open: BTreeMap<(&'static str, Code, u64), Ns> = BTreeMap::new();
        for (time, _, callback) in own {
            let Some((scope, name, place, task)) = named(callback) else {
                continue;
            };
            match scope {
                Scope::Begin => {
                    open.insert((name, place, task), *time);
                }
                Scope::End => {
                    // Loops end at another address than they begin at, and barriers of workers have none.
                    let key = open.keys().rev().find(|(of, begin, own)| {
                        (*of, *own) == (name, task) && (place == 0 || place - begin <= 1)
                    });
                    if let Some(key) = key.copied()
                        && let Some(begin) = open.remove(&key)
                    {
                        // What workers report late ended with the region.
                        let team = team_at(run, thread, begin);
                        let end = if team == 0 { *time } else { (*time).min(run.teams[team].end) };
                        let place = if key.1 == 0 { run.teams[team].place } else { key.1 };
                        add(name, place, begin, end);
                    }
                }
            }
        }
    }
    constructs
}

/// Whether a callback begins or ends a construct, its name and place, and the task that it is in.
fn named(callback: &Callback) -> Option<(Scope, &'static str, Code, u64)> {
    match callback {
        Callback::Work { kind, scope, of, code, .. } => {
            let name = match kind {
                Work::LoopStatic | Work::LoopDynamic | Work::LoopGuided => "for",
                Work::Sections => "sections",
                // As with loops, each member counts.
                Work::SingleExecutor | Work::SingleOther => "single",
                Work::Taskloop => "taskloop",
            };
            Some((*scope, name, *code, of.task))
        }
        Callback::SyncRegion { kind, scope, of, code } => {
            let name = match kind {
                Sync::ExplicitBarrier => "barrier",
                Sync::WorksharingBarrier | Sync::ParallelBarrier => "implicit barrier",
                Sync::Taskwait => "taskwait",
                Sync::Taskgroup => "taskgroup",
            };
            Some((*scope, name, *code, of.task))
        }
        Callback::Reduction { scope, of, code } => Some((*scope, "reduction", *code, of.task)),
        Callback::Masked { scope, of, code } => Some((*scope, "masked", *code, of.task)),
        Callback::Target { scope, task, code, .. } => Some((*scope, "target", *code, *task)),
        _ => None,
    }
}

/// The members of all visits of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the fields of `constructs`")]
pub struct Members {
    pub members: u64,
    pub members_ns: Ns,
    pub members_waiting: Ns,
    pub longest: Ns,
}

/// By place.
pub fn members(run: &Run) -> BTreeMap<Code, Members> {
    let mut members: BTreeMap<Code, Members> = BTreeMap::new();
    let intervals = intervals(run);
    for team in run.teams.iter().skip(1) {
        let of_place = members.entry(team.place).or_default();
        let ns = team.end - team.begin;
        let mut longest = 0;
        for member in &team.members {
            let waits = intervals[*member]
                .iter()
                .filter(|interval| !interval.cause.is_empty() && field_of(interval.cause) != "working_ns");
            let waited = waits.map(|wait| overlap((wait.begin, wait.end), (team.begin, team.end)));
            let waited: Ns = waited.sum();
            longest = longest.max(ns - waited);
            of_place.members += 1;
            of_place.members_ns += ns;
            of_place.members_waiting += waited;
        }
        of_place.longest += longest;
    }
    members
}

/// Useful time by the innermost construct: what `self_ns` of all constructs at a place has together.
pub fn own(run: &Run) -> BTreeMap<Code, Ns> {
    let mut own: BTreeMap<Code, Ns> = BTreeMap::new();
    for interval in intervals(run).iter().flatten().filter(|interval| interval.cause == "useful") {
        *own.entry(interval.construct).or_default() += interval.end - interval.begin;
    }
    own
}
