//! The counters of a session, and a reading of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use omptrace_settings::counters::{Counter, Source, Usage};
use omptrace_settings::value::Switch;
use omptrace_trace_format::event;
use omptrace_trace_format::metadata::{Counting, Metadata};

use super::processor::Trial;
use crate::config::Config;
use crate::os::log::warning;
use crate::os::time::{clock, usage};
use crate::recorder::guarded::guarded;
use crate::recorder::hardware_counters::Registers;
use crate::recorder::recorder::Mode;
use crate::recorder::this_thread;
use crate::recorder::thread_stream::Stream;
use crate::runtime::lookup::Lookup;
use crate::session::cold_path;
use crate::session::hooks::{OfSessions, SessionHooks};
use crate::session::{self, Session};

/// Maximum number of values in a reading: those that the user chooses, and those of `--cpu-time`.
const MAX_VALUES: usize = omptrace_settings::counters::MAX_COUNTERS + 3;
/// The value of a counter that does not count.
const NOT_COUNTING: u64 = u64::MAX;

/// Whether the runtime has callbacks that read counters.
static IS_CALLED: AtomicBool = AtomicBool::new(false);

/// The counters of a session.
#[derive(Debug)]
struct Counters {
    /// The counters that are read, in the order of their values.
    read: OnceLock<Vec<Source>>,
    /// The description of the counters in the metadata.
    counting: OnceLock<Counting>,
    /// Number of threads for which the CPU's counters could not be opened.
    without_registers: AtomicU32,
}

/// Whether any counters are requested.
pub(crate) fn are_wanted(config: &Config) -> bool {
    !wanted(config).is_empty()
}

/// The counters that the user requests, without duplicates.
fn wanted(config: &Config) -> Vec<&'static Counter> {
    let mut wanted = Vec::new();
    wanted.extend(config.counters.iter().flat_map(|list| &list.0).copied());
    if config.cpu_time == Switch::On {
        let further = Counter::of_cpu_time().filter(|counter| !wanted.contains(counter));
        wanted.extend(further.collect::<Vec<_>>());
    }
    wanted
}

/// The runtime calls callbacks that read counters from now on.
pub(super) fn is_called() {
    // Relaxed: read by the thread that starts a session, which is this one or in a child of this process.
    IS_CALLED.store(true, Ordering::Relaxed);
}

/// The counters of all sessions.
static COUNTERS: OfSessions<Counters> = OfSessions::new();

/// The part of a session for counters.
#[derive(Debug)]
pub(crate) struct Reader;

pub(crate) static SESSION_HOOKS: Reader = Reader;

impl SessionHooks for Reader {
    fn prepare(&self, session: &'static Session) {
        COUNTERS.add(session, Counters::new());
    }

    fn begin(&self, session: &'static Session) {
        if let Some(counters) = COUNTERS.of(session) {
            counters.begin(session);
        }
    }

    fn thread_begins(&self, session: &'static Session, stream: &Stream) {
        if let Some(counters) = COUNTERS.of(session) {
            counters.thread_begins(stream);
        }
    }

    fn thread_ends(&self, stream: &Stream) {
        thread_ends(stream);
    }

    fn end(&self, session: &'static Session) {
        if let Some(counters) = COUNTERS.of(session) {
            counters.end(session);
        }
    }
}

/// Closes the counters of the calling thread, which has this stream.
fn thread_ends(stream: &Stream) {
    stream.registers.take().end();
}

/// Records the calling thread's counters.
#[inline]
pub(super) fn read() {
    let recorder = this_thread::recorder();
    let current = session::current().filter(|_| is_recording());
    let Some(counters) = current.and_then(|session| COUNTERS.of(session)) else {
        return;
    };
    let mut values = [NOT_COUNTING; MAX_VALUES];
    let values = counters.values(&recorder.stream, &mut values);
    if values.is_empty() {
        return;
    }
    let row = event::Counters { values: values.into() };
    if !recorder.try_put_wide(&row) {
        guarded(|| cold_path::counters(values));
    }
}

fn is_recording() -> bool {
    matches!(Mode::current(), Mode::Record | Mode::Child)
}

impl Counters {
    /// No counters yet.
    fn new() -> Counters {
        Counters { read: OnceLock::new(), counting: OnceLock::new(), without_registers: AtomicU32::new(0) }
    }

