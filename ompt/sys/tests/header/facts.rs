//! The facts about which C and Rust must agree.

use core::mem::{offset_of, size_of};

use ompt_sys::*;

use crate::c_type::{CType, c_type_of_field};

/// A fact about which C and Rust must agree.
pub(crate) struct Fact {
    /// The subject: a constant, a type, or a field of a type.
    pub(crate) name: String,
    /// A constant expression in C.
    pub(crate) c: String,
    /// The value in this crate.
    pub(crate) rust: i128,
}

/// All facts.
pub(crate) fn facts() -> Vec<Fact> {
    let mut facts = Vec::new();
    constants(&mut facts);
    enumerations(&mut facts);
    types(&mut facts);
    structures(&mut facts);
    facts
}

fn constants(facts: &mut Vec<Fact>) {
    let mut constant = |name: &str, rust: i128| {
        facts.push(Fact { name: name.into(), c: format!("(long long)({name})"), rust });
    };
    constant("ompt_id_none", ompt_id_none.into());
    constant("ompt_wait_id_none", ompt_wait_id_none.into());
    constant("ompt_time_none", ompt_time_none.into());
    constant("ompt_hwid_none", ompt_hwid_none.into());
    constant("ompt_mutex_impl_none", ompt_mutex_impl_none.into());
    constant("ompt_addr_none", ompt_addr_none as isize as i128);
    constant("ompt_callback_master", ompt_callback_master.0.into());
    constant("omp_control_tool_notool", omp_control_tool_notool.into());
    constant("omp_control_tool_nocallback", omp_control_tool_nocallback.into());
    constant("omp_control_tool_success", omp_control_tool_success.into());
    constant("omp_control_tool_ignored", omp_control_tool_ignored.into());
}

/// The values of each enumeration, and its size.
fn enumerations(facts: &mut Vec<Fact>) {
    macro_rules! enumerations {
        ($($name:ident)*) => {$(
            facts.push(size::<$name>(stringify!($name)));
            facts.extend($name::VALUES.iter().map(|&(name, value)| Fact {
                name: name.into(),
                c: name.into(),
                rust: value.into(),
            }));
        )*};
    }
    enumerations! {
        omp_control_tool_t ompt_callbacks_t ompt_cancel_flag_t ompt_dependence_type_t ompt_dispatch_t
        ompt_frame_flag_t ompt_mutex_t ompt_native_mon_flag_t ompt_parallel_flag_t ompt_record_native_t
        ompt_record_t ompt_scope_endpoint_t ompt_set_result_t ompt_severity_t ompt_state_t
        ompt_sync_region_t ompt_target_data_op_t ompt_target_map_flag_t ompt_target_t ompt_task_flag_t
        ompt_task_status_t ompt_thread_t ompt_work_t
    }
}

/// The types other than enumerations and structures: scalars and pointers to functions.
fn types(facts: &mut Vec<Fact>) {
    macro_rules! types {
        ($($name:ident)*) => {$(
            facts.push(same_type(
                stringify!($name).into(),
                stringify!($name),
                &<$name as CType>::c_type(),
            ));
        )*};
    }
    types! {
        ompt_id_t ompt_wait_id_t ompt_device_time_t ompt_hwid_t ompt_device_t ompt_buffer_t
        ompt_buffer_cursor_t ompt_interface_fn_t ompt_callback_t

        ompt_initialize_t ompt_finalize_t ompt_function_lookup_t

        ompt_callback_master_t ompt_callback_buffer_request_t ompt_callback_buffer_complete_t

        ompt_enumerate_states_t ompt_enumerate_mutex_impls_t ompt_set_callback_t ompt_get_callback_t
        ompt_get_thread_data_t ompt_get_num_procs_t ompt_get_num_places_t ompt_get_place_proc_ids_t
        ompt_get_place_num_t ompt_get_partition_place_nums_t ompt_get_proc_id_t ompt_get_state_t
        ompt_get_parallel_info_t ompt_get_task_info_t ompt_get_task_memory_t ompt_get_target_info_t
        ompt_get_num_devices_t ompt_get_unique_id_t ompt_finalize_tool_t

        ompt_get_device_num_procs_t ompt_get_device_time_t ompt_translate_time_t ompt_set_trace_ompt_t
        ompt_set_trace_native_t ompt_get_buffer_limits_t ompt_start_trace_t ompt_pause_trace_t
        ompt_flush_trace_t ompt_stop_trace_t ompt_advance_buffer_cursor_t ompt_get_record_type_t
        ompt_get_record_ompt_t ompt_get_record_native_t ompt_get_record_abstract_t
    }
    macro_rules! signatures {
        ($($name:ident $number:ident $signature:ident)*) => {$(
            let name = stringify!($signature);
            // Some callbacks share a signature.
            if !facts.iter().any(|fact| fact.name == name) {
                facts.push(same_type(name.into(), name, &<$signature as CType>::c_type()));
            }
        )*};
    }
    ompt_sys::for_each_callback!(signatures);
    // The only function that a tool defines. C declares the function itself, so its type is that of the function's
    // address.
    facts.push(same_type(
        "ompt_start_tool".into(),
        "__typeof__(&ompt_start_tool)",
        &ompt_start_tool_t::c_type(),
    ));
}

