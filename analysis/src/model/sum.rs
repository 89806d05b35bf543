//! Saturating sums of nanoseconds: if a trace contains invalid times, a sum stays at its maximum instead of wrapping
//! around.

/// A sum.
pub trait Sum {
    /// Adds `more`.
    fn grow_by(&mut self, more: Self);
}

impl Sum for u64 {
    fn grow_by(&mut self, more: u64) {
        *self = self.saturating_add(more);
    }
}

/// The sum of all values.
pub fn sum(all: impl IntoIterator<Item = u64>) -> u64 {
    all.into_iter().fold(0, u64::saturating_add)
}

/// Adds `ns` to `sum`, saturating if times are invalid.
pub(crate) fn add(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns);
}
