//! The header of a chunk in the spool (layout: [`omptrace_trace_format::block`]), which includes the chunk's owner.

use omptrace_trace_format::block::{CHUNK_HEADER_WORDS, CHUNK_MAGIC, ChunkState, ClockPair};

use crate::sync::{AtomicU64, Ordering, fence};

const MAGIC: usize = 0;
const STATE: usize = 1;
const PLACE: usize = 2;
const CLOCK: usize = 3;
const NEWEST_ID: usize = 6;
const PUBLISHED: usize = 7;
const FAILURE: usize = 8;
const UNREPORTED: usize = 9;
const NEXT_KEPT: usize = 10;

/// Release, unless `cargo xtask sanitize` plants a race ([`crate::os::sanitizer`]).
const PUBLISH: Ordering = match cfg!(omptrace_planted = "race") {
    false => Ordering::Release,
    true => Ordering::Relaxed,
};

/// The header of a chunk, accessed only atomically. The words after the header belong to one thread at a time; others
/// read them up to the published length.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Header(pub(crate) [AtomicU64; CHUNK_HEADER_WORDS]);

impl Header {
    /// Publishes the first `len` words of the chunk.
    #[inline(always)]
    pub(crate) fn publish(&self, len: usize) {
        // Release; pairs with Acquire in `published`: a thread that sees the length sees the words.
        self.0[PUBLISHED].store(len as u64, PUBLISH);
    }

    /// The number of words that the chunk's own thread has published.
    #[inline(always)]
    pub(crate) fn written(&self) -> usize {
        // Relaxed: no other thread publishes.
        self.0[PUBLISHED].load(Ordering::Relaxed) as usize
    }

    /// The number of published words.
    pub(crate) fn published(&self) -> usize {
        // Acquire; pairs with Release in `publish`.
        self.0[PUBLISHED].load(Ordering::Acquire) as usize
    }

    /// Passes the chunk to another owner.
    pub(crate) fn set_state(&self, state: ChunkState) {
        // Release; pairs with readers of a running process's spool.
        self.0[STATE].store(state.0, Ordering::Release);
    }

    /// Takes the chunk for the writer if a thread owns it; false if that thread has just handed it over itself.
    pub(crate) fn take_over(&self) -> bool {
        // Acquire; pairs with Release in `set_state`: the header belongs to this chunk.
        self.0[STATE]
            .compare_exchange(ChunkState::ACTIVE.0, ChunkState::FULL.0, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Whether a thread has handed the chunk over and it is not written yet.
    pub(crate) fn is_full(&self) -> bool {
        // Acquire; pairs with Release in `set_state`: the words belong to this chunk.
        self.0[STATE].load(Ordering::Acquire) == ChunkState::FULL.0
    }

    /// Starts chunk `sequence` of `stream`. To readers of the spool, the chunk is free until the header is complete: a
    /// kill in between loses nothing, because the chunk has no events yet.
    pub(crate) fn begin(&self, stream: u32, sequence: u32, clock: ClockPair, newest_id: u64) {
        // Relaxed: ordered by the fence.
        self.0[STATE].store(ChunkState::FREE.0, Ordering::Relaxed);
        self.0[PUBLISHED].store(0, Ordering::Relaxed);
        // Release, twice; both pair with readers of a running process's spool, which read headers first when they list
        // chunks, and then before and after the words. A reader that has seen any part of the new chunk sees that it
        // was free, and not the length of the old one.
        fence(Ordering::Release);
        let header = [
            (MAGIC, CHUNK_MAGIC),
            (PLACE, u64::from(stream) | u64::from(sequence) << 32),
            (CLOCK, clock.ticks),
            (CLOCK + 1, clock.monotonic_raw_ns),
            (CLOCK + 2, clock.realtime_ns),
            (NEWEST_ID, newest_id),
        ];
        for (index, word) in header {
            // Relaxed: ordered by the fences.
            self.0[index].store(word, Ordering::Relaxed);
        }
        // A reader that has seen any word of the new chunk sees its header.
        fence(Ordering::Release);
        // Relaxed: ordered by the fence; pairs with Acquire in `take_over`.
        self.0[STATE].store(ChunkState::ACTIVE.0, Ordering::Relaxed);
    }

    /// Stores the error number that turned tracing off, for readers of the spool; false if the chunk was never started.
    pub(crate) fn report_failure(&self, number: i32) -> bool {
        let has_begun = self.word(MAGIC) == CHUNK_MAGIC;
        if has_begun {
            // Relaxed: only the number is shared.
            self.0[FAILURE].store(number as u64, Ordering::Relaxed);
        }
        has_begun
    }

    /// Counts a lost event that no event reports yet, for readers of the spool. Any chunk can hold the count.
    pub(crate) fn add_unreported(&self) {
        // Relaxed: only the sum counts.
        self.0[UNREPORTED].fetch_add(1, Ordering::Relaxed);
    }

    /// Subtracts events that were counted by [`Header::add_unreported`] and are reported by an event now.
    pub(crate) fn forget_unreported(&self, events: u64) {
        // Relaxed: only the sum counts.
        self.0[UNREPORTED].fetch_sub(events, Ordering::Relaxed);
    }

    /// The next chunk's number in a thread's list of retained chunks ([`crate::recorder::kept_chunks::KeptChunks`]); only
    /// that thread reads it.
    pub(crate) fn next_kept(&self) -> u32 {
        self.word(NEXT_KEPT) as u32
    }

    /// See [`Header::next_kept`].
    pub(crate) fn set_next_kept(&self, number: u32) {
        // Relaxed: read by the thread itself, and by the thread that ends the session once the others are idle.
        self.0[NEXT_KEPT].store(u64::from(number), Ordering::Relaxed);
    }

    /// The chunk's stream and sequence number.
    pub(crate) fn place(&self) -> (u32, u32) {
        let word = self.word(PLACE);
        (word as u32, (word >> 32) as u32)
    }

    /// The clock pair at the chunk's start.
    pub(crate) fn clock(&self) -> ClockPair {
        ClockPair {
            ticks: self.word(CLOCK),
            monotonic_raw_ns: self.word(CLOCK + 1),
            realtime_ns: self.word(CLOCK + 2),
        }
    }

    /// The stream's newest id before the chunk.
    pub(crate) fn newest_id(&self) -> u64 {
        self.word(NEWEST_ID)
    }

    fn word(&self, index: usize) -> u64 {
        // Relaxed: ordered by the transfer of ownership (`take_over`, or the queue).
        self.0[index].load(Ordering::Relaxed)
    }
}
