//! Which chunk a thread continues with, which thread writes a full one, and which events a chunk starts with.
//!
//! A session either writes all chunks, in a writer thread or in the program's threads, or retains the newest chunks of
//! each thread, as a flight recorder ([`Keep`]).

use std::sync::atomic::Ordering;
use std::time::Duration;

use omptrace_settings::value::{Keep, OnFull, Sample, SamplingClock};
use omptrace_trace_format::block::ChunkState;
use omptrace_trace_format::codec::Packer;
use omptrace_trace_format::event::{
    BufferFlush, DeviceStream, Lost, Monitoring, SampleStream, ThreadInfo, WideRow,
};
use omptrace_trace_format::field::{MonitoringChange, SampleClock, Text, Ticks};
use omptrace_trace_format::predict::State;

use crate::config::CHUNK_BYTES;
use crate::os::log::warning;
use crate::os::system;
use crate::os::threads::lock;
use crate::os::time::clock;
use crate::os::time::clock::Stopwatch;
use crate::recorder::recorder::Recorder;
use crate::recorder::thread_stream::{Kind, Stream};
use crate::session::current::{PATIENCE, Session};
use crate::session::fork;
use crate::session::helper_threads::Writer;
use crate::session::hooks;
use crate::storage::spool::{EVENT_WORDS, Growth};

impl Session {
    /// Hands over the recorder's old chunk, and gives it a new one; `None` if none is available.
    pub(crate) fn renew(&'static self, recorder: &Recorder) -> Option<()> {
        if self.pid != system::process_id() {
            fork::notice();
            return None;
        }
        let stream = &recorder.stream;
        if !self.owns(recorder) {
            recorder.end_chunk();
            stream.spool.set(&raw const self.spool);
            stream.kept.forget();
            // Forget the modules reported in another session.
            stream.modules.forget();
            stream.sequence.set(0);
            self.streams.fetch_add(1, Ordering::Relaxed);
            self.spool.allow(self.chunks_per_thread());
            if matches!(stream.kind.get(), Kind::Thread) {
                hooks::thread_begins(self, stream);
            }
        }
        let old = recorder.has_chunk().then(|| stream.chunk.get());
        if let Some(writer) = &self.writer {
            // If events should be dropped rather than written by the program's threads, a writer thread is needed.
            let drops = || self.config.on_full == OnFull::Drop && old.is_some();
            writer.start(self, || drops() || !system::has_one_thread());
        }
        let begin = clock::ticks();
        let next = match self.config.mode {
            Keep::All => self.next_chunk(old),
            Keep::Newest => self.next_kept(stream, old).map(|index| (index, None)),
        };
        recorder.end_chunk();
        let (index, flushed) = next?;
        self.begin_chunk(recorder, index);
        // Draining samples takes no time of the program's threads.
        let is_of_samples = matches!(stream.kind.get(), Kind::Samples(_));
        if let Some(bytes) = flushed.filter(|_| !is_of_samples) {
            put(recorder, BufferFlush { begin: Ticks(begin), bytes });
        }
        Some(())
    }

    /// Returns the chunk that a thread continues with when `old` is full, or that it starts with. Also returns the
    /// number of bytes that the thread had to write itself to get it.
    fn next_chunk(&self, old: Option<u32>) -> Option<(u32, Option<u64>)> {
        let keeps_its_own = self.running_writer().is_none() && old.is_some();
        if !keeps_its_own && let Some(index) = self.take_chunk(Growth::Allowed) {
            old.into_iter().for_each(|old| self.hand_over(old));
            return Some((index, None));
        }
        if self.running_writer().is_some() && self.config.on_full == OnFull::Drop {
            old.into_iter().for_each(|old| self.hand_over(old));
            return None;
        }
        // If threads come and go, the writer may have all chunks: writing one of those is as good as writing an own
        // one.
        match old.or_else(|| self.spool.queues.take_full()) {
            Some(index) => Some((index, Some(self.write_own(index)?))),
            None => Some((self.take_chunk(Growth::Beyond)?, None)),
        }
    }

