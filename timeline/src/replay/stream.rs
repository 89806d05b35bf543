//! The events of one stream as interpretation wants them. They have times of the timeline, which do not go back, and the
//! specification's numbers, whatever the runtime's generation. Another thread decodes some thousand at a time ahead, where
//! there may be one.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use ompt_sys as ompt;
use omptrace_trace_format::Diagnostic;
use omptrace_trace_format::clock::Stretch;
use omptrace_trace_format::event::Event;
use omptrace_trace_format::reader::{Events, Reader, Record, Stream};

use crate::interpret::endpoint::endpoint;
use crate::model::Ns;
use crate::model::session_clock::SessionClock;
use crate::runtime_quirks::Dialect;

/// Events of a batch: as many as spare most of the hand-overs and stay in a processor's cache.
const BATCH: usize = 2048;
const MIN_BATCH: usize = 64;
/// Batches that another thread decodes at a time: to wake it costs as much as to decode one, in a virtual machine more.
const BATCHES_AHEAD: usize = 4;
/// Events of all streams that are decoded and wait: with very many streams, there are fewer.
const ALL_EVENTS: usize = 1 << 18;

/// An event of a stream.
#[derive(Default)]
pub(crate) struct Timed {
    pub(crate) record: Record,
    /// Its time on the timeline.
    pub(crate) time: Ns,
    /// Its time was below that of its predecessor in the stream, which it now has.
    pub(crate) was_raised: bool,
}

/// The thread that decodes.
#[derive(Clone, Copy)]
pub(crate) enum Decoding<'a, 'r> {
    /// The thread that asks for the events.
    Here,
    /// Another thread, some batches ahead.
    Ahead(&'a Sender<Request<'r>>),
}

/// The request to the other thread.
pub(crate) type Request<'r> = Box<dyn FnOnce() + Send + 'r>;

impl<'r> Decoding<'_, 'r> {
    /// Lets another thread decode for `work`, where there can be one. It is one for all streams, for to interpret takes
    /// longer than to decode.
    pub(crate) fn ahead<R>(work: impl FnOnce(Decoding<'_, 'r>) -> R) -> R {
        thread::scope(|scope| {
            let (requests, of_decoder) = channel::<Request<'r>>();
            let decode = move || of_decoder.into_iter().for_each(|request| request());
            let decoder = thread::Builder::new().name("omptrace-decode".into());
            match decoder.spawn_scoped(scope, decode) {
                Ok(_) => work(Decoding::Ahead(&requests)),
                Err(_) => work(Decoding::Here),
            }
        })
    }
}

/// The part of each stream that is read.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// From the first event at this time on, in raw ticks.
    pub(crate) from: u64,
    /// To the first event at this time of the timeline, or later, that [begins something](begins_something). It is read, too, for it
    /// may report what began before, as all events before it may.
    pub(crate) until: Ns,
}

impl Extent {
    pub(crate) const WHOLE: Extent = Extent { from: 0, until: Ns::MAX };
}

/// How much of each stream is decoded at a time.
#[derive(Clone, Copy)]
pub(crate) struct Portion {
    /// Events of a batch.
    batch: usize,
    /// Batches that another thread decodes at a time; as many may be waiting.
    ahead: usize,
}

impl Portion {
    /// The portion of each of this many streams.
    pub(crate) fn of(streams: usize) -> Portion {
        let events = ALL_EVENTS / 2 / streams.max(1);
        let ahead = (events / MIN_BATCH).clamp(1, BATCHES_AHEAD);
        Portion { batch: (events / ahead).clamp(MIN_BATCH, BATCH), ahead }
    }
}

/// The batches of one stream.
pub(crate) struct Batches<'a, 'r> {
    decoding: Decoding<'a, 'r>,
    /// `None` while another thread has it.
    decoder: Option<Box<Decoder<'r>>>,
    /// The events that another thread decoded.
    decoded: VecDeque<Vec<Timed>>,
    /// Batches that were read.
    spare: Vec<Vec<Timed>>,
    /// From the other thread, if there is one.
    sent: Option<Receiver<Sent<'r>>>,
    ahead: usize,
}

