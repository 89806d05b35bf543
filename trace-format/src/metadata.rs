//! The description of a session: JSON objects in metadata blocks.
//!
//! Each block is one object; if blocks have the same key, the later block takes precedence. Keys that this version does
//! not know are kept in [`Metadata::other`].

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event;
use crate::write::lock::Reach;

/// The metadata blocks of a file, merged. Every key may be missing, because the process may have died before it was
/// written, or the block may be damaged.
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
    /// CPUs, places and devices that the runtime sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
    /// The callbacks that were registered, by name, and the result of each registration.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub callbacks: BTreeMap<String, Registration>,
    /// The session's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// The lock that the tracer holds on the file while it records; missing if the file system has no such locks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
    /// The tracer's settings in force, by variable name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// How samples were taken; missing if none were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// The counters of threads; missing if none were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counting: Option<Counting>,
    /// CPU time; missing if the session did not end, and in traces of older tracers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<CpuTime>,
    /// The cost of recording; missing if it was not measured, as before version 0.3.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracer_cost: Option<TracerCost>,
    /// Whether waits outside OpenMP were recorded (`omptrace_external_wait`), which since version 0.3.0 can be
    /// requested.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub external_waits: bool,
    /// Whether the program uses annotations, so that the trace has annotation events.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub annotations: bool,
    /// The MPI library, if its calls were recorded; since version 0.3.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi: Option<Mpi>,
    /// The devices that were initialized, by device number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<i32, Device>,
    /// The tracer's event table, so that an older reader can name events that it does not know. In a reader's metadata,
    /// only the rows that the reader does not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schema: Vec<Schema>,
    /// How the session ended; missing if the process died before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// The system error that turned tracing off while the program ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What `omptrace record` knows about the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
    /// The tracer's messages about problems, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// Callbacks that were not registered, or were removed, because with them the runtime would have harmed the
    /// program; with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub withheld: BTreeMap<String, String>,
    /// The flaws of the trace when it was sealed, also reported by [`crate::Reader::diagnostics`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found_while_sealing: Vec<Found>,
    /// Keys of newer tracers.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

impl Metadata {
    /// The process's rank in `MPI_COMM_WORLD` or, if MPI was not recorded, according to the launcher.
    pub fn rank(&self) -> Option<u32> {
        let of_mpi = self.mpi.as_ref().and_then(|mpi| mpi.rank);
        of_mpi.or_else(|| self.process.as_ref()?.rank)
    }

    /// A message about the error that turned tracing off, if any.
    pub fn failure_message(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        Some(format!(
            "tracing was turned off while the program ran, so later events are missing; the reason was: {failure}"
        ))
    }

    /// The callbacks that were registered and then removed while the program ran, so that events are missing; with the
    /// reason. Withheld callbacks that were never registered are left out, because most programs have nothing that they
    /// would report.
    pub fn taken_back(&self) -> impl Iterator<Item = (&String, &String)> {
        let withheld = self.withheld.iter();
        withheld.filter(|(callback, _)| self.callbacks.contains_key(*callback))
    }

    /// Removes the rows of the event table that this version knows.
    pub(crate) fn forget_known_rows(&mut self) {
        let known = event::schema();
        let is_known = |row: &Schema| {
            let mut known = known.iter();
            known.any(|known| (known.number, known.kind) == (row.number, row.kind))
        };
        self.schema.retain(|row| !is_known(row));
        self.schema.shrink_to_fit();
    }

    /// The metadata of `object`, and the number of keys left out because their values make no sense.
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
    /// The first line of the library's own description.
    pub library: String,
    /// The library's file.
    pub path: String,
    /// The application binary interface: `openmpi`, `mpich` or `abi` (the ABI of MPI 5).
    pub family: String,
    /// The version of the standard that the library follows.
    pub version: Vec<u32>,
    /// The process's rank in `MPI_COMM_WORLD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The number of processes in `MPI_COMM_WORLD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// The thread support levels that the program requested and received, by their names in the standard.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub thread_level: BTreeMap<String, Value>,
    /// A file whose definitions of MPI functions precede the recording ones: calls of these functions are not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_by: Option<String>,
}

/// The traced process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub parent_pid: u32,
    /// When the process started, in clock ticks since boot (field 22 of `/proc/PID/stat`). With the id, and on the
    /// same host, it distinguishes this process from a later one.
    pub started: u64,
    /// The process's start time as a reading of `CLOCK_MONOTONIC_RAW`, which the clock pairs in the trace contain, too.
    /// Its precision is one clock tick, usually 10 ms; it is never after the true start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_raw_ns: Option<i64>,
    /// The PID namespace of both ids (`/proc/PID/ns/pid`): a container has its own. 0 if unknown.
    pub pid_namespace: u64,
    /// The executable's path.
    pub executable: String,
    /// Arguments, the program's name first.
    pub command_line: Vec<String>,
    /// The process's working directory.
    pub directory: String,
    /// The MPI rank, if set by a launcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Whether this is the session of a forked child.
    pub forked: bool,
    /// CPUs that the process may use, as the kernel lists them (`0-3,8`).
    pub affinity: String,
}

