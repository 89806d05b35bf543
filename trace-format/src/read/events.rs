//! The events of a stream, chunk after chunk.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::event::predict::State;
use crate::event::stack::Stacks;
use crate::event::{DecodeError, Event, TICK_SHIFT, decode_into, is_wide_prefix};
use crate::layout::block::Chunk;
use crate::read::chunks::{Chunks, Stored, is_same_chunk};
use crate::read::diagnostic::{Diagnostic, DiagnosticKind};

/// An event with its time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Raw ticks of the session's clock; [`crate::ClockMap::ns`] converts them to nanoseconds.
    pub ticks: u64,
    /// The event.
    pub event: Event<'static>,
}

/// The events of a stream, in its order. Damaged chunks are left out; see [`Events::take_diagnostics`].
#[derive(Debug)]
pub struct Events<'r> {
    chunks: Chunks<'r>,
    copies: &'r [Stored],
    state: State,
    /// The stacks of the current chunk.
    stacks: Stacks,
    chunk: Chunk,
    /// Position of the next event in the chunk's words.
    at: usize,
    damaged_events: u64,
    /// Number of bytes of events read so far, for showing progress.
    bytes_read: &'r AtomicU64,
}

impl<'r> Events<'r> {
    /// The events of the chunks with these copies. Adds the bytes read to `bytes_read`.
    pub(crate) fn new(chunks: Chunks<'r>, copies: &'r [Stored], bytes_read: &'r AtomicU64) -> Events<'r> {
        Events {
            chunks,
            bytes_read,
            copies,
            state: State::new(0),
            stacks: Stacks::default(),
            chunk: Chunk::default(),
            at: 0,
            damaged_events: 0,
        }
    }

    /// Lower bound for the times of the remaining events, in raw ticks; 0 at the stream's end.
    pub fn begin(&self) -> u64 {
        self.copies.first().map_or(0, |stored| stored.chunk().clock.ticks)
    }

    /// Reads the next event into `record`, which saves moving it; false at the stream's end.
    #[inline(always)]
    pub fn read(&mut self, record: &mut Record) -> bool {
        loop {
            let words = &self.chunks.words[self.at..];
            match decode_into(&mut record.event, words, &mut self.state) {
                Ok(len) => {
                    let head = words[0];
                    let ticks = head >> TICK_SHIFT;
                    self.at += len;
                    if is_wide_prefix(head) && !self.restore_stack(&mut record.event) {
                        continue;
                    }
                    record.ticks = self.chunk.clock.ticks.wrapping_add(ticks);
                    return true;
                }
                Err(error) => {
                    if !self.recover(error) {
                        return false;
                    }
                }
            }
        }
    }

    /// Completes the frames of the event's stack, if it has one; false if that fails, so that the event is damaged.
    #[cold]
    fn restore_stack(&mut self, event: &mut Event<'static>) -> bool {
        let stack = event.stack_mut();
        let is_sound = stack.is_none_or(|stack| self.stacks.restore(stack));
        self.damaged_events += u64::from(!is_sound);
        is_sound
    }

    /// Removes and returns the flaws of the chunks read so far.
    pub fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        self.chunks.diagnostics.take()
    }

    /// Skips words that are not an event, to the next event or chunk; false at the stream's end.
    #[cold]
    fn recover(&mut self, error: DecodeError) -> bool {
        let rest = &self.chunks.words[self.at..];
        match error {
            DecodeError::BadArguments { len } => {
                self.at += len;
                self.damaged_events += 1;
                // The skipped event may have had the stack that the next one shares frames with.
                self.stacks.clear();
                return true;
            }
            // The process died between the prefix of a wide event and the event.
            _ if rest.is_empty() || (rest.len() == 1 && is_wide_prefix(rest[0])) => {}
            DecodeError::Truncated | DecodeError::UnknownKind(_) => {
                let count = rest.len() as u64;
                self.report(DiagnosticKind::ChunkCut, count);
            }
        }
        if self.damaged_events > 0 {
            let count = std::mem::take(&mut self.damaged_events);
            self.report(DiagnosticKind::EventsDamaged, count);
        }
        self.next_chunk()
    }

    fn report(&mut self, kind: DiagnosticKind, count: u64) {
        let diagnostic = Diagnostic::new(kind).chunk(self.chunk.stream, self.chunk.sequence).count(count);
        self.chunks.diagnostics.push(diagnostic);
    }

    /// Reads the next readable chunk; false at the stream's end.
    fn next_chunk(&mut self) -> bool {
        while let Some(first) = self.copies.first() {
            let same = self.copies.iter().take_while(|stored| is_same_chunk(first, stored)).count();
            let (copies, rest) = self.copies.split_at(same);
            self.copies = rest;
            if let Some(stored) = self.chunks.read(copies) {
                self.chunk = stored.chunk();
                // Relaxed: the counter orders no other memory accesses.
                self.bytes_read.fetch_add(self.chunks.words.len() as u64 * 8, Ordering::Relaxed);
                self.state.reset(self.chunk.first_id);
                self.stacks.clear();
                self.at = 0;
                return true;
            }
        }
        self.chunks.words.clear();
        self.at = 0;
        false
    }
}

impl Iterator for Events<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let mut record = Record::default();
        self.read(&mut record).then_some(record)
    }
}
