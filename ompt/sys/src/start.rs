//! How a tool is found, initialized and finalized (OpenMP 5.2, 19.2, 19.3 and 19.5.1; OpenMP 6.0, 32.2 and 34.1).

use core::ffi::{c_char, c_int, c_uint};

use crate::{ompt_data_t, ompt_interface_fn_t};

/// `ompt_start_tool`, the one symbol that a tool exports (OpenMP 5.2, 19.3.1). NULL says that it does not want to be
/// used; the result stays valid until finalize returns.
pub type ompt_start_tool_t = unsafe extern "C" fn(
    omp_version: c_uint,
    runtime_version: *const c_char,
) -> *mut ompt_start_tool_result_t;

/// The result of `ompt_start_tool` (OpenMP 5.2, 19.4.1). The specification forbids NULL in both functions; a runtime that
/// meets it does not use the tool.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_start_tool_result_t {
    /// Called once, before the first event.
    pub initialize: Option<ompt_initialize_t>,
    /// Called once, after the last event, if `initialize` did not return 0.
    pub finalize: Option<ompt_finalize_t>,
    /// Passed to both.
    pub tool_data: ompt_data_t,
}

/// Initializes the tool (OpenMP 5.2, 19.5.1.1); 0 says that it wants no events.
pub type ompt_initialize_t = unsafe extern "C" fn(
    lookup: ompt_function_lookup_t,
    initial_device_num: c_int,
    tool_data: *mut ompt_data_t,
) -> c_int;

/// Finalizes the tool (OpenMP 5.2, 19.5.1.2).
pub type ompt_finalize_t = unsafe extern "C" fn(tool_data: *mut ompt_data_t);

/// Finds an entry point by its name (OpenMP 5.2, 19.6.3); `None` when the runtime does not offer it. The runtime's
/// lookup finds those of [`entry_points`](crate::entry_points) on the host; a device's finds those on that device.
pub type ompt_function_lookup_t =
    unsafe extern "C" fn(interface_function_name: *const c_char) -> Option<ompt_interface_fn_t>;
