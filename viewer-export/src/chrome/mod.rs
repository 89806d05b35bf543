//! Chrome's trace event format, as Perfetto's and Catapult's importers want it.
//!
//! The importers do other things than the format's description says. The rules here come from running them:
//! Perfetto's, Catapult's, Speedscope's, Tracy's and that of the Firefox profiler.
//!
//! * A slice is a start (`B`) and an end (`E`), in the order of time on each thread. The sum of time and duration of
//!   a complete event (`X`) is a double. It may lie above the next one's time: Speedscope and Tracy then lose the end
//!   of a slice. One `X` beside `B` and `E` changes how equal times are sorted, so there is none.
//! * An end names its slice, for Speedscope. That takes the two ends of a slice without duration for one only where
//!   both have the same arguments. Catapult warns of arguments that come twice. With arguments, such a slice is an
//!   instant (`i`). So a start waits for what the thread does next.
//! * An arrow binds to the innermost slice at its time. In Catapult a slice still lasts at the time of its end, so an
//!   arrow's end is a nanosecond inside of the slice. It is written before what the thread does next, with which the
//!   slice may end.
//! * Perfetto takes for an arrow's source whichever slice began first, see [`Anchor::Moment`]: here a slice without
//!   duration.
//! * Times are microseconds with three decimals, written from integers and counted from the timeline's start;
//!   importers read them as doubles.
//! * Ids and addresses are strings: doubles hold 53 bits. Process and thread numbers are the operating system's, as
//!   far as those are unique: the thread with its process's number is the main one. They are never 0.
//! * Locks, devices' queues and other tracks are threads of ours, their intervals slices. Arrows lead to slices of
//!   threads only, and asynchronous events would take twice the bytes and leave their track without a name of its
//!   own.
//! * Perfetto names a counter by its name and its value's key, Tracy by the key, Catapult by the name and the
//!   category. Tracy has no processes and makes one plot of equal keys: those of a further process name it.
//! * The Firefox profiler shows the argument `detail` alone, Tracy finds the source by `loc`.

mod event_text;
mod lane;

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
use crate::chrome::lane::{Events, Lane};
use crate::writer::decimal::ShortText;
use crate::writer::interned_text::{ByWord, RecentTexts};
use crate::writer::json;
use crate::writer::output::Output;
use crate::writer::share::Share;
use crate::writer::system_ids::SystemIds;

/// The places of hidden helpers among a process's threads: after what its devices did, and after its locks.
const HELPERS_FROM: u32 = 1 << 24;

/// Writes Chrome JSON.
pub(crate) struct Chrome {
    share: Share,
    events: Events,
    processes: Vec<Numbers>,
    locations: Vec<Lane>,
    /// The texts of the slices of each region.
    regions: Vec<Called>,
    counters: Vec<CounterTexts>,
    names: ByWord<ArgumentName>,
    /// By the kind's name.
    flows: ByWord<FlowTexts>,
    /// The texts of intervals.
    called: RecentTexts<Called>,
    /// The arguments of the newest interval, instant or end: a buffer.
    arguments: Vec<u8>,
}

/// The numbers of a process: its own and its threads', and its place among all of the file.
struct Numbers {
    ids: SystemIds,
    rank: u32,
}

/// Added to the numbers of messages, which the ends of an arrow have in different processes. Doubles hold it exactly.
const MESSAGES: u64 = 1 << 48;

/// The end of the file.
pub(crate) const END: &[u8] = b"\n]}\n";

