//! The writer thread: packs full chunks and appends them to the file, in time that no other thread wants.
//!
//! It runs under SCHED_IDLE. When it does not keep up, threads write their own chunks and nothing waits for it.
//!
//! Between its creation and its first line of ours, a thread takes the loader's lock (`__cxa_thread_atexit_impl`, for what
//! Rust keeps per thread). A runtime that is closed with `dlclose` calls `finalize` under that lock: so a thread that has
//! not begun is not waited for. From then on it takes no lock but its own, and none of parking_lot's, whose first
//! contention makes another thread-local value.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use omptrace_trace_format::codec::Packer;

use crate::lockfree::bell::Bell;
use crate::lockfree::pace::Pace;
use crate::log::warning;
use crate::sanitizer;
use crate::session::Session;
use crate::spool::EVENT_WORDS;
use crate::system;

/// How long the writer sleeps when nobody wakes it up.
const NAP: Duration = Duration::from_millis(50);
/// What ends sooner does not wait for [`Session::move_output_up`].
const SHORT: Duration = Duration::from_millis(200);

/// The session's writer.
#[derive(Debug)]
pub(crate) struct Writer {
    level: i32,
    thread: OnceLock<Thread>,
    phase: Mutex<Phase>,
    /// The phase is [`Phase::Ended`].
    ended: Condvar,
    pace: Pace,
    bell: Bell,
}

/// How far the thread has come.
#[derive(Debug)]
enum Phase {
    /// There is no thread, or it is not ours yet.
    NotBegun,
    /// It writes, and takes no lock that others hold for long.
    Writing,
    /// It does nothing any more. With its packer, until somebody takes it.
    Ended(Option<Packer>),
}

impl Writer {
    /// A writer that packs at `level` of zstd; it begins with [`Writer::start`].
    pub(crate) fn new(level: i32) -> Writer {
        Writer {
            level,
            thread: OnceLock::new(),
            phase: Mutex::new(Phase::NotBegun),
            ended: Condvar::new(),
            pace: Pace {
                thread: AtomicI32::new(0),
                waiting: AtomicUsize::new(0),
            },
            bell: Bell {
                sleeping: AtomicBool::new(false),
                stop: AtomicBool::new(false),
            },
        }
    }

    /// Starts the thread and does not wait for it: the runtime may be starting under the loader's lock, which a new
    /// thread may want too. Without a thread, the program's threads write their own chunks.
    pub(crate) fn start(&'static self, session: &'static Session) {
        let thread = std::thread::Builder::new().name("omptrace-writer".into());
        let run = move || {
            if self.begin() {
                // What a panic leaves undone, whoever ends the session does.
                let packer = catch_unwind(AssertUnwindSafe(|| self.run(session)));
                let mut phase = self.phase();
                *phase = Phase::Ended(packer.ok().flatten());
                sanitizer::release(&self.phase);
                drop(phase);
                self.ended.notify_one();
            }
        };
        match system::without_signals(|| thread.spawn(run)) {
            Ok(handle) => {
                let _ = self.thread.set(handle.thread().clone());
            }
            Err(error) => warning!(
                "cannot start the writer thread: {error}; threads write their events themselves"
            ),
        }
    }

    /// Wakes the writer up if it sleeps.
    pub(crate) fn wake(&self) {
        if self.bell.ring() {
            self.unpark();
        }
    }

    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Somebody waits for the writer: it gets processor time like any other thread.
    pub(crate) fn hurry(&self) {
        self.pace.hurry(system::set_ordinary);
    }

    /// One that waited does not any more: without others, the writer takes idle time only, again.
    pub(crate) fn relax(&self) {
        self.pace.relax(system::set_ordinary);
    }

    /// Ends the thread when it has written what it was given, at once if it has not begun; returns its packer.
    pub(crate) fn stop(&self) -> Option<Packer> {
        self.bell.stop();
        self.hurry();
        self.unpark();
        let mut phase = self.phase();
        loop {
            match &mut *phase {
                Phase::NotBegun => *phase = Phase::Ended(None),
                Phase::Writing => {
                    sanitizer::release(&self.phase);
                    phase = self
                        .ended
                        .wait(phase)
                        .unwrap_or_else(PoisonError::into_inner);
                    sanitizer::acquire(&self.phase);
                }
                Phase::Ended(packer) => return packer.take(),
            }
        }
    }

    /// False where the writer was stopped before.
    fn begin(&self) -> bool {
        let mut phase = self.phase();
        let begins = matches!(*phase, Phase::NotBegun);
        if begins {
            *phase = Phase::Writing;
        }
        sanitizer::release(&self.phase);
        begins
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        sanitizer::acquire(&self.phase);
        phase
    }

    fn run(&self, session: &Session) -> Option<Packer> {
        system::spread_over(&session.cpus);
        self.pace.begin(system::thread_id(), system::set_ordinary);
        // Without memory for it: raw.
        let mut packer = Packer::new(self.level, EVENT_WORDS).ok();
        let begun = Instant::now();
        loop {
            session.drain(&mut packer);
            if self.bell.is_stopped() {
                return packer;
            }
            if begun.elapsed() > SHORT {
                session.move_output_up();
            }
            let nap = || std::thread::park_timeout(NAP);
            self.bell.sleep(|| !session.is_drained(), nap);
        }
    }
}
