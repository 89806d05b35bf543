//! How a session ends while threads record: the mode, each thread's limit, and who is still at work.
//!
//! ```text
//! a thread: busy; mode?; ...; open the limit; mode?; not busy     the end: mode; close all limits; wait for the busy
//! ```

use crate::sync::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};

/// The state of recording, as a number: [`crate::recorder::recorder::Mode`].
#[derive(Debug)]
pub(crate) struct ModeCell(pub(crate) AtomicU8);

impl ModeCell {
    /// The mode.
    pub(crate) fn load(&self) -> u8 {
        // Acquire; pairs with Release in `switch`: who sees a session's mode sees the session.
        self.0.load(Ordering::Acquire)
    }

    /// Switches. What the caller does next to each thread's [`Limit`] and [`Busy`] holds for threads that come later.
    pub(crate) fn switch(&self, mode: u8) {
        // Release; pairs with Acquire in `load`.
        self.0.store(mode, Ordering::Release);
        // SeqCst; pairs with the fences in `Limit::open` and `Busy::enter`: either they see the mode, or the caller
        // sees what was stored before them.
        fence(Ordering::SeqCst);
    }
}

/// How far a thread's hot path may write; 0: not at all. Only the thread itself opens it, any thread may close it.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Limit(pub(crate) AtomicUsize);

impl Limit {
    /// The word before which an event may begin.
    #[inline(always)]
    pub(crate) fn get(&self) -> usize {
        // Relaxed: when it is closed, an event more or less is recorded; the end reads published lengths only.
        self.0.load(Ordering::Relaxed)
    }

    /// Lets the hot path write `words` words, if the mode is still `wanted`.
    pub(crate) fn open(&self, words: usize, mode: &ModeCell, wanted: u8) {
        // Relaxed: ordered by the fence.
        self.0.store(words, Ordering::Relaxed);
        // SeqCst; pairs with the fence in `switch`: either this sees the new mode, or the limit is closed afterwards.
        fence(Ordering::SeqCst);
        if mode.load() != wanted {
            self.close();
        }
    }

    /// Keeps the hot path out.
    pub(crate) fn close(&self) {
        // Relaxed: ordered by the fence in `switch` where another thread closes it.
        self.0.store(0, Ordering::Relaxed);
    }
}

/// True while a thread is on the cold path: the session does not end, and a signal handler's callbacks keep out.
#[derive(Debug)]
pub(crate) struct Busy(pub(crate) AtomicBool);

impl Busy {
    /// The thread enters the cold path; true where it is there already, interrupted by a signal handler.
    pub(crate) fn enter(&self) -> bool {
        // Relaxed: ordered by the fence.
        let nested = self.0.swap(true, Ordering::Relaxed);
        // SeqCst; pairs with the fence in `ModeCell::switch`: either the end sees `busy`, or the thread the mode.
        fence(Ordering::SeqCst);
        nested
    }

    /// The thread leaves the cold path, unless `nested` says that it was there before.
    pub(crate) fn leave(&self, nested: bool) {
        // Release; pairs with Acquire in `is_busy`: the end sees all that the thread did.
        self.0.store(nested, Ordering::Release);
    }

    /// Whether the thread is on the cold path.
    pub(crate) fn is_busy(&self) -> bool {
        // Acquire; pairs with Release in `leave`.
        self.0.load(Ordering::Acquire)
    }
}
