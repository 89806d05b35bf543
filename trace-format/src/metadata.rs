//! A trace's description of its session: JSON objects in metadata blocks.
//!
//! A block is one object; where a key comes again, the later block wins. Keys that this version does not know are
//! kept in [`Metadata::other`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event;
use crate::write::lock::Reach;

/// All metadata blocks of a file, laid over each other. Every key may be missing: the process may have died before
/// it was written, or the block may be damaged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The tracer that wrote the file, for example `omptrace 0.2.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracer: Option<String>,
    /// When the session began, RFC 3339 with the local offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// The machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// `OMP_*`, `KMP_*`, `GOMP_*`, `LIBOMP*` and `OMPTRACE_*` variables of the process; no others.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The OpenMP runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// Processors, places and devices that the runtime sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
    /// The callbacks that were registered, by name, and the result of each registration.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub callbacks: BTreeMap<String, Registration>,
    /// The session's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// The lock that the tracer holds on the file while it records; missing where it could not be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
    /// The tracer's settings in force, by the name of their variable.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// How samples were taken; missing where none were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// The counters of threads; missing where none were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counting: Option<Counting>,
    /// Processor time; missing where the session did not end, and in traces of tracers that did not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<CpuTime>,
    /// What recording costs; missing where that was not measured, as before version 0.3.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracer_cost: Option<TracerCost>,
    /// Whether waits that are not OpenMP's were recorded (`omptrace_external_wait`), as since version 0.3.0 where that is asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub external_waits: bool,
    /// The program says what it does: there are events of annotations.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub annotations: bool,
    /// The MPI library, where its calls were recorded, as since version 0.3.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi: Option<Mpi>,
    /// The devices that were initialized, by device number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<i32, Device>,
    /// The event table of the tracer, so that an older reader can name what it does not know. Of a reader's metadata: the
    /// rows that it does not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schema: Vec<Schema>,
    /// How the session ended; missing where the process did not get so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// The error of the system that turned tracing off while the program ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The facts that `omptrace record` knows of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
    /// Words of the tracer about things that went wrong, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// Callbacks that were not registered, or taken back, for the runtime would have harmed the program: why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub withheld: BTreeMap<String, String>,
    /// The flaws of the trace when it was sealed: [`crate::Reader::diagnostics`] has them, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found_while_sealing: Vec<Found>,
    /// Keys of newer tracers.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

impl Metadata {
    /// The process's rank: in `MPI_COMM_WORLD`, or what the launcher said where MPI was not recorded.
    pub fn rank(&self) -> Option<u32> {
        let of_mpi = self.mpi.as_ref().and_then(|mpi| mpi.rank);
        of_mpi.or_else(|| self.process.as_ref()?.rank)
    }

    /// Words about what turned tracing off, if anything did.
    pub fn failure_message(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        Some(format!("tracing was turned off while the program ran, and later events are missing: {failure}"))
    }

    /// The callbacks that were registered and taken back while the program ran, so that events are missing; and why. Others that
    /// are withheld were never registered: most programs have nothing that they would report.
    pub fn taken_back(&self) -> impl Iterator<Item = (&String, &String)> {
        let withheld = self.withheld.iter();
        withheld.filter(|(callback, _)| self.callbacks.contains_key(*callback))
    }

    /// Leaves the rows of the event table that this version does not know.
    pub(crate) fn forget_known_rows(&mut self) {
        let known = event::schema();
        let is_known = |row: &Schema| {
            let mut known = known.iter();
            known.any(|known| (known.number, known.kind) == (row.number, row.kind))
        };
        self.schema.retain(|row| !is_known(row));
        self.schema.shrink_to_fit();
    }

    /// The metadata of `object`, and how many of its keys have values that make no sense: they are left out.
    pub(crate) fn understand(object: &Map<String, Value>) -> (Metadata, u64) {
        if let Ok(metadata) = serde_json::from_value(Value::Object(object.clone())) {
            return (metadata, 0);
        }
        let is_understood = |key: &String, value: &Value| {
            let alone = Map::from_iter([(key.clone(), value.clone())]);
            serde_json::from_value::<Metadata>(Value::Object(alone)).is_ok()
        };
        let mut understood = object.clone();
        understood.retain(|key, value| is_understood(key, value));
        let left_out = (object.len() - understood.len()) as u64;
        let metadata = serde_json::from_value(Value::Object(understood)).unwrap_or_default();
        (metadata, left_out)
    }
}

