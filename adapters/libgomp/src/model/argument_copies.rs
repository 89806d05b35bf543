//! Who executes the `single` regions of a team that copy private variables to the others (OpenMP 5.2, 5.7.2).
//!
//! libgomp makes all others wait within the call that says who executes. To report their waits at the begin, one must know before the
//! call that another thread executes.
//!
//! ```text
//! first to claim:  claim --> libgomp's call, which returns --> begin
//! others:          claim --> until begin, a moment at most --> libgomp's call, which waits
//! ```
//!
//! libgomp alone decides. Where the first is held up for longer, another one may execute the region, and begins it. Nobody ever waits
//! for the first: then no wait is reported.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};

/// How often a thread looks again: for a microsecond or two.
const MAX_LOOKS: u32 = 64;

/// The regions of a team, by number: all threads of a team come to them in the same order.
///
/// All orderings are relaxed: both words only grow, and nothing else is read because of one.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// How many regions threads have come to.
    claimed: AtomicU32,
    /// Of how many it is known that a thread executes them.
    begun: AtomicU32,
}

impl Copies {
    pub(crate) const fn new() -> Copies {
        Copies { claimed: AtomicU32::new(0), begun: AtomicU32::new(0) }
    }

    /// The team is formed anew. No other thread knows it yet.
    pub(crate) fn reset(&self) {
        self.claimed.store(0, Ordering::Relaxed);
        self.begun.store(0, Ordering::Relaxed);
    }

    /// A thread comes to region `number`. True if another one executes it; false if that is not known.
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

    /// Whoever is said to be another than the executor is, whatever order threads come in.
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
                        // As libgomp decides.
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
