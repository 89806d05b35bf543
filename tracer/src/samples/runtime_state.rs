//! The runtime's state of the calling thread, also read in signal handlers (OpenMP 5.2, 19.6.1.12 to 19.6.1.14 permit
//! that for these entry points).

use std::ffi::c_int;
use std::ptr::null_mut;

use ompt_sys::{
    ompt_data_t, ompt_frame_t, ompt_get_parallel_info_t, ompt_get_state_t, ompt_get_task_info_t,
    ompt_state_undefined, ompt_wait_id_t,
};

use crate::runtime::entry_point::EntryPoint;
use crate::runtime::lookup::{INFO_IS_THERE, Lookup};

static STATE: EntryPoint<ompt_get_state_t> = EntryPoint::new();
static TASK_INFO: EntryPoint<ompt_get_task_info_t> = EntryPoint::new();
static PARALLEL_INFO: EntryPoint<ompt_get_parallel_info_t> = EntryPoint::new();

/// Maximum number of nested regions to look at.
const MAX_LEVELS: c_int = 8;

/// The runtime's answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) state: u32,
    pub(super) wait_id: u64,
    /// Flags of the innermost task; 0 if there is none.
    pub(super) task_flags: u32,
    /// The innermost task's `exit_frame` and `enter_frame`; 0 for none.
    pub(super) frames: [u64; 2],
}

/// Sets the runtime to query, or none. Only runtimes of OpenMP 5.0 or later have these entry points with these
/// signatures.
pub(super) fn ask_by(lookup: Option<Lookup>) {
    STATE.set(lookup.and_then(Lookup::get_state));
    TASK_INFO.set(lookup.and_then(Lookup::get_task_info));
    PARALLEL_INFO.set(lookup.and_then(Lookup::get_parallel_info));
}

/// Queries the runtime on the calling thread.
pub(super) fn ask() -> Answer {
    let mut answer = Answer { state: ompt_state_undefined.0, wait_id: 0, task_flags: 0, frames: [0; 2] };
    if let Some(state) = STATE.get() {
        let mut wait_id: ompt_wait_id_t = 0;
        // SAFETY: an entry point that may be called at any time, with a place to write to.
        answer.state = unsafe { state(&raw mut wait_id) } as u32;
        answer.wait_id = wait_id;
    }
    if let Some(task_info) = TASK_INFO.get() {
        let mut flags = 0;
        let mut frame: *mut ompt_frame_t = null_mut();
        let (task_data, parallel_data, thread_num) = (null_mut(), null_mut(), null_mut());
        // SAFETY: as above; the other places may be null.
        let result =
            unsafe { task_info(0, &raw mut flags, task_data, &raw mut frame, parallel_data, thread_num) };
        if result == INFO_IS_THERE {
            answer.task_flags = flags as u32;
            // SAFETY: the runtime's own frame of a task that this thread executes.
            if let Some(frame) = unsafe { frame.as_ref() } {
                // SAFETY: every bit pattern of the union is a number.
                answer.frames = unsafe { [frame.exit_frame.value, frame.enter_frame.value] };
            }
        }
    }
    answer
}

/// Calls `f` with the ids of the regions that the calling thread is in, innermost first.
pub(super) fn each_region(f: impl Fn(u64)) {
    let Some(parallel_info) = PARALLEL_INFO.get() else {
        return;
    };
    for level in 0..MAX_LEVELS {
        let mut data: *mut ompt_data_t = null_mut();
        // SAFETY: an entry point that may be called at any time, with a place to write to.
        let result = unsafe { parallel_info(level, &raw mut data, null_mut()) };
        // SAFETY: the runtime's own data of a region that this thread is in; every bit pattern of the union is a
        // number.
        match unsafe { data.as_ref().map(|data| data.value) } {
            Some(region) if result == INFO_IS_THERE => f(region),
            _ => return,
        }
    }
}
