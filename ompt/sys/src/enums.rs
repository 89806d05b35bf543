//! Enumerations and flag sets of OMPT (OpenMP 5.2, 19.4; OpenMP 6.0, 33), which permit unknown values.
//!
//! In C, each of them is an `enum`. A runtime that is newer than this crate, or that implements an older draft, passes
//! numbers without a name here. In a Rust `enum`, such a value would be undefined behaviour, so each type is a newtype
//! over `u32`. It keeps every number, and known numbers have a name.
//!
//! Values that only OpenMP 6.0 has, or that it removed, are marked as such.

use core::ffi::c_int;
use core::fmt;

/// Turns this
///
/// ```text
/// /// Why a thread exists.
/// ompt_thread_t, "ompt_thread_" {
///     ompt_thread_initial = 1,
/// }
/// ```
///
/// into a newtype `ompt_thread_t(pub u32)` and one constant per line, here `pub const ompt_thread_initial:
/// ompt_thread_t = ompt_thread_t(1)`. The type has `VALUES`, all constants with their C names, and `name`, the C name
/// without the given prefix (without `ompt_` if it does not have that prefix). `Debug` prints the C name or the number.
macro_rules! open_enum {
    ($(
        $(#[$type_doc:meta])*
        $type:ident, $prefix:literal { $( $(#[$doc:meta])* $name:ident = $value:literal, )* }
    )*) => {$(
        $(#[$type_doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(pub u32);

        $(
            #[doc = concat!("The number ", stringify!($value), " of [`", stringify!($type), "`].")]
            $(#[doc = ""] #[$doc])*
            pub const $name: $type = $type($value);
        )*

        impl $type {
            /// Every known value under its C name, in the specification's order.
            pub const VALUES: &'static [(&'static str, u32)] = &[$( (stringify!($name), $value) ),*];

            #[doc = concat!("The C name without `", $prefix, "`; `None` for a number that has no name.")]
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $value => Some(const { $crate::enums::short_name(stringify!($name), $prefix) }), )*
                    _ => None,
                }
            }
        }

        impl core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.0 {
                    $( $value => f.write_str(stringify!($name)), )*
                    unknown => write!(f, concat!(stringify!($type), "({:#x})"), unknown),
                }
            }
        }
    )*};
}

/// Turns this
///
/// ```text
/// /// How a parallel region is invoked.
/// ompt_parallel_flag_t, "ompt_parallel_" {
///     ompt_parallel_league = 0x4000_0000,
/// }
/// ```
///
/// into a newtype `ompt_parallel_flag_t(pub u32)` with a constant per line, `VALUES`, `|` between them, and `names`,
/// which lists the constants that are set. A constant is set if its bits are. A constant written as `= value in mask`
/// is a value of the bit field `mask`, and is set if the field equals it.
macro_rules! flags {
    ($(
        $(#[$type_doc:meta])*
        $type:ident, $prefix:literal {
            $( $(#[$doc:meta])* $name:ident = $value:literal $(in $mask:literal)?, )*
        }
    )*) => {$(
        $(#[$type_doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(pub u32);

        $(
            #[doc = concat!("The bits ", stringify!($value), " of [`", stringify!($type), "`].")]
            $(#[doc = ""] #[$doc])*
            pub const $name: $type = $type($value);
        )*

        impl $type {
            /// Every known constant under its C name, in the specification's order.
            pub const VALUES: &'static [(&'static str, u32)] = &[$( (stringify!($name), $value) ),*];

            /// Short name, value and mask of each constant.
            const FIELDS: &'static [(&'static str, u32, u32)] =
                &[$( (short_name(stringify!($name), $prefix), $value, $value $(| $mask)?) ),*];

            #[doc = concat!("The constants that are set, each its C name without `", $prefix, "`.")]
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::FIELDS
                    .iter()
                    .filter(move |&&(_, value, mask)| self.0 & mask == value)
                    .map(|&(name, ..)| name)
            }

            /// The bits that are set but belong to no constant.
            #[must_use]
            pub const fn unknown_bits(self) -> u32 {
                self.0 & !(0 $(| $value $(| $mask)?)*)
            }

            /// Whether all bits of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl core::ops::BitOr for $type {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($type), "({:#x})"), self.0)
            }
        }
    )*};
}

