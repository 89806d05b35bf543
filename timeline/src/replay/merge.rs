//! All streams of a process as one, in the order of time.
//!
//! Interpretation needs that order where threads meet: a region's end is known before the late events of its workers,
//! a task's creation before its execution. A stream is opened when the time of its first chunk has come, and closed
//! at its end. So memory is taken only for those that are under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use omptrace_trace_format::reader::Reader;
use omptrace_trace_format::{Diagnostic, Record};

use crate::model::session_clock::SessionClock;
use crate::replay::stream::{Batches, Decoding, Extent, Portion, Timed};

/// Calls `visit` with the number of the stream and the record of each event, in the order of time, until it breaks.
/// Returns what was wrong with the chunks; [`Reader::diagnostics`] has the rest.
pub fn records_in_order(
    reader: &Reader,
    visit: &mut dyn FnMut(u32, &Record) -> ControlFlow<()>,
) -> Vec<Diagnostic> {
    let clock = SessionClock { map: reader.clock(), start: 0 };
    let mut merge = Merge::new(reader, clock, Extent::WHOLE, Decoding::Here);
    'all: while let Some(run) = merge.next_run() {
        let stream = reader.streams()[run.thread].number;
        for timed in run.events {
            if visit(stream, &timed.record).is_break() {
                break 'all;
            }
        }
    }
    merge.take_diagnostics()
}

/// The streams of one trace, merged. At equal times the lower stream comes first.
pub(crate) struct Merge<'a, 'r> {
    reader: &'r Reader,
    clock: SessionClock<'r>,
    extent: Extent,
    decoding: Decoding<'a, 'r>,
    portion: Portion,
    /// In the order of [`Reader::streams`]; `None` where a stream is not open.
    sources: Vec<Option<Source<'a, 'r>>>,
    /// When each source's head is due, but for the current one's; of streams that are not open yet, when they begin.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    current: Option<usize>,
    diagnostics: Vec<Diagnostic>,
}

/// Events that come one after the other in one stream.
pub(crate) struct Run<'m> {
    /// The place of their stream in [`Reader::streams`].
    pub(crate) thread: usize,
    /// At least one.
    pub(crate) events: &'m [Timed],
}

/// An open stream.
struct Source<'a, 'r> {
    batches: Batches<'a, 'r>,
    batch: Vec<Timed>,
    /// The place in the batch of the next event.
    head: usize,
}

impl Source<'_, '_> {
    /// The next event; `None` at the stream's end.
    #[inline(always)]
    fn head(&mut self) -> Option<&Timed> {
        if self.head >= self.batch.len() {
            self.refill();
        }
        self.batch.get(self.head)
    }

    #[cold]
    fn refill(&mut self) {
        self.batches.next(&mut self.batch);
        self.head = 0;
    }

    /// Takes the next event, and those of its batch that follow before `until`.
    fn take(&mut self, until: u64) -> &[Timed] {
        let rest = &self.batch[self.head..];
        let is_due = |timed: &&Timed| timed.record.ticks < until;
        let following = rest.iter().skip(1).take_while(is_due);
        let count = rest.len().min(1 + following.count());
        self.head += count;
        &rest[..count]
    }
}

impl<'a, 'r> Merge<'a, 'r> {
    pub(crate) fn new(
        reader: &'r Reader,
        clock: SessionClock<'r>,
        extent: Extent,
        decoding: Decoding<'a, 'r>,
    ) -> Merge<'a, 'r> {
        let streams = reader.streams();
        let begins = streams.iter().map(|stream| reader.events_from(stream, extent.from).begin());
        let waiting = begins.enumerate().map(|(index, begin)| Reverse((begin, index)));
        Merge {
            reader,
            clock,
            extent,
            decoding,
            portion: Portion::of(streams.len()),
            waiting: waiting.collect(),
            sources: streams.iter().map(|_| None).collect(),
            current: None,
            diagnostics: Vec::new(),
        }
    }

    /// The next events.
    #[inline(always)]
    pub(crate) fn next_run(&mut self) -> Option<Run<'_>> {
        let thread = match self.current {
            Some(index) => self.due_after(index),
            None => self.first(),
        }?;
        self.current = Some(thread);
        // At equal times the lower stream comes first.
        let until = match self.waiting.peek() {
            Some(Reverse((ticks, next))) => ticks.saturating_add(u64::from(thread < *next)),
            None => u64::MAX,
        };
        let source = self.sources[thread].as_mut()?;
        Some(Run { thread, events: source.take(until) })
    }

    /// The source that is due after events of `index`, often that again.
    #[inline(always)]
    fn due_after(&mut self, index: usize) -> Option<usize> {
        let Some(head) = self.sources[index].as_mut()?.head() else {
            self.close(index);
            return self.first();
        };
        let due = Reverse((head.record.ticks, index));
        let waiting = self.waiting.peek_mut();
        let Some(mut first) = waiting.filter(|first| **first > due) else {
            return Some(index);
        };
        let Reverse((_, next)) = std::mem::replace(&mut *first, due);
        drop(first);
        if self.sources[next].is_some() {
            return Some(next);
        }
        self.open(next);
        self.first()
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

    #[cold]
    fn open(&mut self, index: usize) {
        let stream = &self.reader.streams()[index];
        let mut source = Source {
            batches: Batches::new(self.reader, stream, self.extent, self.clock, self.portion, self.decoding),
            batch: Vec::new(),
            head: 0,
        };
        let due = source.head().map(|head| head.record.ticks);
        self.sources[index] = Some(source);
        match due {
            Some(ticks) => self.waiting.push(Reverse((ticks, index))),
            None => self.close(index),
        }
    }

    #[cold]
    fn close(&mut self, index: usize) {
        if let Some(mut source) = self.sources[index].take() {
            self.diagnostics.extend(source.batches.take_diagnostics());
        }
    }

    /// The flaws of the chunks read so far, by stream.
    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        for index in 0..self.sources.len() {
            self.close(index);
        }
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
        diagnostics.sort_by_key(|diagnostic| diagnostic.stream);
        diagnostics
    }
}
