//! Analyses one process in [segments](Segments::between_regions): each thread reads, interprets and adds up a segment.
//!
//! ```text
//! segment 1 --> collector --\
//! segment 2 --> collector ---> added up in order --> the collector of the process
//! segment 3 --> collector --/
//! ```
//!
//! A segment begins and ends between two parallel regions, where only the initial thread continues. So all sums of the
//! process are the sums over its segments, to the nanosecond, and the numbers are the same as without segments.

use omptrace_timeline::{Boundary, MAX_STREAMS};

use super::*;
use crate::passes::segments::Continues;

/// Minimum number of events per segment. Starting a segment costs as much as some thousand events per thread.
const MIN_EVENTS: u64 = 1 << 16;

impl<'a> Run<'a> {
    /// Allows the process to be analysed in segments.
    pub(super) fn in_segments(self) -> Run<'a> {
        Run { is_divisible: true, ..self }
    }

    /// The segments of the process, if it has checkpoints and several threads can analyse it. If only `windows` are
    /// analysed, a segment begins only if the parallel region before it began in the same window: then all regions that
    /// are open or have just ended count, as they do without windows.
    pub(super) fn segments_within(&self, windows: Option<&Windows>) -> Option<Segments> {
        let [Member { reader: Some(reader), summary: None, .. }] = &self.members[..] else {
            return None;
        };
        // Each thread reads all streams.
        let fitting = MAX_STREAMS / reader.streams().len().max(1);
        let parts = parallel::threads().min(fitting);
        let min_events = self.options.min_segment_events.unwrap_or(MIN_EVENTS);
        let is_wanted = |at: Boundary| windows.is_none_or(|windows| windows.hold(at.region_began, at.time));
        self.is_divisible.then(|| Segments::between_regions(reader, parts, min_events, is_wanted)).flatten()
    }

    /// The collectors of the process, added up over its segments, and the report. `None` if there are no segments, or
    /// if they do not fit together.
    pub(super) fn of_segments<C: Continues + Send>(
        &self,
        segments: Option<&Segments>,
        manner: Manner,
        new: impl Fn() -> C + Sync + Send,
    ) -> Option<(C, Report)> {
        let segments = segments?;
        // Looking names up in debug information takes long, so it is done once for all segments.
        let names = Table::of(self.members.first()?.reader?, &self.options.symbols);
        let manner = Manner { ahead: false, ..manner };
        let mut parts = in_parallel((0..segments.count()).collect(), |number| {
            let mut collector = new();
            let report = handed_over(vec![&mut collector], 0, KeptArguments::Counts, |sink| {
                let (names, wanted) = (|_: &Reader| names.clone(), number..number + 1);
                self.timeline.replay_segments(segments, wanted, &names, manner, sink, &mut |_| {})
            });
            let fits = number + 1 == segments.count() || collector.end_segment();
            fits.then_some((collector, report))
        })
        .into_iter();
        let (mut all, mut report) = parts.next()??;
        for part in parts {
            let (collector, of_part) = part?;
            if !all.append(collector) {
                return None;
            }
            // The report of the last segment covers all events.
            report = of_part;
        }
        all.complete();
        Some((all, report))
    }
}
