//! The end of a session while threads record: the mode, each thread's limit, and whether threads are on the cold path.
//!
//! ```text
//! a thread: busy; mode?; ...; open the limit; mode?; not busy     the end: mode; close all limits; wait for the busy
//! ```

use crate::sync::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};

/// The recording mode as a number: [`crate::recorder::recorder::Mode`].
#[derive(Debug)]
pub(crate) struct ModeCell(pub(crate) AtomicU8);

impl ModeCell {
    /// Reads the mode.
    pub(crate) fn load(&self) -> u8 {
        // Acquire; pairs with Release in `switch`: a thread that sees a session's mode sees the session.
        self.0.load(Ordering::Acquire)
    }

    /// Sets the mode. The caller then handles the [`Limit`] and [`Busy`] of each thread; threads that start later see
    /// the new mode.
    pub(crate) fn switch(&self, mode: u8) {
        // Release; pairs with Acquire in `load`.
        self.0.store(mode, Ordering::Release);
        // SeqCst; pairs with the fences in `Limit::open` and `Busy::enter`: either they see the mode, or the caller
        // sees what was stored before them.
        fence(Ordering::SeqCst);
    }
}

/// How far a thread's hot path may write; 0 disables it. Only the thread itself opens it; any thread may close it.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Limit(pub(crate) AtomicUsize);

impl Limit {
    /// The word before which an event must start.
    #[inline(always)]
    pub(crate) fn get(&self) -> usize {
        // Relaxed: while the limit is being closed, one event more or less is recorded; the end reads only published
        // lengths.
        self.0.load(Ordering::Relaxed)
    }

    /// Lets the hot path write up to `words` words, if the mode is still `wanted`.
    pub(crate) fn open(&self, words: usize, mode: &ModeCell, wanted: u8) {
        // Relaxed: ordered by the fence.
        self.0.store(words, Ordering::Relaxed);
        // SeqCst; pairs with the fence in `switch`: either this sees the new mode, or the limit is closed afterwards.
        fence(Ordering::SeqCst);
        if mode.load() != wanted {
            self.close();
        }
    }

    /// Disables the hot path.
    pub(crate) fn close(&self) {
        // Relaxed: if another thread closes it, the fence in `switch` orders it.
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Set while a thread is on the cold path: the session does not end until then, and a signal handler's callbacks are
/// dropped.
#[derive(Debug)]
pub(crate) struct Busy(pub(crate) AtomicBool);

impl Busy {
    /// The thread enters the cold path; returns true if it is already there, interrupted by a signal handler.
    pub(crate) fn enter(&self) -> bool {
        // Relaxed: ordered by the fence.
        let nested = self.0.swap(true, Ordering::Relaxed);
        // SeqCst; pairs with the fence in `ModeCell::switch`: either the end sees `busy`, or this thread sees the mode.
        fence(Ordering::SeqCst);
        nested
    }

    /// The thread leaves the cold path, unless it was there before (`nested`).
    pub(crate) fn leave(&self, nested: bool) {
        // Release; pairs with Acquire in `is_busy`: the end sees everything that the thread did.
        self.0.store(nested, Ordering::Release);
    }

    /// Whether the thread is on the cold path.
    pub(crate) fn is_busy(&self) -> bool {
        // Acquire; pairs with Release in `leave`.
        self.0.load(Ordering::Acquire)
    }
}
