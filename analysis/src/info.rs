//! A summary of a trace: its program, machine and time, and how complete it is.

use std::collections::BTreeMap;

use omptrace_trace_format::metadata::{Counting, Device, Mpi, Record, Sampling};
use omptrace_trace_format::{Ending, Finding, Reader, Stream};
use serde::Serialize;

use crate::check::{findings, of_recording};
use crate::constructs::Collector;
use crate::model::mpi;
use crate::model::process_stats::ProcessStats;
use crate::mpi_job::MpiJob;
use crate::passes::selection::SelectedThreads;
use omptrace_symbols::Table;
use omptrace_timeline::{
    DeviceReport, Dialect, EventCounts, Manner, ThreadIntroduction, WaitingRank, process_name, replay_with,
};

/// Summary of one trace. Texts are empty and numbers are 0 if the trace does not contain them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Info {
    /// The trace's path.
    pub file: String,
    /// The traced program.
    pub program: ProgramInfo,
    /// The machine on which the program ran.
    pub machine: MachineInfo,
    /// The clock of the timestamps; left out if the trace does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockInfo>,
    /// When the program started, in RFC 3339 format.
    pub start: String,
    /// The time from the process's start to its end. If the trace does not contain these: from the session's start to
    /// the last event.
    pub duration_ns: u64,
    /// How long the process had run when the session began; left out if the trace does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_tracing_ns: Option<u64>,
    /// The main thread's time outside of parallel regions: total, before the first region, between regions, after the
    /// last. Left out if it was not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<SerialInfo>,
    /// How the program ended, in words.
    pub ending: String,
    /// The facts that `omptrace record` added: the command, its exit status or signal, the library that replaced libgomp.
    pub record: Option<Record>,
    /// The OpenMP runtime.
    pub runtime: RuntimeInfo,
    /// Names of callbacks by the return value of their registration: `always`, `never`, ...
    pub callbacks: BTreeMap<String, Vec<String>>,
    /// The tracer's settings in effect.
    pub settings: BTreeMap<String, String>,
    /// How samples were taken; left out if none were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// The threads' counters; left out if none were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counting>,
    /// The devices, by number.
    pub devices: BTreeMap<i32, DeviceInfo>,
    /// The streams, by number.
    pub streams: Vec<StreamInfo>,
    /// Number of events in all streams.
    pub events: u64,
    /// Number of events by name.
    pub events_by_name: BTreeMap<String, u64>,
    /// Number of events that the tracer lost.
    pub lost: u64,
    /// Sizes of the trace.
    pub size: SizeInfo,
    /// The tracer's messages about problems.
    pub messages: Vec<String>,
    /// Callbacks that the tracer did not register because the runtime would have harmed the program, each with the
    /// reason.
    pub withheld: BTreeMap<String, String>,
    /// The MPI library, if its calls were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi: Option<Mpi>,
    /// A note on serial time in programs that use MPI; left out if the program does not, or if its calls were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi_note: Option<String>,
    /// The calls in which this rank waits for others when its trace ends; left out if there are none. Known only if the
    /// traces of all ranks are given. See [`MpiJob`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mpi_waits: Vec<WaitingRank>,
    /// The ranks of a deadlock that includes this rank: each waits for the next, and the last for the first. Left out
    /// if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mpi_deadlock: Vec<u32>,
    /// The problems of the trace, the most severe first.
    pub findings: Vec<Finding>,
}

/// Time outside of parallel regions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SerialInfo {
    /// The total.
    pub total_ns: u64,
    /// Before the first parallel region.
    pub before_ns: u64,
    /// Between parallel regions.
    pub between_ns: u64,
    /// After the last parallel region.
    pub after_ns: u64,
}

impl SerialInfo {
    fn of(process: &ProcessStats) -> Option<SerialInfo> {
        Some(SerialInfo {
            total_ns: process.serial_ns?,
            before_ns: process.serial_before_ns?,
            between_ns: process.serial_between_ns?,
            after_ns: process.serial_after_ns?,
        })
    }
}

/// The traced program.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProgramInfo {
    /// Its name, as timelines show it.
    pub name: String,
    /// The executable.
    pub executable: String,
    /// Its arguments, the program's name first.
    pub command_line: Vec<String>,
    /// Its working directory.
    pub directory: String,
    /// Its process id.
    pub pid: u32,
    /// Its MPI rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Whether it was forked by a traced process.
    pub forked: bool,
}

/// The machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MachineInfo {
    /// Its host name.
    pub host: String,
    /// The CPU model.
    pub cpu: String,
    /// Number of CPUs online.
    pub cpus: u32,
    /// CPUs that the process could use.
    pub affinity: String,
    /// The kernel.
    pub kernel: String,
}

