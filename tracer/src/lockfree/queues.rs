//! Chunks on their way: free -> a thread -> full -> the writer -> free.

use std::ptr;

use omptrace_trace_format::block::ChunkState;

use crate::lockfree::chunk_header::Header;
use crate::sync::{AtomicPtr, Ordering, Queue};

/// How many chunks a part is for.
const PART: usize = 512;

/// The queues of a spool; each has room for all its chunks, so that pushing never fails. They come in parts, for chunks that
/// follow each other. Most processes have few chunks; room for all would be half a MiB that is written at the start.
#[derive(Debug)]
pub(crate) struct Queues {
    /// Null before the first chunk of a part comes to life. They stay as long as the process, as its spool does.
    parts: Box<[AtomicPtr<Part>]>,
}

/// The queues of [`PART`] chunks.
#[derive(Debug)]
struct Part {
    free: Queue<u32>,
    full: Queue<u32>,
}

impl Queues {
    /// Empty queues for `capacity` chunks, none of which has come to life.
    pub(crate) fn new(capacity: usize) -> Queues {
        Queues { parts: (0..capacity.div_ceil(PART)).map(|_| AtomicPtr::new(ptr::null_mut())).collect() }
    }

    /// The chunk comes to life: whoever calls this may hand it over from now on. Chunks come to life in the order of their
    /// numbers, one after the other.
    pub(crate) fn open(&self, index: u32) {
        let part = &self.parts[index as usize / PART];
        // Relaxed: only this function stores it, for one caller at a time.
        if part.load(Ordering::Relaxed).is_null() {
            let new = Box::new(Part { free: Queue::new(PART), full: Queue::new(PART) });
            // Release; pairs with Acquire in `seen`.
            part.store(Box::into_raw(new), Ordering::Release);
        }
    }

    /// A chunk that nobody uses.
    pub(crate) fn take_free(&self) -> Option<u32> {
        self.open_parts().find_map(|part| part.free.pop())
    }

    /// A thread gives its chunk to the writer.
    pub(crate) fn hand_over(&self, index: u32, header: &Header) {
        // Before the writer can have it: afterwards the state is the writer's.
        header.set_state(ChunkState::FULL);
        if let Some(part) = self.part(index) {
            let _ = part.full.push(index);
        }
    }

    /// The next chunk to be written.
    pub(crate) fn take_full(&self) -> Option<u32> {
        self.open_parts().find_map(|part| part.full.pop())
    }

    /// A chunk is written and nobody uses it any more.
    pub(crate) fn release(&self, index: u32, header: &Header) {
        // Before a thread can have it: afterwards the state is the thread's.
        header.set_state(ChunkState::FREE);
        if let Some(part) = self.part(index) {
            let _ = part.free.push(index);
        }
    }

    /// True where chunks wait to be written and none is free: the next thread that fills its chunk has to write it.
    pub(crate) fn are_short(&self) -> bool {
        self.open_parts().all(|part| part.free.is_empty()) && !self.is_drained()
    }

    /// True where no chunk waits to be written.
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
        // SAFETY: null, or what `open` made, which nobody frees.
        unsafe { part.load(Ordering::Acquire).as_ref() }
    }
}
