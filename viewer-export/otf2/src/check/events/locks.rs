//! Locks: acquired in order, and released by their holders.

use super::{Checker, in_order};
use crate::check::faults::Fault;

impl Checker<'_> {
    pub(super) fn acquire(&mut self, index: usize, time: u64, acquired: (u32, u32)) {
        let is_new = self.sources[index].locks.insert(acquired);
        if !is_new || !self.note_acquisition(acquired.0, acquired.1) {
            self.fault(Fault::LockOrder, index, time);
        }
    }

    /// Notes an acquisition; false if there was one with this number.
    fn note_acquisition(&mut self, lock: u32, order: u32) -> bool {
        let Some(bit) = order.checked_sub(1) else {
            return false;
        };
        let (word, mask) = ((bit / 64) as usize, 1 << (bit % 64));
        let orders = self.locks.entry(lock).or_default();
        // A number far beyond the last one does not fit a consecutive numbering; the gap is reported at the end.
        if word > orders.len() + 1024 {
            return false;
        }
        orders.resize(orders.len().max(word + 1), 0);
        let is_new = orders[word] & mask == 0;
        orders[word] |= mask;
        is_new
    }

    /// A task that has moved may release a lock on another location than it acquired it.
    pub(super) fn release(&mut self, index: usize, time: u64, acquired: (u32, u32)) {
        if self.sources[index].locks.remove(&acquired) {
            return;
        }
        let released = self.sources.iter_mut().any(|source| source.locks.remove(&acquired));
        if !released {
            self.fault(Fault::Lock, index, time);
        }
    }

    /// The acquisitions of each lock must be numbered consecutively from 1.
    pub(super) fn finish_locks(&mut self) {
        for (lock, orders) in in_order(&self.locks) {
            let mut words = orders.iter().rev();
            let newest = words.next().copied().unwrap_or(0);
            let has_gap = newest & newest.wrapping_add(1) != 0 || words.any(|word| *word != u64::MAX);
            if has_gap {
                self.faults.add(Fault::LockOrder, || format!("lock {lock} has a gap"));
            }
        }
    }
}
