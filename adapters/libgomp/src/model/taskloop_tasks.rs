//! State that the tasks of a taskloop share.

use core::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use ompt_sys::ompt_task_flag_t;

use crate::model::{Task, Work};

/// A taskloop.
pub(crate) struct Taskloop {
    pub(crate) work: Work,
    pub(crate) encountering: &'static Task,
    pub(crate) flags: ompt_task_flag_t,
    pub(crate) code: *const c_void,
    pub(crate) tasks: Vec<&'static Task>,
    /// Number of chunks that have begun.
    pub(crate) begun: AtomicUsize,
    /// Number of references: the chunks that have not ended, and the call that created the taskloop.
    pub(crate) users: AtomicUsize,
}

impl Taskloop {
    /// Drops a reference; the last one frees the taskloop.
    ///
    /// # Safety
    /// `this` came from `Box::into_raw`, and the caller has a reference.
    pub(crate) unsafe fn release(this: *const Taskloop) {
        // SAFETY: by the caller's promise. AcqRel: all uses precede the release of the last reference.
        unsafe {
            if (*this).users.fetch_sub(1, Ordering::AcqRel) == 1 {
                drop(Box::from_raw(this.cast_mut()));
            }
        }
    }
}
