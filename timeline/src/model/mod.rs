//! The neutral model between interpretation and formats: the items of a timeline.
//!
//! Interpretation passes [`Item`]s to a [`Sink`], and a format is a `Sink`. Neither knows the other. The items follow
//! these rules, so that no format needs repairs of its own:
//!
//! * [`Item::Process`], [`Item::Location`], [`Item::Region`], [`Item::Counter`] and [`Item::Function`] precede the
//!   first use of the ids that they define; ids are consecutive, starting with 0.
//! * On one location of kind [`LocationKind::Thread`], [`Item::Enter`], [`Item::Leave`] and [`Item::Instant`] are in
//!   chronological order. Each leave ends the newest enter that is still open. All regions are closed at the end.
//! * [`Item::Interval`] and [`Item::Link`] are emitted when their ends are known, in no particular order. The intervals
//!   of one track do not overlap.
//! * The times of one thread's [`Item::Sample`] do not decrease, but a sample may be emitted later than other items
//!   with the same time.
//! * [`Item::Counted`] is in chronological order on its thread.
//! * The times of one counter's [`Item::Count`] do not decrease. Before the first item, a counter is 0.
//! * [`Item::Communicator`] precedes the process's first event. Several processes may define the same communicator.
//!   [`Item::Mpi`] is in chronological order on its thread; it directly follows the start of its call, or directly
//!   precedes the call's end.
//! * [`Item::ThreadEvent`] is in chronological order on its thread, too, except for the end of a pause, which precedes
//!   the ends that occurred during the pause. Each fork, team and task that starts on a thread ends there, or on the
//!   thread to which the task has moved.
//! * [`Item::Annotation`] is emitted when a range ends or when the program annotates something, in no particular order.
//! * Times are nanoseconds since the timeline's start and never negative.
//!
//! ```text
//! ids           numbers of what items define and refer to
//! definitions   processes, locations, regions, counters
//! item          what happens: slices, instants, intervals, links
//! annotation    annotations of the program, word for word
//! mpi           messages and collective operations within MPI calls
//! sample        functions, and how much time threads spent in them
//! thread_event  how threads meet in teams, tasks and locks
//! wants         which items a sink needs
//! ```
//!
//! A sink that fails to write keeps the error for [`Sink::finish`] and ignores all later items. So interpretation needs
//! no error paths, and [`Sink::failed`] ends it early.

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
    called_function, function_name,
};
pub use crate::model::point::Point;
pub use crate::model::sample::{Function, FunctionKind, RuntimeActivity, Sample, StackFrame};
pub use crate::model::thread_event::ThreadEvent;
pub use crate::model::wants::Wants;
pub use crate::names::construct::{Category, Construct, DeviceEvent, plain_name, short_name, split_place};
pub use crate::names::folding::Folding;
pub use crate::runtime_quirks::capabilities::Reports;

/// Receives a timeline, and writes it in a format. See the module's documentation for the order of items. Items may be
/// passed by a thread other than the interpreting one.
pub trait Sink: Send {
    /// The optional items that the sink needs. Called once, at the start. The sink may receive other items, too.
    fn wants(&self) -> Wants;
    /// Receives the next item. A sink ignores items that it does not need.
    fn item(&mut self, item: &Item<'_>);
    /// Whether writing has failed, so that continuing is of no use.
    fn failed(&self) -> bool {
        false
    }
    /// Ends the timeline.
    ///
    /// # Errors
    /// The first write error.
    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
