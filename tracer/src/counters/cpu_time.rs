//! The CPU time of the process and its threads, when each starts and ends.
//!
//! Costs a system call at a thread's start and at its end. When the session ends, the thread that ends it reads the
//! clocks of all threads that still exist. If the process is killed before, there are no times.
//!
//! The time for which others had a thread's CPU is in a file in `/proc`. While the program runs, the tracer does not
//! open files, not even for a moment, because a file that the program opens meanwhile would get a different descriptor
//! number. So the file is read when the program ends: first by a function that `exit` calls before the runtimes end
//! their threads, which most runtimes do before the session ends, and again when the session ends. For threads that
//! ended earlier, the time is unknown.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use omptrace_trace_format::metadata::{CpuTime, Metadata, ThreadCpuTime};

use crate::os::system;
use crate::os::threads::containment::contained;
use crate::os::time::usage;
use crate::recorder::thread_stream::Stream;
use crate::session::hooks::{OfSessions, SessionHooks};
use crate::session::{self, Session};

/// Maximum number of threads of a session whose times are kept; further threads are only counted.
const MAX_THREADS: usize = 1 << 12;

/// Maximum number of threads for which the delay is read: each takes opening a file.
const MAX_DELAYS: usize = 256;

/// Marks a time that was not read.
const NOT_READ: u64 = u64::MAX;

/// A thread; all zeros if unused.
#[derive(Debug)]
struct Entry {
    /// The number of the thread's stream; 0 until the other fields are set.
    stream: AtomicU32,
    tid: AtomicI32,
    begin_ns: AtomicU64,
    end_ns: AtomicU64,
    /// The time for which others had the thread's CPU according to the last reading, plus 1; 0 if it was not read.
    seen_delay: AtomicU64,
}

/// The threads of a session.
#[derive(Debug)]
struct Threads {
    process_begin_ns: Option<u64>,
    entries: &'static [Entry],
    /// Number of threads that have started; may exceed the number of entries.
    begun: AtomicU32,
    /// The times at the session's end, without the tracer's own work after that.
    at_end: OnceLock<CpuTime>,
}

/// The threads of all sessions.
static THREADS: OfSessions<Threads> = OfSessions::new();

/// Whether [`exits`] is registered with `exit`. Inherited by forked children.
static WATCHES_EXIT: AtomicBool = AtomicBool::new(false);

/// Called by `exit` while runtimes still have their threads: their destructors run later.
extern "C" fn exits() {
    let _ = contained(|| {
        if let Some(threads) = session::current().and_then(|session| THREADS.of(session)) {
            threads.delays().for_each(drop);
        }
    });
}

fn watch_exit() {
    // SAFETY: a function of this library, which is never unloaded (`-z nodelete`).
    unsafe { libc::atexit(exits) };
}

/// The part of a session for CPU times.
#[derive(Debug)]
pub(crate) struct CpuTimes;

pub(crate) static SESSION_HOOKS: CpuTimes = CpuTimes;

impl SessionHooks for CpuTimes {
    fn prepare(&self, session: &'static Session) {
        THREADS.add(session, Threads::new());
    }

    fn runtime_joins(&self) {
        // `exit` calls the function registered last first, and the libgomp adapter, before it initializes the tracer,
        // registers a function that ends threads.
        watch_exit();
    }

    fn thread_begins(&self, session: &'static Session, stream: &Stream) {
        // Relaxed: registering once is sufficient, and twice is harmless.
        if !WATCHES_EXIT.load(Ordering::Relaxed) && !WATCHES_EXIT.swap(true, Ordering::Relaxed) {
            watch_exit();
        }
        if let Some(threads) = THREADS.of(session) {
            threads.begin(stream);
        }
    }

    fn thread_ends(&self, stream: &Stream) {
        let session =
            session::current().filter(|session| std::ptr::eq(stream.spool.get(), &raw const session.spool));
        if let Some(threads) = session.and_then(|session| THREADS.of(session)) {
            threads.end(stream);
        }
    }

    fn end(&self, session: &'static Session) {
        if let Some(threads) = THREADS.of(session) {
            let _ = threads.at_end.set(threads.now());
        }
    }

    fn write_news(&self, session: &'static Session) {
        if let Some(threads) = THREADS.of(session) {
            let cpu_time = threads.at_end.get().cloned().unwrap_or_else(|| threads.now());
            session.write_metadata(&Metadata { cpu_time: Some(cpu_time), ..Metadata::default() });
        }
    }
}

