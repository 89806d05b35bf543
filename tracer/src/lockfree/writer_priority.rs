//! The writer's scheduling: while threads wait for it, it gets CPU time like any other thread.

use crate::sync::{AtomicI32, AtomicUsize, Ordering, fence};

/// The writer runs only in idle time unless threads wait for it. All zeros is the state before the writer starts.
#[derive(Debug)]
pub(crate) struct WriterPriority {
    /// The writer's thread id; 0 before it starts.
    pub(crate) thread: AtomicI32,
    /// Number of threads that wait for the writer.
    pub(crate) waiting: AtomicUsize,
}

impl WriterPriority {
    /// Writer: starts with the calling thread's id, `thread`. `set` makes a thread an ordinary one (true), or one that
    /// runs only in idle time. It is a system call; the kernel orders all such calls for a thread.
    pub(crate) fn begin(&self, thread: i32, set: impl Fn(i32, bool)) {
        // Relaxed: the fence in `settle` orders it.
        self.thread.store(thread, Ordering::Relaxed);
        self.settle(set);
    }

    /// A thread starts to wait. `set` is as in [`WriterPriority::begin`].
    pub(crate) fn hurry(&self, set: impl Fn(i32, bool)) {
        // Relaxed: the fence in `settle` orders it.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.settle(set);
    }

    /// A thread stops waiting. `set` is as in [`WriterPriority::begin`].
    pub(crate) fn relax(&self, set: impl Fn(i32, bool)) {
        // Relaxed: as above.
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.settle(set);
    }

    /// Sets the scheduling policy until it is right. Several threads may do this at the same time. The thread that
    /// calls `set` last checks again afterwards; a change that it does not see was made by a thread that has yet to
    /// call `set`.
    fn settle(&self, set: impl Fn(i32, bool)) {
        // SeqCst; pairs with itself on another thread: either the waiting thread sees the writer's id, or the writer
        // sees that a thread waits.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence.
        let thread = self.thread.load(Ordering::Relaxed);
        if thread == 0 {
            return;
        }
        let mut hurried = self.is_waited_for();
        loop {
            set(thread, hurried);
            match self.is_waited_for() {
                now if now == hurried => return,
                now => hurried = now,
            }
        }
    }

    fn is_waited_for(&self) -> bool {
        // Relaxed: ordered by the fence in `settle`, then by the kernel's order of calls.
        self.waiting.load(Ordering::Relaxed) > 0
    }
}
