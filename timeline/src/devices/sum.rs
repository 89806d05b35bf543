//! Sums whose changes come from traces.

/// The sum of a counter. A trace may contain arbitrary changes, so the sum is wider than the counter, which shows it
/// limited to 0 and its largest value.
#[derive(Debug, Default)]
pub(super) struct Sum(pub(super) i128);

impl Sum {
    /// Adds a change, and returns the counter's value.
    pub(super) fn add(&mut self, change: i64) -> i64 {
        // No trace contains the 2^64 changes that would be necessary to reach the limit.
        self.0 = self.0.saturating_add(change.into());
        i64::try_from(self.0.max(0)).unwrap_or(i64::MAX)
    }
}
