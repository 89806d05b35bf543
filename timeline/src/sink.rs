//! The neutral model between interpretation and formats: what a timeline consists of.
//!
//! Interpretation calls a [`Sink`], and a format is a `Sink`. Neither knows the other. The calls keep these rules, so
//! that no format needs a repair of its own:
//!
//! * [`Sink::process`], [`Sink::location`], [`Sink::region`] and [`Sink::counter`] come before the first use of what they
//!   define; their ids count up from 0 without gaps.
//! * On one location of kind [`LocationKind::Thread`], `enter`, `leave` and `instant` come in the order of their times,
//!   and each `leave` ends the newest `enter` that is still open. All are closed at the end.
//! * [`Sink::interval`] and [`Sink::flow`] come when their ends are known, in no order of time. The intervals of one
//!   track do not overlap.
//! * The times of one counter's [`Sink::count`] do not go back. Before the first it is 0.
//! * [`Sink::thread_event`] keeps the order of times on its thread, too, but for the end of a pause: what ended in the
//!   pause comes after it. What a [`ThreadEvent`] begins ends by its counterpart on the same thread.
//! * Times are nanoseconds since the timeline's start and never negative.
//!
//! A sink that fails to write keeps the error for [`Sink::finish`] and ignores what comes after it: interpretation is
//! then free of error paths, and [`Sink::failed`] ends it early.

use std::io;

use ompt_sys as ompt;

pub use crate::Reports;
pub use crate::names::{Construct, DeviceEvent, short_name, split_place};

/// Nanoseconds since the timeline's start.
pub type Ns = i64;

/// The number of a process in this timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// The number of a location in this timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocationId(pub u32);

/// The number of a region in this timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(pub u32);

/// The number of a counter in this timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CounterId(pub u32);

/// One traced process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its number; processes come by rank, then start.
    pub id: ProcessId,
    /// What people call it: program, rank where there is one, process id.
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
    /// When the process lived.
    pub lifetime: Lifetime,
    /// What its runtime reports.
    pub reports: Reports,
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
}

impl Process {
    /// Its name without the process id, for viewers that show that beside the name.
    pub fn name_beside_id(&self) -> &str {
        let id = format!(" ({})", self.os_pid);
        self.name.strip_suffix(&id).unwrap_or(&self.name)
    }
}

/// What the timeline of a process was made of.
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
    /// Places where the trace is damaged.
    pub damages: u64,
    /// What was repaired or left out: how often, by the name of the cause; causes that were not met are missing.
    pub repairs: Vec<(&'static str, u64)>,
}

/// Where things happen: a thread, or a track for things that are not block-structured.
#[derive(Clone, Debug)]
pub struct Location {
    /// Its number.
    pub id: LocationId,
    /// The process that it belongs to.
    pub process: ProcessId,
    /// What it is.
    pub kind: LocationKind,
    /// What people call it; unique within the process.
    pub name: String,
}

/// What a thread is to people, in the order of display.
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

/// What a location is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationKind {
    /// A thread, with the operating system's id for it (0 where that is not known); holds nested regions and instants.
    Thread {
        /// The id.
        os_tid: u32,
        /// The number of its stream in the trace.
        stream: u32,
        /// What it is to people.
        role: ThreadRole,
    },
    /// A device: around its queues. Holds nested regions and instants: what the tracer did with its stream.
    Device {
        /// The device's number.
        device_num: i32,
    },
    /// Holds intervals: what a device did, one after the other. Flows may lead to the begin of the newest interval.
    DeviceQueue {
        /// The device's number; its location was defined before.
        device_num: i32,
    },
    /// Holds intervals: who held the lock, and when.
    Lock {
        /// What the runtime calls it: mostly its address.
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
    /// The file, with its folder, and the line, from 1.
    pub line: Option<(String, u32)>,
}

/// A number that changes in the course of time.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Its number.
    pub id: CounterId,
    /// The process that it belongs to.
    pub process: ProcessId,
    /// What it is, behind its unit: threads `waiting at barriers`.
    pub name: String,
    /// What it counts: `threads`, `tasks`.
    pub unit: &'static str,
}

/// What kind of thing a region is; viewers filter and colour by it.
// 32 bits, in which it is read: a byte that is stored and read as more stalls the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Category {
    /// Parallel and teams regions.
    Parallel,
    /// Initial and implicit tasks: membership in a team.
    ImplicitTask,
    /// Worksharing, single, masked, taskloop, distribute.
    Work,
    /// Explicit tasks and what happens to them.
    Task,
    /// Barriers, taskwait, taskgroup, reductions.
    Sync,
    /// Waiting for another thread.
    Wait,
    /// Locks, critical, ordered and atomic regions.
    Mutex,
    /// Target regions, data operations, kernels, devices.
    Target,
    /// The user's own phases and marks.
    User,
    /// What the tracer did: flushes, pauses, losses.
    Omptrace,
}

