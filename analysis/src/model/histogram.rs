//! Distribution of durations: counts in buckets, which merge exactly.

use crate::model::counts::Counts;

/// Buckets per power of two.
const PARTS: u32 = 16;

/// Counts of durations in buckets. The width of a bucket is less than 1/16 of the durations in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram(Counts);

impl Histogram {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }

    /// The non-empty buckets, with their counts.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        let all = self.0.0.iter().copied().enumerate();
        all.filter(|(_, count)| *count > 0)
    }

    /// The inverse of [`Histogram::counts`]. Ignores buckets beyond the largest possible duration.
    pub(crate) fn of(counts: &[(usize, u64)]) -> Histogram {
        let mut histogram = Histogram::default();
        for (bucket, count) in counts.iter().filter(|(of, _)| *of <= bucket(u64::MAX)) {
            histogram.0.add(*bucket, *count);
        }
        histogram
    }

    pub(crate) fn add(&mut self, ns: u64) {
        self.0.add(bucket(ns), 1);
    }

    /// Adds another histogram; associative and commutative.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        self.0.merge(&other.0);
    }

    /// By power of two, the number of durations from this power up to the next; durations of 0 count as 1.
    pub(crate) fn powers(&self) -> Vec<u64> {
        let mut powers = Counts::default();
        for (bucket, count) in self.0.0.iter().enumerate() {
            powers.add(longest(bucket).checked_ilog2().unwrap_or(0) as usize, *count);
        }
        powers.0
    }

    /// The upper bound of the bucket that contains this percentile of the durations; `None` if the histogram is empty.
    pub(crate) fn quantile(&self, percent: u64) -> Option<u64> {
        let all: u64 = self.0.0.iter().sum();
        let wanted = (u128::from(all) * u128::from(percent)).div_ceil(100);
        let mut below = 0;
        let bucket = self.0.0.iter().position(|count| {
            below += u128::from(*count);
            below > 0 && below >= wanted
        });
        Some(longest(bucket?))
    }
}

fn bucket(ns: u64) -> usize {
    let power = ns.checked_ilog2().unwrap_or(0);
    let bits = PARTS.ilog2();
    let bucket = match power.checked_sub(bits) {
        // Each of the shortest durations has a bucket of its own.
        None => ns,
        Some(shift) => u64::from(PARTS * (shift + 1)) + ((ns >> shift) - u64::from(PARTS)),
    };
    bucket as usize
}

/// The longest duration in a bucket.
fn longest(bucket: usize) -> u64 {
    let (bucket, parts) = (bucket as u64, u64::from(PARTS));
    match (bucket / parts).checked_sub(1) {
        None => bucket,
        Some(shift) => ((bucket % parts + parts + 1) << shift).wrapping_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut durations: Vec<u64> = (0..200).collect();
        durations.extend((7..64).flat_map(|power| [(1 << power) - 1, 1 << power, 3 << (power - 1)]));
        durations.push(u64::MAX);
        durations.sort_unstable();
        for ns in &durations {
            let top = longest(bucket(*ns));
            assert!(*ns <= top && (top - ns) as f64 <= *ns as f64 / 16.0, "{ns}: {top}");
        }
        assert!(durations.is_sorted_by_key(|ns| bucket(*ns)));
    }

    #[test]
    fn powers_have_all_durations() {
        let mut histogram = Histogram::default();
        assert!(histogram.powers().is_empty());
        for ns in [0, 1, 2, 3, 4, 1023, 1024, 1025, 2047] {
            histogram.add(ns);
        }
        let powers = histogram.powers();
        assert_eq!(powers, [2, 2, 1, 0, 0, 0, 0, 0, 0, 1, 3]);
    }

    #[test]
    fn quantiles_are_those_of_the_buckets() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(50), None);
        (1..=10).for_each(|ns| histogram.add(ns));
        let quantiles = [0, 10, 50, 99, 100].map(|percent| histogram.quantile(percent));
        assert_eq!(quantiles, [1, 1, 5, 10, 10].map(Some));
    }
}
