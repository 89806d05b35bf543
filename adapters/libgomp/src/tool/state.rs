//! Whether there is a tool, in which process, and the settings from the program's environment variables.

use core::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, Ordering};

use ompt_sys::ompt_start_tool_result_t;

use crate::tool::callbacks;

/// The states of the search for the tool.
pub(super) mod found {
    pub(in crate::tool) const NOT_SEARCHED: u8 = 0;
    pub(in crate::tool) const NONE: u8 = 1;
    pub(in crate::tool) const ACTIVE: u8 = 2;
}

pub(super) static STATE: AtomicU8 = AtomicU8::new(found::NOT_SEARCHED);
pub(super) static TOOL: AtomicPtr<ompt_start_tool_result_t> = AtomicPtr::new(ptr::null_mut());
/// Regions may be cancelled, and their tasks discarded.
pub(super) static IS_CANCELLABLE: AtomicBool = AtomicBool::new(false);
/// Regions end with an additional barrier, after which their ends are reported.
pub(super) static HAS_EXACT_ENDS: AtomicBool = AtomicBool::new(false);
/// The process that found the tool, or its forked child.
pub(super) static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Whether `OMP_CANCELLATION` allows cancellation.
#[inline(always)]
pub(crate) fn is_cancellable() -> bool {
    // Relaxed: set before the tool is active.
    IS_CANCELLABLE.load(Ordering::Relaxed)
}

/// Whether regions end with an additional barrier. Not if cancellation is allowed: then no barrier may be added.
#[inline(always)]
pub(crate) fn has_exact_ends() -> bool {
    // Relaxed: set before the tool is active.
    HAS_EXACT_ENDS.load(Ordering::Relaxed) && !is_cancellable()
}

/// Whether the tool's threads are those of this process, as far as the C library knows.
pub(crate) fn is_of_this_process() -> bool {
    // SAFETY: no arguments.
    let pid = unsafe { libc::getpid() };
    pid == PROCESS.load(Ordering::Relaxed)
}

/// Finalizes the tool, once (OpenMP 5.2, 19.6.1.19).
pub(super) unsafe extern "C" fn finalize_tool() {
    let tool = TOOL.swap(ptr::null_mut(), Ordering::AcqRel);
    if tool.is_null() {
        return;
    }
    // SAFETY: the result of `ompt_start_tool`, which is valid until the finalizer returns.
    unsafe {
        if let Some(finalize) = (*tool).finalize {
            finalize(&raw mut (*tool).tool_data);
        }
    }
    STATE.store(found::NONE, Ordering::Release);
    callbacks::clear();
}
