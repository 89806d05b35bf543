//! The events of one stream as interpretation wants them: with times of the timeline, which do not go back, and with the
//! specification's numbers, whatever the runtime's generation; some thousand at a time, decoded ahead by other threads
//! where there are any.

use std::sync::mpsc::{Receiver, Sender, channel};

use omptrace_trace_format::Diagnostic;
use omptrace_trace_format::clock::Stretch;
use omptrace_trace_format::reader::{Events, Reader, Record, Stream};
use rayon::Scope;

use crate::sink::Ns;
use crate::timeline::dialect::Dialect;
use crate::timeline::interpret::SessionClock;

/// Events of a batch: as many as spare most of the hand-overs and stay in a processor's cache.
const BATCH: usize = 2048;
/// Events of all batches: with very many streams, batches are smaller.
const ALL_BATCHES: usize = 1 << 18;
const SMALLEST_BATCH: usize = 64;

/// An event of a stream.
#[derive(Default)]
pub(crate) struct Timed {
    pub(crate) record: Record,
    /// Its time on the timeline.
    pub(crate) time: Ns,
    /// Its time was below that of its predecessor in the stream, which it now has.
    pub(crate) was_raised: bool,
}

/// Who decodes.
#[derive(Clone, Copy)]
pub(crate) enum Decoding<'a, 'scope> {
    /// The thread that asks for the events.
    Here,
    /// Other threads, a batch ahead.
    Ahead(&'a Scope<'scope>),
}

/// How many events a batch has, of so many streams.
pub(crate) fn batch_len(streams: usize) -> usize {
    (ALL_BATCHES / streams.max(1)).clamp(SMALLEST_BATCH, BATCH)
}

/// The batches of one stream.
pub(crate) struct Batches<'a, 'scope> {
    decoding: Decoding<'a, 'scope>,
    /// `None` while another thread has it.
    decoder: Option<Box<Decoder<'scope>>>,
    /// Another thread gives them back.
    ready: (Sender<Ready<'scope>>, Receiver<Ready<'scope>>),
}

type Ready<'r> = (Box<Decoder<'r>>, Vec<Timed>);

impl<'a, 'scope> Batches<'a, 'scope> {
    /// The batches of `stream`, each of `len` events.
    pub(crate) fn new(
        reader: &'scope Reader,
        stream: &Stream,
        clock: SessionClock<'scope>,
        len: usize,
        decoding: Decoding<'a, 'scope>,
    ) -> Batches<'a, 'scope> {
        let decoder = Decoder {
            events: reader.events(stream),
            dialect: Dialect::of(reader.metadata()),
            clock,
            stretch: clock.map.stretch(0),
            len,
            last: 0,
        };
        Batches {
            decoding,
            decoder: Some(Box::new(decoder)),
            ready: channel(),
        }
    }

    /// Replaces what is in `batch`, which was read, by the next events; leaves it empty at the stream's end.
    pub(crate) fn next(&mut self, batch: &mut Vec<Timed>) {
        let mut spare = Vec::new();
        if let Some(decoder) = &mut self.decoder {
            decoder.fill(batch);
        } else if let Ok((decoder, next)) = self.ready.1.recv() {
            spare = std::mem::replace(batch, next);
            self.decoder = Some(decoder);
        }
        if !batch.is_empty() {
            self.decode_ahead(spare);
        }
    }

    /// Lets another thread fill `batch`.
    fn decode_ahead(&mut self, mut batch: Vec<Timed>) {
        if let Decoding::Ahead(scope) = self.decoding
            && let Some(mut decoder) = self.decoder.take()
        {
            let ready = self.ready.0.clone();
            scope.spawn(move |_| {
                decoder.fill(&mut batch);
                // Nobody waits for it where reading was broken off.
                let _ = ready.send((decoder, batch));
            });
        }
    }

    /// What was wrong with the chunks so far.
    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        if self.decoder.is_none() {
            self.decoder = self.ready.1.recv().ok().map(|(decoder, _)| decoder);
        }
        self.decoder
            .as_mut()
            .map_or_else(Vec::new, |decoder| decoder.events.take_diagnostics())
    }
}

/// Decodes a stream.
struct Decoder<'r> {
    events: Events<'r>,
    dialect: Dialect,
    clock: SessionClock<'r>,
    /// The part of the clock that holds the newest event's time.
    stretch: Stretch,
    len: usize,
    /// The newest event's time in ticks.
    last: u64,
}

impl Decoder<'_> {
    /// Replaces what is in `batch`, whose events are decoded where those before them were.
    fn fill(&mut self, batch: &mut Vec<Timed>) {
        batch.resize_with(self.len, Timed::default);
        let mut events = 0;
        for timed in &mut *batch {
            let record = &mut timed.record;
            if !self.events.read(record) {
                break;
            }
            timed.was_raised = record.ticks < self.last;
            record.ticks = record.ticks.max(self.last);
            self.last = record.ticks;
            self.dialect.translate(&mut record.event);
            if record.ticks >= self.stretch.end() {
                self.stretch = self.clock.map.stretch(record.ticks);
            }
            timed.time = self.clock.on_timeline(self.stretch.ns(record.ticks));
            events += 1;
        }
        batch.truncate(events);
    }
}
