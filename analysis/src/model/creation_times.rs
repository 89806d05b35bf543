//! What the creation of tasks costs.

use serde::{Deserialize, Serialize};

/// Longer times from one creation to the next, as a multiple of the shortest usual one, are work of the creator's.
const MAX_SPREAD: u64 = 4;

/// The times from one creation of a task to the next on one thread, with no other event between them, by power of
/// two: how many there are, and their sum.
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

    /// Adds those of another: associative and commutative.
    pub(crate) fn merge(&mut self, other: &CreationTimes) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), (0, 0));
        }
        for ((count, sum), (more, ns)) in self.0.iter_mut().zip(&other.0) {
            *count += more;
            *sum = sum.saturating_add(*ns);
        }
    }

    /// What a creation costs on average, in nanoseconds. The creator may do other things between some of them, which
    /// take longer than most creations: of each time, no more than a multiple of the shortest hundredth counts.
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
        // 256 to 511 ns are usual; a piece of work counts with 2,048 ns.
        assert_eq!(of(&[(300, 99), (1_000_000, 1)]).mean_ns(), Some((300 * 99 + 2048) / 100));
        // One that is very short is no measure of the others.
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
