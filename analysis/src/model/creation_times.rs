//! The cost of creating tasks.

use serde::{Deserialize, Serialize};

/// If the time between two creations exceeds the shortest usual time by this factor, the rest is work of the creating
/// thread.
const MAX_SPREAD: u64 = 4;

/// The times between consecutive task creations on a thread, without other events between them: by power of two, their
/// number and their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CreationTimes(Vec<(u64, u64)>);

impl CreationTimes {
    pub(crate) fn add(&mut self, ns: u64) {
        let power = ns.checked_ilog2().unwrap_or(0) as usize;
        if self.0.len() <= power {
            self.0.resize(power + 1, (0, 0));
        }
        let (count, sum) = &mut self.0[power];
        *count += 1;
        *sum = sum.saturating_add(ns);
    }

    /// Adds other times; associative and commutative.
    pub(crate) fn merge(&mut self, other: &CreationTimes) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), (0, 0));
        }
        for ((count, sum), (more, ns)) in self.0.iter_mut().zip(&other.0) {
            *count += more;
            *sum = sum.saturating_add(*ns);
        }
    }

    /// The mean cost of creating a task, in nanoseconds. The creating thread may work between two creations, so each
    /// time counts for at most [`MAX_SPREAD`] times the upper bound of the shortest 1 % of all times.
    pub(crate) fn mean_ns(&self) -> Option<u64> {
        let all: u64 = self.0.iter().map(|(count, _)| count).sum();
        let mut below = 0;
        let shortest = self.0.iter().position(|(count, _)| {
            below += count;
            below > 0 && below * 100 >= all
        })?;
        let longest = MAX_SPREAD.checked_shl(shortest as u32 + 1).filter(|ns| *ns > 0).unwrap_or(u64::MAX);
        let each =
            self.0.iter().map(|(count, sum)| u128::from(*sum).min(u128::from(*count) * u128::from(longest)));
        u64::try_from(each.sum::<u128>() / u128::from(all)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::CreationTimes;

    fn of(times: &[(u64, u64)]) -> CreationTimes {
        let mut all = CreationTimes::default();
        for (ns, count) in times {
            (0..*count).for_each(|_| all.add(*ns));
        }
        all
    }

    #[test]
    fn what_the_creator_does_between_creations_is_no_cost_of_them() {
        assert_eq!(of(&[]).mean_ns(), None);
        assert_eq!(of(&[(0, 3)]).mean_ns(), Some(0));
        assert_eq!(of(&[(300, 3), (500, 1)]).mean_ns(), Some(350));
        // 256 to 511 ns are usual; the piece of work counts as 2,048 ns.
        assert_eq!(of(&[(300, 99), (1_000_000, 1)]).mean_ns(), Some((300 * 99 + 2048) / 100));
        // A single very short time does not limit the others.
        assert_eq!(of(&[(1, 1), (4000, 999)]).mean_ns(), Some(3996));
        assert_eq!(of(&[(u64::MAX, 2)]).mean_ns(), Some(u64::MAX / 2));
    }

    #[test]
    fn they_merge() {
        let mut merged = of(&[(300, 2)]);
        merged.merge(&of(&[(5000, 1)]));
        assert_eq!(merged, of(&[(5000, 1), (300, 2)]));
    }
}
