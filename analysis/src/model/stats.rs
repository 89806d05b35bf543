//! A timeline in numbers: where the parallel time went, per construct, thread and process.
//!
//! ```text
//! timeline --> Collector (a Sink) --> Stats --> table, JSON
//! ```
//!
//! Times of constructs are of threads: what two threads spend side by side counts twice. A thread *waits* at barriers, for
//! tasks, for locks, and for the runtime to wake it up. Of the rest of its time in a parallel region it *works*. Outside of
//! parallel regions it runs the program's *serial* part, or is *idle*. At each moment it does one of these, so that they add
//! up, to the nanosecond, to the time that its process lived.

use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use omptrace_timeline::Reports;
use omptrace_timeline::model::ThreadRole;

use crate::constructs::counters::CounterStats;
use crate::constructs::functions::{FunctionStats, SampledTime};
use crate::constructs::ranges::RangeStats;
use crate::constructs::steps::Steps;
use crate::constructs::thread_times::Account;
use crate::devices::DeviceUse;
use crate::model::accounting::Accounting;
use crate::model::answers::{Answers, Efficiency};
use crate::model::place::Place;
use crate::model::process_stats::ProcessStats;
use crate::model::sum::add;
use crate::model::sum_macro::sums;
use crate::overview::ranks::Ranks;
use crate::summary::static_str::{self, Word};

/// Numbers of one timeline, made of one or more traces.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stats {
    /// Where the threads' time went, and why.
    #[serde(flatten)]
    pub answers: Answers,
    /// The part of the run that was analysed; `None` where that is all of it.
    pub analysed: Option<Analysed>,
    /// The user's phases, each analysed on its own, the longest first; and the time in which recording was on, where it was switched.
    pub phases: Vec<PhaseStats>,
    /// The tree of the ranges that the program named by NVTX, ITT, Kokkos Tools, OpenACC or rocTX: each before those inside, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RangeStats>,
    /// The time steps; `None` where no range repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
    /// The MPI ranks beside each other; `None` where there are no two.
    pub ranks: Option<Ranks>,
    /// The processes, in the timeline's order.
    pub processes: Vec<ProcessStats>,
    /// The constructs of all processes, those with the most time of their own first.
    pub constructs: Vec<ConstructStats>,
    /// The time of all samples; `None` where there are none.
    pub sampling: Option<SampledTime>,
    /// Why there are no samples; `None` where there are some.
    pub no_samples: Option<String>,
    /// The functions that samples were taken in, those with the most time of their own first.
    pub functions: Vec<FunctionStats>,
    /// What threads counted in each construct, those in which they were longest first.
    pub counters: Vec<CounterStats>,
    /// The counters that are not there, and why; also why there are none at all.
    pub not_counted: Vec<String>,
    /// The threads, in the timeline's order.
    #[serde(rename = "per_thread")]
    pub threads: Vec<ThreadStats>,
    /// The locks that were held longest, the longest first.
    pub locks: Vec<LockStats>,
    /// Use of devices.
    pub device_use: Vec<DeviceUse>,
    /// The operations of devices, by queue, the longest first.
    pub devices: Vec<DeviceStats>,
    /// Notes about missing or repaired numbers.
    pub notes: Vec<String>,
}

/// The part of a run that was analysed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Analysed {
    /// The begin of the window, in nanoseconds since the timeline's start; `None` where there is no window, as for the next.
    pub window_begin_ns: Option<i64>,
    /// Its end; `None` also where it is open.
    pub window_end_ns: Option<i64>,
    /// The phase.
    pub phase: Option<String>,
    /// The first of the selected time steps; `None` where none were selected, as for the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_step: Option<u64>,
    /// The last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_step: Option<u64>,
    /// The threads, as the user named them; all where there are none.
    pub threads: Vec<String>,
}

/// A phase of the user's, all instances together: the time in which a thread of any process was in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseStats {
    /// Its name.
    pub name: String,
    /// How often it began.
    pub count: u64,
    /// Its time: T.
    pub duration_ns: u64,
    /// N: the threads that were members of teams at the busiest time in it.
    pub threads: u32,
    /// N x T thread-nanoseconds by cause.
    pub accounting: Accounting,
    /// These sums as efficiencies.
    pub efficiency: Efficiency,
}

/// Things of a process that its events do not show.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// In some time, nothing was recorded.
    pub(crate) unobserved: bool,
    /// Tasks without ids were suspended.
    pub(crate) parts_of_tasks: bool,
}

