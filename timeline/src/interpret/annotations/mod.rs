//! What programs say of themselves: ranges, marks, counters and memory.
//!
//! ```text
//! range, kernel, fence ..   a region of its thread, among OpenMP's
//! process, frame            an interval on a track of the process: one more track where they overlap
//! mark, fact                an instant
//! counter, memory           a counter
//! ```
//!
//! Each thread has a stack of its own for each domain, so ranges of two domains may overlap. Then the one that goes on is cut, as any
//! [phase](Construct::Phase). An end without a begin says nothing: the program may be wrong, or recording began in the range.

mod state;
mod texts;
mod verbatim;

use std::collections::BTreeMap;
use std::sync::Arc;

use omptrace_trace_format::field::{AnnotationKind, AnnotationSource, MemoryChange, ValueRole};

use super::*;
use crate::model::{Annotated, Annotation, CountValue, CounterId, LocationId, Looks, Payload};
pub(super) use state::AnnotationState;
pub(crate) use texts::Texts;
pub(super) use verbatim::is_of_process;
use verbatim::{Named, OpenRanges, RangeKey, payload};

/// Ranges of the process that are open at once. A program that ends none would have a track for each.
const MAX_OPEN: usize = 1 << 12;
/// Tracks of one domain. What more ranges overlap is on the last.
const MAX_TRACKS: usize = 64;
/// Letters of a kernel's name in those of regions inside.
const MAX_LABEL: usize = 80;

/// The state of annotations.
#[derive(Default)]
pub(super) struct Annotations {
    pub(super) texts: Arc<Texts>,
    /// Ranges of the process, by source, domain and instance.
    open: BTreeMap<(u32, u32, u64), Vec<OpenRange>>,
    count: usize,
    /// By source, domain and kind: a track for each range that is open at once.
    tracks: BTreeMap<(u32, u32, bool), Vec<Track>>,
    /// By source, domain and name.
    counters: BTreeMap<(u32, u32, u32), Counter<CountValue>>,
    /// By space.
    memory: BTreeMap<u32, Counter<i64>>,
    /// The region of each range that threads have begun, by kind, domain and name.
    regions: BTreeMap<(u32, u32, u32), RegionId>,
    /// The labels of kernels, by their regions.
    labels: BTreeMap<u32, u32>,
    verbatim: OpenRanges,
}

/// A counter, and since when it has its value.
struct Counter<T> {
    id: CounterId,
    value: T,
    at: Ns,
}

struct OpenRange {
    begin: Ns,
    name: u32,
    track: Option<usize>,
    is_frame: bool,
}

struct Track {
    id: LocationId,
    is_used: bool,
    /// The end of the newest range on it.
    last: Ns,
}

impl Annotations {
    pub(super) fn of(texts: Arc<Texts>) -> Annotations {
        Annotations { texts, ..Annotations::default() }
    }

    /// The name of something in a domain: `solver/step`.
    fn name(&self, domain: u32, name: u32) -> String {
        let name = self.texts.text(name).unwrap_or("range".into());
        match self.texts.text(domain) {
            Some(domain) if !domain.is_empty() && domain != name => format!("{domain}/{name}"),
            _ => name.into_owned(),
        }
    }
}

/// What tells a range of a thread apart: its source, domain and instance.
fn key(source: AnnotationSource, domain: u32, instance: u64) -> u64 {
    // Other phases have the numbers of regions, which have 32 bits.
    1 << 63 | u64::from(source.0 & 0xff) << 52 | u64::from(domain) << 24 ^ instance
}

fn is_kernel(construct: Construct) -> bool {
    matches!(
        construct,
        Construct::Annotation(
            AnnotationKind::parallel_for | AnnotationKind::parallel_reduce | AnnotationKind::parallel_scan
        )
    )
}

impl Interpreter<'_, '_> {
    pub(super) fn annotation_begin(&mut self, thread: usize, time: Ns, e: &AnnotationBegin) {
        let payload = payload(&self.annotations.texts, e.payload_type, e.payload);
        if self.stage.wants_annotations() {
            let named = Named { source: e.source, domain: e.domain, name: e.name, instance: e.instance };
            let looks = self.looks(e.domain, e.category, e.colour);
            let what = Annotated::Range { kind: e.kind, end: None, looks };
            let range = self.verbatim(thread, time, named, payload.clone(), what);
            let key = RangeKey::new(thread, e.kind, (e.source, e.domain, e.instance));
            self.annotations.verbatim.begin(key, range);
        }
        if is_of_process(e.kind) {
            return self.open_range_of_process(time, (e.source, e.domain, e.instance), e.kind, e.name);
        }
        let construct = Construct::Annotation(e.kind);
        let key = key(e.source, e.domain, e.instance);
        let region = self.range_region(construct, (e.kind.0, e.domain, e.name));
        let category = match e.category {
            0 => "".into(),
            category => self.annotations.texts.category(e.domain, category),
        };
        let number = number(&payload);
        let arguments = [
            (e.category != 0).then(|| ("category", Value::Text(&category))),
            value(&payload, &number).map(|value| ("payload", value)),
            (e.colour != 0).then(|| ("colour", Value::Hex(e.colour.into()))),
            (e.device != 0).then(|| ("device", Value::Hex(e.device.into()))),
        ];
        let arguments: Vec<Argument<'_>> =
            arguments.into_iter().flatten().map(|(name, value)| argument(name, value)).collect();
        self.threads[thread].open(self.stage, time, Frame::new(construct, key, region), &arguments);
        if is_kernel(construct) {
            self.threads[thread].label = self.label_of(thread);
        }
    }

