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

use omptrace_timeline::{Boundary, Excerpts, MAX_STREAMS, MIN_SEGMENT_EVENTS, may_have_checkpoints};
use omptrace_trace_format::Diagnostic;

use super::*;
use crate::passes::options::{EVENT_BYTES, distance_of_at_least};
use crate::passes::replay_log::{Logged, ReplayLog};
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
    ///
    /// If the whole process is analysed and the trace has no checkpoints, for example because `record` only estimated the
    /// results, [checkpoints](Run::new_checkpoints) are created first if `may_create` is true.
    pub(super) fn segments_within(&self, windows: Option<&Windows>, may_create: bool) -> Option<Segments> {
        let [Member { reader: Some(reader), summary: None, .. }] = &self.members[..] else {
            return None;
        };
        // Each thread reads all streams.
        let fitting = MAX_STREAMS / reader.streams().len().max(1);
        let parts = parallel::threads().min(fitting);
        let min_events = self.min_segment_events();
        let is_wanted = |at: Boundary| windows.is_none_or(|windows| windows.hold(at.region_began, at.time));
        if !self.is_divisible {
            return None;
        }
        let has_none = !Segments::have_checkpoints(reader);
        let new = match may_create && has_none && windows.is_none() {
            // The last segment need not be interpreted.
            true => self
                .new_checkpoints(reader, parts, |event_bytes| event_bytes - event_bytes / parts as u64 / 2),
            false => None,
        };
        Segments::between_regions(reader, new.unwrap_or_default(), parts, min_events, is_wanted)
    }

    /// Creates the checkpoints of the process before it is analysed, if it can then be analysed in segments.
    pub(super) fn with_new_checkpoints(self) -> Run<'a> {
        let [Member { reader: Some(reader), summary: None, .. }] = &self.members[..] else {
            return self;
        };
        let reader = *reader;
        let parts = parallel::threads().min(MAX_STREAMS / reader.streams().len().max(1));
        let checkpoints = self.new_checkpoints(reader, parts, |_| u64::MAX);
        let segments = checkpoints.clone().and_then(|checkpoints| {
            Segments::between_regions(reader, checkpoints, parts, self.min_segment_events(), |_| true)
        });
        Run { segments, checkpoints, ..self }
    }

    fn min_segment_events(&self) -> u64 {
        self.options.min_segment_events.unwrap_or(MIN_EVENTS)
    }

    /// Checkpoints for `parts` segments. To create them, the process is interpreted without being analysed, up to the
    /// number of bytes of events that `end` returns for all bytes. This takes about a tenth of the time of the analysis,
    /// so there are none if segments would be too short, or if it is known that no parallel region starts between them.
    fn new_checkpoints(
        &self,
        reader: &Reader,
        parts: usize,
        end: impl Fn(u64) -> u64,
    ) -> Option<Vec<Packed>> {
        let (event_bytes, min_events) = (reader.summary().event_bytes, self.min_segment_events());
        let is_damage = |diagnostic: &Diagnostic| diagnostic.severity > Severity::Note;
        if parts < 2
            || event_bytes / EVENT_BYTES < min_events.saturating_mul(2)
            || !may_have_checkpoints(reader.metadata())
            || reader.diagnostics().iter().any(is_damage)
            || !Excerpts::can_begin_after(reader, event_bytes / parts as u64)
        {
            return None;
        }
        let manner = Manner {
            checkpoints: Some(distance_of_at_least(min_events.min(MIN_SEGMENT_EVENTS), reader)),
            ahead: self.manner.ahead,
            ..Manner::default()
        };
        let until = reader.event_bytes_read().saturating_add(end(event_bytes));
        let mut sink = Until { reader, event_bytes: until };
        let names = |_: &Reader| Table::default();
        let report = self.timeline.replay(0, 1, &names, manner, &mut sink, &mut |_| {});
        Some(report.processes.into_iter().next()?.checkpoints)
    }

    /// The collectors of the process, added up over its segments, and the report. `None` if there are no segments, or
    /// if they do not fit together.
    pub(super) fn of_segments<C: Continues + Send>(
        &self,
        segments: Option<&Segments>,
        manner: Manner,
        new: impl Fn() -> C + Sync + Send,
    ) -> Option<(C, Report)> {
        let (all, report, _) = self.of_segments_with_logs(segments, manner, false, new)?;
        Some((all, report))
    }

    /// Like [`Run::of_segments`], and if `is_logged`, also the log of each segment.
    pub(super) fn of_segments_with_logs<C: Continues + Send>(
        &self,
        segments: Option<&Segments>,
        manner: Manner,
        is_logged: bool,
        new: impl Fn() -> C + Sync + Send,
    ) -> Option<(C, Report, Vec<ReplayLog>)> {
        let segments = segments?;
        // Looking names up in debug information takes long, so it is done once for all segments.
        let names = Table::of(self.members.first()?.reader?, &self.options.symbols);
        let manner = Manner { ahead: false, chunks: manner.chunks || is_logged, ..manner };
        let (all, parts) = of_parts(segments.count(), new, |number, collector| {
            let (names, wanted) = (|_: &Reader| names.clone(), number..number + 1);
            let interpret = |sink: &mut dyn Sink| {
                self.timeline.replay_segments(segments, wanted, &names, manner, sink, &mut |_| {})
            };
            match is_logged {
                true => {
                    let mut logged = Logged { log: ReplayLog::default(), sink: collector };
                    let report = interpret(&mut logged);
                    Some((report, Some(logged.log)))
                }
                false => Some((interpret(collector), None)),
            }
        })?;
        let (mut reports, logs): (Vec<Report>, Vec<Option<ReplayLog>>) = parts.into_iter().unzip();
        // The report of the last segment covers all events.
        Some((all, reports.pop()?, logs.into_iter().flatten().collect()))
    }
}