/// The numbers, in words, that cannot be known of a process whose runtime reports no more than this.
pub(crate) fn unknown(reports: &Reports, seen: Seen) -> impl Iterator<Item = &'static str> {
    let rows = [
        (
            seen.unobserved,
            "the activity of threads while recording was off, and during times whose events were lost or overwritten",
        ),
        (
            seen.parts_of_tasks,
            "the number and duration of explicit tasks: tasks have no ids, so each part of a task is shown as a task of its own",
        ),
        (!reports.task_ends, "the number of explicit tasks: the runtime did not report them"),
        (
            !reports.members,
            "when threads are in parallel regions, how long regions wait for threads, and imbalance: the runtime did not report the members of teams",
        ),
        (
            !reports.barriers && !reports.barrier_waits,
            "waits at barriers: the runtime did not report them, so they count as work",
        ),
        (
            !reports.taskwaits && !reports.taskwait_waits,
            "waits in taskwaits: the runtime did not report them, so they count as work",
        ),
        (
            !reports.taskgroup_waits,
            "waits at the end of taskgroups: the runtime did not report them, so they count as work",
        ),
        (!reports.lock_waits, "waits for locks: the runtime did not report them, so they count as work"),
        (
            !reports.critical_waits,
            "waits for critical regions: the runtime did not report them, so they count as work",
        ),
        (
            !reports.inlined,
            "loops with a static schedule, masked regions, atomic updates and reductions: not visible, because GCC inlines them; their time counts as time of the enclosing region",
        ),
        (
            !reports.barrier_kinds,
            "which barriers are explicit: not visible, because GCC calls the same function for implicit barriers",
        ),
        (
            !reports.tasks,
            "explicit tasks: the runtime did not report when they run, so their time counts at the place where they ran",
        ),
    ];
    let applies = |(is_unknown, words): (bool, &'static str)| is_unknown.then_some(words);
    rows.into_iter().filter_map(applies)
}

/// Counts and times of what happens more than once.
///
/// In JSON, only the total is known of what [has no whole](Times::is_of_parts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// The numbers are of parts: nothing shows which of these belong together, as of tasks without ids.
    pub is_of_parts: bool,
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of_whole = |number: u64| (!self.is_of_parts).then_some(number);
        let mut fields = serializer.serialize_struct("Times", 5)?;
        fields.serialize_field("count", &of_whole(self.count))?;
        fields.serialize_field("total_ns", &self.total_ns)?;
        fields.serialize_field("mean_ns", &of_whole(self.mean_ns))?;
        fields.serialize_field("min_ns", &of_whole(self.min_ns))?;
        fields.serialize_field("max_ns", &of_whole(self.max_ns))?;
        fields.end()
    }
}

impl Times {
    /// One that took this long.
    pub(crate) fn add(&mut self, ns: u64) {
        let is_first = self.count == 0;
        self.add_part(ns, true);
        self.add_whole(ns, is_first);
        self.mean_ns = self.total_ns / self.count;
    }

    /// A part, of one that is new or of one that was counted.
    pub(crate) fn add_part(&mut self, ns: u64, is_new: bool) {
        self.count += u64::from(is_new);
        add(&mut self.total_ns, ns);
    }

    /// One whose parts took this long together.
    pub(crate) fn add_whole(&mut self, ns: u64, is_first: bool) {
        self.min_ns = match is_first {
            true => ns,
            false => self.min_ns.min(ns),
        };
        self.max_ns = self.max_ns.max(ns);
    }
}

/// The mark of constructs whose time is mostly the tracer's.
pub(crate) const NEAR_EVENT_COST: &str = "~";

