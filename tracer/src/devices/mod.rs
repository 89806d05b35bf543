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
//! | `session_devices` | the devices that a session knows |
//! | `traced_device` | a device: its state, its stream, its clock |
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
mod session_devices;
mod traced_device;

use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ompt_sys::{ompt_device_t, ompt_function_lookup_t};
use omptrace_device::{Announced, memory};
use omptrace_runtimes::Fault;

use crate::devices::traced_device::{State, Traced};
use crate::session::Session;
use crate::session::hooks::SessionHooks;
use delivery::SOURCE;
use session_devices::of_this_process;

pub(crate) use closing::{hold_operation, hold_region, process_ends, process_has_ended};
pub(crate) use images::loaded;
pub(crate) use operations::{Asked, begins, ends, region_begins, region_ends};

/// Devices take part in sessions.
#[derive(Debug)]
pub(crate) struct Tracing;

pub(crate) static SESSION_HOOKS: Tracing = Tracing;

impl SessionHooks for Tracing {
    fn prepare(&self, session: &'static Session) {
        session_devices::prepare(session);
    }

    fn before_fork(&self, patience: Duration) {
        before_fork(patience);
    }

    fn after_fork(&self, patience: Duration) {
        after_fork(patience);
    }

    /// Pauses tracing on all devices, or resumes it.
    fn pause(&self, pauses: bool) {
        if let Some((_, devices)) = of_this_process() {
            devices.all().iter().for_each(|traced| traced.pause(pauses));
        }
    }

    /// All that devices have recorded so far is delivered, and in the file. A runtime that flushes a buffer once delivers it at
    /// the end: a flush before would cost what comes after it.
    fn flush(&self) {
        let Some((session, devices)) = of_this_process() else {
            return;
        };
        // Relaxed: see `of_runtime`.
        if devices.flushes_buffer_once.load(Ordering::Relaxed) {
            return;
        }
        let mut devices = devices.all();
        devices.retain(|traced| traced.is_tracing());
        request_records(&devices);
        for traced in devices {
            traced.flush(session);
        }
    }

    fn stop(&self) {
        stop_all();
    }

    fn write_news(&self, session: &'static Session) {
        if let Some(devices) = session_devices::of(session) {
            devices.write_news(session);
        }
    }
}

/// The runtime of the session calls itself so.
pub(crate) fn of_runtime(session: &Session, version: &str) {
    if let Some(devices) = session_devices::of(session) {
        let once = Fault::FlushesBufferOnce.is_of(version);
        // Relaxed: stored before any device is traced.
        devices.flushes_buffer_once.store(once, Ordering::Relaxed);
    }
}

/// Ends tracing on all devices.
pub(crate) fn stop_all() {
    let Some((session, devices)) = of_this_process() else {
        return;
    };
    let all = devices.all();
    stop(session, &all, State::Off);
    for traced in all {
        traced.leave(session);
    }
    devices.write(session);
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
    let Some((_, devices)) = of_this_process() else {
        return;
    };
    let shall_flush = &devices.shall_flush;
    // Relaxed: who comes first does it. Read before it is written: the answer is mostly no.
    if shall_flush.load(Ordering::Relaxed) && shall_flush.swap(false, Ordering::Relaxed) {
        let mut traced = devices.all();
        traced.retain(|traced| traced.is_tracing());
        request_records(&traced);
        let in_vain = !devices.buffers.has_kept();
        // Relaxed: see `Devices::needs_buffers`.
        devices.flushes_in_vain.store(in_vain, Ordering::Relaxed);
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
    let Some((session, devices)) = of_this_process() else {
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
            cupti: &devices.cupti,
        })
    };
    let traced = Arc::new(Traced::new(device_num, device_type, found));
    let before = devices.by_number.lock().insert(device_num, traced.clone());
    if let Some(before) = before {
        before.leave(session);
    }
    traced.start(session, SOURCE);
    if traced.is_tracing() && traced.tracer.wants_operations() {
        // Relaxed: what is asked for before a tracer knows of it shows as the host observed it.
        devices.wants_operations.store(true, Ordering::Relaxed);
    }
    devices.write(session);
}

/// This process will fork. AMD's runtime delivers records on a thread that the child does not have. If devices are traced, the
/// child waits for it at its end. The calling thread may have been interrupted in the middle of anything.
fn before_fork(patience: Duration) {
    let Some((session, devices)) = of_this_process() else {
        return;
    };
    let mut devices = devices.all_within(patience);
    devices.retain(|traced| traced.tracer.stops_for_fork() && traced.can_record_within(patience));
    stop(session, &devices, State::StoppedForFork);
}

/// This process has forked, and is the parent.
fn after_fork(patience: Duration) {
    let Some((session, devices)) = of_this_process() else {
        return;
    };
    for traced in devices.all_within(patience) {
        traced.start_after_fork(session, SOURCE);
    }
}

/// A device goes. The runtime has delivered its records and stopped its tracing before; AMD's would crash in any entry point but
/// that of the clock. What can wait is done at the end of the session: threads that still offload are in danger from now on.
pub(crate) fn finalized(device_num: c_int) {
    closing::begins();
    let Some((session, devices)) = of_this_process() else {
        return;
    };
    let Some(traced) = devices.by_number.lock().get(&device_num).cloned() else {
        return;
    };
    traced.finalize(session);
    // Relaxed: see `Devices::write_news`.
    devices.is_stale.store(true, Ordering::Relaxed);
}
