//! Samples: the call stacks of all threads, each triggered by a timer on the thread's CPU time.
//!
//! ```text
//! timer of the thread -- signal --> handler: unwind --> the thread's ring
//!                                                          | every 100 ms, and at the end
//!                             our helper thread:           v
//!                            new modules <-- refresh    drain --> sample streams, in chunks like events
//! ```
//!
//! Off unless the user requests samples, so that events have no extra cost otherwise. A thread is sampled from its
//! first event in a session to its last one.
//!
//! | module | what it is |
//! | --- | --- |
//! | this one | samples of a session: begin, end, and the work of the helper thread |
//! | [`session_samples`] | the state of a session's samples |
//! | [`sampled_threads`] | a record, a ring and a timer for each thread |
//! | [`handler`] | the signal handler |
//! | [`ring_record`] | the format of records in a ring |
//! | [`creators`] | stacks on which regions and tasks are created |
//! | [`runtime_state`] | the runtime's state of the interrupted thread |
//! | [`unwind`] | the frames of a stack |
//! | [`loaded_code`], [`unwind_rules`] | unwind information of modules, for handlers |
//! | [`processor`] | registers, and other code that depends on the CPU architecture |
//! | [`drain`] | copies samples from the rings to streams |

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

/// Time between two drains.
const TICK: Duration = Duration::from_millis(100);
/// Maximum time that the end of the program waits for the helper thread.
const PATIENCE: Duration = Duration::from_millis(100);
/// Maximum number of samples per second of all CPUs together.
const MAX_PER_SECOND: u64 = 20_000;

/// Sets the runtime that is queried for states and frames; `None` for no queries.
pub(crate) fn ask_by(lookup: Option<Lookup>) {
    runtime_state::ask_by(lookup);
}

/// The part of a session for samples.
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

    /// In a forked child: none of the parent's threads and timers exist.
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
    /// Starts sampling threads that begin from now on, if the user requests it.
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

    /// The calling thread has its first event of the session in this stream.
    fn thread_begins(&self, session: &'static Session, stream: &Stream) {
        thread_ends(stream);
        // Acquire; pairs with Release in `begin`.
        if self.is_on.load(Ordering::Acquire) {
            stack::with_much(|| self.sample_thread(session, stream));
        }
    }

    /// Starts sampling the calling thread.
    #[cold]
    #[inline(never)]
    fn sample_thread(&self, session: &'static Session, stream: &Stream) {
        // The runtime may create its data for answering at the first call, which should not happen in a handler.
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

    /// Writes the samples taken so far to the trace, unless another thread is doing so.
    fn drain(&self, session: &'static Session) {
        // Acquire; pairs with Release in `begin`.
        if self.has_begun.load(Ordering::Acquire)
            && let Some(mut drain) = self.drain.try_lock_for(PATIENCE)
        {
            drain.run(session);
        }
    }

    /// Stops sampling, and writes the remaining samples to the trace.
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
        // With a time limit: the thread may be waiting for the loader, whose lock the calling thread may hold.
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

    /// The work of the helper thread.
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

    /// Stops sampling if the program has installed its own handler for the signal, which would receive the timers'
    /// signals.
    fn look_after_signal(&self, session: &Session) {
        let signal = self.signal.load(Ordering::Relaxed);
        if !timer::is_handled_by(signal, handler::handle) {
            // Relaxed: signals sent in the meantime are no worse than those sent before.
            self.is_signal_taken.store(true, Ordering::Relaxed);
            self.is_on.store(false, Ordering::Relaxed);
            self.disarm(session);
        }
    }

    /// Descriptions of problems.
    fn problems(&self) -> Vec<String> {
        let threads = |count: &AtomicU32| count.load(Ordering::Relaxed);
        let signal = self.signal.load(Ordering::Relaxed);
        let error = std::io::Error::from_raw_os_error(self.timer_error.load(Ordering::Relaxed));
        let of_threads = [
            (threads(&self.blocked), format!("these threads block signal {signal}")),
            (threads(&self.without_timer), format!("the system provides no timer: {error}")),
            (threads(&self.too_many), "the process has too many threads or too little memory".to_owned()),
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
                "tasks without the call stack of their creation, because there was no space for this call stack: {without}"
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

/// The user's request.
fn wanted(sample: Sample) -> Option<Wanted> {
    match sample {
        Sample::Off => None,
        Sample::On(wanted) => Some(wanted),
    }
}

/// Tries `perf_event_open` on the calling thread.
///
/// # Errors
/// Why it is unavailable.
fn may_perf() -> Result<(), String> {
    const NEVER_NS: u64 = 1 << 40;
    // The clock ends before it sends a signal.
    match Ticker::on_this_thread(libc::SIGURG, NEVER_NS) {
        Ok(ticker) => {
            ticker.end();
            Ok(())
        }
        Err(error) => Err(format!(
            "perf_event_open: {error}; a container's seccomp filter or /proc/sys/kernel/perf_event_paranoid may forbid this call; --sample=cpu needs no privileges"
        )),
    }
}

/// The CPU time between two samples of a thread, in nanoseconds: as requested, but limited by the maximum number of
/// samples of all CPUs.
fn period_ns(rate: u32) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let bound = u64::from(system::processors()) * SECOND / MAX_PER_SECOND;
    (SECOND / u64::from(rate)).max(bound)
}
