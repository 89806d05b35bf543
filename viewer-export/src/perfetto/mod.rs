//! Perfetto's own format: a `Trace` of packets, in protocol buffers.
//!
//! ```text
//! packets of sequence 1   clocks, processes, tracks; intervals, notes         (each names its track)
//! of sequence 2           a thread's descriptor; its begins, ends, instants   (its track is the sequence's default)
//! of sequence 3           the next thread's ...
//! last                    the trace's uuid
//! ```
//!
//! A slice is two events: an end says no more than that the newest slice of its track ends. The importer sorts all
//! packets by time and keeps the file's order among equal times, so a thread's events are written in their own order,
//! and it does not matter that threads mix. Strings are interned, so a slice with two ids takes about 50 bytes where
//! Chrome's JSON takes 200.
//!
//! A flow's end is a field of an event at its place and time. Where no such event is at hand any more, as for the
//! creation of a task long ago, it gets an instant of its own.

mod intern;
mod protobuf;
mod schema;
mod sequence;
mod tracks;

use std::hash::Hasher;
use std::io::{self, Write};

use crate::fast_map::Fold;
use crate::output::Output;
use crate::sink::{
    Argument, Category, Flow, Interval, Location, LocationId, LocationKind, Ns, Point, Process,
    ProcessId, Region, RegionId, Sink, Source,
};
use protobuf as pb;
use schema::{
    BUILTIN_CLOCK_BOOTTIME, BUILTIN_CLOCK_REALTIME, EventType, clock, clock_snapshot, event,
    event_defaults, packet, packet_defaults, trace, trace_uuid,
};
use sequence::{EventName, Sequence, Strings};
use tracks::{ProcessTracks, SystemIds, ThreadTrack};

/// The sequence of everything that is no thread's.
const COMMON_SEQUENCE: u32 = 1;

/// Writes Perfetto's format.
pub(crate) struct Perfetto {
    out: Output,
    strings: Strings,
    regions: Vec<NamedRegion>,
    pids: SystemIds,
    processes: Vec<ProcessTracks>,
    locations: Vec<Place>,
    common: Sequence,
    last_sequence: u32,
    last_uuid: u64,
    /// The earliest event's time: where notes go.
    first_event: Option<Ns>,
    /// A hash of what makes this trace another than others.
    identity: Fold,
}

struct NamedRegion {
    iid: u64,
    name: String,
    category: Category,
    /// Its place in the source, which the region's number stands for.
    source: Option<Source>,
}

/// Where a location's events go.
enum Place {
    /// Into a sequence of its own.
    Thread(Box<Sequence>),
    /// Into the common sequence, with the track's uuid.
    Track(u64),
}

/// What an event is called.
enum Label<'a> {
    /// The end of a slice has no name.
    None,
    Region(RegionId),
    Text(&'a str, Category),
}

impl Perfetto {
    pub(crate) fn new(target: Box<dyn Write + Send>) -> Perfetto {
        let mut perfetto = Perfetto {
            out: Output::new(target),
            strings: Strings::default(),
            regions: Vec::new(),
            pids: SystemIds::default(),
            processes: Vec::new(),
            locations: Vec::new(),
            common: Sequence::new(COMMON_SEQUENCE),
            last_sequence: COMMON_SEQUENCE,
            last_uuid: 0,
            first_event: None,
            identity: Fold::default(),
        };
        perfetto.common.start(perfetto.out.buffer(), tracks::root);
        perfetto
    }

