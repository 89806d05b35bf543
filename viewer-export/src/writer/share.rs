//! The part of a file that one sink writes: a share of its processes, or segments of one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use omptrace_timeline::MAX_STREAMS;

/// Maximum number of shares. The live state of a process is in memory once per share, regardless of the number of
/// working threads.
pub(crate) const MAX_SHARES: usize = 8;

/// Number of shares for processes with these numbers of streams; the largest ones may be processed at the same time.
pub(crate) fn shares_for(streams: impl Iterator<Item = usize>) -> usize {
    let mut streams: Vec<usize> = streams.collect();
    streams.sort_unstable_by(|a, b| b.cmp(a));
    let mut together = 0;
    let fits = |streams: &&usize| {
        together += **streams;
        together <= MAX_STREAMS
    };
    let fitting = streams.iter().take(MAX_SHARES).take_while(fits).count();
    fitting.max(1)
}

/// Identifies one of a file's sinks.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    number: u32,
    of: u32,
    segments: InSegments,
    identity: Arc<AtomicU64>,
}

/// Whether a file consists of [segments](omptrace_timeline::Segments) of one process.
#[derive(Clone, Copy, Debug)]
enum InSegments {
    No,
    /// One sink writes all segments.
    All,
    /// The sink writes the segments from this number on, up to the first one of the next sink.
    From(u32),
}

impl Share {
    /// The share of a sink that writes the whole file.
    pub(crate) fn whole() -> Share {
        Share::several(1).remove(0)
    }

    /// The shares of `of` sinks.
    pub(crate) fn several(of: usize) -> Vec<Share> {
        let identity = Arc::new(AtomicU64::new(0));
        let of = of as u32;
        let share = |number| Share { number, of, segments: InSegments::No, identity: identity.clone() };
        (0..of).map(share).collect()
    }

    /// The share of a sink that writes all segments of a file, one after another.
    pub(crate) fn in_segments() -> Share {
        Share { segments: InSegments::All, ..Share::whole() }
    }

    /// The share of a sink that starts with segment `number`, and does not write all segments.
    pub(crate) fn beginning_at(&self, number: u32) -> Share {
        Share { segments: InSegments::From(number), ..self.clone() }
    }

    /// Whether the file consists of segments.
    pub(crate) fn is_in_segments(&self) -> bool {
        !matches!(self.segments, InSegments::No)
    }

    /// The number of the share's first segment.
    pub(crate) fn first_segment(&self) -> u32 {
        match self.segments {
            InSegments::No | InSegments::All => 0,
            InSegments::From(number) => number,
        }
    }

    /// Whether the share contains the start of the file.
    pub(crate) fn is_first(&self) -> bool {
        self.number == 0 && self.first_segment() == 0
    }

    /// Whether there are no other shares.
    pub(crate) fn is_whole(&self) -> bool {
        self.of == 1 && !matches!(self.segments, InSegments::From(_))
    }

    /// The number in the file, counted from 0, for the number `own` in this share. Numbers of different shares differ.
    #[inline(always)]
    pub(crate) fn number(&self, own: u64) -> u64 {
        own * u64::from(self.of) + u64::from(self.number)
    }

    /// Adds to the file's [`Share::identity`].
    pub(crate) fn identify(&self, hash: u64) {
        // Relaxed: a sum, which is read after all sinks are finished.
        self.identity.fetch_add(hash, Ordering::Relaxed);
    }

    /// The sum of all values that the file's sinks added.
    pub(crate) fn identity(&self) -> u64 {
        // Relaxed: see `identify`.
        self.identity.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_many_streams_have_fewer_shares() {
        let shares = |streams: &[usize]| shares_for(streams.iter().copied());
        assert_eq!(shares(&[4; 3]), 3);
        assert_eq!(shares(&[4; 100]), MAX_SHARES);
        assert_eq!(shares(&[64; 100]), 3);
        assert_eq!(shares(&[2, 150, 40, 7]), 2);
        assert_eq!(shares(&[2, 1000]), 1);
        assert_eq!(shares(&[]), 1);
    }

    #[test]
    fn numbers_of_shares_differ() {
        let shares = Share::several(3);
        let numbers = shares.iter().flat_map(|share| (0..4).map(|own| share.number(own)));
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..12).collect::<Vec<u64>>());
    }
}
