//! A timeline in numbers: time per construct, thread and process.
//!
//! ```text
//! timeline --> Collector (a Sink) --> Stats --> table, JSON
//! ```
//!
//! Times of constructs are thread times: if two threads execute a construct at the same time, both durations count. A
//! thread *waits* at barriers, for tasks, for locks, and for the runtime to wake it up. For the rest of its time in a
//! parallel region, it *works*. Outside of parallel regions, it runs the program's *serial* part, or is *idle*. At each
//! moment a thread does exactly one of these, so the times add up, to the nanosecond, to the lifetime of its process.

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
use crate::model::job_gains::JobGains;
use crate::model::job_path::JobPath;
use crate::model::place::Place;
use crate::model::process_stats::ProcessStats;
use crate::model::rank_traffic::RankTraffic;
use crate::model::rank_waits::RankWaits;
use crate::model::sum::add;
use crate::model::sum_macro::sums;
use crate::overview::mpi_efficiency::MpiEfficiency;
use crate::overview::ranks::Ranks;
use crate::summary::static_str::{self, Word};

/// The statistics of one timeline, which consists of one or more traces.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stats {
    /// What the threads' time was spent on, and why.
    #[serde(flatten)]
    pub answers: Answers,
    /// The part of the run that was analysed; `None` if the whole run was analysed.
    pub analysed: Option<Analysed>,
    /// If the numbers are those of a small part of the run, from which the shares of the whole are estimated: this part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub based_on: Option<BasedOn>,
    /// The user's phases, each analysed separately, longest first; also the time with recording on, if recording was
    /// switched.
    pub phases: Vec<PhaseStats>,
    /// The tree of the ranges that the program named by NVTX, ITT, Kokkos Tools, OpenACC or rocTX: each range is
    /// followed by its inner ranges, longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RangeStats>,
    /// The time steps; `None` if no range repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
    /// The efficiency of the job's processes, and of the threads in each process; left out unless there are traces of
    /// all MPI ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi_efficiency: Option<MpiEfficiency>,
    /// The waits of the ranks for each other in MPI calls, and what is charged for them; left out unless there are traces of all
    /// MPI ranks, and if only some threads were analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank_waits: Option<RankWaits>,
    /// The critical path of the MPI job; left out unless there are traces of all ranks and the whole run was analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_path: Option<JobPath>,
    /// What the MPI job would gain from changes; left out for a single process, and unless the whole run was analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_gains: Option<JobGains>,
    /// The messages and collective operations of the ranks; left out unless there are traces of all MPI ranks, and if only a
    /// part of the run was analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank_traffic: Option<RankTraffic>,
    /// The comparison of MPI ranks; `None` if there are fewer than two.
    pub ranks: Option<Ranks>,
    /// The processes, in the order of the timeline.
    pub processes: Vec<ProcessStats>,
    /// The constructs of all processes, sorted by `self_ns`.
    pub constructs: Vec<ConstructStats>,
    /// The CPU time of all samples; `None` if there are no samples.
    pub sampling: Option<SampledTime>,
    /// Why there are no samples; `None` if there are samples.
    pub no_samples: Option<String>,
    /// The functions according to samples, sorted by `self_ns`.
    pub functions: Vec<FunctionStats>,
    /// The threads' counters in each construct, sorted by time.
    pub counters: Vec<CounterStats>,
    /// The counters that are missing, with the reason, or why there are no counters at all.
    pub not_counted: Vec<String>,
    /// The threads, in the order of the timeline.
    #[serde(rename = "per_thread")]
    pub threads: Vec<ThreadStats>,
    /// The locks, sorted by the time for which they were held.
    pub locks: Vec<LockStats>,
    /// The devices, and how each was used.
    pub device_use: Vec<DeviceUse>,
    /// The operations of devices, grouped by queue and sorted by time.
    pub devices: Vec<DeviceStats>,
    /// Notes about missing or repaired parts of the trace that affect the numbers.
    pub notes: Vec<String>,
}

/// The part of a run that was analysed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Analysed {
    /// The start of the window, in nanoseconds since the start of the timeline. This field and the next are
    /// `None` if no window was selected.
    pub window_begin_ns: Option<i64>,
    /// The end of the window; also `None` if the window has no end.
    pub window_end_ns: Option<i64>,
    /// The selected phase; `None` if none was selected.
    pub phase: Option<String>,
    /// The first of the selected time steps. This field and the next are `None` if none were selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_step: Option<u64>,
    /// The last of the selected time steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_step: Option<u64>,
    /// The selected threads, as the user named them; empty if all threads were analysed.
    pub threads: Vec<String>,
}

