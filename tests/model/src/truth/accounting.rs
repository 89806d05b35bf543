//! Where the threads' time went: the intervals of each thread by cause, summed up.

use std::collections::BTreeMap;

use crate::program::{Code, MutexKind, Ns};
use crate::run::{Activity, Barrier, Run, Span};

/// A time of a thread with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Interval {
    pub begin: Ns,
    pub end: Ns,
    /// As `docs/analysis.md` names it; empty where the thread has nothing to do.
    pub cause: &'static str,
    pub place: Code,
    pub construct: Code,
    pub team: usize,
}

/// The part of a run that is looked at.
#[derive(Clone, Debug)]
pub struct Part {
    /// The time from the first to before the second.
    pub window: (Ns, Ns),
    /// Only these threads; all where there are none.
    pub threads: Vec<usize>,
}

impl Part {
    /// The whole of `run`.
    pub fn whole(run: &Run) -> Part {
        Part { window: (0, run.end), threads: vec![] }
    }

    fn has(&self, thread: usize) -> bool {
        self.threads.is_empty() || self.threads.contains(&thread)
    }
}

/// Thread time by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// N: the most threads that were busy at one time, and at least 1.
    pub threads: u64,
    /// T.
    pub duration: Ns,
    /// N x T by cause.
    pub causes: BTreeMap<&'static str, Ns>,
    /// What of it was the time of a thread, by thread.
    pub by_thread: Vec<BTreeMap<&'static str, Ns>>,
}

impl Accounting {
    /// The time of a cause.
    pub fn of(&self, cause: &str) -> Ns {
        self.causes.get(cause).copied().unwrap_or(0)
    }

    /// The useful time of the busiest thread.
    pub fn largest(&self) -> Ns {
        let useful = self.by_thread.iter().map(|own| own.get("useful").copied().unwrap_or(0));
        useful.max().unwrap_or(0)
    }
}

/// The time in which both are.
pub fn overlap(one: (Ns, Ns), other: (Ns, Ns)) -> Ns {
    one.1.min(other.1).saturating_sub(one.0.max(other.0))
}

/// Each thread's time by cause, without gaps.
pub fn intervals(run: &Run) -> Vec<Vec<Interval>> {
    let of_thread = |spans: &Vec<Span>| spans.iter().flat_map(|span| split(run, span)).collect();
    let mut intervals: Vec<Vec<Interval>> = run.spans.iter().map(of_thread).collect();
    // Helpers are not in N x T.
    for own in intervals.iter_mut().skip(run.helpers.start) {
        own.clear();
    }
    intervals
}

fn split(run: &Run, span: &Span) -> Vec<Interval> {
    let doing = span.doing;
    let cause = match doing.activity {
        Activity::Barrier(number) => {
            return split_barrier(run, span, &run.teams[doing.team].barriers[number]);
        }
        Activity::Idle => "",
        Activity::Useful => "useful",
        Activity::Fork => "fork",
        Activity::Join => "join",
        Activity::TaskWait => "task_wait",
        Activity::Mutex(MutexKind::Critical, _) => "critical",
        Activity::Mutex(MutexKind::Lock | MutexKind::NestLock, _) => "lock",
        Activity::Mutex(MutexKind::Ordered, _) => "ordered",
        Activity::Reduction => "reduction",
        Activity::Target => "target",
        Activity::Call(class) if class.is_communication() => "mpi",
        Activity::Call(_) => "mpi_other",
    };
    let (begin, end) = (span.begin, span.end);
    vec![Interval { begin, end, cause, place: doing.place, construct: doing.construct, team: doing.team }]
}

