//! Answers: where the threads' time went, why, on which line, and what fixing it would give.

use serde::{Deserialize, Serialize, Serializer};

use crate::model::accounting::Accounting;
use crate::model::cause::Cause;
use crate::model::place::Place;

/// The version of the answers as JSON. It grows when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 2;

/// The answers of one or more traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// [`SCHEMA`].
    pub schema: u32,
    /// N: the threads that were members of teams at the busiest time, or as many as the user said.
    pub threads: u32,
    /// T: from the start of the first process to the end of the last.
    pub duration_ns: u64,
    /// N x T thread-nanoseconds by cause.
    pub accounting: Accounting,
    /// These sums as efficiencies.
    pub efficiency: Efficiency,
    /// Useful time by place, of all threads together, without that of other constructs inside. The longest first. Only of traces:
    /// JSON has that of regions, in their accounting.
    #[serde(skip)]
    pub useful: Vec<UsefulAt>,
    /// The outermost parallel regions by place, those that lose the most time first.
    pub regions: Vec<RegionAnswer>,
    /// The causes of waits: their times add up to the losses, cause by cause. The longest first.
    pub blame: Vec<Blame>,
    /// The waits for mutexes that other threads had: a matrix of the threads, by lock. Its times add up to the waits for
    /// mutexes. The longest first.
    #[serde(default)]
    pub blocked: Vec<Blocked>,
    /// The longest chain of useful work.
    pub critical_path: CriticalPath,
    /// Possible improvements, the one that gains the most first.
    pub findings: Vec<Finding>,
    /// The gains of changes, by a replay of the recorded dependences. The largest gain first.
    #[serde(default)]
    pub what_if: Vec<WhatIf>,
    /// The times on other numbers of threads, 1 to 2 x N. Empty where that cannot be predicted.
    #[serde(default)]
    pub other_threads: Vec<OtherThreads>,
    /// Regions that cannot be predicted for other numbers of threads, and why: their time counts as it is, the longest first.
    #[serde(default)]
    pub not_predicted: Vec<NotPredicted>,
    /// Outermost regions with explicit tasks: their work and span, those with the most work first.
    #[serde(default)]
    pub task_regions: Vec<TaskRegion>,
    /// Loops of which each chunk, or each thread's block of iterations, is known: what they take with other `schedule` clauses, those
    /// that take most first.
    #[serde(default)]
    pub loops: Vec<LoopAnswer>,
    /// How much later than recorded the replay ends where nothing is changed: 0, unless times in the trace go back. `None`
    /// where nothing was replayed.
    #[serde(default)]
    pub replay_error_ns: Option<i64>,
    /// Causes that the runtime does not report, and why: their time is in the nearest cause that is certain.
    pub not_seen: Vec<NotSeen>,
    /// What to know of useful time where a process uses MPI: time there counts as work. Left out where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_note: Option<String>,
    /// What to do about threads that clearly had a processor for less time than they could have used one. Left out where none had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_note: Option<String>,
    /// How long threads waited in their own code for what the trace does not say. Left out where that was not long, or is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_note: Option<String>,
}

/// A function of the user's model of samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FunctionName {
    /// Its name, without parameters; in angle brackets what the runtime did.
    pub function: String,
    /// The module that it is in; empty of what the runtime did.
    pub module: String,
    /// The source file, where that is known.
    pub file: Option<String>,
}

impl FunctionName {
    /// Whether a programmer could change it: it is code, and not that of the C library.
    pub(crate) fn is_of_program(&self) -> bool {
        let library = self.module.rsplit('/').next().unwrap_or_default();
        let of_system = ["libc.so", "libc-", "libm.so", "libm-", "libpthread", "ld-"];
        !library.is_empty() && !of_system.iter().any(|name| library.starts_with(name))
    }
}

/// A function that a part of a time is due to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionShare {
    /// Which.
    #[serde(flatten)]
    pub name: FunctionName,
    /// How long.
    pub ns: u64,
}

