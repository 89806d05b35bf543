//! The statistics of a process.

use omptrace_timeline::model::{Ns, Process};
use omptrace_trace_format::Ending;
use serde::{Deserialize, Serialize};

use crate::constructs::thread_times::Account;
use crate::model::accounting::Accounting;

/// How a process ended if the tracer could not observe its end.
const DID_NOT_FINISH: &str = "did not finish";

/// A description of how a session ended; empty if not known.
pub(crate) fn ending_words(ending: Ending) -> String {
    match ending {
        Ending::Running => "running".to_owned(),
        Ending::Ended => "ended".to_owned(),
        Ending::Killed(signal) => format!("killed by signal {signal}"),
        Ending::DidNotFinish => DID_NOT_FINISH.to_owned(),
        Ending::Unknown(_) => String::new(),
    }
}

/// A process, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStats {
    /// An id for the process, valid in this answer only.
    pub id: u32,
    /// The name of the process: the program, the rank if there is one, and the process id.
    pub name: String,
    /// The process id in the operating system.
    pub pid: u32,
    /// The machine on which the process ran; empty if not known.
    pub host: String,
    /// The MPI rank, if the launcher provided it.
    pub rank: Option<u32>,
    /// How the session of the process ended: `ended`, `killed by signal N`, `did not finish`, or `running`;
    /// empty if not known.
    pub ending: String,
    /// The process's own N x T thread-nanoseconds by cause.
    pub accounting: Accounting,
    /// The time from the start of the process to its end. If the trace does not contain the start or the
    /// end, the start of the tracer or the last event is used instead.
    pub duration_ns: u64,
    /// How long the process had been running when the tracer started; `None` if the trace does not say.
    pub before_tracing_ns: Option<u64>,
    /// The CPU time that the process, including the tracer's own threads, had used when the tracer began to
    /// shut down. This field and the next are each left out if the trace does not contain the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// The cost of an event for the thread that records it, as measured by the tracer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_cost_ns: Option<f64>,
    /// The number of threads of the process that appear in the trace.
    pub threads: u32,
    /// The main thread's time outside of parallel regions. This field and the next three are `None` if that
    /// time was not observed.
    pub serial_ns: Option<u64>,
    /// The part of `serial_ns` before the first parallel region. This field and the next two are also
    /// `None` if older events were overwritten.
    pub serial_before_ns: Option<u64>,
    /// The part of `serial_ns` between parallel regions.
    pub serial_between_ns: Option<u64>,
    /// The part of `serial_ns` after the last parallel region.
    pub serial_after_ns: Option<u64>,
    /// How evenly kernels were spread over the devices of the process, from 0 to 1: the mean of the
    /// devices' kernel times / the longest of them. `None` unless several devices recorded kernels.
    pub device_load_balance: Option<f64>,
    /// What is not known about the process, and why.
    pub unknown: Vec<String>,
}

/// The program in the name of a process, which also has the rank, if there is one, and the process id.
pub fn program_of(name: &str, pid: u32, rank: Option<u32>) -> &str {
    let name = name.strip_suffix(&format!(" ({pid})")).unwrap_or(name);
    let rank = rank.map(|rank| format!("rank {rank}: "));
    rank.and_then(|rank| name.strip_prefix(&rank)).unwrap_or(name)
}

impl ProcessStats {
    /// The program's name: [`ProcessStats::name`] without rank and process id.
    pub fn program(&self) -> &str {
        program_of(&self.name, self.pid, self.rank)
    }

    /// Whether the process was killed, or did not finish.
    pub fn has_died(&self) -> bool {
        self.ending.starts_with("killed") || self.ending == DID_NOT_FINISH
    }

    pub(crate) fn of(process: &Process, begin: Ns, end: Ns, threads: u32, main: Option<&Account>) -> Self {
        let lifetime = process.lifetime;
        let before = |started: Ns| lifetime.traced_from.abs_diff(started);
        // If events were overwritten, regions may be missing.
        let serial = main.filter(|_| !process.is_overwritten);
        let serial = serial.map(Account::serial);
        ProcessStats {
            id: process.id.0,
            name: process.name.clone(),
            pid: process.os_pid,
            host: process.host.clone(),
            rank: process.rank,
            ending: String::new(),
            accounting: Accounting::default(),
            duration_ns: end.abs_diff(begin),
            before_tracing_ns: lifetime.started.map(before),
            cpu_ns: None,
            event_cost_ns: None,
            threads,
            serial_ns: main.map(|main| main.serial),
            serial_before_ns: serial.map(|serial| serial.before),
            serial_between_ns: serial.map(|serial| serial.between),
            serial_after_ns: serial.map(|serial| serial.after),
            device_load_balance: None,
            unknown: Vec::new(),
        }
    }
}
