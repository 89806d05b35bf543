//! Reports operations that threads request from devices to device tracers whose records do not identify them.
//!
//! Called outside of the recording of a callback, because a tracer calls into its library.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ompt_sys::{self as ompt, ompt_target_data_op_t};
use omptrace_device::HostOperation;

use super::session_devices::of_this_process;
use crate::devices::traced_device::Traced;
use crate::recorder::this_thread;
use crate::recorder::thread_stream::{NO_DEVICE, Stream};

/// The thread enters a target region on a device; `target_id` is the tool's id for it. Some runtimes, such as GCC's,
/// report no operations; the device's records are then assigned to the region.
pub(crate) fn region_begins(device_num: i32, target_id: Option<u64>) {
    let Some(stream) = stream() else { return };
    stream.target_device.set(device_num);
    let traced = target_id.and_then(|target_id| Some((target_id, traced(device_num)?)));
    let announced = stream.announced_regions.get() << 1;
    stream.announced_regions.set(announced | u64::from(traced.is_some()));
    if let Some((target_id, traced)) = traced {
        traced.tracer.operation_begins(&HostOperation {
            host_op_id: target_id,
            device_num,
            optype: ompt_target_data_op_t(0),
        });
    }
}

/// The thread leaves its innermost target region.
pub(crate) fn region_ends() {
    let Some(stream) = stream() else { return };
    stream.target_device.set(NO_DEVICE);
    let announced = stream.announced_regions.get();
    stream.announced_regions.set(announced >> 1);
    if announced & 1 != 0 {
        announcement_ends();
    }
}

/// The device, if its tracer needs to know about operations.
fn traced(device_num: i32) -> Option<Arc<Traced>> {
    let (_, devices) = of_this_process()?;
    // Relaxed: see the store.
    if !devices.wants_operations.load(Ordering::Relaxed) {
        return None;
    }
    let traced = devices.by_number.lock().get(&device_num).cloned();
    traced.filter(|traced| traced.is_tracing() && traced.tracer.wants_operations())
}

/// The operation that a thread requests: a kernel launch, or a data operation between these two devices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Kernel,
    DataOp(ompt_target_data_op_t, [i32; 2]),
}

/// The thread is about to request an operation.
pub(crate) fn begins(host_op_id: u64, asked: Asked) {
    let Some(stream) = stream() else { return };
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
    if let Some(traced) = candidates.into_iter().find_map(traced) {
        stream.is_announced.set(true);
        traced.tracer.operation_begins(&HostOperation { host_op_id, device_num: traced.device_num, optype });
    }
}

/// The thread has requested the operation.
pub(crate) fn ends() {
    if !stream().is_some_and(|stream| stream.is_announced.replace(false)) {
        return;
    }
    announcement_ends();
}

fn announcement_ends() {
    let Some((_, devices)) = of_this_process() else {
        return;
    };
    // Release the lock before calling the tracer.
    let traced = {
        let devices = devices.by_number.lock();
        let mut devices = devices.values();
        devices.find(|traced| traced.tracer.wants_operations()).cloned()
    };
    if let Some(traced) = traced {
        traced.tracer.operation_ends();
    }
}

/// The thread's stream, if it has one.
pub(super) fn stream() -> Option<&'static Stream> {
    let recorder = this_thread::recorder();
    (!recorder.is_idle()).then_some(&recorder.stream)
}
