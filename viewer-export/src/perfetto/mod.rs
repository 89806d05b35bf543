//! Perfetto's own format: a `Trace` of packets, in protocol buffers.
//!
//! ```text
//! first      clears the sequence's state; clocks
//! then       process, thread and other tracks; strings; starts, ends and instants in the order of items
//! last       the trace's uuid
//! ```
//!
//! Samples are in sequences of their own ([`samples`]).
//!
//! A slice consists of two events: an end means only that the newest slice of its track ends. The importer sorts all
//! packets by time and keeps the file's order among equal times. So a track's events are written in order, and events
//! of different tracks may be mixed. All packets of a [`Share`] form one sequence, and share its interned strings.
//! (With a sequence per thread, an event would not need the two bytes of its track, but all strings would be repeated
//! in each sequence.) Events of the first location, which in most programs is the thread with most events, name no
//! track, because it is the sequence's default.
//!
//! The end of a flow is a field of an event with the same place and time; for an interval, the event may be either end
//! of its slice. If there is no such event any more, for example because a task was created long ago, the flow's end
//! gets a slice without duration. A flow from the end of a slice is written as two events of an older kind, which the
//! importer binds to the innermost slices at their times.
//!
//! The importer takes the slice that started first for the source of a flow, regardless of what the file says. So a
//! flow that leads to a waiting thread must not be bound to the slice of the wait: an [`Anchor::Moment`] becomes a
//! slice without duration.
//!
//! Slices with the same correlation id have the same colour, regardless of their names; see [`colours`].
//!
//! A file may consist of consecutive segments of a process. Like the sequence, each segment starts with a clear state,
//! in which no string has a number. Tracks are preserved across segments, so the ids of tracks that appear later follow
//! from their names.

mod colours;
mod deferred_track;
mod deferred_tracks;
mod fields;
mod intern;
mod samples;
mod schema;
mod segment;
mod track_event;
mod tracks;

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::io;

use omptrace_symbols::fast_map::Fold;
use omptrace_timeline::MAX_SEGMENTS;
use omptrace_timeline::model::{
    Anchor, Argument, Arguments, Category, Count, Counter, Enter, Function, Instant, Interval, Item, Leave,
    Link, LinkKind, Location, LocationKind, MpiEvent, Ns, Point, Position, Process, ProcessId, Region,
    RegionId, Sample, Sink, Source, ThreadRole, Wants, short_name,
};

use crate::perfetto::deferred_track::{CounterTrack, DeferredTrack, counter_uuid, late_uuid};
use crate::writer::interned_text::RecentTexts;
use crate::writer::output::Output;
use crate::writer::protobuf as pb;
use crate::writer::share::{MAX_SHARES, Share};
use crate::writer::system_ids::SystemIds;
use intern::Strings;
use samples::SampleSequence;
use schema::{
    BUILTIN_CLOCK_BOOTTIME, BUILTIN_CLOCK_REALTIME, EventType, INCREMENTAL_STATE_CLEARED, clock,
    clock_snapshot, event, packet, trace, trace_uuid,
};
use track_event::{EventName, EventTrack, Traits};
use tracks::{ProcessTracks, ThreadTrack};

/// The importer itself numbers flows with phases, in 32 bits. Other flows keep their ids from the file, which start
/// here.
const FIRST_FLOW_ID: u64 = 1 << 63;
/// Bits of a flow's number within a file and within a segment.
const FLOW_BITS: u32 = 40;
const FLOW_BITS_OF_SEGMENT: u32 = 28;
/// Added to the numbers of messages, because the two ends of such an arrow are in different processes.
const MESSAGES: u64 = 1 << (FLOW_BITS - 1);
const _: () = assert!(MAX_SEGMENTS << FLOW_BITS_OF_SEGMENT <= 1 << FLOW_BITS);

/// The group of the hidden helpers' tracks, which `omptrace view` does not expand.
pub(crate) const HIDDEN_HELPERS: &str = "hidden helpers";

// The id of a sequence takes one byte.
const _: () = assert!(MAX_SHARES < pb::ONE_BYTE as usize);

