//! The tasks of a team that a cancellation may discard: those that were created and have not run.

use core::ptr;
use std::sync::atomic::Ordering;

use super::{Created, MIN_TASKS, Task};
use crate::model::thread::Thread;

impl Created {
    /// Adds a task and a reference to it.
    pub(crate) fn add(&self, thread: &Thread, task: &'static Task) {
        task.hold();
        self.push(task);
        // Relaxed: the count limits the memory use and guards no data.
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if count >= self.limit.load(Ordering::Relaxed) {
            self.leave_out_those_that_ran(thread);
        }
    }

    fn push(&self, task: &'static Task) {
        let mut last = self.list.load(Ordering::Relaxed);
        loop {
            task.sibling.set(last);
            // Release: pairs with the acquire in `take`.
            match self.list.compare_exchange_weak(
                last,
                ptr::from_ref(task).cast_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(other) => last = other,
            }
        }
    }

    /// Removes all tasks and passes each to `with`, which takes over the list's reference.
    pub(crate) fn take(&self, mut with: impl FnMut(&'static Task)) {
        // Acquire: pairs with the release in `push`.
        let mut list = self.list.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: NULL, or a task that `push` put into the list and to which `add` holds a reference.
        while let Some(task) = unsafe { list.as_ref() } {
            list = task.sibling.get();
            with(task);
        }
    }

    #[cold]
    fn leave_out_those_that_ran(&self, thread: &Thread) {
        self.count.store(0, Ordering::Relaxed);
        let mut kept = 0;
        self.take(|task| {
            if task.ran.load(Ordering::Relaxed) {
                thread.release(task);
            } else {
                self.push(task);
                kept += 1;
            }
        });
        self.count.fetch_add(kept, Ordering::Relaxed);
        // Twice as many, so that each task is visited twice on average, whatever the number of waiting tasks.
        self.limit.store(MIN_TASKS.max(2 * kept), Ordering::Relaxed);
    }
}
