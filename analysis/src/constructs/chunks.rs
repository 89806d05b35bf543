//! Durations of loop chunks.

use std::collections::BTreeMap;

use omptrace_timeline::model::{Construct, Item, LocationId, Ns, RegionId, Sink, Wants};

use crate::model::histogram::Histogram;

/// Adds up the durations of chunks, by loop, for timelines that show chunks.
#[derive(Debug, Default)]
pub(crate) struct ChunkCollector {
    regions: Vec<(String, bool)>,
    /// By location, the open regions, each with its start.
    open: Vec<Vec<(RegionId, Ns)>>,
    by_loop: BTreeMap<RegionId, Histogram>,
    /// The durations in the later segments of the process, which have other numbers of regions.
    later: ChunkDurations,
}

impl ChunkCollector {
    /// The number of chunks per power of two of their duration in nanoseconds, by the name of the loop construct.
    pub(crate) fn durations(mut self) -> ChunkDurations {
        let mut durations = std::mem::take(&mut self.later);
        for (of_loop, histogram) in self.by_loop {
            if let Some((name, _)) = self.regions.get(of_loop.0 as usize) {
                durations.0.entry(name.clone()).or_default().merge(&histogram);
            }
        }
        durations
    }

    /// Adds the chunks of the following segment of the process.
    pub(crate) fn append(&mut self, next: ChunkCollector) {
        self.later.merge(next.durations());
    }

    fn leave(&mut self, location: LocationId, time: Ns) {
        let Some(open) = self.open.get_mut(location.0 as usize) else {
            return;
        };
        let Some((region, begin)) = open.pop() else {
            return;
        };
        let is_chunk = self.regions.get(region.0 as usize).is_some_and(|of| of.1);
        if let (true, Some((around, _))) = (is_chunk, open.last()) {
            let of_loop = self.by_loop.entry(*around).or_default();
            of_loop.add(time.abs_diff(begin));
        }
    }
}

impl Sink for ChunkCollector {
    fn wants(&self) -> Wants {
        Wants::NONE
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Region(region) => {
                let is_chunk = region.construct == Construct::Chunk;
                self.regions.push((region.name.clone(), is_chunk));
            }
            Item::Enter(enter) => {
                let location = enter.at.location.0 as usize;
                if location >= self.open.len() {
                    self.open.resize_with(location + 1, Vec::new);
                }
                self.open[location].push((enter.region, enter.at.time));
            }
            Item::Leave(leave) => self.leave(leave.at.location, leave.at.time),
            Item::Segment => self.by_loop.clear(),
            _ => {}
        }
    }
}

/// Durations of chunks by construct.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkDurations(BTreeMap<String, Histogram>);

impl ChunkDurations {
    /// Adds the durations of another process.
    pub(crate) fn merge(&mut self, other: ChunkDurations) {
        for (name, histogram) in other.0 {
            self.0.entry(name).or_default().merge(&histogram);
        }
    }

    /// The number of chunks per power of two of their duration in nanoseconds.
    pub(crate) fn powers(self) -> BTreeMap<String, Vec<u64>> {
        let each = self.0.into_iter();
        each.map(|(name, histogram)| (name, histogram.powers())).collect()
    }
}
