//! Writes a timeline as a series of files, each complete by itself: consecutive [`Window`]s.
//!
//! When a file is large enough, it ends at the time of the newest event, and the next file starts there. The file stays
//! open, because items of other threads may arrive late (see [`Cause::LateEnd`](omptrace_timeline::Cause::LateEnd)),
//! and so may holds of locks and operations of devices. At each time, each thread and counter writes to one of the
//! files.
//!
//! Arrows between different files are left out. Both files report their number.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use omptrace_timeline::filter::{Filtered, KeptArguments, Window};
use omptrace_timeline::model::{
    Arguments, Communicator, Count, CountValue, Counter, Enter, Function, Interval, Item, Link, Location,
    MpiEvent, Ns, Point, Process, ProcessId, Region, Sink, Wants,
};

use crate::format::Format;
use crate::format::options::FormatOptions;
use crate::writer::output::{ByteCount, Output};
use crate::writer::share::Share;

/// Returns the file with this number, counted from 1.
pub type NextFile = Box<dyn FnMut(usize) -> io::Result<Box<dyn Write + Send>> + Send>;

/// Returns the output to the file with this number.
type NextOutput = Box<dyn FnMut(usize) -> io::Result<Output> + Send>;

/// One of the files, as a filter.
type Part = Filtered<Window>;

/// Writes a series of files.
pub(crate) struct Split {
    format: &'static Format,
    options: FormatOptions,
    next_output: NextOutput,
    limit_bytes: u64,
    /// The files in chronological order; the last one has no end yet.
    parts: Vec<Part>,
    /// The time of the newest item in the last part. If threads are ahead of others, the largest time.
    newest: Ns,
    /// The number of bytes written to the last part.
    bytes: ByteCount,
    error: Option<io::Error>,

    // Data that each part receives at its start.
    start: Option<u64>,
    processes: Vec<Process>,
    locations: Vec<Location>,
    regions: Vec<Region>,
    functions: Vec<Function>,
    communicators: Vec<Communicator>,
    /// By counter.
    counters: Vec<Steps>,
    /// By location.
    open_parts: Vec<LocationPart>,
    /// Number of arrows from or to another file, by part and process.
    cut_arrows: BTreeMap<(usize, u32), u64>,
    all_cut_arrows: Arc<AtomicU64>,
}

/// A counter.
struct Steps {
    counter: Counter,
    newest: CountValue,
    /// The part that contains its newest value.
    part: usize,
}

/// A location.
#[derive(Default)]
struct LocationPart {
    /// The open regions.
    open: Vec<Enter<KeptArguments>>,
    /// The part that contains its newest event.
    part: usize,
}

impl LocationPart {
    /// The part that contains `time`, which never decreases. The open regions are shown in all parts in between.
    #[inline]
    fn part<'p>(&mut self, parts: &'p mut [Part], at: Point) -> Option<&'p mut Part> {
        while self.part + 1 < parts.len() && parts[self.part + 1].begin() <= at.time {
            parts[self.part].end_location(at.location);
            self.part += 1;
            parts[self.part].wait(at.location, &self.open);
        }
        parts.get_mut(self.part)
    }
}

impl Split {
    /// Files end when they have `limit_bytes`, or slightly more.
    pub(crate) fn new(
        format: &'static Format,
        options: FormatOptions,
        next_output: NextOutput,
        limit_bytes: u64,
    ) -> Split {
        let mut split = Split {
            format,
            options,
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
            functions: Vec::new(),
            communicators: Vec::new(),
            counters: Vec::new(),
            open_parts: Vec::new(),
            cut_arrows: BTreeMap::new(),
            all_cut_arrows: Arc::default(),
        };
        split.begin_part(Ns::MIN);
        split
    }

    fn begin_part(&mut self, begin: Ns) {
        let sink = (self.next_output)(self.parts.len() + 1).and_then(|out| {
            self.bytes = out.bytes();
            self.format.sink(out, Share::whole(), &self.options)
        });
        let sink = match sink {
            Ok(sink) => sink,
            Err(error) => {
                self.error.get_or_insert(error);
                return;
            }
        };
        let mut part = Filtered::new(Window::new(begin, Ns::MAX), sink);
        let start = self.start.map(|realtime_ns| Item::Start { realtime_ns });
        let counters = self.counters.iter().map(|steps| &steps.counter);
        let known = (start.into_iter())
            .chain(self.processes.iter().map(Item::Process))
            .chain(self.locations.iter().map(Item::Location))
            .chain(self.regions.iter().map(Item::Region))
            .chain(self.functions.iter().map(Item::Function))
            .chain(self.communicators.iter().map(Item::Communicator))
            .chain(counters.map(Item::Counter));
        known.for_each(|item| part.item(&item));
        self.parts.push(part);
    }

    /// Ends the last part at `time`, if it is large enough and contains nothing later.
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

