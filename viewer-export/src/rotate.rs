//! A timeline as a series of files, each complete by itself: one [`Window`] of time after the other.
//!
//! A file that is large enough ends at the time of the newest event, and the next begins there. It stays open all the
//! same: what other threads did may come later than it happened (see [`Cause::LateEnd`](omptrace_timeline::Cause::LateEnd)), as do holds of
//! locks and the work of devices. Each thread and counter is in one file at a time.
//!
//! An arrow from one file to another is in neither. Both say how many there are.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::format::Format;
use crate::output::{ByteCount, Output};
use crate::shard::Share;
use omptrace_timeline::filter::{KeptEnter, Window};
use omptrace_timeline::sink::{
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
    /// The time of the newest thing in the last part. A thread may be ahead of others: its times never go back.
    newest: Ns,
    /// What was written into the last part.
    bytes: ByteCount,
    error: Option<io::Error>,

    // What each part gets at its begin.
    start: Option<u64>,
    processes: Vec<Process>,
    locations: Vec<Location>,
    regions: Vec<Region>,
    /// By counter.
    counters: Vec<Steps>,
    /// By location.
    lanes: Vec<Lane>,
    /// Arrows from or to another file, by the part and the process.
    cut_arrows: BTreeMap<(usize, u32), u64>,
    all_cut_arrows: Arc<AtomicU64>,
}

/// A counter.
struct Steps {
    counter: Counter,
    newest: i64,
    /// The part that its newest value is in.
    part: usize,
}

/// A location.
#[derive(Default)]
struct Lane {
    /// The open regions.
    open: Vec<KeptEnter>,
    /// The part that its newest event is in.
    part: usize,
}

impl Lane {
    /// The part that contains `time`, which is not earlier than before. Those in between show what is open.
    #[inline]
    fn part<'p>(&mut self, parts: &'p mut [Window], at: Point) -> Option<&'p mut Window> {
        while self.part + 1 < parts.len() && parts[self.part + 1].begin() <= at.time {
            parts[self.part].end_location(at.location);
            self.part += 1;
            parts[self.part].wait(at.location, &self.open);
        }
        parts.get_mut(self.part)
    }
}

impl Split {
    /// Files that end when they have `limit_bytes` or a little more.
    pub(crate) fn new(format: &'static Format, next_output: NextOutput, limit_bytes: u64) -> Split {
        let mut split = Split {
            format,
            next_output,
            limit_bytes,
            parts: Vec::new(),
            newest: Ns::MIN,
            bytes: ByteCount::default(),
            error: None,
            start: None,
            processes: Vec::new(),
            locations: Vec::new(),
            regions: Vec::new(),
            counters: Vec::new(),
            lanes: Vec::new(),
            cut_arrows: BTreeMap::new(),
            all_cut_arrows: Arc::default(),
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
        for steps in &self.counters {
            part.counter(&steps.counter);
        }
        self.parts.push(part);
    }

    /// Ends the last part at `time` if it is large enough, and nothing in it is later.
    fn cut(&mut self, time: Ns) {
        let is_newest = time > self.newest;
        self.newest = self.newest.max(time);
        if !is_newest || self.bytes.count() < self.limit_bytes {
            return;
        }
        match self.parts.last_mut() {
            Some(part) if part.begin() < time => part.end_at(time),
            _ => return,
        }
        self.begin_part(time);
    }

    /// How many arrows are in no file, when all is finished.
    pub(crate) fn cut_arrows(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.all_cut_arrows)
    }

    /// The part that contains `time`.
    fn part_at(&self, time: Ns) -> usize {
        let later = self.parts.partition_point(|part| part.begin() <= time);
        later.saturating_sub(1)
    }

    /// The counter's newest value goes on into all parts up to that of `time`.
    fn count_on(&mut self, counter: usize, time: Ns) {
        let steps = &mut self.counters[counter];
        let later = self.parts.iter_mut().skip(steps.part + 1);
        for part in later.take_while(|part| part.begin() <= time) {
            part.count(
                steps.counter.id,
                part.begin().saturating_sub(1),
                steps.newest,
            );
            steps.part += 1;
        }
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
        self.lanes.push(Lane::default());
        self.for_each(|part| part.location(location));
    }

    fn region(&mut self, region: &Region) {
        self.regions.push(region.clone());
        self.for_each(|part| part.region(region));
    }

    fn counter(&mut self, counter: &Counter) {
        self.counters.push(Steps {
            counter: counter.clone(),
            newest: 0,
            part: 0,
        });
        self.for_each(|part| part.counter(counter));
    }

    fn count(&mut self, counter: CounterId, time: Ns, value: i64) {
        let index = counter.0 as usize;
        self.count_on(index, time);
        let steps = &mut self.counters[index];
        steps.newest = value;
        if let Some(part) = self.parts.get_mut(steps.part) {
            part.count(counter, time, value);
        }
    }

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.cut(at.time);
        let lane = &mut self.lanes[at.location.0 as usize];
        if let Some(part) = lane.part(&mut self.parts, at) {
            part.enter(at, region, arguments);
        }
        lane.open.push(KeptEnter::new(at, region, arguments));
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        self.newest = self.newest.max(at.time);
        let lane = &mut self.lanes[at.location.0 as usize];
        if let Some(part) = lane.part(&mut self.parts, at) {
            part.leave(at, arguments);
        }
        lane.open.pop();
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.cut(at.time);
        let lane = &mut self.lanes[at.location.0 as usize];
        if let Some(part) = lane.part(&mut self.parts, at) {
            part.instant(at, region, arguments);
        }
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let parts = self.part_at(interval.begin)..=self.part_at(interval.end);
        for part in self.parts.get_mut(parts).into_iter().flatten() {
            part.interval(interval);
        }
    }

    fn flow(&mut self, flow: &Flow) {
        let parts = [flow.from, flow.to].map(|at| self.part_at(at.time));
        if parts[0] == parts[1] {
            if let Some(part) = self.parts.get_mut(parts[0]) {
                part.flow(flow);
            }
            return;
        }
        // Relaxed: it is read when the export is complete, by who made it.
        self.all_cut_arrows.fetch_add(1, Ordering::Relaxed);
        for (part, at) in parts.into_iter().zip([flow.from, flow.to]) {
            let process = self.locations[at.location.0 as usize].process.0;
            *self.cut_arrows.entry((part, process)).or_default() += 1;
        }
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        self.for_each(|part| part.note(process, text));
    }

    fn failed(&self) -> bool {
        self.error.is_some() || self.parts.iter().any(Window::failed)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        for counter in 0..self.counters.len() {
            self.count_on(counter, Ns::MAX);
        }
        for ((part, process), arrows) in std::mem::take(&mut self.cut_arrows) {
            let text =
                format!("arrows from or to other files of the series are not shown ({arrows})");
            self.parts[part].note(ProcessId(process), &text);
        }
        let mut result = self.error.map_or(Ok(()), Err);
        for part in self.parts {
            result = result.and(Box::new(part).finish());
        }
        result
    }
}