/// The MPI library of a process, and the process's place in its job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mpi {
    /// What the library says of itself, its first line.
    pub library: String,
    /// The library's file.
    pub path: String,
    /// The application binary interface: `openmpi`, `mpich` or `abi` (that of MPI 5).
    pub family: String,
    /// The version of the standard that the library follows.
    pub version: Vec<u32>,
    /// The process's rank in `MPI_COMM_WORLD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The number of processes in `MPI_COMM_WORLD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// The level of thread support that the program asked for and that it got, as the standard names them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub thread_level: BTreeMap<String, Value>,
    /// A file that defines functions of MPI in front of those that record: calls of these are not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_by: Option<String>,
}

/// The traced process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Its parent's.
    pub parent_pid: u32,
    /// When the process started, in clock ticks since boot (field 22 of `/proc/PID/stat`). With the id, and on the
    /// same host, it distinguishes this process from a later one.
    pub started: u64,
    /// The same time as a reading of `CLOCK_MONOTONIC_RAW`, which the pairs of clocks in the trace have. It is good to a
    /// clock tick, mostly 10 ms, and never after the true start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_raw_ns: Option<i64>,
    /// The namespace of both ids (`/proc/PID/ns/pid`): a container has its own. 0 where it is not known.
    pub pid_namespace: u64,
    /// The executable's path.
    pub executable: String,
    /// Arguments, the program's name first.
    pub command_line: Vec<String>,
    /// Its working directory.
    pub directory: String,
    /// The MPI rank, where a launcher sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// True where the session is that of a forked child.
    pub forked: bool,
    /// CPUs that the process may use, as the kernel lists them (`0-3,8`).
    pub affinity: String,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The host's name.
    pub host: String,
    /// The CPU's model.
    pub cpu: String,
    /// CPUs that are online.
    pub cpus: u32,
    /// Kernel name and release.
    pub kernel: String,
    /// The number of the kernel's boot (`/proc/sys/kernel/random/boot_id`): containers share it, and no other host has
    /// it. Empty where it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub boot: String,
}

/// The tracer's lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lock {
    /// The device of the file's file system, where the process ran.
    pub device: u64,
    /// The file's number there.
    pub inode: u64,
    /// The processes that see the lock.
    pub reach: Reach,
}

/// The OpenMP runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Runtime {
    /// The text that the runtime gave to `ompt_start_tool`.
    pub version: String,
    /// The number that it gave (`_OPENMP`).
    pub omp_version: u32,
    /// The generation of the tools interface, for example `5.x`.
    pub dialect: String,
    /// The library that called the tool.
    pub path: String,
    /// Entry points that the runtime's lookup answered, of all that the specification names.
    pub entry_points: Vec<String>,
    /// States that the runtime enumerates, by number.
    pub states: BTreeMap<u32, String>,
    /// Implementations of mutexes that it enumerates, by number.
    pub mutex_impls: BTreeMap<u32, String>,
}

/// The runtime's view of processors; asked when the program first uses OpenMP, since runtimes do not know it before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processors {
    /// `ompt_get_num_procs`.
    pub num_procs: i32,
    /// `ompt_get_num_devices`; `None` where the runtime does not know them yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_devices: Option<i32>,
    /// The processors of each place, `ompt_get_place_proc_ids`.
    pub places: Vec<Vec<i32>>,
    /// `omp_get_max_threads`, where the program was outside of regions and a libgomp was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_threads: Option<i32>,
    /// The view that the program would have without the tracer, where the runtime took the place of GCC's libgomp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_libgomp: Option<OfLibgomp>,
}

/// The view of the same process by a libgomp that another runtime took the place of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfLibgomp {
    /// Its file.
    pub path: String,
    /// `omp_get_num_procs`.
    pub num_procs: i32,
    /// `omp_get_num_places`: 0 where it binds no threads.
    pub num_places: i32,
    /// `omp_get_max_threads`, before the program changed it.
    pub max_threads: i32,
}

/// One callback's registration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Registration {
    /// The callback's number.
    pub number: u32,
    /// The result of `ompt_set_callback` (OpenMP 5.2, `ompt_set_result_t`).
    pub result: u32,
    /// Its name: `always`, `never`, `error`, ...
    pub meaning: String,
}

