//! How a tool is found, initialized and finalized (OpenMP 5.2, 19.2, 19.3 and 19.5.1; OpenMP 6.0, 32.2 and 34.1).

use core::ffi::{c_char, c_int, c_uint};

use crate::{ompt_data_t, ompt_interface_fn_t};

/// `ompt_start_tool`, the only symbol that a tool exports (OpenMP 5.2, 19.3.1). Returns NULL if the tool does not want
/// to be used; the result must stay valid until finalize returns.
pub type ompt_start_tool_t = unsafe extern "C" fn(
    omp_version: c_uint,
    runtime_version: *const c_char,
) -> *mut ompt_start_tool_result_t;

/// The result of `ompt_start_tool` (OpenMP 5.2, 19.4.1). The specification forbids NULL for both functions; a runtime
/// does not use a tool with NULL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_start_tool_result_t {
    /// Called once, before the first event.
    pub initialize: Option<ompt_initialize_t>,
    /// Called once, after the last event, if `initialize` did not return 0.
    pub finalize: Option<ompt_finalize_t>,
    /// Passed to both functions.
    pub tool_data: ompt_data_t,
}

/// Initializes the tool (OpenMP 5.2, 19.5.1.1); returns 0 if the tool wants no events.
pub type ompt_initialize_t = unsafe extern "C" fn(
    lookup: ompt_function_lookup_t,
    initial_device_num: c_int,
    tool_data: *mut ompt_data_t,
) -> c_int;

/// Finalizes the tool (OpenMP 5.2, 19.5.1.2).
pub type ompt_finalize_t = unsafe extern "C" fn(tool_data: *mut ompt_data_t);

/// Finds an entry point by its name (OpenMP 5.2, 19.6.3); `None` if it is not available. The runtime's lookup function
/// finds the host's [`entry_points`](crate::entry_points), and a device's lookup function finds those of the device.
pub type ompt_function_lookup_t =
    unsafe extern "C" fn(interface_function_name: *const c_char) -> Option<ompt_interface_fn_t>;
