//! Devices of a session: tracing from `device_initialize` to `device_finalize`, records into one stream per device.
//!
//! ```text
//! device_initialize: bind, clock, start          host callbacks, on threads of the program
//! lend, complete: a buffer; its records          on any thread, at any time, several at once
//! device_finalize: clock                         the runtime has delivered all, and stopped (OpenMP 5.2, 19.5.2.20)
//! the program ends tracing, the tool's finalize: flush, stop, clock, metadata
//! fork: flush, stop before it; start again in the parent
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | `traced` | a device: its state, its stream, its clock |
//! | `delivery` | buffers on request; records out of them into the stream |
//! | `operations` | what the host asks devices for, for tracers that cannot see it |
//! | `images` | code that is loaded onto devices |
//! | `closing` | threads that offload while the runtime closes devices |
//!
//! A completion may come out of a call of ours (flush, stop), so no lock is held during calls into the runtime.

mod closing;
mod delivery;
mod images;
mod operations;
mod traced;

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ompt_sys::{ompt_device_t, ompt_function_lookup_t};
use omptrace_device::{Announced, Buffers, cupti, memory};
use omptrace_runtimes::Fault;
use omptrace_settings::value::Cupti;
use omptrace_trace_format::metadata::Metadata;

use crate::os::lock::Mutex;
use crate::session::{self, Session};
use traced::{State, Traced};

pub(crate) use closing::{hold_operation, hold_region, process_ends, process_has_ended};
pub(crate) use images::loaded;
pub(crate) use operations::{Asked, begins, ends, region_begins, region_ends};

/// The devices of a session.
#[derive(Debug)]
pub(crate) struct Devices {
    buffers: Buffers,
    by_number: Mutex<BTreeMap<i32, Arc<Traced>>>,
    /// Images that were kept: where they lay, and their length.
    images: Mutex<Vec<(u64, u64)>>,
    flushes_buffer_once: AtomicBool,
    /// A device got no buffer, and a flush may bring some back.
    shall_flush: AtomicBool,
    /// A flush brought none.
    flushes_in_vain: AtomicBool,
    /// There is news of devices that the trace's metadata does not have.
    is_stale: AtomicBool,
    /// A tracer wants to know of operations.
    wants_operations: AtomicBool,
    cupti: cupti::Choice,
}

