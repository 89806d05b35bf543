//! Operations that threads ask devices for, reported to tracers whose records do not name them.
//!
//! Called outside of the recording of a callback, since a tracer calls into its library.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ompt_sys::{self as ompt, ompt_scope_begin, ompt_scope_endpoint_t, ompt_target_data_op_t};
use omptrace_device::HostOperation;

use super::traced::Traced;
use crate::hot::stream::{NO_DEVICE, Stream};
use crate::hot::tls;
use crate::session;

/// The thread enters a target region on a device, or leaves it.
pub(crate) fn region(endpoint: ompt_scope_endpoint_t, device_num: i32) {
    let is_in = endpoint == ompt_scope_begin;
    if let Some(stream) = stream() {
        stream
            .target_device
            .set(if is_in { device_num } else { NO_DEVICE });
    }
}

/// A kernel is launched, or data are moved between these two devices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Kernel,
    DataOp(ompt_target_data_op_t, [i32; 2]),
}

/// The thread begins to ask for an operation.
pub(crate) fn begins(host_op_id: u64, asked: Asked) {
    let Some(session) = session::of_this_process() else {
        return;
    };
    let devices = &session.devices;
    // Relaxed: see where it is stored.
    if !devices.wants_operations.load(Ordering::Relaxed) {
        return;
    }
    let Some(stream) = stream() else { return };
    let traced = |device_num: &i32| -> Option<Arc<Traced>> {
        let traced = devices.by_number.lock().get(device_num).cloned();
        traced.filter(|traced| traced.is_tracing() && traced.tracer.wants_operations())
    };
    let (optype, candidates) = match asked {
        Asked::Kernel => (ompt_target_data_op_t(0), [stream.target_device.get(); 2]),
        Asked::DataOp(optype, [src, dest]) => match optype {
            ompt::ompt_target_data_transfer_from_device
            | ompt::ompt_target_data_transfer_from_device_async
            | ompt::ompt_target_data_delete
            | ompt::ompt_target_data_delete_async => (optype, [src, dest]),
            _ => (optype, [dest, src]),
        },
    };
    if let Some(traced) = candidates.iter().find_map(traced) {
        stream.is_announced.set(true);
        traced.tracer.operation_begins(&HostOperation {
            host_op_id,
            device_num: traced.device_num,
            optype,
        });
    }
}

/// The thread has asked for the operation.
pub(crate) fn ends() {
    if !stream().is_some_and(|stream| stream.is_announced.replace(false)) {
        return;
    }
    let Some(session) = session::of_this_process() else {
        return;
    };
    // The lock is not held during a call into the tracer.
    let traced = {
        let devices = session.devices.by_number.lock();
        let mut devices = devices.values();
        devices
            .find(|traced| traced.tracer.wants_operations())
            .cloned()
    };
    if let Some(traced) = traced {
        traced.tracer.operation_ends();
    }
}

/// The thread's stream, where it has one.
fn stream() -> Option<&'static Stream> {
    let recorder = tls::recorder();
    (!recorder.is_idle()).then_some(&recorder.stream)
}
