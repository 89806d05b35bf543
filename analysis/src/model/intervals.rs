//! Sets of times, as lists of intervals.

use omptrace_timeline::model::Ns;

/// The intervals in chronological order, with overlapping and adjacent ones merged.
pub(crate) fn merged(mut intervals: Vec<(Ns, Ns)>) -> Vec<(Ns, Ns)> {
    intervals.sort_unstable();
    intervals.dedup_by(|next, merged| {
        let touches = next.0 <= merged.1;
        if touches {
            merged.1 = merged.1.max(next.1);
        }
        touches
    });
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_touch_are_one() {
        let intervals = vec![(5, 9), (0, 2), (9, 12), (1, 3), (20, 21)];
        assert_eq!(merged(intervals), [(0, 3), (5, 12), (20, 21)]);
    }
}