/// Writes Perfetto's format.
pub(crate) struct Perfetto {
    out: Output,
    share: Share,
    /// The id of the sequence of all packets.
    sequence: u8,
    strings: Strings,
    /// The names of events without a region, such as intervals.
    names: RecentTexts<EventName>,
    regions: Vec<RegionName>,
    /// Number of interned source locations of regions.
    sources: u64,
    processes: Vec<ProcessTracks>,
    /// The track of events that name no track.
    default_track: Option<u64>,
    /// By location.
    tracks: Vec<EventTrack>,
    /// By location: the description of its track, to be written before its first event in a segment.
    late: Vec<Option<DeferredTrack>>,
    counters: Vec<CounterTrack>,
    functions: Vec<Function>,
    /// By the number of a thread's location.
    samples: BTreeMap<u32, SampleSequence>,
    /// By the number of a thread's location: the process, and the ids of process and thread.
    threads: BTreeMap<u32, (ProcessId, (u32, u32))>,
    /// Number of uuids assigned.
    uuids: u64,
    /// The time of the earliest event, where notes are placed; the largest number if there is none.
    first_event: Ns,
    /// A mix of all events' times.
    times: u64,
    /// Added to the numbers of flows, so that they differ between exports that are merged.
    flow_salt: u64,
    /// A hash of what distinguishes this share from others, apart from the times.
    identity: Fold,
    /// The number of the current segment.
    segment: u32,
    /// The current items belong to another sink's segment, so only definitions are noted.
    is_before_segment: bool,
    /// Number of flows in this segment.
    flows: u64,
    /// The time for notes in a file of several segments, because only the first segment knows the first event.
    noted_at: Option<Ns>,
}

/// The name of a region's events.
struct RegionName {
    region: Region,
    /// `None` until it is used in the segment.
    name: Option<EventName>,
}

/// The name of an event.
enum Called {
    Region(RegionId),
    /// The index that [`Perfetto::name`] returned.
    Text(usize),
    /// The end of a slice, which has no name.
    Nothing,
}

impl Perfetto {
    /// The sink that writes `share` of a file. If the file has several shares, its owner writes what [`end`] returns.
    pub(crate) fn new(out: Output, share: Share) -> Perfetto {
        let sequence = share.number(0) as u8 + 1;
        let (is_first, segment) = (share.is_first(), share.first_segment());
        let mut perfetto = Perfetto {
            out,
            share,
            sequence,
            strings: Strings::new(sequence),
            names: RecentTexts::new(),
            regions: Vec::new(),
            sources: 0,
            processes: Vec::new(),
            default_track: None,
            tracks: Vec::new(),
            late: Vec::new(),
            counters: Vec::new(),
            functions: Vec::new(),
            samples: BTreeMap::new(),
            threads: BTreeMap::new(),
            uuids: 0,
            first_event: Ns::MAX,
            times: 0,
            flow_salt: 0,
            identity: Fold::default(),
            segment: segment.saturating_sub(1),
            is_before_segment: segment > 0,
            flows: 0,
            noted_at: None,
        };
        perfetto.packet(|out| {
            pb::uint(out, packet::SEQUENCE_FLAGS, INCREMENTAL_STATE_CLEARED);
            pb::uint(out, packet::FIRST_PACKET_ON_SEQUENCE, 1);
            if is_first {
                tracks::root(out);
            }
        });
        perfetto
    }

