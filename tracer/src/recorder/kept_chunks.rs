//! The full chunks of a thread that a flight recorder keeps.

use std::cell::Cell;

use crate::storage::spool::Spool;

/// Chunks that are kept, the oldest first; the header of each names the next. All zeros is none. None of it is on the heap,
/// which the program may have used up. Only the stream's thread calls this, on the cold path, or whoever ends the session
/// when that is quiet.
#[derive(Debug)]
pub(crate) struct KeptChunks {
    /// Numbers from 1; 0 is none.
    oldest: Cell<u32>,
    newest: Cell<u32>,
    len: Cell<u32>,
}

impl KeptChunks {
    pub(crate) const fn new() -> KeptChunks {
        KeptChunks { oldest: Cell::new(0), newest: Cell::new(0), len: Cell::new(0) }
    }

    /// How many they are.
    pub(crate) fn len(&self) -> u32 {
        self.len.get()
    }

    /// Keeps the chunk `index` of `spool`.
    pub(crate) fn push(&self, spool: &Spool, index: u32) {
        let number = index + 1;
        spool.chunk(index).header().set_next_kept(0);
        match self.newest.replace(number) {
            0 => self.oldest.set(number),
            before => spool.chunk(before - 1).header().set_next_kept(number),
        }
        self.len.set(self.len.get() + 1);
    }

    /// The oldest, which is not kept any more.
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

    /// Keeps none: those of a session that has ended.
    pub(crate) fn forget(&self) {
        self.oldest.set(0);
        self.newest.set(0);
        self.len.set(0);
    }
}
