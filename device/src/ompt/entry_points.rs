//! The entry points of a device (OpenMP 5.2, 19.6.2; `ompt_get_buffer_limits`: OpenMP 6.0, 37.6): one table.

use std::ffi::CStr;
use std::mem::transmute;

use ompt_sys::*;

/// Turns a row `field: signature = name` into a field of [`EntryPoints`], bound by name.
macro_rules! entry_points {
    ($($field:ident: $signature:ident = $name:literal;)*) => {
        /// The functions that a device offers to a tool; `None` for those that its lookup function does not find.
        #[derive(Clone, Copy, Debug, Default)]
        #[allow(missing_docs, reason = "each is the entry point of its name in the specification")]
        pub(crate) struct EntryPoints { $(pub(crate) $field: Option<$signature>,)* }

        impl EntryPoints {
            /// Binds the functions that `lookup` finds; none if the runtime passed no lookup function.
            ///
            /// # Safety
            /// A runtime passed `lookup` to `ompt_callback_device_initialize`, and the callback has not returned. Each
            /// function that it finds has the signature that the specification defines for its name.
            pub(crate) unsafe fn bind(lookup: Option<ompt_function_lookup_t>) -> EntryPoints {
                let Some(lookup) = lookup else {
                    return EntryPoints::default();
                };
                // SAFETY: by this function's contract; the names are C strings.
                let find = |name: &CStr| unsafe { lookup(name.as_ptr()) };
                EntryPoints {
                    // SAFETY: by this function's contract, it has this signature.
                    $($field: find($name).map(|found| unsafe { transmute::<ompt_interface_fn_t, $signature>(found) }),)*
                }
            }

            /// The specification's names of the available functions.
            pub(crate) fn names(&self) -> Vec<&'static str> {
                [$((self.$field.is_some(), $name)),*]
                    .into_iter()
                    .filter_map(|(is_there, name)| if is_there { name.to_str().ok() } else { None })
                    .collect()
            }
        }
    };
}

entry_points! {
    get_device_num_procs: ompt_get_device_num_procs_t = c"ompt_get_device_num_procs";
    get_device_time: ompt_get_device_time_t = c"ompt_get_device_time";
    translate_time: ompt_translate_time_t = c"ompt_translate_time";
    set_trace_ompt: ompt_set_trace_ompt_t = c"ompt_set_trace_ompt";
    set_trace_native: ompt_set_trace_native_t = c"ompt_set_trace_native";
    // Not called: the trace lists which entry points a device has.
    get_buffer_limits: ompt_get_buffer_limits_t = c"ompt_get_buffer_limits";
    start_trace: ompt_start_trace_t = c"ompt_start_trace";
    pause_trace: ompt_pause_trace_t = c"ompt_pause_trace";
    flush_trace: ompt_flush_trace_t = c"ompt_flush_trace";
    stop_trace: ompt_stop_trace_t = c"ompt_stop_trace";
    advance_buffer_cursor: ompt_advance_buffer_cursor_t = c"ompt_advance_buffer_cursor";
    get_record_type: ompt_get_record_type_t = c"ompt_get_record_type";
    get_record_ompt: ompt_get_record_ompt_t = c"ompt_get_record_ompt";
    get_record_native: ompt_get_record_native_t = c"ompt_get_record_native";
    get_record_abstract: ompt_get_record_abstract_t = c"ompt_get_record_abstract";
}

#[cfg(test)]
mod tests {
    use std::ffi::c_char;

    use super::*;

    unsafe extern "C" fn some(name: *const c_char) -> Option<ompt_interface_fn_t> {
        unsafe extern "C" fn entry() {}
        // SAFETY: `bind` passes C strings.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_bytes().ends_with(b"_trace").then_some(entry)
    }

    #[test]
    fn binds_what_the_lookup_answers() {
        // SAFETY: `some` is a lookup function like a runtime's, and the functions that it returns are not called.
        let bound = unsafe { EntryPoints::bind(Some(some)) };
        let names = ["ompt_start_trace", "ompt_pause_trace", "ompt_flush_trace", "ompt_stop_trace"];
        assert_eq!(bound.names(), names);
        // SAFETY: no lookup function is valid, too.
        assert!(unsafe { EntryPoints::bind(None) }.names().is_empty());
    }
}
