//! Samples: the call stacks of all threads, each by a timer on the thread's processor time.
//!
//! ```text
//! timer of the thread -- signal --> handler: unwind --> the thread's ring
//!                                                          | each 100 ms, and at the end
//!                                        a thread of ours: v
//!                       modules that came <-- refresh    drain --> streams of samples, in chunks as events are
//! ```
//!
//! Off unless the user asks for it: then events cost what they cost without. A thread is sampled from its first event in a
//! session to its last one.
//!
//! | module | what it is |
//! | --- | --- |
//! | this one | samples of a session: begin, end, and what the thread does that drains |
//! | [`session_samples`] | what a session has for its samples |
//! | [`sampled_threads`] | a record, a ring and a timer for each thread |
//! | [`handler`] | what the signal does |
//! | [`ring_record`] | what lies in a ring |
//! | [`creators`] | stacks of those who created regions and tasks |
//! | [`runtime_state`] | what the runtime says of the interrupted thread |
//! | [`unwind`] | the frames of a stack |
//! | [`loaded_code`], [`unwind_rules`] | unwind information of modules, for handlers |
//! | [`processor`] | registers, and what else depends on the processor |
//! | [`drain`] | from the rings into streams |

mod creators;
mod drain;
mod handler;
mod loaded_code;
mod processor;
mod ring_record;
mod runtime_state;
mod sampled_threads;
mod session_samples;
mod unwind;
mod unwind_rules;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use omptrace_settings::value::{Sample, Sampling as Wanted, SamplingClock};
use omptrace_trace_format::metadata::{Metadata, Sampling};

use crate::os::log::warning;
use crate::os::perf::Ticker;
use crate::os::system;
use crate::os::threads::stack;
use crate::os::time::timer;
use crate::recorder::this_thread;
use crate::recorder::thread_stream::Stream;
use crate::runtime::lookup::Lookup;
use crate::samples::sampled_threads::Refusal;
use crate::session::Session;
use crate::session::hooks::SessionHooks;
pub(crate) use creators::{OF_REGIONS, OF_TASKS};
use session_samples::{Samples, of};

/// How long samples lie in the rings.
const TICK: Duration = Duration::from_millis(100);
/// How long the end of the program waits for the thread that drains.
const PATIENCE: Duration = Duration::from_millis(100);
/// The most samples per second of all processors together.
const MAX_PER_SECOND: u64 = 20_000;

/// From now on the runtime behind `lookup` is asked for states and frames, or none.
pub(crate) fn ask_by(lookup: Option<Lookup>) {
    runtime_state::ask_by(lookup);
}

/// Samples take part in sessions.
#[derive(Debug)]
pub(crate) struct Sampler;

pub(crate) static SESSION_HOOKS: Sampler = Sampler;

impl SessionHooks for Sampler {
    fn prepare(&self, session: &'static Session) {
        session_samples::prepare(session);
    }

    fn begin(&self, session: &'static Session) {
        if let Some(samples) = of(session) {
            samples.begin(session);
        }
    }

    fn thread_begins(&self, session: &'static Session, stream: &Stream) {
        if let Some(samples) = of(session) {
            samples.thread_begins(session, stream);
        }
    }

    fn thread_ends(&self, stream: &Stream) {
        thread_ends(stream);
    }

    /// The child has none of its parent's threads and timers.
    fn in_child(&self) {
        sampled_threads::forget_all();
        creators::forget();
    }

    fn note_end(&self, session: &'static Session) {
        if let Some(samples) = of(session) {
            samples.drain(session);
        }
    }

    fn end(&self, session: &'static Session) {
        if let Some(samples) = of(session) {
            samples.end(session);
        }
    }
}

/// The calling thread, which has this stream, ends.
fn thread_ends(stream: &Stream) {
    let number = stream.sampled.take();
    let record = (number as usize).checked_sub(1).and_then(sampled_threads::of_number);
    if let Some(record) = record.filter(|record| record.is_of_this_thread()) {
        record.end();
    }
}

