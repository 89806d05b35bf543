//! Chrome's trace event format, as Perfetto's and Catapult's importers expect it.
//!
//! The importers deviate from the format's description. The following rules were found by running the importers of
//! Perfetto, Catapult, Speedscope, Tracy and the Firefox profiler.
//!
//! * A slice consists of a start (`B`) and an end (`E`), in chronological order on each thread. For a complete event
//!   (`X`), importers add time and duration as doubles. The sum may exceed the time of the next event, so that
//!   Speedscope and Tracy lose the end of a slice. A single `X` among `B` and `E` changes how equal times are sorted,
//!   so none is used.
//! * An end contains the name of its slice, for Speedscope, which pairs the start and end of a slice without duration
//!   only if both have the same arguments. But Catapult warns if arguments are repeated. So a slice with arguments and
//!   without duration is written as an instant (`i`), and a start is held back until the thread's next event.
//! * An arrow binds to the innermost slice at its time. In Catapult, a slice includes the time of its end, so an
//!   arrow's end is a nanosecond inside the slice. It is written before the thread's next event, which may end the
//!   slice.
//! * At a moment without a region ([`Anchor::Moment`]), Perfetto would attach an arrow to the slice that started first,
//!   so a slice without duration is written there.
//! * Times are microseconds with three decimals, computed with integers, and relative to the timeline's start, because
//!   importers read them as doubles.
//! * Ids and addresses are strings: doubles have 53 bits. Process and thread ids are those of the operating system, if
//!   these are unique: the thread whose id is the process id is the main one. They are never 0.
//! * Locks, device queues and other tracks are additional threads, with their intervals as slices. Asynchronous events
//!   are not used: arrows can lead only to slices of threads, and asynchronous events take twice the bytes and cannot
//!   name their track.
//! * Perfetto names a counter by its name and the key of its value, Tracy by the key, Catapult by name and category.
//!   Tracy ignores processes and merges counters with equal keys, so the keys of further processes contain the
//!   process's name.
//! * The Firefox profiler shows only the argument `detail`; Tracy finds the source by `loc`.

mod event_text;
mod track;

use std::io;

use omptrace_timeline::model::{
    Anchor, Arguments, Category, Count, Counter, DeviceWork, Enter, Instant, Interval, Item, Leave, Link,
    LinkKind, Location, LocationKind, MpiEvent, Ns, Point, Process, ProcessId, Region, Sink, ThreadEvent,
    ThreadRole, Wants, short_name,
};

use crate::chrome::event_text::{
    ArgumentName, Called, CounterTexts, FlowTexts, end, flow_event, head, instant_event, name_and_category,
    name_text, numbers, slice_begin, slice_end, write_arguments, write_detail,
};
use crate::chrome::track::{Events, Track};
use crate::writer::decimal::ShortText;
use crate::writer::interned_text::{ByWord, RecentTexts};
use crate::writer::json;
use crate::writer::output::Output;
use crate::writer::share::Share;
use crate::writer::system_ids::SystemIds;

/// The first thread id of hidden helpers, which are shown after the process's devices and locks.
const HELPERS_FROM: u32 = 1 << 24;

/// Writes Chrome JSON.
pub(crate) struct Chrome {
    share: Share,
    events: Events,
    processes: Vec<Numbers>,
    locations: Vec<Track>,
    /// The texts of the slices of each region.
    regions: Vec<Called>,
    counters: Vec<CounterTexts>,
    names: ByWord<ArgumentName>,
    /// By name of the link's kind.
    flows: ByWord<FlowTexts>,
    /// The texts of intervals.
    called: RecentTexts<Called>,
    /// A buffer for the arguments of the newest interval, instant or end.
    arguments: Vec<u8>,
}

/// The ids of a process and its threads, and the process's index in the file.
struct Numbers {
    ids: SystemIds,
    rank: u32,
}

/// Added to the numbers of messages, because the two ends of such an arrow are in different processes. Doubles
/// represent the sum exactly.
const MESSAGES: u64 = 1 << 48;

/// The end of the file.
pub(crate) const END: &[u8] = b"\n]}\n";

