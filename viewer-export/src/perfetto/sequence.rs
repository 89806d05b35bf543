//! A sequence of packets: events that share interned strings and defaults.

use super::intern::{Texts, Told, tell, tell_source};
use super::protobuf as pb;
use super::schema::{EventType, annotation, event, interned, packet, trace};
use super::schema::{INCREMENTAL_STATE_CLEARED, NEEDS_INCREMENTAL_STATE};
use crate::sink::{Argument, Category, Ns, Source, Value};

/// The strings of a trace.
#[derive(Default)]
pub(super) struct Strings {
    /// Names of events.
    pub(super) names: Texts,
    argument_names: Texts,
    values: Texts,
}

/// What an event is called.
#[derive(Clone, Copy)]
pub(super) struct EventName<'a> {
    /// The name's number; `None` where it is written out.
    pub(super) iid: Option<u64>,
    pub(super) text: &'a str,
    pub(super) category: Category,
    /// The place in the source, and its number.
    pub(super) source: Option<(u64, &'a Source)>,
}

/// A sequence. Its newest event is kept back: flows to it may follow.
pub(super) struct Sequence {
    id: u32,
    newest: Option<Newest>,
    /// The kept buffers of the event before.
    spare: Newest,
    names: Told,
    categories: Told,
    argument_names: Told,
    values: Told,
    sources: Told,
}

/// An event that is not written yet.
#[derive(Default)]
struct Newest {
    time: Ns,
    /// The content of `InternedData`.
    interned: Vec<u8>,
    /// The content of `TrackEvent`.
    event: Vec<u8>,
}

impl Sequence {
    /// A sequence without packets.
    pub(super) fn new(id: u32) -> Sequence {
        Sequence {
            id,
            newest: None,
            spare: Newest::default(),
            names: Told::default(),
            categories: Told::default(),
            argument_names: Told::default(),
            values: Told::default(),
            sources: Told::default(),
        }
    }

    /// Writes the sequence's first packet, with what `content` writes into it.
    pub(super) fn start(&self, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
        pb::message(out, trace::PACKET, |out| {
            pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, self.id.into());
            pb::uint(out, packet::SEQUENCE_FLAGS, INCREMENTAL_STATE_CLEARED);
            pb::uint(out, packet::FIRST_PACKET_ON_SEQUENCE, 1);
            content(out);
        });
    }

    /// A further event; the one before it is written. `track` is given where it is not the sequence's default.
    pub(super) fn event(
        &mut self,
        out: &mut Vec<u8>,
        event_type: EventType,
        time: Ns,
        track: Option<u64>,
    ) {
        self.write_newest(out);
        let mut newest = std::mem::take(&mut self.spare);
        newest.time = time;
        newest.interned.clear();
        newest.event.clear();
        pb::uint(&mut newest.event, event::TYPE, event_type as u64);
        if let Some(track) = track {
            pb::uint(&mut newest.event, event::TRACK_UUID, track);
        }
        self.newest = Some(newest);
    }

    /// Names the newest event.
    pub(super) fn name(&mut self, name: EventName<'_>) {
        let Some(newest) = &mut self.newest else {
            return;
        };
        match name.iid {
            Some(iid) => {
                if self.names.is_first(iid) {
                    tell(&mut newest.interned, interned::EVENT_NAMES, iid, name.text);
                }
                pb::uint(&mut newest.event, event::NAME_IID, iid);
            }
            None => pb::text(&mut newest.event, event::NAME, name.text),
        }
        let category = name.category as u64 + 1;
        if self.categories.is_first(category) {
            let text = name.category.name();
            tell(
                &mut newest.interned,
                interned::EVENT_CATEGORIES,
                category,
                text,
            );
        }
        pb::uint(&mut newest.event, event::CATEGORY_IIDS, category);
        if let Some((iid, source)) = name.source {
            if self.sources.is_first(iid) {
                tell_source(&mut newest.interned, iid, source);
            }
            pb::uint(&mut newest.event, event::SOURCE_LOCATION_IID, iid);
        }
    }

    /// Adds details to the newest event.
    pub(super) fn arguments(&mut self, strings: &mut Strings, arguments: &[Argument<'_>]) {
        for argument in arguments {
            self.argument(strings, argument);
        }
    }

    fn argument(&mut self, strings: &mut Strings, argument: &Argument<'_>) {
        let Some(newest) = &mut self.newest else {
            return;
        };
        let name = strings.argument_names.iid(argument.name);
        if self.argument_names.is_first(name) {
            let field = interned::DEBUG_ANNOTATION_NAMES;
            tell(&mut newest.interned, field, name, argument.name);
        }
        let text_iid = match argument.value {
            Value::Text(text) => strings.values.iid_of_any(text).inspect(|iid| {
                if self.values.is_first(*iid) {
                    let field = interned::DEBUG_ANNOTATION_STRING_VALUES;
                    tell(&mut newest.interned, field, *iid, text);
                }
            }),
            _ => None,
        };
        pb::message(&mut newest.event, event::DEBUG_ANNOTATIONS, |out| {
            pb::uint(out, annotation::NAME_IID, name);
            match (argument.value, text_iid) {
                (Value::Uint(number), _) => pb::uint(out, annotation::UINT_VALUE, number),
                (Value::Int(number), _) => pb::int(out, annotation::INT_VALUE, number),
                (Value::Hex(number), _) => pb::uint(out, annotation::POINTER_VALUE, number),
                (Value::Text(_), Some(iid)) => pb::uint(out, annotation::STRING_VALUE_IID, iid),
                (Value::Text(text), None) => pb::text(out, annotation::STRING_VALUE, text),
            }
        });
    }

    /// Adds a flow's end to the newest event, if that is one of `time`. `field` says which end.
    pub(super) fn flow(&mut self, time: Ns, field: u32, id: u64) -> bool {
        match &mut self.newest {
            Some(newest) if newest.time == time => {
                pb::fixed64(&mut newest.event, field, id);
                true
            }
            _ => false,
        }
    }

    /// Writes the event that was kept back.
    pub(super) fn write_newest(&mut self, out: &mut Vec<u8>) {
        let Some(newest) = self.newest.take() else {
            return;
        };
        pb::message(out, trace::PACKET, |out| {
            pb::uint(out, packet::TIMESTAMP, newest.time.unsigned_abs());
            pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, self.id.into());
            pb::uint(out, packet::SEQUENCE_FLAGS, NEEDS_INCREMENTAL_STATE);
            if !newest.interned.is_empty() {
                pb::bytes(out, packet::INTERNED_DATA, &newest.interned);
            }
            pb::bytes(out, packet::TRACK_EVENT, &newest.event);
        });
        self.spare = newest;
    }
}
