//! Collectors of which the results of consecutive segments of a process can be joined.

use std::collections::BTreeMap;

use omptrace_timeline::model::{Category, Sink};

/// A collector for a segment of a process. A segment starts at an
/// [`Item::Segment`](omptrace_timeline::model::Item::Segment).
pub(crate) trait Continues: Sink {
    /// Ends a segment that is not the last one. False if something continues that the next segment would have to know
    /// about.
    fn end_segment(&mut self) -> bool;
    /// Adds the following segment. False if the two do not fit together; this collector is then unusable.
    fn append(&mut self, next: Self) -> bool;
    /// All segments have been added.
    fn complete(&mut self);
}

/// Name, category and code address of a region, which together are unique. The name alone is not: several regions may
/// be near the same line.
pub(crate) type RegionKey = (String, Category, Option<String>);

/// Maps the regions `more` of a later segment to numbers: the number of the same region among `own`, otherwise the next
/// free number.
pub(crate) fn region_numbers(
    own: impl Iterator<Item = RegionKey>,
    more: impl Iterator<Item = RegionKey>,
) -> Vec<usize> {
    let mut known: BTreeMap<RegionKey, usize> = BTreeMap::new();
    let mut count = 0;
    let mut number = |key: RegionKey| {
        let number = *known.entry(key).or_insert(count);
        count = count.max(number + 1);
        number
    };
    own.for_each(|key| {
        number(key);
    });
    more.map(number).collect()
}
