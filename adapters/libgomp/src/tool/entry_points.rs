//! The entry points for tools (OpenMP 5.2, 19.6.1).

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use ompt_sys::*;

use super::state::finalize_tool;
use crate::entries::devices;
use crate::model::thread;
use crate::tool::callbacks;
use crate::which_libgomp::functions::Libgomp;
use crate::which_libgomp::serving;

/// Returns the address of an entry point (OpenMP 5.2, 19.6.1), or NULL for an unknown name.
pub(super) unsafe extern "C" fn lookup(name: *const c_char) -> Option<ompt_interface_fn_t> {
    // SAFETY: the tool passes a string.
    let name = unsafe { CStr::from_ptr(name) };
    /// The address of a function with its own type.
    macro_rules! entry_points {
        ($($text:literal => $function:ident as $type:ty,)*) => {
            match name.to_bytes() {
                $($text => {
                    let function: $type = $function;
                    #[allow(clippy::useless_transmute, reason = "one of them has this type itself")]
                    // SAFETY: the tool casts the address back to the type that belongs to this name.
                    Some(unsafe { core::mem::transmute::<$type, ompt_interface_fn_t>(function) })
                })*
                _ => None,
            }
        };
    }
    entry_points! {
        b"ompt_set_callback" => set_callback as ompt_set_callback_t,
        b"ompt_get_callback" => get_callback as ompt_get_callback_t,
        b"ompt_get_thread_data" => get_thread_data as ompt_get_thread_data_t,
        b"ompt_get_parallel_info" => get_parallel_info as ompt_get_parallel_info_t,
        b"ompt_get_task_info" => get_task_info as ompt_get_task_info_t,
        b"ompt_get_task_memory" => get_task_memory as ompt_get_task_memory_t,
        b"ompt_get_state" => get_state as ompt_get_state_t,
        b"ompt_enumerate_states" => enumerate_states as ompt_enumerate_states_t,
        b"ompt_enumerate_mutex_impls" => enumerate_mutex_impls as ompt_enumerate_mutex_impls_t,
        b"ompt_get_unique_id" => get_unique_id as ompt_get_unique_id_t,
        b"ompt_finalize_tool" => finalize_tool as ompt_finalize_tool_t,
        b"ompt_get_num_procs" => get_num_procs as ompt_get_num_procs_t,
        b"ompt_get_num_places" => get_num_places as ompt_get_num_places_t,
        b"ompt_get_place_proc_ids" => get_place_proc_ids as ompt_get_place_proc_ids_t,
        b"ompt_get_place_num" => get_place_num as ompt_get_place_num_t,
        b"ompt_get_partition_place_nums" => get_partition_place_nums as ompt_get_partition_place_nums_t,
        b"ompt_get_proc_id" => get_proc_id as ompt_get_proc_id_t,
        b"ompt_get_num_devices" => get_num_devices as ompt_get_num_devices_t,
        b"ompt_get_target_info" => get_target_info as ompt_get_target_info_t,
    }
}

unsafe extern "C" fn set_callback(
    event: ompt_callbacks_t,
    callback: Option<ompt_callback_t>,
) -> ompt_set_result_t {
    callbacks::set(event, callback)
}

unsafe extern "C" fn get_callback(event: ompt_callbacks_t, callback: *mut Option<ompt_callback_t>) -> c_int {
    if event.0 == 0 || event.0 > ompt_callback_error.0 {
        return 0;
    }
    let registered = callbacks::get(event);
    if registered.is_null() {
        return 0;
    }
    // SAFETY: the tool passes the address of a variable for the callback, which the tool registered itself.
    unsafe { callback.write(Some(core::mem::transmute::<*mut (), ompt_callback_t>(registered))) };
    1
}

unsafe extern "C" fn get_thread_data() -> *mut ompt_data_t {
    thread::of_tool().map_or(ptr::null_mut(), thread::Thread::data)
}

unsafe extern "C" fn get_parallel_info(
    ancestor_level: c_int,
    parallel_data: *mut *mut ompt_data_t,
    team_size: *mut c_int,
) -> c_int {
    let mut team = thread::of_tool().and_then(thread::Thread::current).and_then(|task| task.team.get());
    for _ in 0..ancestor_level {
        team = team.and_then(|team| team.parent.get());
    }
    let Some(team) = team else { return 0 };
    // SAFETY: each pointer is NULL or points to a variable of the tool's (OpenMP 5.2, 19.6.1.13).
    unsafe {
        write(parallel_data, team.data());
        write(team_size, team.size.load(Ordering::Relaxed));
    }
    2
}

unsafe extern "C" fn get_task_info(
    ancestor_level: c_int,
    flags: *mut c_int,
    task_data: *mut *mut ompt_data_t,
    task_frame: *mut *mut ompt_frame_t,
    parallel_data: *mut *mut ompt_data_t,
    thread_num: *mut c_int,
) -> c_int {
    let mut task = thread::of_tool().and_then(thread::Thread::current);
    for _ in 0..ancestor_level {
        task = task.and_then(|task| task.parent.get());
    }
    let Some(task) = task else { return 0 };
    // SAFETY: each pointer is NULL or points to a variable of the tool's (OpenMP 5.2, 19.6.1.14).
    unsafe {
        write(flags, task.flags().0 as c_int);
        write(task_data, task.data());
        write(task_frame, task.frame());
        write(parallel_data, task.parallel_data());
        write(thread_num, task.thread_num.get());
    }
    2
}

/// Writes `value` unless `place` is NULL.
///
/// # Safety
/// `place` is NULL or valid for writing.
unsafe fn write<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: by the caller's promise.
        unsafe { place.write(value) };
    }
}

