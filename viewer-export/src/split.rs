//! A timeline as a series of files, each complete by itself: one [`Window`] of time after the other.
//!
//! A file that is large enough ends at the time of the newest event, and the next begins there. It stays open all the
//! same: the end of a region may come later than it happened (see [`Cause::LateEnd`](crate::Cause::LateEnd)), and then
//! belongs there.

use std::io::{self, Write};

use crate::filter::{KeptEnter, Window};
use crate::format::Format;
use crate::output::{ByteCount, Output};
use crate::share::Share;
use crate::sink::{
    Argument, Counter, CounterId, Flow, Interval, Location, Ns, Point, Process, ProcessId, Region,
    RegionId, Sink,
};

/// Gives the file of that number, from 1.
pub type NextFile = Box<dyn FnMut(usize) -> io::Result<Box<dyn Write + Send>> + Send>;

/// Gives what stands in front of it.
type NextOutput = Box<dyn FnMut(usize) -> io::Result<Output> + Send>;

/// Writes one file after the other.
pub(crate) struct Split {
    format: &'static Format,
    next_output: NextOutput,
    limit_bytes: u64,
    /// In the order of time; the last has no end yet.
    parts: Vec<Window>,
    /// What was written into the last part.
    bytes: ByteCount,
    error: Option<io::Error>,

    // What each part is told at its begin.
    start: Option<u64>,
    processes: Vec<Process>,
    locations: Vec<Location>,
    regions: Vec<Region>,
    /// Each with its newest value.
    counters: Vec<(Counter, i64)>,
    /// The open regions of each location.
    open: Vec<Vec<KeptEnter>>,
}

impl Split {
    /// Files that end when they have `limit_bytes` or a little more.
    pub(crate) fn new(format: &'static Format, next_output: NextOutput, limit_bytes: u64) -> Split {
        let mut split = Split {
            format,
            next_output,
            limit_bytes,
            parts: Vec::new(),
            bytes: ByteCount::default(),
            error: None,
            start: None,
            processes: Vec::new(),
            locations: Vec::new(),
            regions: Vec::new(),
            counters: Vec::new(),
            open: Vec::new(),
        };
        split.begin_part(Ns::MIN);
        split
    }

    fn begin_part(&mut self, begin: Ns) {
        let sink = (self.next_output)(self.parts.len() + 1).and_then(|out| {
            self.bytes = out.bytes();
            self.format.sink(out, Share::whole())
        });
        let sink = match sink {
            Ok(sink) => sink,
            Err(error) => {
                self.error.get_or_insert(error);
                return;
            }
        };
        let mut part = Window::new(sink, begin, Ns::MAX);
        if let Some(realtime_ns) = self.start {
            part.start(realtime_ns);
        }
        self.processes.iter().for_each(|known| part.process(known));
        self.locations.iter().for_each(|known| part.location(known));
        self.regions.iter().for_each(|known| part.region(known));
        for (location, open) in self.locations.iter().zip(&self.open) {
            part.wait(location.id, open);
        }
        for (counter, value) in &self.counters {
            part.counter(counter);
            part.count(counter.id, begin.saturating_sub(1), *value);
        }
        self.parts.push(part);
    }

    /// Ends the last part at `time` if it is large enough.
    fn cut(&mut self, time: Ns) {
        if self.bytes.count() < self.limit_bytes {
            return;
        }
        match self.parts.last_mut() {
            Some(part) if part.begin() < time => part.end_at(time),
            _ => return,
        }
        self.begin_part(time);
    }

    fn for_each(&mut self, call: impl Fn(&mut Window)) {
        self.parts.iter_mut().for_each(call);
    }
}

impl Sink for Split {
    fn start(&mut self, realtime_ns: u64) {
        self.start = Some(realtime_ns);
        self.for_each(|part| part.start(realtime_ns));
    }

    fn process(&mut self, process: &Process) {
        self.processes.push(process.clone());
        self.for_each(|part| part.process(process));
    }

    fn location(&mut self, location: &Location) {
        self.locations.push(location.clone());
        self.open.push(Vec::new());
        self.for_each(|part| part.location(location));
    }

    fn region(&mut self, region: &Region) {
        self.regions.push(region.clone());
        self.for_each(|part| part.region(region));
    }

    fn counter(&mut self, counter: &Counter) {
        self.counters.push((counter.clone(), 0));
        self.for_each(|part| part.counter(counter));
    }

    fn count(&mut self, counter: CounterId, time: Ns, value: i64) {
        self.for_each(|part| part.count(counter, time, value));
        self.counters[counter.0 as usize].1 = value;
    }

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.cut(at.time);
        self.for_each(|part| part.enter(at, region, arguments));
        self.open[at.location.0 as usize].push(KeptEnter::new(at, region, arguments));
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        self.for_each(|part| part.leave(at, arguments));
        self.open[at.location.0 as usize].pop();
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.cut(at.time);
        self.for_each(|part| part.instant(at, region, arguments));
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        self.for_each(|part| part.interval(interval));
    }

    fn flow(&mut self, flow: &Flow) {
        self.for_each(|part| part.flow(flow));
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        self.for_each(|part| part.note(process, text));
    }

    fn failed(&self) -> bool {
        self.error.is_some() || self.parts.iter().any(Window::failed)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let mut result = self.error.map_or(Ok(()), Err);
        for part in self.parts {
            result = result.and(Box::new(part).finish());
        }
        result
    }
}
