//! A callback as it is registered.

use std::ffi::c_void;
use std::mem::transmute;

use ompt_sys::{ompt_callback_t, ompt_callbacks_t};

/// A callback of the table.
#[derive(Clone, Copy)]
pub struct Callback {
    /// Its number.
    pub number: ompt_callbacks_t,
    /// Its name without `ompt_callback_`.
    pub name: &'static str,
    /// The group by which `OMPTRACE_EVENTS` can name it.
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

/// A function that is registered.
pub(crate) struct Function(pub(crate) ompt_callback_t);

impl Function {
    /// # Safety
    /// The runtime calls it with its arguments.
    pub(crate) const unsafe fn new(function: *const c_void) -> Function {
        // SAFETY: `ompt_set_callback` takes all callbacks as this type; by this function's contract.
        Function(unsafe { transmute::<*const c_void, ompt_callback_t>(function) })
    }
}
