//! What happens between two MPI calls of a rank, as far as a replay of the job changes it.
//!
//! ```text
//! interval 0  [ call 0 ]  interval 1  [ call 1 ]  interval 2
//! ```

use std::sync::Arc;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::Ns;
use omptrace_timeline::{CallBlock, JobGraph, RankGraph};

use crate::model::place_id::PlaceId;
use crate::model::sum::Sum as _;

/// Sums by interval.
#[derive(Debug)]
pub(super) struct Intervals {
    graph: Arc<JobGraph>,
    /// The rank's place in the graph.
    rank: usize,
    /// The calls that were looked up last.
    block: CallBlock,
    /// The time in outermost regions, by interval and region.
    regions: FastMap<(u32, PlaceId), u64>,
    /// The time that threads wait because of imbalance, summed over the threads.
    pub(super) imbalance: FastMap<u32, u64>,
}

impl Intervals {
    pub(super) fn of(graph: Arc<JobGraph>, rank: usize) -> Intervals {
        Intervals {
            graph,
            rank,
            block: CallBlock::default(),
            regions: FastMap::default(),
            imbalance: FastMap::default(),
        }
    }

    /// The visit of an outermost region.
    pub(super) fn add_visit(&mut self, region: PlaceId, span: (Ns, Ns)) {
        let Some(of) = self.graph.ranks.get(self.rank) else { return };
        overlaps(of, &mut self.block, span, |interval, ns| {
            self.regions.entry((interval, region)).or_default().grow_by(ns);
        });
    }

    /// The time in each region, by interval.
    pub(super) fn regions(&self) -> impl Iterator<Item = (u32, PlaceId, u64)> + use<'_> {
        self.regions.iter().map(|((interval, region), ns)| (*interval, *region, *ns))
    }

    /// A thread waits because of imbalance.
    pub(super) fn add_imbalance(&mut self, span: (Ns, Ns)) {
        let Some(of) = self.graph.ranks.get(self.rank) else { return };
        overlaps(of, &mut self.block, span, |interval, ns| {
            self.imbalance.entry(interval).or_default().grow_by(ns);
        });
    }
}

/// Calls `each` with the intervals of a rank in a span, and how long they are in it.
fn overlaps(of: &RankGraph, block: &mut CallBlock, (begin, end): (Ns, Ns), mut each: impl FnMut(u32, u64)) {
    let first = of.begun_until(begin, block);
    let before = first.checked_sub(1).and_then(|before| of.call(before, block));
    let mut from = before.map_or(Ns::MIN, |before| before.end);
    for interval in first..=of.len() {
        if from >= end {
            break;
        }
        let next = of.call(interval, block);
        let to = next.map_or(Ns::MAX, |call| call.begin).min(end);
        let since = from.max(begin);
        if since < to {
            each(interval as u32, since.abs_diff(to));
        }
        from = next.map_or(Ns::MAX, |call| call.end);
    }
}