/// The clock of a session.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClockInfo {
    /// `tsc`, `cntvct`, `rdtime`, `mftb` or `monotonic`.
    pub kind: String,
    /// Ticks per second.
    pub ticks_per_second: f64,
    /// The smallest difference between two distinct timestamps, in nanoseconds.
    pub resolution_ns: f64,
}

/// The OpenMP runtime.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RuntimeInfo {
    /// The version, as the runtime reports it.
    pub version: String,
    /// The value of `_OPENMP`.
    pub omp_version: u32,
    /// The generation of its tools interface.
    pub dialect: String,
    /// The path of its library.
    pub path: String,
    /// The thread states that the runtime distinguishes, by number.
    pub states: BTreeMap<u32, String>,
    /// The deviations from the specification that the reader corrects.
    pub quirks: Vec<&'static str>,
    /// The tracer that the runtime loaded.
    pub tracer: String,
}

/// One device.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DeviceInfo {
    /// What the tracer recorded about the device: entry points, record format, missing or refused functions, and
    /// counts.
    #[serde(flatten)]
    pub device: Device,
    /// Where the times on the device's timeline come from.
    pub timeline: DeviceReport,
}

/// One stream.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StreamInfo {
    /// The stream number.
    pub stream: u32,
    /// The thread's name, as timelines show it.
    pub thread: String,
    /// The thread's name in the operating system.
    pub os_name: String,
    /// The thread's id in the operating system.
    pub os_tid: u32,
    /// `initial`, `worker`, ...; empty if the thread never announced itself.
    pub thread_type: String,
    /// Number of events.
    pub events: u64,
    /// Number of chunks.
    pub chunks: usize,
    /// Number of chunks that must have existed but are not in the trace.
    pub missing_chunks: u64,
}

/// Sizes of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SizeInfo {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the spool; 0 if there is none.
    pub spool_bytes: u64,
    /// Bytes of the summary in the file; 0 if there is none.
    pub summary_bytes: u64,
    /// Number of places where reading can start (checkpoints), and their bytes in the file.
    pub checkpoints: u64,
    /// See `checkpoints`.
    pub checkpoint_bytes: u64,
    /// Bytes of the file per event.
    pub bytes_per_event: f64,
    /// Whether the file needs no spool: all events are in the file itself.
    pub sealed: bool,
}

impl Info {
    /// Reads the whole trace.
    pub fn of(reader: &Reader) -> Info {
        let metadata = reader.metadata();
        let mut collector = Collector::new(0, SelectedThreads::default());
        let manner = Manner { counts: true, ..Manner::default() };
        let report = replay_with(&[reader], &Table::stored, manner, &mut collector, &mut |_| {});
        let lived = collector.sums().stats().processes.into_iter().next();
        let lived = lived.unwrap_or_default();
        let mut process = report.processes.into_iter().next().unwrap_or_default();
        let threads = std::mem::take(&mut process.threads);
        let counts = std::mem::take(&mut process.counts);
        let mut events_by_name = BTreeMap::new();
        for (name, count) in counts.iter().flat_map(EventCounts::by_name) {
            *events_by_name.entry(name.to_owned()).or_insert(0) += count;
        }
        Info {
            file: reader.path().display().to_string(),
            program: program(reader),
            machine: machine(reader),
            clock: clock(reader),
            start: metadata.start.clone().unwrap_or_default(),
            duration_ns: lived.duration_ns,
            before_tracing_ns: lived.before_tracing_ns,
            serial: SerialInfo::of(&lived),
            ending: ending(reader),
            record: metadata.record.clone(),
            runtime: runtime(reader),
            callbacks: callbacks(reader),
            settings: metadata.settings.clone(),
            sampling: metadata.sampling.clone(),
            counters: metadata.counting.clone(),
            devices: devices(reader, &process.devices),
            streams: streams(reader, &counts, threads),
            events: process.events,
            events_by_name,
            lost: process.lost,
            size: size(reader, process.events),
            messages: metadata.messages.clone(),
            withheld: metadata.withheld.clone(),
            mpi: metadata.mpi.clone(),
            mpi_note: mpi::unseen(reader),
            mpi_waits: Vec::new(),
            mpi_deadlock: Vec::new(),
            findings: findings(&process).into_iter().chain(of_recording(reader)).collect(),
        }
    }
}

impl Info {
    /// Adds what the traces of all ranks show about this rank.
    pub fn add_job(&mut self, job: &MpiJob) {
        let rank = self.mpi.as_ref().and_then(|mpi| mpi.rank);
        let Some(rank) = rank else { return };
        self.mpi_waits = job.waits_of(rank).cloned().collect();
        if job.deadlock.contains(&rank) {
            self.mpi_deadlock.clone_from(&job.deadlock);
        }
    }
}

/// [`Info::ending`] of a process whose runtime announced its end.
pub const ENDED: &str = "ended";