/// The messages of a thread that decodes: batches, then the decoder as the last.
enum Sent<'r> {
    Batch(Vec<Timed>),
    Decoder(Box<Decoder<'r>>),
}

impl<'a, 'r> Batches<'a, 'r> {
    /// The batches of `stream`.
    pub(crate) fn new(
        reader: &'r Reader,
        stream: &Stream,
        extent: Extent,
        clock: SessionClock<'r>,
        portion: Portion,
        decoding: Decoding<'a, 'r>,
    ) -> Batches<'a, 'r> {
        let dialect = Dialect::of(reader.metadata());
        let decoder = Decoder {
            events: reader.events_from(stream, extent.from),
            extent,
            dialect: dialect.has_other_numbers().then_some(dialect),
            clock,
            stretch: clock.stretch(0),
            len: portion.batch,
            last: 0,
            whole: None,
            from: extent.from,
            is_done: false,
        };
        Batches {
            decoding,
            decoder: Some(Box::new(decoder)),
            decoded: VecDeque::new(),
            spare: Vec::new(),
            sent: None,
            ahead: portion.ahead,
        }
    }

    /// Replaces what is in `batch`, which was read, by the next events; leaves it empty at the stream's end.
    pub(crate) fn next(&mut self, batch: &mut Vec<Timed>) {
        let Decoding::Ahead(requests) = self.decoding else {
            if let Some(decoder) = &mut self.decoder {
                decoder.fill(batch);
            }
            return;
        };
        self.spare.push(std::mem::take(batch));
        loop {
            while self.receive(Receiver::try_recv) {}
            if self.decoded.len() < self.ahead {
                self.decode_ahead(requests);
            }
            if let Some(next) = self.decoded.pop_front() {
                *batch = next;
                return;
            }
            if !self.receive(Receiver::recv) {
                return;
            }
        }
    }

    /// Lets the other thread decode some batches, if it does not and the stream is not at its end.
    fn decode_ahead(&mut self, requests: &Sender<Request<'r>>) {
        let Some(mut decoder) = self.decoder.take_if(|decoder| !decoder.is_done) else {
            return;
        };
        let ahead = self.ahead;
        let mut spare = self.spare.split_off(self.spare.len().saturating_sub(ahead));
        let (to_us, sent) = channel();
        self.sent = Some(sent);
        // Nobody waits for it where reading was broken off.
        let send = move |sent| drop(to_us.send(sent));
        let decode = move || {
            for _ in 0..ahead {
                let mut batch = spare.pop().unwrap_or_default();
                decoder.fill(&mut batch);
                send(Sent::Batch(batch));
                if decoder.is_done {
                    break;
                }
            }
            send(Sent::Decoder(decoder));
        };
        // It takes no more only when it panicked, which the end of its scope reports.
        let _ = requests.send(Box::new(decode));
    }

    /// Takes what `receive` gives from the other thread; false where it gives nothing, or there is none.
    fn receive<E>(&mut self, receive: fn(&Receiver<Sent<'r>>) -> Result<Sent<'r>, E>) -> bool {
        match self.sent.as_ref().map(receive) {
            Some(Ok(Sent::Batch(batch))) => {
                if !batch.is_empty() {
                    self.decoded.push_back(batch);
                }
            }
            Some(Ok(Sent::Decoder(decoder))) => {
                self.decoder = Some(decoder);
                self.sent = None;
            }
            Some(Err(_)) | None => return false,
        }
        true
    }

    /// The flaws of the chunks so far.
    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        while self.receive(Receiver::recv) {}
        self.decoder.as_mut().map_or_else(Vec::new, |decoder| decoder.events.take_diagnostics())
    }
}