    /// Like [`Session::next_chunk`], for a flight recorder: a new chunk while the thread has fewer than its maximum,
    /// otherwise a chunk of a thread that has ended, otherwise the thread's own oldest.
    fn next_kept(&self, stream: &Stream, old: Option<u32>) -> Option<u32> {
        old.into_iter().for_each(|old| self.keep(stream, old));
        let may_have_more = stream.kept.len() < self.chunks_per_thread() as u32;
        let new = || self.take_chunk(Growth::Allowed).or_else(|| self.spool.queues.take_full());
        let index = may_have_more
            .then(new)
            .flatten()
            .or_else(|| stream.kept.pop(&self.spool))
            .or_else(|| self.take_chunk(Growth::Beyond))?;
        let _nobody_writes_it = self.keeping();
        self.spool.chunk(index).header().set_state(ChunkState::FREE);
        Some(index)
    }

    /// Retains a full chunk.
    fn keep(&self, stream: &Stream, index: u32) {
        self.spool.chunk(index).header().set_state(ChunkState::FULL);
        stream.kept.push(&self.spool, index);
    }

    /// Writes all retained chunks, without those that threads are writing into. They remain retained.
    pub(crate) fn write_kept(&self) {
        for (_, chunk) in self.spool.all() {
            let _nobody_takes_it = self.keeping();
            if chunk.header().is_full() {
                match self.output.write_chunk(chunk, None) {
                    Ok(_) => chunk.header().set_state(ChunkState::FREE),
                    Err(error) => return self.fail("write", &error),
                }
            }
        }
    }

