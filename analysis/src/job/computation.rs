//! How long ranks compute between their calls, as recorded or with a change.

use omptrace_timeline::model::Ns;
use omptrace_timeline::{CallBlock, JobGraph, RankGraph};

use crate::model::sum::Sum as _;

/// The computation of each rank before each of its calls, and after the last.
#[derive(Clone, Debug)]
pub(super) enum Computation {
    /// As recorded.
    Recorded,
    /// Without what is saved: by rank, the intervals and the nanoseconds, in order of the intervals.
    Less(Vec<Vec<(u32, u64)>>),
    /// Averaged over the ranks: by rank.
    Balanced(Vec<Vec<Part>>),
}

/// Intervals of a rank whose sum is changed. They keep their relative lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The interval after the last.
    until: usize,
    /// The recorded sum, and the new one.
    recorded: u64,
    new: u64,
}

impl Computation {
    /// The computation, averaged over the ranks between each two operations that all ranks of the job wait in. `lives`: when each
    /// rank began and ended.
    pub(super) fn balanced(graph: &JobGraph, lives: &[(Ns, Ns)]) -> Computation {
        let ends = common_calls(graph);
        let of_rank = |(place, (rank, life)): (usize, (&RankGraph, &(Ns, Ns)))| {
            let ends = ends.iter().map(|ends| ends[place] as usize + 1).chain([rank.len() + 1]);
            parts(rank, *life, ends)
        };
        let mut all: Vec<Vec<Part>> = graph.ranks.iter().zip(lives).enumerate().map(of_rank).collect();
        for number in 0..=ends.len() {
            let sums = all.iter().map(|parts| u128::from(parts[number].recorded));
            let mean = (sums.sum::<u128>() / all.len().max(1) as u128) as u64;
            all.iter_mut().for_each(|parts| parts[number].new = mean);
        }
        Computation::Balanced(all)
    }

    /// The computation without what is saved: by rank, the intervals and the nanoseconds, in any order.
    pub(super) fn less(savings: impl Iterator<Item = Vec<(u32, u64)>>) -> Computation {
        let sorted = savings.map(|mut savings| {
            savings.sort_unstable();
            savings
        });
        Computation::Less(sorted.collect())
    }

    /// That of the rank with this place in the graph.
    pub(super) fn pace(&self, rank: usize) -> Pace<'_> {
        match self {
            Computation::Recorded => Pace::Recorded,
            Computation::Less(all) => Pace::Less(all.get(rank).map_or(&[], |savings| savings)),
            Computation::Balanced(all) => {
                Pace::Balanced { parts: all.get(rank).map_or(&[], |parts| parts), before: 0, scaled: 0 }
            }
        }
    }
}

/// The computation of one rank, from interval to interval.
#[derive(Debug)]
pub(super) enum Pace<'c> {
    Recorded,
    /// What is saved from here on.
    Less(&'c [(u32, u64)]),
    /// The parts from here on, and the recorded and new sums of the intervals before in the first of them.
    Balanced {
        parts: &'c [Part],
        before: u128,
        scaled: u128,
    },
}

impl Pace<'_> {
    /// The computation in the next interval, which has this number and was recorded.
    pub(super) fn take(&mut self, interval: usize, recorded: u64) -> u64 {
        match self {
            Pace::Recorded => recorded,
            Pace::Less(savings) => {
                let mut rest = recorded;
                while let Some(((_, ns), following)) =
                    savings.split_first().filter(|((at, _), _)| *at as usize <= interval)
                {
                    rest = rest.saturating_sub(*ns);
                    *savings = following;
                }
                rest
            }
            Pace::Balanced { parts, before, scaled } => {
                while let Some((_, following)) =
                    parts.split_first().filter(|(part, _)| part.until <= interval)
                {
                    (*parts, *before, *scaled) = (following, 0, 0);
                }
                let Some(part) = parts.first() else { return recorded };
                // A rank that has computed nothing does its part at last.
                if part.recorded == 0 {
                    return if part.until == interval + 1 { part.new } else { 0 };
                }
                *before += u128::from(recorded);
                let until = *before * u128::from(part.new) / u128::from(part.recorded);
                let ns = until - *scaled;
                *scaled = until;
                ns as u64
            }
        }
    }
}

/// The parts of a rank that end before these intervals. Their sums are as recorded.
fn parts(rank: &RankGraph, (begin, end): (Ns, Ns), ends: impl Iterator<Item = usize>) -> Vec<Part> {
    let mut block = CallBlock::default();
    let (mut interval, mut from) = (0, begin);
    let mut sum_until = |until: usize| {
        let mut sum = 0_u64;
        while interval < until {
            let call = rank.call(interval, &mut block);
            let to = call.map_or(end, |call| call.begin);
            sum.grow_by(to.saturating_sub(from).max(0).cast_unsigned());
            from = call.map_or(end, |call| call.end);
            interval += 1;
        }
        sum
    };
    let part = |until| {
        let recorded = sum_until(until);
        Part { until, recorded, new: recorded }
    };
    ends.map(part).collect()
}

/// The calls in which all ranks of the job wait for each other, in chronological order; of each, its number in each rank.
fn common_calls(graph: &JobGraph) -> Vec<Vec<u32>> {
    let of_all = graph.gates.iter().filter(|gate| gate.is_of_all && gate.calls.len() == graph.ranks.len());
    // Calls are sorted by rank, and each rank has one.
    let mut all: Vec<Vec<u32>> =
        of_all.map(|gate| gate.calls.iter().map(|call| call.call).collect()).collect();
    all.sort_unstable();
    // Nobody can be in two at a time.
    all.dedup_by(|next, before| next.iter().zip(before.iter()).any(|(next, before)| next <= before));
    all
}
