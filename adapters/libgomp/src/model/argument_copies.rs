//! Which thread executes each `single` region with `copyprivate` of a team (OpenMP 5.2, 5.7.2).
//!
//! In libgomp, all other threads wait within the call that selects the executing thread. To report the begins of their
//! waits, the adapter must know before the call that another thread executes the region.
//!
//! ```text
//! first to claim:  claim --> libgomp's call, which returns --> begin
//! others:          claim --> until begin, a moment at most --> libgomp's call, which waits
//! ```
//!
//! Only libgomp decides. If the first thread is delayed, another thread may execute the region and call `begin`. No
//! thread waits for the first one for long: then its wait is not reported.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};

/// How often a thread polls: one or two microseconds.
const MAX_LOOKS: u32 = 64;

/// The regions of a team by number: all threads of a team encounter them in the same order.
///
/// All orderings are relaxed: both words only grow, and no other data depend on them.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// The number of regions that some thread has reached.
    claimed: AtomicU32,
    /// The number of regions of which the executing thread is known.
    begun: AtomicU32,
}

impl Copies {
    pub(crate) const fn new() -> Copies {
        Copies { claimed: AtomicU32::new(0), begun: AtomicU32::new(0) }
    }

    /// The team is reused for a new region. No other thread knows it yet.
    pub(crate) fn reset(&self) {
        self.claimed.store(0, Ordering::Relaxed);
        self.begun.store(0, Ordering::Relaxed);
    }

    /// A thread reaches region `number`. True if another thread executes it; false if that is not known.
    pub(crate) fn are_of_another(&self, number: u32) -> bool {
        let (claimed, relaxed) = (&self.claimed, Ordering::Relaxed);
        let is_first = claimed.compare_exchange(number, number.wrapping_add(1), relaxed, relaxed);
        if is_first.is_ok() {
            return false;
        }
        for _ in 0..MAX_LOOKS {
            if self.begun.load(relaxed) > number {
                return true;
            }
            spin_loop();
        }
        false
    }

    /// The calling thread executes region `number`.
    pub(crate) fn begin(&self, number: u32) {
        self.begun.fetch_max(number.wrapping_add(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn others_know_the_executor_once_it_has_begun() {
        let copies = Copies::new();
        assert!(!copies.are_of_another(0));
        assert!(!copies.are_of_another(0), "the first has not begun");
        copies.begin(0);
        assert!(copies.are_of_another(0));
        assert!(!copies.are_of_another(1));
        copies.begin(1);
        assert!(copies.are_of_another(1));
        copies.reset();
        assert!(!copies.are_of_another(0));
    }

    /// If the adapter says that another thread executes the region, this is true, whatever the order of the threads.
    #[test]
    fn no_executor_is_taken_for_another() {
        const REGIONS: u32 = 2_000;
        let copies = Copies::new();
        let executed: Vec<AtomicBool> = (0..REGIONS).map(|_| AtomicBool::new(false)).collect();
        let barrier = Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for number in 0..REGIONS {
                        let is_other = copies.are_of_another(number);
                        // libgomp's decision.
                        let executes = !executed[number as usize].swap(true, Ordering::Relaxed);
                        assert!(!(is_other && executes), "region {number}");
                        if executes {
                            copies.begin(number);
                        }
                        barrier.wait();
                    }
                });
            }
        });
    }
}
