//! Chrome's trace event format, as Perfetto's and Catapult's importers want it.
//!
//! What the importers do is not what the format's description says; the rules here come from running both:
//!
//! * Complete events (`X`) only. One `X` beside `B` and `E` changes how equal times are sorted.
//! * A slice that begins with the slice around it follows it in the file: for equal times and durations the order of the
//!   file decides what is inside. So does an arrow's end, which binds to the newest slice at its time.
//! * Times are microseconds with three decimals, written from integers and counted from the timeline's start; both
//!   importers read them as doubles.
//! * Ids and addresses are strings: doubles hold 53 bits. Process and thread numbers are ours, small and never 0.
//! * Intervals of tracks are asynchronous events with an id that is local to the process. A track is named by its first
//!   event, so an instant of its name goes first. Those of devices' queues are slices of a thread of ours instead: arrows
//!   lead to slices of threads only.

use std::io::{self, Write};

use crate::json;
use crate::output::Output;
use crate::sink::{
    Argument, Category, Counter, CounterId, Flow, Interval, Location, LocationId, LocationKind, Ns,
    Point, Process, ProcessId, Region, RegionId, Sink, Value,
};

/// Writes Chrome JSON.
pub(crate) struct Chrome {
    events: Events,
    locations: Vec<Lane>,
    /// `"name":...,"cat":...` of each region.
    regions: Vec<Box<[u8]>>,
    counters: Vec<Counter>,
    /// The last process's thread numbers that were given out.
    threads: u32,
}

/// The file's list of events.
struct Events {
    out: Output,
    empty: bool,
}

impl Events {
    /// The buffer, where the next event begins.
    fn next(&mut self) -> &mut Vec<u8> {
        self.out.written();
        let out = self.out.buffer();
        if !std::mem::replace(&mut self.empty, false) {
            out.extend_from_slice(SEPARATOR);
        }
        out
    }
}

/// A location as the format sees it.
struct Lane {
    pid: u32,
    tid: u32,
    /// The beginning of its slices, up to the time.
    slice_head: Vec<u8>,
    name: String,
    /// Its intervals are slices, as those of threads: only to them flows can lead.
    is_queue: bool,
    /// Whether the track's name was written.
    named: bool,
    open: Vec<OpenSlice>,
    /// Slices that are closed, kept for their buffers.
    spare: Vec<OpenSlice>,
}

#[derive(Default)]
struct OpenSlice {
    region: usize,
    begin: Ns,
    /// The members of `args`, each with a comma behind it.
    arguments: Vec<u8>,
    /// Events that must follow this slice in the file, each with its separator in front.
    followers: Vec<u8>,
}

/// Between two events.
const SEPARATOR: &[u8] = b",\n";

impl Chrome {
    pub(crate) fn new(target: Box<dyn Write + Send>) -> Chrome {
        let mut out = Output::new(target);
        out.buffer()
            .extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        Chrome {
            events: Events { out, empty: true },
            locations: Vec::new(),
            regions: Vec::new(),
            counters: Vec::new(),
            threads: 0,
        }
    }

    /// A metadata event; `value` writes what it tells.
    fn metadata(&mut self, pid: u32, tid: u32, name: &str, value: impl Fn(&mut Vec<u8>)) {
        let out = self.events.next();
        head(out, b'M', pid, tid);
        out.extend_from_slice(b",\"name\":\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\",\"args\":{\"");
        out.extend_from_slice(if name.ends_with("name") {
            b"name"
        } else {
            b"sort_index"
        });
        out.extend_from_slice(b"\":");
        value(out);
        out.extend_from_slice(b"}}");
    }

    /// One end of an interval on a track: `b`, `e`, or `n` for the track's name.
    fn async_event(
        &mut self,
        phase: u8,
        track: LocationId,
        time: Ns,
        category: Category,
        name: &str,
        args: &[u8],
    ) {
        let lane = &self.locations[track.0 as usize];
        let (pid, tid) = (lane.pid, lane.tid);
        let out = self.events.next();
        head(out, phase, pid, tid);
        out.extend_from_slice(b",\"id2\":{\"local\":");
        json::hex_string(out, u64::from(track.0) + 1);
        out.extend_from_slice(b"},\"ts\":");
        json::micros(out, time.unsigned_abs());
        name_and_category(out, name, category);
        arguments_object(out, args);
        out.push(b'}');
    }
}

