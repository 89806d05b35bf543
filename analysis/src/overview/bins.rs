//! Sums over time in bins, which become wider as time passes.
//!
//! The width of a bin is a power of two, and a bin starts at a multiple of its width. So two adjacent bins merge
//! exactly into one of twice the width.

use std::collections::VecDeque;

use omptrace_timeline::model::Ns;

/// Maximum number of bins in a row, if there are few rows.
pub(crate) const MAX_BINS: usize = 4096;
/// Width of the narrowest bin, as a power of two in nanoseconds: about a microsecond.
pub(crate) const MIN_WIDTH: u32 = 10;

/// Values that can be added up.
pub(crate) trait Merge: Default {
    fn merge(&mut self, other: &Self);
}

impl Merge for u64 {
    fn merge(&mut self, other: &u64) {
        *self = self.saturating_add(*other);
    }
}

/// Sums over time.
#[derive(Clone, Debug)]
pub(crate) struct Bins<T> {
    /// The width of a bin is `2^width` nanoseconds.
    pub(crate) width: u32,
    /// The number of the first bin, which starts at `first` times the width.
    pub(crate) first: i64,
    pub(crate) cells: VecDeque<T>,
}

impl<T> Default for Bins<T> {
    fn default() -> Self {
        Bins { width: MIN_WIDTH, first: 0, cells: VecDeque::new() }
    }
}

impl<T: Merge> Bins<T> {
    /// Doubles the width of the bins.
    pub(crate) fn widen(&mut self) {
        let first = self.first.div_euclid(2);
        let mut wider: VecDeque<T> = VecDeque::new();
        for (cell, number) in self.cells.iter().zip(self.first..) {
            let index = number.div_euclid(2).abs_diff(first) as usize;
            if index == wider.len() {
                wider.push_back(T::default());
            }
            wider[index].merge(cell);
        }
        self.width += 1;
        self.first = first;
        self.cells = wider;
    }

    pub(crate) fn limit(&mut self, max: usize) {
        while self.cells.len() > max {
            self.widen();
        }
    }

    pub(crate) fn widen_to(&mut self, width: u32) {
        while self.width < width {
            self.widen();
        }
    }

    /// Extends the bins so that they cover `begin` to `end`, widening them if there would be more than `max`.
    pub(crate) fn cover(&mut self, begin: Ns, end: Ns, max: usize) {
        loop {
            let (low, high) = (begin >> self.width, end >> self.width);
            let (low, high) = match self.cells.len() {
                0 => (low, high),
                length => (low.min(self.first), high.max(self.first + length as i64 - 1)),
            };
            if high.abs_diff(low) >= max as u64 {
                self.widen();
                continue;
            }
            if self.cells.is_empty() {
                self.first = low;
            }
            while self.first > low {
                self.first -= 1;
                self.cells.push_front(T::default());
            }
            let length = high.abs_diff(low) as usize + 1;
            while self.cells.len() < length {
                self.cells.push_back(T::default());
            }
            return;
        }
    }

    /// Adds the time from `begin` to `end`: `add` adds the part that lies in a bin to that bin.
    pub(crate) fn fill(&mut self, begin: Ns, end: Ns, max: usize, add: impl Fn(&mut T, u64)) {
        if begin >= end {
            return;
        }
        let last = end - 1;
        self.cover(begin, last, max);
        let mut from = begin;
        for number in (begin >> self.width)..=(last >> self.width) {
            let until = match number == last >> self.width {
                true => end,
                false => (number + 1) << self.width,
            };
            let index = number.abs_diff(self.first) as usize;
            add(&mut self.cells[index], until.abs_diff(from));
            from = until;
        }
    }

    /// The bin with this number, if it exists.
    pub(crate) fn get(&self, number: i64) -> Option<&T> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.cells.get(index)
    }

    /// Like [`Bins::get`].
    pub(crate) fn get_mut(&mut self, number: i64) -> Option<&mut T> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.cells.get_mut(index)
    }

    /// The bin that contains `time`.
    pub(crate) fn at(&mut self, time: Ns, max: usize) -> &mut T {
        self.cover(time, time, max);
        let number = time >> self.width;
        &mut self.cells[number.abs_diff(self.first) as usize]
    }
}

/// Adds `other` to `bins`, with at most `max` bins.
pub(crate) fn merge_bins<T: Merge>(bins: &mut Bins<T>, other: &mut Bins<T>, max: usize) {
    if other.cells.is_empty() {
        return;
    }
    if bins.cells.is_empty() {
        *bins = std::mem::take(other);
        return;
    }
    let last = |bins: &Bins<T>| bins.first + bins.cells.len() as i64 - 1;
    bins.widen_to(other.width);
    loop {
        other.widen_to(bins.width);
        let (begin, end) = (other.first << other.width, last(other) << other.width);
        bins.cover(begin, end, max);
        if bins.width == other.width {
            break;
        }
    }
    for (number, cell) in (other.first..).zip(&other.cells) {
        bins.cells[number.abs_diff(bins.first) as usize].merge(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(row: &Bins<u64>) -> (i64, Vec<u64>) {
        (row.first << row.width, row.cells.iter().copied().collect())
    }

    fn add(sum: &mut u64, ns: u64) {
        *sum += ns;
    }

    #[test]
    fn time_is_spread_over_bins_to_the_nanosecond() {
        let mut row = Bins::default();
        row.fill(-100, 2_000, 64, add);
        assert_eq!(sums(&row), (-1024, vec![100, 1024, 976]));
    }

    #[test]
    fn bins_grow_wider_and_keep_their_sums() {
        let mut row = Bins::default();
        for time in 0..10_000 {
            row.fill(time * 1_000, time * 1_000 + 7, 16, add);
        }
        assert!(row.cells.len() <= 16 && row.cells.len() > 8, "{row:?}");
        assert_eq!(row.cells.iter().sum::<u64>(), 70_000);
        // An invalid time.
        *row.at(Ns::MIN, 16) += 1;
        *row.at(Ns::MAX, 16) += 1;
        assert!(row.cells.len() <= 16, "{row:?}");
        assert_eq!(row.cells.iter().sum::<u64>(), 70_002);
    }

    #[test]
    fn sums_over_time_are_merged_at_the_wider_width() {
        let (mut one, mut other) = (Bins::default(), Bins::default());
        one.fill(0, 100_000, 256, add);
        other.fill(5_000_000, 5_000_010, 256, add);
        merge_bins(&mut one, &mut other, 16);
        assert!(one.cells.len() <= 16, "{one:?}");
        assert_eq!(one.cells.iter().sum::<u64>(), 100_010);
    }
}
