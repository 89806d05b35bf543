//! Events of tracks. A track keeps its newest event back: flows to it may follow.

use super::SEQUENCE;
use super::intern::Strings;
use super::protobuf as pb;
use super::schema::{EventType, annotation, event, packet, trace};
use crate::sink::{Argument, Ns, Value};

/// What an event is called: fields of a `TrackEvent`.
pub(super) struct EventName(Vec<u8>);

impl EventName {
    /// By numbers of interned data.
    pub(super) fn interned(name: u64, category: u64, source: Option<u64>) -> EventName {
        let mut fields = Vec::new();
        pb::uint(&mut fields, event::NAME_IID, name);
        pb::uint(&mut fields, event::CATEGORY_IIDS, category);
        if let Some(source) = source {
            pb::uint(&mut fields, event::SOURCE_LOCATION_IID, source);
        }
        EventName(fields)
    }

    /// Written out.
    pub(super) fn text(name: &str, category: u64) -> EventName {
        let mut fields = Vec::new();
        pb::text(&mut fields, event::NAME, name);
        pb::uint(&mut fields, event::CATEGORY_IIDS, category);
        EventName(fields)
    }
}

/// A track that has events.
pub(super) struct EventTrack {
    /// None on the track that events belong to which name none.
    uuid: Option<u64>,
    time: Ns,
    /// When the slice began that the newest event ends, where that is known; else as `time`.
    begin: Ns,
    /// The newest event's `TrackEvent`; empty where it is written, or there was none.
    newest: Vec<u8>,
}

impl EventTrack {
    pub(super) fn new(uuid: Option<u64>) -> EventTrack {
        EventTrack {
            uuid,
            time: 0,
            begin: 0,
            newest: Vec::new(),
        }
    }

    /// A further event; the one before it is written. The end of a slice has no name.
    #[inline]
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
        // Uuids count up from 1: four bytes at most, even of millions of tracks.
        let mut fields = pb::Short::default().uint(event::TYPE, event_type as u64);
        if let Some(uuid) = self.uuid {
            fields = fields.uint(event::TRACK_UUID, uuid);
        }
        fields.append(newest);
        if let Some(EventName(fields)) = name {
            newest.extend_from_slice(fields);
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
        for argument in arguments {
            let name = strings.argument_name(out, argument.name);
            let front = pb::Short::default().uint(annotation::NAME_IID, name);
            let mut number = |field, value| {
                let newest = &mut self.newest;
                if value <= pb::Short::MOST {
                    let fields = front.uint(field, value);
                    pb::Short::default()
                        .front(event::DEBUG_ANNOTATIONS, fields.len())
                        .then(fields)
                        .append(newest);
                } else {
                    pb::message(newest, event::DEBUG_ANNOTATIONS, |out| {
                        front.append(out);
                        pb::uint(out, field, value);
                    });
                }
            };
            match argument.value {
                Value::Uint(value) => number(annotation::UINT_VALUE, value),
                Value::Int(value) => number(annotation::INT_VALUE, value as u64),
                Value::Hex(value) => number(annotation::POINTER_VALUE, value),
                Value::Text(text) => match strings.values.iid_of_any(out, text) {
                    // The key of this field takes two bytes.
                    Some(iid) => pb::message(&mut self.newest, event::DEBUG_ANNOTATIONS, |out| {
                        front.append(out);
                        pb::uint(out, annotation::STRING_VALUE_IID, iid);
                    }),
                    None => pb::message(&mut self.newest, event::DEBUG_ANNOTATIONS, |out| {
                        front.append(out);
                        pb::text(out, annotation::STRING_VALUE, text);
                    }),
                },
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
        if self.newest.is_empty() {
            return;
        }
        let event = pb::Short::default()
            .uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE)
            .front(packet::TRACK_EVENT, self.newest.len());
        // Beyond lie two years, where only damaged traces go.
        let time = self.time.unsigned_abs().min(pb::Short::MOST);
        let time = pb::Short::default().uint(packet::TIMESTAMP, time);
        pb::Short::default()
            .front(trace::PACKET, time.len() + event.len() + self.newest.len())
            .append(out);
        time.then(event).append(out);
        out.extend_from_slice(&self.newest);
        self.newest.clear();
    }
}
