//! Events of tracks. A track keeps its newest event back: flows to it may follow.

use super::SEQUENCE;
use super::intern::Strings;
use super::protobuf as pb;
use super::schema::{EventType, annotation, event, packet, trace};
use crate::sink::{Argument, Ns, Value};

/// What an event is called: fields of a `TrackEvent`.
#[derive(Clone, Debug)]
pub(super) enum EventName {
    Short(pb::Short),
    Long(Box<[u8]>),
}

impl EventName {
    /// By numbers of interned data.
    pub(super) fn interned(name: u64, category: u64, source: Option<u64>) -> EventName {
        let mut fields = Vec::new();
        pb::uint(&mut fields, event::NAME_IID, name);
        pb::uint(&mut fields, event::CATEGORY_IIDS, category);
        if let Some(source) = source {
            pb::uint(&mut fields, event::SOURCE_LOCATION_IID, source);
        }
        EventName::of(fields)
    }

    /// Written out.
    pub(super) fn text(name: &str, category: u64) -> EventName {
        let mut fields = Vec::new();
        pb::text(&mut fields, event::NAME, name);
        pb::uint(&mut fields, event::CATEGORY_IIDS, category);
        EventName::of(fields)
    }

    fn of(fields: Vec<u8>) -> EventName {
        match pb::Short::of(&fields) {
            Some(short) => EventName::Short(short),
            None => EventName::Long(fields.into()),
        }
    }

    #[inline]
    fn append(&self, out: &mut Vec<u8>) {
        match self {
            EventName::Short(short) => short.append(out),
            EventName::Long(fields) => out.extend_from_slice(fields),
        }
    }
}

/// A track that has events.
pub(super) struct EventTrack {
    /// A field of a `TrackEvent`: which track it is. None on the track that events belong to which name none.
    track: Option<pb::Short>,
    time: Ns,
    /// When the slice began that the newest event ends, where that is known; else as `time`.
    begin: Ns,
    /// The newest event's `TrackEvent`; empty where it is written, or there was none.
    newest: Vec<u8>,
}

impl EventTrack {
    pub(super) fn new(uuid: Option<u64>) -> EventTrack {
        let field = |uuid| {
            let mut field = Vec::new();
            pb::uint(&mut field, event::TRACK_UUID, uuid);
            pb::Short::of(&field)
        };
        EventTrack {
            track: uuid.and_then(field),
            time: 0,
            begin: 0,
            newest: Vec::new(),
        }
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
        (self.time, self.begin) = (time, time);
        let newest = &mut self.newest;
        newest.extend_from_slice(&[pb::uint_key(event::TYPE), event_type as u8]);
        if let Some(track) = self.track {
            track.append(newest);
        }
        if let Some(name) = name {
            name.append(newest);
        }
    }

    /// Adds details to the newest event.
    #[inline]
    pub(super) fn arguments(
        &mut self,
        out: &mut Vec<u8>,
        strings: &mut Strings,
        arguments: &[Argument<'_>],
    ) {
        let newest = &mut self.newest;
        for argument in arguments {
            let name = strings.argument_name(out, argument.name);
            match argument.value {
                Value::Uint(value) => number(newest, name, annotation::UINT_VALUE, value),
                Value::Int(value) => number(newest, name, annotation::INT_VALUE, value as u64),
                Value::Hex(value) => number(newest, name, annotation::POINTER_VALUE, value),
                Value::Text(text) => {
                    let value = strings.values.iid_of_any(out, text);
                    pb::message(newest, event::DEBUG_ANNOTATIONS, |out| {
                        pb::uint(out, annotation::NAME_IID, name);
                        match value {
                            Some(iid) => pb::uint(out, annotation::STRING_VALUE_IID, iid),
                            None => pb::text(out, annotation::STRING_VALUE, text),
                        }
                    });
                }
            }
        }
    }

    /// The newest event ends a slice that began then: what leads to its begin leads to it.
    pub(super) fn ends_what_began(&mut self, begin: Ns) {
        self.begin = begin;
    }

    /// Adds a flow's end to the newest event, if that is one of `time`. `field` says which end.
    pub(super) fn flow(&mut self, time: Ns, field: u32, id: u64) -> bool {
        let fits = (self.time == time || self.begin == time) && !self.newest.is_empty();
        if fits {
            pb::fixed64(&mut self.newest, field, id);
        }
        fits
    }

    /// Writes the event that was kept back.
    ///
    /// Without `SEQ_NEEDS_INCREMENTAL_STATE`, which tells a reader what to skip after a loss: a file loses nothing, and the
    /// flag would be a twentieth of its bytes.
    #[inline]
    pub(super) fn write_newest(&mut self, out: &mut Vec<u8>) {
        let (time, event_bytes) = (self.time.unsigned_abs(), self.newest.len());
        if event_bytes == 0 {
            return;
        }
        // The keys of all fields but the event's, their values but the time, and both lengths take a byte each.
        let bytes = 5 + pb::varint_len(time) + event_bytes;
        if (bytes as u64) < pb::ONE_BYTE {
            out.extend_from_slice(&[
                pb::front_key(trace::PACKET),
                bytes as u8,
                pb::uint_key(packet::TIMESTAMP),
            ]);
            pb::varint(out, time);
            out.extend_from_slice(&[
                pb::uint_key(packet::TRUSTED_PACKET_SEQUENCE_ID),
                SEQUENCE,
                pb::front_key(packet::TRACK_EVENT),
                event_bytes as u8,
            ]);
            out.extend_from_slice(&self.newest);
        } else {
            pb::message(out, trace::PACKET, |out| {
                pb::uint(out, packet::TIMESTAMP, time);
                pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE.into());
                pb::bytes(out, packet::TRACK_EVENT, &self.newest);
            });
        }
        self.newest.clear();
    }
}

/// Appends a `DebugAnnotation` with a number in `field`.
#[inline]
fn number(out: &mut Vec<u8>, name: u64, field: u32, value: u64) {
    if name < pb::ONE_BYTE {
        out.extend_from_slice(&[
            pb::front_key(event::DEBUG_ANNOTATIONS),
            3 + pb::varint_len(value) as u8,
            pb::uint_key(annotation::NAME_IID),
            name as u8,
            pb::uint_key(field),
        ]);
        pb::varint(out, value);
    } else {
        pb::message(out, event::DEBUG_ANNOTATIONS, |out| {
            pb::uint(out, annotation::NAME_IID, name);
            pb::uint(out, field, value);
        });
    }
}