    /// Writes a packet that does not refer to interned data.
    fn packet(&mut self, content: impl FnOnce(&mut Vec<u8>)) {
        if self.is_before_segment {
            return;
        }
        let sequence = self.sequence.into();
        pb::message(self.out.buffer(), trace::PACKET, |out| {
            pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, sequence);
            content(out);
        });
        self.out.written();
    }

    /// A new track id; never 0, which stands for the root.
    fn new_uuid(&mut self) -> u64 {
        self.uuids += 1;
        self.share.number(self.uuids - 1) + 1
    }

    fn plain_track(&mut self, parent: u64, name: &str) -> u64 {
        self.described_track(parent, name, "")
    }

    fn described_track(&mut self, parent: u64, name: &str, description: &str) -> u64 {
        let uuid = self.new_uuid();
        self.packet(|out| tracks::plain(out, uuid, parent, name, description));
        uuid
    }

    fn thread_track(&mut self, location: &Location, os_tid: u32) -> u64 {
        let uuid = self.new_uuid();
        let process = &mut self.processes[location.process.0 as usize];
        let track = ThreadTrack {
            uuid,
            pid: process.ids.pid(),
            tid: process.ids.tid(os_tid),
            rank: location.id.0,
            name: &location.name,
        };
        let ids = (location.process, (track.pid, track.tid));
        self.packet(|out| tracks::thread(out, &track));
        self.threads.insert(location.id.0, ids);
        uuid
    }

    fn helper_track(&mut self, location: &Location, os_tid: u32) -> u64 {
        let process = location.process.0 as usize;
        let ProcessTracks { uuid, helpers, .. } = self.processes[process];
        let group = helpers.unwrap_or_else(|| self.plain_track(uuid, HIDDEN_HELPERS));
        self.processes[process].helpers = Some(group);
        self.described_track(group, &location.name, &tracks::helper_aid(os_tid))
    }

    /// Defines the name of a region that is used for the first time in this segment.
    #[cold]
    fn name_region(&mut self, number: usize) {
        let RegionName { region, .. } = &self.regions[number];
        let out = self.out.buffer();
        // These slices are nested in their construct, which shows its place. The parts of a place would take more
        // memory in the importer than the slice itself.
        let has_place = !matches!(region.category, Category::ImplicitTask | Category::Sync | Category::Wait);
        // A line that is only near the construct would be taken for the construct's own.
        let is_own = |source: &&Source| has_place && source.position == Position::At;
        let source = region.source.as_ref().filter(is_own).map(|source| {
            self.sources += 1;
            self.strings.write_source(out, self.sources, source);
            self.sources
        });
        let name = self.strings.names.iid(out, short_name(&region.name));
        let traits = Traits {
            category: self.strings.category(out, region.category),
            source,
            colour: Some(self.strings.colour(out, colours::of_region(region))),
        };
        self.regions[number].name = Some(EventName::interned(name, traits));
    }

    #[inline(always)]
    fn event(&mut self, event_type: EventType, at: Point, name: Called, arguments: &[Argument<'_>]) {
        self.first_event = self.first_event.min(at.time);
        self.times = self.times.rotate_left(1) ^ at.time.cast_unsigned();
        let location = at.location.0 as usize;
        if self.tracks[location].has_no_newest() {
            self.describe(location);
        }
        let name = match name {
            Called::Region(region) => {
                let region = region.0 as usize;
                if self.regions[region].name.is_none() {
                    self.name_region(region);
                }
                self.regions[region].name.as_ref()
            }
            Called::Text(place) => Some(&self.names[place]),
            Called::Nothing => None,
        };
        let track = &mut self.tracks[location];
        let out = self.out.buffer();
        track.event(out, event_type, at.time, name);
        track.arguments(out, &mut self.strings, arguments);
        self.out.written();
    }

    /// The index of a name without a region and without a colour of its own. Valid until the next call.
    fn name(&mut self, text: &str, category: Category) -> usize {
        self.coloured_name(text, category, || None)
    }

    /// The same with a colour, which must always be the same for a name and category.
    fn coloured_name(
        &mut self,
        text: &str,
        category: Category,
        colour: impl FnOnce() -> Option<&'static str>,
    ) -> usize {
        let (out, strings) = (self.out.buffer(), &mut self.strings);
        self.names.place(text, category, || {
            let iid = strings.names.iid_of_any(out, text);
            let traits = Traits {
                category: strings.category(out, category),
                source: None,
                colour: colour().map(|colour| strings.colour(out, colour)),
            };
            match iid {
                Some(iid) => EventName::interned(iid, traits),
                None => EventName::text(text, traits),
            }
        })
    }

    /// Adds an end of a flow to the event that starts there, or to a mark.
    fn flow_end(&mut self, flow: &Link, (at, anchor): (Point, Anchor), mark: &str, field: u32) {
        let location = at.location.0 as usize;
        let id = FIRST_FLOW_ID | self.flow_id(flow);
        if anchor == Anchor::Moment || !self.tracks[location].flow(at.time, field, id) {
            self.mark(flow.kind, at, mark);
            self.tracks[location].flow(at.time, field, id);
        }
    }

    fn flow_id(&self, flow: &Link) -> u64 {
        let number = match self.share.is_in_segments() {
            true => u64::from(self.segment) << FLOW_BITS_OF_SEGMENT | self.flows,
            false => self.share.number(flow.id),
        };
        self.flow_salt ^ number
    }

    /// Writes a slice without duration. The importer would take an instant for the innermost slice until the next
    /// event.
    fn mark(&mut self, kind: LinkKind, at: Point, mark: &str) {
        let name = self.name(mark, kind.category());
        self.event(EventType::SliceBegin, at, Called::Text(name), &[]);
        self.event(EventType::SliceEnd, at, Called::Nothing, &[]);
        self.tracks[at.location.0 as usize].ends_what_began(at.time);
    }

    /// Writes a flow whose ends are separate events: it starts at the end of a slice, or its ends have the same time
    /// and must be ordered.
    fn flow_in_phases(&mut self, flow: &Link) {
        let (Link { from, to, .. }, (cause, effect)) = (*flow, flow.kind.marks());
        let is_within = from.location == to.location;
        match flow.cause {
            Anchor::Moment if !is_within => self.marked_phase(flow, b's', from, cause),
            Anchor::Begin | Anchor::Inside => self.phase(flow, b's', from),
            // At that time, the slice is still open and is the innermost one.
            Anchor::End | Anchor::Moment => {
                let time = (from.time - 1).max(0);
                self.phase(flow, b's', Point { time, ..from });
            }
        }
        match flow.effect {
            Anchor::Moment => self.marked_phase(flow, b'f', to, effect),
            _ => self.phase(flow, b'f', to),
        }
    }

    /// Writes one end of a flow inside a mark.
    fn marked_phase(&mut self, flow: &Link, phase: u8, at: Point, mark: &str) {
        let name = self.name(mark, flow.kind.category());
        self.event(EventType::SliceBegin, at, Called::Text(name), &[]);
        self.phase(flow, phase, at);
        self.event(EventType::SliceEnd, at, Called::Nothing, &[]);
    }

    /// Writes one end of a flow, bound to the innermost slice.
    fn phase(&mut self, flow: &Link, phase: u8, at: Point) {
        let name = self.name(flow.kind.name(), flow.kind.category());
        let (name, id) = (&self.names[name], self.flow_id(flow));
        let (out, track) = (self.out.buffer(), &mut self.tracks[at.location.0 as usize]);
        track.write_newest(out);
        track.flow_phase(out, phase, at.time, name, id);
        self.out.written();
    }
}

