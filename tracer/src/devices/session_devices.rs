//! The devices of a session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use omptrace_device::{Buffers, cupti};
use omptrace_settings::value::Cupti;
use omptrace_trace_format::metadata::Metadata;

use crate::devices::traced_device::Traced;
use crate::os::threads::lock::Mutex;
use crate::session::hooks::OfSessions;
use crate::session::{self, Session};

/// The devices of all sessions.
static DEVICES: OfSessions<Devices> = OfSessions::new();

/// Prepares a new session, which has no devices yet.
pub(super) fn prepare(session: &'static Session) {
    DEVICES.add(session, Devices::new(session.config.device_buffer.0, &session.config.cupti));
}

/// The devices of the session.
pub(super) fn of(session: &Session) -> Option<&'static Devices> {
    DEVICES.of(session)
}

/// The session of this process, and its devices.
pub(super) fn of_this_process() -> Option<(&'static Session, &'static Devices)> {
    let session = session::of_this_process()?;
    Some((session, of(session)?))
}

/// The devices of a session.
#[derive(Debug)]
pub(super) struct Devices {
    pub(super) buffers: Buffers,
    pub(super) by_number: Mutex<BTreeMap<i32, Arc<Traced>>>,
    /// Address and length of the images that were kept.
    pub(super) images: Mutex<Vec<(u64, u64)>>,
    pub(super) flushes_buffer_once: AtomicBool,
    /// A device got no buffer, and a flush may bring some back.
    pub(super) shall_flush: AtomicBool,
    /// The last flush brought no buffers back.
    pub(super) flushes_in_vain: AtomicBool,
    /// The trace's metadata about devices are out of date.
    pub(super) is_stale: AtomicBool,
    /// A device tracer needs to know about operations.
    pub(super) wants_operations: AtomicBool,
    pub(super) cupti: cupti::Choice,
}

impl Devices {
    /// No devices yet; `buffer_bytes` is the size of each buffer.
    fn new(buffer_bytes: usize, cupti: &Cupti) -> Devices {
        Devices {
            cupti: match cupti {
                Cupti::Auto => cupti::Choice::Auto,
                Cupti::Off => cupti::Choice::Off,
                Cupti::At(path) => cupti::Choice::At(path.into()),
            },
            wants_operations: AtomicBool::new(false),
            buffers: Buffers::new(buffer_bytes),
            by_number: Mutex::default(),
            images: Mutex::default(),
            flushes_buffer_once: AtomicBool::new(false),
            shall_flush: AtomicBool::new(false),
            flushes_in_vain: AtomicBool::new(false),
            is_stale: AtomicBool::new(false),
        }
    }

    /// A device got no buffer: requests a flush, unless flushing is in vain. A runtime that flushes a buffer only once
    /// does not return it by that.
    pub(super) fn needs_buffers(&self) {
        // Relaxed, here and below: seen by the host's next callback, or the one after.
        let in_vain =
            self.flushes_in_vain.load(Ordering::Relaxed) || self.flushes_buffer_once.load(Ordering::Relaxed);
        if !in_vain {
            self.shall_flush.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Traced>> {
        self.by_number.lock().values().cloned().collect()
    }

    /// Like [`Devices::all`], for a thread that may have been interrupted while it held the lock: empty if the lock is
    /// not available in time.
    pub(super) fn all_within(&self, patience: Duration) -> Vec<Arc<Traced>> {
        let devices = self.by_number.try_lock_for(patience);
        devices.map_or(Vec::new(), |devices| devices.values().cloned().collect())
    }

    /// The device to which `device_num` refers: old AMD runtimes pass 0 for every device.
    pub(super) fn meant_by(&self, device_num: i32) -> Option<Arc<Traced>> {
        let devices = self.by_number.lock();
        let any = || devices.values().find(|traced| traced.is_tracing()).or(devices.values().next());
        devices.get(&device_num).or_else(any).cloned()
    }

    /// Writes the metadata of all devices if they are out of date.
    pub(super) fn write_news(&self, session: &Session) {
        // Relaxed: a concurrent change is written by whoever made it.
        if self.is_stale.load(Ordering::Relaxed) {
            self.write(session);
        }
    }

    /// Writes the metadata of all devices.
    pub(super) fn write(&self, session: &Session) {
        // Relaxed: as above.
        self.is_stale.store(false, Ordering::Relaxed);
        let devices = self.all();
        if devices.is_empty() {
            return;
        }
        let metadata = Metadata {
            devices: devices.iter().map(|traced| (traced.device_num, traced.describe())).collect(),
            ..Metadata::default()
        };
        session.write_metadata(&metadata);
    }
}
