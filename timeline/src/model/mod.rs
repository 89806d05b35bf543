//! The neutral model between interpretation and formats: what a timeline consists of.
//!
//! Interpretation gives [`Item`]s to a [`Sink`], and a format is a `Sink`. Neither knows the other. The items keep
//! these rules, so that no format needs a repair of its own:
//!
//! * [`Item::Process`], [`Item::Location`], [`Item::Region`], [`Item::Counter`] and [`Item::Function`] come before
//!   the first use of what they define; their ids count up from 0 without gaps.
//! * On one location of kind [`LocationKind::Thread`], [`Item::Enter`], [`Item::Leave`] and [`Item::Instant`] come in
//!   the order of their times. Each leave ends the newest enter that is still open. All are closed at the end.
//! * [`Item::Interval`] and [`Item::Link`] come when their ends are known, in no order of time. The intervals of one
//!   track do not overlap.
//! * The times of one thread's [`Item::Sample`] do not go back, but they may come later than what else happened then.
//! * [`Item::Counted`] comes in the order of times on its thread.
//! * The times of one counter's [`Item::Count`] do not go back. Before the first it is 0.
//! * [`Item::Communicator`] comes before the process's first event. Several processes may define the same one.
//!   [`Item::Mpi`] keeps the order of time on its thread; it comes after the start of the call that it belongs to, or
//!   in front of that call's end.
//! * [`Item::ThreadEvent`] keeps the order of times on its thread, too, but for the end of a pause: what ended in the
//!   pause comes after it. Each fork, team and task that begins on a thread ends there or where the task has moved
//!   to.
//! * [`Item::Annotation`] comes when a range ends, or when the program says it, in no order of time.
//! * Times are nanoseconds since the timeline's start and never negative.
//!
//! ```text
//! ids           numbers of what items define and refer to
//! definitions   processes, locations, regions, counters
//! item          what happens: slices, instants, intervals, links
//! annotation    what the program says of itself, word for word
//! mpi           messages and collective operations within calls of MPI
//! sample        functions, and how much time threads spent in them
//! thread_event  how threads meet in teams, tasks and locks
//! wants         which items a sink has a use for
//! ```
//!
//! A sink that fails to write keeps the error for [`Sink::finish`] and ignores what comes after it. So interpretation
//! is free of error paths, and [`Sink::failed`] ends it early.

mod annotation;
mod count_value;
mod definitions;
mod ids;
mod item;
pub(crate) mod manner;
mod mpi;
pub mod null_sink;
mod point;
pub(crate) mod repairs;
mod sample;
pub(crate) mod session_clock;
mod thread_event;
pub(crate) mod thread_introduction;
mod wants;

use std::io;

pub use crate::model::annotation::{Annotated, Annotation, Looks, Payload};
pub use crate::model::count_value::CountValue;
pub use crate::model::definitions::{
    Counter, Lifetime, Location, LocationKind, Position, Process, Region, Source, Summary, ThreadRole,
};
pub use crate::model::ids::{
    CounterId, FunctionId, LocationId, LockId, Ns, ProcessId, RegionId, TaskId, TeamId,
};
pub use crate::model::item::{
    Anchor, Argument, Arguments, Awaited, Count, Counted, DeviceWork, Enter, Instant, Interval, Item,
    KeptInterval, Leave, Link, LinkKind, Part, Value, argument,
};
pub(crate) use crate::model::mpi::operation;
pub use crate::model::mpi::{
    Collective, Communicator, CommunicatorId, CommunicatorKind, Message, MpiEvent, OtherEnd, RequestId, Root,
    called_function,
};
pub use crate::model::point::Point;
pub use crate::model::sample::{Function, FunctionKind, RuntimeActivity, Sample, StackFrame};
pub use crate::model::thread_event::ThreadEvent;
pub use crate::model::wants::Wants;
pub use crate::names::construct::{Category, Construct, DeviceEvent, plain_name, short_name, split_place};
pub use crate::names::folding::Folding;
pub use crate::runtime_quirks::capabilities::Reports;

/// Takes a timeline and makes a format of it. See the module's documentation for the order of items. Another thread than the
/// one that interprets may give them.
pub trait Sink: Send {
    /// The optional items that it has a use for. It is asked once, at the start, and may get others all the same.
    fn wants(&self) -> Wants;
    /// Takes the next item. A sink ignores what it has no use for.
    fn item(&mut self, item: &Item<'_>);
    /// True when writing has failed and there is no use in going on.
    fn failed(&self) -> bool {
        false
    }
    /// Ends the timeline.
    ///
    /// # Errors
    /// The first error of writing.
    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
