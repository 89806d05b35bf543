//! Scalars and small structures (OpenMP 5.2, 19.4.4; OpenMP 6.0, 33).

use core::ffi::{c_int, c_void};
use core::fmt;

use crate::ompt_dependence_type_t;

/// The id of an object for a tool (OpenMP 5.2, 19.4.4.3); [`ompt_id_none`] when it is unknown.
pub type ompt_id_t = u64;

/// No [`ompt_id_t`].
pub const ompt_id_none: ompt_id_t = 0;

/// Identifies what a thread waits for (OpenMP 5.2, 19.4.4.31): a lock, a critical region, an atomic variable.
pub type ompt_wait_id_t = u64;

/// No [`ompt_wait_id_t`].
pub const ompt_wait_id_none: ompt_wait_id_t = 0;

/// A time on a device's own clock, in raw ticks (OpenMP 5.2, 19.4.4.6); [`ompt_time_none`] when it is unknown.
pub type ompt_device_time_t = u64;

/// No [`ompt_device_time_t`].
pub const ompt_time_none: ompt_device_time_t = 0;

/// Identifies hardware of a device (OpenMP 5.2, 19.4.4.27); [`ompt_hwid_none`] when it is unknown.
pub type ompt_hwid_t = u64;

/// No [`ompt_hwid_t`].
pub const ompt_hwid_none: ompt_hwid_t = 0;

/// No implementation of mutual exclusion (OpenMP 6.0, 33.1): the start value for [`ompt_enumerate_mutex_impls_t`].
///
/// [`ompt_enumerate_mutex_impls_t`]: crate::ompt_enumerate_mutex_impls_t
pub const ompt_mutex_impl_none: c_int = 0;

/// No address on the device in question (OpenMP 6.0, 33.1): `~0`.
pub const ompt_addr_none: *mut c_void = usize::MAX as *mut c_void;

/// A device, opaque (OpenMP 5.2, 19.4.4.5).
pub type ompt_device_t = c_void;

/// A buffer of trace records, opaque (OpenMP 5.2, 19.4.4.7).
pub type ompt_buffer_t = c_void;

/// A position in an [`ompt_buffer_t`], opaque (OpenMP 5.2, 19.4.4.8).
pub type ompt_buffer_cursor_t = u64;

/// Any entry point, to be cast to its own type (OpenMP 5.2, 19.6).
pub type ompt_interface_fn_t = unsafe extern "C" fn();

/// Any callback, cast from its own type (OpenMP 5.2, 19.4.4.1).
pub type ompt_callback_t = unsafe extern "C" fn();

/// A word that the runtime keeps for the tool for each thread, parallel region, task and target region (OpenMP 5.2,
/// 19.4.4.4). It is [`ompt_data_none`] until the tool writes it.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ompt_data_t {
    /// The word as a number.
    pub value: u64,
    /// The word as a pointer of the tool.
    pub ptr: *mut c_void,
}

/// An [`ompt_data_t`] that no tool has written.
pub const ompt_data_none: ompt_data_t = ompt_data_t { value: 0 };

impl fmt::Debug for ompt_data_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: `value` is as wide as the union, and every bit pattern is a `u64`.
        write!(f, "ompt_data_t({:#x})", unsafe { self.value })
    }
}

/// The bounds of a task's frames on the stack (OpenMP 5.2, 19.4.4.29).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_frame_t {
    /// The first frame that executes the task; none for the initial task outside all constructs.
    pub exit_frame: ompt_data_t,
    /// The last frame that executes the task before the runtime was entered; none outside the runtime.
    pub enter_frame: ompt_data_t,
    /// [`ompt_frame_flag_t`](crate::ompt_frame_flag_t) of `exit_frame`.
    pub exit_frame_flags: c_int,
    /// [`ompt_frame_flag_t`](crate::ompt_frame_flag_t) of `enter_frame`.
    pub enter_frame_flags: c_int,
}

/// One dependence of a task or doacross iteration (OpenMP 5.2, 19.4.4.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_dependence_t {
    /// The address of the dependence, or one element of a doacross vector; undefined for `omp_all_memory`.
    pub variable: ompt_data_t,
    /// The dependence's type.
    pub dependence_type: ompt_dependence_type_t,
}

/// A chunk of iterations, which `instance` of a dispatch callback points to (OpenMP 5.2, 19.4.4.13).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_dispatch_chunk_t {
    /// The first logical iteration.
    pub start: u64,
    /// The number of logical iterations.
    pub iterations: u64,
}

/// A rectangular part of an array, one side of a rectangular copy (since OpenMP 6.0, 33.32).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ompt_subvolume_t {
    /// The array.
    pub base: *const c_void,
    /// The size of an element in bytes.
    pub size: u64,
    /// The number of dimensions, and of the elements that each of the following points to.
    pub num_dims: u64,
    /// The part's extent in each dimension, in elements.
    pub volume: *const u64,
    /// The part's first element in each dimension.
    pub offsets: *const u64,
    /// The array's extent in each dimension, in elements.
    pub dimensions: *const u64,
}