/// The part of a run on which estimates are based.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BasedOn {
    /// The covered share, from 0 to 1: of the recorded time if there are `windows`, otherwise of the events.
    pub share: f64,
    /// The number of windows at random places of the run; `None` if the part is the beginning of the run.
    pub windows: Option<u64>,
}

impl Stats {
    /// Whether findings are computed: they concern whole teams, so not if threads are selected.
    pub fn looks_for_findings(&self) -> bool {
        self.analysed.as_ref().is_none_or(|analysed| analysed.threads.is_empty())
    }
}

/// A phase of the program, summed over all instances: the time in which a thread of any process was in the
/// phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseStats {
    /// Its name.
    pub name: String,
    /// How often the phase started.
    pub count: u64,
    /// T: the total time of the phase.
    pub duration_ns: u64,
    /// N: the peak number of threads that belonged to teams at the same time during the phase.
    pub threads: u32,
    /// N x T thread-nanoseconds by cause.
    pub accounting: Accounting,
    /// The efficiencies derived from `accounting`.
    pub efficiency: Efficiency,
}

/// What was observed in a process that makes some of its numbers unknown.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// In some time, nothing was recorded.
    pub(crate) unobserved: bool,
    /// Tasks without ids were suspended.
    pub(crate) parts_of_tasks: bool,
}

/// The numbers, in words, that are unknown for a process whose runtime reports only this.
pub(crate) fn unknown(reports: &Reports, seen: Seen) -> impl Iterator<Item = String> {
    let wants = reports.requested;
    // Whether the numbers are unknown; whether the user wants the events that show them, if they are the reason; the
    // numbers; and these events, and where the time counts.
    let rows = [
        (
            seen.unobserved,
            None,
            "the activity of threads while recording was off, and during periods whose events were lost or overwritten",
            "",
        ),
        (
            seen.parts_of_tasks,
            None,
            "the number and duration of explicit tasks, because tasks have no ids; if a task is suspended and resumed, each part of this task is shown as a separate task",
            "",
        ),
        (!reports.task_ends, Some(wants.task_ends), "the number of explicit tasks", "explicit tasks"),
        (
            !reports.members,
            Some(wants.members),
            "the time of threads in parallel regions, how long regions wait for their threads, and load imbalance",
            "which threads belong to a team",
        ),
        (
            !reports.barriers && !reports.barrier_waits,
            Some(wants.barriers || wants.barrier_waits),
            "waits at barriers",
            "these waits; the waiting time is counted as working time",
        ),
        (
            !reports.taskwaits && !reports.taskwait_waits,
            Some(wants.taskwaits || wants.taskwait_waits),
            "waits in taskwaits",
            "these waits; the waiting time is counted as working time",
        ),
        (
            !reports.taskgroup_waits,
            Some(wants.taskgroup_waits),
            "waits at the end of taskgroups",
            "these waits; the waiting time is counted as working time",
        ),
        (
            !reports.lock_waits,
            Some(wants.lock_waits),
            "waits for locks",
            "these waits; the waiting time is counted as working time",
        ),
        (
            !reports.critical_waits,
            Some(wants.critical_waits),
            "waits for critical regions",
            "these waits; the waiting time is counted as working time",
        ),
        (
            !reports.inlined,
            None,
            "loops with a static schedule, masked regions, atomic updates and reductions, because GCC inlines these constructs; the time of these constructs is counted as time of the enclosing region",
            "",
        ),
        (
            !reports.barrier_kinds,
            None,
            "the kinds of barriers, because GCC calls the same function for explicit and implicit barriers",
            "",
        ),
        (
            !reports.tasks,
            Some(wants.tasks),
            "the time of explicit tasks",
            "when tasks ran; the time of a task is counted as time of the construct in which the task ran",
        ),
    ];
    let unknown = rows.into_iter().filter(|(is_unknown, ..)| *is_unknown);
    unknown.map(|(_, wanted, numbers, events)| match wanted {
        None => numbers.to_owned(),
        Some(true) => format!("{numbers}, because the runtime did not report {events}"),
        Some(false) => {
            format!("{numbers}, because the recorded types of events (--events) do not show {events}")
        }
    })
}

