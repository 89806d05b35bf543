//! The declarations of TR7, the draft of OpenMP 5.0 of July 2018, that differ from TR6 and OpenMP 5.0. Implemented by
//! LLVM's development version from September to December 2018. A tool is started as in [`tr6`](crate::old::tr6), and
//! callbacks have the same arguments. Kinds of synchronization and types of dependences have today's numbers.

open_enum! {
    /// Numbers of the callbacks: those of TR6 without [`idle`](crate::old::tr6::ompt_callback_idle), which TR7 removed,
    /// and two new ones. All are today's.
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
        ompt_callback_reduction = 31,
        ompt_callback_dispatch = 32,
    }

    /// The kind of mutual exclusion.
    ompt_mutex_t, "ompt_mutex_" {
        ompt_mutex_lock = 1,
        ompt_mutex_nest_lock = 2,
        ompt_mutex_critical = 3,
        ompt_mutex_atomic = 4,
        ompt_mutex_ordered = 5,
    }

    /// Why a task was switched at a task scheduling point.
    ompt_task_status_t, "ompt_task_" {
        ompt_task_complete = 1,
        ompt_task_yield = 2,
        ompt_task_cancel = 3,
        /// For any other reason.
        ompt_task_switch = 4,
    }
}
