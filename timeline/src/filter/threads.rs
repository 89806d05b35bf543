//! Fewer threads.

use omptrace_trace_format::Reader;

use crate::filter::pass_on;
use crate::sink::{
    Argument, Flow, Interval, Location, LocationId, LocationKind, Point, Process, RegionId, Sink,
};
use crate::{display_order, introductions};

/// A thread of a trace, as its timeline shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadName {
    /// What people call it.
    pub name: String,
    /// Its place among the threads of its process; the first, main, is at 0.
    pub place: u32,
    /// The operating system's id for it; 0 where that is not known.
    pub os_tid: u32,
}

impl ThreadName {
    /// Whether `wanted` means this thread: a number is its place or the operating system's id, words are a part of its
    /// name, in any case.
    pub fn is_meant_by(&self, wanted: &str) -> bool {
        match wanted.parse::<u32>() {
            Ok(number) => number == self.place || number == self.os_tid,
            Err(_) => self.name.to_lowercase().contains(&wanted.to_lowercase()),
        }
    }
}

/// The threads of a trace, in the order of its timeline.
pub fn threads(reader: &Reader) -> Vec<ThreadName> {
    let threads = introductions(reader);
    let named = |(index, place): (usize, u32)| ThreadName {
        name: threads[index].name.clone(),
        place,
        os_tid: threads[index].os_tid,
    };
    display_order(&threads)
        .into_iter()
        .filter(|index| threads[*index].device_num.is_none())
        .zip(0..)
        .map(named)
        .collect()
}

/// Passes on the threads of choice, and all other tracks.
pub(super) struct Threads {
    inner: Box<dyn Sink>,
    wanted: Vec<String>,
    /// What each location is called behind this sink, if it is passed on.
    locations: Vec<Option<LocationId>>,
    next: u32,
    /// Threads of the process so far.
    place: u32,
}

impl Threads {
    pub(super) fn new(inner: Box<dyn Sink>, wanted: Vec<String>) -> Threads {
        Threads {
            inner,
            wanted,
            locations: Vec::new(),
            next: 0,
            place: 0,
        }
    }

    fn is_wanted(&mut self, location: &Location) -> bool {
        let LocationKind::Thread { os_tid, .. } = location.kind else {
            return true;
        };
        let thread = ThreadName {
            name: location.name.clone(),
            place: self.place,
            os_tid,
        };
        self.place += 1;
        self.wanted.iter().any(|wanted| thread.is_meant_by(wanted))
    }

    /// The point as it is called behind this sink.
    fn point(&self, at: Point) -> Option<Point> {
        let location = self.locations[at.location.0 as usize]?;
        Some(Point { location, ..at })
    }
}

impl Sink for Threads {
    pass_on!(start region counter count note summary failed finish);

    fn process(&mut self, process: &Process) {
        self.place = 0;
        self.inner.process(process);
    }

    fn location(&mut self, location: &Location) {
        if !self.is_wanted(location) {
            return self.locations.push(None);
        }
        let id = LocationId(self.next);
        self.next += 1;
        self.locations.push(Some(id));
        self.inner.location(&Location {
            id,
            ..location.clone()
        });
    }

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        if let Some(at) = self.point(at) {
            self.inner.enter(at, region, arguments);
        }
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        if let Some(at) = self.point(at) {
            self.inner.leave(at, arguments);
        }
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        if let Some(at) = self.point(at) {
            self.inner.instant(at, region, arguments);
        }
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        if let Some(track) = self.locations[interval.track.0 as usize] {
            self.inner.interval(&Interval { track, ..*interval });
        }
    }

    fn flow(&mut self, flow: &Flow) {
        if let (Some(from), Some(to)) = (self.point(flow.from), self.point(flow.to)) {
            self.inner.flow(&Flow { from, to, ..*flow });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_meant_by_number_or_name() {
        let worker = ThreadName {
            name: "OpenMP worker 1".to_owned(),
            place: 2,
            os_tid: 4712,
        };
        for wanted in ["2", "4712", "worker 1", "OpenMP"] {
            assert!(worker.is_meant_by(wanted), "{wanted}");
        }
        for wanted in ["1", "main", "worker 2"] {
            assert!(!worker.is_meant_by(wanted), "{wanted}");
        }
    }
}
