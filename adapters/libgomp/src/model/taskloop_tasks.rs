//! What the tasks of a taskloop share.

use core::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use ompt_sys::ompt_task_flag_t;

use crate::model::{Task, Work};

/// The tasks of a taskloop.
pub(crate) struct Taskloop {
    pub(crate) work: Work,
    pub(crate) encountering: &'static Task,
    pub(crate) flags: ompt_task_flag_t,
    pub(crate) code: *const c_void,
    pub(crate) tasks: Vec<&'static Task>,
    /// How many chunks have begun.
    pub(crate) begun: AtomicUsize,
    /// How many parts of the program still need this: chunks that have not ended, and the call that made it.
    pub(crate) users: AtomicUsize,
}

impl Taskloop {
    /// One fewer needs it; the last frees it.
    ///
    /// # Safety
    /// `this` came from `Box::into_raw`, and the caller was counted.
    pub(crate) unsafe fn release(this: *const Taskloop) {
        // SAFETY: by the caller's promise. AcqRel: all uses come before the last one's.
        unsafe {
            if (*this).users.fetch_sub(1, Ordering::AcqRel) == 1 {
                drop(Box::from_raw(this.cast_mut()));
            }
        }
    }
}
