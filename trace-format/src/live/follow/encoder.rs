//! Encodes events into raw chunks again.

use crate::ClockMap;
use crate::event::TICK_BITS;
use crate::event::predict::State;
use crate::layout::block::{Chunk, ClockPair, Codec};
use crate::read::reader::Record;
use crate::write::blocks::{chunk_header, push_words};

/// Initial and maximum room for an event, in words; no event is longer.
const USUAL_EVENT_WORDS: usize = 64;
const MAX_EVENT_WORDS: usize = 1 << 21;

/// Writes the chunks of a stream in order.
pub(crate) struct Encoder<'s> {
    session: u64,
    stream: u32,
    clock: &'s ClockMap,
    file: &'s mut Vec<u8>,
    /// The chunk being filled.
    sequence: u32,
    state: State,
    base: u64,
    words: Vec<u64>,
    events: u32,
}

impl<'s> Encoder<'s> {
    pub(crate) fn new(session: u64, stream: u32, clock: &'s ClockMap, file: &'s mut Vec<u8>) -> Encoder<'s> {
        Encoder {
            session,
            stream,
            clock,
            file,
            sequence: 0,
            state: State::new(0),
            base: 0,
            words: Vec::new(),
            events: 0,
        }
    }

    /// Appends an event, which must not be earlier than the one before.
    pub(crate) fn push(&mut self, record: &Record) {
        if record.ticks.saturating_sub(self.base) >> TICK_BITS != 0 {
            self.end_chunk();
        }
        if self.events == 0 {
            self.base = record.ticks;
        }
        let ticks = record.ticks.saturating_sub(self.base);
        let len = self.words.len();
        let mut room = USUAL_EVENT_WORDS;
        while room <= MAX_EVENT_WORDS {
            self.words.resize(len + room, 0);
            let event = &record.event;
            if let Some(words) = event.encode(&mut self.state, ticks, &mut self.words[len..]) {
                self.words.truncate(len + words);
                self.events += 1;
                return;
            }
            room *= 8;
        }
        self.words.truncate(len);
    }

    /// Leaves a gap in the sequence numbers: a chunk is missing here.
    pub(crate) fn pass_over(&mut self) {
        self.sequence += 1;
    }

    /// Writes the current chunk if it has events, and starts the next one.
    pub(crate) fn end_chunk(&mut self) {
        if self.events == 0 {
            return;
        }
        let ns = self.clock.ns(self.base);
        let chunk = Chunk {
            stream: self.stream,
            sequence: self.sequence,
            clock: ClockPair {
                ticks: self.base,
                monotonic_raw_ns: self.clock.start_raw_ns().saturating_add_signed(ns),
                realtime_ns: self.clock.start_realtime_ns().saturating_add_signed(ns),
            },
            first_id: 0,
        };
        let mut payload = Vec::with_capacity(self.words.len() * 8);
        push_words(&mut payload, &self.words);
        let words = self.words.len() as u32;
        let header = chunk_header(self.session, &chunk, words, self.events, Codec::RAW, &payload);
        self.file.extend(header);
        self.file.extend(payload);
        self.sequence += 1;
        self.words.clear();
        self.events = 0;
        self.state.reset(0);
    }
}
