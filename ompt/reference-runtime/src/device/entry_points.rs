//! The tracing entry points (OpenMP 5.2, 19.6.2).

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::PoisonError;
use std::{mem, ptr};

use ompt_sys::*;

use super::buffers::is_in_completion;
use super::description::Format;
use super::misbehaviour::Misbehaviour;
use super::operation::host_ns;
use super::records::NativeRecord;
use super::running::{DEVICES, ENDS, MAX_DEVICES, Running};

/// The device with this handle.
fn of_handle(device: *mut ompt_device_t) -> Option<&'static Running> {
    DEVICES.get()?.get((device as usize).checked_sub(1)?)
}

/// Whether any device has this misbehaviour. Entry points for records do not tell which device the buffer belongs to.
fn with_misbehaviour(misbehaviour: Misbehaviour) -> bool {
    DEVICES.get().into_iter().flatten().any(|device| device.does(misbehaviour))
}

/// Turns these functions into the lookup functions of devices.
macro_rules! entry_points {
    ($($name:literal $function:ident: $signature:ty,)*) => {
        unsafe extern "C" fn lookup<const DEVICE: usize>(name: *const c_char) -> Option<ompt_interface_fn_t> {
            // SAFETY: the specification demands a C string.
            let name = unsafe { CStr::from_ptr(name) };
            let script = &DEVICES.get()?.get(DEVICE)?.script;
            let short = name.to_str().ok().and_then(|name| name.strip_prefix("ompt_"));
            if short.is_some_and(|short| script.lacks(short)) {
                return None;
            }
            $(if name == $name {
                let function: $signature = $function;
                // SAFETY: the tool casts it back to the type that belongs to the name.
                return Some(unsafe { mem::transmute::<*const c_void, ompt_interface_fn_t>(function as *const c_void) });
            })*
            None
        }
    };
}

entry_points! {
    c"ompt_get_device_num_procs" get_device_num_procs: ompt_get_device_num_procs_t,
    c"ompt_get_device_time" get_device_time: ompt_get_device_time_t,
    c"ompt_translate_time" translate_time: ompt_translate_time_t,
    c"ompt_set_trace_ompt" set_trace_ompt: ompt_set_trace_ompt_t,
    c"ompt_set_trace_native" set_trace_native: ompt_set_trace_native_t,
    c"ompt_get_buffer_limits" get_buffer_limits: ompt_get_buffer_limits_t,
    c"ompt_start_trace" start_trace: ompt_start_trace_t,
    c"ompt_pause_trace" pause_trace: ompt_pause_trace_t,
    c"ompt_flush_trace" flush_trace: ompt_flush_trace_t,
    c"ompt_stop_trace" stop_trace: ompt_stop_trace_t,
    c"ompt_advance_buffer_cursor" advance_buffer_cursor: ompt_advance_buffer_cursor_t,
    c"ompt_get_record_type" get_record_type: ompt_get_record_type_t,
    c"ompt_get_record_ompt" get_record_ompt: ompt_get_record_ompt_t,
    c"ompt_get_record_native" get_record_native: ompt_get_record_native_t,
    c"ompt_get_record_abstract" get_record_abstract: ompt_get_record_abstract_t,
}

/// The lookup function of a device.
pub(crate) fn lookup_of(device: u32) -> ompt_function_lookup_t {
    const LOOKUPS: [ompt_function_lookup_t; MAX_DEVICES] =
        [lookup::<0>, lookup::<1>, lookup::<2>, lookup::<3>];
    LOOKUPS[device as usize % MAX_DEVICES]
}

unsafe extern "C" fn get_device_num_procs(_: *mut ompt_device_t) -> c_int {
    64
}

unsafe extern "C" fn get_device_time(device: *mut ompt_device_t) -> ompt_device_time_t {
    of_handle(device).map_or(ompt_time_none, |device| {
        device.jitter();
        let time = device.script.clock.at(host_ns());
        device.jitter();
        time
    })
}

unsafe extern "C" fn translate_time(device: *mut ompt_device_t, time: ompt_device_time_t) -> f64 {
    /// The relative error of [`Misbehaviour::TranslatesBadly`].
    const ERROR: f64 = 3e-4;
    let device = of_handle(device).filter(|device| !device.does(Misbehaviour::TranslatesToZero));
    device.map_or(0.0, |device| {
        let ns = device.script.clock.host_ns(time);
        let first = *device.first_translated_ns.get_or_init(|| ns);
        match device.does(Misbehaviour::TranslatesBadly) {
            true => (ns + (ns - first) * ERROR) / 1e9,
            false => ns / 1e9,
        }
    })
}

unsafe extern "C" fn set_trace_ompt(
    device: *mut ompt_device_t,
    _: c_uint,
    kind: c_uint,
) -> ompt_set_result_t {
    match of_handle(device) {
        None => ompt_set_error,
        Some(device) if device.does(Misbehaviour::RefusesOmpt) || device.script.format == Format::Native => {
            ompt_set_never
        }
        Some(device) if device.does(Misbehaviour::RefusesEmi) && kind >= ompt_callback_target_emi.0 => {
            ompt_set_error
        }
        Some(device) => {
            let of_targets = [0, ompt_callback_target.0, ompt_callback_target_emi.0];
            let of_work = [
                ompt_callback_target_data_op.0,
                ompt_callback_target_data_op_emi.0,
                ompt_callback_target_submit.0,
                ompt_callback_target_submit_emi.0,
            ];
            device.trace().wants_targets |= of_targets.contains(&kind);
            match device.does(Misbehaviour::GrantsKinds) {
                true if kind == 0 => ompt_set_sometimes,
                true if !of_targets.contains(&kind) && !of_work.contains(&kind) => ompt_set_never,
                _ => ompt_set_always,
            }
        }
    }
}

