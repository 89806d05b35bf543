//! The full chunks of a thread that a flight recorder retains.

use std::cell::Cell;

use crate::storage::spool::Spool;

/// A list of retained chunks, oldest first; each chunk's header contains the number of the next. All zeros is an empty
/// list. The list is not on the heap, because the program may have used up all memory. Called only by the stream's
/// thread, on the cold path, or by the thread that ends the session once this one is idle.
#[derive(Debug)]
pub(crate) struct KeptChunks {
    /// Chunk numbers, starting with 1; 0 for none.
    oldest: Cell<u32>,
    newest: Cell<u32>,
    len: Cell<u32>,
}

impl KeptChunks {
    pub(crate) const fn new() -> KeptChunks {
        KeptChunks { oldest: Cell::new(0), newest: Cell::new(0), len: Cell::new(0) }
    }

    /// Number of chunks in the list.
    pub(crate) fn len(&self) -> u32 {
        self.len.get()
    }

    /// Appends chunk `index` of `spool`.
    pub(crate) fn push(&self, spool: &Spool, index: u32) {
        let number = index + 1;
        spool.chunk(index).header().set_next_kept(0);
        match self.newest.replace(number) {
            0 => self.oldest.set(number),
            before => spool.chunk(before - 1).header().set_next_kept(number),
        }
        self.len.set(self.len.get() + 1);
    }

    /// Removes and returns the oldest chunk.
    pub(crate) fn pop(&self, spool: &Spool) -> Option<u32> {
        let index = self.oldest.get().checked_sub(1)?;
        let next = spool.chunk(index).header().next_kept();
        self.oldest.set(next);
        if next == 0 {
            self.newest.set(0);
        }
        self.len.set(self.len.get() - 1);
        Some(index)
    }

    /// Empties the list, whose chunks belong to a session that has ended.
    pub(crate) fn forget(&self) {
        self.oldest.set(0);
        self.newest.set(0);
        self.len.set(0);
    }
}
