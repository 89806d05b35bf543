//! The events of OMPT in the OpenMP Technical Report 2 of 2014. Begin and end are separate events, and there are ids
//! instead of data for the tool. Implemented by LLVM 3.7 to 5.0.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::ompt_function_lookup_t;

/// `ompt_initialize`, the symbol that a tool exports (6.1.1); returns 0 if the tool wants no events. LLVM from 3.8 on
/// instead calls `ompt_tool`, which the tool exports, too, to get this function.
pub type ompt_initialize_t = unsafe extern "C" fn(
    lookup: ompt_function_lookup_t,
    runtime_version: *const c_char,
    ompt_version: c_uint,
) -> c_int;

/// Registers a callback (6.1.2): [`ompt_set_result_t`].
pub type ompt_set_callback_t =
    unsafe extern "C" fn(event: ompt_event_t, callback: Option<crate::ompt_callback_t>) -> c_int;

/// The number of threads of a region (5.3); -1 if there is no such region.
pub type ompt_get_parallel_team_size_t = unsafe extern "C" fn(ancestor_level: c_int) -> c_int;

/// The outlined function of a construct.
pub type ompt_function_t = *const c_void;

/// Start value for the enumeration of states; not a state of any thread.
pub const ompt_state_first: c_int = 0x71;

open_enum! {
    /// The events, by number.
    ompt_event_t, "ompt_event_" {
        ompt_event_parallel_begin = 1,
        ompt_event_parallel_end = 2,
        ompt_event_task_begin = 3,
        ompt_event_task_end = 4,
        ompt_event_thread_begin = 5,
        ompt_event_thread_end = 6,
        ompt_event_control = 7,
        ompt_event_runtime_shutdown = 8,
        ompt_event_idle_begin = 9,
        ompt_event_idle_end = 10,
        ompt_event_wait_barrier_begin = 11,
        ompt_event_wait_barrier_end = 12,
        ompt_event_wait_taskwait_begin = 13,
        ompt_event_wait_taskwait_end = 14,
        ompt_event_wait_taskgroup_begin = 15,
        ompt_event_wait_taskgroup_end = 16,
        ompt_event_release_lock = 17,
        ompt_event_release_nest_lock_last = 18,
        ompt_event_release_critical = 19,
        ompt_event_release_atomic = 20,
        ompt_event_release_ordered = 21,
        ompt_event_implicit_task_begin = 22,
        ompt_event_implicit_task_end = 23,
        ompt_event_initial_task_begin = 24,
        ompt_event_initial_task_end = 25,
        ompt_event_task_switch = 26,
        ompt_event_loop_begin = 27,
        ompt_event_loop_end = 28,
        ompt_event_sections_begin = 29,
        ompt_event_sections_end = 30,
        ompt_event_single_in_block_begin = 31,
        ompt_event_single_in_block_end = 32,
        ompt_event_single_others_begin = 33,
        ompt_event_single_others_end = 34,
        ompt_event_workshare_begin = 35,
        ompt_event_workshare_end = 36,
        ompt_event_master_begin = 37,
        ompt_event_master_end = 38,
        ompt_event_barrier_begin = 39,
        ompt_event_barrier_end = 40,
        ompt_event_taskwait_begin = 41,
        ompt_event_taskwait_end = 42,
        ompt_event_taskgroup_begin = 43,
        ompt_event_taskgroup_end = 44,
        ompt_event_release_nest_lock_prev = 45,
        ompt_event_wait_lock = 46,
        ompt_event_wait_nest_lock = 47,
        ompt_event_wait_critical = 48,
        ompt_event_wait_atomic = 49,
        ompt_event_wait_ordered = 50,
        ompt_event_acquired_lock = 51,
        ompt_event_acquired_nest_lock_first = 52,
        ompt_event_acquired_nest_lock_next = 53,
        ompt_event_acquired_critical = 54,
        ompt_event_acquired_atomic = 55,
        ompt_event_acquired_ordered = 56,
        ompt_event_init_lock = 57,
        ompt_event_init_nest_lock = 58,
        ompt_event_destroy_lock = 59,
        ompt_event_destroy_nest_lock = 60,
        ompt_event_flush = 61,
        /// Not in the report: LLVM from 3.9 on.
        ompt_event_task_dependences = 69,
        /// Not in the report: LLVM from 3.9 on.
        ompt_event_task_dependence_pair = 70,
    }

    /// The result of a registration (table 3).
    ompt_set_result_t, "ompt_set_result_" {
        ompt_set_result_registration_error = 0,
        ompt_set_result_event_may_occur_no_callback = 1,
        ompt_set_result_event_never_occurs = 2,
        ompt_set_result_event_may_occur_callback_some = 3,
        ompt_set_result_event_may_occur_callback_always = 4,
    }

    /// The state of a thread.
    ompt_state_t, "ompt_state_" {
        ompt_state_work_serial = 0x00,
        ompt_state_work_parallel = 0x01,
        ompt_state_work_reduction = 0x02,
        ompt_state_idle = 0x10,
        ompt_state_overhead = 0x20,
        ompt_state_wait_barrier = 0x40,
        ompt_state_wait_barrier_implicit = 0x41,
        ompt_state_wait_barrier_explicit = 0x42,
        ompt_state_wait_taskwait = 0x50,
        ompt_state_wait_taskgroup = 0x51,
        ompt_state_wait_lock = 0x60,
        ompt_state_wait_nest_lock = 0x61,
        ompt_state_wait_critical = 0x62,
        ompt_state_wait_atomic = 0x63,
        ompt_state_wait_ordered = 0x64,
        ompt_state_undefined = 0x70,
    }
}
