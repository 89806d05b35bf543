//! Which part of a file a sink writes: a share of its processes, or segments of one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use omptrace_timeline::MAX_STREAMS;

/// The maximum of shares: what is alive of a process is in memory once for each, however few may work.
pub(crate) const MAX_SHARES: usize = 8;

/// How many shares a file has whose processes have these numbers of streams: the largest may come at the same time.
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

/// Which of the sinks of a file one is.
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
    /// One sink writes all of them.
    All,
    /// It writes those from this number on, to where another goes on.
    From(u32),
}

impl Share {
    /// The share of a sink which writes the whole file.
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

    /// The share of a sink that writes all segments of a file, one after the other.
    pub(crate) fn in_segments() -> Share {
        Share { segments: InSegments::All, ..Share::whole() }
    }

    /// The same of a sink that begins at segment `number`, and does not write all.
    pub(crate) fn beginning_at(&self, number: u32) -> Share {
        Share { segments: InSegments::From(number), ..self.clone() }
    }

    /// Whether the file consists of segments.
    pub(crate) fn is_in_segments(&self) -> bool {
        !matches!(self.segments, InSegments::No)
    }

    /// The number of its first segment.
    pub(crate) fn first_segment(&self) -> u32 {
        match self.segments {
            InSegments::No | InSegments::All => 0,
            InSegments::From(number) => number,
        }
    }

    /// Whether the file begins with this one.
    pub(crate) fn is_first(&self) -> bool {
        self.number == 0 && self.first_segment() == 0
    }

    /// Whether there is no other.
    pub(crate) fn is_whole(&self) -> bool {
        self.of == 1 && !matches!(self.segments, InSegments::From(_))
    }

    /// The number in the file, from 0, of what has the number `own` in this share: no two shares have the same.
    #[inline(always)]
    pub(crate) fn number(&self, own: u64) -> u64 {
        own * u64::from(self.of) + u64::from(self.number)
    }

    /// Adds to the [`Share::identity`] of the file.
    pub(crate) fn identify(&self, hash: u64) {
        // Relaxed: a sum, which is read when all sinks were finished.
        self.identity.fetch_add(hash, Ordering::Relaxed);
    }

    /// The sum of what the sinks of the file added.
    pub(crate) fn identity(&self) -> u64 {
        // Relaxed: see where it is added to.
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
