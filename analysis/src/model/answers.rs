//! Answers: what the threads' time was spent on, why, at which line, and how much time a change would save.

use serde::{Deserialize, Serialize, Serializer};

use crate::model::accounting::Accounting;
use crate::model::cause::Cause;
use crate::model::place::Place;

/// The version of the JSON output. It increases when a field is removed or changes its meaning.
pub const SCHEMA: u32 = 2;

/// The answers of one or more traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// [`SCHEMA`].
    pub schema: u32,
    /// N: the peak number of threads that belonged to teams at the same time, or the number that the user
    /// specified.
    pub threads: u32,
    /// T: the time from the start of the first process to the end of the last.
    pub duration_ns: u64,
    /// N x T thread-nanoseconds by cause.
    pub accounting: Accounting,
    /// The efficiencies derived from `accounting`.
    pub efficiency: Efficiency,
    /// Useful time by place, summed over all threads, without the time of constructs inside; sorted by
    /// time. Not part of the JSON output, which contains the useful time of regions in their `accounting`.
    #[serde(skip)]
    pub useful: Vec<UsefulAt>,
    /// The outermost parallel regions by place, sorted by lost time.
    pub regions: Vec<RegionAnswer>,
    /// What caused lost time, sorted by time. The rows with the same cause add up to the time lost to this
    /// cause.
    pub blame: Vec<Blame>,
    /// Which threads waited for a mutex while another thread held it: one row for each mutex, waiting
    /// thread and holding thread, sorted by time. The times add up to all the time that threads waited for
    /// mutexes.
    #[serde(default)]
    pub blocked: Vec<Blocked>,
    /// The longest chain of useful work.
    pub critical_path: CriticalPath,
    /// Possible improvements, sorted by saving.
    pub findings: Vec<Finding>,
    /// What each change would save, as predicted by replaying the recorded dependences. Sorted by saving.
    #[serde(default)]
    pub what_if: Vec<WhatIf>,
    /// Predictions of the wall time on 1 to 2 x N threads. Empty if the wall time cannot be predicted.
    #[serde(default)]
    pub other_threads: Vec<OtherThreads>,
    /// Regions whose time on other numbers of threads cannot be predicted, with the reason. Predictions use
    /// their recorded time. Sorted by time.
    #[serde(default)]
    pub not_predicted: Vec<NotPredicted>,
    /// The outermost regions with explicit tasks, with their work and span, sorted by work.
    #[serde(default)]
    pub task_regions: Vec<TaskRegion>,
    /// Loops for which each chunk, or each thread's block of iterations, was recorded, with the time that
    /// they would take with other `schedule` clauses. Sorted by time.
    #[serde(default)]
    pub loops: Vec<LoopAnswer>,
    /// The difference between the end of a replay without changes and the recorded end: 0, unless
    /// timestamps in the trace go backwards. `None` if nothing was replayed.
    #[serde(default)]
    pub replay_error_ns: Option<i64>,
    /// Causes that cannot be recognised, because the runtime does not report the necessary events, each
    /// with the reason. Their time is included in the most similar cause that can be recognised.
    pub not_seen: Vec<NotSeen>,
    /// A note that a part of the trace is damaged or missing. Left out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage_note: Option<String>,
    /// A note for programs whose MPI calls were not recorded: the time in these calls counts as work. Left
    /// out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_note: Option<String>,
    /// A note that the machine was busy: threads were on a CPU for much less time than they were ready to
    /// run. Left out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_note: Option<String>,
    /// A note about waits that the trace does not contain: threads were off the CPU for much of their
    /// useful time. Left out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_note: Option<String>,
    /// A note for MPI jobs: in `what_if` and the savings of findings, each rank is replayed by itself. Left out
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if_note: Option<String>,
}

