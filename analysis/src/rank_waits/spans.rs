//! The spans of a rank from which waits are charged: its own waits, and what its threads do while other ranks wait for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::Ranks;
use omptrace_timeline::model::Ns;
use omptrace_trace_format::Reader;

use crate::model::cause::Cause;
use crate::model::intervals::merged;
use crate::model::place::Place;
use crate::model::place_id::PlaceId;
use crate::states::observer::{AwaitedMutex, Span, Spans, StateObserver};

/// The times in which other ranks wait for a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct AwaitedTimes {
    /// Merged intervals in chronological order, by the index of the awaited stream in the process's trace.
    by_thread: BTreeMap<u32, Vec<(Ns, Ns)>>,
}

impl AwaitedTimes {
    /// The times of each process of a job, in the timeline's order. `at` maps times to the timeline that is analysed.
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
        for intervals in all.iter_mut().flat_map(|of_rank| of_rank.by_thread.values_mut()) {
            *intervals = merged(std::mem::take(intervals));
        }
        all.into_iter().map(Arc::new).collect()
    }
}

/// A wait in a call of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waited {
    /// The index of the thread's stream in the trace.
    pub(crate) thread: u32,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    /// The call, by its number in [`ProcessSpans::places`].
    pub(crate) place: u32,
}

/// A thread's state.
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
    /// Sorted by thread and begin.
    pub(crate) waits: Vec<Waited>,
    /// By the index of the stream; in chronological order.
    pub(crate) activity: BTreeMap<u32, Vec<Activity>>,
    pub(crate) places: Vec<Place>,
    /// The places of the process's MPI call sites.
    pub(crate) sites: Vec<Option<Place>>,
}

/// A place of the process: the region, or the serial code before it.
type Site = (PlaceId, bool);

/// A thread's state, before places have names.
#[derive(Clone, Copy, Debug)]
struct UnnamedActivity {
    begin: Ns,
    end: Ns,
    cause: Cause,
    site: Option<Site>,
}

/// A thread, and its states while others wait for it.
#[derive(Debug, Default)]
struct Thread {
    /// The index of its stream in the trace.
    thread: u32,
    kept: Vec<UnnamedActivity>,
    /// The index in `kept` of the first state in the serial code that has not ended yet.
    serial: Option<usize>,
}

/// Collects the spans of a process from which waits are charged.
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
    /// A collector for the process in `reader`, for which others wait in the times `awaited`.
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
        // These interrupt serial code, but do not end it.
        let interrupts = matches!(cause, Cause::Preempted | Cause::Tracer | Cause::Unobserved);
        if let Some(place) = place.filter(|_| !interrupts)
            && let Some(first) = of.serial.take()
        {
            let serial = of.kept[first..].iter_mut().filter(|kept| kept.site.is_none());
            serial.for_each(|kept| kept.site = Some((place, true)));
        }
        let Some(awaited) = self.awaited.by_thread.get(&of.thread) else { return };
        let first = awaited.partition_point(|(_, end)| *end <= span.begin);
        for (begin, end) in awaited[first..].iter().take_while(|(begin, _)| *begin < span.end) {
            let (begin, end) = (span.begin.max(*begin), span.end.min(*end));
            if place.is_none() {
                of.serial.get_or_insert(of.kept.len());
            }
            of.kept.push(UnnamedActivity { begin, end, cause, site: place.map(|place| (place, false)) });
        }
    }

    /// The spans, when the process has ended. `place` returns the place of a region.
    pub(crate) fn finish(mut self, place: impl Fn(PlaceId) -> Place) -> ProcessSpans {
        std::mem::take(&mut self.spans).finish().into_iter().for_each(|span| self.take(span));
        let mut all = ProcessSpans::default();
        let mut numbers: FastMap<Site, u32> = FastMap::default();
        let places = &mut all.places;
        let mut number = |site: Site| {
            *numbers.entry(site).or_insert_with(|| {
                let at = without_wait(place(site.0));
                places.push(if site.1 { Place::serial(None, Some(&at)) } else { at });
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
                place: kept.site.map(&mut number),
            }));
        }
        // Barrier times are added later than they occur, when their cause is known.
        all.activity.values_mut().for_each(|of| of.sort_unstable_by_key(|it| (it.begin, it.end)));
        all.waits.sort_unstable_by_key(|wait| (wait.thread, wait.begin));
        all
    }
}

/// The place of the call, from the place of the wait in it.
fn without_wait(mut place: Place) -> Place {
    if place.is_call() {
        // If the function has no name, the address follows.
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
        index: usize,
        spans: &mut dyn Iterator<Item = (Ns, Ns)>,
        cause: Cause,
        place: Option<PlaceId>,
        _: Option<AwaitedMutex>,
    ) {
        self.spans.add(index, spans, cause, place, None);
        self.take_ready();
    }

    fn add_pending(&mut self, index: usize, depth: usize, span: (Ns, Ns), place: PlaceId) {
        self.spans.add_pending(index, depth, span, place);
    }

    fn end_pending(&mut self, index: usize, depth: usize, cause: Cause, place: PlaceId) {
        self.spans.end_pending(index, depth, cause, place);
        self.take_ready();
    }
}