/// A wait at a barrier: for members that have not arrived, then for tasks that others run, then for the barrier itself.
fn split_barrier(run: &Run, span: &Span, barrier: &Barrier) -> Vec<Interval> {
    let team = span.doing.team;
    let arrived = barrier.all_arrived.unwrap_or(span.end).clamp(span.begin, span.end);
    let over = barrier.released.unwrap_or(span.end).clamp(arrived, span.end);
    let (mut times, mut running) = (vec![span.begin, arrived, over, span.end], 0);
    let changes = &run.teams[team].running;
    times.extend(changes.iter().map(|(time, _)| *time).filter(|time| (arrived..over).contains(time)));
    times.sort_unstable();
    times.dedup();
    // The last task may end long after this part of the wait.
    let released = barrier.released.unwrap_or(Ns::MAX);
    let all_arrived = barrier.all_arrived.unwrap_or(0);
    let ends = changes.iter().filter(|(time, by)| *by < 0 && *time <= released && *time > all_arrived);
    let last_task = ends.map(|(time, _)| *time).max().unwrap_or(all_arrived);
    let mut changes = changes.iter().peekable();
    let mut parts = Vec::new();
    for pair in times.windows(2) {
        let (begin, end) = (pair[0], pair[1]);
        while let Some((_, by)) = changes.next_if(|(time, _)| *time <= begin) {
            running += by;
        }
        let cause = if end <= arrived {
            "imbalance"
        } else if begin < over && running > 0 {
            "task_starvation"
        } else if barrier.is_last && begin >= last_task {
            "join"
        } else {
            "barrier"
        };
        let (place, construct) = (span.doing.place, span.doing.construct);
        parts.push(Interval { begin, end, cause, place, construct, team });
    }
    parts
}

/// N x T of a part, by cause.
pub fn accounting(run: &Run, part: &Part) -> Accounting {
    let mut accounting = Accounting { duration: overlap(part.window, (0, run.end)), ..Accounting::default() };
    // Changes of the number of busy threads, of that of open regions, and of that of MPI calls.
    let mut changes: BTreeMap<Ns, (i64, i64, i64)> = BTreeMap::new();
    let mut change = |begin: Ns, end: Ns, (threads, regions, calls): (i64, i64, i64)| {
        let (begin, end) = (begin.max(part.window.0), end.min(part.window.1));
        if begin < end {
            let at = changes.entry(begin).or_default();
            *at = (at.0 + threads, at.1 + regions, at.2 + calls);
            let at = changes.entry(end).or_default();
            *at = (at.0 - threads, at.1 - regions, at.2 - calls);
        }
    };
    for (thread, intervals) in intervals(run).iter().enumerate() {
        let mut own = BTreeMap::new();
        let in_calls = intervals.iter().filter(|interval| matches!(interval.cause, "mpi" | "mpi_other"));
        // Also those of threads that are not looked at.
        in_calls.for_each(|call| change(call.begin, call.end, (0, 0, 1)));
        for interval in intervals.iter().filter(|interval| part.has(thread) && !interval.cause.is_empty()) {
            let ns = overlap((interval.begin, interval.end), part.window);
            change(interval.begin, interval.end, (1, 0, 0));
            if ns > 0 {
                *own.entry(interval.cause).or_default() += ns;
                *accounting.causes.entry(interval.cause).or_default() += ns;
            }
        }
        accounting.by_thread.push(own);
    }
    for team in run.teams.iter().skip(1) {
        change(team.begin, team.end, (0, 1, 0));
    }
    changes.entry(part.window.1.min(run.end)).or_default();
    accounting.threads = 1;
    let mut busy = 0;
    for (threads, ..) in changes.values() {
        busy += threads;
        accounting.threads = accounting.threads.max(busy as u64);
    }
    let (mut busy, mut open, mut calls, mut since) = (0, 0, 0, part.window.0);
    for (time, (threads, regions, in_calls)) in &changes {
        let rest = (accounting.threads - busy as u64) * (time - since);
        if rest > 0 {
            let cause = match (open > 0, calls > 0) {
                (true, _) => "narrow_team",
                (false, true) => "idle_in_mpi",
                (false, false) => "serial",
            };
            *accounting.causes.entry(cause).or_default() += rest;
        }
        (busy, open, calls, since) = (busy + threads, open + regions, calls + in_calls, *time);
    }
    accounting
}
