//! The writer thread: packs full chunks and appends them to the file, in time that no other thread wants.
//!
//! It runs under SCHED_IDLE. When it does not keep up, threads write their own chunks and nothing waits for it.
//!
//! What it may lock is little: see [`crate::own_thread`].

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize};
use std::time::{Duration, Instant};

use omptrace_trace_format::codec::Packer;

use crate::lockfree::bell::Bell;
use crate::lockfree::pace::Pace;
use crate::log::warning;
use crate::own_thread::OwnThread;
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
    /// Leaves its packer.
    thread: OwnThread<Packer>,
    pace: Pace,
    bell: Bell,
}

impl Writer {
    /// A writer that packs at `level` of zstd; it begins with [`Writer::start`].
    pub(crate) fn new(level: i32) -> Writer {
        Writer {
            level,
            thread: OwnThread::new(),
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

    /// Starts the thread. Without one, the program's threads write their own chunks.
    pub(crate) fn start(&'static self, session: &'static Session) {
        let run = move || self.run(session);
        if let Err(error) = self.thread.start("omptrace-writer", run) {
            warning!(
                "cannot start the writer thread: {error}; threads write their events themselves"
            );
        }
    }

    /// Wakes the writer up if it sleeps.
    pub(crate) fn wake(&self) {
        if self.bell.ring() {
            self.thread.unpark();
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
        self.thread.unpark();
        self.thread.end()
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
