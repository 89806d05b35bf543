//! The second tool while it is active, and its end.

use std::sync::atomic::{AtomicPtr, Ordering};

use ompt_sys::ompt_start_tool_result_t;

use crate::second_tool::callbacks;

/// What the second tool's `ompt_start_tool` returned, until the tool is finalized; else null.
pub(crate) static SECOND: AtomicPtr<ompt_start_tool_result_t> = AtomicPtr::new(std::ptr::null_mut());

/// The runtime is done with its tools, or the second tool is.
pub(crate) fn end() {
    // AcqRel; pairs with `begin` and with itself: the tool is finalized once.
    let second = SECOND.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: as in `begin`.
    let Some(result) = (unsafe { second.as_mut() }) else {
        return;
    };
    callbacks::forget_theirs();
    if let Some(finalize) = result.finalize {
        // SAFETY: the structure's own word (OpenMP 5.2, 19.5.1.2).
        unsafe { finalize(&mut result.tool_data) };
    }
}
