//! The states of threads, requested by `OMPTRACE_EVENTS=state`. They are read when implicit tasks and waits for mutexes
//! begin and end. Each state is a separate event, right after the event at which it was read.
//!
//! This needs other callbacks than usual, because the hot path of the usual ones reads no state.

use std::ffi::{c_int, c_uint, c_void};

use ompt_sys::{
    ompt_data_t, ompt_get_state_t, ompt_mutex_t, ompt_scope_endpoint_t, ompt_state_t, ompt_wait_id_t,
};
use omptrace_trace_format::event::ThreadState;
use omptrace_trace_format::field::Address;

use crate::callbacks;
use crate::recorder::callback::Function;
use crate::recorder::guarded::guarded;
use crate::runtime::entry_point::EntryPoint;
use crate::session::cold_path;

/// The runtime's `ompt_get_state`; unset if states are not requested, or the runtime does not have it.
static GET_STATE: EntryPoint<ompt_get_state_t> = EntryPoint::new();

/// Sets the function for reading states; `None` to record no states.
pub(crate) fn read_by(get_state: Option<ompt_get_state_t>) {
    GET_STATE.set(get_state);
}

/// Records the calling thread's state, if states are recorded.
pub(crate) fn note() {
    if let Some(get_state) = GET_STATE.get() {
        guarded(|| {
            cold_path::beside(|| {
                let mut wait_id: ompt_wait_id_t = 0;
                // SAFETY: an entry point that may be called at any time (OpenMP 5.2, 19.6.1.12), with a place to write to.
                let state = unsafe { get_state(&raw mut wait_id) };
                ThreadState { state: ompt_state_t(state as u32), wait_id: Address(wait_id) }
            });
        });
    }
}

/// The callbacks that also record states, with the names of the callbacks that they call.
pub(crate) static CALLBACKS: &[(&str, Function)] = {
    // SAFETY: the functions below have the signatures of the callbacks of these names.
    unsafe {
        &[
            ("implicit_task", Function::new(implicit_task as *const c_void)),
            ("mutex_acquire", Function::new(mutex_acquire as *const c_void)),
            ("mutex_acquired", Function::new(mutex_acquired as *const c_void)),
        ]
    }
};

unsafe extern "C" fn implicit_task(
    endpoint: ompt_scope_endpoint_t,
    parallel_data: *mut ompt_data_t,
    task_data: *mut ompt_data_t,
    actual_parallelism: c_uint,
    index: c_uint,
    flags: c_int,
) {
    // SAFETY: the arguments of this call.
    unsafe {
        callbacks::implicit_task(endpoint, parallel_data, task_data, actual_parallelism, index, flags);
    }
    note();
}

unsafe extern "C" fn mutex_acquire(
    kind: ompt_mutex_t,
    hint: c_uint,
    r#impl: c_uint,
    wait_id: ompt_wait_id_t,
    codeptr_ra: *const c_void,
) {
    // SAFETY: the arguments of this call.
    unsafe { callbacks::mutex_acquire(kind, hint, r#impl, wait_id, codeptr_ra) };
    note();
}

unsafe extern "C" fn mutex_acquired(kind: ompt_mutex_t, wait_id: ompt_wait_id_t, codeptr_ra: *const c_void) {
    // SAFETY: the arguments of this call.
    unsafe { callbacks::mutex_acquired(kind, wait_id, codeptr_ra) };
    note();
}
