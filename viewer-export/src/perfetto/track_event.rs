//! Events of tracks. A track keeps its newest event back: flows to it may follow.

use omptrace_timeline::model::{Argument, CountValue, Ns, Value};

use super::fields::{Fields, MAX_BYTES};
use super::intern::Strings;
use super::schema::{EventType, annotation, event, legacy, packet, trace};
use crate::writer::protobuf as pb;

/// The name of an event: fields of a `TrackEvent`.
#[derive(Clone, Debug)]
pub(super) enum EventName {
    Short(pb::Short),
    Long(Box<[u8]>),
}

/// Numbers of interned data that belong to a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits {
    pub(super) category: u64,
    /// The place in the source.
    pub(super) source: Option<u64>,
    pub(super) colour: Option<u64>,
}

impl Traits {
    fn append(self, fields: &mut Vec<u8>) {
        pb::uint(fields, event::CATEGORY_IIDS, self.category);
        if let Some(source) = self.source {
            pb::uint(fields, event::SOURCE_LOCATION_IID, source);
        }
        if let Some(colour) = self.colour {
            pb::uint(fields, event::CORRELATION_ID_STR_IID, colour);
        }
    }
}

impl EventName {
    /// By its number of interned data.
    pub(super) fn interned(name: u64, traits: Traits) -> EventName {
        let mut fields = Vec::new();
        pb::uint(&mut fields, event::NAME_IID, name);
        traits.append(&mut fields);
        EventName::of(fields)
    }

    /// Written out.
    pub(super) fn text(name: &str, traits: Traits) -> EventName {
        let mut fields = Vec::new();
        pb::text(&mut fields, event::NAME, name);
        traits.append(&mut fields);
        EventName::of(fields)
    }

    fn of(fields: Vec<u8>) -> EventName {
        match pb::Short::of(&fields) {
            Some(short) => EventName::Short(short),
            None => EventName::Long(fields.into()),
        }
    }

    #[inline]
    fn append(&self, event: &mut Fields) {
        match self {
            EventName::Short(short) => event.push(*short),
            EventName::Long(fields) => event.append(|out| out.extend_from_slice(fields)),
        }
    }

    fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            EventName::Short(short) => out.extend_from_slice(&short.bytes[..short.len]),
            EventName::Long(fields) => out.extend_from_slice(fields),
        }
    }
}

/// A track that has events.
pub(super) struct EventTrack {
    /// The start of an event of each type: the packet's fields after the time, and those of the `TrackEvent` up to its
    /// name.
    fronts: [pb::Short; EventType::ALL.len()],
    sequence: u8,
    uuid: Option<u64>,
    time: Ns,
    /// When that began which a flow to the newest event is bound to: the slice or instant, or the interval that it ends.
    begin: Option<Ns>,
    /// The newest event; empty where it is written, or there was none.
    newest: Fields,
}

/// The bytes in front of the newest event's `TrackEvent`: the second is the sequence, the last the event's length.
const FRONT_BYTES: usize = 4;
/// Bytes of the events that most are, copied apart from the longer ones. The ends of slices have at most
/// [`pb::SHORT_BYTES`]: a copy of the bytes after them would wait for their stores.
const USUAL_BYTES: usize = 48;

impl EventTrack {
    /// The track that events belong to which name none has no `uuid`.
    pub(super) fn new(sequence: u8, uuid: Option<u64>) -> EventTrack {
        let front = |event_type| {
            let mut front = vec![
                pb::uint_key(packet::TRUSTED_PACKET_SEQUENCE_ID),
                sequence,
                pb::front_key(packet::TRACK_EVENT),
                0,
                pb::uint_key(event::TYPE),
                event_type as u8,
            ];
            if let Some(uuid) = uuid {
                pb::uint(&mut front, event::TRACK_UUID, uuid);
            }
            pb::Short::of(&front).expect("uuids count up")
        };
        EventTrack {
            fronts: EventType::ALL.map(front),
            sequence,
            uuid,
            time: 0,
            begin: None,
            newest: Fields::new(),
        }
    }

    /// Forgets what was before.
    pub(super) fn begin(&mut self) {
        self.time = 0;
        self.begin = None;
        self.newest.clear();
    }

    /// Whether no event is kept back.
    #[inline(always)]
    pub(super) fn has_no_newest(&self) -> bool {
        self.newest.is_empty()
    }

