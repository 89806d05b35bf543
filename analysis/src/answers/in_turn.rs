//! Processes that run one after the other, as those of a script: what the busiest of each do, and their critical paths, follow each other.

use serde::{Deserialize, Serialize};

use super::part::{Life, Path};
use crate::model::sum::Sum;

/// The busiest thread of a process, and its critical path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Longest {
    pub(super) life: Life,
    /// The most useful time that a thread had.
    pub(super) max_useful: u64,
    pub(super) path: Path,
}

/// The most useful time of one thread, where those of processes that follow each other count as one: no mean over the threads at the
/// busiest time is above it.
pub(super) fn max_useful(all: &[Longest]) -> u64 {
    let chain = heaviest(all, |one| one.max_useful);
    chain.into_iter().fold(0, |mut sum, one| {
        sum.grow_by(one.max_useful);
        sum
    })
}

/// The longest critical path through processes that follow each other.
pub(super) fn path(all: &[Longest]) -> Path {
    let mut path = Path::default();
    for one in heaviest(all, |one| one.path.ns) {
        path.append(&one.path);
    }
    path
}

/// The processes of which each begins when the one before has ended, and that weigh most together.
fn heaviest(all: &[Longest], weight: impl Fn(&Longest) -> u64) -> Vec<&Longest> {
    let mut by_end: Vec<&Longest> = all.iter().collect();
    by_end.sort_by(|a, b| (a.life.end, a).cmp(&(b.life.end, b)));
    // The most that the first so many weigh; and how many come before the last of these, where that is one of them.
    let mut most: Vec<(u64, Option<usize>)> = vec![(0, None)];
    for (index, one) in by_end.iter().enumerate() {
        let before = by_end[..index].partition_point(|other| other.life.end <= one.life.begin);
        let with = most[before].0.saturating_add(weight(one));
        let without = most[index].0;
        most.push(if with > without { (with, Some(before)) } else { (without, None) });
    }
    let mut chain = Vec::new();
    let mut left = by_end.len();
    while left > 0 {
        left = match most[left].1 {
            Some(before) => {
                chain.push(by_end[left - 1]);
                before
            }
            None => left - 1,
        };
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_each_other_adds_up() {
        let one = |begin, end, max_useful| Longest {
            life: Life { begin, end, ..Life::default() },
            max_useful,
            path: Path { ns: max_useful, ..Path::default() },
        };
        // Two in turn beside one.
        let all = [one(0, 10, 8), one(10, 20, 7), one(5, 18, 12)];
        assert_eq!((max_useful(&all), path(&all).ns), (15, 15));
        assert_eq!(max_useful(&all[1..]), 12);
        assert_eq!(max_useful(&[]), 0);
    }
}