/// Number and durations of repeated executions.
///
/// In JSON, only the total is known if the numbers are [about parts](Times::is_of_parts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How often it was executed. An execution that was interrupted counts once.
    pub count: u64,
    /// The total time. If executions are nested, as in a recursion, the time of each of them counts.
    pub total_ns: u64,
    /// The mean time of an execution.
    pub mean_ns: u64,
    /// The shortest time of an execution: the sum of its parts.
    pub min_ns: u64,
    /// The longest time of an execution.
    pub max_ns: u64,
    /// The numbers are about parts of executions. It is not known which parts belong together, for example
    /// if tasks have no ids.
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
    /// Adds an execution that took this long.
    pub(crate) fn add(&mut self, ns: u64) {
        let is_first = self.count == 0;
        self.add_part(ns, true);
        self.add_whole(ns, is_first);
        self.mean_ns = self.total_ns / self.count;
    }

    /// Adds a part of an execution. `is_new`: the first part that is counted.
    pub(crate) fn add_part(&mut self, ns: u64, is_new: bool) {
        self.count += u64::from(is_new);
        add(&mut self.total_ns, ns);
    }

    /// Adds an execution whose parts were counted, and took this long together.
    pub(crate) fn add_whole(&mut self, ns: u64, is_first: bool) {
        self.min_ns = match is_first {
            true => ns,
            false => self.min_ns.min(ns),
        };
        self.max_ns = self.max_ns.max(ns);
    }
}

/// Marks constructs whose time is mostly the tracer's.
pub const NEAR_EVENT_COST: &str = "~";

/// The numbers of a construct at a location in the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConstructStats {
    /// The construct and its location, as timelines show them: `!$omp parallel @stencil.c:41`, `!$omp
    /// taskwait wait @stencil.c:60`.
    pub name: String,
    /// The kind of construct.
    pub category: &'static str,
    /// The construct that the programmer wrote, even if the row is about a wait, and its location.
    #[serde(flatten)]
    pub place: Place,
    /// How often the construct was executed, and its times from start to end; 0 for events without a
    /// duration.
    #[serde(flatten)]
    pub times: Times,
    /// The median time of an execution, with a relative error of less than 1/16. This field and the next
    /// are `None` if parts cannot be matched.
    pub median_ns: Option<u64>,
    /// The 99th percentile of the times of an execution, with the same error.
    pub p99_ns: Option<u64>,
    /// A histogram of the durations, for charts: element `i` is the number of executions that took at least
    /// `2^i` ns and less than `2^(i+1)` ns. Empty if `median_ns` is not known.
    #[serde(skip)]
    pub durations: Vec<u64>,
    /// The same histogram for explicit tasks. Left out for other constructs, and if the parts of tasks
    /// cannot be matched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<u64>,
    /// `true` if an execution takes less time than three of the tracer's events on average, so that most of
    /// its time is spent in the tracer. Left out otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_near_event_cost: bool,
    /// The part of `total_ns` that was not spent in another construct inside this one.
    pub self_ns: u64,
    /// The mean of `self_ns` for an execution; `None` if the number of executions is not known.
    pub self_mean_ns: Option<u64>,
    /// The part of `total_ns` in which the thread waited, in this construct or in one inside it. For a
    /// parallel region, the mean waiting time of the team's threads since the start of the region. `None`
    /// if not known, and for events without a duration.
    pub waiting_ns: Option<u64>,
    /// The teams; for parallel regions only.
    #[serde(flatten)]
    pub team: Option<TeamStats>,
    /// The schedule of a loop, if the runtime reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The chunks of a loop that is not static. For static loops, runtimes report only the first chunk of
    /// each thread.
    #[serde(flatten)]
    pub of_loop: Option<LoopStats>,
}

impl ConstructStats {
    /// Sets `is_near_event_cost`, given the cost of an event in picoseconds.
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
        "The number of chunks" chunks "chunks" = |share| share.chunks;
        "The number of iterations in all chunks" iterations "iterations" = |share| share.iterations;
        "The total time of the loops that have chunks" chunks_ns "chunks_ns" = |share| share.ns;
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
    /// The duration of the region, counted once for each thread of the team. This field and the next are 0
    /// if the end of the region was not recorded.
    pub(crate) members_ns: u64,
    pub(crate) waiting_ns: u64,
    pub(crate) working_ns: u64,
    /// The working time of the busiest thread of the team.
    pub(crate) longest_ns: u64,
}

sums! {
    /// How well the parallel regions at a location used their threads.
    TeamStats of Ended {
        "The number of threads, summed over all teams" members "members" = |team| team.members;
        "The duration of the regions, counted once for each thread of the team" members_ns "members_ns" =
            |team| team.members_ns;
        "The part of `members_ns` that threads spent waiting to be woken up, waiting at barriers, or waiting for tasks or locks"
            waiting_ns "members_waiting_ns" = |team| team.waiting_ns;
        "The working time of all threads of the teams" working_ns "working_ns" = |team| team.working_ns;
        "The working time of the busiest thread of each team, summed over all regions" longest_ns "longest_ns" =
            |team| team.longest_ns;
        "The time that an even distribution of the work would save: the working time of the busiest thread minus the mean of all threads, summed over all regions"
            imbalance_ns "imbalance_ns" =
            |team| team.longest_ns.saturating_sub(team.working_ns / team.members.max(1));
    }
    then {}
}

