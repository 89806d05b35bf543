//! What happens between two MPI calls of a rank, as far as a replay of the job changes it.
//!
//! ```text
//! interval 0  [ call 0 ]  interval 1  [ call 1 ]  interval 2
//! ```

use std::sync::Arc;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::JobGraph;
use omptrace_timeline::model::Ns;

use crate::model::place_id::PlaceId;
use crate::model::sum::Sum as _;

/// Sums by interval.
#[derive(Debug)]
pub(super) struct Intervals {
    graph: Arc<JobGraph>,
    /// The rank's place in the graph.
    rank: usize,
    /// The time in outermost regions, by interval and region.
    regions: FastMap<(u32, PlaceId), u64>,
    /// The time that threads wait because of imbalance, summed over the threads.
    pub(super) imbalance: FastMap<u32, u64>,
}

impl Intervals {
    pub(super) fn of(graph: Arc<JobGraph>, rank: usize) -> Intervals {
        Intervals { graph, rank, regions: FastMap::default(), imbalance: FastMap::default() }
    }

    /// The visit of an outermost region.
    pub(super) fn add_visit(&mut self, region: PlaceId, span: (Ns, Ns)) {
        for (interval, ns) in overlaps(&self.graph, self.rank, span) {
            self.regions.entry((interval, region)).or_default().grow_by(ns);
        }
    }

    /// The time in each region, by interval.
    pub(super) fn regions(&self) -> impl Iterator<Item = (u32, PlaceId, u64)> + use<'_> {
        self.regions.iter().map(|((interval, region), ns)| (*interval, *region, *ns))
    }

    /// A thread waits because of imbalance.
    pub(super) fn add_imbalance(&mut self, span: (Ns, Ns)) {
        for (interval, ns) in overlaps(&self.graph, self.rank, span) {
            self.imbalance.entry(interval).or_default().grow_by(ns);
        }
    }
}

/// The intervals of a rank in a span, and how long.
fn overlaps(
    graph: &JobGraph,
    rank: usize,
    (begin, end): (Ns, Ns),
) -> impl Iterator<Item = (u32, u64)> + use<'_> {
    let calls = graph.ranks.get(rank).map_or(&[][..], |rank| &rank.calls[..]);
    let first = calls.partition_point(|call| call.begin <= begin);
    let intervals = (first..=calls.len()).map(move |interval| {
        let from = interval.checked_sub(1).map_or(Ns::MIN, |before| calls[before].end);
        let to = calls.get(interval).map_or(Ns::MAX, |call| call.begin);
        (interval as u32, from.max(begin), to.min(end), from)
    });
    let inside = intervals.take_while(move |(.., from)| *from < end);
    inside.filter(|(_, from, to, _)| from < to).map(|(interval, from, to, _)| (interval, from.abs_diff(to)))
}
