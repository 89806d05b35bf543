//! All streams of a process as one, in the order of time.
//!
//! Interpretation needs that order where threads meet: a region's end is known before the late events of its workers,
//! a task's creation before its execution. A stream is opened when the time of its first chunk has come and closed
//! at its end, so that memory is taken only for those that are under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use omptrace_trace_format::Diagnostic;
use omptrace_trace_format::reader::Reader;

use crate::timeline::interpret::SessionClock;
use crate::timeline::stream::{Batches, Decoding, Timed, batch_len};

/// The streams of one trace, merged. At equal times the lower stream comes first.
pub(crate) struct Merge<'a, 'scope> {
    reader: &'scope Reader,
    clock: SessionClock<'scope>,
    decoding: Decoding<'a, 'scope>,
    batch_len: usize,
    /// In the order of [`Reader::streams`]; `None` where a stream is not open.
    sources: Vec<Option<Source<'a, 'scope>>>,
    /// When each source's head is due, but for the current one's; of streams that are not open yet, when they begin.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    current: Option<usize>,
    diagnostics: Vec<Diagnostic>,
}

/// An event of the merged streams.
pub(crate) struct Merged<'m> {
    /// The place of its stream in [`Reader::streams`].
    pub(crate) thread: usize,
    pub(crate) event: &'m Timed,
}

/// An open stream.
struct Source<'a, 'scope> {
    batches: Batches<'a, 'scope>,
    batch: Vec<Timed>,
    /// The place in the batch of the next event, or of the one that was taken last.
    head: usize,
}

impl Source<'_, '_> {
    fn head(&self) -> Option<&Timed> {
        self.batch.get(self.head)
    }

    /// Goes on to the next event.
    #[inline]
    fn advance(&mut self) {
        self.head += 1;
        if self.head >= self.batch.len() {
            self.batches.next(&mut self.batch);
            self.head = 0;
        }
    }
}

impl<'a, 'scope> Merge<'a, 'scope> {
    pub(crate) fn new(
        reader: &'scope Reader,
        clock: SessionClock<'scope>,
        decoding: Decoding<'a, 'scope>,
    ) -> Merge<'a, 'scope> {
        let streams = reader.streams();
        let begins = streams.iter().map(|stream| reader.events(stream).begin());
        let waiting = begins
            .enumerate()
            .map(|(index, begin)| Reverse((begin, index)));
        Merge {
            reader,
            clock,
            decoding,
            batch_len: batch_len(streams.len()),
            waiting: waiting.collect(),
            sources: streams.iter().map(|_| None).collect(),
            current: None,
            diagnostics: Vec::new(),
        }
    }

    /// The next event.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Merged<'_>> {
        if let Some(index) = self.current {
            self.advance(index);
        } else {
            self.current = self.first();
        }
        let thread = self.current?;
        let event = self.sources[thread].as_ref()?.head()?;
        Some(Merged { thread, event })
    }

    /// Moves the current source, `index`, one event on, and makes the one that is due next the current.
    #[inline]
    fn advance(&mut self, index: usize) {
        let Some(source) = &mut self.sources[index] else {
            return;
        };
        source.advance();
        let Some(head) = source.head() else {
            self.close(index);
            self.current = self.first();
            return;
        };
        let due = Reverse((head.record.ticks, index));
        // Threads mostly have several events in a row: then nothing moves.
        let waiting = self.waiting.peek_mut();
        let Some(mut first) = waiting.filter(|first| **first > due) else {
            return;
        };
        let Reverse((_, next)) = std::mem::replace(&mut *first, due);
        drop(first);
        if self.sources[next].is_some() {
            self.current = Some(next);
        } else {
            self.open(next);
            self.current = self.first();
        }
    }

    /// Takes the source that is due first. Streams whose time has come are opened on the way.
    fn first(&mut self) -> Option<usize> {
        while let Some(Reverse((_, index))) = self.waiting.pop() {
            if self.sources[index].is_some() {
                return Some(index);
            }
            self.open(index);
        }
        None
    }

    fn open(&mut self, index: usize) {
        let stream = &self.reader.streams()[index];
        let mut source = Source {
            batches: Batches::new(
                self.reader,
                stream,
                self.clock,
                self.batch_len,
                self.decoding,
            ),
            batch: Vec::new(),
            head: 0,
        };
        source.batches.next(&mut source.batch);
        let due = source.head().map(|head| head.record.ticks);
        self.sources[index] = Some(source);
        match due {
            Some(ticks) => self.waiting.push(Reverse((ticks, index))),
            None => self.close(index),
        }
    }

    fn close(&mut self, index: usize) {
        if let Some(mut source) = self.sources[index].take() {
            self.diagnostics.extend(source.batches.take_diagnostics());
        }
    }

    /// What was wrong with the chunks read so far, by stream.
    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        for index in 0..self.sources.len() {
            self.close(index);
        }
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
        diagnostics.sort_by_key(|diagnostic| diagnostic.stream);
        diagnostics
    }
}
