//! Events of tracks. A track keeps its newest event back: flows to it may follow.

use super::SEQUENCE;
use super::intern::Strings;
use super::protobuf as pb;
use super::schema::{EventType, annotation, event, packet, trace};
use crate::sink::{Argument, Ns, Value};

/// What an event is called: fields of a `TrackEvent`.
pub(super) enum EventName {
    /// By its number in interned data.
    Interned(pb::Numbers),
    /// Written out.
    Text(Vec<u8>),
}

impl EventName {
    pub(super) fn interned(name: u64, category: u64, source: Option<u64>) -> EventName {
        let mut fields = pb::Numbers::new();
        fields.uint(event::NAME_IID, name);
        fields.uint(event::CATEGORY_IIDS, category);
        if let Some(source) = source {
            fields.uint(event::SOURCE_LOCATION_IID, source);
        }
        EventName::Interned(fields)
    }

    pub(super) fn text(name: &str, category: u64) -> EventName {
        let mut fields = Vec::new();
        pb::text(&mut fields, event::NAME, name);
        pb::uint(&mut fields, event::CATEGORY_IIDS, category);
        EventName::Text(fields)
    }

    #[inline]
    fn fields(&self) -> &[u8] {
        match self {
            EventName::Interned(fields) => fields.bytes(),
            EventName::Text(fields) => fields,
        }
    }
}

/// A track that has events.
pub(super) struct EventTrack {
    uuid: u64,
    time: Ns,
    /// The newest event's `TrackEvent`; empty where it is written, or there was none.
    newest: Vec<u8>,
}

impl EventTrack {
    pub(super) fn new(uuid: u64) -> EventTrack {
        EventTrack {
            uuid,
            time: 0,
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
        self.time = time;
        let mut fields = pb::Numbers::new();
        fields.uint(event::TYPE, event_type as u64);
        fields.uint(event::TRACK_UUID, self.uuid);
        self.newest.extend_from_slice(fields.bytes());
        if let Some(name) = name {
            self.newest.extend_from_slice(name.fields());
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
            let mut fields = pb::Numbers::new();
            fields.uint(
                annotation::NAME_IID,
                strings.argument_name(out, argument.name),
            );
            let mut text = None;
            match argument.value {
                Value::Uint(number) => fields.uint(annotation::UINT_VALUE, number),
                Value::Int(number) => fields.uint(annotation::INT_VALUE, number as u64),
                Value::Hex(number) => fields.uint(annotation::POINTER_VALUE, number),
                Value::Text(value) => match strings.values.iid_of_any(out, value) {
                    Some(iid) => fields.uint(annotation::STRING_VALUE_IID, iid),
                    None => text = Some(value),
                },
            }
            match text {
                None => pb::bytes(&mut self.newest, event::DEBUG_ANNOTATIONS, fields.bytes()),
                Some(text) => pb::message(&mut self.newest, event::DEBUG_ANNOTATIONS, |out| {
                    out.extend_from_slice(fields.bytes());
                    pb::text(out, annotation::STRING_VALUE, text);
                }),
            }
        }
    }

    /// Adds a flow's end to the newest event, if that is one of `time`. `field` says which end.
    pub(super) fn flow(&mut self, time: Ns, field: u32, id: u64) -> bool {
        let fits = self.time == time && !self.newest.is_empty();
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
        let mut fields = pb::Numbers::new();
        fields.uint(packet::TIMESTAMP, self.time.unsigned_abs());
        fields.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
        fields.message(packet::TRACK_EVENT, self.newest.len());
        let mut front = pb::Numbers::new();
        front.message(trace::PACKET, fields.bytes().len() + self.newest.len());
        out.extend_from_slice(front.bytes());
        out.extend_from_slice(fields.bytes());
        out.extend_from_slice(&self.newest);
        self.newest.clear();
    }
}
