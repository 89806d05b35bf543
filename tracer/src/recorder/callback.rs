//! A callback in the form in which it is registered.

use std::ffi::c_void;
use std::mem::transmute;

use ompt_sys::{ompt_callback_t, ompt_callbacks_t};

/// A callback of the table.
#[derive(Clone, Copy)]
pub struct Callback {
    /// The callback's number.
    pub number: ompt_callbacks_t,
    /// The callback's name without `ompt_callback_`.
    pub name: &'static str,
    /// The name of its group in `OMPTRACE_EVENTS`.
    pub group: &'static str,
    pub(crate) function: ompt_callback_t,
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callback")
            .field("number", &self.number)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// A callback function of any type.
pub(crate) struct Function(pub(crate) ompt_callback_t);

impl Function {
    /// # Safety
    /// The runtime calls the function with the arguments of its callback.
    pub(crate) const unsafe fn new(function: *const c_void) -> Function {
        // SAFETY: `ompt_set_callback` takes all callbacks as this type; by this function's contract.
        Function(unsafe { transmute::<*const c_void, ompt_callback_t>(function) })
    }
}