/// `{"ph":"X","pid":1,"tid":2`
fn head(out: &mut Vec<u8>, phase: u8, pid: u32, tid: u32) {
    out.extend_from_slice(b"{\"ph\":\"");
    out.push(phase);
    out.extend_from_slice(b"\",\"pid\":");
    json::uint(out, pid);
    out.extend_from_slice(b",\"tid\":");
    json::uint(out, tid);
}

fn name_and_category(out: &mut Vec<u8>, name: &str, category: Category) {
    out.extend_from_slice(b",\"name\":");
    json::string(out, name);
    out.extend_from_slice(b",\"cat\":\"");
    out.extend_from_slice(category.name().as_bytes());
    out.push(b'"');
}

/// Appends the arguments, each with a comma behind it.
fn write_arguments(out: &mut Vec<u8>, arguments: &[Argument<'_>]) {
    for argument in arguments {
        out.push(b'"');
        out.extend_from_slice(argument.name.as_bytes());
        out.extend_from_slice(b"\":");
        match argument.value {
            Value::Uint(number) if number < 1 << 53 => json::uint(out, number),
            Value::Uint(number) | Value::Hex(number) => json::hex_string(out, number),
            Value::Int(number) => json::int(out, number),
            Value::Text(text) => json::string(out, text),
        }
        out.push(b',');
    }
}

/// `,"args":{...}` of arguments written before; nothing where there are none.
fn arguments_object(out: &mut Vec<u8>, written: &[u8]) {
    if let Some((_comma, members)) = written.split_last() {
        out.extend_from_slice(b",\"args\":{");
        out.extend_from_slice(members);
        out.push(b'}');
    }
}

fn complete_event(out: &mut Vec<u8>, lane: &Lane, region: &[u8], slice: &OpenSlice, end: Ns) {
    out.extend_from_slice(&lane.slice_head);
    json::micros(out, slice.begin.unsigned_abs());
    out.extend_from_slice(b",\"dur\":");
    json::micros(out, end.abs_diff(slice.begin));
    out.extend_from_slice(region);
    arguments_object(out, &slice.arguments);
    out.push(b'}');
}

fn flow_event(out: &mut Vec<u8>, phase: u8, lane: &Lane, flow: &Flow, time: Ns) {
    head(out, phase, lane.pid, lane.tid);
    out.extend_from_slice(b",\"id\":");
    json::hex_string(out, flow.id);
    out.extend_from_slice(b",\"ts\":");
    json::micros(out, time.unsigned_abs());
    out.extend_from_slice(b",\"name\":\"");
    out.extend_from_slice(flow.kind.name().as_bytes());
    out.extend_from_slice(b"\",\"cat\":\"flow\"");
    if phase == b'f' {
        out.extend_from_slice(b",\"bp\":\"e\"");
    }
    out.push(b'}');
}

impl Sink for Chrome {
    fn process(&mut self, process: &Process) {
        let pid = process.id.0 + 1;
        self.threads = 0;
        self.metadata(pid, 0, "process_name", |out| {
            json::string(out, &process.name)
        });
        self.metadata(pid, 0, "process_sort_index", |out| json::uint(out, pid));
    }

    fn location(&mut self, location: &Location) {
        self.threads += 1;
        let (pid, tid) = (location.process.0 + 1, self.threads);
        let is_queue = matches!(location.kind, LocationKind::DeviceQueue { .. });
        if is_queue
            || matches!(
                location.kind,
                LocationKind::Thread { .. } | LocationKind::Device { .. }
            )
        {
            self.metadata(pid, tid, "thread_name", |out| {
                json::string(out, &location.name)
            });
            self.metadata(pid, tid, "thread_sort_index", |out| json::uint(out, tid));
        }
        let name = location.name.clone();
        let mut slice_head = Vec::new();
        head(&mut slice_head, b'X', pid, tid);
        slice_head.extend_from_slice(b",\"ts\":");
        self.locations.push(Lane {
            pid,
            tid,
            slice_head,
            name,
            is_queue,
            named: false,
            open: Vec::new(),
            spare: Vec::new(),
        });
    }

    fn region(&mut self, region: &Region) {
        let mut text = Vec::new();
        name_and_category(&mut text, &region.name, region.category);
        self.regions.push(text.into());
    }

    fn counter(&mut self, counter: &Counter) {
        self.counters.push(counter.clone());
    }

    fn count(&mut self, counter: CounterId, time: Ns, value: i64) {
        let Counter {
            process,
            name,
            unit,
            ..
        } = &self.counters[counter.0 as usize];
        let out = self.events.next();
        head(out, b'C', process.0 + 1, 0);
        out.extend_from_slice(b",\"name\":");
        json::string(out, name);
        out.extend_from_slice(b",\"ts\":");
        json::micros(out, time.unsigned_abs());
        out.extend_from_slice(b",\"args\":{");
        json::string(out, unit);
        out.push(b':');
        json::int(out, value);
        out.extend_from_slice(b"}}");
    }

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        let lane = &mut self.locations[at.location.0 as usize];
        let mut slice = lane.spare.pop().unwrap_or_default();
        slice.region = region.0 as usize;
        slice.begin = at.time;
        slice.arguments.clear();
        slice.followers.clear();
        write_arguments(&mut slice.arguments, arguments);
        lane.open.push(slice);
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        let lane = &mut self.locations[at.location.0 as usize];
        let Some(mut slice) = lane.open.pop() else {
            return;
        };
        write_arguments(&mut slice.arguments, arguments);
        let region = &self.regions[slice.region];
        match lane.open.pop() {
            Some(mut around) if around.begin == slice.begin => {
                around.followers.extend_from_slice(SEPARATOR);
                complete_event(&mut around.followers, lane, region, &slice, at.time);
                around.followers.append(&mut slice.followers);
                lane.open.push(around);
            }
            around => {
                lane.open.extend(around);
                let out = self.events.next();
                complete_event(out, lane, region, &slice, at.time);
                out.extend_from_slice(&slice.followers);
            }
        }
        lane.spare.push(slice);
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        let lane = &self.locations[at.location.0 as usize];
        let (pid, tid) = (lane.pid, lane.tid);
        let mut written = Vec::new();
        write_arguments(&mut written, arguments);
        let out = self.events.next();
        head(out, b'i', pid, tid);
        out.extend_from_slice(b",\"s\":\"t\",\"ts\":");
        json::micros(out, at.time.unsigned_abs());
        out.extend_from_slice(&self.regions[region.0 as usize]);
        arguments_object(out, &written);
        out.push(b'}');
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let lane = &mut self.locations[interval.track.0 as usize];
        if lane.is_queue {
            let mut slice = OpenSlice {
                begin: interval.begin,
                ..OpenSlice::default()
            };
            write_arguments(&mut slice.arguments, interval.arguments);
            let mut region = Vec::new();
            name_and_category(&mut region, interval.name, interval.category);
            let out = self.events.next();
            return complete_event(out, lane, &region, &slice, interval.end);
        }
        if !std::mem::replace(&mut lane.named, true) {
            let name = lane.name.clone();
            self.async_event(
                b'n',
                interval.track,
                interval.begin,
                interval.category,
                &name,
                &[],
            );
        }
        let mut written = Vec::new();
        write_arguments(&mut written, interval.arguments);
        let (track, category, name) = (interval.track, interval.category, interval.name);
        self.async_event(b'b', track, interval.begin, category, name, &written);
        self.async_event(b'e', track, interval.end, category, name, &[]);
    }

    fn flow(&mut self, flow: &Flow) {
        let from = &self.locations[flow.from.location.0 as usize];
        flow_event(self.events.next(), b's', from, flow, flow.from.time);

        let to = &mut self.locations[flow.to.location.0 as usize];
        match to.open.pop() {
            Some(mut slice) if slice.begin == flow.to.time => {
                slice.followers.extend_from_slice(SEPARATOR);
                flow_event(&mut slice.followers, b'f', to, flow, flow.to.time);
                to.open.push(slice);
            }
            earlier => {
                to.open.extend(earlier);
                flow_event(self.events.next(), b'f', to, flow, flow.to.time);
            }
        }
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        let out = self.events.next();
        head(out, b'i', process.0 + 1, 1);
        out.extend_from_slice(b",\"s\":\"p\",\"ts\":0.000");
        name_and_category(out, text, Category::Omptrace);
        out.push(b'}');
    }

    fn failed(&self) -> bool {
        self.events.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.events.out.buffer().extend_from_slice(b"\n]}\n");
        self.events.out.finish()
    }
}
