//! The pace of the writer: where threads wait for it, it gets processor time like any other thread.

use crate::sync::{AtomicI32, AtomicUsize, Ordering, fence};

/// The writer's pace: idle time only, while nobody waits for it. All zeros is that of a writer that has not begun.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The writer's thread, by its number in the system. 0 before it has begun.
    pub(crate) thread: AtomicI32,
    /// How many wait for what it does.
    pub(crate) waiting: AtomicUsize,
}

impl Pace {
    /// On the writer: `thread` is the calling one's number. `set` makes a thread an ordinary one (true), or one that takes
    /// idle time only. It is a system call; the kernel orders all such calls for a thread.
    pub(crate) fn begin(&self, thread: i32, set: impl Fn(i32, bool)) {
        // Relaxed: the fence in `settle` orders it.
        self.thread.store(thread, Ordering::Relaxed);
        self.settle(set);
    }

    /// Somebody waits from now on. `set` is that of [`Pace::begin`].
    pub(crate) fn hurry(&self, set: impl Fn(i32, bool)) {
        // Relaxed: the fence in `settle` orders it.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.settle(set);
    }

    /// One that waited does not any more. `set` is that of [`Pace::begin`].
    pub(crate) fn relax(&self, set: impl Fn(i32, bool)) {
        // Relaxed: as above.
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.settle(set);
    }

    /// Sets the pace until it is what it should be. Several threads may do this at once. The last one to call `set` looks
    /// once more afterwards. A change that it does not see then is by a thread that has yet to call `set`.
    fn settle(&self, set: impl Fn(i32, bool)) {
        // SeqCst; pairs with itself on another thread: who waits sees the writer's number, or the writer sees who waits.
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
