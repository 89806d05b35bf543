//! The writer thread: packs full chunks and appends them to the file, using idle CPU time.
//!
//! It runs under SCHED_IDLE. If it does not keep up, threads write their own chunks; nothing waits for it.
//!
//! It is started when it is needed, but not before the process has two threads, because some operations are permitted
//! only for processes with one thread (`unshare(CLONE_NEWUSER)` and others). Until then, and always if no thread can be
//! created, the program's threads write their own chunks.
//!
//! It must avoid most locks: see [`crate::os::threads::helper_thread`].

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use omptrace_trace_format::codec::Packer;

use crate::lockfree::writer_priority::WriterPriority;
use crate::lockfree::writer_wakeup::WriterWakeup;
use crate::os::log::warning;
use crate::os::system;
use crate::os::threads::helper_thread::HelperThread;
use crate::os::time::clock::Stopwatch;
use crate::recorder::this_thread;
use crate::session::Session;
use crate::session::helper_threads::Writer;
use crate::storage::spool::EVENT_WORDS;

/// Maximum time that the writer sleeps without being woken.
const NAP: Duration = Duration::from_millis(50);
/// In processes that end sooner, [`Session::move_output_up`] is not called.
const SHORT: Duration = Duration::from_millis(200);

const NOT_STARTED: u8 = 0;
const RUNNING: u8 = 1;
/// No thread can be created, or one is being created.
const REFUSED: u8 = 2;

impl Writer {
    /// A writer that packs with this zstd `level`; it is started by [`Writer::start`].
    pub(crate) fn new(level: i32) -> Writer {
        Writer {
            level,
            state: AtomicU8::new(NOT_STARTED),
            thread: HelperThread::new(),
            pace: WriterPriority { thread: AtomicI32::new(0), waiting: AtomicUsize::new(0) },
            bell: WriterWakeup { sleeping: AtomicBool::new(false), stop: AtomicBool::new(false) },
        }
    }

    /// Whether the thread is running and takes chunks.
    pub(crate) fn is_running(&self) -> bool {
        // Relaxed: the queue orders the chunks.
        self.state.load(Ordering::Relaxed) == RUNNING
    }

    /// Starts the thread once, if it `is_needed`. Without it, the program's threads write their own chunks.
    pub(crate) fn start(&'static self, session: &'static Session, is_needed: impl FnOnce() -> bool) {
        // Relaxed: only one of several threads starts it; only the number is shared.
        let (ours, theirs) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.state.load(ours) != NOT_STARTED
            || !is_needed()
            || self.state.compare_exchange(NOT_STARTED, REFUSED, ours, theirs).is_err()
        {
            return;
        }
        let run = move || {
            this_thread::begin_own_work();
            self.run(session)
        };
        match self.thread.start(c"omptrace-writer", run) {
            Ok(()) => self.state.store(RUNNING, ours),
            Err(error) => {
                warning!("cannot start the writer thread: {error}; each thread writes its own events")
            }
        }
    }

    /// Wakes the writer up if it sleeps.
    pub(crate) fn wake(&self) {
        if self.bell.ring() {
            self.thread.wake();
        }
    }

    /// A thread starts to wait for the writer, which gets CPU time like any other thread.
    pub(crate) fn hurry(&self) {
        self.pace.hurry(system::set_ordinary);
    }

    /// A thread stops waiting. If no others wait, the writer uses only idle time again.
    pub(crate) fn relax(&self) {
        self.pace.relax(system::set_ordinary);
    }

    /// Ends the thread after it has written everything it was given, or at once if it has not started; waits for at
    /// most `most`. Returns its packer, or a new one.
    pub(crate) fn stop(&self, most: Option<Duration>) -> Option<Packer> {
        self.bell.stop();
        self.hurry();
        self.thread.wake();
        self.thread.end(most).or_else(|| self.packer())
    }

    /// `None` if there is no memory; chunks are then written unpacked.
    fn packer(&self) -> Option<Packer> {
        Packer::new(self.level, EVENT_WORDS).ok()
    }

    fn run(&self, session: &Session) -> Option<Packer> {
        system::spread_over(&session.cpus);
        self.pace.begin(system::thread_id(), system::set_ordinary);
        session.report_cost();
        let mut packer = self.packer();
        let begun = Stopwatch::start();
        loop {
            session.drain(&mut packer);
            if self.bell.is_stopped() {
                return packer;
            }
            if begun.elapsed() > SHORT {
                session.move_output_up();
            }
            let nap = || self.thread.sleep(NAP);
            self.bell.sleep(|| !session.is_drained(), nap);
        }
    }
}
