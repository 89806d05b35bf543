//! The header of a chunk in the spool (layout: [`omptrace_trace_format::block`]), which also says who owns the chunk.

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

/// Release, but where `cargo xtask sanitize` plants a race ([`crate::os::sanitizer`]).
const PUBLISH: Ordering = match cfg!(omptrace_planted = "race") {
    false => Ordering::Release,
    true => Ordering::Relaxed,
};

/// A header. Its words are only ever accessed atomically. The words behind it belong to one thread at a time. Others read
/// them up to the published length.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Header(pub(crate) [AtomicU64; CHUNK_HEADER_WORDS]);

impl Header {
    /// Makes the first `len` words of the chunk count.
    #[inline(always)]
    pub(crate) fn publish(&self, len: usize) {
        // Release; pairs with Acquire in `published`: whoever sees the length sees the words.
        self.0[PUBLISHED].store(len as u64, PUBLISH);
    }

    /// For the chunk's own thread: how many words it has published.
    #[inline(always)]
    pub(crate) fn written(&self) -> usize {
        // Relaxed: nobody else publishes.
        self.0[PUBLISHED].load(Ordering::Relaxed) as usize
    }

    /// How many words of the chunk count.
    pub(crate) fn published(&self) -> usize {
        // Acquire; pairs with Release in `publish`.
        self.0[PUBLISHED].load(Ordering::Acquire) as usize
    }

    /// Hands the chunk to another owner.
    pub(crate) fn set_state(&self, state: ChunkState) {
        // Release; pairs with whoever reads the spool of a running process.
        self.0[STATE].store(state.0, Ordering::Release);
    }

    /// Takes the chunk for the writer if a thread owns it; false where the thread itself has just handed it over.
    pub(crate) fn take_over(&self) -> bool {
        // Acquire; pairs with Release in `set_state`: the header is this chunk's.
        self.0[STATE]
            .compare_exchange(ChunkState::ACTIVE.0, ChunkState::FULL.0, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// True where a thread has handed it over and nobody has written it yet.
    pub(crate) fn is_full(&self) -> bool {
        // Acquire; pairs with Release in `set_state`: the words are those of this chunk.
        self.0[STATE].load(Ordering::Acquire) == ChunkState::FULL.0
    }

    /// Makes it the chunk `sequence` of `stream`. It is free for whoever reads the spool until all is written: a kill
    /// in between loses nothing, since there is nothing in it yet.
    pub(crate) fn begin(&self, stream: u32, sequence: u32, clock: ClockPair, newest_id: u64) {
        // Relaxed: ordered by the fence.
        self.0[STATE].store(ChunkState::FREE.0, Ordering::Relaxed);
        self.0[PUBLISHED].store(0, Ordering::Relaxed);
        // Release, twice; both pair with whoever reads the spool of a running process: listed, then before and after the
        // words. Who has seen anything of the new chunk sees that it was free, and no length of the old one.
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
        // Who has seen any word of the new chunk sees its header.
        fence(Ordering::Release);
        // Relaxed: ordered by the fence; pairs with Acquire in `take_over`.
        self.0[STATE].store(ChunkState::ACTIVE.0, Ordering::Relaxed);
    }

    /// Says, for whoever reads the spool, which error of the system turned tracing off; false where the chunk was never begun.
    pub(crate) fn report_failure(&self, number: i32) -> bool {
        let has_begun = self.word(MAGIC) == CHUNK_MAGIC;
        if has_begun {
            // Relaxed: only the number is passed on.
            self.0[FAILURE].store(number as u64, Ordering::Relaxed);
        }
        has_begun
    }

    /// Counts an event that is lost, and that no event reports yet, for whoever reads the spool; whatever chunk this is.
    pub(crate) fn add_unreported(&self) {
        // Relaxed: only the sum counts.
        self.0[UNREPORTED].fetch_add(1, Ordering::Relaxed);
    }

    /// Takes off events of [`Header::add_unreported`] that an event reports now.
    pub(crate) fn forget_unreported(&self, events: u64) {
        // Relaxed: as above.
        self.0[UNREPORTED].fetch_sub(events, Ordering::Relaxed);
    }

    /// The number that follows in the list of those that a thread keeps ([`crate::recorder::kept_chunks::KeptChunks`]); nobody else reads it.
    pub(crate) fn next_kept(&self) -> u32 {
        self.word(NEXT_KEPT) as u32
    }

    /// See [`Header::next_kept`].
    pub(crate) fn set_next_kept(&self, number: u32) {
        // Relaxed: for the thread itself, and whoever ends the session when that is quiet.
        self.0[NEXT_KEPT].store(u64::from(number), Ordering::Relaxed);
    }

    /// Its stream and its sequence number there.
    pub(crate) fn place(&self) -> (u32, u32) {
        let word = self.word(PLACE);
        (word as u32, (word >> 32) as u32)
    }

    /// When it began.
    pub(crate) fn clock(&self) -> ClockPair {
        ClockPair {
            ticks: self.word(CLOCK),
            monotonic_raw_ns: self.word(CLOCK + 1),
            realtime_ns: self.word(CLOCK + 2),
        }
    }

    /// The stream's newest id before it.
    pub(crate) fn newest_id(&self) -> u64 {
        self.word(NEWEST_ID)
    }

    fn word(&self, index: usize) -> u64 {
        // Relaxed: ordered by the hand-over (`take_over`, or the queue).
        self.0[index].load(Ordering::Relaxed)
    }
}
