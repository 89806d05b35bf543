//! The processor time of the process and of its threads: when each begins, and when it ends.
//!
//! It costs a system call at the begin of a thread, and one at its end. When the session ends, the thread that ends it reads the
//! clocks of those that are still there. A process that is killed before that leaves none.
//!
//! How long others had a thread's processor is in a file. While the program runs, nobody opens one for a moment: a file that the
//! program opens then would have another number. So it is read when the program ends: by a function that `exit` calls before the
//! runtimes end their threads, as most do before the session ends, and again when that ends. Of a thread that ended earlier it is not
//! known.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use omptrace_trace_format::metadata::{CpuTime, Metadata, ThreadCpuTime};

use crate::os::system;
use crate::os::threads::containment::contained;
use crate::os::time::usage;
use crate::recorder::thread_stream::Stream;
use crate::runtime::lookup::Lookup;
use crate::session::hooks::{OfSessions, SessionHooks};
use crate::session::{self, Session};

/// Threads of a session whose times are kept. What more there are is counted only.
const MAX_THREADS: usize = 1 << 12;

/// Threads that are asked how long others had their processors: that takes a file for each.
const MAX_DELAYS: usize = 256;

/// No time was read.
const NOT_READ: u64 = u64::MAX;

/// A thread. All zeros is none.
#[derive(Debug)]
struct Entry {
    /// The number of its stream; 0 until the rest is there.
    stream: AtomicU32,
    tid: AtomicI32,
    begin_ns: AtomicU64,
    end_ns: AtomicU64,
    /// How long others had had its processor when that was read last: 1 more than that; 0 until then.
    seen_delay: AtomicU64,
}

/// The threads of a session.
#[derive(Debug)]
struct Threads {
    process_begin_ns: Option<u64>,
    entries: &'static [Entry],
    /// Those that have begun: one more than there are entries, or many more.
    begun: AtomicU32,
    /// The times when the session ended, without the tracer's own work since.
    at_end: OnceLock<CpuTime>,
}

/// The threads of all sessions.
static THREADS: OfSessions<Threads> = OfSessions::new();

/// Whether `exit` calls [`exits`], and calls it before what runtimes registered; so it does in children.
static WATCHES_EXIT: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// The program ends, and runtimes still have their threads: their destructors come later.
extern "C" fn exits() {
    let _ = contained(|| {
        if let Some(threads) = session::current().and_then(|session| THREADS.of(session)) {
            threads.delays().for_each(drop);
        }
    });
}

/// Processor times take part in sessions.
#[derive(Debug)]
pub(crate) struct CpuTimes;

pub(crate) static SESSION_HOOKS: CpuTimes = CpuTimes;

impl SessionHooks for CpuTimes {
    fn prepare(&self, session: &'static Session) {
        THREADS.add(session, Threads::new());
    }

    fn thread_begins(&self, session: &'static Session, stream: &Stream) {
        // The last that is registered comes first, and the adapter for libgomp has a function that ends threads: it registers that when
        // the tracer is initialized. A session of MPI may begin before, so that its runtime's first worker asks once more. Relaxed:
        // once is enough, and twice does no harm.
        let watches = &WATCHES_EXIT[usize::from(Lookup::current().is_some())];
        if !watches.load(Ordering::Relaxed) && !watches.swap(true, Ordering::Relaxed) {
            // SAFETY: a function of this library, which is never unloaded (`-z nodelete`).
            unsafe { libc::atexit(exits) };
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
    /// None yet.
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

    /// The calling thread has its first event of the session, in this stream.
    fn begin(&self, stream: &Stream) {
        // Relaxed: each gets another number. That is all that is shared.
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        stream.cpu_time.set(0);
        let (Some(entry), Some(begin_ns)) = (self.entries.get(number as usize), usage::processor_time_ns())
        else {
            return;
        };
        stream.cpu_time.set(number + 1);
        // Relaxed: ordered by the number of the stream.
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
            // Relaxed: only the number is passed on.
            entry.end_ns.store(end_ns, Ordering::Relaxed);
        }
    }

    /// How long others had the CPU of each thread of which that is known.
    fn delays(&self) -> impl Iterator<Item = u64> {
        // Relaxed: those that begin in this moment do not matter.
        let begun = self.begun.load(Ordering::Relaxed) as usize;
        self.entries.iter().take(begun.min(MAX_DELAYS)).filter_map(Entry::delay_ns)
    }

    /// What is known now.
    fn now(&self) -> CpuTime {
        // Relaxed: those that begin in this moment do not matter.
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
    /// How long others had the thread's processor, as far as that was seen; `None` where it never was, or the system does not say.
    fn delay_ns(&self) -> Option<u64> {
        // Acquire; pairs with Release in `begin`. Relaxed: ordered by that.
        let has_begun = self.stream.load(Ordering::Acquire) != 0;
        let is_here = has_begun && self.end_ns.load(Ordering::Relaxed) == NOT_READ;
        let now = is_here.then(|| usage::delay_of_thread_ns(self.tid.load(Ordering::Relaxed))).flatten();
        // Relaxed: a number by itself. It grows, so whichever of two threads' readings stays is true.
        if let Some(ns) = now {
            self.seen_delay.store(ns.saturating_add(1), Ordering::Relaxed);
        }
        now.or_else(|| self.seen_delay.load(Ordering::Relaxed).checked_sub(1))
    }

    /// The thread's time until its end, or until now. `None` where it is not known.
    fn time(&self) -> Option<ThreadCpuTime> {
        // Acquire; pairs with Release in `begin`.
        let stream = self.stream.load(Ordering::Acquire);
        // Relaxed: ordered by the number of the stream.
        let (tid, begin_ns) = (self.tid.load(Ordering::Relaxed), self.begin_ns.load(Ordering::Relaxed));
        let end_ns = match self.end_ns.load(Ordering::Relaxed) {
            // Where a thread is gone without a word, the system knows no such clock, or that of a newer thread.
            NOT_READ => usage::processor_time_of_thread_ns(tid)?,
            end_ns => end_ns,
        };
        (stream != 0 && end_ns >= begin_ns).then_some(ThreadCpuTime { stream, begin_ns, end_ns })
    }
}
