//! Reports of synchronization regions and of the waits in them (OpenMP 5.2, 19.5.2.13).

use core::ffi::c_void;

use ompt_sys::*;

use super::Task;

/// Reports the begin of a synchronization region and of the wait in it.
#[inline(always)]
pub(crate) fn report_begin(
    kind: ompt_sync_region_t,
    parallel: *mut ompt_data_t,
    task: &Task,
    code: *const c_void,
) {
    report!(
        ompt_callback_sync_region as ompt_callback_sync_region_t,
        kind,
        ompt_scope_begin,
        parallel,
        task.data(),
        code
    );
    report!(
        ompt_callback_sync_region_wait as ompt_callback_sync_region_t,
        kind,
        ompt_scope_begin,
        parallel,
        task.data(),
        code
    );
}

/// Reports the end of the wait and of the region.
#[inline(always)]
pub(crate) fn report_end(
    kind: ompt_sync_region_t,
    parallel: *mut ompt_data_t,
    task: &Task,
    code: *const c_void,
) {
    report!(
        ompt_callback_sync_region_wait as ompt_callback_sync_region_t,
        kind,
        ompt_scope_end,
        parallel,
        task.data(),
        code
    );
    report!(
        ompt_callback_sync_region as ompt_callback_sync_region_t,
        kind,
        ompt_scope_end,
        parallel,
        task.data(),
        code
    );
}
