//! Records of device traces (OpenMP 5.2, 19.4.3 and 19.5.2; OpenMP 6.0, 33.2, 33.24, 33.26).
//!
//! A record contains the arguments of the callback with the same name, with an [`ompt_id_t`] instead of each pointer to
//! data.

// Every field is the callback's argument of the same name, where it is documented.
#![allow(missing_docs)]

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::fmt;

use crate::{
    ompt_callbacks_t, ompt_data_t, ompt_dependence_t, ompt_device_time_t, ompt_dispatch_t, ompt_hwid_t,
    ompt_id_t, ompt_mutex_t, ompt_record_native_t, ompt_scope_endpoint_t, ompt_severity_t,
    ompt_sync_region_t, ompt_target_data_op_t, ompt_target_t, ompt_task_status_t, ompt_thread_t,
    ompt_wait_id_t, ompt_work_t,
};

/// A record in the standard format (OpenMP 5.2, 19.4.3.4). `type` tells which field of `record` is valid; none for
/// `thread_end`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_ompt_t {
    pub r#type: ompt_callbacks_t,
    pub time: ompt_device_time_t,
    pub thread_id: ompt_id_t,
    pub target_id: ompt_id_t,
    pub record: ompt_any_record_ompt_t,
}

/// The part of a native record that a tool can read without knowing the device (OpenMP 5.2, 19.4.3.3). `type` is the
/// event's name; a time that does not apply is [`ompt_time_none`](crate::ompt_time_none).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_abstract_t {
    pub rclass: ompt_record_native_t,
    pub r#type: *const c_char,
    pub start_time: ompt_device_time_t,
    pub end_time: ompt_device_time_t,
    pub hwid: ompt_hwid_t,
}

/// The union in [`ompt_record_ompt_t`], which has no name in OpenMP 5.2. OpenMP 6.0 names it (33.2), and adds the four
/// `_emi` names for existing fields.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ompt_any_record_ompt_t {
    pub thread_begin: ompt_record_thread_begin_t,
    pub parallel_begin: ompt_record_parallel_begin_t,
    pub parallel_end: ompt_record_parallel_end_t,
    pub work: ompt_record_work_t,
    pub dispatch: ompt_record_dispatch_t,
    pub task_create: ompt_record_task_create_t,
    pub dependences: ompt_record_dependences_t,
    pub task_dependence: ompt_record_task_dependence_t,
    pub task_schedule: ompt_record_task_schedule_t,
    pub implicit_task: ompt_record_implicit_task_t,
    pub masked: ompt_record_masked_t,
    pub sync_region: ompt_record_sync_region_t,
    pub mutex_acquire: ompt_record_mutex_acquire_t,
    pub mutex: ompt_record_mutex_t,
    pub nest_lock: ompt_record_nest_lock_t,
    pub flush: ompt_record_flush_t,
    pub cancel: ompt_record_cancel_t,
    pub target: ompt_record_target_t,
    pub target_data_op: ompt_record_target_data_op_t,
    pub target_map: ompt_record_target_map_t,
    pub target_kernel: ompt_record_target_kernel_t,
    pub target_emi: ompt_record_target_emi_t,
    pub target_data_op_emi: ompt_record_target_data_op_emi_t,
    pub target_map_emi: ompt_record_target_map_emi_t,
    pub target_submit_emi: ompt_record_target_submit_emi_t,
    pub control_tool: ompt_record_control_tool_t,
    pub error: ompt_record_error_t,
}

impl fmt::Debug for ompt_any_record_ompt_t {
    /// Prints no field: only the `type` beside the union says which one is valid.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ompt_any_record_ompt_t").finish_non_exhaustive()
    }
}

/// OpenMP 5.2, 19.5.2.1.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_thread_begin_t {
    pub thread_type: ompt_thread_t,
}

/// OpenMP 5.2, 19.5.2.3.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_parallel_begin_t {
    pub encountering_task_id: ompt_id_t,
    pub parallel_id: ompt_id_t,
    pub requested_parallelism: c_uint,
    pub flags: c_int,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.4.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_parallel_end_t {
    pub parallel_id: ompt_id_t,
    pub encountering_task_id: ompt_id_t,
    pub flags: c_int,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.5.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_work_t {
    pub work_type: ompt_work_t,
    pub endpoint: ompt_scope_endpoint_t,
    pub parallel_id: ompt_id_t,
    pub task_id: ompt_id_t,
    pub count: u64,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.6.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_dispatch_t {
    pub parallel_id: ompt_id_t,
    pub task_id: ompt_id_t,
    pub kind: ompt_dispatch_t,
    pub instance: ompt_data_t,
}

/// OpenMP 5.2, 19.5.2.7.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_task_create_t {
    pub encountering_task_id: ompt_id_t,
    pub new_task_id: ompt_id_t,
    pub flags: c_int,
    pub has_dependences: c_int,
    pub codeptr_ra: *const c_void,
}

/// One of a task's `ndeps` dependences (OpenMP 5.2, 19.5.2.8).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_dependences_t {
    pub task_id: ompt_id_t,
    pub dep: ompt_dependence_t,
    pub ndeps: c_int,
}

