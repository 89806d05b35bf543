//! The two positions of a ring of words: a thread's signal handler writes records, another thread reads them.
//!
//! The words themselves are elsewhere. The writer stores them before [`Ring::publish`], the reader loads them before
//! [`Ring::consume`].

use std::ops::Range;

use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// Both positions, in words since the ring's start; they never decrease. All zeros is an empty ring.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) written: AtomicUsize,
    pub(crate) read: AtomicUsize,
    pub(crate) ended: AtomicBool,
}

impl Ring {
    /// Writer: the position of the next word, if the ring of `capacity` words has room for `words` more.
    pub(crate) fn room(&self, words: usize, capacity: usize) -> Option<usize> {
        // Relaxed: stored only by the writer.
        let written = self.written.load(Ordering::Relaxed);
        // Acquire; pairs with Release in `consume`: words that will be overwritten have been read.
        let read = self.read.load(Ordering::Acquire);
        (written.wrapping_sub(read) + words <= capacity).then_some(written)
    }

    /// Writer: publishes the words before `end`.
    pub(crate) fn publish(&self, end: usize) {
        // Release; pairs with Acquire in `filled`.
        self.written.store(end, Ordering::Release);
    }

    /// Reader: the range of words that are published and not consumed.
    pub(crate) fn filled(&self) -> Range<usize> {
        // Relaxed: stored only by the reader.
        let read = self.read.load(Ordering::Relaxed);
        // Acquire; pairs with Release in `publish`.
        read..self.written.load(Ordering::Acquire)
    }

    /// Reader: allows overwriting the words before `end`.
    pub(crate) fn consume(&self, end: usize) {
        // Release; pairs with Acquire in `room`.
        self.read.store(end, Ordering::Release);
    }

    /// Writer: marks the end of the data.
    pub(crate) fn end(&self) {
        // Release; pairs with Acquire in `has_ended`.
        self.ended.store(true, Ordering::Release);
    }

    /// Reader: whether the writer has published its last words.
    pub(crate) fn has_ended(&self) -> bool {
        // Acquire; pairs with Release in `end`: everything published is visible.
        self.ended.load(Ordering::Acquire)
    }

    /// Empties the ring for another writer, while no thread uses it.
    pub(crate) fn reset(&self) {
        // Relaxed: the next writer takes the ring with an exchange.
        self.written.store(0, Ordering::Relaxed);
        self.read.store(0, Ordering::Relaxed);
        self.ended.store(false, Ordering::Relaxed);
    }
}
