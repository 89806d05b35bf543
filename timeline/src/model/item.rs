//! The items of a timeline, as data.

use std::num::NonZeroU32;

use ompt_sys as ompt;

use crate::model::annotation::Annotation;
use crate::model::count_value::CountValue;
use crate::model::definitions::{Counter, Location, Process, Region, Source, Summary};
use crate::model::ids::{CounterId, LocationId, LockId, Ns, ProcessId, RegionId, TaskId, TeamId};
use crate::model::mpi::{Communicator, MpiEvent};
use crate::model::point::Point;
use crate::model::sample::{Function, Sample};
use crate::model::thread_event::ThreadEvent;
use crate::model::wants::Wants;
use crate::names::construct::Category;

/// Something on a timeline.
// The kind is where a sink looks for it first, without a computation.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Item<'a> {
    /// The timeline's start in nanoseconds since 1970, before anything else; it is missing where the traces do not say.
    Start {
        /// The time.
        realtime_ns: u64,
    },
    /// Defines a process.
    Process(&'a Process),
    /// Defines a location.
    Location(&'a Location),
    /// Defines a region.
    Region(&'a Region),
    /// Defines a counter.
    Counter(&'a Counter),
    /// Defines a function.
    Function(&'a Function),
    /// Defines a communicator that the process is a member of.
    Communicator(&'a Communicator),
    /// A counter changes.
    Count(Count),
    /// A region begins on a thread, or goes on.
    Enter(Enter<Arguments<'a>>),
    /// The newest open region of a thread ends.
    Leave(Leave<Arguments<'a>>),
    /// Something without duration happens on a thread.
    Instant(Instant<Arguments<'a>>),
    /// A thread meets others.
    ThreadEvent(Point, ThreadEvent),
    /// A thread communicates with another process.
    Mpi(Point, &'a MpiEvent),
    /// Something happened on a track.
    Interval(Interval<'a>),
    /// One thing led to another.
    Link(Link),
    /// What a thread spent its CPU time for.
    Sample(Sample<'a>),
    /// What a thread counted since the time before.
    Counted(Counted<'a>),
    /// The program says something of itself.
    Annotation(&'a Annotation),
    /// Words to the reader about what is missing or was repaired in a process.
    Note(ProcessId, &'a str),
    /// A segment of the process begins, which is not its first: see [`Segments`](crate::Segments). Who asked for
    /// segments gets it.
    Segment,
    /// The process has no more events.
    Summary(ProcessId, &'a Summary),
}

/// A counter has this value from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// The counter.
    pub counter: CounterId,
    /// The time.
    pub time: Ns,
    /// The value.
    pub value: CountValue,
}

/// What a thread counted in some time, in which it was in one region and in no others inside that were counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<'a> {
    /// The thread, and the end of the time. The region is the innermost one then, before what begins or ends at that time.
    pub at: Point,
    /// The start of the time.
    pub since: Ns,
    /// How far each of the process's counters went on; `u64::MAX` of one that did not count.
    pub values: &'a [u64],
}

/// A region begins on a thread, or goes on. `A` are its arguments, or says where they are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enter<A> {
    /// The thread and the time.
    pub at: Point,
    /// The region.
    pub region: RegionId,
    /// Whether the region begins or goes on.
    pub part: Part,
    /// The thing that the thread waits for in this region; `None` where it does not wait, or the trace does not say for
    /// what.
    pub awaited: Option<Awaited>,
    /// Its details.
    pub arguments: A,
}

/// The newest open region of a thread ends. `A` are its arguments, or says where they are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leave<A> {
    /// The thread and the time.
    pub at: Point,
    /// The details that are known only now.
    pub arguments: A,
}

/// Something without duration happens on a thread. `A` are its arguments, or says where they are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instant<A> {
    /// The thread and the time.
    pub at: Point,
    /// The kind of event, as a region.
    pub region: RegionId,
    /// Its details.
    pub arguments: A,
}

impl<A> Enter<A> {
    /// Returns it with these arguments.
    #[inline]
    pub fn with<B>(&self, arguments: B) -> Enter<B> {
        Enter { at: self.at, region: self.region, part: self.part, awaited: self.awaited, arguments }
    }
}

impl<A> Leave<A> {
    /// Returns it with these arguments.
    #[inline]
    pub fn with<B>(&self, arguments: B) -> Leave<B> {
        let at = self.at;
        Leave { at, arguments }
    }
}

impl<A> Instant<A> {
    /// Returns it with these arguments.
    #[inline]
    pub fn with<B>(&self, arguments: B) -> Instant<B> {
        Instant { at: self.at, region: self.region, arguments }
    }
}

/// Which slice of its region one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The region begins.
    First,
    /// The region was cut and goes on: its task was suspended, or it outlives the region around it.
    Further,
    /// The wait was interrupted by a task and goes on.
    Resumed,
}

/// The thing that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The other members of a team.
    Barrier {
        /// The team.
        team: TeamId,
        /// The barriers of the team count up from 1. All members have the same number at the same barrier.
        number: u32,
    },
    /// The children of a task.
    Taskwait {
        /// The task that waits.
        task: TaskId,
    },
    /// The tasks that an empty task depends on, which `taskwait depend` is.
    Dependences {
        /// The empty task. It is complete when the wait is over.
        task: TaskId,
    },
    /// The tasks that were created in a taskgroup, and their descendants.
    Taskgroup {
        /// The task that waits.
        task: TaskId,
    },
    /// A lock, critical, atomic or ordered region.
    Mutex {
        /// The lock.
        lock: LockId,
        /// The order of the acquisition by the thread that has it; `None` where it is free.
        held: Option<NonZeroU32>,
    },
    /// Work in a team: the thread is woken up.
    Team {
        /// The team.
        team: TeamId,
    },
}

/// The arguments of an item.
pub type Arguments<'a> = &'a [Argument<'a>];

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

/// Something on a track, from start to end.
pub type Interval<'a> = KeptInterval<Arguments<'a>, &'a str, &'a Source>;

/// Something on a track, from start to end. `A` are its arguments, `T` is its name and `S` a place in the source, or they
/// say where these are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptInterval<A, T, S> {
    /// The track.
    pub track: LocationId,
    /// Its name: for a lock, its holder.
    pub name: T,
    /// Its category.
    pub category: Category,
    /// When it began.
    pub begin: Ns,
    /// When it ended.
    pub end: Ns,
    /// Its details.
    pub arguments: A,
    /// The device's work; `None` on tracks of anything else.
    pub work: Option<DeviceWork<S>>,
}

/// The work of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviceWork<S> {
    /// It executed the code of a target construct, whose place is this.
    Kernel(S),
    /// It got this many bytes.
    TransferTo {
        /// How many.
        bytes: u64,
        /// Where the host asked for it.
        source: S,
    },
    /// It gave this many bytes away.
    TransferFrom {
        /// How many.
        bytes: u64,
        /// Where the host asked for it.
        source: S,
    },
    /// It did something else with data.
    DataOp(ompt::ompt_target_data_op_t),
    /// It did something that only the device has a name for.
    Native,
}

impl<S> DeviceWork<S> {
    /// Borrows it.
    pub fn as_ref(&self) -> DeviceWork<&S> {
        match self {
            DeviceWork::Kernel(place) => DeviceWork::Kernel(place),
            DeviceWork::TransferTo { bytes, source } => DeviceWork::TransferTo { bytes: *bytes, source },
            DeviceWork::TransferFrom { bytes, source } => DeviceWork::TransferFrom { bytes: *bytes, source },
            DeviceWork::DataOp(kind) => DeviceWork::DataOp(*kind),
            DeviceWork::Native => DeviceWork::Native,
        }
    }

    /// Converts it with the place of a kernel or transfer that `source` makes of it.
    pub fn map<R>(self, source: impl FnOnce(S) -> R) -> DeviceWork<R> {
        match self {
            DeviceWork::Kernel(place) => DeviceWork::Kernel(source(place)),
            DeviceWork::TransferTo { bytes, source: place } => {
                DeviceWork::TransferTo { bytes, source: source(place) }
            }
            DeviceWork::TransferFrom { bytes, source: place } => {
                DeviceWork::TransferFrom { bytes, source: source(place) }
            }
            DeviceWork::DataOp(kind) => DeviceWork::DataOp(kind),
            DeviceWork::Native => DeviceWork::Native,
        }
    }
}

/// One thing led to another.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The link's number, never used again.
    pub id: u64,
    /// Its kind.
    pub kind: LinkKind,
    /// Where it began.
    pub from: Point,
    /// The end of that place that it began with.
    pub cause: Anchor,
    /// Where it led to.
    pub to: Point,
    /// The end of that place that it led to.
    pub effect: Anchor,
}

/// The thing that an end of a link belongs to, at its place and time.
// 32 bits, as the kind of a link.
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
    /// Nothing happens on a thread for this long before the end of a region that is an [`Anchor::End`]. What happened before
    /// that is no instant, since importers take it for the innermost slice until the next event.
    pub const CLEAR_NS: Ns = 2;
}

/// The kind of a link from one place to another.
// 32 bits, in which it is read: a byte that is stored and read as more stalls the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LinkKind {
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
    /// A parallel region, from its start to that of another thread's implicit task.
    Fork,
    /// A parallel region, from the end of another thread's implicit task to its own.
    Join,
    /// A barrier, from where its last member arrives to where another one goes on.
    BarrierRelease,
    /// A taskwait, from the end of the last child that it waited for to its own.
    Taskwait,
    /// A message of MPI, from the call that sends it to the one that it is received in. The ends are in different
    /// processes, so it is no [`Item::Link`]: each is an [`Item::Mpi`] of its own.
    Message,
    /// The critical path, from where it leaves a thread to where it goes on with another one.
    CriticalPath,
}

impl LinkKind {
    /// Whether viewers show it as an arrow. The others repeat what slices show to people.
    #[inline(always)]
    pub fn is_arrow(self) -> bool {
        Wants::ARROWS.contains(self.wanted_as())
    }

    /// The optional items that it belongs to.
    #[inline(always)]
    pub fn wanted_as(self) -> Wants {
        match self {
            LinkKind::TaskDependence | LinkKind::TargetSubmit | LinkKind::TargetDataOp => Wants::DEPENDENCES,
            LinkKind::TaskCreate | LinkKind::MutexRelease | LinkKind::CriticalPath => Wants::ARROWS,
            LinkKind::Message => Wants::MPI,
            LinkKind::Fork | LinkKind::Join | LinkKind::BarrierRelease | LinkKind::Taskwait => Wants::CAUSES,
        }
    }

    /// The kind's name in exports.
    pub fn name(self) -> &'static str {
        match self {
            LinkKind::TaskCreate => "task_create",
            LinkKind::TaskDependence => "task_dependence",
            LinkKind::TargetSubmit => "target_submit",
            LinkKind::TargetDataOp => "target_data_op",
            LinkKind::MutexRelease => "mutex_release",
            LinkKind::Fork => "fork",
            LinkKind::Join => "join",
            LinkKind::BarrierRelease => "barrier_release",
            LinkKind::Taskwait => "taskwait",
            LinkKind::Message => "mpi_message",
            LinkKind::CriticalPath => "critical_path",
        }
    }

    /// The names of the marks for its cause and its effect, where no region shows them.
    pub fn marks(self) -> (&'static str, &'static str) {
        match self {
            LinkKind::MutexRelease => ("mutex_released", "mutex_acquired"),
            _ => (self.name(), self.name()),
        }
    }

    /// The category of its marks.
    pub fn category(self) -> Category {
        match self {
            LinkKind::TaskCreate | LinkKind::TaskDependence => Category::Task,
            LinkKind::TargetSubmit | LinkKind::TargetDataOp => Category::Target,
            LinkKind::MutexRelease => Category::Mutex,
            LinkKind::Fork | LinkKind::Join => Category::Parallel,
            LinkKind::BarrierRelease | LinkKind::Taskwait => Category::Sync,
            LinkKind::Message => Category::Mpi,
            LinkKind::CriticalPath => Category::Omptrace,
        }
    }
}