/// The end of the file: the uuid, by which viewers recognise a trace.
pub(crate) fn end(share: &Share) -> Vec<u8> {
    let mut identity = Fold::default();
    identity.write_u64(share.identity());
    let lsb = identity.finish();
    identity.write_u64(1);
    let msb = identity.finish();
    let mut end = Vec::new();
    pb::message(&mut end, trace::PACKET, |out| {
        pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        pb::message(out, packet::TRACE_UUID, |out| {
            pb::uint(out, trace_uuid::MSB, msb);
            pb::uint(out, trace_uuid::LSB, lsb);
        });
    });
    end
}

impl Perfetto {
    /// The timeline's clock starts at 0. From this packet, importers derive the time of day.
    fn start(&mut self, realtime_ns: u64) {
        self.identity.write_u64(realtime_ns);
        let mut salt = Fold::default();
        salt.write_u64(realtime_ns);
        self.flow_salt = salt.finish() << FLOW_BITS;
        if !self.share.is_first() {
            return;
        }
        let (timeline, realtime) = (BUILTIN_CLOCK_BOOTTIME, BUILTIN_CLOCK_REALTIME);
        self.packet(|out| {
            pb::message(out, packet::CLOCK_SNAPSHOT, |out| {
                for (id, time) in [(timeline, 0), (realtime, realtime_ns)] {
                    pb::message(out, clock_snapshot::CLOCKS, |out| {
                        pb::uint(out, clock::CLOCK_ID, id);
                        pb::uint(out, clock::TIMESTAMP, time);
                    });
                }
                pb::uint(out, clock_snapshot::PRIMARY_TRACE_CLOCK, timeline);
            });
        });
    }