/// The session's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// `tsc`, `cntvct`, `rdtime`, `mftb` or `monotonic`.
    pub kind: String,
    /// Ticks per second as known at the start: good to some 100 ppm.
    pub ticks_per_second: f64,
    /// Ticks that passed while the first pair of clocks was read.
    pub uncertainty_ticks: u64,
    /// The fewest ticks by which the clock was seen to go on; 0 where nobody has looked.
    #[serde(skip_serializing_if = "is_zero")]
    pub step_ticks: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Clock {
    /// The nanoseconds that two times are apart at least, if they are not the same; `None` where the trace does not say.
    pub fn resolution_ns(&self) -> Option<f64> {
        let ns = self.step_ticks.max(1) as f64 * 1e9 / self.ticks_per_second;
        // A damaged trace may say anything.
        (ns > 0.0 && ns < 1e9).then_some(ns)
    }
}

/// How samples were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// `cpu` or `perf`: the clock that was asked for.
    pub clock: String,
    /// The processor time between two samples that was asked for, in nanoseconds.
    pub period_ns: u64,
    /// Why there are no samples, or not of all that happened.
    pub problems: Vec<String>,
}

/// Which counters of threads were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counting {
    /// The names of those that each reading has, in its order.
    pub counters: Vec<String>,
    /// Those that were asked for and cannot be had, each with the reason.
    pub missing: BTreeMap<String, String>,
    /// Why there are no values, or not of all threads.
    pub problems: Vec<String>,
}

impl Counting {
    /// What is not counted, each with the reason.
    pub fn not_counted(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, why) in &self.missing {
            by_reason.entry(why).or_default().push(name);
        }
        let missing = by_reason.into_iter();
        let missing = missing.map(|(why, names)| format!("no {}: {why}", names.join(", ")));
        missing.chain(self.problems.iter().cloned()).collect()
    }

    /// The lines for people: what is counted, and what is not and why.
    pub fn lines(&self) -> Vec<String> {
        let counted = (!self.counters.is_empty()).then(|| self.counters.join(", "));
        counted.into_iter().chain(self.not_counted()).collect()
    }
}

/// Processor time, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuTime {
    /// That of the process when the session began (`CLOCK_PROCESS_CPUTIME_ID`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_begin_ns: Option<u64>,
    /// When it ended, all threads that there were included, and the tracer's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_end_ns: Option<u64>,
    /// Threads, in the order in which they began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadCpuTime>,
    /// Threads of the session whose time is not known.
    pub unknown_threads: u64,
    /// How long the threads had been ready to run, while others had the CPUs, all together. Threads
    /// that had ended before the program did are not in it. Missing where the system does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
}

/// The processor time of a thread since it was made (`CLOCK_THREAD_CPUTIME_ID`), in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u64, u64)", into = "(u32, u64, u64)")]
pub struct ThreadCpuTime {
    /// The thread's stream.
    pub stream: u32,
    /// At its first event.
    pub begin_ns: u64,
    /// When it ended, or the session.
    pub end_ns: u64,
}

impl From<(u32, u64, u64)> for ThreadCpuTime {
    fn from((stream, begin_ns, end_ns): (u32, u64, u64)) -> ThreadCpuTime {
        ThreadCpuTime { stream, begin_ns, end_ns }
    }
}

impl From<ThreadCpuTime> for (u32, u64, u64) {
    fn from(time: ThreadCpuTime) -> (u32, u64, u64) {
        (time.stream, time.begin_ns, time.end_ns)
    }
}

/// What recording costs, as the tracer measured it on the process's machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracerCost {
    /// Ticks of the session's clock that a usual event takes the thread that it comes from.
    pub event_ticks: f64,
}

impl Metadata {
    /// What a usual event takes the thread that records it, in nanoseconds; `None` where that was not measured.
    pub fn event_cost_ns(&self) -> Option<f64> {
        let cost = self.tracer_cost.as_ref()?;
        let ns = cost.event_ticks / self.clock.as_ref()?.ticks_per_second * 1e9;
        // A damaged trace may say anything.
        (ns > 0.0 && ns < 1e6).then_some(ns)
    }
}

