//! Filters, and sinks behind filters.

use std::fmt;
use std::io;

use crate::model::{
    Counted, Enter, Instant, Interval, Item, Leave, Link, LocationId, Point, Sample, Sink, Wants,
};

/// Items that are valid only in complete timelines.
pub(super) const OF_WHOLE_TIMELINES: Wants =
    Wants::THREAD_EVENTS.and(Wants::SAMPLE_TIMES).and(Wants::CAUSES).and(Wants::ANNOTATIONS);

/// Reduces a timeline, item by item.
pub trait Filter: Send {
    /// Optional items that the filter cannot reduce, and therefore leaves out.
    const LEAVES_OUT: Wants;

    /// Passes the remaining part of `item` on to `out`.
    fn item(&mut self, item: &Item<'_>, out: &mut dyn Sink);

    /// The timeline ends: passes on what was held back.
    fn end(&mut self, out: &mut dyn Sink) {
        let _ = out;
    }
}

/// The item with its locations mapped by `location`; `None` if that returns `None` for one of them. Does not map
/// definitions.
pub(super) fn relocated<'a>(
    item: &Item<'a>,
    location: impl Fn(LocationId) -> Option<LocationId>,
) -> Option<Item<'a>> {
    let point = |at: Point| {
        let location = location(at.location)?;
        Some(Point { location, ..at })
    };
    Some(match *item {
        Item::Enter(enter) => Item::Enter(Enter { at: point(enter.at)?, ..enter }),
        Item::Leave(leave) => Item::Leave(Leave { at: point(leave.at)?, ..leave }),
        Item::Instant(instant) => Item::Instant(Instant { at: point(instant.at)?, ..instant }),
        Item::Interval(interval) => Item::Interval(Interval { track: location(interval.track)?, ..interval }),
        Item::Link(link) => Item::Link(Link { from: point(link.from)?, to: point(link.to)?, ..link }),
        Item::Sample(sample) => Item::Sample(Sample { at: point(sample.at)?, ..sample }),
        Item::Counted(counted) => Item::Counted(Counted { at: point(counted.at)?, ..counted }),
        Item::Mpi(at, event) => Item::Mpi(point(at)?, event),
        Item::ThreadEvent(at, event) => Item::ThreadEvent(point(at)?, event),
        other => other,
    })
}

/// A sink that receives a reduced timeline.
pub struct Filtered<F> {
    pub(super) filter: F,
    pub(super) out: Box<dyn Sink>,
}

impl<F: Filter> Filtered<F> {
    /// Passes the items that `filter` leaves on to `out`.
    pub fn new(filter: F, out: Box<dyn Sink>) -> Filtered<F> {
        Filtered { filter, out }
    }
}

impl<F> fmt::Debug for Filtered<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filtered").finish_non_exhaustive()
    }
}

impl<F: Filter> Sink for Filtered<F> {
    fn wants(&self) -> Wants {
        self.out.wants().without(F::LEAVES_OUT)
    }

    #[inline]
    fn item(&mut self, item: &Item<'_>) {
        self.filter.item(item, &mut *self.out);
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.filter.end(&mut *self.out);
        self.out.finish()
    }
}
