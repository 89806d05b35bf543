//! The table of callbacks.

use ompt_sys::*;
#[cfg(feature = "generate")]
use proptest::strategy::{BoxedStrategy, Strategy};
use serde::{Deserialize, Serialize};

use super::argument::*;
use super::callback_table;
use super::dialect::Dialect;

/// Turns this
///
/// ```text
/// ThreadBegin = "thread_begin" ompt_callback_thread_begin_t {
///     thread_type: Enum<ompt_thread_t>, thread_data: New,
/// }
/// ```
///
/// into a variant of [`Call`] with these fields, the code that calls the callback, the line that reports the call, and
/// a generator.
macro_rules! calls {
    ($(
        $Variant:ident = $name:literal $signature:path { $($argument:ident: $kind:ty),* $(,)? }
    )*) => {
        /// One call of a callback, with its arguments under the specification's names.
        ///
        /// The tool may read whatever arguments point to: arrays must have at least as many elements as their counts
        /// say.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs, reason = "each is the callback of its name, with the arguments of the specification")]
        pub enum Call {
            $($Variant { $($argument: $kind),* },)*
        }

        impl Call {
            /// The callback's name without `ompt_callback_`.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Call::$Variant { .. } => $name,)*
                }
            }

            /// Calls the tool. Returns the line for the call, and the callback's return value if it has one; `None` if
            /// the tool has not registered the callback.
            pub(super) fn make(&self, slots: &Slots) -> Option<(Line, i32)> {
                match self {
                    $(Call::$Variant { $($argument),* } => {
                        let callback = callback_table::callback($name)?;
                        $(let $argument = $argument.place(slots);)*
                        // SAFETY: the tool registered a function with this signature under the number of this name. In
                        // the drafts, it has the same parameters, or the first of them.
                        let callback: $signature = unsafe { std::mem::transmute(callback) };
                        // SAFETY: the script's author guarantees what `Call` requires; everything else is in memory.
                        let returned = unsafe { callback($(Parameter::from_word($argument.word())),*) };
                        let mut line = Line::new();
                        line.insert("event".into(), $name.into());
                        $($argument.show(stringify!($argument).trim_start_matches("r#"), &mut line);)*
                        Dialect::current().forget_what_is_not_passed(&mut line);
                        Some((line, Returned::number(returned)))
                    })*
                }
            }

            /// The highest slot that the call uses.
            pub(super) fn highest_slot(&self) -> Option<u32> {
                match self {
                    $(Call::$Variant { $($argument),* } => [$($argument.highest_slot()),*].into_iter().flatten().max(),)*
                }
            }

            /// Adds `distance` to the slots that the call uses.
            #[cfg(feature = "generate")]
            pub(super) fn move_slots(&mut self, distance: u32) {
                match self {
                    $(Call::$Variant { $($argument),* } => {
                        $($argument.move_slots(distance);)*
                    })*
                }
            }

            /// Generates any call of each callback, with arbitrary pointed-to values.
            #[cfg(feature = "generate")]
            pub(super) fn any_of_each() -> Vec<BoxedStrategy<Call>> {
                vec![$(
                    ($(<$kind as Any>::any(),)*)
                        .prop_map(|($($argument,)*)| Call::$Variant { $($argument),* })
                        .boxed(),
                )*]
            }
        }
    };
}

/// The return type of callbacks: nothing, except for one.
trait Returned {
    fn number(self) -> i32;
}

impl Returned for () {
    fn number(self) -> i32 {
        0
    }
}

impl Returned for i32 {
    fn number(self) -> i32 {
        self
    }
}

