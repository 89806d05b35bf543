//! `omp_control_tool`, which libgomp does not define before GCC 17, and the `error` directive (OpenMP 5.2, 19.5.2.29 and
//! 19.5.2.30).

use core::ffi::{c_char, c_int, c_void};

use ompt_sys::*;

use crate::entries::call::{Call, CallSite};
use crate::model::thread;
use crate::tool::callbacks;
use crate::tool::lifecycle;
use crate::which_libgomp::serving;

const _: () = {
    // SAFETY: OpenMP defines a function of this name and signature (OpenMP 5.2, 18.14).
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    unsafe extern "C-unwind" fn omp_control_tool(_: c_int, _: c_int, _: *mut c_void) -> c_int {
        core::arch::naked_asm!(
            concat!(pass_on!(), append_call_site!(a, b, c)),
            sym control,
            passed_on = sym omp_control_tool::PASSED_ON,
        )
    }
};

mod omp_control_tool {
    passed_on!(omp_control_tool);
}

unsafe extern "C-unwind" fn control(
    command: c_int,
    modifier: c_int,
    argument: *mut c_void,
    return_address: *const c_void,
    frame: *mut c_void,
) -> c_int {
    let site = CallSite { return_address, frame };
    if !lifecycle::is_active() {
        return omp_control_tool_notool;
    }
    let callback = callbacks::get(ompt_callback_control_tool);
    if callback.is_null() {
        return omp_control_tool_nocallback;
    }
    if thread::existing().is_none()
        && let Some(gomp) = serving::any()
    {
        thread::begin(ompt_thread_initial, gomp);
    }
    // SAFETY: the tool registered a function of this signature for this number.
    unsafe {
        let callback: ompt_callback_control_tool_t = core::mem::transmute(callback);
        callback(command as u64, modifier as u64, argument, site.return_address)
    }
}

/// GCC passes this length with a string that ends with NUL.
const UNKNOWN_LENGTH: usize = usize::MAX;

fn report_error(call: &Call, severity: ompt_severity_t, message: *const c_char, length: usize) {
    if call.observed().is_none() {
        return;
    }
    let length = match (message.is_null(), length) {
        (true, _) => 0,
        // SAFETY: the program's string ends with NUL.
        (false, UNKNOWN_LENGTH) => unsafe { libc::strlen(message) },
        (false, length) => length,
    };
    report!(ompt_callback_error as ompt_callback_error_t, severity, message, length, call.code);
}

entry! {
    fn GOMP_warning(message: *const c_char, length: usize), call => {
        report_error(&call, ompt_warning, message, length);
        // SAFETY: the program's own call.
        unsafe { real!(call.gomp, GOMP_warning)(message, length) }
    }
}

entry! {
    fn GOMP_error(message: *const c_char, length: usize), call => {
        report_error(&call, ompt_fatal, message, length);
        // SAFETY: the program's own call.
        unsafe { real!(call.gomp, GOMP_error)(message, length) }
    }
}