/// `name` without `prefix`, or without `ompt_` when it does not start with `prefix` (`ompt_taskwait_complete` is an
/// `ompt_task_status_t`). Evaluated at compile time only.
pub(crate) const fn short_name(name: &'static str, prefix: &str) -> &'static str {
    let prefix = if starts_with(name, prefix) { prefix } else { "ompt_" };
    name.split_at(prefix.len()).1
}

/// `str::starts_with`, which is not a `const fn`.
const fn starts_with(name: &str, prefix: &str) -> bool {
    let (name, prefix) = (name.as_bytes(), prefix.as_bytes());
    let mut i = 0;
    while i < prefix.len() && i < name.len() && name[i] == prefix[i] {
        i += 1;
    }
    i == prefix.len()
}

open_enum! {
    /// The format of a trace record (OpenMP 5.2, 19.4.3.1 Record Type; OpenMP 6.0, 33.23).
    ompt_record_t, "ompt_record_" {
        ompt_record_ompt = 1,
        ompt_record_native = 2,
        ompt_record_invalid = 3,
    }

    /// The kind of a native trace record (OpenMP 5.2, 19.4.3.2 Native Record Kind; OpenMP 6.0, 33.25).
    ompt_record_native_t, "ompt_record_native_" {
        ompt_record_native_info = 1,
        ompt_record_native_event = 2,
    }

    /// The result of a request to register a callback or to trace (OpenMP 5.2, 19.4.4.2; OpenMP 6.0, 33.28).
    ompt_set_result_t, "ompt_set_" {
        ompt_set_error = 0,
        ompt_set_never = 1,
        ompt_set_impossible = 2,
        ompt_set_sometimes = 3,
        ompt_set_sometimes_paired = 4,
        ompt_set_always = 5,
    }

    /// The kind of a thread (OpenMP 5.2, 19.4.4.10; OpenMP 6.0, 33.39).
    ompt_thread_t, "ompt_thread_" {
        ompt_thread_initial = 1,
        ompt_thread_worker = 2,
        ompt_thread_other = 3,
        ompt_thread_unknown = 4,
    }

    /// Whether an event is the start or the end of a region (OpenMP 5.2, 19.4.4.11; OpenMP 6.0, 33.27).
    ompt_scope_endpoint_t, "ompt_scope_" {
        ompt_scope_begin = 1,
        ompt_scope_end = 2,
        /// Both at once: the region has no duration (since OpenMP 5.1).
        ompt_scope_beginend = 3,
    }

    /// The kind of work that is dispatched (OpenMP 5.2, 19.4.4.12; OpenMP 6.0, 33.13).
    ompt_dispatch_t, "ompt_dispatch_" {
        ompt_dispatch_iteration = 1,
        ompt_dispatch_section = 2,
        /// Since OpenMP 5.2.
        ompt_dispatch_ws_loop_chunk = 3,
        /// Since OpenMP 5.2.
        ompt_dispatch_taskloop_chunk = 4,
        /// Since OpenMP 5.2.
        ompt_dispatch_distribute_chunk = 5,
    }

    /// A synchronization region (OpenMP 5.2, 19.4.4.14; OpenMP 6.0, 33.33).
    ompt_sync_region_t, "ompt_sync_region_" {
        /// Deprecated in OpenMP 5.1, removed in 6.0.
        ompt_sync_region_barrier = 1,
        /// Deprecated in OpenMP 5.1, removed in 6.0.
        ompt_sync_region_barrier_implicit = 2,
        ompt_sync_region_barrier_explicit = 3,
        ompt_sync_region_barrier_implementation = 4,
        ompt_sync_region_taskwait = 5,
        ompt_sync_region_taskgroup = 6,
        ompt_sync_region_reduction = 7,
        /// Since OpenMP 5.1.
        ompt_sync_region_barrier_implicit_workshare = 8,
        /// Since OpenMP 5.1.
        ompt_sync_region_barrier_implicit_parallel = 9,
        /// Since OpenMP 5.1.
        ompt_sync_region_barrier_teams = 10,
    }

    /// A data operation of a target region (OpenMP 5.2, 19.4.4.15; OpenMP 6.0, 33.35).
    ompt_target_data_op_t, "ompt_target_data_" {
        ompt_target_data_alloc = 1,
        /// Deprecated in OpenMP 6.0 in favour of [`ompt_target_data_transfer`].
        ompt_target_data_transfer_to_device = 2,
        /// Deprecated in OpenMP 6.0 in favour of [`ompt_target_data_transfer`].
        ompt_target_data_transfer_from_device = 3,
        ompt_target_data_delete = 4,
        ompt_target_data_associate = 5,
        ompt_target_data_disassociate = 6,
        /// Since OpenMP 6.0.
        ompt_target_data_transfer = 7,
        /// Since OpenMP 6.0.
        ompt_target_data_memset = 8,
        /// Since OpenMP 6.0; the addresses point to [`ompt_subvolume_t`](crate::ompt_subvolume_t)s.
        ompt_target_data_transfer_rect = 9,
        /// Since OpenMP 5.1.
        ompt_target_data_alloc_async = 17,
        /// Since OpenMP 5.1; deprecated in 6.0 in favour of [`ompt_target_data_transfer_async`].
        ompt_target_data_transfer_to_device_async = 18,
        /// Since OpenMP 5.1; deprecated in 6.0 in favour of [`ompt_target_data_transfer_async`].
        ompt_target_data_transfer_from_device_async = 19,
        /// Since OpenMP 5.1.
        ompt_target_data_delete_async = 20,
        /// Since OpenMP 6.0.
        ompt_target_data_transfer_async = 23,
        /// Since OpenMP 6.0.
        ompt_target_data_memset_async = 24,
        /// Since OpenMP 6.0; the addresses point to [`ompt_subvolume_t`](crate::ompt_subvolume_t)s.
        ompt_target_data_transfer_rect_async = 25,
    }

    /// A work-distribution region (OpenMP 5.2, 19.4.4.16; OpenMP 6.0, 33.41).
    ompt_work_t, "ompt_work_" {
        ompt_work_loop = 1,
        ompt_work_sections = 2,
        ompt_work_single_executor = 3,
        ompt_work_single_other = 4,
        ompt_work_workshare = 5,
        ompt_work_distribute = 6,
        ompt_work_taskloop = 7,
        /// Since OpenMP 5.1.
        ompt_work_scope = 8,
        /// Since OpenMP 6.0.
        ompt_work_workdistribute = 9,
        /// Since OpenMP 5.2.
        ompt_work_loop_static = 10,
        /// Since OpenMP 5.2.
        ompt_work_loop_dynamic = 11,
        /// Since OpenMP 5.2.
        ompt_work_loop_guided = 12,
        /// Since OpenMP 5.2.
        ompt_work_loop_other = 13,
    }

    /// The kind of mutual exclusion (OpenMP 5.2, 19.4.4.17; OpenMP 6.0, 33.20).
    ompt_mutex_t, "ompt_mutex_" {
        ompt_mutex_lock = 1,
        ompt_mutex_test_lock = 2,
        ompt_mutex_nest_lock = 3,
        ompt_mutex_test_nest_lock = 4,
        ompt_mutex_critical = 5,
        ompt_mutex_atomic = 6,
        ompt_mutex_ordered = 7,
    }

    /// Why a task was switched at a task scheduling point (OpenMP 5.2, 19.4.4.20; OpenMP 6.0, 33.38).
    ompt_task_status_t, "ompt_task_" {
        ompt_task_complete = 1,
        ompt_task_yield = 2,
        ompt_task_cancel = 3,
        ompt_task_detach = 4,
        ompt_task_early_fulfill = 5,
        ompt_task_late_fulfill = 6,
        ompt_task_switch = 7,
        /// Since OpenMP 5.1.
        ompt_taskwait_complete = 8,
    }

    /// A device construct (OpenMP 5.2, 19.4.4.21; OpenMP 6.0, 33.34).
    ompt_target_t, "ompt_" {
        ompt_target = 1,
        ompt_target_enter_data = 2,
        ompt_target_exit_data = 3,
        ompt_target_update = 4,
        /// Since OpenMP 5.1.
        ompt_target_nowait = 9,
        /// Since OpenMP 5.1.
        ompt_target_enter_data_nowait = 10,
        /// Since OpenMP 5.1.
        ompt_target_exit_data_nowait = 11,
        /// Since OpenMP 5.1.
        ompt_target_update_nowait = 12,
    }

    /// The type of a dependence (OpenMP 5.2, 19.4.4.24; OpenMP 6.0, 33.10).
    ompt_dependence_type_t, "ompt_dependence_type_" {
        ompt_dependence_type_in = 1,
        ompt_dependence_type_out = 2,
        ompt_dependence_type_inout = 3,
        ompt_dependence_type_mutexinoutset = 4,
        ompt_dependence_type_source = 5,
        ompt_dependence_type_sink = 6,
        /// Since OpenMP 5.1.
        ompt_dependence_type_inoutset = 7,
        /// Since OpenMP 5.2: the dependence names `omp_all_memory`.
        ompt_dependence_type_out_all_memory = 34,
        /// Since OpenMP 5.2: the dependence names `omp_all_memory`.
        ompt_dependence_type_inout_all_memory = 35,
    }

    /// The severity of an `error` directive (OpenMP 5.2, 19.4.4.25; OpenMP 6.0, 33.29).
    ompt_severity_t, "ompt_" {
        ompt_warning = 1,
        ompt_fatal = 2,
    }

    /// The state of a thread (OpenMP 5.2, 19.4.4.28; OpenMP 6.0, 33.31). Values from 512 on are specific to the
    /// runtime; `ompt_enumerate_states` provides their names.
    ompt_state_t, "ompt_state_" {
        ompt_state_work_serial = 0x000,
        ompt_state_work_parallel = 0x001,
        ompt_state_work_reduction = 0x002,
        /// Since OpenMP 6.0.
        ompt_state_work_free_agent = 0x003,
        /// Since OpenMP 6.0.
        ompt_state_work_induction = 0x004,
        /// Deprecated in OpenMP 5.1, removed in 6.0.
        ompt_state_wait_barrier = 0x010,
        ompt_state_wait_barrier_implicit_parallel = 0x011,
        ompt_state_wait_barrier_implicit_workshare = 0x012,
        /// Deprecated in OpenMP 5.1, removed in 6.0.
        ompt_state_wait_barrier_implicit = 0x013,
        ompt_state_wait_barrier_explicit = 0x014,
        /// Since OpenMP 5.1.
        ompt_state_wait_barrier_implementation = 0x015,
        /// Since OpenMP 5.1.
        ompt_state_wait_barrier_teams = 0x016,
        ompt_state_wait_taskwait = 0x020,
        ompt_state_wait_taskgroup = 0x021,
        ompt_state_wait_mutex = 0x040,
        ompt_state_wait_lock = 0x041,
        ompt_state_wait_critical = 0x042,
        ompt_state_wait_atomic = 0x043,
        ompt_state_wait_ordered = 0x044,
        ompt_state_wait_target = 0x080,
        ompt_state_wait_target_map = 0x081,
        ompt_state_wait_target_update = 0x082,
        ompt_state_idle = 0x100,
        ompt_state_overhead = 0x101,
        ompt_state_undefined = 0x102,
    }

    /// The command of `omp_control_tool` (OpenMP 5.2, 18.14 Tool Control Routine; OpenMP 6.0, 31.1), which
    /// `ompt_callback_control_tool` passes on as an `uint64_t`. Values from 64 on are for the user and the tool.
    omp_control_tool_t, "omp_control_tool_" {
        omp_control_tool_start = 1,
        omp_control_tool_pause = 2,
        omp_control_tool_flush = 3,
        omp_control_tool_end = 4,
    }
}

/// The result of `omp_control_tool` for the program (OpenMP 5.2, 18.14; OpenMP 6.0, 31.1). A tool's own results are
/// greater than [`omp_control_tool_ignored`]. Signed, therefore not an open enumeration.
pub type omp_control_tool_result_t = c_int;

/// No tool is active.
pub const omp_control_tool_notool: omp_control_tool_result_t = -2;

/// The tool has not registered the callback.
pub const omp_control_tool_nocallback: omp_control_tool_result_t = -1;

/// The tool has executed the command.
pub const omp_control_tool_success: omp_control_tool_result_t = 0;

/// The tool has ignored the command.
pub const omp_control_tool_ignored: omp_control_tool_result_t = 1;

flags! {
    /// The kinds of events to include in native tracing of a device (OpenMP 5.2, 19.4.4.18; OpenMP 6.0, 33.21).
    ompt_native_mon_flag_t, "ompt_native_" {
        ompt_native_data_motion_explicit = 0x01,
        ompt_native_data_motion_implicit = 0x02,
        ompt_native_kernel_invocation = 0x04,
        ompt_native_kernel_execution = 0x08,
        ompt_native_driver = 0x10,
        ompt_native_runtime = 0x20,
        ompt_native_overhead = 0x40,
        ompt_native_idleness = 0x80,
    }

    /// The kind of a task, in the lowest byte, and its properties (OpenMP 5.2, 19.4.4.19; OpenMP 6.0, 33.37).
    ompt_task_flag_t, "ompt_task_" {
        ompt_task_initial = 0x0000_0001,
        ompt_task_implicit = 0x0000_0002,
        ompt_task_explicit = 0x0000_0004,
        ompt_task_target = 0x0000_0008,
        /// Since OpenMP 5.1.
        ompt_task_taskwait = 0x0000_0010,
        /// Since OpenMP 6.0.
        ompt_task_importing = 0x0200_0000,
        /// Since OpenMP 6.0.
        ompt_task_exporting = 0x0400_0000,
        ompt_task_undeferred = 0x0800_0000,
        ompt_task_untied = 0x1000_0000,
        ompt_task_final = 0x2000_0000,
        ompt_task_mergeable = 0x4000_0000,
        ompt_task_merged = 0x8000_0000,
    }

    /// How a parallel or teams region is invoked (OpenMP 5.2, 19.4.4.22; OpenMP 6.0, 33.22).
    ompt_parallel_flag_t, "ompt_parallel_" {
        ompt_parallel_invoker_program = 0x0000_0001,
        ompt_parallel_invoker_runtime = 0x0000_0002,
        ompt_parallel_league = 0x4000_0000,
        ompt_parallel_team = 0x8000_0000,
    }

    /// How one item is mapped (OpenMP 5.2, 19.4.4.23; OpenMP 6.0, 33.36).
    ompt_target_map_flag_t, "ompt_target_map_flag_" {
        ompt_target_map_flag_to = 0x01,
        ompt_target_map_flag_from = 0x02,
        ompt_target_map_flag_alloc = 0x04,
        ompt_target_map_flag_release = 0x08,
        ompt_target_map_flag_delete = 0x10,
        ompt_target_map_flag_implicit = 0x20,
        /// Since OpenMP 5.2.
        ompt_target_map_flag_always = 0x40,
        /// Since OpenMP 5.2.
        ompt_target_map_flag_present = 0x80,
        /// Since OpenMP 5.2.
        ompt_target_map_flag_close = 0x100,
        /// Since OpenMP 5.2.
        ompt_target_map_flag_shared = 0x200,
    }

    /// The construct that is cancelled, and how far it got (OpenMP 5.2, 19.4.4.26; OpenMP 6.0, 33.7).
    ompt_cancel_flag_t, "ompt_cancel_" {
        ompt_cancel_parallel = 0x01,
        ompt_cancel_sections = 0x02,
        ompt_cancel_loop = 0x04,
        ompt_cancel_taskgroup = 0x08,
        ompt_cancel_activated = 0x10,
        ompt_cancel_detected = 0x20,
        ompt_cancel_discarded_task = 0x40,
    }

    /// The owner of a frame, in the lower four bits, and how its address was determined, in the upper four (OpenMP 5.2,
    /// 19.4.4.30; OpenMP 6.0, 33.16).
    ompt_frame_flag_t, "ompt_frame_" {
        ompt_frame_runtime = 0x00 in 0x0f,
        ompt_frame_application = 0x01 in 0x0f,
        ompt_frame_cfa = 0x10 in 0xf0,
        ompt_frame_framepointer = 0x20 in 0xf0,
        ompt_frame_stackaddress = 0x30 in 0xf0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::format;
    use std::vec::Vec;

    #[test]
    fn short_names_drop_the_common_prefix() {
        assert_eq!(ompt_scope_beginend.name(), Some("beginend"));
        assert_eq!(crate::ompt_callback_target_data_op_emi.name(), Some("target_data_op_emi"));
        assert_eq!(ompt_task_early_fulfill.name(), Some("early_fulfill"));
        assert_eq!(ompt_taskwait_complete.name(), Some("taskwait_complete"));
        assert_eq!(ompt_target.name(), Some("target"));
    }

    #[test]
    fn unknown_numbers_survive_and_print() {
        let unknown = ompt_work_t(77);
        assert_eq!(unknown.name(), None);
        assert_eq!(format!("{unknown:?} {ompt_work_scope:?}"), "ompt_work_t(0x4d) ompt_work_scope");
    }

    #[test]
    fn flags_list_what_is_set() {
        let names = |flags: ompt_task_flag_t| flags.names().collect::<Vec<_>>();
        assert_eq!(names(ompt_task_explicit | ompt_task_merged), ["explicit", "merged"]);
        assert_eq!(names(ompt_task_flag_t(0x100)), Vec::<&str>::new());
        assert_eq!(ompt_task_flag_t(0x8000_0104).unknown_bits(), 0x100);
    }

    #[test]
    fn frame_flags_are_two_fields() {
        let names = |flags: u32| ompt_frame_flag_t(flags).names().collect::<Vec<_>>();
        assert_eq!(names(0x30), ["runtime", "stackaddress"]);
        assert_eq!(names(0x21), ["application", "framepointer"]);
        assert_eq!(names(0x07), Vec::<&str>::new());
    }
}