impl Chrome {
    /// The sink that writes `share` of a file. If the file has several shares, its owner writes [`END`].
    pub(crate) fn new(mut out: Output, share: Share) -> Chrome {
        // The first share begins with an event: the definition of its process.
        let empty = share.is_first();
        if empty {
            out.buffer().extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        }
        Chrome {
            share,
            events: Events { out, empty },
            processes: Vec::new(),
            locations: Vec::new(),
            regions: Vec::new(),
            counters: Vec::new(),
            names: ByWord::new(),
            flows: ByWord::new(),
            called: RecentTexts::new(),
            arguments: Vec::new(),
        }
    }

    fn pid(&self, process: ProcessId) -> u32 {
        self.processes[process.0 as usize].ids.pid()
    }

    /// A metadata event; `value` writes its value.
    fn metadata(&mut self, pid: u32, tid: u32, name: &str, value: impl Fn(&mut Vec<u8>)) {
        let out = self.events.next();
        head(out, b'M', pid, tid);
        out.extend_from_slice(b",\"name\":\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\",\"args\":{\"");
        out.extend_from_slice(if name.ends_with("name") { b"name" } else { b"sort_index" });
        out.extend_from_slice(b"\":");
        value(out);
        out.extend_from_slice(b"}}");
    }
}

impl Chrome {
    fn process(&mut self, process: &Process) {
        let rank = self.share.number(process.id.0.into()) as u32;
        let ids = SystemIds::new(process, rank);
        let name = match ids.is_systems() {
            true => process.name_beside_id(),
            false => &process.name,
        };
        let pid = ids.pid();
        self.processes.push(Numbers { ids, rank });
        self.metadata(pid, pid, "process_name", |out| json::string(out, name));
        self.metadata(pid, pid, "process_sort_index", |out| json::uint(out, rank));
    }

    fn location(&mut self, location: &Location) {
        let ids = &mut self.processes[location.process.0 as usize].ids;
        let pid = ids.pid();
        let tid = match location.kind {
            LocationKind::Thread { os_tid, .. } => ids.tid(os_tid),
            _ => ids.own_tid(),
        };
        self.metadata(pid, tid, "thread_name", |out| json::string(out, &location.name));
        let helpers_last = match location.kind {
            LocationKind::Thread { role: ThreadRole::Helper, .. } => HELPERS_FROM,
            _ => 0,
        };
        self.metadata(pid, tid, "thread_sort_index", |out| {
            json::uint(out, location.id.0.saturating_add(helpers_last));
        });
        let mut before_time = b"\",".to_vec();
        numbers(&mut before_time, pid, tid);
        before_time.extend_from_slice(b",\"ts\":");
        self.locations.push(Track {
            before_time: ShortText::of(&before_time).expect("numbers of 32 bits are short"),
            open: Vec::new(),
            newest: None,
            is_kept: false,
            instant: None,
            arguments: Vec::new(),
            arrows: Vec::new(),
            held: None,
            end: Vec::new(),
        });
    }

    fn region(&mut self, region: &Region) {
        let name = short_name(&region.name);
        let called = Called::new(name, region.category, region.source.as_ref());
        self.regions.push(called);
    }

    fn counter(&mut self, counter: &Counter) {
        let pid = self.pid(counter.process);
        let key = match self.processes[counter.process.0 as usize].rank {
            0 => counter.name.clone(),
            _ => format!("{} ({pid})", counter.name),
        };
        let mut before_time = Vec::new();
        head(&mut before_time, b'C', pid, pid);
        before_time.extend_from_slice(&name_text(counter.unit));
        before_time.extend_from_slice(b",\"cat\":");
        json::string(&mut before_time, &counter.name);
        before_time.extend_from_slice(b",\"ts\":");
        let mut before_value = b",\"args\":{".to_vec();
        json::string(&mut before_value, &key);
        before_value.push(b':');
        self.counters.push(CounterTexts { before_time, before_value });
    }

    #[inline(never)]
    fn count(&mut self, count: &Count) {
        let Count { counter, time, value } = *count;
        let texts = &self.counters[counter.0 as usize];
        let out = self.events.next();
        out.extend_from_slice(&texts.before_time);
        json::micros(out, time.unsigned_abs());
        out.extend_from_slice(&texts.before_value);
        json::count(out, value);
        out.extend_from_slice(b"}}");
    }

