//! The session in progress: its parts, and what it reports in metadata.
//!
//! Sessions are never freed, because a thread may be in a callback at any time. A process has one session at a time. A
//! second one follows if the OpenMP runtime is unloaded and loaded again. A forked child that uses OpenMP has its own.

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

/// Maximum time that the end of the program waits for threads that are storing an event.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    /// The process to which the session belongs.
    pub(crate) pid: u32,
    /// The CPUs that the process may use.
    pub(crate) cpus: Option<libc::cpu_set_t>,
    /// The settings.
    pub(crate) config: Config,
    /// The modules that the session has reported.
    pub(crate) modules: Modules,
    pub(super) output: Output,
    /// The chunks of the session's threads.
    pub(crate) spool: Spool,
    pub(super) writer: Option<Writer>,
    /// The helper thread that waits for the signal to write retained chunks.
    pub(super) listener: Mutex<Option<&'static Listener>>,
    /// Held while a retained chunk is written, or reused for new events.
    pub(super) keeping: Mutex<()>,
    /// Number of streams that have begun.
    pub(super) streams: AtomicU32,
    /// Number of events reported as lost.
    pub(super) lost: AtomicU64,
    pub(super) reported_begin: AtomicBool,
    /// The error number that turned tracing off; 0 if none did.
    pub(super) failure: AtomicI32,
    /// A failure was already reported: one message is enough, because a full disk has many effects. The trace contains
    /// the rest.
    pub(super) reported_trouble: AtomicBool,
    pub(super) asked_runtime: AtomicBool,
    pub(super) reported_cost: AtomicBool,
    /// What `initialize` found out about the runtime, for the sessions of forked children.
    pub(super) runtime: OnceLock<Metadata>,
    /// All messages for the reader so far.
    pub(super) messages: Mutex<Vec<String>>,
}

static CURRENT: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());
/// Number of streams in this process, over all sessions, so that ids are unique.
static STREAMS: AtomicU32 = AtomicU32::new(0);

/// The session in progress: this process's or, in a forked child without one, its parent's.
pub(crate) fn current() -> Option<&'static Session> {
    // Acquire; pairs with Release in `install` and `remove`.
    // SAFETY: null or a leaked box.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// The session of this process, not of its parent. The process id alone does not distinguish them, because both may be
/// the first process of a container.
pub(crate) fn of_this_process() -> Option<&'static Session> {
    let is_own = |session: &&Session| session.pid == system::process_id();
    current().filter(|session| is_own(session) && Mode::current() != Mode::Child)
}

/// In a forked child that will not be traced: detaches it from its parent's session.
pub(crate) fn disown() {
    // Relaxed: the child has one thread.
    CURRENT.store(std::ptr::null_mut(), Ordering::Relaxed);
}

/// Whether this process has a session.
pub(crate) fn is_in_progress() -> bool {
    of_this_process().is_some()
}

/// Makes the session the one in progress.
pub(super) fn install(session: &'static Session) {
    // Release; pairs with Acquire in `current`.
    CURRENT.store(std::ptr::from_ref(session).cast_mut(), Ordering::Release);
}

/// Ends being the session in progress; false if another thread has done this.
pub(super) fn remove(session: &'static Session) -> bool {
    // AcqRel; only one of `finalize` and the destructor succeeds.
    let (session, null) = (std::ptr::from_ref(session).cast_mut(), std::ptr::null_mut());
    CURRENT.compare_exchange(session, null, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// A new stream's number.
pub(crate) fn next_stream() -> u32 {
    // Relaxed: only the number is shared.
    STREAMS.fetch_add(1, Ordering::Relaxed) + 1
}

/// In a forked child: streams are numbered from 1.
pub(crate) fn forget_streams() {
    STREAMS.store(0, Ordering::Relaxed);
}

/// Whether the session's chunks remain in a file when the process ends, in any way.
pub(crate) fn outlives_process() -> bool {
    of_this_process().is_some_and(|session| session.spool.path().is_some())
}

impl Session {
    /// The lock on the trace.
    pub(crate) fn lock(&self) -> Option<Lock> {
        self.output.lock().cloned()
    }

    /// In a forked child: closes the parent's files, so that the parent's lock ends with the parent.
    pub(crate) fn let_go(&self) {
        self.output.let_go();
        self.spool.let_go();
    }

    /// See [`crate::os::files::protected_fd::ProtectedFd::move_up`].
    pub(crate) fn move_output_up(&self) {
        self.output.move_up();
    }

    /// Resumes recording, unless it was turned off for good.
    pub(crate) fn record(&self) {
        if self.failure().is_some() {
            return;
        }
        Mode::Record.set();
    }

    /// Whether the recorder's chunk belongs to this session.
    pub(crate) fn owns(&self, recorder: &Recorder) -> bool {
        std::ptr::eq(recorder.stream.spool.get(), &raw const self.spool)
    }

    /// Returns true once, for the thread that should query the runtime.
    pub(crate) fn shall_ask_runtime(&self) -> bool {
        // Relaxed: any thread may be the first. Reads before it writes, because the answer is usually no.
        !self.asked_runtime.load(Ordering::Relaxed) && !self.asked_runtime.swap(true, Ordering::Relaxed)
    }

    /// Adds messages to the trace, if there are any.
    pub(crate) fn report_messages(&self, news: Vec<String>) {
        if !news.is_empty() {
            // A list of messages replaces the previous one. The lock may be held by this very thread, interrupted by a
            // signal handler that calls `exit`.
            let Some(mut messages) = self.messages.try_lock_for(PATIENCE) else {
                return;
            };
            messages.extend(news);
            self.write_metadata(&Metadata { messages: messages.clone(), ..Metadata::default() });
        }
    }

    /// Measures and reports the cost of an event, once; preferably called on a helper thread.
    pub(super) fn report_cost(&self) {
        // Relaxed: any thread may be the first.
        if !self.reported_cost.swap(true, Ordering::Relaxed)
            && let Some(event_ticks) = own_cost::event_ticks()
        {
            let tracer_cost = Some(TracerCost { event_ticks });
            self.write_metadata(&Metadata { tracer_cost, ..Metadata::default() });
        }
    }

    /// Reports that a callback is no longer recorded, and why, in addition to those withheld from the start.
    pub(crate) fn report_withheld(&self, callback: &str, why: &str) {
        let before = self.runtime.get().map(|facts| facts.withheld.clone());
        let mut withheld = before.unwrap_or_default();
        withheld.insert(callback.to_owned(), why.to_owned());
        self.write_metadata(&Metadata { withheld, ..Metadata::default() });
    }

    /// Writes the runtime's description.
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
