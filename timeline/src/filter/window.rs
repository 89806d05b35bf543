//! A part of the timeline's time.

use std::fmt;
use std::io;

use crate::filter::kept::KeptEnter;
use crate::filter::pass_on;
use crate::sink::{
    Anchor, Argument, Counter, CounterId, Flow, Interval, Location, LocationId, Ns, Point,
    RegionId, Sink,
};

/// Passes on what happens from `begin` to before `end`. What reaches beyond is cut there; times stay those of the whole
/// timeline.
pub struct Window {
    inner: Box<dyn Sink>,
    begin: Ns,
    end: Ns,
    locations: Vec<Lane>,
    /// The values that counters have when the window begins, until they change.
    counters: Vec<Option<i64>>,
}

/// The open regions of a location: those that wait for the window, or those that were passed on, and above them those
/// that begin too late.
#[derive(Default)]
struct Lane {
    waiting: Vec<KeptEnter>,
    shown: usize,
    late: usize,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").finish_non_exhaustive()
    }
}

impl Window {
    /// Passes on to `inner` what happens from `begin` to before `end`.
    pub fn new(inner: Box<dyn Sink>, begin: Ns, end: Ns) -> Window {
        Window {
            inner,
            begin,
            end,
            locations: Vec::new(),
            counters: Vec::new(),
        }
    }

    /// When it begins.
    pub fn begin(&self) -> Ns {
        self.begin
    }

    /// Nothing from `end` on is passed on. Must not be earlier than what was.
    pub fn end_at(&mut self, end: Ns) {
        self.end = end;
    }

    /// These regions are open since before the window.
    pub fn wait(&mut self, location: LocationId, open: &[KeptEnter]) {
        self.locations[location.0 as usize].waiting = open.to_vec();
    }

    /// The location comes to the window's end: what is open ends there.
    pub fn end_location(&mut self, location: LocationId) {
        let time = self.end;
        let open = std::mem::take(&mut self.show(location).shown);
        for _ in 0..open {
            self.inner.leave(Point { location, time }, &[]);
        }
    }

    fn contains(&self, time: Ns) -> bool {
        (self.begin..self.end).contains(&time)
    }

    /// Reports the value that the counter has when the window begins.
    fn tell_first(&mut self, counter: usize) {
        if let Some(value) = self.counters[counter].take() {
            self.inner
                .count(CounterId(counter as u32), self.begin, value);
        }
    }

    /// What waits on `location` begins with the window.
    fn show(&mut self, location: LocationId) -> &mut Lane {
        let lane = &mut self.locations[location.0 as usize];
        for mut enter in lane.waiting.drain(..) {
            enter.at.time = self.begin;
            enter.enter(&mut *self.inner);
            lane.shown += 1;
        }
        lane
    }
}

impl Sink for Window {
    pass_on!(start process region note summary failed);

    fn location(&mut self, location: &Location) {
        self.locations.push(Lane::default());
        self.inner.location(location);
    }

    fn counter(&mut self, counter: &Counter) {
        self.counters.push(None);
        self.inner.counter(counter);
    }

    fn count(&mut self, counter: CounterId, time: Ns, value: i64) {
        let index = counter.0 as usize;
        if time < self.begin {
            self.counters[index] = Some(value);
        } else if time < self.end {
            self.tell_first(index);
            self.inner.count(counter, time, value);
        }
    }

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        let lane = &mut self.locations[at.location.0 as usize];
        if at.time >= self.end {
            lane.late += 1;
        } else if at.time < self.begin {
            lane.waiting.push(KeptEnter::new(at, region, arguments));
        } else {
            self.show(at.location).shown += 1;
            self.inner.enter(at, region, arguments);
        }
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        let lane = &mut self.locations[at.location.0 as usize];
        if lane.late > 0 {
            lane.late -= 1;
            return;
        }
        if at.time <= self.begin && lane.waiting.pop().is_some() {
            return;
        }
        let lane = self.show(at.location);
        if lane.shown > 0 {
            lane.shown -= 1;
            let time = at.time.min(self.end);
            self.inner.leave(Point { time, ..at }, arguments);
        }
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        if self.contains(at.time) {
            self.show(at.location);
            self.inner.instant(at, region, arguments);
        }
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let overlaps = interval.begin < self.end && interval.end > self.begin;
        if overlaps || self.contains(interval.begin) {
            self.inner.interval(&Interval {
                begin: interval.begin.max(self.begin),
                end: interval.end.min(self.end),
                ..*interval
            });
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        (0..self.counters.len()).for_each(|counter| self.tell_first(counter));
        self.inner.finish()
    }

    fn flow(&mut self, flow: &Flow) {
        if self.contains(flow.from.time) && self.contains(flow.to.time) {
            // A region that ends when the window begins is not in it.
            let cause = match flow.cause {
                Anchor::End if flow.from.time <= self.begin => Anchor::Moment,
                cause => cause,
            };
            self.inner.flow(&Flow { cause, ..*flow });
        }
    }
}
