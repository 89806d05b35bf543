//! The callbacks (OpenMP 5.2, 19.4.2 and 19.5.2; OpenMP 6.0, 33.6, 34 and 35): **one row per callback** has its number,
//! its names and its signature.
//!
//! Three signatures serve several callbacks: [`ompt_callback_sync_region_t`], [`ompt_callback_mutex_acquire_t`] and
//! [`ompt_callback_mutex_t`], whose documentation lists them. `flags` have the type `int`, as in C; the documentation
//! tells which flag set of [`enums`](crate::enums) they contain.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::{
    ompt_buffer_cursor_t, ompt_buffer_t, ompt_data_t, ompt_dependence_t, ompt_device_t, ompt_dispatch_t,
    ompt_frame_t, ompt_function_lookup_t, ompt_id_t, ompt_mutex_t, ompt_scope_endpoint_t, ompt_severity_t,
    ompt_sync_region_t, ompt_target_data_op_t, ompt_target_t, ompt_task_status_t, ompt_thread_t,
    ompt_wait_id_t, ompt_work_t,
};

/// Turns this
///
/// ```text
/// /// A thread ends.
/// thread_end = 2, ompt_callback_thread_end: ompt_callback_thread_end_t(thread_data: *mut ompt_data_t);
/// ```
///
/// into the constant `ompt_callback_thread_end` of [`ompt_callbacks_t`] and the type `ompt_callback_thread_end_t`. Both
/// are also available as [`callback`]`::thread_end`. A row without arguments has the signature of another row.
macro_rules! callbacks {
    (($dollar:tt) $(
        $(#[$doc:meta])*
        $short:ident = $value:literal, $number:ident: $signature:ident
            $(($($argument:ident: $type:ty),* $(,)?) $(-> $returned:ty)?)?;
    )*) => {
        open_enum! {
            /// The number of a callback (OpenMP 5.2, 19.4.2 Callbacks; OpenMP 6.0, 33.6).
            ompt_callbacks_t, "ompt_callback_" {
                $( $(#[$doc])* $number = $value, )*
            }
        }

        $( callbacks!(@ $signature [$(#[$doc])*] $(($($argument: $type),*) $(-> $returned)?)?); )*

        /// Each callback under its name without `ompt_callback_`: its number as a constant, its signature as a type.
        pub mod callback {
            $(
                #[doc(no_inline)]
                pub use super::$number as $short;
                #[doc(no_inline)]
                pub use super::$signature as $short;
            )*
        }

        /// Calls a macro with all rows: `name number signature`, as in `thread_end ompt_callback_thread_end
        /// ompt_callback_thread_end_t`.
        #[macro_export]
        macro_rules! for_each_callback {
            ($dollar rows:ident) => { $dollar rows! { $($short $number $signature)* } };
        }
    };
    (@ $signature:ident [$($doc:tt)*] ($($argument:ident: $type:ty),*) $(-> $returned:ty)?) => {
        $($doc)*
        pub type $signature = unsafe extern "C" fn($($argument: $type),*) $(-> $returned)?;
    };
    (@ $signature:ident [$($doc:tt)*]) => {};
}

callbacks! {
    ($)
    /// A thread starts to exist (OpenMP 5.2, 19.5.2.1 `ompt_callback_thread_begin_t`).
    thread_begin = 1, ompt_callback_thread_begin: ompt_callback_thread_begin_t(
        thread_type: ompt_thread_t, thread_data: *mut ompt_data_t
    );
    /// A thread ends (OpenMP 5.2, 19.5.2.2 `ompt_callback_thread_end_t`).
    thread_end = 2, ompt_callback_thread_end: ompt_callback_thread_end_t(thread_data: *mut ompt_data_t);
    /// A parallel or teams region starts (OpenMP 5.2, 19.5.2.3 `ompt_callback_parallel_begin_t`); `flags`:
    /// [`ompt_parallel_flag_t`](crate::ompt_parallel_flag_t).
    parallel_begin = 3, ompt_callback_parallel_begin: ompt_callback_parallel_begin_t(
        encountering_task_data: *mut ompt_data_t, encountering_task_frame: *const ompt_frame_t,
        parallel_data: *mut ompt_data_t, requested_parallelism: c_uint, flags: c_int, codeptr_ra: *const c_void
    );
    /// A parallel or teams region ends (OpenMP 5.2, 19.5.2.4 `ompt_callback_parallel_end_t`); `flags`:
    /// [`ompt_parallel_flag_t`](crate::ompt_parallel_flag_t).
    parallel_end = 4, ompt_callback_parallel_end: ompt_callback_parallel_end_t(
        parallel_data: *mut ompt_data_t, encountering_task_data: *mut ompt_data_t, flags: c_int,
        codeptr_ra: *const c_void
    );
    /// A task is generated (OpenMP 5.2, 19.5.2.7 `ompt_callback_task_create_t`); `flags`:
    /// [`ompt_task_flag_t`](crate::ompt_task_flag_t).
    task_create = 5, ompt_callback_task_create: ompt_callback_task_create_t(
        encountering_task_data: *mut ompt_data_t, encountering_task_frame: *const ompt_frame_t,
        new_task_data: *mut ompt_data_t, flags: c_int, has_dependences: c_int, codeptr_ra: *const c_void
    );
    /// A thread changes from one task to another (OpenMP 5.2, 19.5.2.10 `ompt_callback_task_schedule_t`).
    /// `next_task_data` is NULL when the prior task's completion or fulfilment is all that happens.
    task_schedule = 6, ompt_callback_task_schedule: ompt_callback_task_schedule_t(
        prior_task_data: *mut ompt_data_t, prior_task_status: ompt_task_status_t,
        next_task_data: *mut ompt_data_t
    );
    /// An initial or implicit task starts or ends (OpenMP 5.2, 19.5.2.11 `ompt_callback_implicit_task_t`); `flags`:
    /// [`ompt_task_flag_t`](crate::ompt_task_flag_t). `parallel_data` is NULL at the end of an implicit task.
    implicit_task = 7, ompt_callback_implicit_task: ompt_callback_implicit_task_t(
        endpoint: ompt_scope_endpoint_t, parallel_data: *mut ompt_data_t, task_data: *mut ompt_data_t,
        actual_parallelism: c_uint, index: c_uint, flags: c_int
    );
    /// A device construct starts or ends (OpenMP 5.2, 19.5.2.26 `ompt_callback_target_t`); deprecated in 5.1.
    target = 8, ompt_callback_target: ompt_callback_target_t(
        kind: ompt_target_t, endpoint: ompt_scope_endpoint_t, device_num: c_int, task_data: *mut ompt_data_t,
        target_id: ompt_id_t, codeptr_ra: *const c_void
    );
    /// A data operation on a device (OpenMP 5.2, 19.5.2.25 `ompt_callback_target_data_op_t`); deprecated in 5.1.
    target_data_op = 9, ompt_callback_target_data_op: ompt_callback_target_data_op_t(
        target_id: ompt_id_t, host_op_id: ompt_id_t, optype: ompt_target_data_op_t, src_addr: *mut c_void,
        src_device_num: c_int, dest_addr: *mut c_void, dest_device_num: c_int, bytes: usize,
        codeptr_ra: *const c_void
    );
    /// A kernel is submitted to a device (OpenMP 5.2, 19.5.2.28 `ompt_callback_target_submit_t`); deprecated in 5.1.
    target_submit = 10, ompt_callback_target_submit: ompt_callback_target_submit_t(
        target_id: ompt_id_t, host_op_id: ompt_id_t, requested_num_teams: c_uint
    );
    /// The program calls `omp_control_tool` (OpenMP 5.2, 19.5.2.29 `ompt_callback_control_tool_t`), which returns what
    /// the tool returns. `command`: [`omp_control_tool_t`](crate::omp_control_tool_t).
    control_tool = 11, ompt_callback_control_tool: ompt_callback_control_tool_t(
        command: u64, modifier: u64, arg: *mut c_void, codeptr_ra: *const c_void
    ) -> c_int;
    /// A device is initialized (OpenMP 5.2, 19.5.2.19 `ompt_callback_device_initialize_t`). `lookup` is NULL when the
    /// device cannot be traced; else it finds the device's [`entry_points`](crate::entry_points).
    device_initialize = 12, ompt_callback_device_initialize: ompt_callback_device_initialize_t(
        device_num: c_int, r#type: *const c_char, device: *mut ompt_device_t,
        lookup: Option<ompt_function_lookup_t>, documentation: *const c_char
    );
    /// A device is finalized (OpenMP 5.2, 19.5.2.20 `ompt_callback_device_finalize_t`).
    device_finalize = 13, ompt_callback_device_finalize: ompt_callback_device_finalize_t(device_num: c_int);
    /// Code is loaded onto a device (OpenMP 5.2, 19.5.2.21 `ompt_callback_device_load_t`).
    device_load = 14, ompt_callback_device_load: ompt_callback_device_load_t(
        device_num: c_int, filename: *const c_char, offset_in_file: i64, vma_in_file: *mut c_void, bytes: usize,
        host_addr: *mut c_void, device_addr: *mut c_void, module_id: u64
    );
    /// Code is unloaded from a device (OpenMP 5.2, 19.5.2.22 `ompt_callback_device_unload_t`).
    device_unload = 15, ompt_callback_device_unload: ompt_callback_device_unload_t(
        device_num: c_int, module_id: u64
    );
    /// The wait in a synchronization region starts or ends (19.5.2.13).
    sync_region_wait = 16, ompt_callback_sync_region_wait: ompt_callback_sync_region_t;
    /// Mutual exclusion is released (19.5.2.15).
    mutex_released = 17, ompt_callback_mutex_released: ompt_callback_mutex_t;
    /// All dependences of a new task, or of a doacross iteration (OpenMP 5.2, 19.5.2.8
    /// `ompt_callback_dependences_t`). `deps` points to `ndeps` of them and is valid during the callback only.
    dependences = 18, ompt_callback_dependences: ompt_callback_dependences_t(
        task_data: *mut ompt_data_t, deps: *const ompt_dependence_t, ndeps: c_int
    );
    /// One task waits for another (OpenMP 5.2, 19.5.2.9 `ompt_callback_task_dependence_t`).
    task_dependence = 19, ompt_callback_task_dependence: ompt_callback_task_dependence_t(
        src_task_data: *mut ompt_data_t, sink_task_data: *mut ompt_data_t
    );
    /// A work-distribution region starts or ends (OpenMP 5.2, 19.5.2.5 `ompt_callback_work_t`).
    work = 20, ompt_callback_work: ompt_callback_work_t(
        work_type: ompt_work_t, endpoint: ompt_scope_endpoint_t, parallel_data: *mut ompt_data_t,
        task_data: *mut ompt_data_t, count: u64, codeptr_ra: *const c_void
    );
    /// A masked region starts or ends (OpenMP 5.2, 19.5.2.12 `ompt_callback_masked_t`).
    masked = 21, ompt_callback_masked: ompt_callback_masked_t(
        endpoint: ompt_scope_endpoint_t, parallel_data: *mut ompt_data_t, task_data: *mut ompt_data_t,
        codeptr_ra: *const c_void
    );
    /// Items are mapped (OpenMP 5.2, 19.5.2.27 `ompt_callback_target_map_t`); deprecated in 5.1.
    target_map = 22, ompt_callback_target_map: ompt_callback_target_map_t(
        target_id: ompt_id_t, nitems: c_uint, host_addr: *mut *mut c_void, device_addr: *mut *mut c_void,
        bytes: *mut usize, mapping_flags: *mut c_uint, codeptr_ra: *const c_void
    );
    /// A synchronization region, the wait in it, or a reduction starts or ends (OpenMP 5.2, 19.5.2.13
    /// `ompt_callback_sync_region_t`): callbacks `sync_region`, `sync_region_wait` and `reduction`. `parallel_data` may
    /// be NULL at the end of the barrier at the end of a parallel region.
    sync_region = 23, ompt_callback_sync_region: ompt_callback_sync_region_t(
        kind: ompt_sync_region_t, endpoint: ompt_scope_endpoint_t, parallel_data: *mut ompt_data_t,
        task_data: *mut ompt_data_t, codeptr_ra: *const c_void
    );
    /// A lock is initialized (19.5.2.14).
    lock_init = 24, ompt_callback_lock_init: ompt_callback_mutex_acquire_t;
    /// A lock is destroyed (19.5.2.15).
    lock_destroy = 25, ompt_callback_lock_destroy: ompt_callback_mutex_t;
    /// A thread asks for mutual exclusion, or a lock is initialized (OpenMP 5.2, 19.5.2.14
    /// `ompt_callback_mutex_acquire_t`): callbacks `mutex_acquire` and `lock_init`.
    mutex_acquire = 26, ompt_callback_mutex_acquire: ompt_callback_mutex_acquire_t(
        kind: ompt_mutex_t, hint: c_uint, r#impl: c_uint, wait_id: ompt_wait_id_t, codeptr_ra: *const c_void
    );
    /// Mutual exclusion is acquired or released, or a lock is destroyed (OpenMP 5.2, 19.5.2.15
    /// `ompt_callback_mutex_t`): callbacks `mutex_acquired`, `mutex_released` and `lock_destroy`.
    mutex_acquired = 27, ompt_callback_mutex_acquired: ompt_callback_mutex_t(
        kind: ompt_mutex_t, wait_id: ompt_wait_id_t, codeptr_ra: *const c_void
    );
    /// A thread that owns a nestable lock acquires it again (`begin`) or releases it once without giving up ownership
    /// (`end`) (OpenMP 5.2, 19.5.2.16 `ompt_callback_nest_lock_t`).
    nest_lock = 28, ompt_callback_nest_lock: ompt_callback_nest_lock_t(
        endpoint: ompt_scope_endpoint_t, wait_id: ompt_wait_id_t, codeptr_ra: *const c_void
    );
    /// A flush was executed (OpenMP 5.2, 19.5.2.17 `ompt_callback_flush_t`).
    flush = 29, ompt_callback_flush: ompt_callback_flush_t(
        thread_data: *mut ompt_data_t, codeptr_ra: *const c_void
    );
    /// A region or task is cancelled, or its cancellation is detected (OpenMP 5.2, 19.5.2.18 `ompt_callback_cancel_t`);
    /// `flags`: [`ompt_cancel_flag_t`](crate::ompt_cancel_flag_t).
    cancel = 30, ompt_callback_cancel: ompt_callback_cancel_t(
        task_data: *mut ompt_data_t, flags: c_int, codeptr_ra: *const c_void
    );
    /// A reduction starts or ends (19.5.2.13).
    reduction = 31, ompt_callback_reduction: ompt_callback_sync_region_t;
    /// Work is dispatched (OpenMP 5.2, 19.5.2.6 `ompt_callback_dispatch_t`). `instance` is an iteration's number, the
    /// code address of a section, or points to an [`ompt_dispatch_chunk_t`](crate::ompt_dispatch_chunk_t) that is valid
    /// during the callback only.
    dispatch = 32, ompt_callback_dispatch: ompt_callback_dispatch_t(
        parallel_data: *mut ompt_data_t, task_data: *mut ompt_data_t, kind: ompt_dispatch_t,
        instance: ompt_data_t
    );
    /// A device construct starts or ends (OpenMP 5.2, 19.5.2.26 `ompt_callback_target_emi_t`).
    target_emi = 33, ompt_callback_target_emi: ompt_callback_target_emi_t(
        kind: ompt_target_t, endpoint: ompt_scope_endpoint_t, device_num: c_int, task_data: *mut ompt_data_t,
        target_task_data: *mut ompt_data_t, target_data: *mut ompt_data_t, codeptr_ra: *const c_void
    );
    /// A data operation on a device starts or ends (OpenMP 5.2, 19.5.2.25 `ompt_callback_target_data_op_emi_t`). The
    /// tool writes `*host_op_id` at the start. OpenMP 6.0 calls source and destination `dev1` and `dev2`.
    target_data_op_emi = 34, ompt_callback_target_data_op_emi: ompt_callback_target_data_op_emi_t(
        endpoint: ompt_scope_endpoint_t, target_task_data: *mut ompt_data_t, target_data: *mut ompt_data_t,
        host_op_id: *mut ompt_id_t, optype: ompt_target_data_op_t, src_addr: *mut c_void, src_device_num: c_int,
        dest_addr: *mut c_void, dest_device_num: c_int, bytes: usize, codeptr_ra: *const c_void
    );
    /// The submission of a kernel to a device starts or ends (OpenMP 5.2, 19.5.2.28
    /// `ompt_callback_target_submit_emi_t`). The tool writes `*host_op_id` at the start.
    target_submit_emi = 35, ompt_callback_target_submit_emi: ompt_callback_target_submit_emi_t(
        endpoint: ompt_scope_endpoint_t, target_data: *mut ompt_data_t, host_op_id: *mut ompt_id_t,
        requested_num_teams: c_uint
    );
    /// Items are mapped (OpenMP 5.2, 19.5.2.27 `ompt_callback_target_map_emi_t`): four arrays of `nitems` elements;
    /// `mapping_flags`: [`ompt_target_map_flag_t`](crate::ompt_target_map_flag_t).
    target_map_emi = 36, ompt_callback_target_map_emi: ompt_callback_target_map_emi_t(
        target_data: *mut ompt_data_t, nitems: c_uint, host_addr: *mut *mut c_void,
        device_addr: *mut *mut c_void, bytes: *mut usize, mapping_flags: *mut c_uint, codeptr_ra: *const c_void
    );
    /// An `error` directive is executed (OpenMP 5.2, 19.5.2.30 `ompt_callback_error_t`); `message` has `length` bytes.
    error = 37, ompt_callback_error: ompt_callback_error_t(
        severity: ompt_severity_t, message: *const c_char, length: usize, codeptr_ra: *const c_void
    );
}

/// [`ompt_callback_masked`] under the name that it had in OpenMP 5.0; deprecated in 5.1.
pub const ompt_callback_master: ompt_callbacks_t = ompt_callback_masked;

/// [`ompt_callback_masked_t`] under the name that it had in OpenMP 5.0; deprecated in 5.1.
pub type ompt_callback_master_t = ompt_callback_masked_t;

/// A device requests a buffer for trace records (OpenMP 5.2, 19.5.2.23 `ompt_callback_buffer_request_t`).
pub type ompt_callback_buffer_request_t =
    unsafe extern "C" fn(device_num: c_int, buffer: *mut *mut ompt_buffer_t, bytes: *mut usize);

/// A device returns a buffer, or a part of its content (OpenMP 5.2, 19.5.2.24 `ompt_callback_buffer_complete_t`). If
/// `buffer_owned` is not 0, the tool owns the buffer again.
pub type ompt_callback_buffer_complete_t = unsafe extern "C" fn(
    device_num: c_int,
    buffer: *mut ompt_buffer_t,
    bytes: usize,
    begin: ompt_buffer_cursor_t,
    buffer_owned: c_int,
);
