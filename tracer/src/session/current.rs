//! The session in progress: what it consists of, and what it says in metadata.
//!
//! Sessions are never freed: a thread may be in a callback at any moment. A process has one at a time. A second one follows
//! when the OpenMP runtime is unloaded and loaded again. A forked child that uses OpenMP has its own.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use omptrace_trace_format::Metadata;
use omptrace_trace_format::block::ClockPair;
use omptrace_trace_format::metadata::{Lock, TracerCost};
use serde::Serialize;

use crate::config::Config;
use crate::os::system;
use crate::os::threads::lock::Mutex;
use crate::os::time::clock;
use crate::recorder::own_cost;
use crate::recorder::recorder::{Mode, Recorder};
use crate::session::helper_threads::{Listener, Writer};
use crate::session::loaded_modules::Modules;
use crate::storage::spool::Spool;
use crate::storage::trace_file::Output;

/// How long the end of the program waits for threads that are storing an event at that moment.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    /// The process that it belongs to.
    pub(crate) pid: u32,
    /// The CPUs that it may use.
    pub(crate) cpus: Option<libc::cpu_set_t>,
    /// The settings.
    pub(crate) config: Config,
    /// The modules that were reported.
    pub(crate) modules: Modules,
    pub(super) output: Output,
    /// The chunks of its threads.
    pub(crate) spool: Spool,
    pub(super) writer: Option<Writer>,
    /// The thread that waits for the signal to write what is kept.
    pub(super) listener: Mutex<Option<&'static Listener>>,
    /// Held to write a chunk that is kept, or to take it for new events.
    pub(super) keeping: Mutex<()>,
    /// Streams that have begun.
    pub(super) streams: AtomicU32,
    /// Events lost and reported.
    pub(super) lost: AtomicU64,
    pub(super) reported_begin: AtomicBool,
    /// The error number of the system that turned tracing off; 0 while none did.
    pub(super) failure: AtomicI32,
    /// Something failed, and that was said: one line is enough, a full disk has many effects. The trace has the rest.
    pub(super) reported_trouble: AtomicBool,
    pub(super) asked_runtime: AtomicBool,
    pub(super) reported_cost: AtomicBool,
    /// The facts that `initialize` found out, for the sessions of forked children.
    pub(super) runtime: OnceLock<Metadata>,
    /// Words for the reader, all recorded so far.
    pub(super) messages: Mutex<Vec<String>>,
}

static CURRENT: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());
/// Numbers given to streams of this process, also over several sessions: ids stay unique.
static STREAMS: AtomicU32 = AtomicU32::new(0);

/// The session in progress: this process's, or, in a child that has none yet, its parent's.
pub(crate) fn current() -> Option<&'static Session> {
    // Acquire; pairs with Release in `install` and `remove`.
    // SAFETY: null or a leaked box.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// The session of this process, and not that of its parent. The id alone does not distinguish them, since both may be the
/// first process of a container.
pub(crate) fn of_this_process() -> Option<&'static Session> {
    let is_own = |session: &&Session| session.pid == system::process_id();
    current().filter(|session| is_own(session) && Mode::current() != Mode::Child)
}

/// In a forked child that will not be traced: it leaves its parent's session alone.
pub(crate) fn disown() {
    // Relaxed: the child has one thread.
    CURRENT.store(std::ptr::null_mut(), Ordering::Relaxed);
}

/// True while this process has a session.
pub(crate) fn is_in_progress() -> bool {
    of_this_process().is_some()
}

/// From now on the session is in progress.
pub(super) fn install(session: &'static Session) {
    // Release; pairs with Acquire in `current`.
    CURRENT.store(std::ptr::from_ref(session).cast_mut(), Ordering::Release);
}

