//! The timeline as indented text, location by location, for reading, `grep` and `diff`.
//!
//! ```text
//! main
//!    0.000001000  initial task  task_data=0x1
//!    0.000002000    !$omp parallel @stencil+0x1234  requested_parallelism=2
//!    0.000002500      !$omp implicit task @stencil+0x1234  index=0  = 7.500 us
//!    0.000011000    end !$omp parallel @stencil+0x1234  = 9.000 us
//! ```
//!
//! A region in which nothing happened takes one line; other regions take one line for the start and one for the end.
//! Names are made printable, so they cannot break lines or control a terminal.

use std::io;

use omptrace_symbols::printable::printable;
use omptrace_timeline::model::{
    Argument, Arguments, Count, Counter, Enter, Instant, Interval, Item, Leave, Link, LinkKind, Location,
    LocationId, LocationKind, Message, MpiEvent, Ns, Point, Process, ProcessId, Region, RegionId, Sink,
    Value, Wants,
};

use crate::writer::json;
use crate::writer::output::Output;
use crate::writer::spooled_sections::Sections;

/// Writes text.
pub(crate) struct Text {
    out: Output,
    sections: Sections,
    /// By process: the section with its title and notes, which precedes its locations.
    processes: Vec<usize>,
    locations: Vec<TextLocation>,
    regions: Vec<String>,
    /// The section of each counter.
    counters: Vec<usize>,
}

struct TextLocation {
    section: usize,
    name: String,
    open: Vec<(RegionId, Ns)>,
    /// The newest line is the start of the innermost region, to which the region's end can still be added.
    line_open: bool,
}

impl Text {
    pub(crate) fn new(out: Output) -> Text {
        Text {
            out,
            sections: Sections::default(),
            processes: Vec::new(),
            locations: Vec::new(),
            regions: Vec::new(),
            counters: Vec::new(),
        }
    }

    fn append(&mut self, section: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.out.failed() {
            let result = self.sections.append(section, write);
            self.out.note_error(result);
        }
    }

    /// Appends a line to `location`: the time, indented to `depth`, followed by what `write` writes.
    fn line(&mut self, location: LocationId, time: Ns, depth: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let location = &mut self.locations[location.0 as usize];
        let (section, end_line) = (location.section, std::mem::take(&mut location.line_open));
        self.append(section, |out| {
            if end_line {
                out.push(b'\n');
            }
            seconds(out, time);
            match INDENTS.get(..2 + 2 * depth) {
                Some(indent) => out.extend_from_slice(indent),
                None => indent_by_number(out, depth),
            }
            write(out);
        });
    }

    fn whole_line(&mut self, location: LocationId, time: Ns, depth: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.line(location, time, depth, |out| {
            write(out);
            out.push(b'\n');
        });
    }

    fn depth(&self, location: LocationId) -> usize {
        self.locations[location.0 as usize].open.len()
    }
}

/// Maximum number of regions by which a line is indented. Beyond that, their number is shown: a deep recursion would
/// otherwise let the text grow with the square of the depth.
const MAX_INDENTS: usize = 50;
/// The indentation of the most deeply nested lines.
const INDENTS: [u8; 2 + 2 * MAX_INDENTS] = [b' '; 2 + 2 * MAX_INDENTS];

#[cold]
fn indent_by_number(out: &mut Vec<u8>, depth: usize) {
    out.extend_from_slice(&INDENTS);
    out.extend_from_slice(format!("[{depth}] ").as_bytes());
}

/// Seconds with nine decimals, right-aligned.
fn seconds(out: &mut Vec<u8>, time: Ns) {
    let (seconds, mut ns) = (time.unsigned_abs() / 1_000_000_000, time.unsigned_abs() % 1_000_000_000);
    let digits = 1 + seconds.checked_ilog10().unwrap_or(0) as usize;
    out.extend(std::iter::repeat_n(b' ', 4_usize.saturating_sub(digits)));
    json::uint(out, seconds);
    let mut decimals = *b".000000000";
    for decimal in decimals[1..].iter_mut().rev() {
        *decimal += (ns % 10) as u8;
        ns /= 10;
    }
    out.extend_from_slice(&decimals);
}

fn duration(out: &mut Vec<u8>, ns: u64) {
    out.extend_from_slice(b"  = ");
    json::micros(out, ns);
    out.extend_from_slice(b" us");
}

