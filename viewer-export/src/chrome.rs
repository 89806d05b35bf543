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
//! * Locks, devices' queues and other tracks are threads of ours, their intervals slices: arrows lead to slices of threads
//!   only, and asynchronous events would take twice the bytes and leave their track without a name of its own.

use std::io;

use crate::digits::{Pieces, ShortText, put};
use crate::json;
use crate::output::Output;
use crate::share::Share;
use crate::sink::{
    Argument, Category, Counter, CounterId, Flow, Interval, Location, Ns, Point, Process,
    ProcessId, Region, RegionId, Sink, Value,
};
use crate::words::{ByWord, RecentTexts};

/// Writes Chrome JSON.
pub(crate) struct Chrome {
    share: Share,
    events: Events,
    locations: Vec<Lane>,
    /// What the slices of each region are called.
    regions: Vec<Called>,
    counters: Vec<CounterTexts>,
    /// The last process's thread numbers that were given out.
    threads: u32,
    names: ByWord<ArgumentName>,
    /// By the kind's name.
    flows: ByWord<FlowTexts>,
    /// What intervals are called.
    called: RecentTexts<Called>,
    /// The arguments of the newest interval or instant: a buffer.
    arguments: Vec<u8>,
}

/// A text that comes again and again; where it fits, it is copied at once.
#[derive(Default)]
struct Constant<const N: usize> {
    text: Vec<u8>,
    short: Option<ShortText<N>>,
}

impl<const N: usize> Constant<N> {
    fn new(text: Vec<u8>) -> Constant<N> {
        let short = ShortText::of(&text);
        Constant { text, short }
    }
}

/// `,"name":...,"cat":...`
type Called = Constant<64>;

/// `"name":` of an argument.
type ArgumentName = Constant<32>;

/// What stands behind the id of a flow's ends: `","name":...,"cat":"flow"}`.
#[derive(Default)]
struct FlowTexts {
    start: ShortText<64>,
    finish: ShortText<64>,
}

impl FlowTexts {
    fn of(name: &str) -> FlowTexts {
        let text = |more| {
            let text = format!("\",\"name\":\"{name}\",\"cat\":\"flow\"{more}}}");
            ShortText::of(text.as_bytes()).expect("the kinds' names are short")
        };
        FlowTexts {
            start: text(""),
            finish: text(",\"bp\":\"e\""),
        }
    }
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

/// What stands around the time of each sample of a counter.
struct CounterTexts {
    /// `{"ph":"C","pid":1,"tid":0,"name":...,"ts":`
    before_time: Vec<u8>,
    /// `,"args":{"threads":`
    before_value: Vec<u8>,
}

/// What stands between phase and time in each event of a lane: `","pid":1,"tid":2,"ts":`.
type BeforeTime = ShortText<48>;

/// A location as the format sees it.
struct Lane {
    before_time: BeforeTime,
    slices: Slices,
}

/// The slices of a lane.
#[derive(Default)]
struct Slices {
    /// Those that are open, the outermost first, and behind them closed ones, whose buffers are used again.
    slices: Vec<OpenSlice>,
    /// How many are open.
    depth: usize,
}

impl Slices {
    fn open(&mut self, region: RegionId, begin: Ns) -> &mut OpenSlice {
        if self.depth == self.slices.len() {
            self.slices.push(OpenSlice::default());
        }
        let slice = &mut self.slices[self.depth];
        self.depth += 1;
        (slice.region, slice.begin) = (region.0 as usize, begin);
        slice.arguments.clear();
        slice.followers.clear();
        slice
    }

    fn innermost(&mut self) -> Option<&mut OpenSlice> {
        self.slices[..self.depth].last_mut()
    }

    /// Closes the innermost; gives it with the one around it.
    fn close(&mut self) -> Option<(&mut OpenSlice, Option<&mut OpenSlice>)> {
        let (slice, around) = self.slices[..self.depth].split_last_mut()?;
        self.depth -= 1;
        Some((slice, around.last_mut()))
    }
}

#[derive(Default)]
struct OpenSlice {
    region: usize,
    begin: Ns,
    /// As [`write_arguments`] leaves them.
    arguments: Vec<u8>,
    /// Events that must follow this slice in the file, each with its separator in front.
    followers: Vec<u8>,
}

/// Doubles, which viewers read numbers as, hold all whole ones below.
const EXACT: u64 = 1 << 53;

/// Between two events.
const SEPARATOR: &[u8] = b",\n";

/// What ends the file.
pub(crate) const END: &[u8] = b"\n]}\n";

impl Chrome {
    /// The sink that writes `share` of a file. Where that is not all of it, [`END`] is for its owner to write.
    pub(crate) fn new(mut out: Output, share: Share) -> Chrome {
        // The first share begins with an event: its process.
        let empty = share.is_first();
        if empty {
            out.buffer()
                .extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        }
        Chrome {
            share,
            events: Events { out, empty },
            locations: Vec::new(),
            regions: Vec::new(),
            counters: Vec::new(),
            threads: 0,
            names: ByWord::new(),
            flows: ByWord::new(),
            called: RecentTexts::new(),
            arguments: Vec::new(),
        }
    }