/// OpenMP 5.2, 19.5.2.9.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_task_dependence_t {
    pub src_task_id: ompt_id_t,
    pub sink_task_id: ompt_id_t,
}

/// OpenMP 5.2, 19.5.2.10.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_task_schedule_t {
    pub prior_task_id: ompt_id_t,
    pub prior_task_status: ompt_task_status_t,
    pub next_task_id: ompt_id_t,
}

/// OpenMP 5.2, 19.5.2.11.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_implicit_task_t {
    pub endpoint: ompt_scope_endpoint_t,
    pub parallel_id: ompt_id_t,
    pub task_id: ompt_id_t,
    pub actual_parallelism: c_uint,
    pub index: c_uint,
    pub flags: c_int,
}

/// OpenMP 5.2, 19.5.2.12.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_masked_t {
    pub endpoint: ompt_scope_endpoint_t,
    pub parallel_id: ompt_id_t,
    pub task_id: ompt_id_t,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.13.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_sync_region_t {
    pub kind: ompt_sync_region_t,
    pub endpoint: ompt_scope_endpoint_t,
    pub parallel_id: ompt_id_t,
    pub task_id: ompt_id_t,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.14.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_mutex_acquire_t {
    pub kind: ompt_mutex_t,
    pub hint: c_uint,
    pub r#impl: c_uint,
    pub wait_id: ompt_wait_id_t,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.15.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_mutex_t {
    pub kind: ompt_mutex_t,
    pub wait_id: ompt_wait_id_t,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.16.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_nest_lock_t {
    pub endpoint: ompt_scope_endpoint_t,
    pub wait_id: ompt_wait_id_t,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.17.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_flush_t {
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.18.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_cancel_t {
    pub task_id: ompt_id_t,
    pub flags: c_int,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.25: a data operation that started at the record's `time`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_target_data_op_t {
    pub host_op_id: ompt_id_t,
    pub optype: ompt_target_data_op_t,
    pub src_addr: *mut c_void,
    pub src_device_num: c_int,
    pub dest_addr: *mut c_void,
    pub dest_device_num: c_int,
    pub bytes: usize,
    /// The end time of the operation.
    pub end_time: ompt_device_time_t,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.26.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_target_t {
    pub kind: ompt_target_t,
    pub endpoint: ompt_scope_endpoint_t,
    pub device_num: c_int,
    pub task_id: ompt_id_t,
    pub target_id: ompt_id_t,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.27.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_target_map_t {
    pub target_id: ompt_id_t,
    pub nitems: c_uint,
    pub host_addr: *mut *mut c_void,
    pub device_addr: *mut *mut c_void,
    pub bytes: *mut usize,
    pub mapping_flags: *mut c_uint,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.28: a kernel that started at the record's `time`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_target_kernel_t {
    pub host_op_id: ompt_id_t,
    pub requested_num_teams: c_uint,
    /// Number of teams that executed the kernel.
    pub granted_num_teams: c_uint,
    /// The end time of the kernel.
    pub end_time: ompt_device_time_t,
}

/// OpenMP 6.0's name for [`ompt_record_target_t`] (35.8).
pub type ompt_record_target_emi_t = ompt_record_target_t;

/// OpenMP 6.0's name for [`ompt_record_target_data_op_t`] (35.7), with `dev1` for `src` and `dev2` for `dest`.
pub type ompt_record_target_data_op_emi_t = ompt_record_target_data_op_t;

/// OpenMP 6.0's name for [`ompt_record_target_map_t`] (35.9).
pub type ompt_record_target_map_emi_t = ompt_record_target_map_t;

/// OpenMP 6.0's name for [`ompt_record_target_kernel_t`] (35.10).
pub type ompt_record_target_submit_emi_t = ompt_record_target_kernel_t;

/// OpenMP 5.2, 19.5.2.29.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_control_tool_t {
    pub command: u64,
    pub modifier: u64,
    pub codeptr_ra: *const c_void,
}

/// OpenMP 5.2, 19.5.2.30.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_record_error_t {
    pub severity: ompt_severity_t,
    pub message: *const c_char,
    pub length: usize,
    pub codeptr_ra: *const c_void,
}
