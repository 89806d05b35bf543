//! How far a ring of words is filled: a thread's signal handler writes records of words, another thread reads them.
//!
//! The words lie elsewhere. The writer stores them before [`Ring::publish`], the reader loads them before [`Ring::consume`].

use std::ops::Range;

use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// Both ends of the ring: words since it began, which never go back. All zeros is an empty ring.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) written: AtomicUsize,
    pub(crate) read: AtomicUsize,
    pub(crate) ended: AtomicBool,
}

impl Ring {
    /// On the writer: where the next word goes, if the ring of `capacity` words has room for `words`.
    pub(crate) fn room(&self, words: usize, capacity: usize) -> Option<usize> {
        // Relaxed: only the writer stores it.
        let written = self.written.load(Ordering::Relaxed);
        // Acquire; pairs with Release in `consume`: what is overwritten has been read.
        let read = self.read.load(Ordering::Acquire);
        (written.wrapping_sub(read) + words <= capacity).then_some(written)
    }

    /// On the writer: the words before `end` are there.
    pub(crate) fn publish(&self, end: usize) {
        // Release; pairs with Acquire in `filled`.
        self.written.store(end, Ordering::Release);
    }

    /// On the reader: the words that are there, and were not consumed.
    pub(crate) fn filled(&self) -> Range<usize> {
        // Relaxed: only the reader stores it.
        let read = self.read.load(Ordering::Relaxed);
        // Acquire; pairs with Release in `publish`.
        read..self.written.load(Ordering::Acquire)
    }

    /// On the reader: the words before `end` may be overwritten.
    pub(crate) fn consume(&self, end: usize) {
        // Release; pairs with Acquire in `room`.
        self.read.store(end, Ordering::Release);
    }

    /// On the writer: nothing follows.
    pub(crate) fn end(&self) {
        // Release; pairs with Acquire in `has_ended`.
        self.ended.store(true, Ordering::Release);
    }

    /// On the reader: nothing follows what is there now.
    pub(crate) fn has_ended(&self) -> bool {
        // Acquire; pairs with Release in `end`: all that was published is seen.
        self.ended.load(Ordering::Acquire)
    }

    /// Makes it an empty ring, for another writer. Nobody else uses it.
    pub(crate) fn reset(&self) {
        // Relaxed: the next writer takes it over by an exchange.
        self.written.store(0, Ordering::Relaxed);
        self.read.store(0, Ordering::Relaxed);
        self.ended.store(false, Ordering::Relaxed);
    }
}