/// Whether a thread that does this is done with all that began before, or in the midst of it. Ends that come late are about a
/// region that is over. The tracer's own events are about nothing, or about the time before them.
#[cold]
pub(crate) fn begins_something(event: &Event<'_>) -> bool {
    if let Some(endpoint) = endpoint(event) {
        return endpoint != ompt::ompt_scope_end;
    }
    match event {
        Event::ImplicitTaskEnd(_) | Event::MutexReleased(_) | Event::ThreadEnd(_) => false,
        // The thread's own implicit task follows at once.
        Event::ParallelBegin(_) => false,
        Event::ThreadBegin(_) | Event::ThreadInfo(_) | Event::ThreadState(_) => false,
        Event::Module(_) | Event::BufferFlush(_) | Event::Lost(_) => false,
        Event::Monitoring(_) | Event::Counters(_) => false,
        _ => true,
    }
}

/// Decodes a stream.
struct Decoder<'r> {
    events: Events<'r>,
    extent: Extent,
    /// The dialect, where its numbers are not the specification's.
    dialect: Option<Dialect>,
    clock: SessionClock<'r>,
    /// The part of the clock that holds the newest event's time.
    stretch: Stretch,
    len: usize,
    /// The newest event's time in ticks.
    last: u64,
    /// The end of a wait that was reported as a whole, and has begun.
    whole: Option<Record>,
    /// Where the extent begins.
    from: u64,
    /// The stream is at its end.
    is_done: bool,
}

impl Decoder<'_> {
    /// Replaces what is in `batch`, whose events are decoded where those before them were.
    fn fill(&mut self, batch: &mut Vec<Timed>) {
        if self.is_done {
            return batch.clear();
        }
        batch.resize_with(self.len, Timed::default);
        let mut events = 0;
        let from = std::mem::take(&mut self.extent.from);
        let mut is_skipped = from > 0 && self.skip(&mut batch[0].record, from);
        for timed in &mut *batch {
            let record = &mut timed.record;
            if let Some(end) = self.whole.take() {
                *record = end;
            } else {
                if !std::mem::take(&mut is_skipped) && !self.events.read(record) {
                    break;
                }
                if let Event::ExternalWait(_) = record.event {
                    self.split(record);
                }
            }
            timed.was_raised = record.ticks < self.last;
            record.ticks = record.ticks.max(self.last);
            self.last = record.ticks;
            if let Some(dialect) = &self.dialect {
                dialect.translate(&mut record.event);
            }
            if record.ticks >= self.stretch.end() {
                self.stretch = self.clock.stretch(record.ticks);
            }
            timed.time = self.stretch.ns(record.ticks);
            events += 1;
            if timed.time >= self.extent.until && begins_something(&record.event) {
                self.is_done = true;
                break;
            }
        }
        batch.truncate(events);
        self.is_done |= events < self.len;
    }

    /// Makes two events of one that reports a wait as a whole: its begin, and its end behind that. What begins before the extent is known
    /// to have begun there.
    #[cold]
    fn split(&mut self, record: &mut Record) {
        let Event::ExternalWait(e) = &mut record.event else { return };
        if e.endpoint != ompt::ompt_scope_beginend {
            return;
        }
        e.endpoint = ompt::ompt_scope_end;
        if e.begin.0 < self.from {
            return;
        }
        let end = record.clone();
        if let Event::ExternalWait(e) = &mut record.event {
            e.endpoint = ompt::ompt_scope_begin;
            // Nothing happened on the thread meanwhile, but for what a signal handler did, and the tracer.
            record.ticks = e.begin.0.max(self.last).min(record.ticks);
            self.whole = Some(end);
        }
    }

    /// Reads the first event at `from` or later into `record`; false at the stream's end.
    #[cold]
    fn skip(&mut self, record: &mut Record, from: u64) -> bool {
        let first = self.events.find(|record| record.ticks >= from);
        let is_there = first.is_some();
        *record = first.unwrap_or_default();
        is_there
    }
}

#[cfg(test)]
mod tests {
    use omptrace_trace_format::block::{Chunk, ClockPair, Codec, FileHeader};
    use omptrace_trace_format::blocks::{chunk_header, metadata_block, push_words};
    use omptrace_trace_format::event::Flush;
    use omptrace_trace_format::field::Address;
    use omptrace_trace_format::predict::State;

    use super::*;
    use crate::replay::merge::Merge;

