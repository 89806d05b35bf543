//! Accounts for the threads of one process, state by state, and shows the states that the sums in [`Answers`] consist
//! of.

use omptrace_timeline::model::{Item, LocationId, Ns, RegionId, Sink, Wants};

use super::observer::{self, Span};
use crate::model::answers::Answers;
use crate::model::cause::Cause;
use crate::states::collector::Collector;

/// The time of a thread from `begin` to `end`, which has one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The thread.
    pub thread: LocationId,
    /// The start, in nanoseconds since the timeline's start.
    pub begin: Ns,
    /// The end.
    pub end: Ns,
    /// The cause to which the time is attributed.
    pub cause: Cause,
    /// The region in which the thread is; `None` in serial code.
    pub place: Option<RegionId>,
    /// For a wait for a mutex: the mutex and its holder.
    pub due: Option<AwaitedMutex>,
}

/// A mutex that a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedMutex {
    /// The mutex's wait id; `None` if the runtime does not report it.
    pub wait_id: Option<u64>,
    /// The other thread that holds the mutex or held it last, and the region from which it acquired the mutex; `None`
    /// if that was not observed.
    pub holder: Option<(LocationId, RegionId)>,
}

/// The answers of one process, and its lifetime.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessAccount {
    /// The start of the process, in nanoseconds since the timeline's start.
    pub begin: Ns,
    /// The end of the process.
    pub end: Ns,
    /// The answers about this process alone, without a replay.
    pub answers: Answers,
}

/// Accounts for the threads of one process, and returns their states.
///
/// The states' times by cause add up to [`Answers::accounting`], except for time in which no thread was in a state
/// (`serial`, `narrow_team`, pauses of the recording), and except for contradictory events.
#[derive(Debug)]
pub struct Accountant(Collector<0>);

impl Default for Accountant {
    fn default() -> Accountant {
        Accountant(Collector::observing())
    }
}

impl Accountant {
    /// The states that have ended since the last call. The states of a thread do not overlap; their order is
    /// approximately chronological.
    pub fn states(&mut self) -> impl Iterator<Item = State> + use<> {
        self.0.take_spans().into_iter().map(State::of)
    }

    /// The answers; `None` if there was no process.
    pub fn finish(self) -> Option<ProcessAccount> {
        let (part, (begin, end)) = self.0.finish_with_life();
        (!part.is_empty()).then(|| ProcessAccount { begin, end, answers: part.answers(None) })
    }
}

impl Sink for Accountant {
    fn wants(&self) -> Wants {
        self.0.wants()
    }

    fn item(&mut self, item: &Item<'_>) {
        self.0.item(item);
    }
}

impl State {
    fn of(span: Span) -> State {
        let thread = |location: usize| LocationId(location as u32);
        let (cause, place, due) = span.why;
        State {
            thread: thread(span.location),
            begin: span.begin,
            end: span.end,
            cause,
            place: place.map(RegionId),
            due: due.map(|observer::AwaitedMutex { lock, holder }| AwaitedMutex {
                wait_id: lock.filter(|wait_id| *wait_id != 0),
                holder: holder.map(|(location, place)| (thread(location), RegionId(place))),
            }),
        }
    }
}