/// The collectors of a process, added up over the logs of its segments. `None` if a log cannot be read, or if the
/// segments do not fit together.
pub(super) fn of_logs<C: Continues + Send>(
    logs: &[ReplayLog],
    new: impl Fn() -> C + Sync + Send,
) -> Option<C> {
    let (all, _) = of_parts(logs.len(), new, |number, collector| logs[number].replay(collector).ok())?;
    Some(all)
}

/// The collectors of a process, added up over its `count` parts, and the results of `collect` for each part. `None` if
/// `collect` fails, or if the parts do not fit together.
fn of_parts<C: Continues + Send, R: Send>(
    count: usize,
    new: impl Fn() -> C + Sync + Send,
    collect: impl Fn(usize, &mut C) -> Option<R> + Sync + Send,
) -> Option<(C, Vec<R>)> {
    let parts = in_parallel((0..count).collect(), |number| {
        let mut collector = new();
        let result = collect(number, &mut collector)?;
        let fits = number + 1 == count || collector.end_segment();
        fits.then_some((collector, result))
    });
    let mut parts = parts.into_iter();
    let (mut all, first) = parts.next()??;
    let mut results = vec![first];
    for part in parts {
        let (collector, result) = part?;
        if !all.append(collector) {
            return None;
        }
        results.push(result);
    }
    all.complete();
    Some((all, results))
}

/// Ignores a timeline until this many bytes of events were read, and then ends the interpretation.
struct Until<'r> {
    reader: &'r Reader,
    event_bytes: u64,
}

impl Sink for Until<'_> {
    fn wants(&self) -> Wants {
        Wants::NONE
    }

    fn item(&mut self, _: &Item<'_>) {}

    fn failed(&self) -> bool {
        self.reader.event_bytes_read() >= self.event_bytes
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;
    use std::path::Path;

    use super::super::tests::traces;
    use super::*;

    const THREADS: NonZero<usize> = NonZero::new(4).expect("not zero");

    #[test]
    fn a_trace_without_checkpoints_is_divided_with_the_same_results() {
        parallel::limit_threads(THREADS);
        let mut segments = 0;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/0.2.0");
        for name in ["fortran", "killed", "locks", "stencil", "task_tree", "nested"] {
            let [reader] = &traces(&folder.join(name))[..] else { panic!("{name} has one trace") };
            assert!(!Segments::have_checkpoints(reader), "{name}");
            let json = |min_events| {
                let options = Options { min_segment_events: Some(min_events), ..Options::default() };
                let run = Run::of(&Input::traces(&[reader]), &options).in_segments();
                let count = run.segments_within(None, true).map_or(0, |segments| segments.count());
                let (stats, report) = Stats::with(&[reader], &options).expect("nothing is selected");
                let repairs: Vec<_> = report.processes.iter().map(|it| it.repairs.clone()).collect();
                (count, serde_json::to_string(&stats).expect("JSON"), repairs)
            };
            let (whole, divided) = (json(u64::MAX), json(1));
            assert_eq!(whole.0, 0);
            assert_eq!((divided.1, divided.2), (whole.1, whole.2), "{name}");
            segments += divided.0;
        }
        assert!(segments > 1, "{segments}");
    }
}