calls! {
    ThreadBegin = "thread_begin" ompt_callback_thread_begin_t {
        thread_type: Enum<ompt_thread_t>, thread_data: New,
    }
    ThreadEnd = "thread_end" ompt_callback_thread_end_t { thread_data: Data }
    ParallelBegin = "parallel_begin" ompt_callback_parallel_begin_t {
        encountering_task_data: Data, encountering_task_frame: Frame, parallel_data: New,
        requested_parallelism: u32, flags: Enum<ompt_parallel_flag_t>, codeptr_ra: Address,
    }
    ParallelEnd = "parallel_end" ompt_callback_parallel_end_t {
        parallel_data: Data, encountering_task_data: Data, flags: Enum<ompt_parallel_flag_t>, codeptr_ra: Address,
    }
    TaskCreate = "task_create" ompt_callback_task_create_t {
        encountering_task_data: Data, encountering_task_frame: Frame, new_task_data: New,
        flags: Enum<ompt_task_flag_t>, has_dependences: u32, codeptr_ra: Address,
    }
    TaskSchedule = "task_schedule" ompt_callback_task_schedule_t {
        prior_task_data: Data, prior_task_status: Enum<ompt_task_status_t>, next_task_data: Data,
    }
    ImplicitTask = "implicit_task" ompt_callback_implicit_task_t {
        endpoint: Enum<ompt_scope_endpoint_t>, parallel_data: Data, task_data: New, actual_parallelism: u32,
        index: u32, flags: Enum<ompt_task_flag_t>,
    }
    Target = "target" ompt_callback_target_t {
        kind: Enum<ompt_target_t>, endpoint: Enum<ompt_scope_endpoint_t>, device_num: i32, task_data: Data,
        target_id: Address, codeptr_ra: Address,
    }
    TargetDataOp = "target_data_op" ompt_callback_target_data_op_t {
        target_id: Address, host_op_id: Address, optype: Enum<ompt_target_data_op_t>, src_addr: Address,
        src_device_num: i32, dest_addr: Address, dest_device_num: i32, bytes: u64, codeptr_ra: Address,
    }
    TargetSubmit = "target_submit" ompt_callback_target_submit_t {
        target_id: Address, host_op_id: Address, requested_num_teams: u32,
    }
    ControlTool = "control_tool" ompt_callback_control_tool_t {
        command: u64, modifier: u64, arg: ControlArgument, codeptr_ra: Address,
    }
    DeviceInitialize = "device_initialize" ompt_callback_device_initialize_t {
        device_num: i32, r#type: Text, device: Address, lookup: Lookup, documentation: Text,
    }
    DeviceFinalize = "device_finalize" ompt_callback_device_finalize_t { device_num: i32 }
    DeviceLoad = "device_load" ompt_callback_device_load_t {
        device_num: i32, filename: Text, offset_in_file: i64, vma_in_file: Address, bytes: u64,
        host_addr: Address, device_addr: Address, module_id: u64,
    }
    DeviceUnload = "device_unload" ompt_callback_device_unload_t { device_num: i32, module_id: u64 }
    SyncRegionWait = "sync_region_wait" ompt_callback_sync_region_t {
        kind: Enum<ompt_sync_region_t>, endpoint: Enum<ompt_scope_endpoint_t>, parallel_data: Data,
        task_data: Data, codeptr_ra: Address,
    }
    MutexReleased = "mutex_released" ompt_callback_mutex_t {
        kind: Enum<ompt_mutex_t>, wait_id: Address, codeptr_ra: Address,
    }
    Dependences = "dependences" ompt_callback_dependences_t { task_data: Data, deps: Dependences, ndeps: i32 }
    TaskDependence = "task_dependence" ompt_callback_task_dependence_t {
        src_task_data: Data, sink_task_data: Data,
    }
    Work = "work" ompt_callback_work_t {
        work_type: Enum<ompt_work_t>, endpoint: Enum<ompt_scope_endpoint_t>, parallel_data: Data,
        task_data: Data, count: u64, codeptr_ra: Address,
    }
    Masked = "masked" ompt_callback_masked_t {
        endpoint: Enum<ompt_scope_endpoint_t>, parallel_data: Data, task_data: Data, codeptr_ra: Address,
    }
    TargetMap = "target_map" ompt_callback_target_map_t {
        target_id: Address, nitems: u32, host_addr: Numbers<u64>, device_addr: Numbers<u64>,
        bytes: Numbers<u64>, mapping_flags: Numbers<u32>, codeptr_ra: Address,
    }
    SyncRegion = "sync_region" ompt_callback_sync_region_t {
        kind: Enum<ompt_sync_region_t>, endpoint: Enum<ompt_scope_endpoint_t>, parallel_data: Data,
        task_data: Data, codeptr_ra: Address,
    }
    LockInit = "lock_init" ompt_callback_mutex_acquire_t {
        kind: Enum<ompt_mutex_t>, hint: u32, r#impl: u32, wait_id: Address, codeptr_ra: Address,
    }
    LockDestroy = "lock_destroy" ompt_callback_mutex_t {
        kind: Enum<ompt_mutex_t>, wait_id: Address, codeptr_ra: Address,
    }
    MutexAcquire = "mutex_acquire" ompt_callback_mutex_acquire_t {
        kind: Enum<ompt_mutex_t>, hint: u32, r#impl: u32, wait_id: Address, codeptr_ra: Address,
    }
    MutexAcquired = "mutex_acquired" ompt_callback_mutex_t {
        kind: Enum<ompt_mutex_t>, wait_id: Address, codeptr_ra: Address,
    }
    NestLock = "nest_lock" ompt_callback_nest_lock_t {
        endpoint: Enum<ompt_scope_endpoint_t>, wait_id: Address, codeptr_ra: Address,
    }
    Flush = "flush" ompt_callback_flush_t { thread_data: Data, codeptr_ra: Address }
    Cancel = "cancel" ompt_callback_cancel_t {
        task_data: Data, flags: Enum<ompt_cancel_flag_t>, codeptr_ra: Address,
    }
    Reduction = "reduction" ompt_callback_sync_region_t {
        kind: Enum<ompt_sync_region_t>, endpoint: Enum<ompt_scope_endpoint_t>, parallel_data: Data,
        task_data: Data, codeptr_ra: Address,
    }
    Dispatch = "dispatch" ompt_callback_dispatch_t {
        parallel_data: Data, task_data: Data, kind: Enum<ompt_dispatch_t>, instance: Instance,
    }
    TargetEmi = "target_emi" ompt_callback_target_emi_t {
        kind: Enum<ompt_target_t>, endpoint: Enum<ompt_scope_endpoint_t>, device_num: i32, task_data: Data,
        target_task_data: Data, target_data: New, codeptr_ra: Address,
    }
    TargetDataOpEmi = "target_data_op_emi" ompt_callback_target_data_op_emi_t {
        endpoint: Enum<ompt_scope_endpoint_t>, target_task_data: Data, target_data: Data, host_op_id: New,
        optype: Enum<ompt_target_data_op_t>, src_addr: Address, src_device_num: i32, dest_addr: Address,
        dest_device_num: i32, bytes: u64, codeptr_ra: Address,
    }
    TargetSubmitEmi = "target_submit_emi" ompt_callback_target_submit_emi_t {
        endpoint: Enum<ompt_scope_endpoint_t>, target_data: Data, host_op_id: New, requested_num_teams: u32,
    }
    TargetMapEmi = "target_map_emi" ompt_callback_target_map_emi_t {
        target_data: Data, nitems: u32, host_addr: Numbers<u64>, device_addr: Numbers<u64>,
        bytes: Numbers<u64>, mapping_flags: Numbers<u32>, codeptr_ra: Address,
    }
    Error = "error" ompt_callback_error_t {
        severity: Enum<ompt_severity_t>, message: Text, length: u64, codeptr_ra: Address,
    }
    Idle = "idle" tr6::ompt_callback_idle_t { endpoint: Enum<ompt_scope_endpoint_t> }
}