impl Answers {
    /// What is printed instead of findings if there are none.
    pub fn no_finding(&self) -> &'static str {
        match self.cpu_note {
            Some(_) => NO_FINDING_ON_BUSY_CPUS,
            None if self.threads > 1 => NO_FINDING_OF_SEVERAL,
            None => NO_FINDING,
        }
    }

    /// Whether there is any thread time.
    pub fn has_time(&self) -> bool {
        self.accounting.total() > 0
    }

    /// The losses, largest first.
    pub fn losses(&self) -> Vec<(Cause, u64)> {
        let losses = self.accounting.iter();
        let mut losses: Vec<_> = losses.filter(|(cause, ns)| cause.is_loss() && *ns > 0).collect();
        losses.sort_by_key(|(cause, ns)| (std::cmp::Reverse(*ns), *cause));
        losses
    }

    /// What is blamed for the waits with this cause.
    pub fn blamed_for(&self, cause: Cause) -> impl Iterator<Item = &Blame> {
        self.blame.iter().filter(move |blame| blame.cause == cause)
    }

    /// The place to which at least half of a cause's time is due, if there is one.
    pub(crate) fn mostly_due_to(&self, cause: Cause) -> Option<&Place> {
        let first = self.blamed_for(cause).max_by_key(|blame| blame.ns)?;
        let is_most = first.ns >= self.accounting[cause] / 2;
        is_most.then_some(&first.place)
    }
}

/// A function, as the user's model of samples shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FunctionName {
    /// The function's name, without parameters. Names of runtime activities are in angle brackets.
    pub function: String,
    /// The module that contains the function; empty for runtime activities.
    pub module: String,
    /// The source file, if it is known.
    pub file: Option<String>,
}

impl FunctionName {
    /// Whether a programmer could change the function: it is code (not a runtime activity), and not part of the C
    /// library.
    pub(crate) fn is_of_program(&self) -> bool {
        let library = self.module.rsplit('/').next().unwrap_or_default();
        let of_system = ["libc.so", "libc-", "libm.so", "libm-", "libpthread", "ld-"];
        !library.is_empty() && !of_system.iter().any(|name| library.starts_with(name))
    }
}

/// A function, and the part of a time that is due to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionShare {
    /// The function.
    #[serde(flatten)]
    pub name: FunctionName,
    /// The time.
    pub ns: u64,
}

/// Efficiencies from 0 to 1; `None` if they cannot be computed. `docs/analysis.md` contains the formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// Useful time / (N x T).
    pub parallel: Option<f64>,
    /// Mean useful time of the N threads / useful time of the busiest thread.
    pub load_balance: Option<f64>,
    /// Useful time of the busiest thread / T.
    pub communication: Option<f64>,
    /// Useful time of the busiest thread / useful time on the critical path.
    pub serialisation: Option<f64>,
    /// Useful time on the critical path / T.
    pub transfer: Option<f64>,
}

/// Useful time at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct UsefulAt {
    /// The place.
    pub place: Place,
    /// The useful time, summed over all threads.
    pub ns: u64,
}

/// A parallel region, summed over all visits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionAnswer {
    /// Its place.
    #[serde(flatten)]
    pub place: Place,
    /// How often the region was entered.
    pub visits: u64,
    /// The total duration of all visits, from start to end, on the thread that encountered the region.
    pub duration_ns: u64,
    /// N x `duration_ns` by cause, without the time in which another region was open.
    pub accounting: Accounting,
    /// The efficiencies derived from `accounting`.
    pub efficiency: Efficiency,
}

/// The cause of waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blame {
    /// The cause of the waits.
    pub cause: Cause,
    /// The place where the waiting threads waited.
    #[serde(flatten)]
    pub place: Place,
    /// The lost time, summed over all threads.
    pub ns: u64,
    /// The functions that ran in the threads that caused the loss, according to samples. Sorted by time.
    #[serde(default)]
    pub functions: Vec<FunctionShare>,
    /// The part of `ns` that is not assigned to a function, because the thread that caused the wait was not
    /// sampled during that time, or because no thread caused the wait. `None` if there are no samples at
    /// all.
    #[serde(default)]
    pub no_sample_ns: Option<u64>,
}

