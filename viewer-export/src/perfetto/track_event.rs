//! Events of tracks. A track keeps its newest event back: flows to it may follow.

use super::SEQUENCE;
use super::intern::Strings;
use super::protobuf as pb;
use super::schema::{EventType, annotation, event, packet, trace};
use crate::sink::{Argument, Ns, Value};

/// What an event is called, in numbers of interned data.
#[derive(Clone, Copy)]
pub(super) struct EventName<'a> {
    /// `None` where `text` is written out.
    pub(super) iid: Option<u64>,
    pub(super) text: &'a str,
    pub(super) category: u64,
    pub(super) source: Option<u64>,
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
    pub(super) fn event(
        &mut self,
        out: &mut Vec<u8>,
        event_type: EventType,
        time: Ns,
        name: Option<EventName<'_>>,
    ) {
        self.write_newest(out);
        self.time = time;
        let newest = &mut self.newest;
        pb::uint(newest, event::TYPE, event_type as u64);
        pb::uint(newest, event::TRACK_UUID, self.uuid);
        let Some(name) = name else {
            return;
        };
        match name.iid {
            Some(iid) => pb::uint(newest, event::NAME_IID, iid),
            None => pb::text(newest, event::NAME, name.text),
        }
        pb::uint(newest, event::CATEGORY_IIDS, name.category);
        if let Some(source) = name.source {
            pb::uint(newest, event::SOURCE_LOCATION_IID, source);
        }
    }

    /// Adds details to the newest event.
    pub(super) fn arguments(
        &mut self,
        out: &mut Vec<u8>,
        strings: &mut Strings,
        arguments: &[Argument<'_>],
    ) {
        for argument in arguments {
            let name = strings.argument_names.iid(out, argument.name);
            let text = match argument.value {
                Value::Text(text) => strings.values.iid_of_any(out, text),
                _ => None,
            };
            pb::message(&mut self.newest, event::DEBUG_ANNOTATIONS, |out| {
                pb::uint(out, annotation::NAME_IID, name);
                match (argument.value, text) {
                    (Value::Uint(number), _) => pb::uint(out, annotation::UINT_VALUE, number),
                    (Value::Int(number), _) => pb::int(out, annotation::INT_VALUE, number),
                    (Value::Hex(number), _) => pb::uint(out, annotation::POINTER_VALUE, number),
                    (Value::Text(_), Some(iid)) => pb::uint(out, annotation::STRING_VALUE_IID, iid),
                    (Value::Text(text), None) => pb::text(out, annotation::STRING_VALUE, text),
                }
            });
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
    pub(super) fn write_newest(&mut self, out: &mut Vec<u8>) {
        if self.newest.is_empty() {
            return;
        }
        pb::message(out, trace::PACKET, |out| {
            pb::uint(out, packet::TIMESTAMP, self.time.unsigned_abs());
            pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            pb::bytes(out, packet::TRACK_EVENT, &self.newest);
        });
        self.newest.clear();
    }
}