    /// Number of arrows that are in no file, valid when everything is finished.
    pub(crate) fn cut_arrows(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.all_cut_arrows)
    }

    /// The part that contains `time`.
    fn part_at(&self, time: Ns) -> usize {
        let later = self.parts.partition_point(|part| part.begin() <= time);
        later.saturating_sub(1)
    }

    /// Continues the counter's newest value in all parts up to that of `time`.
    fn count_on(&mut self, counter: usize, time: Ns) {
        let steps = &mut self.counters[counter];
        let later = self.parts.iter_mut().skip(steps.part + 1);
        for part in later.take_while(|part| part.begin() <= time) {
            part.item(&Item::Count(Count {
                counter: steps.counter.id,
                time: part.begin().saturating_sub(1),
                value: steps.newest,
            }));
            steps.part += 1;
        }
    }

    fn give_all(&mut self, item: &Item<'_>) {
        self.parts.iter_mut().for_each(|part| part.item(item));
    }

    fn count(&mut self, count: &Count) {
        let index = count.counter.0 as usize;
        self.count_on(index, count.time);
        let steps = &mut self.counters[index];
        steps.newest = count.value;
        if let Some(part) = self.parts.get_mut(steps.part) {
            part.item(&Item::Count(*count));
        }
    }

    /// Passes `item` to the part that contains the items of its thread at that time.
    fn give_at(&mut self, at: Point, item: &Item<'_>) -> &mut LocationPart {
        let location = &mut self.open_parts[at.location.0 as usize];
        if let Some(part) = location.part(&mut self.parts, at) {
            part.item(item);
        }
        location
    }

    fn enter(&mut self, enter: &Enter<Arguments<'_>>, item: &Item<'_>) {
        self.cut(enter.at.time);
        let kept = enter.with(KeptArguments::new(enter.arguments));
        self.give_at(enter.at, item).open.push(kept);
    }

    fn interval(&mut self, interval: &Interval<'_>, item: &Item<'_>) {
        let parts = self.part_at(interval.begin)..=self.part_at(interval.end);
        for part in self.parts.get_mut(parts).into_iter().flatten() {
            part.item(item);
        }
    }

    /// The other end of a message may be in another file.
    fn mpi(&mut self, at: Point, event: &MpiEvent) {
        let other = event.message().and_then(|message| message.other);
        let is_cut = other.is_some_and(|other| self.part_at(other.time) != self.part_at(at.time));
        if !is_cut {
            self.give_at(at, &Item::Mpi(at, event));
            return;
        }
        // Counted at only one of the ends, because both detect it.
        if matches!(event, MpiEvent::Receive(..)) {
            // Relaxed: read when the export is complete, by the thread that created it.
            self.all_cut_arrows.fetch_add(1, Ordering::Relaxed);
        }
        let process = self.locations[at.location.0 as usize].process.0;
        *self.cut_arrows.entry((self.part_at(at.time), process)).or_default() += 1;
        self.give_at(at, &Item::Mpi(at, &event.alone()));
    }

    fn link(&mut self, link: &Link, item: &Item<'_>) {
        let parts = [link.from, link.to].map(|at| self.part_at(at.time));
        if parts[0] == parts[1] {
            if let Some(part) = self.parts.get_mut(parts[0]) {
                part.item(item);
            }
            return;
        }
        // Relaxed: read when the export is complete, by the thread that created it.
        self.all_cut_arrows.fetch_add(1, Ordering::Relaxed);
        for (part, at) in parts.into_iter().zip([link.from, link.to]) {
            let process = self.locations[at.location.0 as usize].process.0;
            *self.cut_arrows.entry((part, process)).or_default() += 1;
        }
    }
}

impl Sink for Split {
    fn wants(&self) -> Wants {
        let of_format = self.parts.first().map_or(Wants::NONE, Sink::wants);
        let wants = Wants::COUNTS.and(Wants::ARROWS);
        [Wants::SAMPLES, Wants::COUNTERS, Wants::MPI]
            .into_iter()
            .filter(|optional| of_format.contains(*optional))
            .fold(wants, Wants::and)
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Count(count) => return self.count(count),
            Item::Enter(enter) => return self.enter(enter, item),
            Item::Leave(leave) => {
                self.newest = self.newest.max(leave.at.time);
                self.give_at(leave.at, item).open.pop();
                return;
            }
            Item::Instant(instant) => {
                self.cut(instant.at.time);
                self.give_at(instant.at, item);
                return;
            }
            Item::Interval(interval) => return self.interval(interval, item),
            Item::Link(link) => return self.link(link, item),
            Item::Mpi(at, event) => return self.mpi(*at, event),
            Item::Sample(sample) => {
                let part = self.part_at(sample.at.time);
                if let Some(part) = self.parts.get_mut(part) {
                    part.item(item);
                }
                return;
            }
            Item::Counted(counted) => {
                let part = self.part_at(counted.at.time);
                if let Some(part) = self.parts.get_mut(part) {
                    part.item(item);
                }
                return;
            }
            Item::ThreadEvent(..) | Item::Annotation(_) | Item::Segment | Item::Summary(..) => return,
            Item::Start { realtime_ns } => self.start = Some(*realtime_ns),
            Item::Process(process) => self.processes.push((*process).clone()),
            Item::Location(location) => {
                self.locations.push((*location).clone());
                self.open_parts.push(LocationPart::default());
            }
            Item::Region(region) => self.regions.push((*region).clone()),
            Item::Function(function) => self.functions.push((*function).clone()),
            Item::Counter(counter) => self.counters.push(Steps {
                counter: (*counter).clone(),
                newest: CountValue::default(),
                part: 0,
            }),
            Item::Note(..) => {}
            Item::Communicator(communicator) => self.communicators.push((*communicator).clone()),
        }
        self.give_all(item);
    }

    fn failed(&self) -> bool {
        self.error.is_some() || self.parts.iter().any(Part::failed)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        for counter in 0..self.counters.len() {
            self.count_on(counter, Ns::MAX);
        }
        for ((part, process), arrows) in std::mem::take(&mut self.cut_arrows) {
            let text = format!("arrows from or to other files of the series were left out: {arrows}");
            self.parts[part].item(&Item::Note(ProcessId(process), &text));
        }
        let mut result = self.error.map_or(Ok(()), Err);
        for part in self.parts {
            result = result.and(Box::new(part).finish());
        }
        result
    }
}
