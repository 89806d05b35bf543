//! The spans of a rank from which waits are charged: its own waits, and what its threads do while other ranks wait for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::Ns;
use omptrace_timeline::{JobGraph, Ranks};
use omptrace_trace_format::Reader;

use crate::job::walk::Walk;
use crate::model::cause::Cause;
use crate::model::intervals::merged;
use crate::model::place::Place;
use crate::model::place_id::PlaceId;
use crate::model::sum::Sum as _;
use crate::rank_waits::intervals::Intervals;
use crate::rank_waits::process_path::{ProcessPath, Site};
use crate::states::observer::{AwaitedMutex, Span, Spans, StateObserver};

/// The times in which it matters to other ranks what a process does.
#[derive(Clone, Debug, Default)]
pub(crate) struct AwaitedTimes {
    /// When other ranks wait for a thread: merged intervals in chronological order, by the index of the awaited stream in the
    /// process's trace.
    by_thread: BTreeMap<u32, Vec<(Ns, Ns)>>,
    /// When a thread is on the job's critical path.
    path: BTreeMap<u32, Vec<(Ns, Ns)>>,
    /// The calls between which the process's activity is needed, and its place in the graph.
    graph: Option<(Arc<JobGraph>, usize)>,
}

impl AwaitedTimes {
    /// The times of each process of a job, in the timeline's order. `at` maps times to the timeline that is analysed.
    /// `walk`: the job's critical path, if the whole job is analysed.
    pub(crate) fn of_job(
        ranks: &Ranks,
        processes: usize,
        at: impl Fn(Ns) -> Ns,
        walk: Option<&Walk>,
    ) -> Vec<Arc<AwaitedTimes>> {
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
        if let Some(walk) = walk {
            all.iter_mut().zip(&walk.times).for_each(|(of_rank, path)| of_rank.path.clone_from(path));
            for (place, of_rank) in ranks.graph().iter().flat_map(|graph| graph.ranks.iter().enumerate()) {
                if let (Some(graph), Some(number)) = (ranks.graph(), by_rank.get(&of_rank.rank)) {
                    all[*number].graph = Some((Arc::clone(graph), place));
                }
            }
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

/// What a thread does on the job's critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OnPath {
    pub(crate) cause: Cause,
    /// By its number in [`ProcessSpans::places`].
    pub(crate) place: Option<u32>,
    pub(crate) ns: u64,
}

/// The spans of one process.
#[derive(Debug, Default)]
pub(crate) struct ProcessSpans {
    /// Sums over the critical path's times.
    pub(crate) path: Vec<OnPath>,
    /// Between calls: the time in outermost regions, by the interval and the region's number in [`ProcessSpans::places`].
    pub(crate) regions: Vec<(u32, u32, u64)>,
    /// Between calls: the time that threads wait because of imbalance, summed over the threads.
    pub(crate) imbalance: Vec<(u32, u64)>,
    /// The time in outermost regions.
    pub(crate) in_regions_ns: u64,
    /// Useful time outside of regions.
    pub(crate) serial_useful_ns: u64,
    /// Sorted by thread and begin.
    pub(crate) waits: Vec<Waited>,
    /// By the index of the stream; in chronological order.
    pub(crate) activity: BTreeMap<u32, Vec<Activity>>,
    pub(crate) places: Vec<Place>,
    /// The places of the process's MPI call sites.
    pub(crate) sites: Vec<Option<Place>>,
}

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
    /// If the process is on the job's critical path.
    path: Option<ProcessPath>,
    intervals: Option<Intervals>,
    in_regions_ns: u64,
    serial_useful_ns: u64,
    spans: Spans,
}

impl RankSpans {
    /// A collector for the process in `reader`, for which others wait in the times `awaited`.
    pub(crate) fn of(awaited: Arc<AwaitedTimes>, reader: &Reader) -> RankSpans {
        let streams = reader.streams().iter().map(|stream| stream.number).collect();
        let graph = awaited.graph.clone();
        RankSpans {
            intervals: graph.map(|(graph, place)| Intervals::of(graph, place)),
            path: (!awaited.path.is_empty()).then(|| ProcessPath::of(awaited.path.clone())),
            awaited,
            in_regions_ns: 0,
            serial_useful_ns: 0,
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
        if let Some(intervals) = self.intervals.as_mut().filter(|_| cause == Cause::Imbalance) {
            intervals.add_imbalance((span.begin, span.end));
        }
        if let (Cause::Useful, None) = (cause, place) {
            self.serial_useful_ns.grow_by(span.begin.abs_diff(span.end));
        }
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
        let mut all = ProcessSpans {
            in_regions_ns: self.in_regions_ns,
            serial_useful_ns: self.serial_useful_ns,
            ..ProcessSpans::default()
        };
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
        for (interval, region, ns) in self.intervals.iter().flat_map(Intervals::regions) {
            all.regions.push((interval, number((region, false)), ns));
        }
        all.imbalance =
            self.intervals.iter().flat_map(|it| it.imbalance.iter().map(|(at, ns)| (*at, *ns))).collect();
        let on_path = self.path.into_iter().flat_map(ProcessPath::finish);
        all.path =
            on_path.map(|((cause, site), ns)| OnPath { cause, place: site.map(&mut number), ns }).collect();
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
        let stream = self.threads.get(&location).map(|of| of.thread);
        self.path.iter_mut().for_each(|path| path.add_thread(stream));
    }

    fn add_stream(&mut self, location: usize, stream: u32) {
        if let Ok(thread) = self.streams.binary_search(&stream) {
            let thread = thread as u32;
            self.threads.insert(location, Thread { thread, ..Thread::default() });
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
        for (begin, end) in spans {
            if let Some(path) = &mut self.path {
                path.add(index, (begin, end), cause, place);
            }
            self.spans.add(index, &mut std::iter::once((begin, end)), cause, place, None);
        }
        self.take_ready();
    }

    fn add_pending(&mut self, index: usize, depth: usize, span: (Ns, Ns), place: PlaceId) {
        if let Some(path) = &mut self.path {
            path.add_pending(index, depth, span, place);
        }
        self.spans.add_pending(index, depth, span, place);
    }

    fn end_pending(&mut self, index: usize, depth: usize, cause: Cause, place: PlaceId) {
        if let Some(path) = &mut self.path {
            path.end_pending(index, depth, cause, place);
        }
        self.spans.end_pending(index, depth, cause, place);
        self.take_ready();
    }

    fn fork(&mut self, index: usize, time: Ns) {
        if let Some(path) = &mut self.path {
            path.fork(index, time);
        }
    }

    fn last_arrives(&mut self, index: usize, time: Ns, region: PlaceId, members: &[usize]) {
        if let Some(path) = &mut self.path {
            path.last_arrives(index, time, region, members);
        }
    }

    fn add_visit(&mut self, region: PlaceId, span: (Ns, Ns)) {
        self.in_regions_ns.grow_by(span.0.abs_diff(span.1));
        if let Some(intervals) = &mut self.intervals {
            intervals.add_visit(region, span);
        }
    }
}
