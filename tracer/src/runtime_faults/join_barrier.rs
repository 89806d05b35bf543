//! Works around a data word that LLVM's runtime, and Intel's, use per thread for two purposes.
//!
//! One is the tool's data of the task of a `taskwait` with dependences, and of an undeferred task that waits for its
//! dependences. The other is a copy of the data of a worker's implicit task, which the runtime makes at the start of
//! the barrier that ends a parallel region, and never clears. When a task of the first kind begins, the runtime aborts
//! unless the word is zero (`taskwait_task_data->ptr == NULL`). The word is not zero in any task that a worker executes
//! in that barrier, and anywhere on a thread that has been a worker. Only a tool that assigns no data to tasks is never
//! affected. So the tracer makes the copied data zero, and puts the task's id into the copy only while the runtime
//! reports ends:
//!
//! ```text
//! sync_region_wait begin   the tracer removes the id from the task, and keeps it; the runtime copies
//! task_schedule            the task gets its id back, if the thread executes tasks while it waits
//! sync_region_wait end     the copy gets the id
//! sync_region end
//! implicit_task end        the copy is cleared
//! ```

use ompt_sys::{
    ompt_data_t, ompt_scope_begin, ompt_scope_endpoint_t, ompt_sync_region_barrier_implicit,
    ompt_sync_region_barrier_implicit_parallel, ompt_sync_region_t,
};

use crate::recorder::initial_task::InitialTask;
use crate::recorder::this_thread;

/// Records the begin or end of a wait with the right id in the data word before and after it. At the begin, only a
/// worker's barrier at the end of a region has no code address.
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
        // A thread that records nothing has assigned no ids.
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

/// A task is suspended in an unusual event. In the barrier, the first such task is the implicit one.
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

/// Calls `f` with the thread's initial task as seen by both tools. A thread that records nothing has none.
pub(crate) fn of_both<T>(f: impl FnOnce(&InitialTask) -> T) -> T {
    match this_thread::recorder() {
        recorder if recorder.is_idle() => f(&InitialTask::new()),
        recorder => f(&recorder.stream.initial_of_both),
    }
}

/// Called after the end of an implicit task was recorded.
///
/// # Safety
/// `task_data` is null, or valid during the callback.
pub(crate) unsafe fn implicit_task_ends(task_data: *mut ompt_data_t) {
    // SAFETY: by this function's contract.
    if let Some(data) = unsafe { task_data.as_mut() } {
        this_thread::recorder().stream.joining.end(data);
    }
}
