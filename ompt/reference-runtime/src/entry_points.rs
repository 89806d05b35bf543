//! The entry points with which a tool queries the runtime (OpenMP 5.2, 19.6.1), on a host without devices and places.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use ompt_sys::*;

use super::callback_table::{CALLBACKS, GRANTS, NUMBERS, callback_of_number};
use super::dialect::Dialect;
use super::{active_tool, context};

/// Turns these functions into the lookup function.
macro_rules! entry_points {
    ($($name:literal $function:ident: $signature:ty,)*) => {
        /// The host's `ompt_function_lookup_t`.
        pub(super) unsafe extern "C" fn lookup(interface_function_name: *const c_char) -> Option<ompt_interface_fn_t> {
            // SAFETY: the specification demands a C string.
            let name = unsafe { CStr::from_ptr(interface_function_name) };
            if !Dialect::current().has_entry_point(name) {
                return None;
            }
            $(if name == $name {
                let function: $signature = $function;
                // SAFETY: the tool casts it back to the type that belongs to the name.
                return Some(unsafe { std::mem::transmute::<*const c_void, ompt_interface_fn_t>(function as *const c_void) });
            })*
            None
        }
    };
}

entry_points! {
    c"ompt_enumerate_states" enumerate_states: ompt_enumerate_states_t,
    c"ompt_enumerate_mutex_impls" enumerate_mutex_impls: ompt_enumerate_mutex_impls_t,
    c"ompt_set_callback" set_callback: ompt_set_callback_t,
    c"ompt_get_callback" get_callback: ompt_get_callback_t,
    c"ompt_get_thread_data" get_thread_data: ompt_get_thread_data_t,
    c"ompt_get_num_procs" get_num_procs: ompt_get_num_procs_t,
    c"ompt_get_num_places" get_num_places: ompt_get_num_places_t,
    c"ompt_get_place_proc_ids" get_place_proc_ids: ompt_get_place_proc_ids_t,
    c"ompt_get_place_num" get_place_num: ompt_get_place_num_t,
    c"ompt_get_partition_place_nums" get_partition_place_nums: ompt_get_partition_place_nums_t,
    c"ompt_get_proc_id" get_proc_id: ompt_get_proc_id_t,
    c"ompt_get_state" get_state: ompt_get_state_t,
    c"ompt_get_parallel_info" get_parallel_info: ompt_get_parallel_info_t,
    c"ompt_get_task_info" get_task_info: ompt_get_task_info_t,
    c"ompt_get_task_memory" get_task_memory: ompt_get_task_memory_t,
    c"ompt_get_target_info" get_target_info: ompt_get_target_info_t,
    c"ompt_get_num_devices" get_num_devices: ompt_get_num_devices_t,
    c"ompt_get_unique_id" get_unique_id: ompt_get_unique_id_t,
    c"ompt_finalize_tool" finalize_tool: ompt_finalize_tool_t,
}

/// Stores `value` for the tool, which may pass NULL.
///
/// # Safety
/// `place` is NULL or can be written.
unsafe fn answer<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: by the caller's contract.
        unsafe { place.write(value) };
    }
}