    /// A packet of the common sequence that needs no state.
    fn packet(&mut self, content: impl FnOnce(&mut Vec<u8>)) {
        pb::message(self.out.buffer(), trace::PACKET, |out| {
            let sequence = u64::from(COMMON_SEQUENCE);
            pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, sequence);
            content(out);
        });
        self.out.written();
    }

    fn new_uuid(&mut self) -> u64 {
        self.last_uuid += 1;
        self.last_uuid
    }

    fn plain_track(&mut self, parent: u64, name: &str) -> u64 {
        let uuid = self.new_uuid();
        self.packet(|out| tracks::plain(out, uuid, parent, name));
        uuid
    }

    fn thread(&mut self, location: &Location, os_tid: u32) -> Place {
        let uuid = self.new_uuid();
        let process = &mut self.processes[location.process.0 as usize];
        let track = ThreadTrack {
            uuid,
            pid: process.pid,
            tid: process.tids.id(os_tid),
            rank: location.id.0,
            name: &location.name,
        };
        self.last_sequence += 1;
        let sequence = Sequence::new(self.last_sequence);
        sequence.start(self.out.buffer(), |out| {
            pb::message(out, packet::TRACE_PACKET_DEFAULTS, |out| {
                pb::message(out, packet_defaults::TRACK_EVENT_DEFAULTS, |out| {
                    pb::uint(out, event_defaults::TRACK_UUID, uuid);
                });
            });
            tracks::thread(out, &track);
        });
        Place::Thread(Box::new(sequence))
    }

    fn lock(&mut self, process: ProcessId, name: &str) -> Place {
        let ProcessTracks { uuid, locks, .. } = self.processes[process.0 as usize];
        let group = locks.unwrap_or_else(|| self.plain_track(uuid, "Locks"));
        self.processes[process.0 as usize].locks = Some(group);
        Place::Track(self.plain_track(group, name))
    }

    fn event(
        &mut self,
        event_type: EventType,
        at: Point,
        label: Label<'_>,
        arguments: &[Argument<'_>],
    ) -> &mut Sequence {
        self.first_event = Some(self.first_event.map_or(at.time, |first| first.min(at.time)));
        self.identity.write_u64(at.time.unsigned_abs());
        let name = match label {
            Label::None => None,
            Label::Region(id) => {
                let region = &self.regions[id.0 as usize];
                Some(EventName {
                    iid: Some(region.iid),
                    text: &region.name,
                    category: region.category,
                    source: region
                        .source
                        .as_ref()
                        .map(|source| (u64::from(id.0) + 1, source)),
                })
            }
            Label::Text(text, category) => Some(EventName {
                iid: self.strings.names.iid_of_any(text),
                text,
                category,
                source: None,
            }),
        };
        self.out.written();
        let (sequence, track) = place(&mut self.locations, &mut self.common, at.location);
        sequence.event(self.out.buffer(), event_type, at.time, track);
        if let Some(name) = name {
            sequence.name(name);
        }
        sequence.arguments(&mut self.strings, arguments);
        sequence
    }

    fn flow_end(&mut self, flow: &Flow, at: Point, field: u32) {
        let (newest, _) = place(&mut self.locations, &mut self.common, at.location);
        if !newest.flow(at.time, field, flow.id) {
            let label = Label::Text(flow.kind.name(), Category::Task);
            self.event(EventType::Instant, at, label, &[])
                .flow(at.time, field, flow.id);
        }
    }

    fn clocks(&mut self, realtime_ns: u64) {
        self.packet(|out| {
            pb::message(out, packet::CLOCK_SNAPSHOT, |out| {
                for (id, time) in [
                    (BUILTIN_CLOCK_BOOTTIME, 0),
                    (BUILTIN_CLOCK_REALTIME, realtime_ns),
                ] {
                    pb::message(out, clock_snapshot::CLOCKS, |out| {
                        pb::uint(out, clock::CLOCK_ID, id);
                        pb::uint(out, clock::TIMESTAMP, time);
                    });
                }
                let trace_clock = BUILTIN_CLOCK_BOOTTIME;
                pb::uint(out, clock_snapshot::PRIMARY_TRACE_CLOCK, trace_clock);
            });
        });
    }

    /// Viewers know a trace again by this.
    fn uuid(&mut self) {
        let lsb = self.identity.finish();
        self.identity.write_u64(lsb);
        let msb = self.identity.finish();
        self.packet(|out| {
            pb::message(out, packet::TRACE_UUID, |out| {
                pb::uint(out, trace_uuid::MSB, msb);
                pb::uint(out, trace_uuid::LSB, lsb);
            });
        });
    }
}

/// The sequence that holds the location's events, and the location's track where it is not the sequence's default.
fn place<'a>(
    locations: &'a mut [Place],
    common: &'a mut Sequence,
    location: LocationId,
) -> (&'a mut Sequence, Option<u64>) {
    match &mut locations[location.0 as usize] {
        Place::Thread(sequence) => (sequence, None),
        Place::Track(uuid) => (common, Some(*uuid)),
    }
}

impl Sink for Perfetto {
    fn start(&mut self, realtime_ns: u64) {
        self.identity.write_u64(realtime_ns);
        self.clocks(realtime_ns);
    }

    fn process(&mut self, process: &Process) {
        self.identity.write(process.name.as_bytes());
        let tracks = ProcessTracks {
            uuid: self.new_uuid(),
            pid: self.pids.id(process.os_pid),
            tids: SystemIds::default(),
            locks: None,
            notes: None,
        };
        self.packet(|out| tracks::process(out, &tracks, process));
        self.processes.push(tracks);
    }

    fn location(&mut self, location: &Location) {
        let place = match location.kind {
            LocationKind::Thread { os_tid } => self.thread(location, os_tid),
            LocationKind::Lock => self.lock(location.process, &location.name),
            LocationKind::Track => {
                let parent = self.processes[location.process.0 as usize].uuid;
                Place::Track(self.plain_track(parent, &location.name))
            }
        };
        self.locations.push(place);
    }

    fn region(&mut self, region: &Region) {
        self.regions.push(NamedRegion {
            iid: self.strings.names.iid(&region.name),
            name: region.name.clone(),
            category: region.category,
            source: region.source.clone(),
        });
    }

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.event(EventType::SliceBegin, at, Label::Region(region), arguments);
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        self.event(EventType::SliceEnd, at, Label::None, arguments);
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.event(EventType::Instant, at, Label::Region(region), arguments);
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let point = |time| Point {
            location: interval.track,
            time,
        };
        let label = Label::Text(interval.name, interval.category);
        let (begin, end) = (point(interval.begin), point(interval.end));
        self.event(EventType::SliceBegin, begin, label, interval.arguments);
        self.event(EventType::SliceEnd, end, Label::None, &[]);
    }

    fn flow(&mut self, flow: &Flow) {
        // What it led to is the newest event there, unless the other end's instant comes between.
        self.flow_end(flow, flow.to, event::TERMINATING_FLOW_IDS);
        self.flow_end(flow, flow.from, event::FLOW_IDS);
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        let ProcessTracks { uuid, notes, .. } = self.processes[process.0 as usize];
        let track = notes.unwrap_or_else(|| self.plain_track(uuid, "omptrace"));
        self.processes[process.0 as usize].notes = Some(track);

        let time = self.first_event.unwrap_or(0);
        let (instant, out) = (EventType::Instant, self.out.buffer());
        self.common.event(out, instant, time, Some(track));
        self.common.name(EventName {
            iid: None,
            text,
            category: Category::Omptrace,
            source: None,
        });
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        for place in &mut self.locations {
            if let Place::Thread(sequence) = place {
                sequence.write_newest(self.out.buffer());
                self.out.written();
            }
        }
        self.common.write_newest(self.out.buffer());
        self.uuid();
        self.out.finish()
    }
}