impl Chrome {
    /// The sink that writes `share` of a file. Where that is not all of it, [`END`] is for its owner to write.
    pub(crate) fn new(mut out: Output, share: Share) -> Chrome {
        // The first share begins with an event: its process.
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

    /// A metadata event; `value` writes what it says.
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
        self.locations.push(Lane {
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
        let lane = &mut self.locations[at.location.0 as usize];
        lane.settle(&mut self.events, &self.regions, &mut self.flows, at.time);
        lane.open.push(region.0);
        (lane.newest, lane.is_kept) = (Some(at.time), true);
        lane.instant = None;
        lane.arguments.clear();
        write_arguments(&mut lane.arguments, &mut self.names, arguments);
        write_detail(&mut lane.arguments, arguments);
    }

    #[inline(never)]
    fn leave(&mut self, leave: &Leave<Arguments<'_>>) {
        let Leave { at, arguments } = *leave;
        let lane = &mut self.locations[at.location.0 as usize];
        if lane.is_kept && lane.newest == Some(at.time) && lane.arrows.is_empty() {
            write_arguments(&mut lane.arguments, &mut self.names, arguments);
            if !lane.arguments.is_empty() {
                return lane.write_moment(&mut self.events, &self.regions);
            }
        }
        lane.settle(&mut self.events, &self.regions, &mut self.flows, at.time);
        (lane.newest, lane.instant) = (None, None);
        let Some(region) = lane.open.pop() else {
            return;
        };
        self.arguments.clear();
        write_arguments(&mut self.arguments, &mut self.names, arguments);
        let called = &self.regions[region as usize];
        let out = self.events.next();
        slice_end(out, &lane.before_time, at.time, called, &self.arguments);
    }

    #[inline(never)]
    fn instant(&mut self, instant: &Instant<Arguments<'_>>) {
        let Instant { at, region, arguments } = *instant;
        let lane = &mut self.locations[at.location.0 as usize];
        lane.settle(&mut self.events, &self.regions, &mut self.flows, at.time);
        (lane.newest, lane.instant) = (None, Some(at.time));
        self.arguments.clear();
        write_arguments(&mut self.arguments, &mut self.names, arguments);
        write_detail(&mut self.arguments, arguments);
        let called = &self.regions[region.0 as usize];
        let out = self.events.next();
        instant_event(out, &lane.before_time, at.time, called, &self.arguments);
    }

    /// An arrow leads from the region that creates a task, not from an instant before.
    #[inline(never)]
    fn thread_event(&mut self, at: Point, event: &ThreadEvent) {
        let lane = &mut self.locations[at.location.0 as usize];
        if !matches!(event, ThreadEvent::TaskCreate { .. }) {
            return;
        }
        if let Some(instant) = lane.instant.take() {
            // In Catapult, the arrow would start on a slice of its time.
            let time = (at.time - 1).max(instant);
            let kind = LinkKind::TaskCreate;
            let texts = self.flows.get(kind.name(), || FlowTexts::of(kind));
            let (events, called) = (&mut self.events, &texts.marks[0]);
            slice_begin(events.next(), &lane.before_time, time, called, &[]);
            slice_end(events.next(), &lane.before_time, time, called, &[]);
        }
    }

    #[inline(never)]
    fn interval(&mut self, interval: &Interval<'_>) {
        let lane = &mut self.locations[interval.track.0 as usize];
        let begin = interval.begin;
        lane.settle(&mut self.events, &self.regions, &mut self.flows, begin);
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
        slice_begin(out, &lane.before_time, interval.begin, called, arguments);
        (lane.newest, lane.held) = (Some(interval.begin), Some(interval.end));
        lane.end.clear();
        lane.end.extend_from_slice(&called.end.text);
        end(&mut lane.end, &[]);
    }

    #[inline(never)]
    fn flow(&mut self, flow: &Link) {
        let id = self.share.number(flow.id);
        let texts = self.flows.get(flow.kind.name(), || FlowTexts::of(flow.kind));
        let events = &mut self.events;
        let from = &mut self.locations[flow.from.location.0 as usize];
        let time = flow.from.time;
        let cause = match flow.cause {
            // Else the arrow would start on the instant.
            Anchor::Inside if from.instant.is_some_and(|instant| instant <= time) => Anchor::Moment,
            cause => cause,
        };
        // What it has begun since is not over, and may end with it. A mark comes before a slice that begins at its time.
        // Speedscope would take the mark's end before its start, which is not the next one of that time.
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
                    // The slice is still open then, and the innermost.
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
        let lane = &mut self.locations[at.location.0 as usize];
        lane.write_begin(events, &self.regions);
        let before_time = &lane.before_time;
        match (event, lane.newest) {
            (MpiEvent::Receive(..), Some(begin)) if begin > other.time => {
                let inside = (at.time - 1).max(begin);
                flow_event(events.next(), b'f', before_time, inside, id, &texts.finish);
            }
            // The call began before the message was sent.
            (MpiEvent::Receive(..), _) => lane.mark(events, at.time, &texts.marks[1], |out| {
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

    /// Takes an item that is no end of a slice.
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
        for lane in &mut self.locations {
            lane.settle(&mut self.events, &self.regions, &mut self.flows, Ns::MAX);
        }
        if self.share.is_whole() {
            self.events.out.buffer().extend_from_slice(END);
        }
        self.events.out.finish()
    }
}
