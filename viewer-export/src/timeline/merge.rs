//! All streams of a process as one, in the order of time.
//!
//! Interpretation needs that order where threads meet: a region's end is known before the late events of its workers,
//! a task's creation before its execution. Only one decoded chunk per stream is in memory at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use omptrace_trace_format::diagnostic::Diagnostic;
use omptrace_trace_format::reader::{Events, Reader, Record};

/// The streams of one trace, merged. At equal times the lower stream comes first.
pub(crate) struct Merge<'r> {
    sources: Vec<Source<'r>>,
    /// When each source's head is due, but for the current one's.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    current: Option<usize>,
}

/// An event of the merged streams.
pub(crate) struct Merged<'m> {
    /// The place of its stream in [`Reader::streams`].
    pub(crate) thread: usize,
    pub(crate) record: &'m Record,
    /// Its time was below that of its predecessor in the stream, which it now has.
    pub(crate) was_raised: bool,
}

struct Source<'r> {
    events: Events<'r>,
    /// The next event, or the one that was taken last.
    head: Option<Record>,
    was_raised: bool,
}

impl<'r> Merge<'r> {
    pub(crate) fn new(reader: &'r Reader) -> Merge<'r> {
        let sources: Vec<Source<'r>> = reader
            .streams()
            .iter()
            .map(|stream| {
                let mut events = reader.events(stream);
                Source {
                    head: events.next(),
                    events,
                    was_raised: false,
                }
            })
            .collect();
        let due = |(index, source): (usize, &Source<'_>)| {
            Some(Reverse((source.head.as_ref()?.ticks, index)))
        };
        let waiting = sources.iter().enumerate().filter_map(due).collect();
        Merge {
            sources,
            waiting,
            current: None,
        }
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Option<Merged<'_>> {
        let index = match self.current {
            None => self.waiting.pop()?.0.1,
            Some(index) => self.successor(index)?,
        };
        self.current = Some(index);
        let source = &self.sources[index];
        let record = source.head.as_ref()?;
        Some(Merged {
            thread: index,
            record,
            was_raised: source.was_raised,
        })
    }

    /// Moves `index`, whose head was taken, one event on, and says which source is next.
    fn successor(&mut self, index: usize) -> Option<usize> {
        let source = &mut self.sources[index];
        let last = source.head.as_ref().map_or(0, |record| record.ticks);
        source.head = source.events.next();
        source.was_raised = false;
        let Some(head) = &mut source.head else {
            return self.waiting.pop().map(|Reverse((_, index))| index);
        };
        if head.ticks < last {
            head.ticks = last;
            source.was_raised = true;
        }
        // Threads mostly have several events in a row: then nothing moves.
        let due = Reverse((head.ticks, index));
        match self.waiting.peek_mut() {
            Some(mut first) if *first > due => {
                let Reverse((_, next)) = std::mem::replace(&mut *first, due);
                Some(next)
            }
            _ => Some(index),
        }
    }

    /// What was wrong with the chunks read so far.
    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        self.sources
            .iter_mut()
            .flat_map(|source| source.events.take_diagnostics())
            .collect()
    }
}
