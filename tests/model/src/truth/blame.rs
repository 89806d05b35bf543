//! Who keeps others waiting, moment by moment. At barriers, it is those that have not arrived, or run tasks. In taskwaits, it is those that
//! run tasks; at a mutex, whoever has it.

use std::collections::BTreeMap;

use super::accounting::{Part, accounting, intervals};
use crate::program::{Code, MutexKind, Ns};
use crate::run::{Activity, Doing, Hold, Run, team_at};

/// Thread time by cause and place. Parts of nanoseconds are shares of several threads.
pub type Blame = BTreeMap<(&'static str, Code), f64>;

/// What of it is charged where threads wait at barriers or for tasks.
pub fn blame(run: &Run) -> Blame {
    let mut blame = Blame::new();
    for pair in moments(run).windows(2) {
        let (begin, ns) = (pair[0], (pair[1] - pair[0]) as f64);
        let now: Vec<Option<Doing>> = run
            .spans
            .iter()
            .map(|spans| {
                let index = spans.partition_point(|span| span.end <= begin);
                spans.get(index).filter(|span| span.begin <= begin).map(|span| span.doing)
            })
            .collect();
        for team in 1..run.teams.len() {
            if (run.teams[team].begin..run.teams[team].end).contains(&begin) {
                at_barriers(run, team, &now, begin, ns, &mut blame);
                in_taskwaits(run, team, &now, ns, &mut blame);
            }
        }
        for doing in now.iter().flatten() {
            for_mutex(run, *doing, begin, ns, &mut blame);
        }
    }
    blame
}

/// The times at which anything changes.
fn moments(run: &Run) -> Vec<Ns> {
    let spans = run.spans.iter().flatten().flat_map(|span| [span.begin, span.end]);
    let barriers = run.teams.iter().flat_map(|team| &team.barriers);
    let barriers = barriers.flat_map(|barrier| [barrier.all_arrived, barrier.released]);
    let holds = run.holds.iter().flat_map(|hold| [hold.begin, hold.end]);
    let mut moments: Vec<Ns> = spans.chain(barriers.flatten()).chain(holds).collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}

fn at_barriers(run: &Run, team: usize, now: &[Option<Doing>], begin: Ns, ns: f64, blame: &mut Blame) {
    let record = &run.teams[team];
    let is_over = |number: usize| record.barriers[number].released.is_some_and(|over| over <= begin);
    let Some(number) = (0..record.barriers.len()).find(|number| !is_over(*number)) else {
        return;
    };
    let own = |member: &usize| now[*member].filter(|doing| doing.team == team);
    let waits =
        |member: &&usize| own(member).is_some_and(|doing| doing.activity == Activity::Barrier(number));
    let waiting = record.members.iter().filter(waits).count() as f64;
    if waiting == 0.0 {
        return;
    }
    let is_late = |member: &&usize| own(member).is_none_or(|doing| doing.at_barrier != Some(number));
    let helpers: Vec<usize> = run.helpers.clone().collect();
    let late: Vec<&usize> = record.members.iter().filter(is_late).collect();
    let (cause, causing) = if late.is_empty() {
        let runs = |member: &&usize| own(member).is_some_and(|doing| doing.in_task);
        // Hidden helpers run target tasks of the team.
        let helpers = helpers.iter().filter(runs);
        ("task_starvation", record.members.iter().filter(runs).chain(helpers).collect())
    } else {
        ("imbalance", late)
    };
    for member in &causing {
        // In a region inside, it is charged there, also where it has not begun as yet.
        let innermost = match team_at(run, **member, begin) {
            0 => record.place,
            innermost => run.teams[innermost].place,
        };
        // The barrier at a region's end has no place of its own.
        let known = now[**member].filter(|doing| doing.activity != Activity::Fork && doing.place > 0);
        let place = known.map_or(innermost, |doing| doing.place);
        *blame.entry((cause, place)).or_default() += ns * waiting / causing.len() as f64;
    }
}

fn in_taskwaits(run: &Run, team: usize, now: &[Option<Doing>], ns: f64, blame: &mut Blame) {
    let members = run.teams[team].members.iter();
    let own: Vec<Doing> =
        members.filter_map(|member| now[*member]).filter(|doing| doing.team == team).collect();
    let waiting: Vec<&Doing> = own.iter().filter(|doing| doing.activity == Activity::TaskWait).collect();
    let runs = |doing: &&Doing| doing.in_task && doing.activity != Activity::TaskWait;
    let helpers: Vec<Doing> =
        run.helpers.clone().filter_map(|helper| now[helper]).filter(|doing| doing.team == team).collect();
    let running: Vec<&Doing> = own.iter().chain(&helpers).filter(runs).collect();
    if running.is_empty() {
        for doing in waiting {
            *blame.entry(("task_wait", doing.place)).or_default() += ns;
        }
        return;
    }
    for doing in &running {
        let share = ns * waiting.len() as f64 / running.len() as f64;
        *blame.entry(("task_wait", doing.place)).or_default() += share;
    }
}

/// The place from which another thread has the mutex; where it is free, that from which it was held last while a region was open.
fn for_mutex(run: &Run, doing: Doing, begin: Ns, ns: f64, blame: &mut Blame) {
    let Activity::Mutex(kind, number) = doing.activity else {
        return;
    };
    let cause = match kind {
        MutexKind::Critical => "critical",
        MutexKind::Lock | MutexKind::NestLock => "lock",
        MutexKind::Ordered => "ordered",
    };
    let place = holder(run, doing, (kind, number), begin).map_or(doing.place, |hold| hold.place);
    *blame.entry((cause, place)).or_default() += ns;
}

/// Who has the mutex that a thread waits for, or had it last since the outermost region began.
fn holder(run: &Run, doing: Doing, (kind, number): (MutexKind, u64), time: Ns) -> Option<&Hold> {
    let region = &run.teams[run.outermost(doing.team)];
    let holds = run.holds.iter().filter(|hold| hold.kind == kind && hold.number == number);
    let holds = holds.filter(|hold| hold.begin <= time && hold.end >= region.begin);
    holds.max_by_key(|hold| hold.end)
}

/// A cell of `blocked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Blocked {
    pub kind: MutexKind,
    pub number: u64,
    /// `None` where nobody else has had it.
    pub holder: Option<(usize, Code)>,
    pub waiter: (usize, Code),
}

