//! Compares the ranks of a job: which ranks differ from the others, and which are missing.
//!
//! Ranks are compared by their thread time by cause. The median rank is computed cause by cause. A rank's distance from
//! it is the sum of the differences over all causes: an integer, which does not depend on the order of the ranks.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::model::accounting::Accounting;
use crate::model::cause::Cause;
use crate::model::process_stats::ProcessStats;

/// Maximum number of outliers.
const MAX_OUTLIERS: usize = 5;
/// A rank is an outlier if its distance is at least this share of the median's time.
const MIN_SHARE: f64 = 0.05;
/// With fewer ranks, no rank is typical.
const MIN_RANKS: usize = 3;

/// The comparison of a job's ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ranks {
    /// The number of ranks.
    pub count: usize,
    /// The rank nearest to the median; `None` if there are fewer than three ranks.
    pub median: Option<u32>,
    /// The median over the ranks, cause by cause.
    pub median_accounting: Accounting,
    /// The ranks that differ most from the median, largest distance first; at most five, and only ranks that differ
    /// clearly.
    pub outliers: Vec<Outlier>,
    /// The ranks below the highest one that have no trace.
    pub missing: Vec<u32>,
    /// The ranks whose process was killed or did not finish.
    pub died: Vec<u32>,
}

/// A rank that differs from the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// The id of its process in the statistics.
    pub process_id: u32,
    /// Its MPI rank.
    pub rank: u32,
    /// Its distance from the median: the sum of the differences over all causes.
    pub distance_ns: u64,
    /// The cause that differs most.
    pub cause: Cause,
    /// The rank's thread time with this cause.
    pub ns: u64,
    /// The median's time with this cause.
    pub median_ns: u64,
}

impl Ranks {
    /// Compares the ranks among `processes`; `None` if there are fewer than two.
    pub(crate) fn of(processes: &[ProcessStats]) -> Option<Ranks> {
        let ranks = processes.iter();
        let ranks: Vec<(u32, &ProcessStats)> =
            ranks.filter_map(|process| Some((process.rank?, process))).collect();
        let numbers: BTreeSet<u32> = ranks.iter().map(|(rank, _)| *rank).collect();
        let last = numbers.last().filter(|_| numbers.len() > 1)?;
        let is_one_job = numbers.len() == ranks.len();
        let mut all = Ranks {
            count: numbers.len(),
            // If `processes` belong to several jobs, one job may have fewer ranks than another.
            missing: match is_one_job {
                true => (0..*last).filter(|rank| !numbers.contains(rank)).collect(),
                false => Vec::new(),
            },
            died: ranks.iter().filter(|(_, process)| process.has_died()).map(|(rank, _)| *rank).collect(),
            ..Ranks::default()
        };
        if ranks.len() >= MIN_RANKS {
            all.compare(&ranks);
        }
        Some(all)
    }

    fn compare(&mut self, ranks: &[(u32, &ProcessStats)]) {
        let mut times = Vec::with_capacity(ranks.len());
        for cause in Cause::ALL {
            times.clear();
            times.extend(ranks.iter().map(|(_, process)| process.accounting[*cause]));
            let (_, median, _) = times.select_nth_unstable(ranks.len() / 2);
            self.median_accounting.add(*cause, *median);
        }
        let median = self.median_accounting;
        let mut outliers: Vec<Outlier> =
            ranks.iter().map(|(rank, process)| Outlier::of(*rank, process, &median)).collect();
        // Ranks with the same distance are sorted by number.
        outliers.sort_by_key(|outlier| (outlier.distance_ns, outlier.rank));
        self.median = outliers.first().map(|nearest| nearest.rank);
        let least = (median.total() as f64 * MIN_SHARE) as u64;
        // The nearest rank is not an outlier, however large all distances are.
        let far = outliers.into_iter().skip(1).rev();
        let far = far.filter(|outlier| outlier.distance_ns > least);
        self.outliers = far.take(MAX_OUTLIERS).collect();
    }
}

impl Outlier {
    fn of(rank: u32, process: &ProcessStats, median: &Accounting) -> Outlier {
        let differences = Cause::ALL.iter().map(|cause| {
            let difference = process.accounting[*cause].abs_diff(median[*cause]);
            (difference, *cause)
        });
        let distance = differences.clone().map(|(ns, _)| ns);
        // If differences are equal, the first cause.
        let most = differences.rev().max_by_key(|(ns, _)| *ns);
        let cause = most.map_or(Cause::Useful, |(_, cause)| cause);
        Outlier {
            process_id: process.id,
            rank,
            distance_ns: distance.fold(0, u64::saturating_add),
            cause,
            ns: process.accounting[cause],
            median_ns: median[cause],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(rank: u32, useful: u64, lock: u64) -> ProcessStats {
        let mut accounting = Accounting::default();
        accounting.add(Cause::Useful, useful);
        accounting.add(Cause::Lock, lock);
        ProcessStats {
            id: rank + 100,
            rank: Some(rank),
            accounting,
            ending: "ended".to_owned(),
            ..ProcessStats::default()
        }
    }

    #[test]
    fn the_rank_that_waits_for_locks_is_found_and_so_is_the_one_that_is_missing() {
        let mut processes: Vec<_> =
            (0..10).filter(|number| *number != 4).map(|number| rank(number, 1000, 10)).collect();
        processes[7] = rank(8, 300, 710);
        processes[2].ending = "killed by signal 9".to_owned();
        let ranks = Ranks::of(&processes).expect("ranks");
        assert_eq!((ranks.count, ranks.median), (9, Some(0)));
        assert_eq!((&ranks.missing[..], &ranks.died[..]), (&[4][..], &[2][..]));
        let outlier = Outlier {
            process_id: 108,
            rank: 8,
            distance_ns: 1400,
            cause: Cause::Useful,
            ns: 300,
            median_ns: 1000,
        };
        assert_eq!(ranks.outliers, [outlier]);
        processes.reverse();
        assert_eq!(Ranks::of(&processes), Some(ranks));
    }

    #[test]
    fn one_process_or_none_with_a_rank_are_no_ranks() {
        assert_eq!(Ranks::of(&[rank(3, 5, 5)]), None);
        let none = ProcessStats::default();
        assert_eq!(Ranks::of(&[none.clone(), none]), None);
    }

    #[test]
    fn ranks_of_several_jobs_are_not_missing() {
        let processes = [rank(0, 5, 5), rank(5, 5, 5), rank(0, 5, 5)];
        assert!(Ranks::of(&processes).expect("ranks").missing.is_empty());
    }
}
