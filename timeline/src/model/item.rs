//! The items of a timeline.

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

/// An item of a timeline.
// In this layout, the kind is where a sink first looks for it, without a computation.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Item<'a> {
    /// The timeline's start in nanoseconds since 1970, before all other items. Missing if the traces do not contain it.
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
    /// A region starts or continues on a thread.
    Enter(Enter<Arguments<'a>>),
    /// The newest open region of a thread ends.
    Leave(Leave<Arguments<'a>>),
    /// An event without duration on a thread.
    Instant(Instant<Arguments<'a>>),
    /// A thread meets other threads.
    ThreadEvent(Point, ThreadEvent),
    /// A thread communicates with another process.
    Mpi(Point, &'a MpiEvent),
    /// An interval on a track.
    Interval(Interval<'a>),
    /// A causal link between two points.
    Link(Link),
    /// A sample: what a thread spent CPU time on.
    Sample(Sample<'a>),
    /// What a thread counted since the previous reading.
    Counted(Counted<'a>),
    /// An annotation of the program.
    Annotation(&'a Annotation),
    /// A text about missing or repaired parts of a process.
    Note(ProcessId, &'a str),
    /// A segment of the process starts, other than the first: see [`Segments`](crate::Segments). Emitted only if
    /// segments were requested.
    Segment,
    /// The process ends.
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

/// What a thread counted in an interval, during which its innermost region did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<'a> {
    /// The thread and the end of the interval. The region is the innermost one at that time, before any region starts
    /// or ends then.
    pub at: Point,
    /// The start of the interval.
    pub since: Ns,
    /// The increment of each of the process's counters; `u64::MAX` for a counter that did not count.
    pub values: &'a [u64],
}

/// A region starts or continues on a thread. `A`: its arguments, or a reference to where they are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enter<A> {
    /// The thread and the time.
    pub at: Point,
    /// The region.
    pub region: RegionId,
    /// Whether the region starts or continues.
    pub part: Part,
    /// What the thread waits for in this region; `None` if it does not wait, or if the trace does not show what for.
    pub awaited: Option<Awaited>,
    /// The arguments.
    pub arguments: A,
}

/// The newest open region of a thread ends. `A`: the arguments of the end, or a reference to where they are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leave<A> {
    /// The thread and the time.
    pub at: Point,
    /// The arguments that are known only at the end.
    pub arguments: A,
}

/// An event without duration on a thread. `A`: its arguments, or a reference to where they are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instant<A> {
    /// The thread and the time.
    pub at: Point,
    /// The kind of event, as a region.
    pub region: RegionId,
    /// The arguments.
    pub arguments: A,
}

impl<A> Enter<A> {
    /// The same with other arguments.
    #[inline]
    pub fn with<B>(&self, arguments: B) -> Enter<B> {
        Enter { at: self.at, region: self.region, part: self.part, awaited: self.awaited, arguments }
    }
}

impl<A> Leave<A> {
    /// The same with other arguments.
    #[inline]
    pub fn with<B>(&self, arguments: B) -> Leave<B> {
        let at = self.at;
        Leave { at, arguments }
    }
}

impl<A> Instant<A> {
    /// The same with other arguments.
    #[inline]
    pub fn with<B>(&self, arguments: B) -> Instant<B> {
        Instant { at: self.at, region: self.region, arguments }
    }
}

/// Which slice of its region this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The region starts.
    First,
    /// The region was cut and continues: its task was suspended, or the region outlives the one around it.
    Further,
    /// The wait was interrupted by a task and continues.
    Resumed,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The other members of a team at a barrier.
    Barrier {
        /// The team.
        team: TeamId,
        /// The barrier's number, counted from 1 in each team. It is the same for all members.
        number: u32,
    },
    /// The child tasks of a task.
    Taskwait {
        /// The waiting task.
        task: TaskId,
    },
    /// The tasks on which an empty task depends, which stands for a `taskwait depend`.
    Dependences {
        /// The empty task. It is complete when the wait ends.
        task: TaskId,
    },
    /// The tasks that were created in a taskgroup, and their descendants.
    Taskgroup {
        /// The waiting task.
        task: TaskId,
    },
    /// A lock, critical, atomic or ordered region.
    Mutex {
        /// The lock.
        lock: LockId,
        /// The number of the holder's acquisition; `None` if the lock is free.
        held: Option<NonZeroU32>,
    },
    /// Work in a team: the thread is being woken up.
    Team {
        /// The team.
        team: TeamId,
    },
}

/// The arguments of an item.
pub type Arguments<'a> = &'a [Argument<'a>];

/// An argument of an item, with its OMPT name if it has one.
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
    /// A count, or another number that any viewer can represent.
    Uint(u64),
    /// A signed number.
    Int(i64),
    /// An id or an address: 64 bits, shown in hex.
    Hex(u64),
    /// A text.
    Text(&'a str),
}

/// An argument with this name.
pub fn argument<'a>(name: &'static str, value: Value<'a>) -> Argument<'a> {
    Argument { name, value }
}

/// An interval on a track.
pub type Interval<'a> = KeptInterval<Arguments<'a>, &'a str, &'a Source>;

/// An interval on a track. `A`: its arguments, `T`: its name, `S`: a source location, or references to where these are
/// kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptInterval<A, T, S> {
    /// The track.
    pub track: LocationId,
    /// The name; for a lock, its holder.
    pub name: T,
    /// Its category.
    pub category: Category,
    /// The start.
    pub begin: Ns,
    /// The end.
    pub end: Ns,
    /// The arguments.
    pub arguments: A,
    /// The device's operation; `None` on other tracks.
    pub work: Option<DeviceWork<S>>,
}

/// An operation of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviceWork<S> {
    /// The device executed the code of the target construct at this place.
    Kernel(S),
    /// The device received data.
    TransferTo {
        /// Number of bytes.
        bytes: u64,
        /// The place at which the host requested the transfer.
        source: S,
    },
    /// The device sent data.
    TransferFrom {
        /// Number of bytes.
        bytes: u64,
        /// The place at which the host requested the transfer.
        source: S,
    },
    /// Another data operation.
    DataOp(ompt::ompt_target_data_op_t),
    /// An operation that only the device itself can name.
    Native,
}

impl<S> DeviceWork<S> {
    /// Borrows the source location.
    pub fn as_ref(&self) -> DeviceWork<&S> {
        match self {
            DeviceWork::Kernel(place) => DeviceWork::Kernel(place),
            DeviceWork::TransferTo { bytes, source } => DeviceWork::TransferTo { bytes: *bytes, source },
            DeviceWork::TransferFrom { bytes, source } => DeviceWork::TransferFrom { bytes: *bytes, source },
            DeviceWork::DataOp(kind) => DeviceWork::DataOp(*kind),
            DeviceWork::Native => DeviceWork::Native,
        }
    }

    /// Converts the source location of a kernel or transfer.
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

/// A causal link between two points.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The link's number, which is never reused.
    pub id: u64,
    /// Its kind.
    pub kind: LinkKind,
    /// The point of the cause.
    pub from: Point,
    /// What the link is attached to at `from`.
    pub cause: Anchor,
    /// The point of the effect.
    pub to: Point,
    /// What the link is attached to at `to`.
    pub effect: Anchor,
}

/// What an end of a link is attached to, at its location and time.
// 32 bits, like the kind of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Anchor {
    /// The region or interval that starts at this time: the newest one there.
    Begin,
    /// The region that ends at this time. It has been the innermost one for at least [`Anchor::CLEAR_NS`].
    End,
    /// The innermost open region.
    Inside,
    /// A moment without a region, such as the release of a lock.
    Moment,
}

impl Anchor {
    /// Nothing happens on a thread for this long before the end of a region that is an [`Anchor::End`]. An instant
    /// shortly before the end would be a problem, because importers take it for the innermost slice until the next
    /// event.
    pub const CLEAR_NS: Ns = 2;
}

/// The kind of a link.
// 32 bits, the size in which it is read: storing a byte and then reading more bytes stalls the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LinkKind {
    /// A task, from its creation to its first execution.
    TaskCreate,
    /// A dependence, from the end of one task to the start of another.
    TaskDependence,
    /// A kernel, from its submission by the host to its execution by a device.
    TargetSubmit,
    /// A data operation, from its request by the host to its execution by a device.
    TargetDataOp,
    /// A lock, critical, atomic or ordered region, from its release to the acquisition by a waiting thread.
    MutexRelease,
    /// A parallel region, from its start to the start of another thread's implicit task.
    Fork,
    /// A parallel region, from the end of another thread's implicit task to the region's end.
    Join,
    /// A barrier, from the arrival of its last member to the continuation of another one.
    BarrierRelease,
    /// A taskwait, from the end of the last awaited child to the end of the taskwait.
    Taskwait,
    /// An MPI message, from the call that sends it to the call that receives it. The ends are in different processes,
    /// so a message is not an [`Item::Link`]: each end is an [`Item::Mpi`].
    Message,
    /// The critical path, from where it leaves a thread to where it continues on another one.
    CriticalPath,
}

impl LinkKind {
    /// Whether viewers show the link as an arrow. The other kinds repeat what slices already show.
    #[inline(always)]
    pub fn is_arrow(self) -> bool {
        Wants::ARROWS.contains(self.wanted_as())
    }

    /// The optional items to which the link belongs.
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

    /// The names of the marks for cause and effect, for exports in which no region shows them.
    pub fn marks(self) -> (&'static str, &'static str) {
        match self {
            LinkKind::MutexRelease => ("mutex_released", "mutex_acquired"),
            _ => (self.name(), self.name()),
        }
    }

    /// The category of these marks.
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