/// Efficiencies, 0 to 1; `None` where the sums do not show them. See `docs/analysis.md` for the formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// Useful time of N x T.
    pub parallel: Option<f64>,
    /// Mean useful time of the N threads by that of the busiest thread.
    pub load_balance: Option<f64>,
    /// Useful time of the busiest thread by T.
    pub communication: Option<f64>,
    /// Useful time of the busiest thread by useful time on the critical path.
    pub serialisation: Option<f64>,
    /// Useful time on the critical path by T.
    pub transfer: Option<f64>,
}

/// Useful time at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct UsefulAt {
    /// Where.
    pub place: Place,
    /// How long, all threads together.
    pub ns: u64,
}

/// A parallel region, all of its visits together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionAnswer {
    /// Its place.
    #[serde(flatten)]
    pub place: Place,
    /// How often it was entered.
    pub visits: u64,
    /// Their time from begin to end, on the thread that encountered it.
    pub duration_ns: u64,
    /// N x that time by cause, where no other region was open beside it.
    pub accounting: Accounting,
    /// These sums as efficiencies.
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
    /// For how long, all threads together.
    pub ns: u64,
    /// The functions that who caused the waits was in, by samples, the longest first.
    #[serde(default)]
    pub functions: Vec<FunctionShare>,
    /// The part of `ns` that belongs to no function: who caused the waits was not sampled then, as it slept, or nobody caused them.
    /// `None` where there are no samples at all.
    #[serde(default)]
    pub no_sample_ns: Option<u64>,
}

/// A thread's wait for a mutex that another one had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocked {
    /// The kind of mutex: `lock`, `critical`, `ordered`, `atomic`.
    pub cause: Cause,
    /// Their process.
    pub process: String,
    /// The mutex, as `locks` names it; `None` where the runtime does not say, or where there are too many.
    pub lock: Option<String>,
    /// The thread that had it, or had it last and gave it away; `None` where that was not seen, or no other thread had it.
    pub holder_thread: Option<String>,
    /// From where it had it.
    pub holder: Option<Place>,
    /// The thread that waited.
    pub waiter_thread: String,
    /// Where it waited.
    pub waiter: Place,
    /// For how long, all together.
    pub ns: u64,
}

/// The longest chain of useful work through all threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CriticalPath {
    /// Its length in time: T, or less where the process did not run all the time.
    pub length_ns: u64,
    /// Useful work on it.
    pub useful_ns: u64,
    /// The work by place, the longest first.
    pub rows: Vec<PathRow>,
    /// The work by function, by samples, the longest first.
    #[serde(default)]
    pub functions: Vec<FunctionShare>,
    /// The part of `useful_ns` that no sample represents. `None` where there are no samples at all.
    #[serde(default)]
    pub no_sample_ns: Option<u64>,
}

/// Work on the critical path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathRow {
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// How long.
    pub ns: u64,
}

/// When and where something happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// Its begin, in nanoseconds since the timeline's start, as `--window` takes them.
    pub begin_ns: i64,
    /// Its end.
    pub end_ns: i64,
    /// The process.
    pub process: String,
    /// The thread.
    pub thread: String,
}

/// Something that could be improved.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Finding {
    /// The rule's id, which stays the same.
    pub id: String,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// Wall time to gain.
    pub gain_ns: u64,
    /// The finding in words, and a remedy to try.
    pub text: String,
    /// The figures that it rests on.
    pub evidence: serde_json::Map<String, serde_json::Value>,
    /// When threads kept others waiting most, at most three.
    #[serde(default)]
    pub instances: Vec<Moment>,
}

impl Finding {
    /// The address of the page about findings of this id.
    pub fn page_address(id: &str) -> String {
        format!("{}/findings/{id}.md", env!("CARGO_PKG_HOMEPAGE"))
    }
}

/// With the address of its page, which follows from its id.
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

/// The gain of a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WhatIf {
    /// The change, in words.
    pub change: String,
    /// Where; of a change to the whole program, the construct is empty.
    #[serde(flatten)]
    pub place: Place,
    /// Wall time to gain.
    pub gain_ns: u64,
    /// The gain, in per cent of the wall time.
    pub gain_percent: f64,
}