fn arguments(out: &mut Vec<u8>, arguments: &[Argument<'_>]) {
    for (argument, space) in arguments.iter().zip(["  "].into_iter().chain(std::iter::repeat(" "))) {
        out.extend_from_slice(space.as_bytes());
        out.extend_from_slice(argument.name.as_bytes());
        out.push(b'=');
        match argument.value {
            Value::Uint(number) => json::uint(out, number),
            Value::Int(number) => json::int(out, number),
            Value::Hex(number) => json::hex(out, number),
            Value::Text(text) => json::printable_string(out, text),
        }
    }
}

impl Text {
    fn process(&mut self, process: &Process) {
        let section = self.sections.add();
        let gap = if self.processes.is_empty() { "" } else { "\n" };
        self.processes.push(section);
        self.append(section, |out| {
            out.extend_from_slice(format!("{gap}process {}\n", printable(&process.name)).as_bytes());
        });
    }

    fn location(&mut self, location: &Location) {
        let section = self.sections.add();
        let name = printable(&location.name).into_owned();
        let title = match location.kind {
            LocationKind::Thread { os_tid, .. } if os_tid > 0 => {
                format!("\n{name} (thread {os_tid})\n")
            }
            _ => format!("\n{name}\n"),
        };
        self.append(section, |out| out.extend_from_slice(title.as_bytes()));
        self.locations.push(TextLocation { section, name, open: Vec::new(), line_open: false });
    }

    fn region(&mut self, region: &Region) {
        self.regions.push(printable(&region.name).into_owned());
    }

    fn counter(&mut self, counter: &Counter) {
        let section = self.sections.add();
        let title = format!("\n{} {}\n", printable(counter.unit), printable(&counter.name));
        self.append(section, |out| out.extend_from_slice(title.as_bytes()));
        self.counters.push(section);
    }

    #[inline(never)]
    fn count(&mut self, count: &Count) {
        let Count { counter, time, value } = *count;
        self.append(self.counters[counter.0 as usize], |out| {
            seconds(out, time);
            out.extend_from_slice(b"  ");
            json::count(out, value);
            out.push(b'\n');
        });
    }

    #[inline(never)]
    fn enter(&mut self, enter: &Enter<Arguments<'_>>) {
        let Enter { at, region, arguments: details, .. } = *enter;
        let name = std::mem::take(&mut self.regions[region.0 as usize]);
        self.line(at.location, at.time, self.depth(at.location), |out| {
            out.extend_from_slice(name.as_bytes());
            arguments(out, details);
        });
        self.regions[region.0 as usize] = name;
        let location = &mut self.locations[at.location.0 as usize];
        location.open.push((region, at.time));
        location.line_open = true;
    }

    #[inline(never)]
    fn leave(&mut self, leave: &Leave<Arguments<'_>>) {
        let Leave { at, arguments: details } = *leave;
        let location = &mut self.locations[at.location.0 as usize];
        let Some((region, begin)) = location.open.pop() else {
            return;
        };
        let took = at.time.abs_diff(begin);
        if std::mem::take(&mut location.line_open) {
            let section = location.section;
            return self.append(section, |out| {
                arguments(out, details);
                duration(out, took);
                out.push(b'\n');
            });
        }
        let name = std::mem::take(&mut self.regions[region.0 as usize]);
        self.whole_line(at.location, at.time, self.depth(at.location), |out| {
            out.extend_from_slice(b"end ");
            out.extend_from_slice(name.as_bytes());
            arguments(out, details);
            duration(out, took);
        });
        self.regions[region.0 as usize] = name;
    }

    #[inline(never)]
    fn instant(&mut self, instant: &Instant<Arguments<'_>>) {
        let Instant { at, region, arguments: details } = *instant;
        let name = self.regions[region.0 as usize].clone();
        self.whole_line(at.location, at.time, self.depth(at.location), |out| {
            out.extend_from_slice(b"* ");
            out.extend_from_slice(name.as_bytes());
            arguments(out, details);
        });
    }

    #[inline(never)]
    fn interval(&mut self, interval: &Interval<'_>) {
        self.whole_line(interval.track, interval.begin, 0, |out| {
            out.extend_from_slice(printable(interval.name).as_bytes());
            arguments(out, interval.arguments);
            duration(out, interval.end.abs_diff(interval.begin));
        });
    }

    #[inline(never)]
    fn flow(&mut self, flow: &Link) {
        let from = self.locations[flow.from.location.0 as usize].name.clone();
        let to = flow.to.location;
        self.whole_line(to, flow.to.time, self.depth(to), |out| {
            out.extend_from_slice(format!("<- {} from {from} at", flow.kind.name()).as_bytes());
            seconds(out, flow.from.time);
        });
    }

    /// A message is received.
    #[inline(never)]
    fn message(&mut self, at: Point, event: &MpiEvent) {
        let MpiEvent::Receive(message @ Message { other: Some(other), .. }, _) = event else {
            return;
        };
        let rank = message.peer_in_world.unwrap_or(message.peer);
        self.whole_line(at.location, at.time, self.depth(at.location), |out| {
            out.extend_from_slice(format!("<- {} from rank {rank} at", LinkKind::Message.name()).as_bytes());
            seconds(out, other.time);
        });
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        let Some(section) = self.processes.get(process.0 as usize) else {
            return;
        };
        self.append(*section, |out| out.extend_from_slice(format!("! {}\n", printable(text)).as_bytes()));
    }

    /// Writes an item other than the end of a slice.
    #[inline(never)]
    fn other(&mut self, item: &Item<'_>) {
        match item {
            Item::Instant(instant) => self.instant(instant),
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

impl Sink for Text {
    fn wants(&self) -> Wants {
        Wants::COUNTS.and(Wants::ARROWS).and(Wants::MPI)
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Enter(enter) => self.enter(enter),
            Item::Leave(leave) => self.leave(leave),
            _ => self.other(item),
        }
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let result = self.sections.finish(&mut self.out);
        self.out.note_error(result);
        self.out.finish()
    }
}
