//! One process's threads, state by state: what the sums of [`Answers`] add up.

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
    /// Since when, in nanoseconds since the timeline's start.
    pub begin: Ns,
    /// Until when.
    pub end: Ns,
    /// What the time goes to.
    pub cause: Cause,
    /// Where the thread is; `None` in serial code.
    pub place: Option<RegionId>,
    /// Of a wait for a mutex, who had it.
    pub due: Option<Due>,
}

/// A mutex that a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its wait id; `None` where the runtime does not say.
    pub wait_id: Option<u64>,
    /// The other thread that had it, or had it last, and from where; `None` where that was not seen.
    pub holder: Option<(LocationId, RegionId)>,
}

/// The answers of one process, and when it ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessAccount {
    /// When the process began, in nanoseconds since the timeline's start.
    pub begin: Ns,
    /// When it ended.
    pub end: Ns,
    /// Its answers, as if it were alone; nothing was replayed.
    pub answers: Answers,
}

/// Accounts for the threads of one process, and gives their states.
///
/// The states' times by cause add up to [`Answers::accounting`]. Exceptions are what no thread did (`serial`,
/// `narrow_team`, pauses of the recording) and events that make no sense.
#[derive(Debug)]
pub struct Accountant(Collector<0>);

impl Default for Accountant {
    fn default() -> Accountant {
        Accountant(Collector::observing())
    }
}

impl Accountant {
    /// The states that have become complete. Those of one thread do not overlap; they come nearly in the order of time.
    pub fn states(&mut self) -> impl Iterator<Item = State> + use<> {
        self.0.take_spans().into_iter().map(State::of)
    }

    /// The answers; `None` where no process came.
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
            due: due.map(|observer::Due { lock, holder }| Due {
                wait_id: lock.filter(|wait_id| *wait_id != 0),
                holder: holder.map(|(location, place)| (thread(location), RegionId(place))),
            }),
        }
    }
}
