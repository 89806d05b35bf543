//! What a runtime says of a device when it announces it.

use ompt_sys::{ompt_device_t, ompt_function_lookup_t};

use crate::cupti;

/// The description of a device in `ompt_callback_device_initialize` (OpenMP 5.2, 19.5.2.19), and the user's wishes.
#[derive(Clone, Copy, Debug)]
pub struct Announced<'a> {
    /// OpenMP's number of the device.
    pub device_num: i32,
    /// The runtime's word for its type.
    pub device_type: &'a str,
    /// Its handle for the runtime's entry points.
    pub handle: *mut ompt_device_t,
    /// Finds these entry points.
    pub lookup: Option<ompt_function_lookup_t>,
    /// Which `libcupti` is used.
    pub cupti: &'a cupti::Choice,
}