impl Samples {
    /// Threads that begin from now on are sampled, if the user wants that.
    fn begin(&'static self, session: &'static Session) {
        let Some(wanted) = wanted(session.config.sample) else {
            return;
        };
        let period_ns = period_ns(wanted.rate);
        // Relaxed: stored before `is_on`.
        self.period_ns.store(period_ns, Ordering::Relaxed);
        match self.prepare(session, wanted.clock) {
            Ok(()) => {
                // Release; pairs with Acquire in `thread_begins`, and in `drain` and `end`.
                self.has_begun.store(true, Ordering::Release);
                self.is_on.store(true, Ordering::Release);
            }
            Err(problem) => {
                warning!("no samples: {problem}");
                self.describe(session, vec![format!("no samples: {problem}")]);
                return;
            }
        }
        self.describe(session, Vec::new());
    }

    fn prepare(&'static self, session: &'static Session, clock: SamplingClock) -> Result<(), String> {
        if clock == SamplingClock::Perf {
            may_perf()?;
        }
        let signal = timer::take_signal(handler::handle)
            .ok_or("the program uses every real-time signal that the tracer tried")?;
        // Relaxed: stored before `is_on`.
        self.signal.store(signal, Ordering::Relaxed);
        loaded_code::refresh();
        self.drain.lock().begin();
        let drain = move || {
            this_thread::begin_own_work();
            self.run(session)
        };
        self.thread
            .start(c"omptrace-samples", drain)
            .map_err(|error| format!("cannot start the thread that writes samples: {error}"))
    }

    /// The calling thread has its first event of the session, in this stream.
    fn thread_begins(&self, session: &'static Session, stream: &Stream) {
        thread_ends(stream);
        // Acquire; pairs with Release in `begin`.
        if self.is_on.load(Ordering::Acquire) {
            stack::with_much(|| self.sample_thread(session, stream));
        }
    }

