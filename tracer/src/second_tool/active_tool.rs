//! The second tool while it is active, and its end.

use std::sync::atomic::{AtomicPtr, Ordering};

use ompt_sys::ompt_start_tool_result_t;

use crate::second_tool::callbacks;

/// The result of the second tool's `ompt_start_tool`; null without one, or once it is finalized.
pub(crate) static SECOND: AtomicPtr<ompt_start_tool_result_t> = AtomicPtr::new(std::ptr::null_mut());

/// Finalizes the second tool. Called when the runtime finalizes its tools, or by the second tool itself.
pub(crate) fn end() {
    // AcqRel; pairs with `begin` and with itself: the tool is finalized only once.
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
