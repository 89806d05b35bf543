//! The entry points for the second tool: those of the runtime, with replacements for those that involve callbacks or
//! data words; and the entry point with which the tracer queries its own words.

use std::ffi::{CStr, c_char, c_int};
use std::mem::transmute;

use ompt_sys::{ompt_data_t, ompt_frame_t, ompt_interface_fn_t};

use crate::runtime::lookup::{INFO_IS_THERE, Lookup};
use crate::second_tool::{active_tool, callbacks, data_words};

type Data = *mut ompt_data_t;

/// `ompt_function_lookup_t` for the second tool.
///
/// # Safety
/// `name` is a C string.
pub(crate) unsafe extern "C" fn find(name: *const c_char) -> Option<ompt_interface_fn_t> {
    let lookup = Lookup::current()?;
    // SAFETY: by this function's contract.
    let name = unsafe { CStr::from_ptr(name) };
    // The second tool only gets entry points that the runtime has.
    let of_runtime = lookup.find(name)?;
    let own: *const () = match name.to_bytes() {
        b"ompt_set_callback" => callbacks::set_theirs as *const (),
        b"ompt_get_callback" => callbacks::get_theirs as *const (),
        b"ompt_get_thread_data" => get_thread_data as *const (),
        b"ompt_get_parallel_info" => get_parallel_info::<true> as *const (),
        b"ompt_get_task_info" => get_task_info as *const (),
        b"ompt_finalize_tool" => finalize_tool as *const (),
        _ => return Some(of_runtime),
    };
    // SAFETY: entry points are cast to this type, whatever their own (OpenMP 5.2, 19.4.4.1).
    Some(unsafe { transmute::<*const (), ompt_interface_fn_t>(own) })
}

/// The runtime's lookup function, with a replacement for the entry point that returns the tracer's own data words.
pub(crate) fn our_lookup() -> Lookup {
    /// # Safety
    /// `name` is a C string.
    unsafe extern "C" fn find_ours(name: *const c_char) -> Option<ompt_interface_fn_t> {
        // SAFETY: by this function's contract.
        let name = unsafe { CStr::from_ptr(name) };
        let of_runtime = Lookup::current()?.find(name)?;
        if name != c"ompt_get_parallel_info" {
            return Some(of_runtime);
        }
        // SAFETY: as in `find`.
        Some(unsafe { transmute::<*const (), ompt_interface_fn_t>(get_parallel_info::<false> as *const ()) })
    }
    // SAFETY: it calls the runtime's lookup function while there is one.
    unsafe { Lookup::between(find_ours) }
}

unsafe extern "C" fn get_thread_data() -> Data {
    let get = Lookup::current().and_then(Lookup::get_thread_data);
    // SAFETY: no arguments; the runtime's word is valid.
    get.map_or(std::ptr::null_mut(), |get| unsafe { data_words::split(get()).1 })
}

/// For the second tool, or for the tracer. May be called in a signal handler.
unsafe extern "C" fn get_parallel_info<const THEIRS: bool>(
    ancestor_level: c_int,
    parallel_data: *mut Data,
    team_size: *mut c_int,
) -> c_int {
    let get = Lookup::current().and_then(Lookup::get_parallel_info);
    let Some(get) = get else { return 0 };
    // SAFETY: the arguments of this call.
    let found = unsafe { get(ancestor_level, parallel_data, team_size) };
    if found == INFO_IS_THERE {
        // SAFETY: if the information is available, the runtime has written to the place.
        unsafe { replace::<THEIRS>(parallel_data) };
    }
    found
}

unsafe extern "C" fn get_task_info(
    ancestor_level: c_int,
    flags: *mut c_int,
    task_data: *mut Data,
    task_frame: *mut *mut ompt_frame_t,
    parallel_data: *mut Data,
    thread_num: *mut c_int,
) -> c_int {
    let get = Lookup::current().and_then(Lookup::get_task_info);
    let Some(get) = get else { return 0 };
    // SAFETY: the arguments of this call.
    let found = unsafe { get(ancestor_level, flags, task_data, task_frame, parallel_data, thread_num) };
    if found == INFO_IS_THERE {
        // SAFETY: as above.
        unsafe {
            replace::<true>(task_data);
            replace::<true>(parallel_data);
        }
    }
    found
}

/// Finalizes only the second tool, not the tracer.
unsafe extern "C" fn finalize_tool() {
    active_tool::end();
}

/// Replaces the runtime's word with the second tool's, or with the tracer's.
///
/// # Safety
/// `place` is null, or contains null or a word of the runtime.
unsafe fn replace<const THEIRS: bool>(place: *mut Data) {
    if !place.is_null() {
        // SAFETY: by this function's contract.
        unsafe {
            let (ours, theirs) = data_words::split(*place);
            *place = if THEIRS { theirs } else { ours };
        }
    }
}
