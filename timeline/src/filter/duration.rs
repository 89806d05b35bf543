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
    kept: Vec<VecDeque<Kept>>,
}

enum Kept {
    Enter {
        enter: Enter<KeptArguments>,
        /// The links that lead to this start.
        links: Vec<Link>,
    },
    Instant(Instant<KeptArguments>),
}

impl Kept {
    fn is_enter(&self) -> bool {
        matches!(self, Kept::Enter { .. })
    }
}

impl MinDuration {
    pub(super) fn new(min_ns: u64) -> MinDuration {
        MinDuration { min_ns, kept: Vec::new() }
    }

    /// Passes on slices that are long enough at `time`, and the instants after them.
    fn release(&mut self, location: LocationId, time: Ns, out: &mut dyn Sink) {
        let kept = &mut self.kept[location.0 as usize];
        while let Some(first) = kept.front() {
            match first {
                Kept::Enter { enter, links } if time.abs_diff(enter.at.time) >= self.min_ns => {
                    let arguments = enter.arguments.arguments();
                    out.item(&Item::Enter(enter.with(&arguments[..])));
                    links.iter().for_each(|link| out.item(&Item::Link(*link)));
                }
                Kept::Enter { .. } => return,
                Kept::Instant(instant) => {
                    let arguments = instant.arguments.arguments();
                    out.item(&Item::Instant(instant.with(&arguments[..])));
                }
            }
            kept.pop_front();
        }
    }

    fn enter(&mut self, enter: &Enter<Arguments<'_>>, out: &mut dyn Sink) {
        let at = enter.at;
        self.release(at.location, at.time, out);
        self.kept[at.location.0 as usize].push_back(Kept::Enter {
            enter: enter.with(KeptArguments::new(enter.arguments)),
            links: Vec::new(),
        });
    }

    fn leave(&mut self, leave: &Leave<Arguments<'_>>, out: &mut dyn Sink) {
        let at = leave.at;
        self.release(at.location, at.time, out);
        let kept = &mut self.kept[at.location.0 as usize];
        match kept.iter().rposition(Kept::is_enter) {
            Some(too_short) => {
                kept.remove(too_short);
                self.release(at.location, at.time, out);
            }
            None => out.item(&Item::Leave(*leave)),
        }
    }

    fn instant(&mut self, instant: &Instant<Arguments<'_>>, out: &mut dyn Sink) {
        let at = instant.at;
        self.release(at.location, at.time, out);
        let kept = &mut self.kept[at.location.0 as usize];
        if kept.is_empty() {
            out.item(&Item::Instant(*instant));
        } else {
            let arguments = KeptArguments::new(instant.arguments);
            kept.push_back(Kept::Instant(instant.with(arguments)));
        }
    }

    fn link(&mut self, link: &Link, out: &mut dyn Sink) {
        // The slice that ended there may have been too short to be shown.
        let cause = match link.cause {
            Anchor::End => Anchor::Moment,
            cause => cause,
        };
        let link = Link { cause, ..*link };
        let kept = &mut self.kept[link.to.location.0 as usize];
        match kept.back_mut() {
            Some(Kept::Enter { enter, links }) if enter.at == link.to => links.push(link),
            _ => out.item(&Item::Link(link)),
        }
    }
}

impl Filter for MinDuration {
    const LEAVES_OUT: Wants = OF_WHOLE_TIMELINES;

    fn item(&mut self, item: &Item<'_>, out: &mut dyn Sink) {
        match item {
            Item::Location(_) => {
                self.kept.push(VecDeque::new());
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