/// Returns the value after `current` in an enumeration of numbers and names.
///
/// # Safety
/// `next` and `next_name` are NULL or can be written.
unsafe fn enumerate(
    values: &[(c_int, &'static CStr)],
    current: c_int,
    next: *mut c_int,
    next_name: *mut *const c_char,
) -> c_int {
    let behind = values.iter().position(|(value, _)| *value == current);
    let Some((value, name)) = behind.and_then(|index| values.get(index + 1)) else {
        return 0;
    };
    // SAFETY: by the caller's contract.
    unsafe {
        answer(next, *value);
        answer(next_name, name.as_ptr());
    }
    1
}

unsafe extern "C" fn enumerate_states(
    current_state: c_int,
    next_state: *mut c_int,
    next_state_name: *mut *const c_char,
) -> c_int {
    /// The states that [`context`] uses, after the start value of the enumeration.
    const STATES: &[(c_int, &CStr)] = &[
        (ompt_state_undefined.0 as c_int, c"ompt_state_undefined"),
        (ompt_state_work_serial.0 as c_int, c"ompt_state_work_serial"),
        (ompt_state_work_parallel.0 as c_int, c"ompt_state_work_parallel"),
        (ompt_state_wait_mutex.0 as c_int, c"ompt_state_wait_mutex"),
    ];
    /// The same states with their names in the drafts.
    const STATES_OF_DRAFTS: &[(c_int, &CStr)] = &[
        (ompt_state_undefined.0 as c_int, c"omp_state_undefined"),
        (ompt_state_work_serial.0 as c_int, c"omp_state_work_serial"),
        (ompt_state_work_parallel.0 as c_int, c"omp_state_work_parallel"),
        (ompt_state_wait_mutex.0 as c_int, c"omp_state_wait_mutex"),
    ];
    /// TR2's states, which end before the start value of later enumerations.
    const STATES_OF_EARLY_TR4: &[(c_int, &CStr)] = &[
        (tr2::ompt_state_first, c"ompt_state_first"),
        (tr2::ompt_state_work_serial.0 as c_int, c"ompt_state_work_serial"),
        (tr2::ompt_state_work_parallel.0 as c_int, c"ompt_state_work_parallel"),
    ];
    let states = match Dialect::current() {
        Dialect::V5 | Dialect::Unknown => STATES,
        Dialect::Tr7 | Dialect::Tr6 | Dialect::Tr4 => STATES_OF_DRAFTS,
        Dialect::EarlyTr4 => STATES_OF_EARLY_TR4,
    };
    // SAFETY: the specification demands pointers that can be written.
    unsafe { enumerate(states, current_state, next_state, next_state_name) }
}

unsafe extern "C" fn enumerate_mutex_impls(
    current_impl: c_int,
    next_impl: *mut c_int,
    next_impl_name: *mut *const c_char,
) -> c_int {
    const IMPLS: &[(c_int, &CStr)] =
        &[(ompt_mutex_impl_none, c"ompt_mutex_impl_none"), (1, c"reference_mutex_impl_script")];
    // SAFETY: the specification demands pointers that can be written.
    unsafe { enumerate(IMPLS, current_impl, next_impl, next_impl_name) }
}

unsafe extern "C" fn set_callback(
    event: ompt_callbacks_t,
    callback: Option<ompt_callback_t>,
) -> ompt_set_result_t {
    let number = event.0 as usize;
    if !(1..NUMBERS).contains(&number) {
        return ompt_set_error;
    }
    let result = GRANTS[number].load(Ordering::Relaxed);
    let (_, sometimes) = Dialect::current().set_results();
    if result >= sometimes {
        let callback = callback.map_or(ptr::null_mut(), |callback| callback as *mut c_void);
        CALLBACKS[number].store(callback, Ordering::Relaxed);
    }
    ompt_set_result_t(result)
}

unsafe extern "C" fn get_callback(
    event: ompt_callbacks_t,
    registered: *mut Option<ompt_callback_t>,
) -> c_int {
    let Some(callback) = callback_of_number(event.0) else {
        return 0;
    };
    // SAFETY: the specification demands a pointer that can be written.
    unsafe { answer(registered, Some(callback)) };
    1
}

unsafe extern "C" fn get_thread_data() -> *mut ompt_data_t {
    context::with(|thread| thread.data)
}

unsafe extern "C" fn get_num_procs() -> c_int {
    std::thread::available_parallelism().map_or(1, |procs| procs.get() as c_int)
}

unsafe extern "C" fn get_num_places() -> c_int {
    0
}

unsafe extern "C" fn get_place_proc_ids(_: c_int, _: c_int, _: *mut c_int) -> c_int {
    0
}

unsafe extern "C" fn get_place_num() -> c_int {
    -1
}

unsafe extern "C" fn get_partition_place_nums(_: c_int, _: *mut c_int) -> c_int {
    0
}

unsafe extern "C" fn get_proc_id() -> c_int {
    // SAFETY: only queries the kernel.
    unsafe { libc::sched_getcpu() }
}

unsafe extern "C" fn get_state(wait_id: *mut ompt_wait_id_t) -> c_int {
    let (state, waits_for) = context::with(|thread| thread.state());
    // SAFETY: the specification demands NULL or a pointer that can be written.
    unsafe { answer(wait_id, waits_for) };
    state.0 as c_int
}

/// The result of the entry points if there is an ancestor, and its information is available.
const AVAILABLE: c_int = 2;

unsafe extern "C" fn get_parallel_info(
    ancestor_level: c_int,
    parallel_data: *mut *mut ompt_data_t,
    team_size: *mut c_int,
) -> c_int {
    let Some(task) = context::with(|thread| thread.task(ancestor_level)) else {
        return 0;
    };
    // SAFETY: the specification demands NULL or pointers that can be written.
    unsafe {
        answer(parallel_data, task.parallel_data);
        answer(team_size, task.team_size);
    }
    AVAILABLE
}

unsafe extern "C" fn get_task_info(
    ancestor_level: c_int,
    flags: *mut c_int,
    task_data: *mut *mut ompt_data_t,
    task_frame: *mut *mut ompt_frame_t,
    parallel_data: *mut *mut ompt_data_t,
    thread_num: *mut c_int,
) -> c_int {
    let Some(task) = context::with(|thread| thread.task(ancestor_level)) else {
        return 0;
    };
    // SAFETY: the specification demands NULL or pointers that can be written.
    unsafe {
        answer(flags, task.flags);
        answer(task_data, task.task_data);
        answer(task_frame, ptr::null_mut());
        answer(parallel_data, task.parallel_data);
        answer(thread_num, task.thread_num);
    }
    AVAILABLE
}

unsafe extern "C" fn get_task_memory(addr: *mut *mut c_void, size: *mut usize, _: c_int) -> c_int {
    // Tasks of a script have no data environment.
    // SAFETY: the specification demands pointers that can be written.
    unsafe {
        answer(addr, ptr::null_mut());
        answer(size, 0);
    }
    0
}

unsafe extern "C" fn get_target_info(_: *mut u64, _: *mut ompt_id_t, _: *mut ompt_id_t) -> c_int {
    0
}

unsafe extern "C" fn get_num_devices() -> c_int {
    0
}

unsafe extern "C" fn get_unique_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

unsafe extern "C" fn finalize_tool() {
    // The library stays open, because the tool's code that called this is still running.
    std::mem::forget(active_tool::finalize());
}