    /// Samples the calling thread from now on.
    #[cold]
    #[inline(never)]
    fn sample_thread(&self, session: &'static Session, stream: &Stream) {
        // What the runtime answers by may be made at the first call, which no handler shall do.
        runtime_state::ask();
        let signal = self.signal.load(Ordering::Relaxed);
        let period_ns = self.period_ns.load(Ordering::Relaxed);
        let Some(wanted) = wanted(session.config.sample) else {
            return;
        };
        let number = stream.number.get();
        let refused = match sampled_threads::begin(session, number, wanted.clock, signal, period_ns) {
            Ok(record) => return stream.sampled.set(record.number() as u32 + 1),
            Err(Refusal::Blocked) => &self.blocked,
            Err(Refusal::TooMany) => &self.too_many,
            Err(Refusal::NoTimer(error)) => {
                self.timer_error.store(error, Ordering::Relaxed);
                &self.without_timer
            }
        };
        // Relaxed: a count.
        refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Samples taken so far come into the trace, unless a thread is just at it.
    fn drain(&self, session: &'static Session) {
        // Acquire; pairs with Release in `begin`.
        if self.has_begun.load(Ordering::Acquire)
            && let Some(mut drain) = self.drain.try_lock_for(PATIENCE)
        {
            drain.run(session);
        }
    }

    /// No further samples; those that were taken come into the trace.
    fn end(&self, session: &'static Session) {
        // Acquire; pairs with Release in `begin`.
        if !self.has_begun.load(Ordering::Acquire) {
            return;
        }
        self.look_after_signal(session);
        self.is_on.store(false, Ordering::Relaxed);
        self.disarm(session);
        // Release; pairs with Acquire in `run`.
        self.shall_stop.store(true, Ordering::Release);
        self.thread.wake();
        // The thread may be waiting for the loader, whose lock the calling thread may have.
        self.thread.end(Some(PATIENCE));
        self.drain(session);
        let problems = self.problems();
        if !problems.is_empty() {
            self.describe(session, problems);
        }
    }

    fn disarm(&self, session: &Session) {
        let records = sampled_threads::all().filter(|record| record.is_of(session));
        records.for_each(sampled_threads::Sampled::disarm);
    }

    /// The thread that drains.
    fn run(&self, session: &'static Session) -> Option<()> {
        loop {
            self.thread.sleep(TICK);
            // Relaxed: as in `hurry`.
            self.is_hurried.store(false, Ordering::Relaxed);
            // Acquire; pairs with Release in `end`.
            if self.shall_stop.load(Ordering::Acquire) {
                return None;
            }
            loaded_code::refresh();
            self.drain(session);
            self.look_after_signal(session);
        }
    }

    /// Ends sampling where the program has given the signal a handler of its own, which gets what the timers send.
    fn look_after_signal(&self, session: &Session) {
        let signal = self.signal.load(Ordering::Relaxed);
        if !timer::is_handled_by(signal, handler::handle) {
            // Relaxed: what is sent meanwhile is as late as what was sent before.
            self.is_signal_taken.store(true, Ordering::Relaxed);
            self.is_on.store(false, Ordering::Relaxed);
            self.disarm(session);
        }
    }

    /// What came in the way.
    fn problems(&self) -> Vec<String> {
        let threads = |count: &AtomicU32| count.load(Ordering::Relaxed);
        let signal = self.signal.load(Ordering::Relaxed);
        let error = std::io::Error::from_raw_os_error(self.timer_error.load(Ordering::Relaxed));
        let of_threads = [
            (threads(&self.blocked), format!("they block signal {signal}")),
            (threads(&self.without_timer), format!("the system provides no timer: {error}")),
            (threads(&self.too_many), "there are too many threads, or there is too little memory".to_owned()),
            (
                sampled_threads::closed(),
                "the program has closed the file descriptor returned by perf_event_open".to_owned(),
            ),
        ];
        let of_threads = of_threads
            .into_iter()
            .filter(|(threads, _)| *threads > 0)
            .map(|(threads, why)| format!("threads without samples: {threads}, because {why}"));
        let taken = self.is_signal_taken.load(Ordering::Relaxed);
        let taken = taken.then(|| {
            format!("samples end early, because the program has its own handler for signal {signal}")
        });
        let without = creators::tasks_without_stack();
        let without = (without > 0).then(|| {
            format!(
                "tasks without the call stack of their creation, because there was no space for it: {without}"
            )
        });
        of_threads.chain(taken).chain(without).collect()
    }

    fn describe(&self, session: &Session, mut problems: Vec<String>) {
        let clock = wanted(session.config.sample).map_or(SamplingClock::Cpu, |wanted| wanted.clock);
        if clock == SamplingClock::Perf {
            problems.push(
                "samples do not include time in the kernel, because perf_event_open samples only user mode"
                    .to_owned(),
            );
        }
        session.write_metadata(&Metadata {
            sampling: Some(Sampling {
                clock: clock.name().to_owned(),
                period_ns: self.period_ns.load(Ordering::Relaxed),
                problems,
            }),
            ..Metadata::default()
        });
    }
}

/// What the user asks for.
fn wanted(sample: Sample) -> Option<Wanted> {
    match sample {
        Sample::Off => None,
        Sample::On(wanted) => Some(wanted),
    }
}

/// Tries `perf_event_open` on the calling thread.
///
/// # Errors
/// Why it is not to be had.
fn may_perf() -> Result<(), String> {
    const NEVER_NS: u64 = 1 << 40;
    // No signal is sent before the clock ends.
    match Ticker::on_this_thread(libc::SIGURG, NEVER_NS) {
        Ok(ticker) => {
            ticker.end();
            Ok(())
        }
        Err(error) => Err(format!(
            "perf_event_open: {error}; a container's seccomp filter or /proc/sys/kernel/perf_event_paranoid may forbid it. --sample=cpu needs no privileges"
        )),
    }
}

/// The time between two samples of a thread: as the user asks, and no more samples of all processors than the tracer takes.
fn period_ns(rate: u32) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let bound = u64::from(system::processors()) * SECOND / MAX_PER_SECOND;
    (SECOND / u64::from(rate)).max(bound)
}