    /// A further event; the one before it is written. The end of a slice has no name.
    #[inline(always)]
    pub(super) fn event(
        &mut self,
        out: &mut Vec<u8>,
        event_type: EventType,
        time: Ns,
        name: Option<&EventName>,
    ) {
        self.write_newest(out);
        self.time = time;
        // Flows from the end of a slice are apart, see `flow_phase`.
        self.begin = (!matches!(event_type, EventType::SliceEnd)).then_some(time);
        let newest = &mut self.newest;
        newest.begin(self.fronts[event_type.index()]);
        if let Some(name) = name {
            name.append(newest);
        }
    }

    /// The counter that the track shows has this value from `time` on.
    pub(super) fn sample(&mut self, out: &mut Vec<u8>, time: Ns, value: CountValue) {
        self.event(out, EventType::Counter, time, None);
        match value {
            CountValue::Whole(value) => match u64::try_from(value) {
                Ok(value @ ..pb::MAX_VARINT) => {
                    self.newest.push(pb::Short::uint(event::COUNTER_VALUE, value));
                }
                _ => {
                    let append = |out: &mut Vec<u8>| pb::int(out, event::COUNTER_VALUE, value);
                    self.newest.append(append);
                }
            },
            // A `double` lies in the file as a `fixed64` does.
            CountValue::Real(value) => {
                self.newest.push(pb::Short::fixed64(event::DOUBLE_COUNTER_VALUE, value.to_bits()));
            }
        }
        self.write_newest(out);
    }

    /// Adds details to the newest event.
    #[inline(always)]
    pub(super) fn arguments(&mut self, out: &mut Vec<u8>, strings: &mut Strings, arguments: &[Argument<'_>]) {
        let newest = &mut self.newest;
        for argument in arguments {
            let name = strings.argument_name(out, argument.name);
            let (field, value) = match argument.value {
                Value::Uint(value) => (annotation::UINT_VALUE, value),
                Value::Int(value) => (annotation::INT_VALUE, value as u64),
                Value::Hex(value) => (annotation::POINTER_VALUE, value),
                Value::Text(text) => {
                    words(newest, name, strings.values.iid_of_any(out, text), text);
                    continue;
                }
            };
            number(newest, name, field, value);
        }
    }

    /// The newest event ends a slice that began then: what leads to its start leads to it.
    pub(super) fn ends_what_began(&mut self, begin: Ns) {
        self.begin = Some(begin);
    }

    /// Adds a flow's end to the newest event, if what began at `time` is that. `field` says which end.
    pub(super) fn flow(&mut self, time: Ns, field: u32, id: u64) -> bool {
        let fits = self.begin == Some(time) && !self.newest.is_empty();
        if fits {
            self.newest.push(pb::Short::fixed64(field, id));
        }
        fits
    }

    /// The same, if what the newest event is of began later than `time`.
    pub(super) fn flow_to_later(&mut self, time: Ns, field: u32, id: u64) -> bool {
        let begin = self.begin.filter(|begin| *begin > time);
        begin.is_some_and(|begin| self.flow(begin, field, id))
    }

    /// Writes an end of a flow that is bound to the innermost slice at `time`, whose events may have been written before. Such
    /// ends are events of their own, of the format's older kind, and meet by number, `name` and category.
    pub(super) fn flow_phase(&self, out: &mut Vec<u8>, phase: u8, time: Ns, name: &EventName, id: u64) {
        pb::message(out, trace::PACKET, |out| {
            pb::uint(out, packet::TIMESTAMP, time.unsigned_abs());
            pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, self.sequence.into());
            pb::message(out, packet::TRACK_EVENT, |out| {
                if let Some(uuid) = self.uuid {
                    pb::uint(out, event::TRACK_UUID, uuid);
                }
                name.append_to(out);
                pb::message(out, event::LEGACY_EVENT, |out| {
                    pb::uint(out, legacy::PHASE, phase.into());
                    pb::uint(out, legacy::UNSCOPED_ID, id);
                    pb::uint(out, legacy::BIND_TO_ENCLOSING, 1);
                });
            });
        });
    }

