//! Devices of a session: tracing from `device_initialize` to `device_finalize`, records into one stream per device.
//!
//! ```text
//! device_initialize: bind, clock, start          host callbacks, on threads of the program
//! lend, complete: a buffer; its records          on any thread, at any time, several at once
//! device_finalize: clock                         the runtime has delivered all, and stopped (OpenMP 5.2, 19.5.2.20)
//! the program ends tracing, the tool's finalize: flush, stop, clock
//! fork: flush, stop before it; start again in the parent
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | `traced` | a device: its state, its stream, its clock |
//! | `delivery` | buffers on request; records out of them into the stream |
//! | `operations` | what the host asks devices for, for tracers that cannot see it |
//! | `images` | code that is loaded onto devices |
//!
//! A completion may come out of a call of ours (flush, stop), so no lock is held during calls into the runtime.

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

pub(crate) use images::loaded;
pub(crate) use operations::{Asked, begins, ends, region_begins, region_ends};

/// The devices of a session.
#[derive(Debug)]
pub(crate) struct Devices {
    buffers: Buffers,
    by_number: Mutex<BTreeMap<i32, Arc<Traced>>>,
    /// Images that were kept: where they lay, and their length.
    images: Mutex<Vec<(u64, u64)>>,
    accepts_no_buffer: AtomicBool,
    flushes_buffer_once: AtomicBool,
    /// A device took more memory than it shall have.
    shall_stop: AtomicBool,
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
            accepts_no_buffer: AtomicBool::new(false),
            flushes_buffer_once: AtomicBool::new(false),
            shall_stop: AtomicBool::new(false),
        }
    }

    /// The runtime calls itself so.
    pub(crate) fn of_runtime(&self, version: &str) {
        let accepts = !Fault::WantsBuffer.is_of(version);
        // Relaxed: stored before any device is traced.
        self.accepts_no_buffer.store(accepts, Ordering::Relaxed);
        let once = Fault::FlushesBufferOnce.is_of(version);
        // Relaxed: as above.
        self.flushes_buffer_once.store(once, Ordering::Relaxed);
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
        let any = || {
            devices
                .values()
                .find(|traced| traced.is_tracing())
                .or(devices.values().next())
        };
        devices.get(&device_num).or_else(any).cloned()
    }

    /// Writes what is known of all devices.
    fn write(&self, session: &Session) {
        let devices = self.all();
        if devices.is_empty() {
            return;
        }
        let metadata = Metadata {
            devices: devices
                .iter()
                .map(|traced| (traced.device_num, traced.describe()))
                .collect(),
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
    for traced in session.devices.all() {
        traced.flush(session);
    }
}

/// Ends tracing on all devices.
pub(crate) fn stop_all() {
    let Some(session) = session::of_this_process() else {
        return;
    };
    for traced in session.devices.all() {
        traced.stop(session, State::Off);
    }
    session.devices.write(session);
}

/// Ends tracing where devices took more memory than they shall have. Called on threads of the program, in callbacks in
/// which the runtime holds no lock of a buffer.
pub(crate) fn stop_where_needed() {
    let Some(session) = session::of_this_process() else {
        return;
    };
    let shall_stop = &session.devices.shall_stop;
    // Relaxed: who comes first does it. Read before it is written: the answer is mostly no.
    if shall_stop.load(Ordering::Relaxed) && shall_stop.swap(false, Ordering::Relaxed) {
        let devices = session.devices.all();
        for traced in &devices {
            traced.flush(session);
        }
        if session.devices.buffers.has_kept() {
            return;
        }
        for traced in devices {
            traced.has_problem("tracing was stopped: no buffer was left");
        }
        stop_all();
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
    session
        .devices
        .by_number
        .lock()
        .insert(device_num, traced.clone());
    traced.start(session);
    if traced.is_tracing() && traced.tracer.wants_operations() {
        // Relaxed: what is asked for before a tracer knows of it shows as the host observed it.
        session
            .devices
            .wants_operations
            .store(true, Ordering::Relaxed);
    }
    session.devices.write(session);
}

/// This process will fork. AMD's runtime delivers records on a thread that the child does not have. If devices are traced, the
/// child waits for it at its end. The calling thread may have been interrupted in the middle of anything.
pub(crate) fn before_fork(patience: Duration) {
    let Some(session) = session::of_this_process() else {
        return;
    };
    for traced in session.devices.all_within(patience) {
        if traced.can_record_within(patience) {
            traced.stop_for_fork(session);
        }
    }
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
/// that of the clock.
pub(crate) fn finalized(device_num: c_int) {
    let Some(session) = session::of_this_process() else {
        return;
    };
    let Some(traced) = session.devices.by_number.lock().get(&device_num).cloned() else {
        return;
    };
    traced.finalize(session);
    session.devices.write(session);
}
