//! The time of each thread by what `per_thread` has: in regions and what it waited there, in serial code, and with nothing to do.

use std::collections::{BTreeMap, BTreeSet};

use super::accounting::intervals;
use crate::callback::Callback;
use crate::program::Ns;
use crate::run::{Run, team_at};

/// Times of a thread, and its tasks, by the names of the fields.
pub type Times = BTreeMap<&'static str, Ns>;

/// All threads.
pub fn threads(run: &Run) -> Vec<Times> {
    let of_thread = |(thread, intervals): (usize, &Vec<super::accounting::Interval>)| {
        let mut times = Times::new();
        let fields = ["parallel_ns", "working_ns", "barriers_ns", "taskwaits_ns", "locks_ns", "wake_up_ns"];
        for field in fields.iter().chain(&["serial_ns", "idle_ns", "unknown_ns", "tasks"]) {
            times.insert(field, 0);
        }
        let mut add = |field: &'static str, ns: Ns| *times.entry(field).or_default() += ns;
        for interval in intervals {
            let ns = interval.end - interval.begin;
            if team_at(run, thread, interval.begin) == 0 {
                add(if thread == 0 { "serial_ns" } else { "idle_ns" }, ns);
                continue;
            }
            add("parallel_ns", ns);
            add(field_of(interval.cause), ns);
        }
        add("tasks", begun(run, thread));
        times
    };
    intervals(run).iter().enumerate().map(of_thread).collect()
}

/// The field that has the time of a cause in a region.
pub fn field_of(cause: &str) -> &'static str {
    match cause {
        "imbalance" | "barrier" | "task_starvation" | "join" => "barriers_ns",
        "task_wait" => "taskwaits_ns",
        "critical" | "lock" | "ordered" => "locks_ns",
        "fork" => "wake_up_ns",
        _ => "working_ns",
    }
}

/// How many explicit tasks a thread has begun.
fn begun(run: &Run, thread: usize) -> u64 {
    let mut callbacks: Vec<_> = run.callbacks.iter().collect();
    callbacks.sort_by_key(|(time, ..)| *time);
    let mut created = BTreeSet::new();
    for (.., callback) in &callbacks {
        if let Callback::TaskCreate { new, flags, .. } = callback
            && !flags.is_taskwait
        {
            created.insert(*new);
        }
    }
    let mut begun = 0;
    for (_, of, callback) in callbacks {
        if let Callback::TaskSchedule { next: Some(next), .. } = callback
            && created.remove(next)
        {
            begun += u64::from(*of == thread);
        }
    }
    begun
}
