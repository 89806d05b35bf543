//! Signatures of the entry points (OpenMP 5.2, 19.6; OpenMP 6.0, 36 and 37). The name to pass to
//! [`ompt_function_lookup_t`](crate::ompt_function_lookup_t) is that of the type without `_t`.
//!
//! First come the entry points of the host, whose lookup function the runtime passes to `initialize`; then those of a
//! device, whose lookup function it passes to the callback `device_initialize`.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::{
    ompt_buffer_cursor_t, ompt_buffer_t, ompt_callback_buffer_complete_t, ompt_callback_buffer_request_t,
    ompt_callback_t, ompt_callbacks_t, ompt_data_t, ompt_device_t, ompt_device_time_t, ompt_frame_t,
    ompt_id_t, ompt_record_abstract_t, ompt_record_ompt_t, ompt_record_t, ompt_set_result_t, ompt_wait_id_t,
};

/// Enumerates the runtime's thread states (OpenMP 5.2, 19.6.1.1), starting with `ompt_state_undefined`; returns 0 after
/// the last one.
pub type ompt_enumerate_states_t = unsafe extern "C" fn(
    current_state: c_int,
    next_state: *mut c_int,
    next_state_name: *mut *const c_char,
) -> c_int;

/// Enumerates the runtime's implementations of mutual exclusion (OpenMP 5.2, 19.6.1.2), starting with
/// [`ompt_mutex_impl_none`](crate::ompt_mutex_impl_none); returns 0 after the last one.
pub type ompt_enumerate_mutex_impls_t = unsafe extern "C" fn(
    current_impl: c_int,
    next_impl: *mut c_int,
    next_impl_name: *mut *const c_char,
) -> c_int;

/// Registers a callback (OpenMP 5.2, 19.6.1.3); NULL removes it.
pub type ompt_set_callback_t =
    unsafe extern "C" fn(event: ompt_callbacks_t, callback: Option<ompt_callback_t>) -> ompt_set_result_t;

/// Retrieves a callback (OpenMP 5.2, 19.6.1.4); 0 when none is registered.
pub type ompt_get_callback_t =
    unsafe extern "C" fn(event: ompt_callbacks_t, callback: *mut Option<ompt_callback_t>) -> c_int;

/// The calling thread's data (OpenMP 5.2, 19.6.1.5); NULL if it is not a thread of the runtime.
pub type ompt_get_thread_data_t = unsafe extern "C" fn() -> *mut ompt_data_t;

/// The number of processors available (OpenMP 5.2, 19.6.1.6).
pub type ompt_get_num_procs_t = unsafe extern "C" fn() -> c_int;

/// The number of places (OpenMP 5.2, 19.6.1.7).
pub type ompt_get_num_places_t = unsafe extern "C" fn() -> c_int;

/// The processors of a place (OpenMP 5.2, 19.6.1.8). Returns their number; writes `ids` only if all fit.
pub type ompt_get_place_proc_ids_t =
    unsafe extern "C" fn(place_num: c_int, ids_size: c_int, ids: *mut c_int) -> c_int;

/// The calling thread's place (OpenMP 5.2, 19.6.1.9); -1 when it has none.
pub type ompt_get_place_num_t = unsafe extern "C" fn() -> c_int;

/// The places of the innermost implicit task's partition (OpenMP 5.2, 19.6.1.10). Returns their number; writes
/// `place_nums` only if all fit.
pub type ompt_get_partition_place_nums_t =
    unsafe extern "C" fn(place_nums_size: c_int, place_nums: *mut c_int) -> c_int;

/// The calling thread's processor (OpenMP 5.2, 19.6.1.11); negative when it is unknown.
pub type ompt_get_proc_id_t = unsafe extern "C" fn() -> c_int;

/// The calling thread's [`ompt_state_t`](crate::ompt_state_t) and wait id (OpenMP 5.2, 19.6.1.12).
pub type ompt_get_state_t = unsafe extern "C" fn(wait_id: *mut ompt_wait_id_t) -> c_int;

/// The parallel region at an ancestor level (OpenMP 5.2, 19.6.1.13). Returns 2 when there is one, 1 when its
/// information is not available now, 0 when there is none.
pub type ompt_get_parallel_info_t = unsafe extern "C" fn(
    ancestor_level: c_int,
    parallel_data: *mut *mut ompt_data_t,
    team_size: *mut c_int,
) -> c_int;

/// The task at an ancestor level (OpenMP 5.2, 19.6.1.14), with results as in [`ompt_get_parallel_info_t`]. Every
/// pointer may be NULL.
pub type ompt_get_task_info_t = unsafe extern "C" fn(
    ancestor_level: c_int,
    flags: *mut c_int,
    task_data: *mut *mut ompt_data_t,
    task_frame: *mut *mut ompt_frame_t,
    parallel_data: *mut *mut ompt_data_t,
    thread_num: *mut c_int,
) -> c_int;

/// A block of memory that holds the current task's data (OpenMP 5.2, 19.6.1.15); 0 when there are no more blocks.
pub type ompt_get_task_memory_t =
    unsafe extern "C" fn(addr: *mut *mut c_void, size: *mut usize, block: c_int) -> c_int;

