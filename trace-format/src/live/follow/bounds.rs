//! How much of a trace that grows is read.

/// The bounds of a poll.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Events before this time, in raw ticks, are of no interest but for what they began.
    pub keep_from: u64,
    /// Where more words than these are new, older chunks are passed over.
    pub most_words: u64,
    /// Events that are kept of each stream.
    pub most_events: usize,
}
