//! A process in numbers.

use omptrace_timeline::model::{Ns, Process};
use omptrace_trace_format::Ending;
use serde::{Deserialize, Serialize};

use crate::constructs::thread_times::Account;
use crate::model::accounting::Accounting;

/// The ending of a process that ended before the tracer knew.
const DID_NOT_FINISH: &str = "did not finish";

/// Words about how a session ended; none where that is not known.
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
    /// Its number in these numbers.
    pub id: u32,
    /// Its name: program, rank where there is one, process id.
    pub name: String,
    /// The id that the operating system gave it.
    pub pid: u32,
    /// The machine that it ran on; empty where it is not known.
    pub host: String,
    /// Its MPI rank, where a launcher set it.
    pub rank: Option<u32>,
    /// How its session ended: `ended`, `killed by signal N`, `did not finish`, or `running`; empty where that is not known.
    pub ending: String,
    /// Its own N x T thread-nanoseconds by cause.
    pub accounting: Accounting,
    /// From its start to its end; where the trace does not say these, from the tracer's begin, to the last event.
    pub duration_ns: u64,
    /// How long it had run when the tracer began; `None` where the trace does not say.
    pub before_tracing_ns: Option<u64>,
    /// Its processor time, that of the tracer's own threads included, until the tracer began to end. Left out where the trace does not
    /// say, as the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// What an event costs the thread that records it, as the tracer measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_cost_ns: Option<f64>,
    /// Its threads that were seen.
    pub threads: u32,
    /// The main thread's time outside of parallel regions; `None` where that was not seen, as for the next three.
    pub serial_ns: Option<u64>,
    /// The part of it before the first parallel region; `None` also where older events were overwritten, as for the next
    /// two.
    pub serial_before_ns: Option<u64>,
    /// The part of it between parallel regions.
    pub serial_between_ns: Option<u64>,
    /// The part of it after the last parallel region.
    pub serial_after_ns: Option<u64>,
    /// How evenly kernels were spread over its devices, from 0 to 1: the mean of the times that they ran by the longest. `None`
    /// unless several devices recorded kernels.
    pub device_load_balance: Option<f64>,
    /// Numbers that cannot be known here, and why.
    pub unknown: Vec<String>,
}

impl ProcessStats {
    /// Whether it was killed, or ended before the tracer knew.
    pub(crate) fn has_died(&self) -> bool {
        self.ending.starts_with("killed") || self.ending == DID_NOT_FINISH
    }

    pub(crate) fn of(process: &Process, begin: Ns, end: Ns, threads: u32, main: Option<&Account>) -> Self {
        let lifetime = process.lifetime;
        let before = |started: Ns| lifetime.traced_from.abs_diff(started);
        // Regions may have been overwritten.
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