/// Size, offset and type of each field.
fn structures(facts: &mut Vec<Fact>) {
    macro_rules! structures {
        ($($name:ident { $($($field:ident).+),* })*) => {$(
            facts.push(size::<$name>(stringify!($name)));
            $(
                let field = stringify!($($field).+).replace("r#", "");
                facts.push(Fact {
                    name: format!("{}.{field}", stringify!($name)),
                    c: format!("offsetof({}, {field})", stringify!($name)),
                    rust: offset_of!($name, $($field).+) as i128,
                });
                facts.push(same_type(
                    format!("{}.{field} type", stringify!($name)),
                    &format!("__typeof__((({} *)0)->{field})", stringify!($name)),
                    &c_type_of_field(|structure: *const $name| {
                        // SAFETY: never called; only its type matters.
                        unsafe { &raw const (*structure).$($field).+ }
                    }),
                ));
            )*
        )*};
    }
    structures! {
        ompt_data_t { value, ptr }
        ompt_frame_t { exit_frame, enter_frame, exit_frame_flags, enter_frame_flags }
        ompt_dependence_t { variable, dependence_type }
        ompt_dispatch_chunk_t { start, iterations }
        ompt_subvolume_t { base, size, num_dims, volume, offsets, dimensions }
        ompt_start_tool_result_t { initialize, finalize, tool_data }

        ompt_record_abstract_t { rclass, r#type, start_time, end_time, hwid }
        ompt_record_ompt_t {
            r#type, time, thread_id, target_id,
            record.thread_begin, record.parallel_begin, record.parallel_end, record.work,
            record.dispatch, record.task_create, record.dependences, record.task_dependence,
            record.task_schedule, record.implicit_task, record.masked, record.sync_region,
            record.mutex_acquire, record.mutex, record.nest_lock, record.flush, record.cancel,
            record.target, record.target_data_op, record.target_map, record.target_kernel,
            record.target_emi, record.target_data_op_emi, record.target_map_emi,
            record.target_submit_emi, record.control_tool, record.error
        }
        ompt_record_thread_begin_t { thread_type }
        ompt_record_parallel_begin_t {
            encountering_task_id, parallel_id, requested_parallelism, flags, codeptr_ra
        }
        ompt_record_parallel_end_t { parallel_id, encountering_task_id, flags, codeptr_ra }
        ompt_record_work_t { work_type, endpoint, parallel_id, task_id, count, codeptr_ra }
        ompt_record_dispatch_t { parallel_id, task_id, kind, instance }
        ompt_record_task_create_t {
            encountering_task_id, new_task_id, flags, has_dependences, codeptr_ra
        }
        ompt_record_dependences_t { task_id, dep, ndeps }
        ompt_record_task_dependence_t { src_task_id, sink_task_id }
        ompt_record_task_schedule_t { prior_task_id, prior_task_status, next_task_id }
        ompt_record_implicit_task_t {
            endpoint, parallel_id, task_id, actual_parallelism, index, flags
        }
        ompt_record_masked_t { endpoint, parallel_id, task_id, codeptr_ra }
        ompt_record_sync_region_t { kind, endpoint, parallel_id, task_id, codeptr_ra }
        ompt_record_mutex_acquire_t { kind, hint, r#impl, wait_id, codeptr_ra }
        ompt_record_mutex_t { kind, wait_id, codeptr_ra }
        ompt_record_nest_lock_t { endpoint, wait_id, codeptr_ra }
        ompt_record_flush_t { codeptr_ra }
        ompt_record_cancel_t { task_id, flags, codeptr_ra }
        ompt_record_target_data_op_t {
            host_op_id, optype, src_addr, src_device_num, dest_addr, dest_device_num, bytes, end_time,
            codeptr_ra
        }
        ompt_record_target_t { kind, endpoint, device_num, task_id, target_id, codeptr_ra }
        ompt_record_target_map_t {
            target_id, nitems, host_addr, device_addr, bytes, mapping_flags, codeptr_ra
        }
        ompt_record_target_kernel_t {
            host_op_id, requested_num_teams, granted_num_teams, end_time
        }
        ompt_record_control_tool_t { command, modifier, codeptr_ra }
        ompt_record_error_t { severity, message, length, codeptr_ra }
    }
}

fn size<T>(name: &str) -> Fact {
    Fact { name: name.into(), c: format!("sizeof({name})"), rust: size_of::<T>() as i128 }
}

/// The fact that two C types are the same.
fn same_type(name: String, c_left: &str, c_right: &str) -> Fact {
    Fact { name, c: format!("__builtin_types_compatible_p({c_left}, {c_right})"), rust: 1 }
}
