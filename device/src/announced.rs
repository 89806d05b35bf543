//! What a runtime reports when it announces a device.

use ompt_sys::{ompt_device_t, ompt_function_lookup_t};

use crate::cupti;

/// The description of a device in `ompt_callback_device_initialize` (OpenMP 5.2, 19.5.2.19), and the user's choice of
/// CUPTI.
#[derive(Clone, Copy, Debug)]
pub struct Announced<'a> {
    /// OpenMP's number of the device.
    pub device_num: i32,
    /// The device's type, as named by the runtime.
    pub device_type: &'a str,
    /// The handle to pass to the device's entry points.
    pub handle: *mut ompt_device_t,
    /// Looks up these entry points.
    pub lookup: Option<ompt_function_lookup_t>,
    /// The choice of `libcupti`.
    pub cupti: &'a cupti::Choice,
}
