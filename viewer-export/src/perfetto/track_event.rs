//! Events of tracks. A track holds its newest event back, because flows to it may follow.

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

/// Interned data that belongs to a name, by number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits {
    pub(super) category: u64,
    /// The source location.
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
    /// A name given by the number of an interned string.
    pub(super) fn interned(name: u64, traits: Traits) -> EventName {
        let mut fields = Vec::new();
        pb::uint(&mut fields, event::NAME_IID, name);
        traits.append(&mut fields);
        EventName::of(fields)
    }

    /// A name that is not interned.
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

/// The state of a track with events.
pub(super) struct EventTrack {
    /// The start of an event of each type: the packet's fields after the time, and the fields of the `TrackEvent` up to
    /// the name.
    fronts: [pb::Short; EventType::ALL.len()],
    sequence: u8,
    uuid: Option<u64>,
    time: Ns,
    /// The start of the slice, instant or interval to which flows to the newest event are bound; for the end of an
    /// interval, the interval's start.
    begin: Option<Ns>,
    /// The newest event; empty if it has been written, or if there was none.
    newest: Fields,
}

/// Bytes before the newest event's `TrackEvent`: the second is the sequence, the last is the event's length.
const FRONT_BYTES: usize = 4;
/// Maximum size of most events, which are copied separately from longer ones. The ends of slices have at most
/// [`pb::SHORT_BYTES`], and only that many bytes are copied, because a copy of the following bytes would have to wait
/// for their stores.
const USUAL_BYTES: usize = 48;

impl EventTrack {
    /// The default track, to which events belong that name no track, has no `uuid`.
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

    /// Resets the state.
    pub(super) fn begin(&mut self) {
        self.time = 0;
        self.begin = None;
        self.newest.clear();
    }

    /// Whether no event is held back.
    #[inline(always)]
    pub(super) fn has_no_newest(&self) -> bool {
        self.newest.is_empty()
    }

    /// Adds an event, after writing the previous one. The end of a slice has no name.
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
        // Flows from the end of a slice are separate events, see `flow_phase`.
        self.begin = (!matches!(event_type, EventType::SliceEnd)).then_some(time);
        let newest = &mut self.newest;
        newest.begin(self.fronts[event_type.index()]);
        if let Some(name) = name {
            name.append(newest);
        }
    }

    /// The track's counter has this value from `time` on.
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
            // In the file, a `double` has the same form as a `fixed64`.
            CountValue::Real(value) => {
                self.newest.push(pb::Short::fixed64(event::DOUBLE_COUNTER_VALUE, value.to_bits()));
            }
        }
        self.write_newest(out);
    }

    /// Adds arguments to the newest event.
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

    /// The newest event ends a slice that started at `begin`, so flows to that start are bound to it.
    pub(super) fn ends_what_began(&mut self, begin: Ns) {
        self.begin = Some(begin);
    }

    /// Adds the end of a flow to the newest event, if the event's slice started at `time`. `field` tells which end.
    pub(super) fn flow(&mut self, time: Ns, field: u32, id: u64) -> bool {
        let fits = self.begin == Some(time) && !self.newest.is_empty();
        if fits {
            self.newest.push(pb::Short::fixed64(field, id));
        }
        fits
    }

    /// The same, if the slice of the newest event started later than `time`.
    pub(super) fn flow_to_later(&mut self, time: Ns, field: u32, id: u64) -> bool {
        let begin = self.begin.filter(|begin| *begin > time);
        begin.is_some_and(|begin| self.flow(begin, field, id))
    }

    /// Writes an end of a flow that is bound to the innermost slice at `time`, whose events may already have been
    /// written. Such ends are separate events of the format's older kind; they are matched by number, `name` and
    /// category.
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

    /// Writes the event that was held back.
    ///
    /// The flag `SEQ_NEEDS_INCREMENTAL_STATE`, which tells readers what to skip after a loss, is not set: a file loses
    /// nothing, and the flag would take a twentieth of its size.
    #[inline(always)]
    pub(super) fn write_newest(&mut self, out: &mut Vec<u8>) {
        if self.newest.is_empty() {
            return;
        }
        // A negative time is longer than any other.
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

    /// Writes the newest event, for any length and any time.
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

/// Appends a packet: the time, and the first `len` (at most `N`) bytes of `event`. `ROOM` is enough for both.
///
/// The length of the `TrackEvent` is stored after copying the bytes; otherwise, the copy would wait for the store.
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

/// Appends a `DebugAnnotation` with `text`, or with its number if it is interned.
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
        // Moving the captured values keeps them in registers.
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