impl TeamStats {
    /// The share of the busiest threads' working time that an even distribution of the work would save,
    /// from 0 to 1.
    pub fn imbalance(&self) -> f64 {
        share(self.imbalance_ns, self.longest_ns)
    }
}

/// The times of a thread. Values that are not known are `None`; [`ProcessStats::unknown`] says why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadStats {
    /// The name of its process.
    pub process: String,
    /// The `id` of its process in `processes`.
    pub process_id: u32,
    /// The MPI rank of its process.
    pub rank: Option<u32>,
    /// Its name.
    pub name: String,
    /// The thread's number in its process: 0 for the main thread, then in display order.
    pub number: u32,
    /// The number of its stream in the trace.
    pub stream: u32,
    /// The thread's id in the operating system; 0 if not known.
    pub tid: u32,
    /// The role of the thread: `main`, `worker`, `initial`, `helper` (one of the runtime's own threads) or
    /// `other`.
    #[serde(deserialize_with = "static_str::word")]
    pub role: Word,
    /// The time from the start of the process to its end, which is the sum of `parallel_ns`, `serial_ns`,
    /// `idle_ns` and `unknown_ns`.
    pub duration_ns: u64,
    /// The time in which the thread belonged to the team of a parallel region; time in nested regions is
    /// counted only once. For a helper, the time in explicit tasks. This is the sum of the next five
    /// fields.
    pub parallel_ns: Option<u64>,
    /// The part of `parallel_ns` in which the thread did not wait.
    pub working_ns: Option<u64>,
    /// The time spent waiting at barriers, and for regions to end.
    pub barriers_ns: Option<u64>,
    /// The time spent waiting in taskwaits and at the end of taskgroups.
    pub taskwaits_ns: Option<u64>,
    /// The time spent waiting for locks, and for critical, atomic and ordered regions.
    pub locks_ns: Option<u64>,
    /// The time from the start of parallel regions until the thread's implicit task started.
    pub wake_up_ns: Option<u64>,
    /// The time in which the thread ran the program outside of parallel regions, including waits there.
    pub serial_ns: u64,
    /// The time in which the thread was neither in a parallel region nor running the program: before it was
    /// created, between regions, and after it ended.
    pub idle_ns: Option<u64>,
    /// The rest of the time.
    pub unknown_ns: u64,
    /// The CPU time of the thread; left out if the trace does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// The number of explicit tasks that the thread started; `None` if this number is not known, or if only
    /// parts of tasks are known.
    pub tasks: Option<u64>,
    /// The same as `taskwaits_ns`, under the name that version 0.1.0 used.
    pub tasks_ns: Option<u64>,
}

impl ThreadStats {
    /// Sets the times from `account`, as far as the runtime reports the events that they are derived from.
    pub(crate) fn set(&mut self, account: &Account, reports: &Reports, role: ThreadRole) {
        let known = |ns: u64, is_reported: bool| (is_reported || ns > 0).then_some(ns);
        // For the main and initial threads, being in a region is enough; for other threads, membership must be
        // reported.
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

/// The numbers of a lock, or of all critical or atomic regions with the same name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LockStats {
    /// The name of its process.
    pub process: String,
    /// The `id` of its process in `processes`.
    pub process_id: u32,
    /// The name of the lock, with its address, as in the timeline.
    pub name: String,
    /// The kind of lock: `lock`, `critical` or `atomic`.
    pub kind: &'static str,
    /// The lock's number. The locks of a process are numbered in the order in which they were created or
    /// first requested.
    pub number: usize,
    /// Where the lock was created or, if that is not known, first requested or held.
    pub place: Option<Place>,
    /// This location, as timelines show it: `omp_init_lock @locks.c:12`.
    #[serde(skip)]
    pub place_name: Option<String>,
    /// How often a thread acquired the lock. If the runtime reports only releases, the number of releases.
    pub acquisitions: u64,
    /// How often a thread had to wait before it acquired the lock; `None` if the runtime does not report
    /// this.
    pub waits: Option<u64>,
    /// The total time from requesting the lock to acquiring it.
    pub waiting_ns: Option<u64>,
    /// How often `omp_test_lock` failed to acquire the lock.
    pub failures: u64,
    /// How often and how long the lock was held, as far as both acquisition and release were reported; left
    /// out if they never were.
    #[serde(flatten)]
    pub times: Option<Times>,
}

/// The numbers of an operation of a device, on one queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceStats {
    /// The name of its process.
    pub process: String,
    /// The `id` of its process in `processes`.
    pub process_id: u32,
    /// The name of the queue.
    pub queue: String,
    /// The operation, such as a kernel or a copy.
    pub name: String,
    /// How often the operation was executed, and its times.
    #[serde(flatten)]
    pub times: Times,
}

pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
