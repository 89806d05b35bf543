//! The callbacks for runtimes that need an empty data word, which they copy at the end of a region
//! ([`crate::runtime_faults::join_barrier`]).

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};

use ompt_sys::{
    ompt_callback_t, ompt_data_t, ompt_scope_begin, ompt_scope_endpoint_t, ompt_sync_region_t,
    ompt_task_flag_t, ompt_task_initial,
};
use omptrace_runtimes::Fault;

use crate::callbacks;
use crate::dialects::thread_state;
use crate::recorder::callback::Function;
use crate::recorder::this_thread;
use crate::runtime_faults::join_barrier::{around_copy, implicit_task_ends};

/// The callbacks that are registered instead of those with the same names if a runtime has the fault.
pub(crate) static CALLBACKS: &[(&str, Function)] = {
    // SAFETY: the functions below have the signatures of the callbacks of these names.
    unsafe {
        &[
            ("sync_region_wait", Function::new(sync_region_wait as *const c_void)),
            ("implicit_task", Function::new(implicit_task as *const c_void)),
        ]
    }
};

/// The callback to register for `sync_region_wait` although the user does not want that event, for a runtime with this
/// `version` that registered the callbacks of `results`.
pub(crate) fn needs_wait<T>(version: &str, results: &BTreeMap<String, T>) -> Option<ompt_callback_t> {
    let gives_ids = results.contains_key("implicit_task");
    let is_needed = gives_ids && !results.contains_key("sync_region_wait");
    // SAFETY: it has the signature of `sync_region_wait`.
    let function = || unsafe { Function::new(unrecorded_sync_region_wait as *const c_void) }.0;
    (is_needed && Fault::WantsTaskwaitDataEmpty.is_of(version)).then(function)
}

/// Both calls are tail calls, so a usual event costs only one more test.
unsafe extern "C" fn sync_region_wait(
    kind: ompt_sync_region_t,
    endpoint: ompt_scope_endpoint_t,
    parallel_data: *mut ompt_data_t,
    task_data: *mut ompt_data_t,
    codeptr_ra: *const c_void,
) {
    let record = if codeptr_ra.is_null() { wait_without_code } else { callbacks::sync_region_wait };
    // SAFETY: the arguments of this call.
    unsafe { record(kind, endpoint, parallel_data, task_data, codeptr_ra) }
}

#[inline(never)]
unsafe extern "C" fn wait_without_code(
    kind: ompt_sync_region_t,
    endpoint: ompt_scope_endpoint_t,
    parallel_data: *mut ompt_data_t,
    task_data: *mut ompt_data_t,
    codeptr_ra: *const c_void,
) {
    // SAFETY: the arguments of this call.
    unsafe {
        around_copy(kind, endpoint, task_data, || {
            callbacks::sync_region_wait(kind, endpoint, parallel_data, task_data, codeptr_ra);
        });
    }
}

unsafe extern "C" fn unrecorded_sync_region_wait(
    kind: ompt_sync_region_t,
    endpoint: ompt_scope_endpoint_t,
    _: *mut ompt_data_t,
    task_data: *mut ompt_data_t,
    codeptr_ra: *const c_void,
) {
    if codeptr_ra.is_null() {
        // SAFETY: the arguments of this call.
        unsafe { around_copy(kind, endpoint, task_data, || ()) };
    }
}

unsafe extern "C" fn implicit_task(
    endpoint: ompt_scope_endpoint_t,
    parallel_data: *mut ompt_data_t,
    task_data: *mut ompt_data_t,
    actual_parallelism: c_uint,
    index: c_uint,
    flags: c_int,
) {
    let is_initial = ompt_task_flag_t(flags as u32).contains(ompt_task_initial);
    let ends = endpoint != ompt_scope_begin;
    // The runtime does not copy the data of a thread's own initial task, and its pointers may be invalid.
    let may_be_copied =
        ends && (!is_initial || this_thread::recorder().stream.initial.is_another(parallel_data, task_data));
    // SAFETY: the arguments of this call; the data is valid during the callback.
    unsafe {
        callbacks::implicit_task(endpoint, parallel_data, task_data, actual_parallelism, index, flags);
        if may_be_copied {
            implicit_task_ends(task_data);
        }
    }
    thread_state::note();
}