impl Threads {
    /// No threads yet.
    fn new() -> Threads {
        let memory = system::map_zeroed(MAX_THREADS * size_of::<Entry>());
        let entries = memory.map_or(&[][..], |memory| {
            // SAFETY: zeroed memory of the size, aligned to a page, never unmapped; all zeros is an entry.
            unsafe { std::slice::from_raw_parts(memory.cast::<Entry>(), MAX_THREADS) }
        });
        Threads {
            process_begin_ns: usage::processor_time_of_process_ns(),
            entries,
            begun: AtomicU32::new(0),
            at_end: OnceLock::new(),
        }
    }

    /// Adds the calling thread, which has its first event of the session in this stream.
    fn begin(&self, stream: &Stream) {
        // Relaxed: each thread gets another number; nothing else is shared.
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        stream.cpu_time.set(0);
        let (Some(entry), Some(begin_ns)) = (self.entries.get(number as usize), usage::processor_time_ns())
        else {
            return;
        };
        stream.cpu_time.set(number + 1);
        // Relaxed: ordered by the store to `stream`.
        entry.tid.store(system::thread_id(), Ordering::Relaxed);
        entry.begin_ns.store(begin_ns, Ordering::Relaxed);
        entry.end_ns.store(NOT_READ, Ordering::Relaxed);
        entry.seen_delay.store(0, Ordering::Relaxed);
        // Release; pairs with Acquire in `now`.
        entry.stream.store(stream.number.get(), Ordering::Release);
    }

    /// The calling thread, which has this stream, ends.
    fn end(&self, stream: &Stream) {
        let number = stream.cpu_time.replace(0);
        let entry = number.checked_sub(1).and_then(|number| self.entries.get(number as usize));
        if let (Some(entry), Some(end_ns)) = (entry, usage::processor_time_ns()) {
            // Relaxed: only the number is shared.
            entry.end_ns.store(end_ns, Ordering::Relaxed);
        }
    }

    /// The delays of the threads for which they are known, in nanoseconds.
    fn delays(&self) -> impl Iterator<Item = u64> {
        // Relaxed: threads that start at this moment do not matter.
        let begun = self.begun.load(Ordering::Relaxed) as usize;
        self.entries.iter().take(begun.min(MAX_DELAYS)).filter_map(Entry::delay_ns)
    }

    /// The times known now.
    fn now(&self) -> CpuTime {
        // Relaxed: threads that start at this moment do not matter.
        let begun = self.begun.load(Ordering::Relaxed);
        let entries = self.entries.iter().take(begun as usize);
        let threads: Vec<ThreadCpuTime> = entries.filter_map(Entry::time).collect();
        CpuTime {
            delay_ns: self.delays().reduce(u64::saturating_add),
            process_begin_ns: self.process_begin_ns,
            process_end_ns: usage::processor_time_of_process_ns(),
            unknown_threads: u64::from(begun).saturating_sub(threads.len() as u64),
            threads,
        }
    }
}

impl Entry {
    /// The last known time for which others had the thread's CPU, in nanoseconds; `None` if it was never read, or the
    /// system does not provide it.
    fn delay_ns(&self) -> Option<u64> {
        // Acquire; pairs with Release in `begin`. Relaxed: ordered by that.
        let has_begun = self.stream.load(Ordering::Acquire) != 0;
        let is_here = has_begun && self.end_ns.load(Ordering::Relaxed) == NOT_READ;
        let now = is_here.then(|| usage::delay_of_thread_ns(self.tid.load(Ordering::Relaxed))).flatten();
        // Relaxed: a single number. It only grows, so the value is valid whichever thread stores last.
        if let Some(ns) = now {
            self.seen_delay.store(ns.saturating_add(1), Ordering::Relaxed);
        }
        now.or_else(|| self.seen_delay.load(Ordering::Relaxed).checked_sub(1))
    }

    /// The thread's CPU time until its end, or until now; `None` if unknown.
    fn time(&self) -> Option<ThreadCpuTime> {
        // Acquire; pairs with Release in `begin`.
        let stream = self.stream.load(Ordering::Acquire);
        // Relaxed: ordered by the load of `stream`.
        let (tid, begin_ns) = (self.tid.load(Ordering::Relaxed), self.begin_ns.load(Ordering::Relaxed));
        let end_ns = match self.end_ns.load(Ordering::Relaxed) {
            // If the thread ended without notice, the system has no such clock, or that of a newer thread.
            NOT_READ => usage::processor_time_of_thread_ns(tid)?,
            end_ns => end_ns,
        };
        (stream != 0 && end_ns >= begin_ns).then_some(ThreadCpuTime { stream, begin_ns, end_ns })
    }
}
