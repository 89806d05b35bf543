//! The implicit task that waits in the barrier at the end of its parallel region, for runtimes that copy its data
//! there.

use std::cell::Cell;
use std::ptr::null_mut;

use ompt_sys::ompt_data_t;

/// The thread's implicit task, from the start of the barrier at the end of its region to the task's end. All zeros
/// means none.
#[derive(Debug)]
pub(crate) struct WaitingTask {
    pub(crate) id: Cell<u64>,
    /// The runtime's storage for the tool's data of the task, not a copy of it.
    pub(crate) task: Cell<*mut ompt_data_t>,
}

impl WaitingTask {
    pub(crate) const fn new() -> WaitingTask {
        WaitingTask { id: Cell::new(0), task: Cell::new(null_mut()) }
    }

    /// Removes the id from the task's data. Does nothing for a task executed within the barrier that reaches another
    /// barrier.
    pub(crate) fn begin(&self, data: &mut ompt_data_t) {
        if self.id.get() == 0 {
            // SAFETY: every bit pattern is a number.
            self.id.set(unsafe { data.value });
            self.task.set(data);
            data.value = 0;
        }
    }

    /// The implicit task with this data, or this copy of its data, has ended.
    pub(crate) fn end(&self, data: &mut ompt_data_t) {
        // SAFETY: every bit pattern is a number.
        if self.id.get() == unsafe { data.value } {
            self.forget();
        }
        data.value = 0;
    }

    pub(crate) fn forget(&self) {
        self.id.set(0);
        self.task.set(null_mut());
    }
}
