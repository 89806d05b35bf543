//! The definitions that the other items refer to: processes, locations, regions, counters.

use crate::model::ids::{CounterId, LocationId, Ns, ProcessId, RegionId};
use crate::names::construct::{Category, Construct};
use crate::runtime_quirks::capabilities::Reports;
use crate::samples::availability::SampleSums;

/// One traced process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its number; processes come by rank, then start.
    pub id: ProcessId,
    /// Its name for people: program, rank where there is one, process id.
    pub name: String,
    /// The id that the operating system gave it; not unique over hosts.
    pub os_pid: u32,
    /// Whether a process before it in the timeline has the same `os_pid`.
    pub has_namesake: bool,
    /// The machine that it ran on; empty where it is not known.
    pub host: String,
    /// Its MPI rank, where a launcher set it.
    pub rank: Option<u32>,
    /// The program and its arguments; empty where they are not known.
    pub command_line: Vec<String>,
    /// The program's exit status, where somebody waited for it.
    pub exit_status: Option<i32>,
    /// The CPUs that it may run on; `None` where the trace does not say.
    pub processors: Option<u32>,
    /// When the process lived.
    pub lifetime: Lifetime,
    /// The things that its runtime reports.
    pub reports: Reports,
    /// The CPU time that was asked for between two samples of a thread; 0 where none were.
    pub sampling_period_ns: u64,
    /// The names of its threads' counters, in the order of their values.
    pub counters: Vec<String>,
    /// Whether newer events overwrote older ones, as in a flight recorder: what a thread did before its first is not known.
    pub is_overwritten: bool,
}

/// When a process lived. Its start lies before the tracer's, so it may lie before the timeline's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// When the tracer began.
    pub traced_from: Ns,
    /// When the process started; `None` where the trace does not say.
    pub started: Option<Ns>,
    /// When it ended, or else the tracer; `None` where that was before its time.
    pub ended: Option<Ns>,
    /// When the tracer began to end, and when it was done: it wrote what was left. `None` where the trace does not say.
    pub tracer_ended: Option<(Ns, Ns)>,
}

impl Process {
    /// Its name without the process id, for viewers that show that beside the name.
    pub fn name_beside_id(&self) -> &str {
        let id = format!(" ({})", self.os_pid);
        self.name.strip_suffix(&id).unwrap_or(&self.name)
    }
}

/// The facts that the timeline of a process was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The tracer that wrote the trace; empty where that is not known, as the next two.
    pub tracer: String,
    /// The OpenMP runtime, as it calls itself.
    pub runtime: String,
    /// The generation of its tools interface.
    pub dialect: String,
    /// The time of its last event.
    pub end: Ns,
    /// Events read.
    pub events: u64,
    /// Events that the tracer had lost.
    pub lost: u64,
    /// How many samples there are, and how many were lost.
    pub samples: SampleSums,
    /// Places where the trace is damaged.
    pub damages: u64,
    /// The repairs and things left out: how often, by the name of the cause; causes that were not met are missing.
    pub repairs: Vec<(&'static str, u64)>,
}

/// Where things happen: a thread, or a track for things that are not block-structured.
#[derive(Clone, Debug)]
pub struct Location {
    /// Its number.
    pub id: LocationId,
    /// The process that it belongs to.
    pub process: ProcessId,
    /// Its kind.
    pub kind: LocationKind,
    /// Its name for people; unique within the process.
    pub name: String,
}

/// The role of a thread for people, in the order of display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadRole {
    /// The process's first thread.
    Main,
    /// A thread that the runtime made for parallel regions.
    Worker,
    /// A further thread of the program's own that uses OpenMP.
    Initial,
    /// A thread of the runtime's own, for target tasks that nobody waits for.
    Helper,
    /// The runtime did not say.
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
    /// A thread, with the operating system's id for it (0 where that is not known); holds nested regions and instants.
    Thread {
        /// The id.
        os_tid: u32,
        /// The number of its stream in the trace.
        stream: u32,
        /// Its role for people.
        role: ThreadRole,
    },
    /// A device: around its queues. Holds nested regions and instants: what the tracer did with its stream.
    Device {
        /// The device's number.
        device_num: i32,
    },
    /// Holds intervals: what a device did, one after the other. Flows may lead to the start of the newest interval.
    DeviceQueue {
        /// The device's number; its location was defined before.
        device_num: i32,
        /// The times are those that the host knows, for lack of the device's own.
        host_observed: bool,
    },
    /// Holds intervals: who held the lock, and when.
    Lock {
        /// The runtime's name for it: mostly its address.
        wait_id: u64,
    },
    /// Holds intervals: when recording was off.
    Track,
}

/// A place in the program where an OpenMP construct was seen; equal places share a region.
#[derive(Clone, Debug)]
pub struct Region {
    /// Its number.
    pub id: RegionId,
    /// Construct and place: `!$omp parallel @jacobi.c:41`, without source lines `!$omp parallel @stencil+0x1234`.
    pub name: String,
    /// The kind of construct.
    pub category: Category,
    /// The construct; regions of equal names and categories may be of several constructs, of which this is the first.
    pub construct: Construct,
    /// Its place in the source, where that is known.
    pub source: Option<Source>,
}

/// A place in the program's source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The function, as the programmer wrote it.
    pub function: Option<String>,
    /// The file, with its directory, and the line, from 1.
    pub line: Option<(String, u32)>,
    /// How exact that is.
    pub position: Position,
    /// The module and the address in its file, `app+0x1234`, where the line does not tell constructs apart:
    /// [`Position::Near`], and the functions that GCC made of constructs where their lines are not known.
    pub code: Option<String>,
}

impl Source {
    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        self.function.is_some() || self.line.is_some()
    }

    /// The file and the line of the construct itself: for formats that cannot say that a line is only near it.
    pub fn own_line(&self) -> Option<(&str, u32)> {
        let (file, line) = self.line.as_ref()?;
        (self.position == Position::At).then_some((file, *line))
    }
}

/// How exactly a place in the source is that of a construct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Position {
    /// It is there.
    #[default]
    At,
    /// It is in the code at that line, or in a function that is called there: its own line is not known.
    Inside,
    /// The line may be that of an earlier statement.
    Near,
}

impl Position {
    /// What stands before `@` in names.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Position::At => "",
            Position::Inside => "inside ",
            Position::Near => "near ",
        }
    }
}

/// A number that changes in the course of time.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Its number.
    pub id: CounterId,
    /// The process that it belongs to.
    pub process: ProcessId,
    /// Its name, after its unit: threads `waiting at barriers`.
    pub name: String,
    /// The things that it counts: `threads`, `tasks`.
    pub unit: &'static str,
}