    /// The region of a range, by its kind, domain and name.
    fn range_region(&mut self, construct: Construct, key: (u32, u32, u32)) -> RegionId {
        if let Some(known) = self.annotations.regions.get(&key) {
            return *known;
        }
        let name = self.annotations.name(key.1, key.2);
        let stage = &mut *self.stage;
        let label = is_kernel(construct).then(|| stage.names.label(&label(&name, key.2)));
        let region = stage.names.named(stage.sink, construct, name.clone());
        self.note_phase(region, &name);
        self.annotations.regions.insert(key, region);
        self.annotations.labels.extend(label.map(|label| (region.0, label)));
        region
    }

    pub(super) fn annotation_end(&mut self, thread: usize, time: Ns, e: &AnnotationEnd) {
        let (construct, key) = (Construct::Annotation(e.kind), key(e.source, e.domain, e.instance));
        if self.stage.wants_annotations() {
            self.end_verbatim(RangeKey::new(thread, e.kind, (e.source, e.domain, e.instance)), time);
        }
        if is_of_process(e.kind) {
            return self.close_range_of_process(time, (e.source, e.domain, e.instance));
        }
        let is_it = |frame: &Frame| frame.construct == construct && frame.key == key;
        if !self.threads[thread].stack().iter().any(is_it) {
            return;
        }
        self.threads[thread].close(self.stage, time, construct, key, &[]);
        if is_kernel(construct) {
            self.threads[thread].label = self.label_of(thread);
        }
    }

    /// The label of regions that a thread begins from now on: that of its innermost kernel.
    fn label_of(&self, thread: usize) -> u32 {
        let stack = self.threads[thread].stack();
        let innermost = stack.iter().rev().find(|frame| is_kernel(frame.construct));
        let label = innermost.and_then(|frame| self.annotations.labels.get(&frame.region.0));
        label.copied().unwrap_or(0)
    }

    fn open_range_of_process(
        &mut self,
        begin: Ns,
        (source, domain, instance): (AnnotationSource, u32, u64),
        kind: AnnotationKind,
        name: u32,
    ) {
        if self.annotations.count >= MAX_OPEN {
            return;
        }
        let is_frame = kind == AnnotationKind::frame;
        let track = self.free_track((source, domain, is_frame), begin);
        let open = self.annotations.open.entry((source.0, domain, instance)).or_default();
        open.push(OpenRange { begin, name, track, is_frame });
        self.annotations.count += 1;
    }

    fn close_range_of_process(&mut self, end: Ns, (source, domain, instance): (AnnotationSource, u32, u64)) {
        let key = (source.0, domain, instance);
        let Some(range) = self.annotations.open.get_mut(&key).and_then(Vec::pop) else { return };
        if self.annotations.open.get(&key).is_some_and(Vec::is_empty) {
            self.annotations.open.remove(&key);
        }
        self.annotations.count -= 1;
        self.show_range((source.0, domain), &range, end);
    }

    fn show_range(&mut self, (source, domain): (u32, u32), range: &OpenRange, end: Ns) {
        let tracks = self.annotations.tracks.get_mut(&(source, domain, range.is_frame));
        let Some(track) = tracks.zip(range.track).and_then(|(tracks, track)| tracks.get_mut(track)) else {
            return;
        };
        let begin = range.begin.max(track.last);
        (track.is_used, track.last) = (false, end.max(begin));
        let track = track.id;
        let name = self.annotations.name(domain, range.name);
        self.stage.interval(Interval {
            track,
            name: &name,
            category: Category::User,
            begin,
            end: end.max(begin),
            arguments: &[],
            work: None,
        });
    }