impl Category {
    /// The category's name in exports.
    pub fn name(self) -> &'static str {
        match self {
            Category::Parallel => "parallel",
            Category::ImplicitTask => "implicit_task",
            Category::Work => "work",
            Category::Task => "task",
            Category::Sync => "sync",
            Category::Wait => "wait",
            Category::Mutex => "mutex",
            Category::Target => "target",
            Category::User => "user",
            Category::Omptrace => "omptrace",
        }
    }
}

/// A detail of a region, under its OMPT name where it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Argument<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: Value<'a>,
}

/// The value of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A count or another number that fits any viewer's numbers.
    Uint(u64),
    /// A signed number.
    Int(i64),
    /// An id or an address: 64 bits, shown in hex.
    Hex(u64),
    /// Words.
    Text(&'a str),
}

/// An argument called `name`.
pub fn argument<'a>(name: &'static str, value: Value<'a>) -> Argument<'a> {
    Argument { name, value }
}

/// Something on a track, from begin to end.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// The track.
    pub track: LocationId,
    /// What it is called: for a lock, its holder.
    pub name: &'a str,
    /// Its category.
    pub category: Category,
    /// When it began.
    pub begin: Ns,
    /// When it ended.
    pub end: Ns,
    /// Its details.
    pub arguments: &'a [Argument<'a>],
    /// What a device did; `None` on tracks of anything else.
    pub work: Option<DeviceWork<'a>>,
}

/// What a device did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviceWork<'a> {
    /// It executed the code of a target construct, whose place is this.
    Kernel(&'a Source),
    /// It got this many bytes.
    TransferTo {
        /// How many.
        bytes: u64,
    },
    /// It gave this many bytes away.
    TransferFrom {
        /// How many.
        bytes: u64,
    },
    /// It did something else with data.
    DataOp(ompt::ompt_target_data_op_t),
    /// It did something that only the device has a name for.
    Native,
}

/// A place and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The place.
    pub location: LocationId,
    /// The time.
    pub time: Ns,
}

/// One thing led to another.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The flow's number, never used again.
    pub id: u64,
    /// What kind of thing it is.
    pub kind: FlowKind,
    /// Where it began.
    pub from: Point,
    /// What of that place it began with.
    pub cause: Anchor,
    /// Where it led to.
    pub to: Point,
    /// What of that place it led to.
    pub effect: Anchor,
}

/// What an end of a flow belongs to, at its place and time.
// 32 bits, as the kind of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Anchor {
    /// The region or interval that begins then: the newest thing there.
    Begin,
    /// The region that ends then. It is the innermost one since [`Anchor::CLEAR_NS`] before.
    End,
    /// The innermost region that is open then.
    Inside,
    /// Nothing that lasts, as where a lock is released.
    Moment,
}

impl Anchor {
    /// Nothing happens on a thread for this long before the end of a region that is an [`Anchor::End`], and what happened before
    /// that is no instant: importers take it for the innermost slice until the next event.
    pub const CLEAR_NS: Ns = 2;
}

/// What leads from one place to another.
// 32 bits, in which it is read: a byte that is stored and read as more stalls the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FlowKind {
    /// A task, from its creation to its first execution.
    TaskCreate,
    /// A dependence, from the end of one task to the start of another.
    TaskDependence,
    /// A kernel, from where the host submits it to where a device executes it.
    TargetSubmit,
    /// A data operation, from where the host asks for it to where a device does it.
    TargetDataOp,
    /// A lock, critical, atomic or ordered region, from its release to the acquisition by a thread that waited.
    MutexRelease,
}

impl FlowKind {
    /// The kind's name in exports.
    pub fn name(self) -> &'static str {
        match self {
            FlowKind::TaskCreate => "task_create",
            FlowKind::TaskDependence => "task_dependence",
            FlowKind::TargetSubmit => "target_submit",
            FlowKind::TargetDataOp => "target_data_op",
            FlowKind::MutexRelease => "mutex_release",
        }
    }

    /// What marks its cause and its effect are called, where no region shows them.
    pub fn marks(self) -> (&'static str, &'static str) {
        match self {
            FlowKind::MutexRelease => ("mutex_released", "mutex_acquired"),
            _ => (self.name(), self.name()),
        }
    }

    /// That of its marks.
    pub fn category(self) -> Category {
        match self {
            FlowKind::TaskCreate | FlowKind::TaskDependence => Category::Task,
            FlowKind::TargetSubmit | FlowKind::TargetDataOp => Category::Target,
            FlowKind::MutexRelease => Category::Mutex,
        }
    }
}