impl Process {
    /// The ranges of CPUs in `affinity`; `None` if they are not known.
    pub fn cpus(&self) -> Option<Vec<RangeInclusive<u32>>> {
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some(first..=last)
        };
        self.affinity.split(',').map(range).collect()
    }
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
    /// The id of the kernel's boot (`/proc/sys/kernel/random/boot_id`): containers share it, and no other host has it.
    /// Empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub boot: String,
}

/// The tracer's lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lock {
    /// The device number of the file's file system, as seen by the process.
    pub device: u64,
    /// The file's inode number on that device.
    pub inode: u64,
    /// The processes to which the lock is visible.
    pub reach: Reach,
}

/// The OpenMP runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Runtime {
    /// The text that the runtime passed to `ompt_start_tool`.
    pub version: String,
    /// The OpenMP version that the runtime passed to it (`_OPENMP`).
    pub omp_version: u32,
    /// The generation of the tools interface, for example `5.x`.
    pub dialect: String,
    /// The library that called the tool.
    pub path: String,
    /// Entry points of the specification that the runtime's lookup function found.
    pub entry_points: Vec<String>,
    /// States that the runtime enumerates, by number.
    pub states: BTreeMap<u32, String>,
    /// Mutex implementations that the runtime enumerates, by number.
    pub mutex_impls: BTreeMap<u32, String>,
}

/// The runtime's view of the CPUs, queried when the program first uses OpenMP, because runtimes do not know it earlier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processors {
    /// `ompt_get_num_procs`.
    pub num_procs: i32,
    /// `ompt_get_num_devices`; `None` if the runtime does not know the devices yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_devices: Option<i32>,
    /// The CPUs of each place, `ompt_get_place_proc_ids`.
    pub places: Vec<Vec<i32>>,
    /// `omp_get_max_threads`, outside of parallel regions; only if a libgomp was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_threads: Option<i32>,
    /// What the program would see without the tracer, if the runtime replaced GCC's libgomp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_libgomp: Option<OfLibgomp>,
}

/// The view of the replaced libgomp in the same process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfLibgomp {
    /// The library's file.
    pub path: String,
    /// `omp_get_num_procs`.
    pub num_procs: i32,
    /// `omp_get_num_places`: 0 if threads are not bound.
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
    /// The name of the result: `always`, `never`, `error`, ...
    pub meaning: String,
}

/// The session's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// `tsc`, `cntvct`, `rdtime`, `mftb` or `monotonic`.
    pub kind: String,
    /// Ticks per second as estimated at the start, with an error of some 100 ppm.
    pub ticks_per_second: f64,
    /// Ticks that passed while the first pair of clocks was read.
    pub uncertainty_ticks: u64,
    /// The smallest observed increment of the clock, in ticks; 0 if not measured.
    #[serde(skip_serializing_if = "is_zero")]
    pub step_ticks: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Clock {
    /// The clock's resolution: the minimum difference of two different times, in nanoseconds; `None` if the trace does
    /// not tell.
    pub fn resolution_ns(&self) -> Option<f64> {
        let ns = self.step_ticks.max(1) as f64 * 1e9 / self.ticks_per_second;
        // A damaged trace may contain any number.
        (ns > 0.0 && ns < 1e9).then_some(ns)
    }
}

/// How samples were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// The requested clock: `cpu` or `perf`.
    pub clock: String,
    /// The requested CPU time between two samples, in nanoseconds.
    pub period_ns: u64,
    /// Why samples are missing, all or some.
    pub problems: Vec<String>,
}

/// The counters of threads that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counting {
    /// The names of the counters, in the order of the values in each reading.
    pub counters: Vec<String>,
    /// Counters that were requested but are unavailable, with the reason.
    pub missing: BTreeMap<String, String>,
    /// Why values are missing, for all or some threads.
    pub problems: Vec<String>,
    /// Duration of a reading, in ticks of the session's clock, without the counters that the CPU counts. `None` if it
    /// was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading_ticks: Option<u64>,
}

impl Counting {
    /// Descriptions of what is not counted, with the reasons.
    pub fn not_counted(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, why) in &self.missing {
            by_reason.entry(why).or_default().push(name);
        }
        let missing = by_reason.into_iter();
        let missing = missing.map(|(why, names)| format!("no {}: {why}", names.join(", ")));
        missing.chain(self.problems.iter().cloned()).collect()
    }

    /// Lines for display: what is counted, and what is not and why.
    pub fn lines(&self) -> Vec<String> {
        let counted = (!self.counters.is_empty()).then(|| self.counters.join(", "));
        counted.into_iter().chain(self.not_counted()).collect()
    }
}

/// CPU time, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuTime {
    /// CPU time of the process when the session began (`CLOCK_PROCESS_CPUTIME_ID`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_begin_ns: Option<u64>,
    /// CPU time of the process when the session ended, including all its threads and the tracer's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_end_ns: Option<u64>,
    /// Threads, in the order in which they began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadCpuTime>,
    /// Number of threads of the session whose CPU time is unknown.
    pub unknown_threads: u64,
    /// Total time that threads were ready to run while no CPU was free. Does not include threads that ended before the
    /// program. Missing if the system does not provide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
}

