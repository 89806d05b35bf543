//! Device code images, which contain the names of kernels.

use std::ffi::c_int;

use omptrace_device::memory;
use omptrace_trace_format::event::DeviceImage;
use omptrace_trace_format::field::Bytes;

use super::session_devices::of_this_process;
use crate::session::cold_path;

/// Maximum size of an image to keep, in bytes; larger ones are not a program's code.
const MAX_IMAGE_BYTES: usize = 16 << 20;
/// Maximum number of bytes of an image in one event.
const IMAGE_PART: usize = 64 << 10;

/// Code was loaded onto a device: keeps its image if it can be read.
pub(crate) fn loaded(device_num: c_int, module_id: u64, host_addr: u64, bytes: u64) {
    let Some((_, devices)) = of_this_process() else {
        return;
    };
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    if host_addr == 0 || len == 0 || len > MAX_IMAGE_BYTES {
        return;
    }
    let mut images = devices.images.lock();
    if images.contains(&(host_addr, bytes)) {
        return;
    }
    images.push((host_addr, bytes));
    drop(images);
    let mut part = vec![0; IMAGE_PART.min(len)];
    for offset in (0..len).step_by(IMAGE_PART) {
        part.truncate(len - offset);
        if !memory::copy((host_addr as usize).wrapping_add(offset), &mut part) {
            return;
        }
        cold_path::wide(|_| DeviceImage {
            device_num,
            module_id,
            offset: offset as u64,
            bytes: Bytes((&part[..]).into()),
        });
    }
}