    fn keeping(&self) -> lock::Guard<'_, ()> {
        self.keeping.lock()
    }

    /// Takes a free or new chunk.
    fn take_chunk(&self, growth: Growth) -> Option<u32> {
        self.spool.take(growth).unwrap_or_else(|error| {
            // Threads that have chunks continue with those; this thread loses its events, which are counted.
            if !self.reported_trouble.swap(true, Ordering::Relaxed) {
                warning!(
                    "no more space for events in {}: {error}; some threads lose events",
                    self.spool_name()
                );
            }
            None
        })
    }

    fn chunks_per_thread(&self) -> i32 {
        let chunks = (self.config.buffer.0 / CHUNK_BYTES) as i32;
        match (self.config.mode, &self.writer) {
            // At least two: one with old events while the other is filled.
            (Keep::Newest, _) => chunks.max(2),
            (Keep::All, Some(_)) => chunks,
            (Keep::All, None) => 1,
        }
    }

    /// The writer, if its thread is running.
    fn running_writer(&self) -> Option<&Writer> {
        self.writer.as_ref().filter(|writer| writer.is_running())
    }

    /// Passes a full chunk to the writer; without one, writes it.
    fn hand_over(&self, index: u32) {
        match self.running_writer() {
            Some(writer) => {
                let chunk = self.spool.chunk(index);
                self.spool.queues.hand_over(index, chunk.header());
                writer.wake();
            }
            // A chunk that cannot be written remains in the spool, where the reader finds it.
            None if self.write_own(index).is_some() => self.release(index),
            None => {}
        }
    }

    fn write_own(&self, index: u32) -> Option<u64> {
        self.output
            .write_chunk(self.spool.chunk(index), None)
            .inspect_err(|error| self.fail("write", error))
            .ok()
    }

    pub(super) fn release(&self, index: u32) {
        let chunk = self.spool.chunk(index);
        self.spool.queues.release(index, chunk.header());
    }

    /// Writes all chunks that were handed over.
    pub(crate) fn drain(&self, packer: &mut Option<Packer>) {
        while let Some(index) = self.spool.queues.take_full() {
            // If it falls behind, the writer does not pack, which takes a tenth of the time; sealing packs later.
            let packer = match self.spool.queues.are_short() {
                true => None,
                false => packer.as_mut(),
            };
            match self.output.write_chunk(self.spool.chunk(index), packer) {
                Ok(_) => self.release(index),
                // The chunk remains full in the spool, where the reader finds it.
                Err(error) => self.fail("write", &error),
            }
        }
    }

    /// Whether no chunk is waiting to be written.
    pub(crate) fn is_drained(&self) -> bool {
        self.spool.queues.is_drained()
    }

    /// Starts the recorder's next chunk with the events that describe its stream.
    fn begin_chunk(&self, recorder: &Recorder, index: u32) {
        let stream = &recorder.stream;
        let first = stream.sequence.get() == 0;
        let alone = self.config.mode == Keep::Newest;
        if alone {
            stream.modules.forget();
        }
        let held = if first { stream.held.take() } else { None };
        let pair = match (&held, stream.kind.get()) {
            (Some((pair, _)), _) => *pair,
            (None, Kind::Samples(of)) => of.since,
            (None, Kind::Thread | Kind::Device(_)) => clock::pair().0,
        };
        let newest_id = if held.is_some() { stream.first_id() } else { recorder.state().next_id };
        let chunk = self.spool.chunk(index);
        chunk.header().begin(stream.number.get(), stream.sequence.get(), pair, newest_id);
        stream.chunk.set(index);
        stream.sequence.set(stream.sequence.get() + 1);
        stream.stale.set(false);
        // SAFETY: the chunk was free, or is the thread's own and was just written: it belongs to this thread alone.
        unsafe { recorder.begin_chunk(chunk.event_words(), EVENT_WORDS, pair.ticks, newest_id) };
        // Events that were held back have earlier times, and follow the events that describe the stream.
        let start = pair.ticks;
        match stream.kind.get() {
            Kind::Device(device_num) if first => {
                put_at(start, recorder, DeviceStream { device_num });
            }
            Kind::Thread if first || alone => {
                let name = system::thread_name();
                let info = ThreadInfo { os_tid: system::thread_id(), name: Text::new(&name) };
                put_at(start, recorder, info);
                if !self.reported_begin.swap(true, Ordering::Relaxed) {
                    let change = MonitoringChange::begin;
                    put_at(start, recorder, Monitoring { change });
                }
            }
            Kind::Samples(of) => {
                let row = SampleStream {
                    thread_stream: of.thread_stream,
                    clock: match self.config.sample {
                        Sample::On(wanted) if wanted.clock == SamplingClock::Perf => SampleClock::perf,
                        _ => SampleClock::cpu,
                    },
                    period_ns: of.period_ns,
                };
                put_at(of.newest.max(start), recorder, row);
                // Modules are reported with the samples.
                return;
            }
            Kind::Thread | Kind::Device(_) => {}
        }
        for (ticks, event) in held.into_iter().flat_map(|(_, events)| events) {
            recorder.put_slowly(ticks, |state, ticks, out| event.encode(state, ticks, out));
        }
        let lost = self.count_lost(recorder);
        if lost > 0 {
            put(recorder, Lost { begin: Ticks(stream.lost_since.get()), events: lost });
        }
        self.modules.refresh(&stream.modules, |module| put(recorder, module));
    }

    /// The recorder's thread has ended.
    pub(crate) fn end_stream(&self, recorder: &Recorder) {
        self.spool.allow(-self.chunks_per_thread());
        let stream = &recorder.stream;
        let last = recorder.has_chunk().then(|| stream.chunk.get());
        match self.config.mode {
            Keep::All => last.into_iter().for_each(|last| self.hand_over(last)),
            Keep::Newest => {
                // New threads take these chunks when no others are permitted.
                let kept = std::iter::from_fn(|| stream.kept.pop(&self.spool));
                for index in kept.chain(last) {
                    let chunk = self.spool.chunk(index);
                    self.spool.queues.hand_over(index, chunk.header());
                }
            }
        }
        self.report_last_lost(recorder);
    }

    /// Writes the events that this thread has recorded so far to the file, and the chunks that other threads have
    /// handed over. The remaining events are in the spool, where they are equally safe.
    pub(crate) fn flush(&self, recorder: &Recorder) {
        if !self.owns(recorder) || !recorder.has_chunk() {
            return;
        }
        let full = recorder.stream.chunk.get();
        if self.config.mode == Keep::Newest {
            self.keep(&recorder.stream, full);
            recorder.end_chunk();
            return self.write_kept();
        }
        self.hand_over(full);
        recorder.end_chunk();
        if let Some(writer) = self.running_writer() {
            writer.hurry();
            let waited = Stopwatch::start();
            while !self.is_drained() && waited.elapsed() < PATIENCE {
                writer.wake();
                system::sleep(Duration::from_micros(50));
            }
            writer.relax();
        }
    }
}

/// Records one of the tracer's own events; false if it does not fit.
fn put(recorder: &Recorder, row: impl WideRow) -> bool {
    put_at(clock::ticks(), recorder, row)
}

/// Like [`put`], with an explicit time.
fn put_at(ticks: u64, recorder: &Recorder, row: impl WideRow) -> bool {
    let encode = |_: &mut State, ticks, out: &mut [u64]| row.encode(ticks, out);
    recorder.put_slowly(ticks, encode).is_some()
}

/// Records a change of monitoring on this thread; the recorder must be closed.
pub(crate) fn report_monitoring(recorder: &Recorder, change: MonitoringChange) {
    put(recorder, Monitoring { change });
}
