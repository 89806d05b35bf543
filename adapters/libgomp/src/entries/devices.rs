//! Devices of libgomp's plugins (OpenMP 5.2, 19.5.2.19 and 19.5.2.20). A device is reported to the tool before the
//! first construct that uses it. libgomp cannot trace devices, so there is no lookup function.

use core::ffi::{CStr, c_char, c_int, c_uint};
use core::{mem, ptr};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use interpose::elf::Library;

use crate::fork_lock::ForkLock;
use crate::tool::state;
use crate::which_libgomp::loaded_libraries;

/// The devices that were reported to the tool, one bit each.
static ANNOUNCED: AtomicU64 = AtomicU64::new(0);

/// Number of libgomp's devices; 0 before the first device construct.
static DEVICES: AtomicI32 = AtomicI32::new(0);

/// Number of libgomp's devices as far as the program has caused libgomp to determine it. libgomp loads its plugins at
/// the first query; a query by a tool must not trigger this.
pub(crate) fn known() -> c_int {
    // Relaxed: only the number is shared.
    DEVICES.load(Ordering::Relaxed)
}

/// Stores the number of libgomp's devices.
pub(crate) fn set_known(count: c_int) {
    // Relaxed: only the number is shared.
    DEVICES.store(count, Ordering::Relaxed);
}

/// Name and number of devices of each of libgomp's plugins, in the order of loading, by which libgomp numbers its
/// devices. Locked while a device is reported to the tool, which may take long or fork.
static PLUGINS: ForkLock<Vec<(&'static CStr, c_int)>> = ForkLock::new(Vec::new());

/// Reports a device to the tool, once. libgomp has loaded its plugins by now.
pub(crate) fn announce(device: c_int) {
    let bit = u32::try_from(device).ok().and_then(|device| 1_u64.checked_shl(device));
    let Some(bit) = bit else {
        return;
    };
    // Acquire: pairs with the release below, so that the tool knows the device before a thread that sees the bit
    // reports a construct.
    if ANNOUNCED.load(Ordering::Acquire) & bit != 0 {
        return;
    }
    let mut plugins = PLUGINS.lock();
    // Relaxed: bits are set under the lock.
    if ANNOUNCED.load(Ordering::Relaxed) & bit != 0 {
        return;
    }
    let r#type = name_of(device, &mut plugins).unwrap_or(c"");
    report!(
        ompt_callback_device_initialize as ompt_callback_device_initialize_t,
        device,
        r#type.as_ptr(),
        ptr::null_mut(),
        None,
        ptr::null(),
    );
    // libgomp closes its devices at exit. Functions that are registered later are called earlier.
    // SAFETY: the function stays loaded: a preloaded library is never unloaded.
    unsafe { libc::atexit(at_exit) };
    ANNOUNCED.fetch_or(bit, Ordering::Release);
}

/// Called in a forked child, in which no device is open.
pub(crate) fn forget() {
    ANNOUNCED.store(0, Ordering::Relaxed);
    PLUGINS.leave_to_parent();
}

extern "C" fn at_exit() {
    if !state::is_of_this_process() {
        return;
    }
    let announced = ANNOUNCED.swap(0, Ordering::Relaxed);
    let is_announced = |device: &c_int| announced >> device & 1 != 0;
    for device in (0..u64::BITS as c_int).filter(is_announced) {
        report!(ompt_callback_device_finalize as ompt_callback_device_finalize_t, device,);
    }
}

/// The plugin's name for its devices, such as `nvptx` or `gcn`.
fn name_of(device: c_int, plugins: &mut Vec<(&'static CStr, c_int)>) -> Option<&'static CStr> {
    const PLUGIN: &[u8] = b"libgomp-plugin-";
    if plugins.is_empty() {
        let mut found = Vec::new();
        loaded_libraries::each(|module, _| {
            let name = module.name().to_bytes();
            if name.windows(PLUGIN.len()).any(|window| window == PLUGIN) {
                found.push(module.library);
            }
        });
        plugins.extend(found.into_iter().filter_map(plugin));
    }
    let mut first = 0;
    plugins.iter().find_map(|(name, count)| {
        first += count;
        (device < first).then_some(*name)
    })
}

/// The name of a plugin and its number of devices (GCC's `libgomp-plugin.h`).
fn plugin(library: Library) -> Option<(&'static CStr, c_int)> {
    type GetName = unsafe extern "C" fn() -> *const c_char;
    type GetNumDevices = unsafe extern "C" fn(c_uint) -> c_int;
    let name = library.function(c"GOMP_OFFLOAD_get_name")?;
    let count = library.function(c"GOMP_OFFLOAD_get_num_devices")?;
    // libgomp never closes its plugins, so the name stays valid.
    // SAFETY: functions with these names have these types. The argument, OpenMP's `requires` clauses, is new in GCC 13
    // and ignored by earlier versions.
    unsafe {
        let name = mem::transmute::<usize, GetName>(name)();
        let count = mem::transmute::<usize, GetNumDevices>(count)(0);
        Some((CStr::from_ptr(name), count.max(0)))
    }
}