    #[inline(never)]
    fn enter(&mut self, enter: &Enter<Arguments<'_>>) {
        let Enter { at, region, arguments, .. } = *enter;
        let track = &mut self.locations[at.location.0 as usize];
        track.settle(&mut self.events, &self.regions, &mut self.flows, at.time);
        track.open.push(region.0);
        (track.newest, track.is_kept) = (Some(at.time), true);
        track.instant = None;
        track.arguments.clear();
        write_arguments(&mut track.arguments, &mut self.names, arguments);
        write_detail(&mut track.arguments, arguments);
    }

    #[inline(never)]
    fn leave(&mut self, leave: &Leave<Arguments<'_>>) {
        let Leave { at, arguments } = *leave;
        let track = &mut self.locations[at.location.0 as usize];
        if track.is_kept && track.newest == Some(at.time) && track.arrows.is_empty() {
            write_arguments(&mut track.arguments, &mut self.names, arguments);
            if !track.arguments.is_empty() {
                return track.write_moment(&mut self.events, &self.regions);
            }
        }
        track.settle(&mut self.events, &self.regions, &mut self.flows, at.time);
        (track.newest, track.instant) = (None, None);
        let Some(region) = track.open.pop() else {
            return;
        };
        self.arguments.clear();
        write_arguments(&mut self.arguments, &mut self.names, arguments);
        let called = &self.regions[region as usize];
        let out = self.events.next();
        slice_end(out, &track.before_time, at.time, called, &self.arguments);
    }

    #[inline(never)]
    fn instant(&mut self, instant: &Instant<Arguments<'_>>) {
        let Instant { at, region, arguments } = *instant;
        let track = &mut self.locations[at.location.0 as usize];
        track.settle(&mut self.events, &self.regions, &mut self.flows, at.time);
        (track.newest, track.instant) = (None, Some(at.time));
        self.arguments.clear();
        write_arguments(&mut self.arguments, &mut self.names, arguments);
        write_detail(&mut self.arguments, arguments);
        let called = &self.regions[region.0 as usize];
        let out = self.events.next();
        instant_event(out, &track.before_time, at.time, called, &self.arguments);
    }

    /// Makes an arrow start at the region that creates a task, not at a preceding instant.
    #[inline(never)]
    fn thread_event(&mut self, at: Point, event: &ThreadEvent) {
        let track = &mut self.locations[at.location.0 as usize];
        if !matches!(event, ThreadEvent::TaskCreate { .. }) {
            return;
        }
        if let Some(instant) = track.instant.take() {
            // In Catapult, the arrow would otherwise start at a slice with the same time.
            let time = (at.time - 1).max(instant);
            let kind = LinkKind::TaskCreate;
            let texts = self.flows.get(kind.name(), || FlowTexts::of(kind));
            let (events, called) = (&mut self.events, &texts.marks[0]);
            slice_begin(events.next(), &track.before_time, time, called, &[]);
            slice_end(events.next(), &track.before_time, time, called, &[]);
        }
    }

    #[inline(never)]
    fn interval(&mut self, interval: &Interval<'_>) {
        let track = &mut self.locations[interval.track.0 as usize];
        let begin = interval.begin;
        track.settle(&mut self.events, &self.regions, &mut self.flows, begin);
        let Interval { name, category, .. } = *interval;
        let source = match interval.work {
            Some(DeviceWork::Kernel(source)) => Some(source),
            _ => None,
        };
        let called = || Called::new(name, category, source);
        let place = self.called.place(name, category, called);
        let (called, arguments) = (&self.called[place], &mut self.arguments);
        arguments.clear();
        write_arguments(arguments, &mut self.names, interval.arguments);
        write_detail(arguments, interval.arguments);
        let out = self.events.next();
        slice_begin(out, &track.before_time, interval.begin, called, arguments);
        (track.newest, track.held) = (Some(interval.begin), Some(interval.end));
        track.end.clear();
        track.end.extend_from_slice(&called.end.text);
        end(&mut track.end, &[]);
    }