/// A thread's waits for a mutex that another thread held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocked {
    /// The kind of mutex: `lock`, `critical`, `ordered`, `atomic`.
    pub cause: Cause,
    /// The process of both threads.
    pub process: String,
    /// The name of the mutex, as in `locks`; `None` if the runtime does not identify the mutex, or if there
    /// are too many rows.
    pub lock: Option<String>,
    /// The thread that held the mutex during the wait, or the last thread that held it before; `None` if
    /// that thread was not observed, or if no other thread held the mutex.
    pub holder_thread: Option<String>,
    /// The location at which the holder acquired the mutex.
    pub holder: Option<Place>,
    /// The thread that waited.
    pub waiter_thread: String,
    /// The location at which the thread waited.
    pub waiter: Place,
    /// The total time of the waits.
    pub ns: u64,
}

/// The longest chain of useful work through all threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CriticalPath {
    /// The duration of the path: T, or less if the process with the longest path did not run all the time.
    pub length_ns: u64,
    /// The useful work on the path.
    pub useful_ns: u64,
    /// The useful work on the path by place, sorted by time.
    pub rows: Vec<PathRow>,
    /// The useful work on the path by function, according to samples. Sorted by time.
    #[serde(default)]
    pub functions: Vec<FunctionShare>,
    /// The part of `useful_ns` that no sample represents. `None` if there are no samples at all.
    #[serde(default)]
    pub no_sample_ns: Option<u64>,
}

/// Work on the critical path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathRow {
    /// The place.
    #[serde(flatten)]
    pub place: Place,
    /// The time.
    pub ns: u64,
}

/// An interval in which a thread kept other threads waiting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// The start, in nanoseconds since the start of the timeline, in the form that `--window` accepts.
    pub begin_ns: i64,
    /// The end, in nanoseconds since the start of the timeline.
    pub end_ns: i64,
    /// The process.
    pub process: String,
    /// The thread.
    pub thread: String,
}

/// Something that could be improved.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Finding {
    /// The id of the rule, which never changes.
    pub id: String,
    /// The place.
    #[serde(flatten)]
    pub place: Place,
    /// The wall time that the change would save.
    pub gain_ns: u64,
    /// What was found, and a change to try.
    pub text: String,
    /// The figures on which the finding is based.
    pub evidence: serde_json::Map<String, serde_json::Value>,
    /// Up to three intervals in which a thread kept other threads waiting longest, or in which it waited longest itself if
    /// no thread is to blame.
    #[serde(default)]
    pub instances: Vec<Moment>,
}

/// See [`Answers::no_finding`].
const NO_FINDING: &str = "omptrace found no change that would save 3 % of the wall time or more.";
const NO_FINDING_OF_SEVERAL: &str = "omptrace found no change that would save 3 % of the wall time or more. The trace of one run does not show whether useful work takes longer on several threads, for example because of contended atomic updates or false sharing; to find out, compare runs with different numbers of threads: omptrace scaling.";
const NO_FINDING_ON_BUSY_CPUS: &str = "omptrace found no change that would certainly save 3 % of the wall time or more. Threads had no CPU for a part of the time, so waits may be due to this lack of CPUs; omptrace gives no advice about such waits.";

impl Finding {
    /// The address of the documentation page about findings with this id.
    pub fn page_address(id: &str) -> String {
        format!("{}/findings/{id}.md", env!("CARGO_PKG_HOMEPAGE"))
    }
}

/// Adds the address of the page, which follows from the id.
impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            id: &'a str,
            #[serde(flatten)]
            place: &'a Place,
            gain_ns: u64,
            text: &'a str,
            help_uri: String,
            evidence: &'a serde_json::Map<String, serde_json::Value>,
            instances: &'a [Moment],
        }
        let Finding { id, place, gain_ns, text, evidence, instances } = self;
        let help_uri = Finding::page_address(id);
        Row { id, place, gain_ns: *gain_ns, text, help_uri, evidence, instances }.serialize(serializer)
    }
}

/// A change, and what it would save.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WhatIf {
    /// The change, in words.
    pub change: String,
    /// The place; if the change applies to the whole program, the construct is empty.
    #[serde(flatten)]
    pub place: Place,
    /// The wall time that the change would save.
    pub gain_ns: u64,
    /// The saving as a percentage of the wall time.
    pub gain_percent: f64,
}