/// How threads meet in teams, tasks and locks: what slices alone do not show.
///
/// Teams, tasks and locks have the numbers that the trace gives them, unique among those that exist at once in a
/// process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadEvent {
    /// The thread forms a team; the parallel region that it is for is entered next.
    Fork {
        /// The team.
        team: u64,
        /// How many threads were asked for.
        requested: u32,
    },
    /// The team is dissolved; its parallel region was left.
    Join {
        /// The team.
        team: u64,
    },
    /// The thread joins a team; its implicit task is entered next.
    TeamBegin {
        /// The team.
        team: u64,
        /// The thread's number in the team.
        index: u32,
        /// How many threads the team has.
        size: u32,
    },
    /// The thread leaves the team; its implicit task was left.
    TeamEnd {
        /// The team.
        team: u64,
    },
    /// The thread creates an explicit task.
    TaskCreate {
        /// The task.
        task: u64,
        /// The region that it will be entered as.
        region: RegionId,
    },
    /// The thread begins or resumes an explicit task, which is entered next. When that slice is left, the thread goes on
    /// with the task around it.
    TaskSwitch {
        /// The task.
        task: u64,
        /// Whether the trace gives that number. Else, when the task is suspended and goes on, it is another one to the timeline.
        has_id: bool,
    },
    /// The task is complete; it was left, unless it was cancelled before it ran.
    TaskComplete {
        /// The task.
        task: u64,
    },
    /// The thread gets a lock, critical, atomic or ordered region; the wait for it is left next.
    AcquireLock {
        /// The lock.
        lock: u64,
        /// What it is.
        kind: ompt::ompt_mutex_t,
        /// The acquisitions of the lock count up from 1.
        order: u32,
    },
    /// The thread releases what was acquired with that order; the hold of a region is left next.
    ReleaseLock {
        /// The lock.
        lock: u64,
        /// The order of its acquisition.
        order: u32,
    },
    /// From now on, events of the process are recorded, or not.
    Recording {
        /// Whether they are.
        on: bool,
    },
    /// A region that was cut goes on: the part that is entered next is of the region that was left.
    GoesOn,
    /// A loop is entered next.
    Loop {
        /// How it is scheduled.
        schedule: ompt::ompt_work_t,
    },
    /// The thread got these in the loop that is left next.
    Chunks {
        /// How many chunks.
        chunks: u64,
        /// Their iterations.
        iterations: u64,
    },
    /// A lock is made.
    InitLock {
        /// The lock.
        lock: u64,
        /// Where: the region of the instant that comes next.
        region: RegionId,
    },
    /// The thread asks for a lock, critical, atomic or ordered region; the wait for it is entered next.
    AwaitLock {
        /// The lock.
        lock: u64,
        /// Whether another thread has it.
        is_held: bool,
    },
    /// The thread releases what was not reported to be acquired.
    ReleaseUnseen {
        /// The lock.
        lock: u64,
        /// What it is.
        kind: ompt::ompt_mutex_t,
        /// Where: the region of the instant that comes next.
        region: RegionId,
    },
}

impl ThreadEvent {
    /// What ends that which this event begins.
    pub fn counterpart(self) -> Option<ThreadEvent> {
        match self {
            ThreadEvent::Fork { team, .. } => Some(ThreadEvent::Join { team }),
            ThreadEvent::TeamBegin { team, .. } => Some(ThreadEvent::TeamEnd { team }),
            ThreadEvent::TaskSwitch { task, .. } => Some(ThreadEvent::TaskComplete { task }),
            _ => None,
        }
    }
}

/// Takes a timeline and makes a format of it. See the module's documentation for the order of calls. Another thread than the
/// one that interprets may make them.
pub trait Sink: Send {
    /// The timeline's start in nanoseconds since 1970, before anything else; not called where nobody knows it.
    fn start(&mut self, realtime_ns: u64) {
        // Most formats have no absolute times.
        let _ = realtime_ns;
    }
    /// Defines a process.
    fn process(&mut self, process: &Process);
    /// Defines a location.
    fn location(&mut self, location: &Location);
    /// Defines a region.
    fn region(&mut self, region: &Region);
    /// Defines a counter.
    fn counter(&mut self, counter: &Counter);
    /// From `time` on, the counter has this value.
    fn count(&mut self, counter: CounterId, time: Ns, value: i64);
    /// A region begins on a thread.
    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]);
    /// The newest open region of a thread ends; `arguments` are those known only now.
    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]);
    /// Something without duration happens on a thread.
    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]);
    /// Whether [`Sink::thread_event`] is for anything, which is asked at the start.
    fn wants_thread_events(&self) -> bool {
        // Most formats show slices, which show nearly the same.
        false
    }
    /// A thread meets others.
    fn thread_event(&mut self, at: Point, event: ThreadEvent) {
        let _ = (at, event);
    }
    /// Something happened on a track.
    fn interval(&mut self, interval: &Interval<'_>);
    /// One thing led to another.
    fn flow(&mut self, flow: &Flow);
    /// Words to the reader about what is missing or was repaired in a process.
    fn note(&mut self, process: ProcessId, text: &str);
    /// The process has no more events.
    fn summary(&mut self, process: ProcessId, summary: &Summary) {
        // Most formats have no place for it but notes.
        let _ = (process, summary);
    }
    /// True when writing has failed and there is no use in going on.
    fn failed(&self) -> bool;
    /// The end of the timeline.
    ///
    /// # Errors
    /// The first error of writing.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