/// Numbers of one construct at one place in the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConstructStats {
    /// Construct and place as timelines show them: `!$omp parallel @stencil.c:41`, `!$omp taskwait wait @stencil.c:60`.
    pub name: String,
    /// The kind of construct.
    pub category: &'static str,
    /// The construct that the programmer wrote, also of a wait for it, and where it is.
    #[serde(flatten)]
    pub place: Place,
    /// How often it occurred, and the times from begin to end; 0 for what has no duration.
    #[serde(flatten)]
    pub times: Times,
    /// Half of them took no longer, to a sixteenth; `None` where parts cannot be put together, as for the next.
    pub median_ns: Option<u64>,
    /// 99 of 100 took no longer.
    pub p99_ns: Option<u64>,
    /// How many took a power of two in nanoseconds or longer, and not the next one: for charts. Empty where `median_ns` is not
    /// known.
    #[serde(skip)]
    pub durations: Vec<u64>,
    /// The same of explicit tasks, of which each was whole. Left out for others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<u64>,
    /// One takes less than three of the tracer's events, on average: its time is mostly the tracer's. Left out where not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_near_event_cost: bool,
    /// The part of `total_ns` with no other construct inside.
    pub self_ns: u64,
    /// `self_ns` of one, on average; `None` where their number is unknown.
    pub self_mean_ns: Option<u64>,
    /// The part of `total_ns` in which the thread waited, here or inside. Of a parallel region, what its members waited, on
    /// average, from its begin on. `None` where it is unknown, and of what has no duration.
    pub waiting_ns: Option<u64>,
    /// The teams, of parallel regions only.
    #[serde(flatten)]
    pub team: Option<TeamStats>,
    /// How a loop is scheduled, where the runtime says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The chunks, of loops that are not static only: of static ones, runtimes report no chunk but a thread's first.
    #[serde(flatten)]
    pub of_loop: Option<LoopStats>,
}

impl ConstructStats {
    /// Takes note of what an event of the tracer's costs, in picoseconds.
    pub(crate) fn set_event_cost(&mut self, event_ps: u64) {
        let has_duration = self.times.max_ns > 0 && !self.times.is_of_parts;
        self.is_near_event_cost =
            has_duration && self.times.mean_ns.saturating_mul(1000) < event_ps.saturating_mul(3);
    }

    /// The share of the time that was spent waiting, 0 to 1.
    pub fn wait_share(&self) -> Option<f64> {
        Some(share(self.waiting_ns?, self.times.total_ns))
    }
}

/// A thread's share of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) chunks: u64,
    pub(crate) iterations: u64,
    pub(crate) ns: u64,
}

sums! {
    /// The shares of a loop's threads.
    LoopStats of Share {
        "Chunks" chunks "chunks" = |share| share.chunks;
        "Iterations in these chunks" iterations "iterations" = |share| share.iterations;
        "The total time of the loops with these chunks" chunks_ns "chunks_ns" = |share| share.ns;
    }
    then {
        "The mean time of a chunk" chunk_mean_ns: u64 =
            |sums| sums.chunks_ns / sums.chunks.max(1);
        "The mean number of iterations in a chunk" iterations_per_chunk: f64 =
            |sums| sums.iterations as f64 / sums.chunks.max(1) as f64;
    }
}

/// A team that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) members: u64,
    /// From the region's begin to its end, once for each member; 0 where its end was not seen, as for the next.
    pub(crate) members_ns: u64,
    pub(crate) waiting_ns: u64,
    pub(crate) working_ns: u64,
    /// The time of the member that worked longest.
    pub(crate) longest_ns: u64,
}

sums! {
    /// How well parallel regions at one place used their threads.
    TeamStats of Ended {
        "The number of members, summed over all teams" members "members" = |team| team.members;
        "The time of the regions, counted once for each member" members_ns "members_ns" =
            |team| team.members_ns;
        "Of this, the time that members waited: for their wake-up, at barriers, for tasks and for locks"
            waiting_ns "members_waiting_ns" = |team| team.waiting_ns;
        "The working time of all members" working_ns "working_ns" = |team| team.working_ns;
        "The longest working time of a member, summed over all regions" longest_ns "longest_ns" =
            |team| team.longest_ns;
        "The time that an even distribution of the work would save: the longest working time minus the mean, summed over all regions"
            imbalance_ns "imbalance_ns" =
            |team| team.longest_ns.saturating_sub(team.working_ns / team.members.max(1));
    }
    then {}
}

impl TeamStats {
    /// The share of the longest members' time that an even spread would save, 0 to 1.
    pub fn imbalance(&self) -> f64 {
        share(self.imbalance_ns, self.longest_ns)
    }
}