impl Devices {
    /// No devices yet; their buffers will have this many bytes each.
    pub(crate) fn new(buffer_bytes: usize, cupti: &Cupti) -> Devices {
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

    /// The runtime calls itself so.
    pub(crate) fn of_runtime(&self, version: &str) {
        let once = Fault::FlushesBufferOnce.is_of(version);
        // Relaxed: stored before any device is traced.
        self.flushes_buffer_once.store(once, Ordering::Relaxed);
    }

    /// A device got no buffer. A runtime that flushes a buffer once does not give it back by that.
    fn needs_buffers(&self) {
        // Relaxed, here and below: seen by the next callback of the host, or the one after.
        let in_vain =
            self.flushes_in_vain.load(Ordering::Relaxed) || self.flushes_buffer_once.load(Ordering::Relaxed);
        if !in_vain {
            self.shall_flush.store(true, Ordering::Relaxed);
        }
    }

    fn all(&self) -> Vec<Arc<Traced>> {
        self.by_number.lock().values().cloned().collect()
    }

    /// Like [`Devices::all`], for a thread that may have been interrupted while it has the lock: none where it does not get
    /// it in time.
    fn all_within(&self, patience: Duration) -> Vec<Arc<Traced>> {
        let devices = self.by_number.try_lock_for(patience);
        devices.map_or(Vec::new(), |devices| devices.values().cloned().collect())
    }

    /// The device that a runtime means by `device_num`: old ones of AMD say 0 whichever it is.
    fn meant_by(&self, device_num: i32) -> Option<Arc<Traced>> {
        let devices = self.by_number.lock();
        let any = || devices.values().find(|traced| traced.is_tracing()).or(devices.values().next());
        devices.get(&device_num).or_else(any).cloned()
    }

    /// Writes what is known of all devices, unless the trace has it.
    pub(crate) fn write_news(&self, session: &Session) {
        // Relaxed: what comes at the same time is no older.
        if self.is_stale.load(Ordering::Relaxed) {
            self.write(session);
        }
    }

    /// Writes what is known of all devices.
    fn write(&self, session: &Session) {
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

/// Pauses tracing on all devices, or resumes it.
pub(crate) fn pause(pause: bool) {
    let Some(session) = session::of_this_process() else {
        return;
    };
    for traced in session.devices.all() {
        traced.pause(pause);
    }
}

/// All that devices have recorded so far is delivered, and in the file. A runtime that flushes a buffer once delivers it at the end:
/// a flush before would cost what comes after it.
pub(crate) fn flush() {
    let Some(session) = session::of_this_process() else {
        return;
    };
    // Relaxed: see `Devices::of_runtime`.
    if session.devices.flushes_buffer_once.load(Ordering::Relaxed) {
        return;
    }
    let mut devices = session.devices.all();
    devices.retain(|traced| traced.is_tracing());
    request_records(&devices);
    for traced in devices {
        traced.flush(session);
    }
}

/// Ends tracing on all devices.
pub(crate) fn stop_all() {
    let Some(session) = session::of_this_process() else {
        return;
    };
    let devices = session.devices.all();
    stop(session, &devices, State::Off);
    for traced in devices {
        traced.leave(session);
    }
    session.devices.write(session);
}

/// Ends tracing on these devices, as far as they are traced.
fn stop(session: &'static Session, devices: &[Arc<Traced>], reason: State) {
    let is_to_stop = |traced: &&Arc<Traced>| traced.change(State::Tracing, reason);
    let devices: Vec<_> = devices.iter().filter(is_to_stop).cloned().collect();
    // Where the runtime drops what it has not delivered when tracing stops.
    request_records(&devices);
    for traced in devices {
        traced.tracer.stop();
        traced.read_clock(session);
    }
}

/// Has these devices deliver what they have. Each flush may wait for a pass of the runtime's over all buffers. It may return before
/// the last records are delivered, and one more waits for all.
fn request_records(devices: &[Arc<Traced>]) {
    for traced in devices.iter().chain(devices.last()) {
        traced.tracer.flush();
    }
}

/// Has devices flushed where one got no buffer, so that some come back. Called on threads of the program. In these callbacks,
/// the runtime holds no lock of a buffer.
pub(crate) fn flush_where_needed() {
    let Some(session) = session::of_this_process() else {
        return;
    };
    let shall_flush = &session.devices.shall_flush;
    // Relaxed: who comes first does it. Read before it is written: the answer is mostly no.
    if shall_flush.load(Ordering::Relaxed) && shall_flush.swap(false, Ordering::Relaxed) {
        let mut devices = session.devices.all();
        devices.retain(|traced| traced.is_tracing());
        request_records(&devices);
        let in_vain = !session.devices.buffers.has_kept();
        // Relaxed: see `Devices::needs_buffers`.
        session.devices.flushes_in_vain.store(in_vain, Ordering::Relaxed);
    }
}

/// A device is there: tracing starts as far as it offers that.
///
/// # Safety
/// The arguments are those of `ompt_callback_device_initialize`, which has not returned.
pub(crate) unsafe fn initialized(
    device_num: c_int,
    device_type: *const c_char,
    handle: *mut ompt_device_t,
    lookup: Option<ompt_function_lookup_t>,
) {
    const MAX_NAME: usize = 256;
    closing::goes_on();
    let Some(session) = session::of_this_process() else {
        return;
    };
    let device_type = memory::text(device_type, MAX_NAME).unwrap_or_default();
    let device_type = String::from_utf8_lossy(&device_type).into_owned();
    // SAFETY: by this function's contract; after `finalized` nothing but its clock is asked for.
    let found = unsafe {
        omptrace_device::tracer_of(&Announced {
            device_num,
            device_type: &device_type,
            handle,
            lookup,
            cupti: &session.devices.cupti,
        })
    };
    let traced = Arc::new(Traced::new(device_num, device_type, found));
    let before = session.devices.by_number.lock().insert(device_num, traced.clone());
    if let Some(before) = before {
        before.leave(session);
    }
    traced.start(session);
    if traced.is_tracing() && traced.tracer.wants_operations() {
        // Relaxed: what is asked for before a tracer knows of it shows as the host observed it.
        session.devices.wants_operations.store(true, Ordering::Relaxed);
    }
    session.devices.write(session);
}

/// This process will fork. AMD's runtime delivers records on a thread that the child does not have. If devices are traced, the
/// child waits for it at its end. The calling thread may have been interrupted in the middle of anything.
pub(crate) fn before_fork(patience: Duration) {
    let Some(session) = session::of_this_process() else {
        return;
    };
    let mut devices = session.devices.all_within(patience);
    devices.retain(|traced| traced.tracer.stops_for_fork() && traced.can_record_within(patience));
    stop(session, &devices, State::StoppedForFork);
}

/// This process has forked, and is the parent.
pub(crate) fn after_fork(patience: Duration) {
    let Some(session) = session::of_this_process() else {
        return;
    };
    for traced in session.devices.all_within(patience) {
        traced.start_after_fork(session);
    }
}

/// A device goes. The runtime has delivered its records and stopped its tracing before; AMD's would crash in any entry point but
/// that of the clock. What can wait is done at the end of the session: threads that still offload are in danger from now on.
pub(crate) fn finalized(device_num: c_int) {
    closing::begins();
    let Some(session) = session::of_this_process() else {
        return;
    };
    let Some(traced) = session.devices.by_number.lock().get(&device_num).cloned() else {
        return;
    };
    traced.finalize(session);
    // Relaxed: see `Devices::write_news`.
    session.devices.is_stale.store(true, Ordering::Relaxed);
}
