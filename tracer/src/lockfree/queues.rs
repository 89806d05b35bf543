//! The queues of chunks: free -> a thread -> full -> the writer -> free.

use std::ptr;

use omptrace_trace_format::block::ChunkState;

use crate::lockfree::chunk_header::Header;
use crate::sync::{AtomicPtr, Ordering, Queue};

/// Number of chunks per part.
const PART: usize = 512;

/// The queues of a spool, with room for all its chunks, so that pushing never fails. They are allocated in parts for
/// consecutive chunks: most processes have few chunks, and room for all would be half a MiB, written at the start.
#[derive(Debug)]
pub(crate) struct Queues {
    /// Null before the first chunk of the part is opened. Parts are never freed: they are needed until the process
    /// ends, like the spool.
    parts: Box<[AtomicPtr<Part>]>,
}

/// The queues of [`PART`] chunks.
#[derive(Debug)]
struct Part {
    free: Queue<u32>,
    full: Queue<u32>,
}

impl Queues {
    /// Empty queues for `capacity` chunks, none of which is open.
    pub(crate) fn new(capacity: usize) -> Queues {
        Queues { parts: (0..capacity.div_ceil(PART)).map(|_| AtomicPtr::new(ptr::null_mut())).collect() }
    }

    /// Opens a chunk: from now on, the caller may hand it over. Chunks are opened one after the other, in the order of
    /// their numbers.
    pub(crate) fn open(&self, index: u32) {
        let part = &self.parts[index as usize / PART];
        // Relaxed: stored only by this function, with one caller at a time.
        if part.load(Ordering::Relaxed).is_null() {
            let new = Box::new(Part { free: Queue::new(PART), full: Queue::new(PART) });
            // Release; pairs with Acquire in `seen`.
            part.store(Box::into_raw(new), Ordering::Release);
        }
    }

    /// Takes a free chunk.
    pub(crate) fn take_free(&self) -> Option<u32> {
        self.open_parts().find_map(|part| part.free.pop())
    }

    /// Passes a thread's chunk to the writer.
    pub(crate) fn hand_over(&self, index: u32, header: &Header) {
        // Before the writer can get the chunk: afterwards the state is the writer's.
        header.set_state(ChunkState::FULL);
        if let Some(part) = self.part(index) {
            let _ = part.full.push(index);
        }
    }

    /// Takes the next chunk to write.
    pub(crate) fn take_full(&self) -> Option<u32> {
        self.open_parts().find_map(|part| part.full.pop())
    }

    /// Returns a written chunk that is no longer used.
    pub(crate) fn release(&self, index: u32, header: &Header) {
        // Before a thread can get the chunk: afterwards the state is the thread's.
        header.set_state(ChunkState::FREE);
        if let Some(part) = self.part(index) {
            let _ = part.free.push(index);
        }
    }

    /// Whether chunks are waiting to be written and none is free: the next thread that fills its chunk has to write it.
    pub(crate) fn are_short(&self) -> bool {
        self.open_parts().all(|part| part.free.is_empty()) && !self.is_drained()
    }

    /// Whether no chunk is waiting to be written.
    pub(crate) fn is_drained(&self) -> bool {
        self.open_parts().all(|part| part.full.is_empty())
    }

    fn part(&self, index: u32) -> Option<&Part> {
        Self::seen(self.parts.get(index as usize / PART)?)
    }

    fn open_parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().map_while(Self::seen)
    }

    fn seen(part: &AtomicPtr<Part>) -> Option<&Part> {
        // Acquire; pairs with Release in `open`.
        // SAFETY: null, or allocated by `open` and never freed.
        unsafe { part.load(Ordering::Acquire).as_ref() }
    }
}
