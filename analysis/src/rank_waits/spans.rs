//! The spans of a rank that waits are charged by: its own waits, and what its threads do while other ranks wait for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::Ranks;
use omptrace_timeline::model::Ns;
use omptrace_trace_format::Reader;

use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::model::place_id::PlaceId;
use crate::states::observer::{Due, Span, Spans, StateObserver};

/// When other ranks wait for a process, by the place of the awaited stream in its trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct AwaitedTimes {
    /// Merged intervals, in the order of time.
    by_thread: BTreeMap<u32, Vec<(Ns, Ns)>>,
}

impl AwaitedTimes {
    /// Those of each process of a job, in the timeline's order. `at`: where a time lies on the timeline that is analysed.
    pub(crate) fn of_job(ranks: &Ranks, processes: usize, at: impl Fn(Ns) -> Ns) -> Vec<Arc<AwaitedTimes>> {
        let of_job: Vec<_> = (0..processes).map(|number| ranks.process(number)).collect();
        let known = of_job.iter().enumerate();
        let by_rank: FastMap<u32, usize> =
            known.filter_map(|(number, of_rank)| Some((of_rank.as_ref()?.rank, number))).collect();
        let mut all = vec![AwaitedTimes::default(); processes];
        for joint in of_job.iter().flatten().flat_map(|of_rank| of_rank.joints().all()) {
            if let Some(number) = by_rank.get(&joint.rank) {
                let interval = (at(joint.begin), at(joint.until));
                all[*number].by_thread.entry(joint.of_thread).or_default().push(interval);
            }
        }
        all.iter_mut().flat_map(|of_rank| of_rank.by_thread.values_mut()).for_each(merge);
        all.into_iter().map(Arc::new).collect()
    }
}

/// Sorts intervals and merges those that touch.
fn merge(intervals: &mut Vec<(Ns, Ns)>) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, merged| {
        let touches = next.0 <= merged.1;
        if touches {
            merged.1 = merged.1.max(next.1);
        }
        touches
    });
}

/// A wait in a call of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waited {
    /// The place of the stream in the trace.
    pub(crate) thread: u32,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    /// The call, by its number in [`ProcessSpans::places`].
    pub(crate) place: u32,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) cause: Cause,
    /// By its number in [`ProcessSpans::places`].
    pub(crate) place: Option<u32>,
}

/// The spans of one process.
#[derive(Debug, Default)]
pub(crate) struct ProcessSpans {
    /// By thread and begin.
    pub(crate) waits: Vec<Waited>,
    /// By the place of the stream; in the order of time.
    pub(crate) activity: BTreeMap<u32, Vec<Activity>>,
    pub(crate) places: Vec<Place>,
}

/// A place of the process: the region, or the serial code before it.
type Spot = (PlaceId, bool);

/// What a thread does, before places have names.
#[derive(Clone, Copy, Debug)]
struct Kept {
    begin: Ns,
    end: Ns,
    cause: Cause,
    spot: Option<Spot>,
}

/// A thread, and what was kept of it.
#[derive(Debug, Default)]
struct Thread {
    /// The place of its stream in the trace.
    thread: u32,
    kept: Vec<Kept>,
    /// The first in `kept` of the serial code that goes on.
    serial: Option<usize>,
}

/// Keeps the spans of a process that waits are charged by.
#[derive(Debug)]
pub(crate) struct RankSpans {
    awaited: Arc<AwaitedTimes>,
    /// The numbers of the trace's streams, in order.
    streams: Vec<u32>,
    /// By location.
    threads: FastMap<usize, Thread>,
    waits: Vec<(u32, Ns, Ns, PlaceId)>,
    spans: Spans,
}

impl RankSpans {
    /// The spans of the process that `reader` reads, which others wait for at these times.
    pub(crate) fn of(awaited: Arc<AwaitedTimes>, reader: &Reader) -> RankSpans {
        let streams = reader.streams().iter().map(|stream| stream.number).collect();
        RankSpans {
            awaited,
            streams,
            threads: FastMap::default(),
            waits: Vec::new(),
            spans: Spans::default(),
        }
    }

    fn take_ready(&mut self) {
        let mut ready = std::mem::take(&mut self.spans.ready);
        ready.drain(..).for_each(|span| self.take(span));
        self.spans.ready = ready;
    }

