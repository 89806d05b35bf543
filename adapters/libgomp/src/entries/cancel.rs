//! Cancellation (OpenMP 5.2, 16; 19.5.2.18).

use core::ffi::{c_int, c_void};

use ompt_sys::*;

use crate::entries::call::Call;

/// The construct that is cancelled, by GCC's number.
fn construct(which: c_int) -> ompt_cancel_flag_t {
    match which {
        which if which & 1 != 0 => ompt_cancel_parallel,
        which if which & 2 != 0 => ompt_cancel_loop,
        which if which & 4 != 0 => ompt_cancel_sections,
        _ => ompt_cancel_taskgroup,
    }
}

fn report(call: &Call, which: c_int, how: ompt_cancel_flag_t) {
    let Some(thread) = call.observed() else {
        return;
    };
    let code: *const c_void = call.code;
    report!(
        ompt_callback_cancel as ompt_callback_cancel_t,
        thread.task().data(),
        (construct(which) | how).0 as c_int,
        code
    );
}

entry! {
    fn GOMP_cancel(which: c_int, activates: bool) -> bool, call => {
        // SAFETY: the program's own call.
        let is_cancelled = unsafe { real!(call.gomp, GOMP_cancel)(which, activates) };
        if is_cancelled {
            report(&call, which, if activates { ompt_cancel_activated } else { ompt_cancel_detected });
        }
        is_cancelled
    }
}

entry! {
    fn GOMP_cancellation_point(which: c_int) -> bool, call => {
        // SAFETY: the program's own call.
        let is_cancelled = unsafe { real!(call.gomp, GOMP_cancellation_point)(which) };
        if is_cancelled {
            report(&call, which, ompt_cancel_detected);
        }
        is_cancelled
    }
}
