//! Device constructs as the host sees them (OpenMP 5.2, 13; 19.5.2.26). Kernels and data operations are internal to
//! libgomp.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use ompt_sys::*;

use crate::entries::call::Call;
use crate::entries::devices;
use crate::model::thread::Thread;
use crate::which_libgomp::functions::Libgomp;

/// The flags that GCC passes.
mod flag {
    pub(crate) const NOWAIT: u32 = 1;
    pub(crate) const EXIT_DATA: u32 = 1 << 1;
}

/// GCC's number of the default device.
const DEFAULT_DEVICE: c_int = -1;

/// The device's OpenMP number, after the device was reported to the tool; the host's number if libgomp runs the
/// construct on the host.
fn number(gomp: &Libgomp, device: c_int) -> c_int {
    // SAFETY: libgomp's functions, without arguments.
    let (count, default) =
        unsafe { (real!(gomp, omp_get_num_devices)(), real!(gomp, omp_get_default_device)()) };
    devices::set_known(count);
    let device = if device == DEFAULT_DEVICE { default } else { device };
    if (0..count).contains(&device) {
        devices::announce(device);
        device
    } else {
        count
    }
}

/// The kind of a construct, with `nowait` or without.
fn kind(kind: ompt_target_t, flags: c_uint) -> ompt_target_t {
    const NOWAIT: u32 = ompt_target_nowait.0 - ompt_target.0;
    ompt_target_t(kind.0 + if flags & flag::NOWAIT != 0 { NOWAIT } else { 0 })
}

impl Thread {
    /// Reports a device construct around `construct`, which calls libgomp.
    fn target(&self, call: &Call, kind: ompt_target_t, device: c_int, construct: impl FnOnce()) {
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        let device = number(call.gomp, device);
        let task = self.task();
        if kind.0 >= ompt_target_nowait.0 {
            self.note_artificial_team();
        }
        let (mut target_task, mut target) = (ompt_data_none, ompt_data_none);
        let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
        let report = |endpoint, target_task: &mut ompt_data_t, target: &mut ompt_data_t| {
            if crate::tool::callbacks::get(ompt_callback_target_emi).is_null() {
                report!(
                    ompt_callback_target as ompt_callback_target_t,
                    kind,
                    endpoint,
                    device,
                    task.data(),
                    id,
                    call.code
                );
            } else {
                report!(
                    ompt_callback_target_emi as ompt_callback_target_emi_t,
                    kind,
                    endpoint,
                    device,
                    task.data(),
                    target_task,
                    target,
                    call.code
                );
            }
        };
        task.set_enter_frame(call.frame);
        report(ompt_scope_begin, &mut target_task, &mut target);
        construct();
        report(ompt_scope_end, &mut target_task, &mut target);
        task.set_enter_frame(ptr::null_mut());
    }
}

/// `NAME(arguments after the device): kind`. The kind depends on the construct's flags, if it has flags.
macro_rules! constructs {
    ($(fn $name:ident(device $(, $argument:ident: $type:ty)*): $kind:expr;)*) => {$(
        entry_in_memory! {
            fn $name(device: c_int $(, $argument: $type)*), call => {
                let real = real!(call.gomp, $name);
                // SAFETY: the program's own call.
                let construct = || unsafe { real(device $(, $argument)*) };
                match call.observed() {
                    Some(thread) => thread.target(&call, $kind, device, construct),
                    None => construct(),
                }
            }
        }
    )*};
}

constructs! {
    fn GOMP_target(device, function: *mut c_void, unused: *const c_void, count: usize, hosts: *mut *mut c_void, sizes: *mut usize, kinds: *mut u8): ompt_target;
    fn GOMP_target_ext(device, function: *mut c_void, count: usize, hosts: *mut *mut c_void, sizes: *mut usize, kinds: *mut u16, flags: c_uint, dependences: *mut *mut c_void, arguments: *mut *mut c_void): kind(ompt_target, flags);
    fn GOMP_target_data(device, unused: *const c_void, count: usize, hosts: *mut *mut c_void, sizes: *mut usize, kinds: *mut u8): ompt_target_enter_data;
    fn GOMP_target_data_ext(device, count: usize, hosts: *mut *mut c_void, sizes: *mut usize, kinds: *mut u16): ompt_target_enter_data;
    fn GOMP_target_update(device, unused: *const c_void, count: usize, hosts: *mut *mut c_void, sizes: *mut usize, kinds: *mut u8): ompt_target_update;
    fn GOMP_target_update_ext(device, count: usize, hosts: *mut *mut c_void, sizes: *mut usize, kinds: *mut u16, flags: c_uint, dependences: *mut *mut c_void): kind(ompt_target_update, flags);
    fn GOMP_target_enter_exit_data(device, count: usize, hosts: *mut *mut c_void, sizes: *mut usize, kinds: *mut u16, flags: c_uint, dependences: *mut *mut c_void): kind(if flags & flag::EXIT_DATA != 0 { ompt_target_exit_data } else { ompt_target_enter_data }, flags);
}

entry! {
    fn GOMP_target_end_data(), call => {
        let real = real!(call.gomp, GOMP_target_end_data);
        // SAFETY: the program's own call.
        let construct = || unsafe { real() };
        match call.observed() {
            Some(thread) => thread.target(&call, ompt_target_exit_data, DEFAULT_DEVICE, construct),
            None => construct(),
        }
    }
}
