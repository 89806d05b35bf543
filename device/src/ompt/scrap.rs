//! Memory for records that nobody will read: what a device gets where no buffer is left.
//!
//! It takes no lock and asks the system for nothing, since requests come from forked children and ending processes, too.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes of a place.
const BYTES: usize = 4 << 10;
/// The places, one for each bit of a word.
const PLACES: usize = u64::BITS as usize;

/// The memory of this process. Where no device writes to it, the kernel gives none.
pub(super) static SCRAP: Scrap = Scrap::new();

/// Memory in places that devices take.
#[repr(C, align(4096))]
pub(super) struct Scrap {
    memory: UnsafeCell<[[u8; BYTES]; PLACES]>,
    /// The places that devices have.
    taken: AtomicU64,
    /// The requests for which no place was free.
    shared: AtomicUsize,
}

// SAFETY: only devices read and write the memory. Where two share a place, both lose only records that are lost already.
unsafe impl Sync for Scrap {}

impl Scrap {
    const fn new() -> Scrap {
        Scrap {
            memory: UnsafeCell::new([[0; BYTES]; PLACES]),
            taken: AtomicU64::new(0),
            shared: AtomicUsize::new(0),
        }
    }

    /// A place and its size: a free one, else one that another device has.
    pub(super) fn lend(&self) -> (usize, usize) {
        let with_next = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        // Relaxed, here and below: nothing else is read by it.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let place = match self.taken.fetch_update(success, failure, with_next) {
            Ok(taken) => taken.trailing_ones() as usize,
            Err(_) => self.shared.fetch_add(1, Ordering::Relaxed) % PLACES,
        };
        (self.memory.get() as usize + place * BYTES, BYTES)
    }

    /// Whether a completion is of such a place: it is for nobody.
    pub(super) fn completes(&self, buffer: usize, is_returned: bool) -> bool {
        let offset = buffer.wrapping_sub(self.memory.get() as usize);
        let is_here = offset < PLACES * BYTES;
        if is_here && is_returned {
            self.taken.fetch_and(!(1 << (offset / BYTES)), Ordering::Relaxed);
        }
        is_here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lent_again_and_shared_when_none_is_free() {
        static SCRAP: Scrap = Scrap::new();
        let all: Vec<usize> = (0..PLACES).map(|_| SCRAP.lend().0).collect();
        assert_eq!(SCRAP.lend().0, all[0]);
        assert!(SCRAP.completes(all[5] + 112, true));
        assert_eq!(SCRAP.lend(), (all[5], BYTES));
        assert!(SCRAP.completes(all[7], false));
        assert_eq!(SCRAP.lend().0, all[1]);
        assert!(!SCRAP.completes(all[0] - 1, true));
        assert!(!SCRAP.completes(all[PLACES - 1] + BYTES, true));
    }
}