    fn process(&mut self, process: &Process) {
        self.identity.write(process.name.as_bytes());
        if self.share.is_in_segments() {
            self.noted_at = Some(process.lifetime.traced_from);
        }
        let rank = self.share.number(process.id.0.into()) as u32;
        let tracks = ProcessTracks {
            uuid: self.new_uuid(),
            ids: SystemIds::new(process, rank),
            locks: None,
            helpers: None,
            devices: BTreeMap::new(),
            notes: None,
            sampling_period_ns: process.sampling_period_ns,
        };
        self.packet(|out| tracks::process(out, &tracks, rank, process));
        self.processes.push(tracks);
    }

    fn location(&mut self, location: &Location) {
        let is_late = self.share.is_in_segments()
            && !matches!(location.kind, LocationKind::Thread { .. } | LocationKind::Device { .. });
        let uuid = match location.kind {
            LocationKind::Thread { os_tid, role: ThreadRole::Helper, .. } => {
                self.helper_track(location, os_tid)
            }
            LocationKind::Thread { os_tid, .. } => self.thread_track(location, os_tid),
            LocationKind::Device { device_num } => {
                let parent = self.processes[location.process.0 as usize].uuid;
                let uuid = self.plain_track(parent, &location.name);
                let process = &mut self.processes[location.process.0 as usize];
                process.devices.entry(device_num).or_insert(uuid);
                uuid
            }
            _ if is_late => late_uuid(&location.name),
            LocationKind::DeviceQueue { .. } | LocationKind::Lock { .. } | LocationKind::Track => {
                let parent = self.parent(location.process, location.kind);
                self.plain_track(parent, &location.name)
            }
        };
        self.late.push(is_late.then(|| DeferredTrack {
            process: location.process,
            kind: location.kind,
            uuid,
            name: location.name.clone(),
            is_described: false,
        }));
        let is_default = self.tracks.is_empty();
        if is_default {
            self.default_track = Some(uuid);
            self.packet(|out| tracks::default(out, uuid));
        }
        self.tracks.push(EventTrack::new(self.sequence, (!is_default).then_some(uuid)));
    }

    fn region(&mut self, region: &Region) {
        self.regions.push(RegionName { region: region.clone(), name: None });
    }

    fn counter(&mut self, counter: &Counter) {
        let uuid = match self.share.is_in_segments() {
            true => counter_uuid(&counter.name),
            false => self.new_uuid(),
        };
        self.counters.push(CounterTrack {
            counter: counter.clone(),
            uuid,
            is_described: false,
            track: EventTrack::new(self.sequence, Some(uuid)),
        });
    }

    #[inline(never)]
    fn count(&mut self, count: &Count) {
        let Count { counter, time, value } = *count;
        let place = counter.0 as usize;
        if !self.counters[place].is_described {
            self.describe_counter(place);
        }
        let out = self.out.buffer();
        self.counters[place].track.sample(out, time, value);
        self.out.written();
    }

    #[inline(never)]
    fn enter(&mut self, enter: &Enter<Arguments<'_>>) {
        let Enter { at, region, arguments, .. } = *enter;
        self.event(EventType::SliceBegin, at, Called::Region(region), arguments);
    }

    #[inline(never)]
    fn leave(&mut self, leave: &Leave<Arguments<'_>>) {
        let Leave { at, arguments } = *leave;
        self.event(EventType::SliceEnd, at, Called::Nothing, arguments);
    }

    #[inline(never)]
    fn instant(&mut self, instant: &Instant<Arguments<'_>>) {
        let Instant { at, region, arguments } = *instant;
        self.event(EventType::Instant, at, Called::Region(region), arguments);
    }