/// Who waited for whom at a mutex.
pub fn blocked(run: &Run) -> BTreeMap<Blocked, Ns> {
    let mut blocked = BTreeMap::new();
    let moments = moments(run);
    for (thread, spans) in run.spans.iter().enumerate() {
        for span in spans {
            let Activity::Mutex(kind, number) = span.doing.activity else {
                continue;
            };
            let within = moments.iter().copied().filter(|time| (span.begin..=span.end).contains(time));
            let within: Vec<Ns> = within.collect();
            for pair in within.windows(2) {
                let holder = holder(run, span.doing, (kind, number), pair[0]);
                let holder = holder.map(|hold| (hold.thread, hold.place)).filter(|(by, _)| *by != thread);
                let waiter = (thread, span.doing.place);
                *blocked.entry(Blocked { kind, number, holder, waiter }).or_default() += pair[1] - pair[0];
            }
        }
    }
    blocked
}

/// Losses that stay where they arise. Serial code is at the region behind it; after the last, at that one (`serial after`).
pub fn at_places(run: &Run) -> Blame {
    let mut blame = Blame::new();
    for (thread, intervals) in intervals(run).iter().enumerate() {
        for interval in intervals {
            let team = &run.teams[team_at(run, thread, interval.begin)];
            let is_region = matches!(interval.cause, "fork" | "join")
                || interval.cause == "barrier" && interval.place == 0;
            let place = if is_region { team.place } else { interval.place };
            let cause = match interval.cause {
                cause @ ("fork" | "join" | "barrier" | "reduction" | "target" | "mpi" | "mpi_other") => cause,
                _ => continue,
            };
            *blame.entry((cause, place)).or_default() += (interval.end - interval.begin) as f64;
        }
    }
    // What the rest of the threads lose is known between two moments at which anything changes.
    let threads = accounting(run, &Part::whole(run)).threads;
    let outermost: Vec<usize> = (1..run.teams.len()).filter(|team| run.outermost(*team) == *team).collect();
    for pair in moments(run).windows(2) {
        let now = run.spans[..run.helpers.start].iter().filter_map(|spans| {
            let index = spans.partition_point(|span| span.end <= pair[0]);
            spans.get(index).filter(|span| span.doing.activity != Activity::Idle)
        });
        let now: Vec<_> = now.collect();
        let lost = (threads - now.len() as u64) * (pair[1] - pair[0]);
        let in_calls = now.iter().filter(|span| matches!(span.doing.activity, Activity::Call(_)));
        let call = in_calls.max_by_key(|span| span.begin);
        let is_open = |team: &&usize| (run.teams[**team].begin..run.teams[**team].end).contains(&pair[0]);
        let open = outermost.iter().find(is_open);
        let next = outermost.iter().find(|team| run.teams[**team].begin > pair[0]);
        let key = match (open, call, next, outermost.last()) {
            (Some(open), ..) => ("narrow_team", run.teams[*open].place),
            (None, Some(call), ..) => ("idle_in_mpi", call.doing.place),
            (None, None, Some(next), _) => ("serial before", run.teams[*next].place),
            (None, None, None, last) => ("serial after", last.map_or(0, |last| run.teams[*last].place)),
        };
        if lost > 0 {
            *blame.entry(key).or_default() += lost as f64;
        }
    }
    blame
}
