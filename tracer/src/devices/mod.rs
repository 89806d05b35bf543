//! The devices of a session: traces them from `device_initialize` to `device_finalize`, into one stream per device.
//!
//! ```text
//! device_initialize: bind, clock, start          host callbacks, on the program's threads
//! lend, complete: a buffer; its records          on any thread, at any time, concurrently
//! device_finalize: clock                         the runtime has delivered all records, and stopped tracing (OpenMP 5.2, 19.5.2.20)
//! the program ends tracing, the tool's finalize: flush, stop, clock, metadata
//! fork: flush and stop before it; start again in the parent
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | `session_devices` | the devices of a session |
//! | `traced_device` | a device: its state, its stream, its clock |
//! | `delivery` | lends buffers, and copies their records into the stream |
//! | `operations` | reports the host's operations to device tracers that cannot see them |
//! | `images` | code that is loaded onto devices |
//! | `closing` | holds threads that offload while the runtime closes devices |
//!
//! Our calls into the runtime (flush, stop) may deliver a completion, so no lock is held during these calls.

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

/// The part of a session for device tracing.
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

    /// Delivers all records of devices so far, and writes them to the file. Does nothing if the runtime flushes a
    /// buffer only once, because the records after the flush would be lost; such a runtime delivers its records at the
    /// end.
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

/// Takes note of the runtime's `version`, which may have faults.
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

/// Stops tracing those of `devices` that are traced.
fn stop(session: &'static Session, devices: &[Arc<Traced>], reason: State) {
    let is_to_stop = |traced: &&Arc<Traced>| traced.change(State::Tracing, reason);
    let devices: Vec<_> = devices.iter().filter(is_to_stop).cloned().collect();
    // A runtime may drop records that are not delivered before tracing stops.
    request_records(&devices);
    for traced in devices {
        traced.tracer.stop();
        traced.read_clock(session);
    }
}

/// Requests these devices to deliver their records. Each flush may wait for a pass of the runtime over all buffers. The
/// flush may return before the last records are delivered; one more flush waits for all.
fn request_records(devices: &[Arc<Traced>]) {
    for traced in devices.iter().chain(devices.last()) {
        traced.tracer.flush();
    }
}

/// Flushes all devices if one of them got no buffer, so that buffers are returned. Called on threads of the program, in
/// callbacks during which the runtime holds no buffer lock.
pub(crate) fn flush_where_needed() {
    let Some((_, devices)) = of_this_process() else {
        return;
    };
    let shall_flush = &devices.shall_flush;
    // Relaxed: any thread may be the first. Reads before it writes, because a flush is rarely needed.
    if shall_flush.load(Ordering::Relaxed) && shall_flush.swap(false, Ordering::Relaxed) {
        let mut traced = devices.all();
        traced.retain(|traced| traced.is_tracing());
        request_records(&traced);
        let in_vain = !devices.buffers.has_kept();
        // Relaxed: see `Devices::needs_buffers`.
        devices.flushes_in_vain.store(in_vain, Ordering::Relaxed);
    }
}

/// A device was initialized: starts tracing it, as far as the device supports it.
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
    // SAFETY: by this function's contract; after `finalized` only the clock is read.
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
        // Relaxed: operations requested before a tracer knows of them are shown as the host observed them.
        devices.wants_operations.store(true, Ordering::Relaxed);
    }
    devices.write(session);
}

/// Stops tracing before this process forks. AMD's runtime delivers records on a thread that the child does not have; if
/// devices were traced, the child would wait for that thread at its end. The calling thread may have been interrupted
/// anywhere.
fn before_fork(patience: Duration) {
    let Some((session, devices)) = of_this_process() else {
        return;
    };
    let mut devices = devices.all_within(patience);
    devices.retain(|traced| traced.tracer.stops_for_fork() && traced.can_record_within(patience));
    stop(session, &devices, State::StoppedForFork);
}

/// Starts tracing again in the parent after a fork.
fn after_fork(patience: Duration) {
    let Some((session, devices)) = of_this_process() else {
        return;
    };
    for traced in devices.all_within(patience) {
        traced.start_after_fork(session, SOURCE);
    }
}

/// A device is finalized. The runtime has delivered its records and stopped tracing; AMD's runtime would crash in any
/// entry point except the clock's. Everything that can wait is done at the session's end, because threads that still
/// offload are at risk from now on.
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