    #[inline(never)]
    fn flow(&mut self, flow: &Link) {
        let id = self.share.number(flow.id);
        let texts = self.flows.get(flow.kind.name(), || FlowTexts::of(flow.kind));
        let events = &mut self.events;
        let from = &mut self.locations[flow.from.location.0 as usize];
        let time = flow.from.time;
        let cause = match flow.cause {
            // Otherwise, the arrow would start at the instant.
            Anchor::Inside if from.instant.is_some_and(|instant| instant <= time) => Anchor::Moment,
            cause => cause,
        };
        // Writes a start that was held back: its slice is still open, and may end at this time. But a mark precedes a
        // slice that starts at its time. Otherwise, Speedscope would place the mark's end before the mark's start,
        // because another start with the same time would come first.
        let is_mark = cause == Anchor::Moment;
        if from.newest.is_some_and(|begin| begin < time || begin == time && !is_mark) {
            from.write_begin(events, &self.regions);
        }
        let before_time = &from.before_time;
        match cause {
            Anchor::Moment => from.mark(events, time, &texts.marks[0], |out| {
                flow_event(out, b's', before_time, time, id, &texts.start);
            }),
            _ => {
                let inside = match cause {
                    // At that time, the slice is still open and is the innermost one.
                    Anchor::End => (time - 1).max(0),
                    _ => time,
                };
                flow_event(events.next(), b's', before_time, inside, id, &texts.start);
            }
        }

        let to = &mut self.locations[flow.to.location.0 as usize];
        let is_newest = to.newest == Some(flow.to.time);
        match flow.effect {
            Anchor::Moment => {
                to.write_begin(events, &self.regions);
                let before_time = &to.before_time;
                to.mark(events, flow.to.time, &texts.marks[1], |out| {
                    flow_event(out, b'f', before_time, flow.to.time, id, &texts.finish);
                });
            }
            Anchor::Begin if is_newest => to.arrows.push((id, flow.kind)),
            _ => {
                to.write_begin(events, &self.regions);
                let out = events.next();
                flow_event(out, b'f', &to.before_time, flow.to.time, id, &texts.finish);
            }
        }
    }

    /// One end of a message.
    #[inline(never)]
    fn message(&mut self, at: Point, event: &MpiEvent) {
        let Some(other) = event.message().and_then(|message| message.other) else {
            return;
        };
        let id = MESSAGES | other.message.get();
        let kind = LinkKind::Message;
        let texts = self.flows.get(kind.name(), || FlowTexts::of(kind));
        let events = &mut self.events;
        let track = &mut self.locations[at.location.0 as usize];
        track.write_begin(events, &self.regions);
        let before_time = &track.before_time;
        match (event, track.newest) {
            (MpiEvent::Receive(..), Some(begin)) if begin > other.time => {
                let inside = (at.time - 1).max(begin);
                flow_event(events.next(), b'f', before_time, inside, id, &texts.finish);
            }
            // The call started before the message was sent.
            (MpiEvent::Receive(..), _) => track.mark(events, at.time, &texts.marks[1], |out| {
                flow_event(out, b'f', before_time, at.time, id, &texts.finish);
            }),
            _ => flow_event(events.next(), b's', before_time, at.time, id, &texts.start),
        }
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        let pid = self.pid(process);
        let out = self.events.next();
        head(out, b'i', pid, pid);
        out.extend_from_slice(b",\"s\":\"p\",\"ts\":0.000");
        out.extend_from_slice(&name_and_category(text, Category::Omptrace));
        out.push(b'}');
    }

    /// Writes an item other than the end of a slice.
    #[inline(never)]
    fn other(&mut self, item: &Item<'_>) {
        match item {
            Item::Instant(instant) => self.instant(instant),
            Item::ThreadEvent(at, event) => self.thread_event(*at, event),
            Item::Count(count) => self.count(count),
            Item::Interval(interval) => self.interval(interval),
            Item::Link(link) => self.flow(link),
            Item::Mpi(at, event) => self.message(*at, event),
            Item::Region(region) => self.region(region),
            Item::Process(process) => self.process(process),
            Item::Location(location) => self.location(location),
            Item::Counter(counter) => self.counter(counter),
            Item::Note(process, text) => self.note(*process, text),
            _ => {}
        }
    }
}

impl Sink for Chrome {
    fn wants(&self) -> Wants {
        Wants::COUNTS.and(Wants::ARROWS).and(Wants::TASK_CREATIONS).and(Wants::MPI)
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Enter(enter) => self.enter(enter),
            Item::Leave(leave) => self.leave(leave),
            _ => self.other(item),
        }
    }

    fn failed(&self) -> bool {
        self.events.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        for track in &mut self.locations {
            track.settle(&mut self.events, &self.regions, &mut self.flows, Ns::MAX);
        }
        if self.share.is_whole() {
            self.events.out.buffer().extend_from_slice(END);
        }
        self.events.out.finish()
    }
}
