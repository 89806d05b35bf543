//! Restricts a timeline to a window of time.

use crate::filter::filtered::{Filter, Filtered, OF_WHOLE_TIMELINES};
use crate::filter::kept::KeptArguments;
use crate::model::{
    Anchor, Arguments, Count, CountValue, CounterId, Enter, Instant, Interval, Item, Leave, Link, LocationId,
    Ns, Point, Sink, Wants,
};

/// Passes on what happens in the half-open interval from `begin` to `end`. Slices that reach beyond it are cut. Times
/// stay those of the whole timeline.
#[derive(Debug)]
pub struct Window {
    begin: Ns,
    end: Ns,
    locations: Vec<OpenRegions>,
    /// The values of counters at the start of the window, until they change.
    counters: Vec<Option<CountValue>>,
}

/// The open regions of a location: `waiting` for the window to begin, or `shown`. Regions above these that start too
/// late are only counted.
#[derive(Debug, Default)]
struct OpenRegions {
    waiting: Vec<Enter<KeptArguments>>,
    shown: usize,
    late: usize,
}

impl Filtered<Window> {
    /// The start of the window.
    pub fn begin(&self) -> Ns {
        self.filter.begin
    }

    /// Moves the end of the window, which must not precede anything that was passed on.
    pub fn end_at(&mut self, end: Ns) {
        self.filter.end = end;
    }

    /// These regions have been open since before the window.
    pub fn wait(&mut self, location: LocationId, open: &[Enter<KeptArguments>]) {
        self.filter.locations[location.0 as usize].waiting = open.to_vec();
    }

    /// The location has reached the window's end: ends its open regions there.
    pub fn end_location(&mut self, location: LocationId) {
        let time = self.filter.end;
        let open = std::mem::take(&mut self.filter.show(location, &mut *self.out).shown);
        for _ in 0..open {
            self.out.item(&Item::Leave(Leave { at: Point { location, time }, arguments: &[] }));
        }
    }
}

impl Window {
    /// A filter that passes on what happens from `begin` until before `end`.
    pub fn new(begin: Ns, end: Ns) -> Window {
        Window { begin, end, locations: Vec::new(), counters: Vec::new() }
    }

    fn contains(&self, time: Ns) -> bool {
        (self.begin..self.end).contains(&time)
    }

    /// Reports the counter's value at the start of the window.
    fn report_first(&mut self, counter: usize, out: &mut dyn Sink) {
        if let Some(value) = self.counters[counter].take() {
            out.item(&Item::Count(Count { counter: CounterId(counter as u32), time: self.begin, value }));
        }
    }

    /// Starts the waiting regions of `location` at the start of the window.
    fn show(&mut self, location: LocationId, out: &mut dyn Sink) -> &mut OpenRegions {
        let regions = &mut self.locations[location.0 as usize];
        for mut enter in regions.waiting.drain(..) {
            enter.at.time = self.begin;
            let arguments = enter.arguments.arguments();
            out.item(&Item::Enter(enter.with(&arguments[..])));
            regions.shown += 1;
        }
        regions
    }

    fn count(&mut self, count: &Count, out: &mut dyn Sink) {
        let index = count.counter.0 as usize;
        if count.time < self.begin {
            self.counters[index] = Some(count.value);
        } else if count.time < self.end {
            self.report_first(index, out);
            out.item(&Item::Count(*count));
        }
    }

    fn enter(&mut self, enter: &Enter<Arguments<'_>>, out: &mut dyn Sink) {
        let at = enter.at;
        let regions = &mut self.locations[at.location.0 as usize];
        if at.time >= self.end {
            regions.late += 1;
        } else if at.time < self.begin {
            let kept = KeptArguments::new(enter.arguments);
            regions.waiting.push(enter.with(kept));
        } else {
            self.show(at.location, out).shown += 1;
            out.item(&Item::Enter(*enter));
        }
    }

    fn leave(&mut self, leave: &Leave<Arguments<'_>>, out: &mut dyn Sink) {
        let at = leave.at;
        let regions = &mut self.locations[at.location.0 as usize];
        if regions.late > 0 {
            regions.late -= 1;
            return;
        }
        if at.time <= self.begin && regions.waiting.pop().is_some() {
            return;
        }
        let regions = self.show(at.location, out);
        if regions.shown > 0 {
            regions.shown -= 1;
            // A cut slice has not ended, so the arguments of its end are unknown.
            let arguments = match at.time < self.end {
                true => leave.arguments,
                false => &[],
            };
            let time = at.time.min(self.end);
            let at = Point { time, ..at };
            out.item(&Item::Leave(Leave { at, arguments }));
        }
    }

    fn instant(&mut self, instant: &Instant<Arguments<'_>>, out: &mut dyn Sink) {
        if self.contains(instant.at.time) {
            self.show(instant.at.location, out);
            out.item(&Item::Instant(*instant));
        }
    }

    fn interval(&self, interval: &Interval<'_>, out: &mut dyn Sink) {
        let overlaps = interval.begin < self.end && interval.end > self.begin;
        if overlaps || self.contains(interval.begin) {
            out.item(&Item::Interval(Interval {
                begin: interval.begin.max(self.begin),
                end: interval.end.min(self.end),
                ..*interval
            }));
        }
    }

    fn link(&self, link: &Link, out: &mut dyn Sink) {
        if self.contains(link.from.time) && self.contains(link.to.time) {
            // A region that ends exactly at the window's start is not in the window.
            let cause = match link.cause {
                Anchor::End if link.from.time <= self.begin => Anchor::Moment,
                cause => cause,
            };
            out.item(&Item::Link(Link { cause, ..*link }));
        }
    }
}

impl Filter for Window {
    const LEAVES_OUT: Wants = OF_WHOLE_TIMELINES;

    fn item(&mut self, item: &Item<'_>, out: &mut dyn Sink) {
        match item {
            Item::Location(_) => {
                self.locations.push(OpenRegions::default());
                out.item(item);
            }
            Item::Counter(_) => {
                self.counters.push(None);
                out.item(item);
            }
            Item::Count(count) => self.count(count, out),
            Item::Enter(enter) => self.enter(enter, out),
            Item::Leave(leave) => self.leave(leave, out),
            Item::Instant(instant) => self.instant(instant, out),
            Item::Interval(interval) => self.interval(interval, out),
            Item::Link(link) => self.link(link, out),
            Item::Sample(sample) => {
                if self.contains(sample.at.time) {
                    out.item(item);
                }
            }
            Item::Counted(counted) => {
                if self.contains(counted.at.time) {
                    out.item(item);
                }
            }
            Item::Mpi(at, event) => {
                if self.contains(at.time) {
                    let other = event.message().and_then(|message| message.other);
                    let is_whole = other.is_none_or(|other| self.contains(other.time));
                    self.show(at.location, out);
                    out.item(&Item::Mpi(*at, &if is_whole { **event } else { event.alone() }));
                }
            }
            Item::ThreadEvent(..) => {}
            _ => out.item(item),
        }
    }

    fn end(&mut self, out: &mut dyn Sink) {
        (0..self.counters.len()).for_each(|counter| self.report_first(counter, out));
    }
}
