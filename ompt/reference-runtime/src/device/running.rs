//! The state of a device.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use ompt_sys::{ompt_callback_buffer_complete_t, ompt_callback_buffer_request_t};

use super::description::Device;
use super::driver::Driver;
use super::misbehaviour::Misbehaviour;
use super::operation::Played;

/// The state of a device.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) number: usize,
    pub(super) script: Device,
    pub(super) trace: Mutex<Trace>,
    /// Held during completions.
    pub(super) completions: Mutex<()>,
    pub(super) first_translated_ns: OnceLock<f64>,
    pub(super) random: AtomicU64,
    pub(super) driver: Option<Driver>,
}

#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) callbacks: Option<(ompt_callback_buffer_request_t, ompt_callback_buffer_complete_t)>,
    pub(super) is_paused: bool,
    pub(super) is_finalized: bool,
    /// Nothing is delivered any more.
    pub(super) is_unloaded: bool,
    /// The tool wants records of target regions.
    pub(super) wants_targets: bool,
    /// By thread, if each thread has its own.
    pub(super) filling: BTreeMap<u64, Buffer>,
    pub(super) full: Vec<Buffer>,
    pub(super) written: u64,
    pub(super) played: Played,
}

/// A buffer of the tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) address: usize,
    pub(super) bytes: usize,
    pub(super) used: usize,
    pub(super) delivered: usize,
    pub(super) is_flushed: bool,
}

/// A lookup function has no data, so each device needs a function of its own.
pub const MAX_DEVICES: usize = 4;

pub(super) static DEVICES: OnceLock<Vec<Running>> = OnceLock::new();
/// The end of the valid records, for each buffer.
pub(super) static ENDS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());
/// Flushes in progress: all devices share one thread for them.
pub(super) static FLUSHES: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());
/// Threads that still have to deliver something.
pub(super) static LATE: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

impl Running {
    pub(super) fn does(&self, misbehaviour: Misbehaviour) -> bool {
        self.script.does(misbehaviour)
    }

    pub(super) fn trace(&self) -> MutexGuard<'_, Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the process like a runtime that writes through a null pointer.
pub(super) fn die(why: &str) -> ! {
    eprintln!("reference runtime: {why}");
    std::process::abort()
}