    #[inline(never)]
    fn interval(&mut self, interval: &Interval<'_>) {
        let point = |time| Point { location: interval.track, time };
        let (begin, end) = (point(interval.begin), point(interval.end));
        let colour = || Some(colours::of_interval(interval));
        let name = self.coloured_name(interval.name, interval.category, colour);
        let called = Called::Text(name);
        self.event(EventType::SliceBegin, begin, called, interval.arguments);
        self.event(EventType::SliceEnd, end, Called::Nothing, &[]);
        self.tracks[interval.track.0 as usize].ends_what_began(interval.begin);
    }

    #[inline(never)]
    fn flow(&mut self, flow: &Link) {
        self.flows += 1;
        if flow.cause == Anchor::End || flow.from.time == flow.to.time {
            return self.flow_in_phases(flow);
        }
        let (cause, effect) = flow.kind.marks();
        // The effect is the newest event of its track, unless a mark for the other end comes between.
        let field = event::TERMINATING_FLOW_IDS;
        self.flow_end(flow, (flow.to, flow.effect), effect, field);
        self.flow_end(flow, (flow.from, flow.cause), cause, event::FLOW_IDS);
    }

    /// One end of a message.
    #[inline(never)]
    fn message(&mut self, at: Point, event: &MpiEvent) {
        let Some(other) = event.message().and_then(|message| message.other) else {
            return;
        };
        let (kind, location) = (LinkKind::Message, at.location.0 as usize);
        let id = FIRST_FLOW_ID | (self.flow_salt ^ (MESSAGES | other.message.get()));
        let (cause, effect) = kind.marks();
        let track = &mut self.tracks[location];
        let (mark, field, is_bound) = match event {
            MpiEvent::Receive(..) => {
                let field = event::TERMINATING_FLOW_IDS;
                // The importer takes the slice that started first for the source.
                (effect, field, track.flow_to_later(other.time, field, id))
            }
            _ => (cause, event::FLOW_IDS, track.flow(at.time, event::FLOW_IDS, id)),
        };
        if !is_bound {
            self.mark(kind, at, mark);
            self.tracks[location].flow(at.time, field, id);
        }
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let location = sample.at.location.0;
        let Some((process, ids)) = self.threads.get(&location).copied() else {
            return;
        };
        let period_ns = self.processes[process.0 as usize].sampling_period_ns;
        let out = self.out.buffer();
        let thread = self.share.number(location.into());
        let sequence = self.samples.entry(location);
        let sequence = sequence.or_insert_with(|| SampleSequence::begin(out, thread, ids));
        sequence.sample(self.out.buffer(), &self.functions, sample, period_ns);
        self.out.written();
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        let ProcessTracks { uuid, notes, .. } = self.processes[process.0 as usize];
        let track = notes.unwrap_or_else(|| self.described_track(uuid, "omptrace", tracks::READING_AID));
        self.processes[process.0 as usize].notes = Some(track);

        let time = match (self.noted_at, self.first_event) {
            (Some(time), _) => time,
            (None, Ns::MAX) => 0,
            (None, time) => time,
        };
        let name = self.name(text, Category::Omptrace);
        let (mut track, out) = (EventTrack::new(self.sequence, Some(track)), self.out.buffer());
        track.event(out, EventType::Instant, time, Some(&self.names[name]));
        track.write_newest(out);
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
            Item::Start { realtime_ns } => self.start(*realtime_ns),
            Item::Function(function) => self.functions.push((*function).clone()),
            Item::Sample(sample) => self.sample(sample),
            Item::Note(process, text) => self.note(*process, text),
            Item::Segment => self.begin_segment(),
            _ => {}
        }
    }
}

impl Sink for Perfetto {
    fn wants(&self) -> Wants {
        Wants::COUNTS.and(Wants::ARROWS).and(Wants::SAMPLES).and(Wants::MPI)
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
        self.end_segment();
        for sequence in self.samples.values_mut() {
            sequence.write(self.out.buffer());
            self.out.written();
        }
        if self.share.is_whole() {
            self.out.buffer().extend(end(&self.share));
        }
        self.out.finish()
    }
}