/// The session is not in progress any more; false where another thread has seen to that.
pub(super) fn remove(session: &'static Session) -> bool {
    // AcqRel; of `finalize` and the destructor one comes first.
    let (session, null) = (std::ptr::from_ref(session).cast_mut(), std::ptr::null_mut());
    CURRENT.compare_exchange(session, null, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// A number for a new stream.
pub(crate) fn next_stream() -> u32 {
    // Relaxed: only the number counts.
    STREAMS.fetch_add(1, Ordering::Relaxed) + 1
}

/// A forked child numbers its streams from 1.
pub(crate) fn forget_streams() {
    STREAMS.store(0, Ordering::Relaxed);
}

/// True where the session's chunks stay in a file when the process ends, whatever becomes of the session.
pub(crate) fn outlives_process() -> bool {
    of_this_process().is_some_and(|session| session.spool.path().is_some())
}

impl Session {
    /// The lock on the trace.
    pub(crate) fn lock(&self) -> Option<Lock> {
        self.output.lock().cloned()
    }

    /// In a forked child: the parent's files are closed, so that its lock ends with it.
    pub(crate) fn let_go(&self) {
        self.output.let_go();
        self.spool.let_go();
    }

    /// See [`crate::os::files::protected_fd::ProtectedFd::move_up`].
    pub(crate) fn move_output_up(&self) {
        self.output.move_up();
    }

    /// Recording goes on, unless it was turned off for good.
    pub(crate) fn record(&self) {
        if self.failure().is_some() {
            return;
        }
        Mode::Record.set();
    }

    /// True where the recorder's chunk belongs to this session.
    pub(crate) fn owns(&self, recorder: &Recorder) -> bool {
        std::ptr::eq(recorder.stream.spool.get(), &raw const self.spool)
    }

    /// True once, for the thread that shall ask the runtime for processors.
    pub(crate) fn shall_ask_runtime(&self) -> bool {
        // Relaxed: who comes first asks. Read before it is written: the answer is mostly no.
        !self.asked_runtime.load(Ordering::Relaxed) && !self.asked_runtime.swap(true, Ordering::Relaxed)
    }

    /// Says something in the trace in words, if there is anything to say.
    pub(crate) fn report_messages(&self, news: Vec<String>) {
        if !news.is_empty() {
            // A list replaces the one before it.
            // Whoever has it may be this thread, interrupted by a signal handler that calls `exit`.
            let Some(mut messages) = self.messages.try_lock_for(PATIENCE) else {
                return;
            };
            messages.extend(news);
            self.write_metadata(&Metadata { messages: messages.clone(), ..Metadata::default() });
        }
    }

    /// Says what an event costs, which is measured now, once: best by a thread of the tracer's.
    pub(super) fn report_cost(&self) {
        // Relaxed: who comes first measures.
        if !self.reported_cost.swap(true, Ordering::Relaxed)
            && let Some(event_ticks) = own_cost::event_ticks()
        {
            let tracer_cost = Some(TracerCost { event_ticks });
            self.write_metadata(&Metadata { tracer_cost, ..Metadata::default() });
        }
    }

    /// Says that a callback is not recorded any more, and why, beside what was withheld from the start.
    pub(crate) fn report_withheld(&self, callback: &str, why: &str) {
        let before = self.runtime.get().map(|facts| facts.withheld.clone());
        let mut withheld = before.unwrap_or_default();
        withheld.insert(callback.to_owned(), why.to_owned());
        self.write_metadata(&Metadata { withheld, ..Metadata::default() });
    }

    /// Writes what is known of the runtime.
    pub(crate) fn report_runtime(&self, facts: Metadata) {
        self.write_metadata(&facts);
        let _ = self.runtime.set(facts);
    }

    /// Appends a metadata block; a failure turns tracing off.
    pub(crate) fn write_metadata(&self, object: &impl Serialize) {
        self.write_metadata_of(clock::pair().0, object);
    }

    pub(super) fn write_metadata_of(&self, time: ClockPair, object: &impl Serialize) {
        if let Err(error) = self.output.write_metadata(time, object) {
            self.fail("write", &error);
        }
    }
}