    fn take(&mut self, span: Span) {
        let Some(of) = self.threads.get_mut(&span.location) else { return };
        let (cause, place, _) = span.why;
        if let (Cause::MpiWait, Some(place)) = (cause, place) {
            self.waits.push((of.thread, span.begin, span.end, place));
        }
        // Who comes in between does not end the serial code.
        let interrupts = matches!(cause, Cause::Preempted | Cause::Tracer | Cause::Unobserved);
        if let Some(place) = place.filter(|_| !interrupts)
            && let Some(first) = of.serial.take()
        {
            let serial = of.kept[first..].iter_mut().filter(|kept| kept.spot.is_none());
            serial.for_each(|kept| kept.spot = Some((place, true)));
        }
        let Some(awaited) = self.awaited.by_thread.get(&of.thread) else { return };
        let first = awaited.partition_point(|(_, end)| *end <= span.begin);
        for (begin, end) in awaited[first..].iter().take_while(|(begin, _)| *begin < span.end) {
            let (begin, end) = (span.begin.max(*begin), span.end.min(*end));
            if place.is_none() {
                of.serial.get_or_insert(of.kept.len());
            }
            of.kept.push(Kept { begin, end, cause, spot: place.map(|place| (place, false)) });
        }
    }

    /// The process has ended; `place` gives the place of a region.
    pub(crate) fn finish(mut self, place: impl Fn(PlaceId) -> Place) -> ProcessSpans {
        std::mem::take(&mut self.spans).finish().into_iter().for_each(|span| self.take(span));
        let mut all = ProcessSpans::default();
        let mut numbers: FastMap<Spot, u32> = FastMap::default();
        let places = &mut all.places;
        let mut number = |spot: Spot| {
            *numbers.entry(spot).or_insert_with(|| {
                let at = without_wait(place(spot.0));
                places.push(if spot.1 { Place::serial(None, Some(&at)) } else { at });
                places.len() as u32 - 1
            })
        };
        for (thread, begin, end, place) in self.waits {
            all.waits.push(Waited { thread, begin, end, place: number((place, false)) });
        }
        for thread in self.threads.into_values() {
            let activity = all.activity.entry(thread.thread).or_default();
            activity.extend(thread.kept.into_iter().map(|kept| Activity {
                begin: kept.begin,
                end: kept.end,
                cause: kept.cause,
                place: kept.spot.map(&mut number),
            }));
        }
        // Time in a barrier comes once its cause is known.
        all.activity.values_mut().for_each(|of| of.sort_unstable_by_key(|it| (it.begin, it.end)));
        all.waits.sort_unstable_by_key(|wait| (wait.thread, wait.begin));
        all
    }
}

/// The call, of the region that is the wait in it.
fn without_wait(mut place: Place) -> Place {
    if place.is_call() {
        // Without names, the address is behind it.
        place.construct = place.construct.replacen(" wait", "", 1);
    }
    place
}

impl StateObserver for RankSpans {
    fn add_thread(&mut self, location: usize) {
        self.spans.add_thread(location);
    }

    fn add_stream(&mut self, location: usize, stream: u32) {
        if let Ok(thread) = self.streams.binary_search(&stream) {
            let thread = Thread { thread: thread as u32, ..Thread::default() };
            self.threads.insert(location, thread);
        }
    }

    fn add(
        &mut self,
        lane: usize,
        spans: &mut dyn Iterator<Item = (Ns, Ns)>,
        cause: Cause,
        place: Option<PlaceId>,
        _: Option<Due>,
    ) {
        self.spans.add(lane, spans, cause, place, None);
        self.take_ready();
    }

    fn add_pending(&mut self, lane: usize, depth: usize, span: (Ns, Ns), place: PlaceId) {
        self.spans.add_pending(lane, depth, span, place);
    }

    fn end_pending(&mut self, lane: usize, depth: usize, cause: Cause, place: PlaceId) {
        self.spans.end_pending(lane, depth, cause, place);
        self.take_ready();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_touch_are_one() {
        let mut intervals = vec![(5, 9), (0, 2), (9, 12), (1, 3), (20, 21)];
        merge(&mut intervals);
        assert_eq!(intervals, [(0, 3), (5, 12), (20, 21)]);
    }
}
