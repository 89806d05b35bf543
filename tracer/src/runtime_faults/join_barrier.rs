//! The one place per thread in which LLVM's runtime, and Intel's, keep the tool's data of two things.
//!
//! One is the task of a `taskwait` with dependences, and of an undeferred task that waits for its own. The other is a copy
//! of the data of a worker's implicit task. The runtime makes it at the begin of the barrier that ends a region, and never
//! empties it. Where the first begins, the runtime aborts unless the place is empty
//! (`taskwait_task_data->ptr == NULL`). The place is not empty in any task that a worker runs in that barrier, and anywhere
//! on a thread that has been a worker. A tool that gives tasks no data is the only one that never meets this. So what is
//! copied is empty, and the copy has the task's id only while the runtime reports ends:
//!
//! ```text
//! sync_region_wait begin   the id is taken out of the task, and kept      the runtime copies
//! task_schedule            the task gets its id back                      where the thread runs tasks while it waits
//! sync_region_wait end     the copy gets the id
//! sync_region end
//! implicit_task end        the copy is emptied
//! ```

use ompt_sys::{
    ompt_data_t, ompt_scope_begin, ompt_scope_endpoint_t, ompt_sync_region_barrier_implicit,
    ompt_sync_region_barrier_implicit_parallel, ompt_sync_region_t,
};

use crate::recorder::initial_task::InitialTask;
use crate::recorder::this_thread;

/// Records an end of a wait, with the id where it belongs before and after it. Only a worker's barrier at the end of a region
/// has no code address at its begin.
///
/// # Safety
/// `task_data` is null, or valid during the callback.
#[inline(never)]
pub(crate) unsafe fn around_copy(
    kind: ompt_sync_region_t,
    endpoint: ompt_scope_endpoint_t,
    task_data: *mut ompt_data_t,
    record: impl FnOnce(),
) {
    let may_copy =
        kind == ompt_sync_region_barrier_implicit_parallel || kind == ompt_sync_region_barrier_implicit;
    // SAFETY: by this function's contract.
    let data = unsafe { task_data.as_mut() }.filter(|_| may_copy);
    let Some(data) = data else {
        return record();
    };
    // SAFETY: every bit pattern is a number.
    let id = unsafe { data.value };
    if endpoint == ompt_scope_begin {
        record();
        let recorder = this_thread::recorder();
        // A thread that records nothing has given no ids.
        if !recorder.is_idle() {
            recorder.stream.joining.begin(data);
        }
    } else {
        if id == 0 {
            data.value = this_thread::recorder().stream.joining.id.get();
        }
        record();
    }
}

/// A task is suspended, and the event is no usual one. In the barrier the first is the implicit task.
///
/// # Safety
/// `prior_task_data` is null, or valid during the callback.
pub(crate) unsafe fn task_is_suspended(prior_task_data: *mut ompt_data_t) {
    let joining = &this_thread::recorder().stream.joining;
    if !prior_task_data.is_null() && joining.task.get() == prior_task_data {
        // SAFETY: by this function's contract.
        unsafe { (*prior_task_data).value = joining.id.get() };
    }
}

/// What `f` makes of the thread's initial task where there is a second tool. A thread that records nothing has none.
pub(crate) fn of_both<T>(f: impl FnOnce(&InitialTask) -> T) -> T {
    match this_thread::recorder() {
        recorder if recorder.is_idle() => f(&InitialTask::new()),
        recorder => f(&recorder.stream.initial_of_both),
    }
}

/// The end of an implicit task is recorded.
///
/// # Safety
/// `task_data` is null, or valid during the callback.
pub(crate) unsafe fn implicit_task_ends(task_data: *mut ompt_data_t) {
    // SAFETY: by this function's contract.
    if let Some(data) = unsafe { task_data.as_mut() } {
        this_thread::recorder().stream.joining.end(data);
    }
}