/// The time on another number of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherThreads {
    /// How many threads.
    pub threads: u32,
    /// The wall time.
    pub duration_ns: u64,
    /// The gain, in per cent of the recorded wall time; below 0 where it takes longer.
    pub gain_percent: f64,
    /// What it rests on that the trace does not show.
    #[serde(default)]
    pub assumption: Option<String>,
}

/// A region that cannot be predicted for other numbers of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NotPredicted {
    /// Its place.
    #[serde(flatten)]
    pub place: Place,
    /// Its time.
    pub ns: u64,
    /// Why.
    pub reason: String,
}

/// The work and span of a region with explicit tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskRegion {
    /// Its place.
    #[serde(flatten)]
    pub place: Place,
    /// Explicit tasks that its threads created, and that were deferred.
    pub tasks: u64,
    /// T1: all useful work in it.
    pub work_ns: u64,
    /// T-infinity: the longest chain of work that must be done one after the other, for creations, waits and dependences. `None` where
    /// that is not known.
    pub span_ns: Option<u64>,
    /// Why the span is not known.
    #[serde(default)]
    pub span_reason: Option<String>,
    /// Work by span: more threads than these cannot all have work. `None` as for the span.
    pub parallelism: Option<f64>,
    /// The most that the creation of a task costs: the shortest time from one creation to the next. `None` where no two
    /// creations of a task followed each other.
    pub creation_ns: Option<u64>,
    /// The span where each task on it costs a creation; `None` where its cost is not known, as for the next.
    pub burdened_span_ns: Option<u64>,
    /// Work by that.
    pub burdened_parallelism: Option<f64>,
}

/// What a loop takes with other `schedule` clauses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopAnswer {
    /// Its place.
    #[serde(flatten)]
    pub place: Place,
    /// Executions of which all is known: the team does nothing else between two barriers, and creates no tasks.
    pub executions: u64,
    /// Executions that are in none of these times.
    pub not_known: u64,
    /// How long the threads took, until the last was done, of all executions.
    pub recorded_ns: u64,
    /// The time with other clauses, where each chunk's work, or each thread's block, is spread evenly among its iterations.
    pub schedules: Vec<ScheduleTime>,
    /// How many chunks took a power of two in nanoseconds or longer, and not the next one. Empty for static loops.
    pub lengths: Vec<u64>,
}

/// A clause saves as much as the best one where it saves this share of it.
const AS_MUCH: f64 = 0.95;

/// Executions of a loop that are not known may be this share.
const MAX_UNKNOWN: f64 = 0.1;

impl LoopAnswer {
    /// Whether it is known what other clauses would save.
    pub(crate) fn is_known(&self) -> bool {
        self.not_known as f64 <= MAX_UNKNOWN * self.executions as f64
    }

    /// Whether clauses that balance it were tried. Of too few iterations, none is.
    pub(crate) fn has_balanced(&self) -> bool {
        self.is_known() && self.schedules.iter().any(|with| with.clause.starts_with("schedule(dynamic"))
    }

    /// The first clause that saves as much as the best, which is the simplest, and how much; `None` where none saves anything, or too
    /// little is known.
    pub(crate) fn best(&self) -> Option<(&ScheduleTime, u64)> {
        let saved = self.schedules.iter().map(|with| self.recorded_ns.saturating_sub(with.duration_ns));
        let mut all = self.schedules.iter().zip(saved.clone());
        let most = saved.max().filter(|most| *most > 0 && self.is_known())?;
        all.find(|(_, saved)| *saved as f64 >= AS_MUCH * most as f64)
    }
}

/// What a loop takes with a clause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleTime {
    /// The clause, as in `schedule(dynamic, 16)`.
    pub clause: String,
    /// The time, until the last thread is done, of all executions.
    pub duration_ns: u64,
}

/// A cause that cannot be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSeen {
    /// Which.
    pub cause: Cause,
    /// Why, and where its time is.
    pub reason: String,
}
