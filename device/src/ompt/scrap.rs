//! Memory for records that are never read, for devices that request a buffer when none is left.
//!
//! Does not lock or make system calls, because requests also come from forked children and ending processes.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Size of a place in bytes.
const BYTES: usize = 4 << 10;
/// The places, one for each bit of a word.
const PLACES: usize = u64::BITS as usize;

/// The memory of this process. It takes no physical memory unless a device writes to it.
pub(super) static SCRAP: Scrap = Scrap::new();

/// Memory divided into places for devices.
#[repr(C, align(4096))]
pub(super) struct Scrap {
    memory: UnsafeCell<[[u8; BYTES]; PLACES]>,
    /// Bit set of the places in use.
    taken: AtomicU64,
    /// Number of requests when no place was free.
    shared: AtomicUsize,
}

// SAFETY: only devices read and write the memory. If two share a place, only records are affected that are lost anyway.
unsafe impl Sync for Scrap {}

impl Scrap {
    const fn new() -> Scrap {
        Scrap {
            memory: UnsafeCell::new([[0; BYTES]; PLACES]),
            taken: AtomicU64::new(0),
            shared: AtomicUsize::new(0),
        }
    }

    /// Address and size of a place: a free one, else one that another device is using.
    pub(super) fn lend(&self) -> (usize, usize) {
        let with_next = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        // Relaxed, here and below: orders no other accesses.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let place = match self.taken.fetch_update(success, failure, with_next) {
            Ok(taken) => taken.trailing_ones() as usize,
            Err(_) => self.shared.fetch_add(1, Ordering::Relaxed) % PLACES,
        };
        (self.memory.get() as usize + place * BYTES, BYTES)
    }

    /// Whether a completion is for one of these places, so that it should be ignored.
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