    /// Writes the event that was kept back.
    ///
    /// Without `SEQ_NEEDS_INCREMENTAL_STATE`, which says what a reader must skip after a loss. A file loses nothing, and the
    /// flag would be a twentieth of its bytes.
    #[inline(always)]
    pub(super) fn write_newest(&mut self, out: &mut Vec<u8>) {
        if self.newest.is_empty() {
            return;
        }
        // Longer than any where it is below 0.
        let time = self.time.cast_unsigned();
        match self.newest.short() {
            Some((event, len)) if time < pb::MAX_VARINT => {
                if len <= pb::SHORT_BYTES {
                    packet::<{ pb::SHORT_BYTES }, 32>(out, time, event, len);
                } else if len <= USUAL_BYTES {
                    packet::<USUAL_BYTES, 64>(out, time, event, len);
                } else {
                    packet::<MAX_BYTES, 112>(out, time, event, len);
                }
            }
            _ => self.write_long(out),
        }
        self.newest.clear();
    }

    /// Writes the newest event, which may be of any length at any time.
    #[cold]
    fn write_long(&mut self, out: &mut Vec<u8>) {
        let time = self.time.unsigned_abs();
        let event = match self.newest.short() {
            Some((bytes, len)) => &bytes[..len],
            None => self.newest.long(),
        };
        pb::message(out, trace::PACKET, |out| {
            pb::uint(out, packet::TIMESTAMP, time);
            pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, event[1].into());
            pb::bytes(out, packet::TRACK_EVENT, &event[FRONT_BYTES..]);
        });
    }
}

/// Appends a packet: time, then the first `len` bytes of `event`, which are no more than `N`. `ROOM` is that for all.
///
/// The length of the `TrackEvent` is stored after the copy: in front of it, the copy would wait for the store.
#[inline(always)]
fn packet<const N: usize, const ROOM: usize>(
    out: &mut Vec<u8>,
    time: u64,
    event: &[u8; MAX_BYTES],
    len: usize,
) {
    const { assert!(N + 11 <= ROOM && N + 9 < pb::ONE_BYTE as usize) };
    let (start, (time, time_bytes)) = (out.len(), pb::varint_bytes(time));
    let room = pb::room::<ROOM>(out);
    room[0] = pb::front_key(trace::PACKET);
    room[1] = (1 + time_bytes + len) as u8;
    room[2] = pb::uint_key(packet::TIMESTAMP);
    room[3..11].copy_from_slice(&time.to_le_bytes());
    let copy = &mut room[3 + time_bytes..][..N];
    copy.copy_from_slice(&event[..N]);
    copy[FRONT_BYTES - 1] = (len - FRONT_BYTES) as u8;
    out.truncate(start + 3 + time_bytes + len);
}

/// Appends a `DebugAnnotation` with `text`, or with its number if it has one.
#[inline(never)]
fn words(out: &mut Fields, name: u64, iid: Option<u64>, text: &str) {
    out.append(|out| {
        pb::message(out, event::DEBUG_ANNOTATIONS, |out| {
            pb::uint(out, annotation::NAME_IID, name);
            match iid {
                Some(iid) => pb::uint(out, annotation::STRING_VALUE_IID, iid),
                None => pb::text(out, annotation::STRING_VALUE, text),
            }
        });
    });
}

/// Appends a `DebugAnnotation` with a number in `field`.
#[inline(always)]
fn number(out: &mut Fields, name: u64, field: u32, value: u64) {
    if name < pb::ONE_BYTE && value < pb::MAX_VARINT {
        // What is captured is moved, which needs no place in memory.
        let put = move |room: &mut [u8; pb::SHORT_BYTES]| {
            let (value, value_bytes) = pb::varint_bytes(value);
            room[0] = pb::front_key(event::DEBUG_ANNOTATIONS);
            room[1] = 3 + value_bytes as u8;
            room[2] = pb::uint_key(annotation::NAME_IID);
            room[3] = name as u8;
            room[4] = pb::uint_key(field);
            room[5..13].copy_from_slice(&value.to_le_bytes());
            5 + value_bytes
        };
        out.put(put, move |out| any_number(out, name, field, value));
    } else {
        out.append(move |out| any_number(out, name, field, value));
    }
}

#[cold]
fn any_number(out: &mut Vec<u8>, name: u64, field: u32, value: u64) {
    pb::message(out, event::DEBUG_ANNOTATIONS, |out| {
        pb::uint(out, annotation::NAME_IID, name);
        pb::uint(out, field, value);
    });
}
