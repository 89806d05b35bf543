//! The state of a thread according to its calls, for the entry points that query it.

use std::cell::RefCell;
use std::ffi::c_int;
use std::ptr;

use ompt_sys::*;

use super::argument::Slots;
use super::call::Call;

thread_local! {
    static THREAD: RefCell<Thread> = RefCell::new(Thread::default());
}

/// The calling thread.
#[derive(Debug)]
pub(super) struct Thread {
    /// Set by `thread_begin`; NULL before it and after `thread_end`.
    pub(super) data: *mut ompt_data_t,
    /// The implicit tasks that the thread is in, the innermost last.
    tasks: Vec<Task>,
    waits_for: Option<ompt_wait_id_t>,
}

impl Default for Thread {
    fn default() -> Self {
        Thread { data: ptr::null_mut(), tasks: Vec::new(), waits_for: None }
    }
}

/// A task that a thread is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) task_data: *mut ompt_data_t,
    pub(super) parallel_data: *mut ompt_data_t,
    pub(super) team_size: c_int,
    pub(super) thread_num: c_int,
    pub(super) flags: c_int,
}

/// Queries the calling thread's state.
pub(super) fn with<T>(question: impl FnOnce(&Thread) -> T) -> T {
    THREAD.with_borrow(question)
}

/// Updates the state for what a call begins, before it is made.
pub(super) fn enter(call: &Call, slots: &Slots) {
    THREAD.with_borrow_mut(|thread| match *call {
        Call::ThreadBegin { thread_data, .. } => thread.data = slots.pointer(thread_data.0),
        Call::ImplicitTask { endpoint, parallel_data, task_data, actual_parallelism, index, flags }
            if endpoint.0 == ompt_scope_begin.0 =>
        {
            thread.tasks.push(Task {
                task_data: slots.pointer(task_data.0),
                parallel_data: slots.pointer(parallel_data),
                team_size: actual_parallelism as c_int,
                thread_num: index as c_int,
                flags: flags.0 as c_int,
            })
        }
        Call::MutexAcquire { wait_id, .. } => thread.waits_for = Some(wait_id.0),
        _ => {}
    });
}

/// Updates the state for what a call ended, after it was made.
pub(super) fn leave(call: &Call, slots: &Slots) {
    THREAD.with_borrow_mut(|thread| match *call {
        Call::ThreadEnd { .. } => thread.data = ptr::null_mut(),
        Call::ImplicitTask { endpoint, .. } if endpoint.0 == ompt_scope_end.0 => {
            thread.tasks.pop();
        }
        Call::TaskSchedule { next_task_data, .. } => {
            if let Some(task) = thread.tasks.last_mut() {
                task.task_data = slots.pointer(next_task_data);
            }
        }
        Call::MutexAcquired { .. } => thread.waits_for = None,
        _ => {}
    });
}

impl Thread {
    /// The state and the wait id.
    pub(super) fn state(&self) -> (ompt_state_t, ompt_wait_id_t) {
        match self.waits_for {
            Some(wait_id) => (ompt_state_wait_mutex, wait_id),
            None if self.data.is_null() => (ompt_state_undefined, ompt_wait_id_none),
            None if self.tasks.is_empty() => (ompt_state_work_serial, ompt_wait_id_none),
            None => (ompt_state_work_parallel, ompt_wait_id_none),
        }
    }

    /// The implicit task at this ancestor level; each is in its own parallel region.
    pub(super) fn task(&self, level: c_int) -> Option<Task> {
        let level = usize::try_from(level).ok()?;
        self.tasks.iter().rev().nth(level).copied()
    }
}