/// The target region that the calling thread executes (OpenMP 5.2, 19.6.1.16); 0 when there is none.
pub type ompt_get_target_info_t = unsafe extern "C" fn(
    device_num: *mut u64,
    target_id: *mut ompt_id_t,
    host_op_id: *mut ompt_id_t,
) -> c_int;

/// The number of devices (OpenMP 5.2, 19.6.1.17).
pub type ompt_get_num_devices_t = unsafe extern "C" fn() -> c_int;

/// A number that is unique in this process (OpenMP 5.2, 19.6.1.18).
pub type ompt_get_unique_id_t = unsafe extern "C" fn() -> u64;

/// Finalizes the tool now (OpenMP 5.2, 19.6.1.19): the runtime calls `finalize` before this returns.
pub type ompt_finalize_tool_t = unsafe extern "C" fn();

/// The number of processors of a device (OpenMP 5.2, 19.6.2.1).
pub type ompt_get_device_num_procs_t = unsafe extern "C" fn(device: *mut ompt_device_t) -> c_int;

/// The time on a device's clock now (OpenMP 5.2, 19.6.2.2).
pub type ompt_get_device_time_t = unsafe extern "C" fn(device: *mut ompt_device_t) -> ompt_device_time_t;

/// Converts a time on a device's clock to seconds of the host's `omp_get_wtime` (OpenMP 5.2, 19.6.2.3).
pub type ompt_translate_time_t =
    unsafe extern "C" fn(device: *mut ompt_device_t, time: ompt_device_time_t) -> f64;

/// Enables or disables records of a kind (OpenMP 5.2, 19.6.2.4); `etype` is a number of [`ompt_callbacks_t`], or 0 for
/// all.
pub type ompt_set_trace_ompt_t =
    unsafe extern "C" fn(device: *mut ompt_device_t, enable: c_uint, etype: c_uint) -> ompt_set_result_t;

/// Enables or disables native records (OpenMP 5.2, 19.6.2.5); `flags`:
/// [`ompt_native_mon_flag_t`](crate::ompt_native_mon_flag_t).
pub type ompt_set_trace_native_t =
    unsafe extern "C" fn(device: *mut ompt_device_t, enable: c_int, flags: c_int) -> ompt_set_result_t;

/// The maximum number of buffers that the device uses at the same time, and their recommended size in bytes (since
/// OpenMP 6.0, 37.6).
pub type ompt_get_buffer_limits_t = unsafe extern "C" fn(
    device: *mut ompt_device_t,
    max_concurrent_allocs: *mut c_int,
    recommended_bytes: *mut usize,
);

/// Starts tracing (OpenMP 5.2, 19.6.2.6); 0 when it failed.
pub type ompt_start_trace_t = unsafe extern "C" fn(
    device: *mut ompt_device_t,
    request: ompt_callback_buffer_request_t,
    complete: ompt_callback_buffer_complete_t,
) -> c_int;

/// Pauses (`begin_pause` 1) or resumes (0) tracing (OpenMP 5.2, 19.6.2.7); 0 when it failed.
pub type ompt_pause_trace_t = unsafe extern "C" fn(device: *mut ompt_device_t, begin_pause: c_int) -> c_int;

/// Requests delivery of all pending records (OpenMP 5.2, 19.6.2.8); 0 when it failed.
pub type ompt_flush_trace_t = unsafe extern "C" fn(device: *mut ompt_device_t) -> c_int;

/// Flushes and stops tracing (OpenMP 5.2, 19.6.2.9); 0 when it failed.
pub type ompt_stop_trace_t = unsafe extern "C" fn(device: *mut ompt_device_t) -> c_int;

/// Advances to the next record (OpenMP 5.2, 19.6.2.10); 0 when there is none.
pub type ompt_advance_buffer_cursor_t = unsafe extern "C" fn(
    device: *mut ompt_device_t,
    buffer: *mut ompt_buffer_t,
    size: usize,
    current: ompt_buffer_cursor_t,
    next: *mut ompt_buffer_cursor_t,
) -> c_int;

/// The format of a record (OpenMP 5.2, 19.6.2.11).
pub type ompt_get_record_type_t =
    unsafe extern "C" fn(buffer: *mut ompt_buffer_t, current: ompt_buffer_cursor_t) -> ompt_record_t;

/// A record in the standard format (OpenMP 5.2, 19.6.2.12), valid until the buffer is reused.
pub type ompt_get_record_ompt_t = unsafe extern "C" fn(
    buffer: *mut ompt_buffer_t,
    current: ompt_buffer_cursor_t,
) -> *mut ompt_record_ompt_t;

/// A record in the device's native format, and the operation to which it belongs (OpenMP 5.2, 19.6.2.13).
pub type ompt_get_record_native_t = unsafe extern "C" fn(
    buffer: *mut ompt_buffer_t,
    current: ompt_buffer_cursor_t,
    host_op_id: *mut ompt_id_t,
) -> *mut c_void;

/// The part of a native record that a tool can read without knowing the device (OpenMP 5.2, 19.6.2.14).
pub type ompt_get_record_abstract_t =
    unsafe extern "C" fn(native_record: *mut c_void) -> *mut ompt_record_abstract_t;
