//! A decoder of Perfetto's format, as far as slices need it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::intervals::{Interval, is_mark};

/// A field of a message: its number, and its value, a number or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message.
fn fields(mut message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut message)),
            1 => Field::Number(u64::from_le_bytes(take(&mut message, 8).try_into().expect("eight bytes"))),
            2 => {
                let len = varint(&mut message);
                Field::Bytes(take(&mut message, len as usize))
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn take<'a>(message: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = message.split_at(len);
    *message = rest;
    taken
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = take(message, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// A message by the numbers of its fields; of repeated fields the last.
struct Message<'a>(BTreeMap<u64, Field<'a>>);

impl<'a> Message<'a> {
    fn new(bytes: &'a [u8]) -> Message<'a> {
        Message(fields(bytes).into_iter().collect())
    }

    fn number(&self, field: u64) -> Option<u64> {
        match self.0.get(&field)? {
            Field::Number(number) => Some(*number),
            Field::Bytes(_) => None,
        }
    }

    fn bytes(&self, field: u64) -> Option<&'a [u8]> {
        match self.0.get(&field)? {
            Field::Bytes(bytes) => Some(bytes),
            Field::Number(_) => None,
        }
    }

    fn message(&self, field: u64) -> Option<Message<'a>> {
        self.bytes(field).map(Message::new)
    }

    fn text(&self, field: u64) -> Option<String> {
        let bytes = self.bytes(field)?;
        Some(String::from_utf8(bytes.to_vec()).expect("UTF-8"))
    }
}

/// The slices of a file, each begin with the end of its track that comes next at its depth.
pub(crate) fn intervals(path: &Path) -> Vec<Interval> {
    let file = fs::read(path).expect("the export is there");
    // By sequence, then number.
    let mut names: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut events: Vec<(u64, u64, u64, String)> = Vec::new();
    let mut default_tracks = BTreeMap::new();
    for (_, packet) in fields(&file) {
        let Field::Bytes(packet) = packet else { panic!("a file consists of packets") };
        let packet = Message::new(packet);
        let sequence = packet.number(10).expect("a sequence");
        for (kind, entry) in packet.bytes(12).map(fields).unwrap_or_default() {
            if let (2, Field::Bytes(entry)) = (kind, entry) {
                let entry = Message::new(entry);
                let iid = entry.number(1).expect("a number");
                names.insert((sequence, iid), entry.text(2).expect("a name"));
            }
        }
        if let Some(track) = packet.message(60) {
            let thread = track.message(4).and_then(|thread| thread.text(5));
            let name = thread.or_else(|| track.text(2)).unwrap_or_default();
            tracks.insert(track.number(1).expect("a uuid"), name);
        }
        if let Some(defaults) = packet.message(59).and_then(|all| all.message(11)) {
            default_tracks.insert(sequence, defaults.number(11).expect("a uuid"));
        }
        if let Some(event) = packet.message(11) {
            let interned = event.number(10).map(|iid| names[&(sequence, iid)].clone());
            let name = interned.or_else(|| event.text(23)).unwrap_or_default();
            let time = packet.number(8).expect("a time");
            let track = event.number(11).unwrap_or_else(|| default_tracks[&sequence]);
            // Ends of arrows may have none.
            events.push((time, track, event.number(9).unwrap_or_default(), name));
        }
    }
    // The importer's order: by time, else as in the file.
    events.sort_by_key(|event| event.0);
    let mut open: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    let mut intervals = Vec::new();
    for (time, track, kind, name) in events {
        let stack = open.entry(track).or_default();
        match kind {
            1 => stack.push((time, name)),
            2 => {
                let (begin, name) = stack.pop().expect("an end has a begin");
                intervals.push(Interval { track: tracks[&track].clone(), begin, end: time, name });
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "all slices end");
    intervals.retain(|interval| !is_mark(&interval.name));
    intervals.sort();
    intervals
}
