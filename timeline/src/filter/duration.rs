//! Removes short slices.

use std::collections::VecDeque;

use crate::filter::filtered::{Filter, OF_WHOLE_TIMELINES};
use crate::filter::kept::KeptArguments;
use crate::model::{Anchor, Arguments, Enter, Instant, Item, Leave, Link, LocationId, Ns, Sink, Wants};

/// Passes on instants, and slices that are long enough. A slice's duration is known only at its end. Until the slice is
/// old enough, its start is held back, and so are the later items inside it.
pub(super) struct MinDuration {
    min_ns: u64,
    /// By location: the items that are held back, in order. The first of them is a start.
    delayed: Vec<VecDeque<DelayedItem>>,
}

enum DelayedItem {
    Enter {
        enter: Enter<KeptArguments>,
        /// The links that lead to this start.
        links: Vec<Link>,
    },
    Instant(Instant<KeptArguments>),
}

impl DelayedItem {
    fn is_enter(&self) -> bool {
        matches!(self, DelayedItem::Enter { .. })
    }
}

impl MinDuration {
    pub(super) fn new(min_ns: u64) -> MinDuration {
        MinDuration { min_ns, delayed: Vec::new() }
    }

    /// Passes on slices that are long enough at `time`, and the instants after them.
    fn release(&mut self, location: LocationId, time: Ns, out: &mut dyn Sink) {
        let delayed = &mut self.delayed[location.0 as usize];
        while let Some(first) = delayed.front() {
            match first {
                DelayedItem::Enter { enter, links } if time.abs_diff(enter.at.time) >= self.min_ns => {
                    let arguments = enter.arguments.arguments();
                    out.item(&Item::Enter(enter.with(&arguments[..])));
                    links.iter().for_each(|link| out.item(&Item::Link(*link)));
                }
                DelayedItem::Enter { .. } => return,
                DelayedItem::Instant(instant) => {
                    let arguments = instant.arguments.arguments();
                    out.item(&Item::Instant(instant.with(&arguments[..])));
                }
            }
            delayed.pop_front();
        }
    }

    fn enter(&mut self, enter: &Enter<Arguments<'_>>, out: &mut dyn Sink) {
        let at = enter.at;
        self.release(at.location, at.time, out);
        self.delayed[at.location.0 as usize].push_back(DelayedItem::Enter {
            enter: enter.with(KeptArguments::new(enter.arguments)),
            links: Vec::new(),
        });
    }

    fn leave(&mut self, leave: &Leave<Arguments<'_>>, out: &mut dyn Sink) {
        let at = leave.at;
        self.release(at.location, at.time, out);
        let delayed = &mut self.delayed[at.location.0 as usize];
        match delayed.iter().rposition(DelayedItem::is_enter) {
            Some(too_short) => {
                delayed.remove(too_short);
                self.release(at.location, at.time, out);
            }
            None => out.item(&Item::Leave(*leave)),
        }
    }

    fn instant(&mut self, instant: &Instant<Arguments<'_>>, out: &mut dyn Sink) {
        let at = instant.at;
        self.release(at.location, at.time, out);
        let delayed = &mut self.delayed[at.location.0 as usize];
        if delayed.is_empty() {
            out.item(&Item::Instant(*instant));
        } else {
            let arguments = KeptArguments::new(instant.arguments);
            delayed.push_back(DelayedItem::Instant(instant.with(arguments)));
        }
    }

    fn link(&mut self, link: &Link, out: &mut dyn Sink) {
        // The slice that ended there may have been too short to be shown.
        let cause = match link.cause {
            Anchor::End => Anchor::Moment,
            cause => cause,
        };
        let link = Link { cause, ..*link };
        let delayed = &mut self.delayed[link.to.location.0 as usize];
        match delayed.back_mut() {
            Some(DelayedItem::Enter { enter, links }) if enter.at == link.to => links.push(link),
            _ => out.item(&Item::Link(link)),
        }
    }
}

impl Filter for MinDuration {
    const LEAVES_OUT: Wants = OF_WHOLE_TIMELINES;

    fn item(&mut self, item: &Item<'_>, out: &mut dyn Sink) {
        match item {
            Item::Location(_) => {
                self.delayed.push(VecDeque::new());
                out.item(item);
            }
            Item::Enter(enter) => self.enter(enter, out),
            Item::Leave(leave) => self.leave(leave, out),
            Item::Instant(instant) => self.instant(instant, out),
            Item::Interval(interval) => {
                if interval.end.abs_diff(interval.begin) >= self.min_ns {
                    out.item(item);
                }
            }
            Item::Link(link) => self.link(link, out),
            Item::Mpi(at, _) => {
                self.release(at.location, at.time, out);
                out.item(item);
            }
            Item::ThreadEvent(..) => {}
            _ => out.item(item),
        }
    }
}
