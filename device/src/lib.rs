//! What a device offers to a tool: the tracing entry points that its lookup answers.
//!
//! A runtime passes a lookup of the device's own to `ompt_callback_device_initialize` (OpenMP 5.2, 19.5.2.19). Real
//! runtimes answer everything, something or nothing; which it is goes into the trace.

use std::ffi::CStr;

use ompt_sys::ompt_function_lookup_t;

/// The entry points of a device (OpenMP 5.2, 19.6.2; `ompt_get_buffer_limits`: OpenMP 6.0).
pub const ENTRY_POINTS: &[&CStr] = &[
    c"ompt_get_device_num_procs",
    c"ompt_get_device_time",
    c"ompt_translate_time",
    c"ompt_set_trace_ompt",
    c"ompt_set_trace_native",
    c"ompt_get_buffer_limits",
    c"ompt_start_trace",
    c"ompt_pause_trace",
    c"ompt_flush_trace",
    c"ompt_stop_trace",
    c"ompt_advance_buffer_cursor",
    c"ompt_get_record_type",
    c"ompt_get_record_ompt",
    c"ompt_get_record_native",
    c"ompt_get_record_abstract",
];

/// The names that `lookup` answers, of [`ENTRY_POINTS`]; none where the runtime passed no lookup.
///
/// # Safety
/// `lookup` is what a runtime passed to `ompt_callback_device_initialize`, and the callback has not returned.
pub unsafe fn entry_points(lookup: Option<ompt_function_lookup_t>) -> Vec<&'static str> {
    let Some(lookup) = lookup else {
        return Vec::new();
    };
    // SAFETY: by this function's contract; the names are C strings.
    let answers = |name: &&&CStr| unsafe { lookup(name.as_ptr()) }.is_some();
    ENTRY_POINTS
        .iter()
        .filter(answers)
        .filter_map(|name| name.to_str().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::c_char;

    use super::*;

    unsafe extern "C" fn some(name: *const c_char) -> Option<ompt_sys::ompt_interface_fn_t> {
        unsafe extern "C" fn entry() {}
        // SAFETY: `entry_points` passes C strings.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_bytes().ends_with(b"_trace").then_some(entry)
    }

    #[test]
    fn names_what_the_lookup_answers() {
        // SAFETY: `some` is a lookup like a runtime's; no lookup is allowed too.
        unsafe {
            let names = entry_points(Some(some));
            assert_eq!(
                names,
                [
                    "ompt_start_trace",
                    "ompt_pause_trace",
                    "ompt_flush_trace",
                    "ompt_stop_trace"
                ]
            );
            assert!(entry_points(None).is_empty());
        }
    }
}