    const SESSION: u64 = 1;
    const CHUNKS: u32 = 5;
    const EVENTS_PER_CHUNK: u32 = 20_000;
    const TICKS_PER_CHUNK: u64 = 2_000_000_000;

    /// The clock's rate grows from chunk to chunk, so that its map bends at each.
    fn clock(chunk: u32) -> ClockPair {
        let chunk = u64::from(chunk);
        ClockPair {
            ticks: 1 + chunk * TICKS_PER_CHUNK,
            monotonic_raw_ns: 1 + chunk * 1_000_000_000 + chunk * chunk * 20_000,
            realtime_ns: 1_700_000_000_000_000_000 + chunk * 1_000_000_000,
        }
    }

    /// A trace of one stream with several batches per chunk.
    fn trace() -> Reader {
        let header = FileHeader::of_trace(SESSION, 1, &[]);
        let mut file = header.encode();
        let metadata =
            serde_json::json!({"clock": {"kind": "tsc", "ticks_per_second": 2e9, "uncertainty_ticks": 10}});
        file.extend(metadata_block(SESSION, clock(0), &metadata));
        for sequence in 0..CHUNKS {
            let chunk = Chunk { stream: 1, sequence, clock: clock(sequence), first_id: 1 };
            let mut state = State::new(chunk.first_id);
            let (mut words, mut payload) = (Vec::new(), Vec::new());
            for event in 0..EVENTS_PER_CHUNK {
                let flush =
                    Event::from(Flush { thread_data: Default::default(), codeptr_ra: Address(0x1000) });
                let ticks = TICKS_PER_CHUNK / u64::from(EVENTS_PER_CHUNK) * u64::from(event);
                let mut out = [0; 16];
                let len = flush.encode(&mut state, ticks, &mut out).unwrap();
                words.extend_from_slice(&out[..len]);
            }
            push_words(&mut payload, &words);
            let len = words.len() as u32;
            file.extend(chunk_header(SESSION, &chunk, len, EVENTS_PER_CHUNK, Codec::RAW, &payload));
            file.extend(payload);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made.omptrace");
        std::fs::write(&path, file).unwrap();
        Reader::open(&path).unwrap()
    }

    fn check(mut merge: Merge<'_, '_>, clock: SessionClock<'_>) {
        let mut events = 0;
        while let Some(run) = merge.next_run() {
            for timed in run.events {
                assert_eq!(timed.time, clock.time(timed.record.ticks));
                events += 1;
            }
        }
        assert_eq!(events, CHUNKS * EVENTS_PER_CHUNK);
    }

    #[test]
    fn each_event_comes_once_with_its_time_whoever_decodes() {
        let trace = trace();
        let clock = SessionClock { map: trace.clock(), start: 7 };
        let bends = (0..CHUNKS).filter(|chunk| {
            let ticks = u64::from(*chunk) * TICKS_PER_CHUNK + TICKS_PER_CHUNK / 2;
            clock.map.stretch(ticks).end() != u64::MAX
        });
        assert!(bends.count() > 1, "the test needs a clock that bends");
        check(Merge::new(&trace, clock, Extent::WHOLE, Decoding::Here), clock);
        Decoding::ahead(|decoding| {
            assert!(matches!(decoding, Decoding::Ahead(_)));
            check(Merge::new(&trace, clock, Extent::WHOLE, decoding), clock);
        });
    }

    fn count(mut merge: Merge<'_, '_>) -> usize {
        let mut events = 0;
        while let Some(run) = merge.next_run() {
            events += run.events.len();
        }
        events
    }

    #[test]
    fn nothing_is_read_behind_the_end_of_a_window_whoever_decodes() {
        let trace = trace();
        let clock = SessionClock { map: trace.clock(), start: 7 };
        let extent = Extent { until: clock.time(TICKS_PER_CHUNK / 2), ..Extent::WHOLE };
        let here = count(Merge::new(&trace, clock, extent, Decoding::Here));
        assert!(here.abs_diff(EVENTS_PER_CHUNK as usize / 2) < 3, "{here}");
        Decoding::ahead(|decoding| assert_eq!(count(Merge::new(&trace, clock, extent, decoding)), here));
    }
}
