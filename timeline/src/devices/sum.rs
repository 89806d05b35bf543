//! Sums of what traces say.

/// The sum of a counter whose changes a trace may state as it likes. It is exact; a counter shows it between 0 and
/// its largest value.
#[derive(Debug, Default)]
pub(super) struct Sum(pub(super) i128);

impl Sum {
    /// Adds a change, and returns what the counter shows.
    pub(super) fn add(&mut self, change: i64) -> i64 {
        // A trace cannot have the 2^64 changes that it takes to come near the limit.
        self.0 = self.0.saturating_add(change.into());
        i64::try_from(self.0.max(0)).unwrap_or(i64::MAX)
    }
}