/// A device that was initialized.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// The runtime's word for its type.
    pub r#type: String,
    /// The provider of the tracing entry points: `runtime`.
    pub provider: String,
    /// Tracing entry points that its lookup answered.
    pub entry_points: Vec<String>,
    /// `ompt_get_device_num_procs`; 0 where the runtime does not say.
    pub num_procs: i32,
    /// The format of its trace records: `ompt`, `native`, or empty where it gives none.
    pub records: String,
    /// Why there are no records, or not all.
    pub problems: Vec<String>,
    /// Counts of events of its trace buffers and the records in them.
    pub counts: BTreeMap<String, u64>,
}

/// A row of the event table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Schema {
    /// The event's number.
    pub number: u16,
    /// Its compact kind, or 0.
    pub kind: u8,
    /// Its name.
    pub name: String,
    /// Name and type of each argument.
    pub arguments: Vec<(String, String)>,
}

/// How a session ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// `finalize` (the runtime said so), `destructor` (`exit` without it), or `failure` (tracing turned itself off).
    pub how: String,
    /// Streams of the session.
    pub streams: u32,
    /// Events lost in all streams.
    pub lost: u64,
    /// `CLOCK_MONOTONIC_RAW` when it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_ns: Option<u64>,
    /// The same when the tracer began to end it: in between, it wrote what was left. Missing before version 0.3.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_raw_ns: Option<u64>,
}

/// A [`crate::Diagnostic`] in writing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// `warning` or `error`.
    pub severity: String,
    /// The kind's name.
    pub kind: String,
    /// Words for people.
    pub text: String,
    /// Where in the file before it was sealed, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
    /// The chunk of that stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// How many.
    pub count: u64,
}

/// The facts that `omptrace record` knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The command that it was given.
    pub command_line: Vec<String>,
    /// The exit status of the program, where the process is the one that `record` started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// The signal that killed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// `CLOCK_MONOTONIC_RAW` before that process was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_raw_ns: Option<u64>,
    /// `CLOCK_MONOTONIC_RAW` when it had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_raw_ns: Option<u64>,
    /// The library that replaced libgomp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub libgomp_replaced_by: Option<String>,
    /// The energy that the machine used meanwhile, where it may be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<Energy>,
}

/// The energy that a part of the machine used, by the processor's own estimate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Energy {
    /// The part, as the kernel calls it: `package-0`, `package-0 core`.
    pub zone: String,
    /// When it was read, by `CLOCK_MONOTONIC_RAW`, and the microjoules since the first reading.
    pub readings: Vec<(u64, u64)>,
}

impl Energy {
    /// The joules from the first reading to the last; `None` where there are no two.
    pub fn joules(&self) -> Option<f64> {
        let (first, last) = (self.readings.first()?, self.readings.last()?);
        let uj = last.1.checked_sub(first.1)?;
        (self.readings.len() > 1).then_some(uj as f64 / 1e6)
    }

    /// The mean power from each reading to the next, with the time of the first of both.
    pub fn powers_mw(&self) -> impl Iterator<Item = (u64, i64)> {
        let pairs = self.readings.windows(2);
        pairs.filter_map(|pair| {
            let [(begin, before), (end, after)] = pair else {
                return None;
            };
            let ns = end.checked_sub(*begin).filter(|ns| *ns > 0)?;
            let uj = after.checked_sub(*before)?;
            // A microjoule in a nanosecond is a million milliwatts.
            let mw = u128::from(uj) * 1_000_000 / u128::from(ns);
            Some((*begin, i64::try_from(mw).unwrap_or(i64::MAX)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_is_energy_by_time() {
        let energy = Energy {
            zone: "package-0".to_owned(),
            readings: vec![(1_000, 0), (1_000_001_000, 45_000_000), (3_000_001_000, 65_000_000)],
        };
        assert_eq!(energy.joules(), Some(65.0));
        let powers: Vec<_> = energy.powers_mw().collect();
        assert_eq!(powers, [(1_000, 45_000), (1_000_001_000, 10_000)]);
    }

    #[test]
    fn readings_that_make_no_sense_have_no_power() {
        let with = |readings: &[(u64, u64)]| Energy { zone: String::new(), readings: readings.to_vec() };
        assert_eq!(with(&[]).joules(), None);
        assert_eq!(with(&[(1, 1)]).joules(), None);
        for readings in [&[(5, 1), (4, 2)][..], &[(5, 1), (5, 2)], &[(5, 2), (6, 1)]] {
            assert_eq!(with(readings).powers_mw().count(), 0);
        }
        assert_eq!(with(&[(0, 0), (1, u64::MAX)]).powers_mw().next(), Some((0, i64::MAX)));
    }
}