fn program(reader: &Reader) -> ProgramInfo {
    let process = reader.metadata().process.clone().unwrap_or_default();
    ProgramInfo {
        name: process_name(reader),
        executable: process.executable,
        command_line: process.command_line,
        directory: process.directory,
        pid: reader.header().pid,
        rank: reader.metadata().rank(),
        forked: process.forked,
    }
}

fn machine(reader: &Reader) -> MachineInfo {
    let machine = reader.metadata().machine.clone().unwrap_or_default();
    let affinity = reader.metadata().process.as_ref().map(|process| process.affinity.clone());
    MachineInfo {
        host: machine.host,
        cpu: machine.cpu,
        cpus: machine.cpus,
        affinity: affinity.unwrap_or_default(),
        kernel: machine.kernel,
    }
}

fn clock(reader: &Reader) -> Option<ClockInfo> {
    let clock = reader.metadata().clock.as_ref()?;
    let resolution_ns = clock.resolution_ns()?;
    Some(ClockInfo { kind: clock.kind.clone(), ticks_per_second: clock.ticks_per_second, resolution_ns })
}

fn ending(reader: &Reader) -> String {
    let end = reader.metadata().end.as_ref().map_or("", |end| &end.how);
    match reader.ending() {
        Ending::Running => "still running".to_owned(),
        Ending::Ended if end == "finalize" => ENDED.to_owned(),
        Ending::Ended if end == "destructor" => {
            "ended by exit(), but the runtime did not call the tracer's finalize function".to_owned()
        }
        Ending::Ended => format!("ended ({end})"),
        Ending::Killed(signal) => format!("killed by signal {signal}"),
        Ending::DidNotFinish => "did not finish".to_owned(),
        Ending::Unknown(doubt) => {
            format!("did not finish, or is still running; omptrace cannot determine which, because {doubt}")
        }
    }
}

fn runtime(reader: &Reader) -> RuntimeInfo {
    let metadata = reader.metadata();
    let runtime = metadata.runtime.clone().unwrap_or_default();
    RuntimeInfo {
        version: runtime.version,
        omp_version: runtime.omp_version,
        dialect: runtime.dialect,
        path: runtime.path,
        states: runtime.states,
        quirks: Dialect::of(metadata).quirks(),
        tracer: metadata.tracer.clone().unwrap_or_default(),
    }
}

fn callbacks(reader: &Reader) -> BTreeMap<String, Vec<String>> {
    let mut by_meaning: BTreeMap<String, Vec<(u32, String)>> = BTreeMap::new();
    for (name, registration) in &reader.metadata().callbacks {
        let names = by_meaning.entry(registration.meaning.clone()).or_default();
        names.push((registration.number, name.clone()));
    }
    let by_number = |(meaning, mut names): (String, Vec<(u32, String)>)| {
        names.sort_unstable();
        (meaning, names.into_iter().map(|(_, name)| name).collect())
    };
    by_meaning.into_iter().map(by_number).collect()
}

/// All devices that either side knows. A tracer that was loaded late did not see the initialization.
fn devices(reader: &Reader, timelines: &BTreeMap<i32, DeviceReport>) -> BTreeMap<i32, DeviceInfo> {
    let known = &reader.metadata().devices;
    let info = |number: &i32| DeviceInfo {
        device: known.get(number).cloned().unwrap_or_default(),
        timeline: timelines.get(number).cloned().unwrap_or_default(),
    };
    let numbers = known.keys().chain(timelines.keys());
    numbers.map(|number| (*number, info(number))).collect()
}

fn streams(reader: &Reader, counts: &[EventCounts], threads: Vec<ThreadIntroduction>) -> Vec<StreamInfo> {
    let of = |((stream, counts), thread): ((&Stream, &EventCounts), ThreadIntroduction)| StreamInfo {
        stream: stream.number,
        thread: thread.name,
        os_name: thread.os_name,
        os_tid: thread.os_tid,
        thread_type: thread.thread_type.map_or_else(String::new, |kind| match kind.name() {
            Some(name) => name.to_owned(),
            None => format!("{:#x}", kind.0),
        }),
        events: counts.total(),
        chunks: stream.chunks(),
        missing_chunks: stream.missing(),
    };
    reader.streams().iter().zip(counts).zip(threads).map(of).collect()
}

fn size(reader: &Reader, events: u64) -> SizeInfo {
    let summary = reader.summary();
    SizeInfo {
        file_bytes: summary.file_bytes,
        spool_bytes: summary.spool_bytes,
        summary_bytes: summary.summary_bytes,
        checkpoints: summary.checkpoints,
        checkpoint_bytes: summary.checkpoint_bytes,
        bytes_per_event: if events == 0 { 0.0 } else { summary.file_bytes as f64 / events as f64 },
        sealed: summary.sealed,
    }
}
