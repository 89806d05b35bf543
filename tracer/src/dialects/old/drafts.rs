//! The callbacks of the OpenMP 5.0 drafts that differ from today's: other names, other arguments, and one that was
//! removed.

use std::ffi::{c_int, c_uint, c_void};

use ompt_sys::tr6::{self, omp_frame_t};
use ompt_sys::{ompt_callbacks_t, ompt_data_t, ompt_frame_t, ompt_scope_endpoint_t};
use omptrace_trace_format::event::Idle;

use crate::callbacks;
use crate::dialects::thread_state;
use crate::recorder::callback::{Callback, Function};
use crate::recorder::guarded::guarded;
use crate::session::cold_path;

/// Today's name of a draft's callback.
pub(crate) fn name_of_today(name: &str) -> &str {
    match name {
        "task_dependences" => "dependences",
        "master" => "masked",
        other => other,
    }
}

/// The draft callbacks with other arguments than today's.
pub(crate) static WITH_OTHER_ARGUMENTS: &[(&str, Function)] = {
    // SAFETY: the functions below have the signatures that TR4 and TR6 give to the callbacks of these names.
    unsafe {
        &[
            ("parallel_begin", Function::new(parallel_begin as *const c_void)),
            ("task_create", Function::new(task_create as *const c_void)),
            ("implicit_task", Function::new(implicit_task as *const c_void)),
        ]
    }
};

/// The callback that only the drafts have, with its number in TR6.
pub(crate) static IDLE: Callback = Callback {
    number: ompt_callbacks_t(tr6::ompt_callback_idle.0),
    name: "idle",
    group: "thread",
    // SAFETY: the function has the signature that TR4 and TR6 give to it.
    function: unsafe { Function::new(idle as *const c_void) }.0,
};

unsafe extern "C" fn parallel_begin(
    encountering_task_data: *mut ompt_data_t,
    encountering_task_frame: *const omp_frame_t,
    parallel_data: *mut ompt_data_t,
    requested_team_size: c_uint,
    invoker: c_int,
    codeptr_ra: *const c_void,
) {
    // SAFETY: the arguments of this call.
    unsafe {
        let frame = with_flags(encountering_task_frame);
        callbacks::parallel_begin(
            encountering_task_data,
            &raw const frame,
            parallel_data,
            requested_team_size,
            invoker,
            codeptr_ra,
        );
    }
}

unsafe extern "C" fn task_create(
    encountering_task_data: *mut ompt_data_t,
    encountering_task_frame: *const omp_frame_t,
    new_task_data: *mut ompt_data_t,
    task_type: c_int,
    has_dependences: c_int,
    codeptr_ra: *const c_void,
) {
    // SAFETY: the arguments of this call.
    unsafe {
        let frame = with_flags(encountering_task_frame);
        callbacks::task_create(
            encountering_task_data,
            &raw const frame,
            new_task_data,
            task_type,
            has_dependences,
            codeptr_ra,
        );
    }
}

unsafe extern "C" fn implicit_task(
    endpoint: ompt_scope_endpoint_t,
    parallel_data: *mut ompt_data_t,
    task_data: *mut ompt_data_t,
    team_size: c_uint,
    thread_num: c_uint,
) {
    const NO_FLAGS: c_int = 0;
    // SAFETY: the arguments of this call.
    unsafe {
        callbacks::implicit_task(endpoint, parallel_data, task_data, team_size, thread_num, NO_FLAGS);
    }
    thread_state::note();
}

unsafe extern "C" fn idle(endpoint: ompt_scope_endpoint_t) {
    guarded(|| cold_path::wide(|_| Idle { endpoint }));
}

/// The frame in today's layout; its flags are 0, as for a null pointer, because the drafts do not define them.
///
/// # Safety
/// `frame` is null, or valid for reading.
unsafe fn with_flags(frame: *const omp_frame_t) -> ompt_frame_t {
    let data = |ptr| ompt_data_t { ptr };
    // SAFETY: by this function's contract.
    let (exit, enter) = unsafe { frame.as_ref() }
        .map_or((std::ptr::null_mut(), std::ptr::null_mut()), |frame| (frame.exit_frame, frame.enter_frame));
    ompt_frame_t {
        exit_frame: data(exit),
        enter_frame: data(enter),
        exit_frame_flags: 0,
        enter_frame_flags: 0,
    }
}