/// The predicted wall time on another number of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherThreads {
    /// The number of threads.
    pub threads: u32,
    /// The predicted wall time.
    pub duration_ns: u64,
    /// The saving as a percentage of the recorded wall time; negative if the run would take longer.
    pub gain_percent: f64,
    /// An assumption of the prediction that the trace cannot confirm.
    #[serde(default)]
    pub assumption: Option<String>,
}

/// A region whose time on other numbers of threads cannot be predicted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NotPredicted {
    /// Its place.
    #[serde(flatten)]
    pub place: Place,
    /// The recorded time of the region.
    pub ns: u64,
    /// Why the region's time cannot be predicted.
    pub reason: String,
}

/// The work and span of a region with explicit tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskRegion {
    /// Its place.
    #[serde(flatten)]
    pub place: Place,
    /// The number of deferred explicit tasks that the region's threads created.
    pub tasks: u64,
    /// The work T1: all useful time in the region.
    pub work_ns: u64,
    /// The span T-infinity: the longest chain of work that must be done one after the other because of task
    /// creations, waits for tasks, and dependences. `None` if the span is not known.
    pub span_ns: Option<u64>,
    /// Why the span is not known.
    #[serde(default)]
    pub span_reason: Option<String>,
    /// Work / span. More threads than this cannot be kept busy all the time. `None` if the span is not
    /// known.
    pub parallelism: Option<f64>,
    /// An upper bound of the cost of creating a task: the shortest time between two consecutive creations
    /// on a thread. `None` if no thread created two tasks in succession.
    pub creation_ns: Option<u64>,
    /// The span, including the cost of creating each task on it. This field and the next are `None` if that
    /// cost is not known.
    pub burdened_span_ns: Option<u64>,
    /// Work / burdened span.
    pub burdened_parallelism: Option<f64>,
}

/// A loop, and the time that it would take with other `schedule` clauses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopAnswer {
    /// Its place.
    #[serde(flatten)]
    pub place: Place,
    /// The number of executions in which the team did nothing else between two barriers and created no
    /// tasks.
    pub executions: u64,
    /// The number of other executions, which are not included in the times below.
    pub not_known: u64,
    /// The recorded time until the last thread finished, summed over all executions.
    pub recorded_ns: u64,
    /// The time that the loop would take with other clauses, assuming that the work of each chunk or block
    /// is spread evenly over its iterations.
    pub schedules: Vec<ScheduleTime>,
    /// A histogram of chunk durations: element `i` is the number of chunks that took at least `2^i` ns and
    /// less than `2^(i+1)` ns. Empty for static loops.
    pub lengths: Vec<u64>,
}

/// A clause is as good as the best one if it saves at least this share of the best one's saving.
const AS_MUCH: f64 = 0.95;

/// Times with other clauses count as known if at most this share of the loop's executions is not known.
const MAX_UNKNOWN: f64 = 0.1;

impl LoopAnswer {
    /// Whether the times with other clauses are known.
    pub(crate) fn is_known(&self) -> bool {
        self.not_known as f64 <= MAX_UNKNOWN * self.executions as f64
    }

    /// Whether clauses that balance the loop were evaluated; with too few iterations, none is.
    pub(crate) fn has_balanced(&self) -> bool {
        self.is_known() && self.schedules.iter().any(|with| with.clause.starts_with("schedule(dynamic"))
    }

    /// The first clause that is as good as the best one (the clauses are ordered from simple to complex), and its
    /// saving; `None` if no clause saves time, or if too little is known.
    pub fn best(&self) -> Option<(&ScheduleTime, u64)> {
        let saved = self.schedules.iter().map(|with| self.recorded_ns.saturating_sub(with.duration_ns));
        let mut all = self.schedules.iter().zip(saved.clone());
        let most = saved.max().filter(|most| *most > 0 && self.is_known())?;
        all.find(|(_, saved)| *saved as f64 >= AS_MUCH * most as f64)
    }
}

/// The time that a loop would take with a clause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleTime {
    /// The clause, such as `schedule(dynamic, 16)`.
    pub clause: String,
    /// The time until the last thread would finish, summed over all executions.
    pub duration_ns: u64,
}

/// A cause that cannot be recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSeen {
    /// The cause.
    pub cause: Cause,
    /// The reason, and the cause in which this time is included.
    pub reason: String,
}
