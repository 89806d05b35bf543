//! Copies samples from the threads' rings to their sample streams. A thread gets a stream with its first sample.

use std::collections::BTreeSet;

use ompt_sys::{ompt_state_t, ompt_task_flag_t};
use omptrace_trace_format::block::ClockPair;
use omptrace_trace_format::event::{self, SamplesLost, WideRow};
use omptrace_trace_format::field::{Address, Id, Ticks};
use omptrace_trace_format::stack::Stacks;

use crate::os::time::clock;
use crate::recorder::recorder::{self, Recorder};
use crate::recorder::thread_stream::{Kind, SamplesOf};
use crate::samples::loaded_code;
use crate::samples::ring_record::{Context, Sample, Taken};
use crate::samples::sampled_threads;
use crate::samples::sampled_threads::{MAX_FRAMES, Sampled};
use crate::session::cold_path;
use crate::session::loaded_modules::Code;
use crate::session::{self, Session};

/// State that is kept between two drains.
#[derive(Debug, Default)]
pub(super) struct Drain {
    /// Indexed by the number of the thread's record.
    streams: Vec<Option<SampleStream>>,
    /// The clock pairs at the last drain and at the one before. A thread may be interrupted between the time of its
    /// sample and storing it, so a sample may be older than the last drain.
    times: Option<[ClockPair; 2]>,
    noted: NotedModules,
}

/// The modules that sample streams have reported, identified by the address of their copied code.
#[derive(Debug, Default)]
struct NotedModules(BTreeSet<usize>);

impl Drain {
    /// Starts: samples may arrive from now on.
    pub(super) fn begin(&mut self) {
        self.times = Some([clock::pair().0; 2]);
    }

    /// Writes the samples in the rings of the session's threads.
    pub(super) fn run(&mut self, session: &'static Session) {
        let now = clock::pair().0;
        let [last, since] = self.times.unwrap_or([now; 2]);
        self.times = Some([now, last]);
        for record in sampled_threads::all() {
            // Checked before reading the ring, so that everything from before the end is read.
            let has_ended = record.has_ended();
            if record.is_of(session) {
                self.write(session, record, since, has_ended);
            }
            if has_ended {
                record.give_back();
            }
        }
    }

    fn write(&mut self, session: &'static Session, record: &Sampled, since: ClockPair, has_ended: bool) {
        let number = record.number();
        if self.streams.len() <= number {
            self.streams.resize_with(number + 1, || None);
        }
        let mut stream = self.streams[number].take();
        if stream.is_none() && record.has_news() {
            stream = SampleStream::begin(record, since);
        }
        let Some(mut stream) = stream else { return };
        cold_path::on_stream(stream.recorder, || {
            stream.of.since = since;
            stream.of.newest = stream.of.newest.max(since.ticks);
            stream.take(session, record, &mut self.noted);
        });
        if has_ended {
            cold_path::leave_stream(session, stream.recorder);
        } else {
            self.streams[number] = Some(stream);
        }
    }
}

/// The sample stream of a thread.
#[derive(Debug)]
struct SampleStream {
    recorder: &'static Recorder,
    of: SamplesOf,
    /// The stacks of the current chunk.
    stacks: Stacks,
}

impl SampleStream {
    /// `None` if there is no memory, or recording has ended.
    fn begin(record: &Sampled, since: ClockPair) -> Option<SampleStream> {
        let recorder = recorder::take()?;
        if !recorder.begin_stream(session::next_stream()) {
            recorder.give_back();
            return None;
        }
        Some(SampleStream {
            recorder,
            of: SamplesOf {
                thread_stream: record.stream(),
                period_ns: record.period_ns(),
                since,
                newest: since.ticks,
            },
            stacks: Stacks::with_capacity(MAX_FRAMES),
        })
    }

    /// Writes the samples in the thread's ring.
    fn take(&mut self, session: &'static Session, record: &Sampled, noted: &mut NotedModules) {
        let mut words = Vec::new();
        while record.pop(&mut words) {
            let Some((taken, frames)) = Taken::of_words(&words) else {
                continue;
            };
            self.note_modules(session, frames, noted);
            match taken {
                Taken::Sample(sample) if !self.put_sample(session, &sample, frames) => {
                    record.lose(sample.ticks, sample.weight_ns);
                }
                Taken::Sample(_) => {}
                Taken::Context(context) => self.put_context(session, &context, frames),
            }
        }
        if let Some((samples, weight_ns, since)) = record.take_lost() {
            let row = SamplesLost { begin: Ticks(since), samples, weight_ns };
            let put = self.put(session, clock::ticks(), |_, ticks, out| row.encode(ticks, out));
            if !put {
                record.give_lost_back(samples, weight_ns);
            }
        }
    }

    fn put_sample(&mut self, session: &'static Session, sample: &Sample, frames: &[u64]) -> bool {
        let [exit_frame, enter_frame] = sample.inside;
        self.put(session, sample.ticks, |stacks, ticks, out| {
            let row = event::Sample {
                weight_ns: sample.weight_ns,
                state: ompt_state_t(sample.answer.state),
                wait_id: Address(sample.answer.wait_id),
                task_flags: ompt_task_flag_t(sample.answer.task_flags),
                exit_frame,
                enter_frame,
                end: sample.end,
                stack: stacks.shorten(frames),
            };
            row.encode(ticks, out)
        })
    }

    fn put_context(&mut self, session: &'static Session, context: &Context, frames: &[u64]) {
        self.put(session, context.ticks, |stacks, ticks, out| {
            let row = event::Context {
                parallel_data: Id(context.parallel_data),
                task_data: Id(context.task_data),
                end: context.end,
                stack: stacks.shorten(frames),
            };
            row.encode(ticks, out)
        });
    }

    /// Puts an event with time `now` into the chunk or, if it does not fit, into a new one. False if no chunk is
    /// available.
    fn put(
        &mut self,
        session: &'static Session,
        now: u64,
        mut encode: impl FnMut(&mut Stacks, u64, &mut [u64]) -> Option<usize>,
    ) -> bool {
        // An event from before the chunk's start gets the time of that start.
        let now = now.max(self.of.newest);
        let recorder = self.recorder;
        let stacks = &mut self.stacks;
        let mut attempt = |stacks: &mut Stacks| {
            let encode = |_: &mut _, ticks, out: &mut [u64]| encode(stacks, ticks, out);
            recorder.put_slowly(now, encode).is_some()
        };
        let usable = recorder.has_chunk() && session.owns(recorder);
        let mut done = usable && attempt(stacks);
        if !done {
            recorder.stream.kind.set(Kind::Samples(self.of));
            stacks.clear();
            done = session.renew(recorder).is_some() && attempt(stacks);
        }
        if done {
            self.of.newest = now;
        }
        done
    }

    /// Reports the modules of these frames that no event or sample has reported yet.
    fn note_modules(&mut self, session: &'static Session, frames: &[u64], noted: &mut NotedModules) {
        let Some(loaded) = loaded_code::loaded() else { return };
        for frame in frames {
            // A return address may be just after the end of its function.
            let code = frame.saturating_sub(1);
            let Some(module) = loaded.module_at(code) else {
                continue;
            };
            if noted.0.insert(std::ptr::from_ref(module).addr()) {
                let recorder = self.recorder;
                let newest = self.of.newest;
                session.modules.note(code, Code::Sampled, newest, &recorder.stream.modules, |module| {
                    self.put(session, newest, |_, ticks, out| module.encode(ticks, out))
                });
            }
        }
    }
}
