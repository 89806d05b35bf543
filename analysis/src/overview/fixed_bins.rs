//! The bins of a process that is analysed alone. They are the same whether or not it is analysed in segments.
//!
//! ```text
//! segment 1   |    |    |  : |
//! segment 2             |  : |    |    |
//!                        ^^^^^ a bin that two segments share
//! ```
//!
//! From the start, bins have the width that they need at the end of the process. The place that a bin shows is found by
//! a majority vote, which depends on the order of the votes, so the votes of two segments cannot be joined. Therefore,
//! the time of each place is kept in the bins that segments may share.

use std::collections::BTreeMap;

use omptrace_timeline::model::Ns;

use super::bins::MIN_WIDTH;
use crate::model::place_id::{PlaceId, SERIAL};
use crate::model::sum::Sum as _;

/// The width of the bins, and the bins that segments may share.
#[derive(Clone, Debug, Default)]
pub(crate) struct FixedBins {
    /// The process's last event.
    last: Ns,
    /// When segments may begin, in chronological order.
    boundaries: Vec<Ns>,
    /// The start and end of the process, as far as known.
    life: (Ns, Ns),
    /// `None` until the first time is added.
    width: Option<u32>,
    /// The numbers of the bins that segments may share.
    shared: Vec<i64>,
    /// By row and shared bin, the time of each place.
    times: BTreeMap<(usize, i64), BTreeMap<PlaceId, u64>>,
}

impl FixedBins {
    /// For a process whose last event is at `last`, and whose segments may begin at `boundaries`.
    pub(crate) fn new(last: Ns, boundaries: Vec<Ns>) -> FixedBins {
        FixedBins { last, boundaries, ..FixedBins::default() }
    }

    /// The process exists from `begin` until `ended`.
    pub(crate) fn set_life(&mut self, begin: Ns, ended: Option<Ns>) {
        let end = ended.map_or(self.last, |ended| ended.max(self.last));
        self.life = (begin, end.max(begin));
    }

    /// Several threads share a row, so the process has too many threads for segments.
    pub(crate) fn share_rows(&mut self) {
        self.boundaries.clear();
    }

    /// The width of the bins, of which there may be `max`.
    pub(crate) fn width(&mut self, max: usize) -> u32 {
        if let Some(width) = self.width {
            return width;
        }
        let (begin, end) = self.life;
        let last = end.saturating_sub(1).max(begin);
        let mut width = MIN_WIDTH;
        while (last >> width).abs_diff(begin >> width) >= max as u64 {
            width += 1;
        }
        self.width = Some(width);
        self.shared = self.boundaries.iter().map(|time| time >> width).collect();
        self.shared.dedup();
        width
    }

    /// Whether bins of `width` have not been widened.
    pub(crate) fn have_width(&self, width: u32) -> bool {
        self.width.is_none_or(|fixed| fixed == width)
    }

    /// Adds the time of a place.
    pub(crate) fn add(&mut self, row: usize, (begin, end): (Ns, Ns), place: PlaceId) {
        let Some(width) = self.width.filter(|_| begin < end) else {
            return;
        };
        let first = self.shared.partition_point(|bin| *bin < begin >> width);
        for bin in &self.shared[first..] {
            if *bin > (end - 1) >> width {
                break;
            }
            let (bin_begin, bin_end) = (bin << width, (bin + 1) << width);
            let ns = end.min(bin_end).abs_diff(begin.max(bin_begin));
            self.times.entry((row, *bin)).or_default().entry(place).or_default().grow_by(ns);
        }
    }

    /// A segment begins: what was before is not counted.
    pub(crate) fn begin_segment(&mut self) {
        self.times.clear();
    }

    /// Adds those of the following segment; `place` maps its places to those here.
    pub(crate) fn append(&mut self, next: FixedBins, place: &dyn Fn(PlaceId) -> PlaceId) {
        for (bin, times) in next.times {
            let known = self.times.entry(bin).or_default();
            for (id, ns) in times {
                known.entry(place(id)).or_default().grow_by(ns);
            }
        }
    }

    /// For each shared bin, its row, its number, and the time of each place.
    pub(crate) fn into_times(self) -> impl Iterator<Item = ((usize, i64), BTreeMap<PlaceId, u64>)> {
        self.times.into_iter()
    }
}

/// The place that stands for all serial code, or the place itself.
pub(crate) fn without_serial_places(place: Option<PlaceId>) -> PlaceId {
    place.map_or(SERIAL, |place| place.min(SERIAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_add_up_in_the_bins_that_they_share() {
        let spans = [(0, 3000, 1), (3000, 3100, 2), (3100, 9000, 1)];
        let bins = || {
            let mut bins = FixedBins::new(9000, vec![3050]);
            bins.set_life(0, None);
            assert_eq!(bins.width(4), 12);
            bins
        };
        let mut one = bins();
        for (begin, end, place) in spans {
            one.add(0, (begin, end), place);
        }
        let (mut first, mut second) = (bins(), bins());
        first.add(0, (0, 3000), 1);
        first.add(0, (3000, 3050), 2);
        // In the second segment, the places have other numbers.
        second.add(0, (0, 9), 7);
        second.begin_segment();
        second.add(0, (3050, 3100), 8);
        second.add(0, (3100, 9000), 7);
        first.append(second, &|place| place - 6);
        let times = |bins: FixedBins| bins.into_times().collect::<Vec<_>>();
        let expected = vec![((0, 0), BTreeMap::from([(1, 3000 + 4096 - 3100), (2, 100)]))];
        assert_eq!((times(one), times(first)), (expected.clone(), expected));
    }
}