unsafe extern "C" fn get_task_memory(addr: *mut *mut c_void, size: *mut usize, _block: c_int) -> c_int {
    // SAFETY: each pointer is NULL or points to a variable of the tool's (OpenMP 5.2, 19.6.1.15).
    unsafe {
        write(addr, ptr::null_mut());
        write(size, 0);
    }
    0
}

unsafe extern "C" fn get_state(wait_id: *mut ompt_wait_id_t) -> c_int {
    let Some(thread) = thread::of_tool() else {
        return ompt_state_undefined.0 as c_int;
    };
    // SAFETY: the pointer is NULL or points to a variable of the tool's (OpenMP 5.2, 19.6.1.12).
    unsafe { write(wait_id, thread.wait_id.get()) };
    thread.state.get().0 as c_int
}

/// The states of a thread, in the order of their enumeration.
const STATES: &[(ompt_state_t, &CStr)] = &[
    (ompt_state_undefined, c"ompt_state_undefined"),
    (ompt_state_work_serial, c"ompt_state_work_serial"),
    (ompt_state_work_parallel, c"ompt_state_work_parallel"),
    (ompt_state_wait_barrier_implicit_parallel, c"ompt_state_wait_barrier_implicit_parallel"),
    (ompt_state_wait_barrier_implicit_workshare, c"ompt_state_wait_barrier_implicit_workshare"),
    (ompt_state_wait_barrier_explicit, c"ompt_state_wait_barrier_explicit"),
    (ompt_state_wait_barrier_implementation, c"ompt_state_wait_barrier_implementation"),
    (ompt_state_wait_taskwait, c"ompt_state_wait_taskwait"),
    (ompt_state_wait_taskgroup, c"ompt_state_wait_taskgroup"),
    (ompt_state_wait_lock, c"ompt_state_wait_lock"),
    (ompt_state_wait_critical, c"ompt_state_wait_critical"),
    (ompt_state_wait_atomic, c"ompt_state_wait_atomic"),
    (ompt_state_wait_ordered, c"ompt_state_wait_ordered"),
    (ompt_state_idle, c"ompt_state_idle"),
];

unsafe extern "C" fn enumerate_states(
    current_state: c_int,
    next_state: *mut c_int,
    next_state_name: *mut *const c_char,
) -> c_int {
    let current = STATES.iter().position(|(state, _)| state.0 as c_int == current_state);
    let Some((state, name)) = current.and_then(|current| STATES.get(current + 1)) else {
        return 0;
    };
    // SAFETY: the pointers point to variables of the tool's (OpenMP 5.2, 19.6.1.1).
    unsafe {
        write(next_state, state.0 as c_int);
        write(next_state_name, name.as_ptr());
    }
    1
}

/// The only mutex implementation that is reported.
pub(crate) const MUTEX_IMPLEMENTATION: c_uint = 1;

unsafe extern "C" fn enumerate_mutex_impls(
    current_impl: c_int,
    next_impl: *mut c_int,
    next_impl_name: *mut *const c_char,
) -> c_int {
    if current_impl != ompt_mutex_impl_none {
        return 0;
    }
    // SAFETY: the pointers point to variables of the tool's (OpenMP 5.2, 19.6.1.2).
    unsafe {
        write(next_impl, MUTEX_IMPLEMENTATION as c_int);
        write(next_impl_name, c"libgomp".as_ptr());
    }
    1
}

unsafe extern "C" fn get_unique_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The libgomp that answers the tool's queries.
fn gomp() -> Option<&'static Libgomp> {
    let of_thread = thread::of_tool().map(|thread| thread.gomp.get());
    // The program may have unloaded the libgomp that the thread last called.
    of_thread.filter(|gomp| gomp.is_there()).or_else(serving::any)
}

unsafe extern "C" fn get_num_procs() -> c_int {
    // SAFETY: libgomp's function, without arguments; likewise below.
    gomp().map_or(0, |gomp| unsafe { real!(gomp, omp_get_num_procs)() })
}

unsafe extern "C" fn get_num_places() -> c_int {
    gomp()
        .and_then(|gomp| gomp.omp_get_num_places)
        // SAFETY: as above.
        .map_or(0, |function| unsafe { function() })
}

unsafe extern "C" fn get_place_num() -> c_int {
    gomp()
        .and_then(|gomp| gomp.omp_get_place_num)
        // SAFETY: as above.
        .map_or(-1, |function| unsafe { function() })
}

unsafe extern "C" fn get_place_proc_ids(place: c_int, size: c_int, ids: *mut c_int) -> c_int {
    let Some(gomp) = gomp() else { return 0 };
    let (Some(count), Some(list)) = (gomp.omp_get_place_num_procs, gomp.omp_get_place_proc_ids) else {
        return 0;
    };
    // SAFETY: libgomp writes the number of entries that it returned before, for which the tool has room.
    unsafe {
        let count = count(place);
        if count <= size {
            list(place, ids);
        }
        count
    }
}

unsafe extern "C" fn get_partition_place_nums(size: c_int, places: *mut c_int) -> c_int {
    let Some(gomp) = gomp() else { return 0 };
    let (Some(count), Some(list)) = (gomp.omp_get_partition_num_places, gomp.omp_get_partition_place_nums)
    else {
        return 0;
    };
    // SAFETY: as in `get_place_proc_ids`.
    unsafe {
        let count = count();
        if count <= size {
            list(places);
        }
        count
    }
}

unsafe extern "C" fn get_proc_id() -> c_int {
    // SAFETY: no arguments.
    unsafe { libc::sched_getcpu() }
}

unsafe extern "C" fn get_num_devices() -> c_int {
    devices::known()
}

unsafe extern "C" fn get_target_info(
    _device_num: *mut u64,
    _target_id: *mut ompt_id_t,
    _host_op_id: *mut ompt_id_t,
) -> c_int {
    0
}