unsafe extern "C" fn set_trace_native(device: *mut ompt_device_t, _: c_int, _: c_int) -> ompt_set_result_t {
    match of_handle(device) {
        None => ompt_set_error,
        Some(device) if device.does(Misbehaviour::RefusesNative) || device.script.format == Format::Ompt => {
            ompt_set_never
        }
        Some(_) => ompt_set_always,
    }
}

unsafe extern "C" fn get_buffer_limits(_: *mut ompt_device_t, most: *mut c_int, bytes: *mut usize) {
    // SAFETY: the specification demands pointers that can be written.
    unsafe {
        *most = 8;
        *bytes = 0;
    }
}

unsafe extern "C" fn start_trace(
    device: *mut ompt_device_t,
    request: ompt_callback_buffer_request_t,
    complete: ompt_callback_buffer_complete_t,
) -> c_int {
    let device = of_handle(device).filter(|device| !device.does(Misbehaviour::RefusesStart));
    device.map_or(0, |device| {
        let before = device.trace().callbacks.replace((request, complete));
        if before.is_some() && device.does(Misbehaviour::WarnsOfSecondStart) {
            eprintln!(
                "Buffer request and complete functions already exist for device {}, ignoring ...",
                device.number
            );
            device.trace().callbacks = before;
        } else if device.does(Misbehaviour::FlushesBufferOnce) {
            let writer = device.writer();
            device.trace().filling.remove(&writer);
        }
        1
    })
}

unsafe extern "C" fn pause_trace(device: *mut ompt_device_t, begin_pause: c_int) -> c_int {
    of_handle(device).map_or(0, |device| {
        device.trace().is_paused = begin_pause != 0;
        1
    })
}

unsafe extern "C" fn flush_trace(device: *mut ompt_device_t) -> c_int {
    of_handle(device).map_or(0, |device| {
        device.must_be_alive("ompt_flush_trace");
        device.trace().played.flushes += 1;
        let in_completion = is_in_completion() && device.does(Misbehaviour::NoFlushInCompletion);
        if in_completion || device.trace().is_unloaded {
            return 0;
        }
        if !device.does(Misbehaviour::CompletesAfterStop) {
            device.flush(false);
        }
        1
    })
}

unsafe extern "C" fn stop_trace(device: *mut ompt_device_t) -> c_int {
    of_handle(device).map_or(0, |device| {
        device.must_be_alive("ompt_stop_trace");
        device.stop();
        1
    })
}

unsafe extern "C" fn advance_buffer_cursor(
    device: *mut ompt_device_t,
    buffer: *mut ompt_buffer_t,
    _: usize,
    current: ompt_buffer_cursor_t,
    next: *mut ompt_buffer_cursor_t,
) -> c_int {
    let Some(device) = of_handle(device) else {
        return 0;
    };
    device.must_be_alive("ompt_advance_buffer_cursor");
    if device.does(Misbehaviour::EndlessCursor) {
        return 1;
    }
    let after = current + device.record_bytes() as u64;
    let ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_valid = ends.get(&(buffer as usize)).is_some_and(|end| after < *end as u64);
    if is_valid {
        // SAFETY: the specification demands a pointer that can be written.
        unsafe { *next = after };
    }
    is_valid.into()
}

/// Whether it is the second, fourth, ... record of its buffer.
fn is_second(buffer: *mut ompt_buffer_t, current: ompt_buffer_cursor_t, bytes: usize) -> bool {
    (current as usize).wrapping_sub(buffer as usize) / bytes % 2 == 1
}

unsafe extern "C" fn get_record_type(
    buffer: *mut ompt_buffer_t,
    current: ompt_buffer_cursor_t,
) -> ompt_record_t {
    let formats = DEVICES.get().into_iter().flatten().map(|device| device.script.format);
    let is_native = formats.clone().any(|format| format == Format::Native);
    let bytes = size_of::<ompt_record_ompt_t>();
    if with_misbehaviour(Misbehaviour::InvalidRecords) && is_second(buffer, current, bytes) {
        return ompt_record_invalid;
    }
    if is_native { ompt_record_native } else { ompt_record_ompt }
}

unsafe extern "C" fn get_record_ompt(
    buffer: *mut ompt_buffer_t,
    current: ompt_buffer_cursor_t,
) -> *mut ompt_record_ompt_t {
    let is_second = is_second(buffer, current, size_of::<ompt_record_ompt_t>());
    match () {
        () if is_second && with_misbehaviour(Misbehaviour::NullRecords) => ptr::null_mut(),
        () if is_second && with_misbehaviour(Misbehaviour::BadPointers) => 0x10 as *mut ompt_record_ompt_t,
        () => current as *mut ompt_record_ompt_t,
    }
}

unsafe extern "C" fn get_record_native(
    _: *mut ompt_buffer_t,
    current: ompt_buffer_cursor_t,
    host_op_id: *mut ompt_id_t,
) -> *mut c_void {
    let record = current as *mut NativeRecord;
    // SAFETY: the cursor is a record's address, and the specification demands a pointer that can be written.
    unsafe { *host_op_id = (*record).host_op_id };
    record.cast()
}

unsafe extern "C" fn get_record_abstract(native_record: *mut c_void) -> *mut ompt_record_abstract_t {
    // SAFETY: a record returned by `get_record_native`.
    unsafe { &raw mut (*native_record.cast::<NativeRecord>()).summary }
}