    /// Ours: small, and never 0.
    fn pid(&self, process: ProcessId) -> u32 {
        self.share.number(process.0.into()) as u32 + 1
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
}

/// `{"ph":"X","pid":1,"tid":2,"ts":0.001`: up to 73 bytes, and room for 4 more.
#[inline(always)]
fn begin<const N: usize>(
    pieces: &mut Pieces<'_, N>,
    phase: u8,
    before_time: &BeforeTime,
    time: Ns,
) {
    pieces.text(&[b'{', b'"', b'p', b'h', b'"', b':', b'"', phase]);
    pieces.short(before_time);
    pieces.micros(time.unsigned_abs());
}

/// `{"ph":"X","pid":1,"tid":2`
fn head(out: &mut Vec<u8>, phase: u8, pid: u32, tid: u32) {
    out.extend_from_slice(b"{\"ph\":\"");
    out.push(phase);
    out.extend_from_slice(b"\",");
    numbers(out, pid, tid);
}

/// `"pid":1,"tid":2`
fn numbers(out: &mut Vec<u8>, pid: u32, tid: u32) {
    out.extend_from_slice(b"\"pid\":");
    json::uint(out, pid);
    out.extend_from_slice(b",\"tid\":");
    json::uint(out, tid);
}

/// `,"name":...,"cat":...`
fn name_and_category(name: &str, category: Category) -> Vec<u8> {
    let mut text = b",\"name\":".to_vec();
    json::string(&mut text, name);
    text.extend_from_slice(b",\"cat\":\"");
    text.extend_from_slice(category.name().as_bytes());
    text.push(b'"');
    text
}

/// Appends the arguments, each with a comma behind it, and what stands before the first.
#[inline(always)]
fn write_arguments(
    out: &mut Vec<u8>,
    names: &mut ByWord<ArgumentName>,
    arguments: &[Argument<'_>],
) {
    if !arguments.is_empty() {
        write_some_arguments(out, names, arguments);
    }
}

/// As [`write_arguments`], of one at least: there are none at the ends of most slices, which take no call.
fn write_some_arguments(
    out: &mut Vec<u8>,
    names: &mut ByWord<ArgumentName>,
    arguments: &[Argument<'_>],
) {
    if out.is_empty() {
        out.extend_from_slice(b",\"args\":{");
    }
    for argument in arguments {
        let name = names.get(argument.name, || {
            ArgumentName::new(format!("\"{}\":", argument.name).into())
        });
        match (argument.value, &name.short) {
            (Value::Hex(number), Some(short)) => {
                put::<56>(out, |pieces| {
                    pieces.short(short);
                    pieces.text(b"\"0x");
                    pieces.hex(number);
                    pieces.text(b"\",");
                });
                continue;
            }
            (Value::Uint(number @ ..EXACT), Some(short)) => {
                put::<64>(out, |pieces| {
                    pieces.short(short);
                    pieces.decimal(number);
                    pieces.text(b",");
                });
                continue;
            }
            _ => out.extend_from_slice(&name.text),
        }
        match argument.value {
            Value::Uint(number @ ..EXACT) => json::uint(out, number),
            Value::Uint(number) | Value::Hex(number) => json::hex_string(out, number),
            Value::Int(number) => json::int(out, number),
            Value::Text(text) => json::string(out, text),
        }
        out.push(b',');
    }
}

/// Ends an event with the arguments that were written before, if there are any.
#[inline]
fn end(out: &mut Vec<u8>, arguments: &[u8]) {
    match arguments.split_last() {
        Some((_comma, members)) => {
            out.extend_from_slice(members);
            out.extend_from_slice(b"}}");
        }
        None => out.push(b'}'),
    }
}

/// A slice of these times.
#[inline]
fn complete_event(
    out: &mut Vec<u8>,
    before_time: &BeforeTime,
    times: (Ns, Ns),
    called: &Called,
    arguments: &[u8],
) {
    if let Some(called) = &called.short {
        put::<176>(out, |pieces| {
            begin_and_duration(pieces, before_time, times);
            pieces.short(called);
        });
    } else {
        put::<112>(out, |pieces| begin_and_duration(pieces, before_time, times));
        out.extend_from_slice(&called.text);
    }
    end(out, arguments);
}

/// `{"ph":"X","pid":1,"tid":2,"ts":0.001,"dur":0.002`: up to 104 bytes, and room for 8 more.
#[inline(always)]
fn begin_and_duration<const N: usize>(
    pieces: &mut Pieces<'_, N>,
    before_time: &BeforeTime,
    (since, until): (Ns, Ns),
) {
    begin(pieces, b'X', before_time, since);
    pieces.text(b",\"dur\":");
    pieces.micros(until.abs_diff(since));
}

/// One end of a flow. `texts` stand behind its id.
#[inline]
fn flow_event(
    out: &mut Vec<u8>,
    phase: u8,
    before_time: &BeforeTime,
    time: Ns,
    id: u64,
    text: &ShortText<64>,
) {
    put::<168>(out, |pieces| {
        begin(pieces, phase, before_time, time);
        pieces.text(b",\"id\":\"0x");
        pieces.hex(id);
        pieces.short(text);
    });
}

impl Sink for Chrome {
    fn process(&mut self, process: &Process) {
        let pid = self.pid(process.id);
        self.threads = 0;
        self.metadata(pid, 0, "process_name", |out| {
            json::string(out, &process.name)
        });
        self.metadata(pid, 0, "process_sort_index", |out| json::uint(out, pid));
    }

    fn location(&mut self, location: &Location) {
        self.threads += 1;
        let (pid, tid) = (self.pid(location.process), self.threads);
        self.metadata(pid, tid, "thread_name", |out| {
            json::string(out, &location.name)
        });
        self.metadata(pid, tid, "thread_sort_index", |out| json::uint(out, tid));
        let mut before_time = b"\",".to_vec();
        numbers(&mut before_time, pid, tid);
        before_time.extend_from_slice(b",\"ts\":");
        self.locations.push(Lane {
            before_time: ShortText::of(&before_time).expect("numbers of 32 bits are short"),
            slices: Slices::default(),
        });
    }

    fn region(&mut self, region: &Region) {
        let called = name_and_category(&region.name, region.category);
        self.regions.push(Called::new(called));
    }

    fn counter(&mut self, counter: &Counter) {
        let mut before_time = Vec::new();
        head(&mut before_time, b'C', self.pid(counter.process), 0);
        before_time.extend_from_slice(b",\"name\":");
        json::string(&mut before_time, &counter.name);
        before_time.extend_from_slice(b",\"ts\":");
        let mut before_value = b",\"args\":{".to_vec();
        json::string(&mut before_value, counter.unit);
        before_value.push(b':');
        self.counters.push(CounterTexts {
            before_time,
            before_value,
        });
    }

    fn count(&mut self, counter: CounterId, time: Ns, value: i64) {
        let texts = &self.counters[counter.0 as usize];
        let out = self.events.next();
        out.extend_from_slice(&texts.before_time);
        json::micros(out, time.unsigned_abs());
        out.extend_from_slice(&texts.before_value);
        json::int(out, value);
        out.extend_from_slice(b"}}");
    }

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        let lane = &mut self.locations[at.location.0 as usize];
        let slice = lane.slices.open(region, at.time);
        write_arguments(&mut slice.arguments, &mut self.names, arguments);
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        let lane = &mut self.locations[at.location.0 as usize];
        let Some((slice, around)) = lane.slices.close() else {
            return;
        };
        write_arguments(&mut slice.arguments, &mut self.names, arguments);
        let out = match around {
            Some(around) if around.begin == slice.begin => {
                around.followers.extend_from_slice(SEPARATOR);
                &mut around.followers
            }
            _ => self.events.next(),
        };
        let times = (slice.begin, at.time);
        let called = &self.regions[slice.region];
        complete_event(out, &lane.before_time, times, called, &slice.arguments);
        out.extend_from_slice(&slice.followers);
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        let lane = &self.locations[at.location.0 as usize];
        self.arguments.clear();
        write_arguments(&mut self.arguments, &mut self.names, arguments);
        let out = self.events.next();
        put::<80>(out, |pieces| {
            begin(pieces, b'i', &lane.before_time, at.time)
        });
        out.extend_from_slice(b",\"s\":\"t\"");
        out.extend_from_slice(&self.regions[region.0 as usize].text);
        end(out, &self.arguments);
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let lane = &self.locations[interval.track.0 as usize];
        let times = (interval.begin, interval.end);
        let Interval { name, category, .. } = *interval;
        let called = || Called::new(name_and_category(name, category));
        let place = self.called.place(name, category, called);
        let (called, arguments) = (&self.called[place], &mut self.arguments);
        arguments.clear();
        write_arguments(arguments, &mut self.names, interval.arguments);
        let out = self.events.next();
        complete_event(out, &lane.before_time, times, called, arguments);
    }

    fn flow(&mut self, flow: &Flow) {
        let id = self.share.number(flow.id);
        let name = flow.kind.name();
        let texts = self.flows.get(name, || FlowTexts::of(name));
        let from = &self.locations[flow.from.location.0 as usize];
        let out = self.events.next();
        flow_event(
            out,
            b's',
            &from.before_time,
            flow.from.time,
            id,
            &texts.start,
        );

        let to = &mut self.locations[flow.to.location.0 as usize];
        let out = match to.slices.innermost() {
            Some(slice) if slice.begin == flow.to.time => {
                slice.followers.extend_from_slice(SEPARATOR);
                &mut slice.followers
            }
            _ => self.events.next(),
        };
        flow_event(out, b'f', &to.before_time, flow.to.time, id, &texts.finish);
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        let pid = self.pid(process);
        let out = self.events.next();
        head(out, b'i', pid, 1);
        out.extend_from_slice(b",\"s\":\"p\",\"ts\":0.000");
        out.extend_from_slice(&name_and_category(text, Category::Omptrace));
        out.push(b'}');
    }

    fn failed(&self) -> bool {
        self.events.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if self.share.is_whole() {
            self.events.out.buffer().extend_from_slice(END);
        }
        self.events.out.finish()
    }
}
