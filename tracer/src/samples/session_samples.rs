//! The state of a session's samples, and its helper thread.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use super::drain::Drain;
use crate::os::threads::helper_thread::HelperThread;
use crate::os::threads::lock::Mutex;
use crate::session::Session;
use crate::session::hooks::OfSessions;

/// The samples of a session.
#[derive(Debug)]
pub(super) struct Samples {
    /// The helper thread was started.
    pub(super) has_begun: AtomicBool,
    /// Threads that begin are sampled.
    pub(super) is_on: AtomicBool,
    pub(super) signal: AtomicI32,
    pub(super) period_ns: AtomicU64,
    pub(super) thread: HelperThread<()>,
    pub(super) shall_stop: AtomicBool,
    /// The helper thread was woken early.
    pub(super) is_hurried: AtomicBool,
    pub(super) drain: Mutex<Drain>,
    /// Number of threads that are not sampled, by reason.
    pub(super) blocked: AtomicU32,
    pub(super) without_timer: AtomicU32,
    pub(super) too_many: AtomicU32,
    /// The error of the last timer that could not be created.
    pub(super) timer_error: AtomicI32,
    /// The program has installed its own handler for the signal.
    pub(super) is_signal_taken: AtomicBool,
}

/// The samples of all sessions.
static SAMPLES: OfSessions<Samples> = OfSessions::new();

/// The state of the session's samples.
pub(super) fn of(session: &Session) -> Option<&'static Samples> {
    SAMPLES.of(session)
}

/// Prepares a new session, which has no samples yet.
pub(super) fn prepare(session: &'static Session) {
    SAMPLES.add(session, Samples::new());
}

impl Samples {
    /// No samples yet.
    fn new() -> Samples {
        Samples {
            has_begun: AtomicBool::new(false),
            is_on: AtomicBool::new(false),
            signal: AtomicI32::new(0),
            period_ns: AtomicU64::new(0),
            thread: HelperThread::new(),
            shall_stop: AtomicBool::new(false),
            is_hurried: AtomicBool::new(false),
            drain: Mutex::default(),
            blocked: AtomicU32::new(0),
            without_timer: AtomicU32::new(0),
            too_many: AtomicU32::new(0),
            timer_error: AtomicI32::new(0),
            is_signal_taken: AtomicBool::new(false),
        }
    }

    /// Wakes the helper thread early, because rings are filling up.
    pub(super) fn hurry(&self) {
        // Relaxed: if it is missed, the ring waits for the next drain.
        if !self.is_hurried.load(Ordering::Relaxed) && !self.is_hurried.swap(true, Ordering::Relaxed) {
            self.thread.wake();
        }
    }
}
