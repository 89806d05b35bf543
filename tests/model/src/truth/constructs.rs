//! What `constructs` has: how often each construct was there, for how long, and what was waited in it.

use std::collections::BTreeMap;

use super::accounting::{Interval, intervals, overlap};
use super::threads::field_of;
use crate::callback::{Callback, Scope, Sync, Work};
use crate::program::{Code, MutexKind, Ns};
use crate::run::{Run, team_at};

/// How often, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Construct {
    pub count: u64,
    pub total: Ns,
    /// Of each.
    pub durations: Vec<Ns>,
    /// What the thread waited in it, or in what is inside.
    pub waiting: Ns,
    /// Chunks of dynamic and guided loops, their iterations, and the time of the members that got some.
    pub chunks: u64,
    pub iterations: u64,
    pub chunks_time: Ns,
}

impl Construct {
    /// The duration that `percent` of them do not exceed.
    pub fn quantile(&self, percent: usize) -> Ns {
        let mut sorted = self.durations.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or(0)
    }
}

/// When a construct that has not ended began, and its chunks so far with their iterations.
type Open = (Ns, (u64, u64));

/// The constructs by name and place.
pub fn constructs(run: &Run) -> BTreeMap<(&'static str, Code), Construct> {
    let mut constructs: BTreeMap<(&'static str, Code), Construct> = BTreeMap::new();
    let intervals = intervals(run);
    let mut add = |name, place, thread: usize, begin: Ns, end: Ns, chunks: (u64, u64)| {
        let construct = constructs.entry((name, place)).or_default();
        construct.count += 1;
        construct.total += end - begin;
        construct.durations.push(end - begin);
        construct.waiting += intervals.get(thread).map_or(0, |own| waited(own, (begin, end)));
        construct.chunks += chunks.0;
        construct.iterations += chunks.1;
        construct.chunks_time += if chunks.0 > 0 { end - begin } else { 0 };
    };
    let none = (0, 0);
    for team in run.teams.iter().skip(1) {
        add("parallel", team.place, team.members[0], team.begin, team.end, none);
    }
    for hold in &run.holds {
        match hold.kind {
            MutexKind::Critical => add("critical", hold.place, hold.thread, hold.begin, hold.end, none),
            MutexKind::Ordered => add("ordered", hold.place, hold.thread, hold.begin, hold.end, none),
            MutexKind::Lock | MutexKind::NestLock => {}
        }
    }
    // Also a thread outside of OpenMP.
    for thread in 0..=run.spans.len() {
        let mut own: Vec<_> = run.callbacks.iter().filter(|(_, of, _)| *of == thread).collect();
        own.sort_by_key(|(time, ..)| *time);
        let mut open: BTreeMap<(&'static str, Code, u64), Open> = BTreeMap::new();
        for (time, _, callback) in own {
            if let Callback::Chunk { of, iterations, .. } = callback {
                let loops = open.iter_mut().filter(|(key, _)| key.0 == "for" && key.2 == of.task);
                for (_, (_, chunks)) in loops {
                    (chunks.0, chunks.1) = (chunks.0 + 1, chunks.1 + *iterations as u64);
                }
            }
            let Some((scope, name, place, task)) = named(callback) else {
                continue;
            };
            match scope {
                Scope::Begin => {
                    open.insert((name, place, task), (*time, none));
                }
                Scope::End => {
                    // Loops end at another address than they begin at, and barriers of workers have none.
                    let key = open.keys().rev().find(|(of, begin, own)| {
                        (*of, *own) == (name, task) && (place == 0 || place - begin <= 1)
                    });
                    if let Some(key) = key.copied()
                        && let Some((begin, chunks)) = open.remove(&key)
                    {
                        // What workers report late ended with the region.
                        let team = team_at(run, thread, begin);
                        let end = if team == 0 { *time } else { (*time).min(run.teams[team].end) };
                        let place = if key.1 == 0 { run.teams[team].place } else { key.1 };
                        let is_static = matches!(callback, Callback::Work { kind: Work::LoopStatic, .. });
                        add(name, place, thread, begin, end, if is_static { none } else { chunks });
                    }
                }
            }
        }
    }
    constructs
}

/// How long a thread waits in regions within a time.
fn waited(intervals: &[Interval], within: (Ns, Ns)) -> Ns {
    let is_wait =
        |interval: &&Interval| !interval.cause.is_empty() && field_of(interval.cause) != "working_ns";
    let waits = intervals.iter().filter(is_wait);
    waits.map(|wait| overlap((wait.begin, wait.end), within)).sum()
}

/// The name of all MPI functions.
pub const MPI_CALL: &str = "MPI call";

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
        Callback::Call { scope, code, .. } => Some((*scope, MPI_CALL, *code, 0)),
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
    /// By how much the longest of each visit works longer than the mean, all together.
    pub imbalance: Ns,
}

/// By place.
pub fn members(run: &Run) -> BTreeMap<Code, Members> {
    let mut members: BTreeMap<Code, Members> = BTreeMap::new();
    let intervals = intervals(run);
    for team in run.teams.iter().skip(1) {
        let of_place = members.entry(team.place).or_default();
        let ns = team.end - team.begin;
        let (mut longest, mut worked) = (0, 0);
        for member in &team.members {
            let waited = waited(&intervals[*member], (team.begin, team.end));
            longest = longest.max(ns - waited);
            worked += ns - waited;
            of_place.members += 1;
            of_place.members_ns += ns;
            of_place.members_waiting += waited;
        }
        of_place.longest += longest;
        of_place.imbalance += longest - worked / team.members.len().max(1) as Ns;
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
