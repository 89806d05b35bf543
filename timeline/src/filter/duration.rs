//! Fewer short slices.

use std::collections::VecDeque;

use crate::filter::kept::KeptEnter;
use crate::filter::pass_on;
use crate::sink::{
    Anchor, Argument, Flow, Interval, Location, LocationId, Ns, Point, RegionId, Sink,
};

/// Passes on what takes long enough, and instants. How long something takes is known at its end: till it is old enough,
/// its begin is kept back, and so is what happened inside since.
pub(super) struct MinDuration {
    inner: Box<dyn Sink>,
    min_ns: u64,
    /// What each location keeps back, in order; the first is a begin.
    kept: Vec<VecDeque<Kept>>,
}

enum Kept {
    Enter {
        enter: KeptEnter,
        /// Those that lead to it.
        flows: Vec<Flow>,
    },
    Instant(KeptEnter),
}

impl Kept {
    fn is_enter(&self) -> bool {
        matches!(self, Kept::Enter { .. })
    }
}

impl MinDuration {
    pub(super) fn new(inner: Box<dyn Sink>, min_ns: u64) -> MinDuration {
        MinDuration {
            inner,
            min_ns,
            kept: Vec::new(),
        }
    }

    /// Passes on what is old enough at `time`, with the instants behind it.
    fn release(&mut self, location: LocationId, time: Ns) {
        let kept = &mut self.kept[location.0 as usize];
        while let Some(first) = kept.front() {
            match first {
                Kept::Enter { enter, flows } if time.abs_diff(enter.at.time) >= self.min_ns => {
                    enter.enter(&mut *self.inner);
                    flows.iter().for_each(|flow| self.inner.flow(flow));
                }
                Kept::Enter { .. } => return,
                Kept::Instant(instant) => instant.instant(&mut *self.inner),
            }
            kept.pop_front();
        }
    }
}

impl Sink for MinDuration {
    pass_on!(start process region counter count note summary failed finish);

    fn location(&mut self, location: &Location) {
        self.kept.push(VecDeque::new());
        self.inner.location(location);
    }

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.release(at.location, at.time);
        self.kept[at.location.0 as usize].push_back(Kept::Enter {
            enter: KeptEnter::new(at, region, arguments),
            flows: Vec::new(),
        });
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        self.release(at.location, at.time);
        let kept = &mut self.kept[at.location.0 as usize];
        match kept.iter().rposition(Kept::is_enter) {
            Some(too_short) => {
                kept.remove(too_short);
                self.release(at.location, at.time);
            }
            None => self.inner.leave(at, arguments),
        }
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.release(at.location, at.time);
        let kept = &mut self.kept[at.location.0 as usize];
        if kept.is_empty() {
            self.inner.instant(at, region, arguments);
        } else {
            kept.push_back(Kept::Instant(KeptEnter::new(at, region, arguments)));
        }
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        if interval.end.abs_diff(interval.begin) >= self.min_ns {
            self.inner.interval(interval);
        }
    }

    fn flow(&mut self, flow: &Flow) {
        // What ended there may have been too short to be shown.
        let cause = match flow.cause {
            Anchor::End => Anchor::Moment,
            cause => cause,
        };
        let flow = &Flow { cause, ..*flow };
        let kept = &mut self.kept[flow.to.location.0 as usize];
        match kept.back_mut() {
            Some(Kept::Enter { enter, flows }) if enter.at == flow.to => flows.push(*flow),
            _ => self.inner.flow(flow),
        }
    }
}