    /// The first track on which nothing is at `begin`.
    fn free_track(
        &mut self,
        (source, domain, is_frame): (AnnotationSource, u32, bool),
        begin: Ns,
    ) -> Option<usize> {
        let key = (source.0, domain, is_frame);
        let tracks = self.annotations.tracks.entry(key).or_default();
        if let Some(free) = tracks.iter().position(|track| !track.is_used && track.last <= begin) {
            tracks[free].is_used = true;
            return Some(free);
        }
        let number = tracks.len();
        if number >= MAX_TRACKS {
            return None;
        }
        let id = self.new_track((source, domain, is_frame), number);
        self.annotations.tracks.entry(key).or_default().push(Track { id, is_used: true, last: begin });
        Some(number)
    }

    /// Track `number`, from 0, of a domain.
    fn new_track(
        &mut self,
        (source, domain, is_frame): (AnnotationSource, u32, bool),
        number: usize,
    ) -> LocationId {
        let what = if is_frame { "frames" } else { "ranges" };
        let number = match number {
            0 => String::new(),
            more => format!(" {}", more + 1),
        };
        let of = self.annotations.texts.text(domain);
        let of = of.as_deref().or(source.name()).unwrap_or("annotations");
        self.stage.location(LocationKind::Track, format!("{what} of {of}{number}"))
    }

    pub(super) fn annotation_mark(&mut self, thread: usize, time: Ns, e: &AnnotationMark) {
        let payload = payload(&self.annotations.texts, e.payload_type, e.payload);
        if self.stage.wants_annotations() {
            let named = Named { source: e.source, domain: e.domain, name: e.name, instance: 0 };
            let what = Annotated::Mark(self.looks(e.domain, e.category, e.colour));
            let mark = self.verbatim(thread, time, named, payload.clone(), what);
            self.stage.item(&Item::Annotation(&mark));
        }
        let name = self.annotations.name(e.domain, e.name);
        let number = number(&payload);
        let arguments: Vec<_> =
            value(&payload, &number).map(|value| argument("payload", value)).into_iter().collect();
        let stage = &mut *self.stage;
        let region = stage.names.named(stage.sink, Construct::Mark, name);
        let at = self.threads[thread].instant(time);
        stage.instant(at, region, &arguments);
    }

    pub(super) fn annotation_value(&mut self, thread: usize, time: Ns, e: &AnnotationValue) {
        let payload = payload(&self.annotations.texts, e.value_type, e.value);
        if self.stage.wants_annotations() {
            let named = Named { source: e.source, domain: e.domain, name: e.name, instance: e.instance };
            let said = self.verbatim(thread, time, named, payload.clone(), Annotated::Value(e.role));
            self.stage.item(&Item::Annotation(&said));
        }
        let is_counter = matches!(e.role, ValueRole::counter | ValueRole::increment);
        if let Some(value) = count_value(&payload).filter(|_| is_counter) {
            return self.count_annotated((e.source.0, e.domain, e.name), time, |before| match e.role {
                ValueRole::increment => sum(before, value),
                _ => value,
            });
        }
        let name = self.annotations.name(e.domain, e.name);
        let number = number(&payload);
        let arguments: Vec<_> =
            value(&payload, &number).map(|value| argument("value", value)).into_iter().collect();
        let stage = &mut *self.stage;
        let region = stage.names.named(stage.sink, Construct::Mark, name);
        let at = self.threads[thread].instant(time);
        stage.instant(at, region, &arguments);
    }

    pub(super) fn annotation_memory(&mut self, time: Ns, e: &AnnotationMemory) {
        let bytes = e.bytes as i64;
        self.count_memory(e.space, time, |before| match e.change {
            MemoryChange::free => before.saturating_sub(bytes),
            _ => before.saturating_add(bytes),
        });
    }

    /// A counter of the program's, by source, domain and name, gets another value.
    fn count_annotated(
        &mut self,
        key: (u32, u32, u32),
        time: Ns,
        change: impl FnOnce(CountValue) -> CountValue,
    ) {
        if !self.annotations.counters.contains_key(&key) {
            let id = self.stage.counter(self.annotations.name(key.1, key.2), "value");
            let new = Counter { id, value: CountValue::default(), at: time };
            self.annotations.counters.insert(key, new);
        }
        if let Some(counter) = self.annotations.counters.get_mut(&key) {
            (counter.value, counter.at) = (change(counter.value), time);
            self.stage.count(counter.id, time, counter.value);
        }
    }

    /// The memory that is allocated in a space changes.
    fn count_memory(&mut self, space: u32, time: Ns, change: impl FnOnce(i64) -> i64) {
        let stage = &mut *self.stage;
        let texts = &self.annotations.texts;
        let counter = self.annotations.memory.entry(space).or_insert_with(|| {
            let name = texts.text(space).unwrap_or("memory".into());
            Counter { id: stage.counter(format!("allocated in {name}"), "bytes"), value: 0, at: time }
        });
        (counter.value, counter.at) = (change(counter.value), time);
        stage.count(counter.id, time, counter.value);
    }

