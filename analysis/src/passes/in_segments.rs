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

use omptrace_timeline::MAX_STREAMS;

use super::*;
use crate::passes::segments::Continues;

/// Minimum number of events per segment. Starting a segment costs as much as some thousand events per thread.
const MIN_EVENTS: u64 = 1 << 16;

impl<'a> Run<'a> {
    /// Divides the process into segments, if it has checkpoints and several threads can analyse it.
    pub(super) fn in_segments(self) -> Run<'a> {
        let Options { window, phase, selected, min_segment_events, .. } = self.options;
        let is_all = window.is_none() && phase.is_none() && selected.is_empty();
        let segments = match &self.members[..] {
            [Member { reader: Some(reader), summary: None, .. }] if is_all => {
                // Each thread reads all streams.
                let fitting = MAX_STREAMS / reader.streams().len().max(1);
                let parts = parallel::threads().min(fitting);
                let min_events = min_segment_events.unwrap_or(MIN_EVENTS);
                Segments::between_regions(reader, parts, min_events)
            }
            _ => None,
        };
        Run { segments, ..self }
    }

    /// The collectors of the process, added up over its segments, and the report. `None` if there are no segments, or
    /// if they do not fit together.
    pub(super) fn of_segments<C: Continues + Send>(
        &self,
        manner: Manner,
        new: impl Fn() -> C + Sync + Send,
    ) -> Option<(C, Report)> {
        let segments = self.segments.as_ref()?;
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

/// The first pass over a segment.
pub(super) struct First {
    pub(super) phases: PhaseCollector,
    pub(super) numbers: Collector,
    pub(super) answers: collector::Collector<0>,
}

impl Sink for First {
    fn wants(&self) -> Wants {
        let wants = self.phases.wants().and(self.numbers.wants());
        wants.and(self.answers.wants())
    }

    fn item(&mut self, item: &Item<'_>) {
        self.phases.item(item);
        self.numbers.item(item);
        self.answers.item(item);
    }
}

impl Continues for First {
    fn end_segment(&mut self) -> bool {
        // No short circuit: both must end their segment, even if the first one does not fit.
        self.numbers.end_segment() & self.answers.end_segment()
    }

    fn append(&mut self, next: First) -> bool {
        self.phases.append(next.phases);
        self.numbers.append(next.numbers) && self.answers.append(next.answers)
    }

    fn complete(&mut self) {
        self.numbers.complete();
        self.answers.complete();
    }
}
