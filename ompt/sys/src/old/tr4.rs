//! The declarations of TR4, the draft of OpenMP 5.0 of November 2016, that differ from TR6, which followed a year
//! later. Tools are started in another way, and callbacks have other numbers. Everything else is as in
//! [`tr6`](crate::old::tr6).

use core::ffi::c_int;

use crate::ompt_function_lookup_t;

/// The result of `ompt_start_tool` (2.2.1): the first two members of
/// [`ompt_start_tool_result_t`](crate::ompt_start_tool_result_t), so that one structure serves all generations.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_fns_t {
    /// Called once, before the first event. The draft forbids NULL.
    pub initialize: Option<ompt_initialize_t>,
    /// Called once, after the last event. The draft forbids NULL.
    pub finalize: Option<ompt_finalize_t>,
}

/// Initializes the tool, which finds its own structure in `fns`. Returns 0 if the tool wants no events.
pub type ompt_initialize_t =
    unsafe extern "C" fn(lookup: ompt_function_lookup_t, fns: *mut ompt_fns_t) -> c_int;

/// Finalizes the tool.
pub type ompt_finalize_t = unsafe extern "C" fn(fns: *mut ompt_fns_t);

/// The number of `idle` in LLVM's development version in the spring of 2017, the first to have this interface, which
/// refuses [`ompt_callback_idle`]. It uses the task types [`ompt_task_type_t`].
pub const ompt_callback_idle_of_early_2017: ompt_callbacks_t = ompt_callbacks_t(13);

open_enum! {
    /// The task types in LLVM's development version in the spring of 2017, which are not flags.
    ompt_task_type_t, "ompt_task_" {
        ompt_task_initial = 1,
        ompt_task_implicit = 2,
        ompt_task_explicit = 3,
        ompt_task_target = 4,
    }

    /// Numbers of the callbacks. TR4 has no callbacks for loading code onto a device, so all numbers from
    /// `sync_region_wait` on are lower by two than in TR6.
    ompt_callbacks_t, "ompt_callback_" {
        ompt_callback_thread_begin = 1,
        ompt_callback_thread_end = 2,
        ompt_callback_parallel_begin = 3,
        ompt_callback_parallel_end = 4,
        ompt_callback_task_create = 5,
        ompt_callback_task_schedule = 6,
        ompt_callback_implicit_task = 7,
        ompt_callback_target = 8,
        ompt_callback_target_data_op = 9,
        ompt_callback_target_submit = 10,
        ompt_callback_control_tool = 11,
        ompt_callback_device_initialize = 12,
        ompt_callback_device_finalize = 13,
        ompt_callback_sync_region_wait = 14,
        ompt_callback_mutex_released = 15,
        ompt_callback_task_dependences = 16,
        ompt_callback_task_dependence = 17,
        ompt_callback_work = 18,
        ompt_callback_master = 19,
        ompt_callback_target_map = 20,
        ompt_callback_sync_region = 21,
        ompt_callback_lock_init = 22,
        ompt_callback_lock_destroy = 23,
        ompt_callback_mutex_acquire = 24,
        ompt_callback_mutex_acquired = 25,
        ompt_callback_nest_lock = 26,
        ompt_callback_flush = 27,
        ompt_callback_cancel = 28,
        ompt_callback_idle = 29,
    }
}
