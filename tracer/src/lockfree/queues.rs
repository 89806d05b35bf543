//! Chunks on their way: free -> a thread -> full -> the writer -> free.

use omptrace_trace_format::block::ChunkState;

use super::header::Header;
use crate::sync::Queue;

/// The queues of a spool; each has room for all its chunks, so that pushing never fails.
#[derive(Debug)]
pub(crate) struct Queues {
    free: Queue<u32>,
    full: Queue<u32>,
}

impl Queues {
    /// Empty queues for `capacity` chunks.
    pub(crate) fn new(capacity: usize) -> Queues {
        Queues {
            free: Queue::new(capacity),
            full: Queue::new(capacity),
        }
    }

    /// A chunk that nobody uses.
    pub(crate) fn take_free(&self) -> Option<u32> {
        self.free.pop()
    }

    /// A thread gives its chunk to the writer.
    pub(crate) fn hand_over(&self, index: u32, header: &Header) {
        // Before the writer can have it: afterwards the state is the writer's.
        header.set_state(ChunkState::FULL);
        let _ = self.full.push(index);
    }

    /// The next chunk to be written.
    pub(crate) fn take_full(&self) -> Option<u32> {
        self.full.pop()
    }

    /// A chunk is written and nobody uses it any more.
    pub(crate) fn release(&self, index: u32, header: &Header) {
        // Before a thread can have it: afterwards the state is the thread's.
        header.set_state(ChunkState::FREE);
        let _ = self.free.push(index);
    }

    /// True where chunks wait to be written and none is free: the next thread that fills its chunk has to write it.
    pub(crate) fn are_short(&self) -> bool {
        self.free.is_empty() && !self.full.is_empty()
    }

    /// True where no chunk waits to be written.
    pub(crate) fn is_drained(&self) -> bool {
        self.full.is_empty()
    }
}
