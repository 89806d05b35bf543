//! What collectors have in common that take in a segment of a process.

use omptrace_timeline::sink::Sink;

/// A collector from a segment of a process, which begins at an [`Item::Segment`](omptrace_timeline::sink::Item::Segment).
pub(crate) trait Continues: Sink {
    /// The segment ends, and is not the last. False where something goes on that the next one would have to know.
    fn end_segment(&mut self) -> bool;
    /// Adds the segment behind. False where the two do not fit: then this is of no use any more.
    fn append(&mut self, next: Self) -> bool;
    /// All segments are there.
    fn complete(&mut self);
}