    /// Finds out which of the requested counters are available.
    fn begin(&self, session: &Session) {
        let wanted = wanted(&session.config);
        if wanted.is_empty() {
            return;
        }
        let (mut read, mut counting) = (Vec::new(), Counting::default());
        let mut trial = Trial::default();
        for counter in wanted {
            match refusal(counter.source, &mut trial) {
                Some(why) => _ = counting.missing.insert(counter.name.to_owned(), why),
                None => {
                    counting.counters.push(counter.name.to_owned());
                    read.push(counter.source);
                }
            }
        }
        // Relaxed: see `is_called`.
        // Before the runtime is initialized, as in a session started by MPI, its callbacks are unknown.
        if Lookup::current().is_some() && !IS_CALLED.load(Ordering::Relaxed) {
            let why = "the runtime's tools interface has no callbacks at which counters could be read";
            counting.problems.push(why.to_owned());
        }
        for line in counting.not_counted() {
            warning!("counters: {line}");
        }
        counting.reading_ticks = (!read.is_empty()).then(|| reading_ticks(&read));
        session.write_metadata(&Metadata { counting: Some(counting.clone()), ..Metadata::default() });
        let _ = self.counting.set(counting);
        let _ = self.read.set(read);
    }

    /// Opens the counters of the calling thread, which has its first event of the session in this stream.
    fn thread_begins(&self, stream: &Stream) {
        thread_ends(stream);
        let numbers = self.sources().iter().filter_map(|source| match source {
            Source::Processor(number) => Some(*number),
            Source::Kernel(_) => None,
        });
        match Registers::of_this_thread(numbers) {
            Some(registers) => stream.registers.set(registers),
            // Relaxed: a count.
            None => _ = self.without_registers.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Writes problems to the trace's metadata.
    fn end(&self, session: &Session) {
        let threads = self.without_registers.load(Ordering::Relaxed);
        if let (1.., Some(counting)) = (threads, self.counting.get()) {
            let mut counting = counting.clone();
            counting.problems.push(format!(
                "threads without hardware counters, because all counter registers were in use: {threads}"
            ));
            session.write_metadata(&Metadata { counting: Some(counting), ..Metadata::default() });
        }
    }

    fn sources(&self) -> &[Source] {
        self.read.get().map_or(&[], Vec::as_slice)
    }

    /// The calling thread's values.
    #[inline]
    fn values<'v>(&self, stream: &Stream, values: &'v mut [u64; MAX_VALUES]) -> &'v [u64] {
        let sources = self.sources();
        let registers = stream.registers.get();
        read_all(sources, registers.values(), values);
        &values[..sources.len().min(MAX_VALUES)]
    }
}

/// Reads the calling thread's counters; `registers` are the values of those that the CPU counts.
#[inline]
fn read_all(sources: &[Source], mut registers: impl Iterator<Item = Option<u64>>, values: &mut [u64]) {
    let mut usage = None;
    for (source, value) in sources.iter().zip(values.iter_mut()) {
        let found = match source {
            Source::Kernel(Usage::TaskClock) => usage::processor_time_ns(),
            Source::Kernel(of) => {
                let usage = usage.get_or_insert_with(usage::of_this_thread);
                usage.as_ref().map(|usage| of_usage(*of, usage))
            }
            Source::Processor(_) => registers.next().flatten(),
        };
        *value = found.unwrap_or(NOT_COUNTING);
    }
}

/// The shortest duration of several readings.
fn reading_ticks(sources: &[Source]) -> u64 {
    const READINGS: usize = 8;
    let mut values = [NOT_COUNTING; MAX_VALUES];
    let durations = std::iter::repeat_with(|| {
        let begin = clock::ticks();
        read_all(sources, std::iter::empty(), &mut values);
        clock::ticks().wrapping_sub(begin)
    });
    durations.take(READINGS).min().unwrap_or(0)
}

/// Why the calling thread cannot have a counter; `None` if it can.
fn refusal(source: Source, trial: &mut Trial) -> Option<String> {
    let refuses = || "the system does not report this counter".to_owned();
    match source {
        Source::Kernel(Usage::TaskClock) => match usage::processor_time_ns() {
            None => Some(refuses()),
            Some(_) => None,
        },
        Source::Kernel(_) => match usage::of_this_thread() {
            None => Some(refuses()),
            Some(_) => None,
        },
        Source::Processor(number) => trial.refusal(number),
    }
}

/// The value of a counter, taken from `usage`.
fn of_usage(count: Usage, usage: &libc::rusage) -> u64 {
    let sum = match count {
        Usage::TaskClock => return NOT_COUNTING,
        Usage::ContextSwitches => usage.ru_nvcsw + usage.ru_nivcsw,
        Usage::Preemptions => usage.ru_nivcsw,
        Usage::PageFaults => usage.ru_minflt + usage.ru_majflt,
    };
    sum as u64
}