/// The CPU time of a thread since its creation (`CLOCK_THREAD_CPUTIME_ID`), in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u64, u64)", into = "(u32, u64, u64)")]
pub struct ThreadCpuTime {
    /// The thread's stream.
    pub stream: u32,
    /// At the thread's first event.
    pub begin_ns: u64,
    /// At the end of the thread, or of the session.
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

/// The cost of recording, as measured by the tracer on the process's machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracerCost {
    /// Duration of recording a typical event, on the thread that records it, in ticks of the session's clock.
    pub event_ticks: f64,
}

impl Metadata {
    /// Duration of recording a typical event, in nanoseconds; `None` if it was not measured.
    pub fn event_cost_ns(&self) -> Option<f64> {
        let cost = self.tracer_cost.as_ref()?;
        let ns = cost.event_ticks / self.clock.as_ref()?.ticks_per_second * 1e9;
        // A damaged trace may contain any number.
        (ns > 0.0 && ns < 1e6).then_some(ns)
    }

    /// Duration of a reading of the counters, in nanoseconds; `None` if it was not measured.
    pub fn reading_cost_ns(&self) -> Option<f64> {
        let ticks = self.counting.as_ref()?.reading_ticks?;
        let ns = ticks as f64 / self.clock.as_ref()?.ticks_per_second * 1e9;
        // As above.
        (ns > 0.0 && ns < 1e6).then_some(ns)
    }
}

/// A device that was initialized.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// The device's type, as named by the runtime.
    pub r#type: String,
    /// The provider of the tracing entry points: `runtime`.
    pub provider: String,
    /// Tracing entry points that the device's lookup function found.
    pub entry_points: Vec<String>,
    /// `ompt_get_device_num_procs`; 0 if the runtime does not provide it.
    pub num_procs: i32,
    /// The format of the device's trace records: `ompt`, `native`, or empty if there are none.
    pub records: String,
    /// Why records are missing, all or some.
    pub problems: Vec<String>,
    /// Numbers of trace buffer callbacks and records, by name.
    pub counts: BTreeMap<String, u64>,
}

/// A row of the event table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Schema {
    /// The event's number.
    pub number: u16,
    /// The event's compact kind, or 0.
    pub kind: u8,
    /// The event's name.
    pub name: String,
    /// Name and type of each argument.
    pub arguments: Vec<(String, String)>,
}

/// How a session ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// `finalize` (reported by the runtime), `destructor` (`exit` without a report), or `failure` (tracing turned
    /// itself off).
    pub how: String,
    /// Number of streams of the session.
    pub streams: u32,
    /// Number of lost events in all streams.
    pub lost: u64,
    /// `CLOCK_MONOTONIC_RAW` when the session ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_ns: Option<u64>,
    /// `CLOCK_MONOTONIC_RAW` when the tracer began to end the session; then it wrote the remaining events. Missing
    /// before version 0.3.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_raw_ns: Option<u64>,
}

/// A [`crate::Diagnostic`] as stored in a sealed trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// `warning` or `error`.
    pub severity: String,
    /// The kind's name.
    pub kind: String,
    /// The message.
    pub text: String,
    /// Byte offset in the file before it was sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
    /// The chunk's number in that stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// The count.
    pub count: u64,
}

/// What `omptrace record` knows about the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The command line of `omptrace record`.
    pub command_line: Vec<String>,
    /// The exit status of the program, if this process is the one that `record` started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// The signal that killed the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// `CLOCK_MONOTONIC_RAW` before the program was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_raw_ns: Option<u64>,
    /// `CLOCK_MONOTONIC_RAW` after the program had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_raw_ns: Option<u64>,
    /// The library that replaced libgomp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub libgomp_replaced_by: Option<String>,
    /// The energy that the machine used while the program ran, if readable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<Energy>,
}

/// The energy used by a part of the machine, as estimated by the CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Energy {
    /// The part, as the kernel calls it: `package-0`, `package-0 core`.
    pub zone: String,
    /// The time of each reading (`CLOCK_MONOTONIC_RAW`), and the microjoules since the first one.
    pub readings: Vec<(u64, u64)>,
}

impl Energy {
    /// The joules between the first and the last reading; `None` if there are fewer than two.
    pub fn joules(&self) -> Option<f64> {
        let (first, last) = (self.readings.first()?, self.readings.last()?);
        let uj = last.1.checked_sub(first.1)?;
        (self.readings.len() > 1).then_some(uj as f64 / 1e6)
    }

    /// The mean power between consecutive readings, in milliwatts, with the time of the earlier one.
    pub fn powers_mw(&self) -> impl Iterator<Item = (u64, i64)> {
        let pairs = self.readings.windows(2);
        pairs.filter_map(|pair| {
            let [(begin, before), (end, after)] = pair else {
                return None;
            };
            let ns = end.checked_sub(*begin).filter(|ns| *ns > 0)?;
            let uj = after.checked_sub(*before)?;
            // One microjoule per nanosecond is a million milliwatts.
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
