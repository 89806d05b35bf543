//! What collectors have in common that take in a segment of a process.

use std::collections::BTreeMap;

use omptrace_timeline::model::{Category, Sink};

/// A collector from a segment of a process, which begins at an [`Item::Segment`](omptrace_timeline::model::Item::Segment).
pub(crate) trait Continues: Sink {
    /// The segment ends, and is not the last. False where something goes on that the next one would have to know.
    fn end_segment(&mut self) -> bool;
    /// Adds the segment behind. False where the two do not fit: then this is of no use any more.
    fn append(&mut self, next: Self) -> bool;
    /// All segments are there.
    fn complete(&mut self);
}

/// The name, category and code address of a region, which no two share. Names alone do not tell those apart that are
/// near one line.
pub(crate) type RegionKey = (String, Category, Option<String>);

/// The numbers of the regions `more` of a later segment among the `own` ones: that of the same region, or else the next.
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
