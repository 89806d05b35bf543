//! The declarations of TR6, the draft of OpenMP 5.0 of November 2017, that differ from OpenMP 5.0. Implemented by LLVM
//! 6 and 7, and by Intel 2018.0.3 and 2019.0. Everything else is as in the rest of this crate.

use core::ffi::{c_int, c_uint, c_void};

use crate::{ompt_data_t, ompt_function_lookup_t, ompt_scope_endpoint_t};

/// Initializes the tool. There is no device number between the two arguments yet. Returns 0 if the tool wants no
/// events.
pub type ompt_initialize_t =
    unsafe extern "C" fn(lookup: ompt_function_lookup_t, tool_data: *mut ompt_data_t) -> c_int;

/// A task's frames, without flags; a third shorter than [`ompt_frame_t`](crate::ompt_frame_t).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct omp_frame_t {
    /// The frame in which the runtime called the task's code.
    pub exit_frame: *mut c_void,
    /// The frame in which the task's code called the runtime.
    pub enter_frame: *mut c_void,
}

/// A parallel region starts; `invoker` tells whether the program or the runtime calls the code of its implicit tasks,
/// with the values of [`ompt_parallel_invoker_program`](crate::ompt_parallel_invoker_program) and
/// [`ompt_parallel_invoker_runtime`](crate::ompt_parallel_invoker_runtime).
pub type ompt_callback_parallel_begin_t = unsafe extern "C" fn(
    encountering_task_data: *mut ompt_data_t,
    encountering_task_frame: *const omp_frame_t,
    parallel_data: *mut ompt_data_t,
    requested_team_size: c_uint,
    invoker: c_int,
    codeptr_ra: *const c_void,
);

/// A task is generated, including the initial task; `type`: [`ompt_task_flag_t`](crate::ompt_task_flag_t).
pub type ompt_callback_task_create_t = unsafe extern "C" fn(
    encountering_task_data: *mut ompt_data_t,
    encountering_task_frame: *const omp_frame_t,
    new_task_data: *mut ompt_data_t,
    r#type: c_int,
    has_dependences: c_int,
    codeptr_ra: *const c_void,
);

/// An implicit task starts or ends. It has no flags, because this callback does not report initial tasks.
pub type ompt_callback_implicit_task_t = unsafe extern "C" fn(
    endpoint: ompt_scope_endpoint_t,
    parallel_data: *mut ompt_data_t,
    task_data: *mut ompt_data_t,
    team_size: c_uint,
    thread_num: c_uint,
);

/// A thread that belongs to no team starts or stops waiting for work: [`ompt_callback_idle`].
pub type ompt_callback_idle_t = unsafe extern "C" fn(endpoint: ompt_scope_endpoint_t);

open_enum! {
    /// Numbers of the callbacks. Those below `idle` are today's. OpenMP 5.0 removed `idle`, and gave its number to
    /// `reduction`. There are no numbers above.
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
        ompt_callback_device_load = 14,
        ompt_callback_device_unload = 15,
        ompt_callback_sync_region_wait = 16,
        ompt_callback_mutex_released = 17,
        ompt_callback_task_dependences = 18,
        ompt_callback_task_dependence = 19,
        ompt_callback_work = 20,
        ompt_callback_master = 21,
        ompt_callback_target_map = 22,
        ompt_callback_sync_region = 23,
        ompt_callback_lock_init = 24,
        ompt_callback_lock_destroy = 25,
        ompt_callback_mutex_acquire = 26,
        ompt_callback_mutex_acquired = 27,
        ompt_callback_nest_lock = 28,
        ompt_callback_flush = 29,
        ompt_callback_cancel = 30,
        ompt_callback_idle = 31,
    }

    /// The result of a request to register a callback.
    ompt_set_result_t, "ompt_set_" {
        ompt_set_error = 0,
        ompt_set_never = 1,
        ompt_set_sometimes = 2,
        ompt_set_sometimes_paired = 3,
        ompt_set_always = 4,
    }

    /// A region that synchronizes threads or tasks.
    ompt_sync_region_kind_t, "ompt_sync_region_" {
        ompt_sync_region_barrier = 1,
        ompt_sync_region_taskwait = 2,
        ompt_sync_region_taskgroup = 3,
    }

    /// The kind of mutual exclusion.
    ompt_mutex_kind_t, "ompt_mutex_" {
        ompt_mutex_lock = 0x11,
        ompt_mutex_nest_lock = 0x12,
        ompt_mutex_critical = 0x13,
        ompt_mutex_atomic = 0x14,
        ompt_mutex_ordered = 0x20,
    }

    /// Why a task was switched at a task scheduling point.
    ompt_task_status_t, "ompt_task_" {
        ompt_task_complete = 1,
        ompt_task_yield = 2,
        ompt_task_cancel = 3,
        /// For any other reason.
        ompt_task_others = 4,
    }

    /// The type of a dependence.
    ompt_task_dependence_flag_t, "ompt_task_dependence_type_" {
        ompt_task_dependence_type_out = 1,
        ompt_task_dependence_type_in = 2,
        ompt_task_dependence_type_inout = 3,
    }
}