/// The times of a thread. What cannot be known is `None`; [`ProcessStats::unknown`] says why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadStats {
    /// Its process.
    pub process: String,
    /// The number of its process in these numbers.
    pub process_id: u32,
    /// The MPI rank of its process.
    pub rank: Option<u32>,
    /// Its name.
    pub name: String,
    /// Its number in its process: 0 for main, then the order of display.
    pub number: u32,
    /// The number of its stream in the trace.
    pub stream: u32,
    /// Its id in the operating system; 0 where that is not known.
    pub tid: u32,
    /// Its role: `main`, `worker`, `initial`, `helper` (one of the runtime's own) or `other`.
    #[serde(deserialize_with = "static_str::word")]
    pub role: Word,
    /// From the start of its process to its end: the sum of `parallel_ns`, `serial_ns`, `idle_ns` and `unknown_ns`.
    pub duration_ns: u64,
    /// Time as a member of parallel regions; nested ones count once. Of a helper: time in explicit tasks. The sum of the
    /// next five.
    pub parallel_ns: Option<u64>,
    /// The part of it in which it did not wait.
    pub working_ns: Option<u64>,
    /// Waiting at barriers.
    pub barriers_ns: Option<u64>,
    /// Waiting in taskwaits and at the end of taskgroups.
    pub taskwaits_ns: Option<u64>,
    /// Waiting for locks, critical, atomic and ordered regions.
    pub locks_ns: Option<u64>,
    /// From the begin of parallel regions until it was there.
    pub wake_up_ns: Option<u64>,
    /// Outside of parallel regions, running the program; with what it waited there.
    pub serial_ns: u64,
    /// In no parallel region, and not running the program: before it was made, between regions, after its end.
    pub idle_ns: Option<u64>,
    /// The time that is in none of these.
    pub unknown_ns: u64,
    /// Its processor time; left out where the trace does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Explicit tasks that it began; `None` where it is unknown, or only parts of them are known.
    pub tasks: Option<u64>,
    /// `taskwaits_ns`, as version 0.1.0 called it.
    pub tasks_ns: Option<u64>,
}

impl ThreadStats {
    /// Takes the times over from `account`, as far as the runtime reports what they are made of.
    pub(crate) fn set(&mut self, account: &Account, reports: &Reports, role: ThreadRole) {
        let known = |ns: u64, is_reported: bool| (is_reported || ns > 0).then_some(ns);
        // Of a thread that is always the program's, being in a region shows; of others, being a member.
        let has_place = account.unknown == 0 && (reports.members || reports.idle)
            || matches!(role, ThreadRole::Main | ThreadRole::Initial);
        self.working_ns = has_place.then_some(account.working);
        self.parallel_ns = has_place.then_some(account.parallel());
        self.idle_ns = has_place.then_some(account.idle);
        self.barriers_ns = known(account.barriers, reports.barriers || reports.barrier_waits);
        self.taskwaits_ns = known(account.taskwaits, reports.taskwaits || reports.taskwait_waits);
        self.tasks_ns = self.taskwaits_ns;
        self.locks_ns = known(account.locks, reports.lock_waits || reports.critical_waits);
        self.wake_up_ns = known(account.wake_up, reports.members);
        self.serial_ns = account.serial;
        self.tasks = self.tasks.filter(|_| reports.task_ends);
        let in_parallel = self.parallel_ns.unwrap_or_else(|| {
            let waits = [self.barriers_ns, self.taskwaits_ns, self.locks_ns, self.wake_up_ns];
            waits.into_iter().flatten().sum()
        });
        let shown = in_parallel + account.serial + self.idle_ns.unwrap_or(0);
        self.unknown_ns = self.duration_ns.saturating_sub(shown);
    }
}

/// Numbers of a lock, or of a critical or atomic region: all that have one name are one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LockStats {
    /// Its process.
    pub process: String,
    /// The number of its process in these numbers.
    pub process_id: u32,
    /// Its name, with its address; that of a lock in the timeline.
    pub name: String,
    /// Its kind: `lock`, `critical` or `atomic`.
    pub kind: &'static str,
    /// Its number: the locks of a process in the order in which they were made or first asked for.
    pub number: usize,
    /// Where it was made, or else first asked for or held.
    pub place: Option<Place>,
    /// That place as timelines show it: `omp_init_lock @locks.c:12`.
    #[serde(skip)]
    pub place_name: Option<String>,
    /// How often a thread got it. Where the runtime reports a release only, that counts.
    pub acquisitions: u64,
    /// How often another thread had it when a thread asked for it that got it; `None` where the runtime does not say.
    pub waits: Option<u64>,
    /// From asking to getting it, all together.
    pub waiting_ns: Option<u64>,
    /// How often `omp_test_lock` did not get it.
    pub failures: u64,
    /// How often and how long it was held, as far as both ends were reported; left out where they never were.
    #[serde(flatten)]
    pub times: Option<Times>,
}

/// Numbers of one kind of work of a device's queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceStats {
    /// Its process.
    pub process: String,
    /// The number of its process in these numbers.
    pub process_id: u32,
    /// The queue's name.
    pub queue: String,
    /// The operation: a kernel, a copy.
    pub name: String,
    /// How often and how long.
    #[serde(flatten)]
    pub times: Times,
}

pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