    pub(super) fn annotation_span(&mut self, thread: usize, e: &AnnotationSpan) {
        let ns = |ticks: u64| self.clock.on_timeline(self.clock.map.ns(ticks));
        let (begin, end) = (ns(e.begin.0), ns(e.end.0));
        if self.stage.wants_annotations() {
            let named = Named { source: e.source, domain: e.domain, name: e.name, instance: 0 };
            let what = Annotated::Range { kind: e.kind, end: Some(end.max(begin)), looks: Looks::default() };
            let range = self.verbatim(thread, begin, named, Payload::None, what);
            self.stage.item(&Item::Annotation(&range));
        }
        let is_frame = e.kind == AnnotationKind::frame;
        let track = self.free_track((e.source, e.domain, is_frame), begin);
        let range = OpenRange { begin, name: e.name, track, is_frame };
        self.show_range((e.source.0, e.domain), &range, end.max(begin));
    }

    /// The trace ends: ranges of the process that are open do, too.
    pub(super) fn finish_annotations(&mut self, time: Ns) {
        for range in self.annotations.verbatim.take() {
            self.stage.item(&Item::Annotation(&range));
        }
        for ((source, domain, _), ranges) in std::mem::take(&mut self.annotations.open) {
            for range in &ranges {
                self.show_range((source, domain), range, time);
            }
        }
    }
}

/// The value of a counter; `None` of a text, and of what is no number.
fn count_value(payload: &Payload) -> Option<CountValue> {
    match payload {
        Payload::Uint(number) => Some(CountValue::Whole(number.cast_signed())),
        Payload::Int(number) => Some(CountValue::Whole(*number)),
        Payload::Float(number) if number.is_finite() => Some(CountValue::Real(*number)),
        Payload::None | Payload::Float(_) | Payload::Text(_) => None,
    }
}

/// A counter that grows by a number. What is too large to be a number leaves it as it is.
fn sum(before: CountValue, more: CountValue) -> CountValue {
    if let (CountValue::Whole(before), CountValue::Whole(more)) = (before, more) {
        return CountValue::Whole(before.wrapping_add(more));
    }
    let number = |value: CountValue| value.real().unwrap_or(value.rounded() as f64);
    let sum = number(before) + number(more);
    if sum.is_finite() { CountValue::Real(sum) } else { before }
}

/// A number with a fraction, in words: arguments have no such numbers.
fn number(payload: &Payload) -> Option<String> {
    match payload {
        Payload::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A payload as the value of an argument; `number`: its [`number`].
fn value<'a>(payload: &'a Payload, number: &'a Option<String>) -> Option<Value<'a>> {
    match payload {
        Payload::None => None,
        Payload::Uint(number) => Some(Value::Uint(*number)),
        Payload::Int(number) => Some(Value::Int(*number)),
        Payload::Float(_) => number.as_deref().map(Value::Text),
        Payload::Text(text) => Some(Value::Text(text)),
    }
}

/// A kernel's name, short enough to be a part of others. Types of functors may have the same begin: the text's number tells them apart.
fn label(name: &str, number: u32) -> String {
    match name.char_indices().nth(MAX_LABEL) {
        Some((end, _)) => format!("{}... #{number}", &name[..end]),
        None => name.to_owned(),
    }
}

impl Interpreter<'_, '_> {
    /// A range ends.
    fn end_verbatim(&mut self, key: RangeKey, time: Ns) {
        if let Some(mut range) = self.annotations.verbatim.end(key) {
            if let Annotated::Range { end, .. } = &mut range.what {
                *end = Some(time.max(range.time));
            }
            self.stage.item(&Item::Annotation(&range));
        }
    }

    /// Something that a thread says.
    fn verbatim(
        &self,
        thread: usize,
        time: Ns,
        named: Named,
        payload: Payload,
        what: Annotated,
    ) -> Annotation {
        let texts = &self.annotations.texts;
        let domain = texts.text(named.domain).filter(|domain| !domain.is_empty());
        Annotation {
            thread: self.threads[thread].location,
            time,
            source: named.source,
            domain: domain.map(|domain| domain.into_owned()),
            name: texts.text(named.name).unwrap_or_default().into_owned(),
            instance: named.instance,
            payload,
            what,
        }
    }

    /// How a range or a mark is to look.
    fn looks(&self, domain: u32, category: u32, colour: u32) -> Looks {
        let texts = &self.annotations.texts;
        let category = (category != 0).then(|| texts.category(domain, category).into_owned());
        Looks { category, colour }
    }
}
