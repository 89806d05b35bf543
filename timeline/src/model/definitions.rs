//! The definitions that the other items refer to: processes, locations, regions, counters.

use crate::model::ids::{CounterId, LocationId, Ns, ProcessId, RegionId};
use crate::names::construct::{Category, Construct};
use crate::runtime_quirks::capabilities::Reports;
use crate::samples::availability::SampleSums;

/// One traced process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// The process's number. Processes are sorted by rank, then by start.
    pub id: ProcessId,
    /// The displayed name: program, rank if there is one, and process id.
    pub name: String,
    /// The process id in the operating system; not unique across hosts.
    pub os_pid: u32,
    /// Whether an earlier process on the timeline has the same `os_pid`.
    pub has_namesake: bool,
    /// The machine on which the process ran; empty if unknown.
    pub host: String,
    /// The MPI rank, if a launcher set it.
    pub rank: Option<u32>,
    /// The program and its arguments; empty if unknown.
    pub command_line: Vec<String>,
    /// The program's exit status, if it was observed.
    pub exit_status: Option<i32>,
    /// Number of CPUs on which the process may run; `None` if the trace does not say.
    pub processors: Option<u32>,
    /// When the process existed.
    pub lifetime: Lifetime,
    /// What the process's runtime reports.
    pub reports: Reports,
    /// The requested CPU time between two samples of a thread; 0 if no samples were requested.
    pub sampling_period_ns: u64,
    /// The names of the counters of its threads, in the order of [`Counted`](crate::model::Counted) values.
    pub counters: Vec<String>,
    /// Whether newer events overwrote older ones, as in a flight recorder, so that nothing is known about a thread
    /// before its first event.
    pub is_overwritten: bool,
}

/// When a process existed. It starts before the tracer, and possibly before the timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// The start of the tracer.
    pub traced_from: Ns,
    /// The start of the process; `None` if the trace does not say.
    pub started: Option<Ns>,
    /// The end of the process, or if that is unknown, of the tracer; `None` if it ended prematurely.
    pub ended: Option<Ns>,
    /// When the tracer began to end, and when it had written its last events. `None` if the trace does not say.
    pub tracer_ended: Option<(Ns, Ns)>,
}

impl Process {
    /// The name without the process id, for viewers that show the id separately.
    pub fn name_beside_id(&self) -> &str {
        let id = format!(" ({})", self.os_pid);
        self.name.strip_suffix(&id).unwrap_or(&self.name)
    }
}

/// Facts about the trace of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The tracer that wrote the trace. This field and the next two are empty if unknown.
    pub tracer: String,
    /// The OpenMP runtime, as it reports itself.
    pub runtime: String,
    /// The generation of its tools interface.
    pub dialect: String,
    /// The time of the last event.
    pub end: Ns,
    /// Number of events read.
    pub events: u64,
    /// Number of events that the tracer lost.
    pub lost: u64,
    /// Numbers of samples, and of lost samples.
    pub samples: SampleSums,
    /// Number of damaged places in the trace.
    pub damages: u64,
    /// Repairs and omissions: by name of the cause, how often it occurred. Causes that did not occur are missing.
    pub repairs: Vec<(&'static str, u64)>,
}

/// Where things happen: a thread, or a track for intervals that are not block-structured.
#[derive(Clone, Debug)]
pub struct Location {
    /// The location's number.
    pub id: LocationId,
    /// The process.
    pub process: ProcessId,
    /// The kind of location.
    pub kind: LocationKind,
    /// The displayed name; unique within the process.
    pub name: String,
}

/// The displayed role of a thread, in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadRole {
    /// The process's first thread.
    Main,
    /// A thread that the runtime created for parallel regions.
    Worker,
    /// Another thread of the program that uses OpenMP.
    Initial,
    /// A thread of the runtime, for target tasks that no thread waits for.
    Helper,
    /// The runtime did not report the role.
    Other,
}

impl ThreadRole {
    /// The role's name in exports.
    pub fn name(self) -> &'static str {
        match self {
            ThreadRole::Main => "main",
            ThreadRole::Worker => "worker",
            ThreadRole::Initial => "initial",
            ThreadRole::Helper => "helper",
            ThreadRole::Other => "other",
        }
    }
}

/// The kind of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationKind {
    /// A thread. Holds nested regions and instants.
    Thread {
        /// The thread's id in the operating system; 0 if unknown.
        os_tid: u32,
        /// The number of its stream in the trace.
        stream: u32,
        /// The displayed role.
        role: ThreadRole,
    },
    /// A device, which owns queues. Holds nested regions and instants: the tracer's work on the device's stream.
    Device {
        /// The device's number.
        device_num: i32,
    },
    /// A device queue. Holds intervals: the device's operations, one after another. Flows may lead to the start of the
    /// newest interval.
    DeviceQueue {
        /// The device's number. The device's location is defined earlier.
        device_num: i32,
        /// The times are those that the host observed, because the device recorded none.
        host_observed: bool,
    },
    /// A lock. Holds intervals, one for each hold.
    Lock {
        /// The runtime's id of the lock, usually its address.
        wait_id: u64,
    },
    /// The recording. Holds intervals in which it was off.
    Track,
}

/// A place in the program where an OpenMP construct occurred. Equal places share a region.
#[derive(Clone, Debug)]
pub struct Region {
    /// The region's number.
    pub id: RegionId,
    /// Construct and place: `!$omp parallel @jacobi.c:41`; without source lines, `!$omp parallel @stencil+0x1234`.
    pub name: String,
    /// The kind of construct.
    pub category: Category,
    /// The construct. Regions with the same name and category may come from several constructs; this is the first.
    pub construct: Construct,
    /// The source location, if known.
    pub source: Option<Source>,
}

/// A source location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The function, as the programmer wrote it.
    pub function: Option<String>,
    /// The file with its directory, and the line, counted from 1.
    pub line: Option<(String, u32)>,
    /// How exact the location is.
    pub position: Position,
    /// The module and the address in its file, `app+0x1234`, if the line does not tell constructs apart: for
    /// [`Position::Near`], and for functions that GCC created from constructs whose lines are unknown.
    pub code: Option<String>,
}

impl Source {
    /// Whether any part is known.
    pub fn is_known(&self) -> bool {
        self.function.is_some() || self.line.is_some()
    }

    /// File and line of the construct itself, for formats that cannot express that a line is only near it.
    pub fn own_line(&self) -> Option<(&str, u32)> {
        let (file, line) = self.line.as_ref()?;
        (self.position == Position::At).then_some((file, *line))
    }
}

/// How exact the source location of a construct is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Position {
    /// The construct is at this line.
    #[default]
    At,
    /// The construct is in the code of this line, or in a function called there; its own line is unknown.
    Inside,
    /// The line may belong to an earlier statement.
    Near,
}

impl Position {
    /// The word before `@` in names.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Position::At => "",
            Position::Inside => "inside ",
            Position::Near => "near ",
        }
    }
}

/// A number that changes over time.
#[derive(Clone, Debug)]
pub struct Counter {
    /// The counter's number.
    pub id: CounterId,
    /// The process.
    pub process: ProcessId,
    /// The name, to be read after the unit: threads `waiting at barriers`.
    pub name: String,
    /// The unit: `threads`, `tasks`.
    pub unit: &'static str,
}
