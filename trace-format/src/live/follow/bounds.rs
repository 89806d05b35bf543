//! Limits on how much of a growing trace is read.

/// The limits of a poll.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Start of the interesting events, in raw ticks. Of earlier events, only those that opened something are kept.
    pub keep_from: u64,
    /// Maximum number of new words to read; if there are more, older chunks are skipped.
    pub most_words: u64,
    /// Maximum number of events kept per stream.
    pub most_events: usize,
}
