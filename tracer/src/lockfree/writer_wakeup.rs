//! Lets the writer sleep without missing work.

use crate::sync::{AtomicBool, Ordering, fence};

/// The writer's wake-up state. All zeros means that the writer is awake.
#[derive(Debug)]
pub(crate) struct WriterWakeup {
    pub(crate) sleeping: AtomicBool,
    pub(crate) stop: AtomicBool,
}

impl WriterWakeup {
    /// Announces work that the writer can already find. Returns true if the writer sleeps and this caller, one of
    /// possibly several, must wake it.
    pub(crate) fn ring(&self) -> bool {
        // SeqCst; pairs with the fence in `sleep`: either this sees that the writer sleeps, or the writer sees the
        // work.
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders the load; the swap only selects one of several callers.
        self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::Relaxed)
    }

    /// Requests the writer to end. The caller must wake it in any case.
    pub(crate) fn stop(&self) {
        // Relaxed: work that the writer no longer finds is left to the thread that stops it.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the writer should end.
    pub(crate) fn is_stopped(&self) -> bool {
        // Relaxed: as in `stop`; waking the writer orders enough for it to see this.
        self.stop.load(Ordering::Relaxed)
    }

    /// Writer: unless there `is_work`, runs `park`, which sleeps until the thread is woken.
    pub(crate) fn sleep(&self, is_work: impl FnOnce() -> bool, park: impl FnOnce()) {
        // Relaxed: ordered by the fence.
        self.sleeping.store(true, Ordering::Relaxed);
        // SeqCst; pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        if !is_work() && !self.is_stopped() {
            park();
        }
        // Relaxed: a thread that still sees true wakes a thread that is awake.
        self.sleeping.store(false, Ordering::Relaxed);
    }
}
