//! A timeline in numbers: where the parallel time went, per construct and per thread.
//!
//! ```text
//! timeline --> Collector (a Sink) --> Stats --> table, JSON
//! ```
//!
//! All times are of threads: what two threads spend side by side counts twice. A thread *waits* at barriers, for tasks,
//! for locks, and for the runtime to wake it up; of the rest of its time in a parallel region it *works*.

mod collector;
mod parts;
mod table;

use omptrace_trace_format::Reader;
use serde::Serialize;

use crate::symbols::{self, Table};
use crate::timeline::{Manner, Report, replay_with};
use collector::Collector;

/// Numbers of one timeline, made of one or more traces.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stats {
    /// From the timeline's start to its last event.
    pub duration_ns: u64,
    /// The constructs of all processes, those with the most time of their own first.
    pub constructs: Vec<ConstructStats>,
    /// The threads, in the timeline's order.
    pub threads: Vec<ThreadStats>,
    /// The locks that were held longest, the longest first.
    pub locks: Vec<LockStats>,
    /// What devices did, by queue, the longest first.
    pub devices: Vec<DeviceStats>,
    /// What is missing in the numbers or was mended.
    pub notes: Vec<String>,
}

/// Counts and times of what happens more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// How often. What was cut into parts counts once.
    pub count: u64,
    /// All together; of one that is inside another of the same, as in a recursion, both.
    pub total_ns: u64,
    /// On average, each.
    pub mean_ns: u64,
    /// The shortest, all its parts together.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Adds `ns` to `sum`, which stays the greatest number where times are nonsense.
fn add(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns);
}

impl Times {
    /// One that took so long.
    fn add(&mut self, ns: u64) {
        let is_first = self.count == 0;
        self.add_part(ns, true);
        self.add_whole(ns, is_first);
    }

    /// A part, of one that is new or of one that was counted.
    fn add_part(&mut self, ns: u64, is_new: bool) {
        self.count += u64::from(is_new);
        add(&mut self.total_ns, ns);
        self.mean_ns = self.total_ns / self.count.max(1);
    }

    /// One whose parts took so long together.
    fn add_whole(&mut self, ns: u64, is_first: bool) {
        self.min_ns = match is_first {
            true => ns,
            false => self.min_ns.min(ns),
        };
        self.max_ns = self.max_ns.max(ns);
    }
}

/// Numbers of one construct at one place in the program.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ConstructStats {
    /// The construct and its place: `!$omp parallel @stencil.c:41`.
    pub name: String,
    /// The kind of construct.
    pub category: &'static str,
    /// The function that it is in; left out where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The source file; left out where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// How often it occurred, and the times from begin to end; 0 for what has no duration.
    #[serde(flatten)]
    pub times: Times,
    /// Of `total_ns`, that with no other construct inside.
    pub self_ns: u64,
    /// Of `total_ns`, that in which the thread waited, here or inside.
    pub waiting_ns: u64,
    /// Of parallel regions only.
    #[serde(flatten)]
    pub team: Option<TeamStats>,
}

impl ConstructStats {
    /// The share of the time that was spent waiting, 0 to 1.
    pub fn wait_share(&self) -> f64 {
        share(self.waiting_ns, self.times.total_ns)
    }
}

/// How well parallel regions at one place used their threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TeamStats {
    /// Members of all teams.
    pub members: u64,
    /// What the members worked.
    pub working_ns: u64,
    /// What those members worked that worked longest in their region.
    pub longest_ns: u64,
    /// What the regions were longer by than with the work spread evenly: in each, the longest less the mean.
    pub imbalance_ns: u64,
}

impl TeamStats {
    /// The share of the longest members' time that an even spread would save, 0 to 1.
    pub fn imbalance(&self) -> f64 {
        share(self.imbalance_ns, self.longest_ns)
    }
}

/// What a thread did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ThreadStats {
    /// Its process.
    pub process: String,
    /// Its name.
    pub name: String,
    /// Time as a member of parallel regions; nested ones count once.
    pub parallel_ns: u64,
    /// Of that, what it did not wait.
    pub working_ns: u64,
    /// Waiting at barriers.
    pub barriers_ns: u64,
    /// Waiting for tasks to complete.
    pub tasks_ns: u64,
    /// Waiting for locks, critical, atomic and ordered regions.
    pub locks_ns: u64,
    /// From the begin of parallel regions until it was there.
    pub wake_up_ns: u64,
    /// Explicit tasks that it began.
    pub tasks: u64,
}

/// Numbers of a lock.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LockStats {
    /// Its process.
    pub process: String,
    /// Its name.
    pub name: String,
    /// How often and how long it was held.
    #[serde(flatten)]
    pub times: Times,
}

/// Numbers of one kind of work of a device's queue.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DeviceStats {
    /// Its process.
    pub process: String,
    /// The queue's name.
    pub queue: String,
    /// What was done: a kernel, a copy.
    pub name: String,
    /// How often and how long.
    #[serde(flatten)]
    pub times: Times,
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

impl Stats {
    /// The numbers of all `inputs`, with the names that `symbols` finds. The report says what was wrong with the inputs.
    pub fn of(inputs: &[&Reader], symbols: &symbols::Options) -> (Stats, Report) {
        let mut collector = Collector::default();
        let table = |reader: &Reader| Table::of(reader, symbols);
        let manner = Manner::default();
        let report = replay_with(inputs, &table, manner, &mut collector, &mut |_| {});
        let stats = Stats {
            duration_ns: report.end.unsigned_abs(),
            ..collector.stats()
        };
        (stats, report)
    }
}
