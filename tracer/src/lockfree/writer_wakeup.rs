//! How the writer sleeps without missing work.

use crate::sync::{AtomicBool, Ordering, fence};

/// The writer's bell. All zeros is that of a writer that is awake.
#[derive(Debug)]
pub(crate) struct Bell {
    pub(crate) sleeping: AtomicBool,
    pub(crate) stop: AtomicBool,
}

impl Bell {
    /// There is work, already where the writer looks for it. True where the writer sleeps and must be woken up: to one
    /// of several that ring.
    pub(crate) fn ring(&self) -> bool {
        // SeqCst; pairs with the fence in `sleep`: either this sees it asleep, or it sees the work.
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders the load; the swap only chooses one of several that ring.
        self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::Relaxed)
    }

    /// The writer shall end. It must be woken up in any case.
    pub(crate) fn stop(&self) {
        // Relaxed: what the writer does not find any more is left to whoever stops it.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the writer shall end.
    pub(crate) fn is_stopped(&self) -> bool {
        // Relaxed: as in `stop`; waking the writer up orders enough for it to see this.
        self.stop.load(Ordering::Relaxed)
    }

    /// On the writer: runs `park`, which sleeps until somebody wakes the thread up, unless there `is_work`.
    pub(crate) fn sleep(&self, is_work: impl FnOnce() -> bool, park: impl FnOnce()) {
        // Relaxed: ordered by the fence.
        self.sleeping.store(true, Ordering::Relaxed);
        // SeqCst; pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        if !is_work() && !self.is_stopped() {
            park();
        }
        // Relaxed: who still sees true wakes a thread that is awake.
        self.sleeping.store(false, Ordering::Relaxed);
    }
}
