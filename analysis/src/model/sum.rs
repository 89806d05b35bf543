//! Sums of nanoseconds. Where the times of a trace make no sense, a sum stays at the most that it can be. It does
//! not begin again at 0.

/// A sum.
pub(crate) trait Sum {
    /// Adds to it.
    fn grow_by(&mut self, more: Self);
}

impl Sum for u64 {
    fn grow_by(&mut self, more: u64) {
        *self = self.saturating_add(more);
    }
}

/// The sum of all.
pub(crate) fn sum(all: impl IntoIterator<Item = u64>) -> u64 {
    all.into_iter().fold(0, u64::saturating_add)
}

/// Adds `ns` to `sum`, which stays the greatest number where times are nonsense.
pub(crate) fn add(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns);
}
