//! What a process does on the job's critical path, in sums: a path is as long as the job, and its spans may be many.
//!
//! ```text
//! thread that calls MPI   serial | work   wait   | work      | serial
//! another thread                 |  work         | work wait |
//! path                    ------>| ------------->|           |------>
//!                                                |---------->|
//!                              fork           barrier     barrier
//! ```
//!
//! The job's path says when a thread that calls MPI is on it. In a parallel region, the path is on the thread that arrives last at the
//! next barrier: until the fork, or the barrier before, no other thread has kept it waiting.

use std::collections::{BTreeMap, VecDeque};

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::Ns;

use crate::model::cause::Cause;
use crate::model::place_id::PlaceId;
use crate::model::sum::{Sum as _, sum};
use crate::states::observer::PendingBarriers;

/// Windows that are remembered, because the cause of barrier times is known late.
const MAX_WINDOWS: usize = 64;

/// A place of the process: the region, or the serial code before it.
pub(super) type Site = (PlaceId, bool);

/// Times by cause and place.
pub(super) type PathSums = FastMap<(Cause, Option<Site>), u64>;

/// A thread, since the last time at which the path may have gone from one thread to another.
#[derive(Debug, Default)]
struct Thread {
    /// The times on the path at which it calls MPI, if the process has several such threads.
    times: Option<Vec<(Ns, Ns)>>,
    sums: PathSums,
    /// The sums of serial code that has not ended yet.
    serial: Vec<(Cause, u64)>,
    /// When its first state began.
    first: Option<Ns>,
    pending: PendingBarriers,
}

/// The path in one process.
#[derive(Debug, Default)]
pub(super) struct ProcessPath {
    /// When the threads that call MPI are on the path, in chronological order, by the index of the stream.
    by_stream: BTreeMap<u32, Vec<(Ns, Ns)>>,
    threads: Vec<Thread>,
    /// The only thread that calls MPI on the path.
    caller: Option<usize>,
    /// When the window began, and whether a region was forked then.
    since: Ns,
    is_forked: bool,
    /// The windows before, each with its thread.
    windows: VecDeque<(Ns, Ns, usize)>,
    total: PathSums,
}

impl ProcessPath {
    /// The path is in the process at these times of threads, by the index of the stream.
    pub(super) fn of(by_stream: BTreeMap<u32, Vec<(Ns, Ns)>>) -> ProcessPath {
        ProcessPath { by_stream, since: Ns::MIN, ..ProcessPath::default() }
    }

    /// Adds the next thread, with the index of its stream.
    pub(super) fn add_thread(&mut self, stream: Option<u32>) {
        let times = stream.and_then(|stream| self.by_stream.get(&stream));
        let is_only = times.is_some() && self.by_stream.len() == 1;
        if is_only {
            self.caller = Some(self.threads.len());
        }
        let times = times.filter(|_| !is_only).cloned();
        self.threads.push(Thread { times, ..Thread::default() });
    }

    /// A state of a thread. Without a place, the thread is in serial code.
    pub(super) fn add(
        &mut self,
        thread: usize,
        (begin, end): (Ns, Ns),
        cause: Cause,
        place: Option<PlaceId>,
    ) {
        let site = place.map(|place| (place, false));
        // These interrupt serial code, but do not end it.
        let is_interrupted = matches!(cause, Cause::Preempted | Cause::Tracer | Cause::Unobserved);
        if let Some(place) = place.filter(|_| !is_interrupted) {
            self.end_serial(thread, Some((place, true)));
        }
        let Some(caller) = self.caller else {
            let times = self.threads.get(thread).and_then(|of| of.times.as_deref());
            let ns = times.map_or(0, |times| overlap(times, (begin, end)));
            return self.put(thread, cause, site, ns, true);
        };
        // Of what is known late, the thread may have been on the path.
        let windows = self.windows.iter().rev().take_while(|(_, until, _)| *until > begin);
        let times = self.times();
        let before = windows.filter(|(.., of)| *of == thread);
        let before = sum(before.map(|(from, to, _)| overlap(times, (begin.max(*from), end.min(*to)))));
        let now = overlap(times, (begin.max(self.since), end));
        self.put(thread, cause, site, before, true);
        self.put(thread, cause, site, now, thread == caller && site.is_none());
        if let Some(of) = self.threads.get_mut(thread).filter(|_| end > self.since) {
            of.first = Some(of.first.map_or(begin, |first| first.min(begin)));
        }
    }

    /// A barrier time whose cause will be known later.
    pub(super) fn add_pending(&mut self, thread: usize, depth: usize, span: (Ns, Ns), place: PlaceId) {
        if self.threads.get_mut(thread).is_some_and(|of| of.pending.add(depth, span)) {
            self.end_pending(thread, depth, Cause::Barrier, place);
        }
    }

    /// The cause of these times is known.
    pub(super) fn end_pending(&mut self, thread: usize, depth: usize, cause: Cause, place: PlaceId) {
        let pending = self.threads.get_mut(thread).map(|of| of.pending.end(depth));
        for span in pending.into_iter().flatten() {
            self.add(thread, span, cause, Some(place));
        }
    }

    /// A thread forks the team of an outermost region.
    pub(super) fn fork(&mut self, thread: usize, time: Ns) {
        if self.caller == Some(thread) {
            self.end_window(thread, time, None);
            self.is_forked = true;
        }
    }

    /// A thread arrives at a barrier of a region as the last of its members.
    pub(super) fn last_arrives(&mut self, thread: usize, time: Ns, region: PlaceId, members: &[usize]) {
        if self.caller.is_some_and(|caller| members.contains(&caller)) {
            self.end_window(thread, time, Some(region));
        }
    }

    /// The times on the path, when the process has ended.
    pub(super) fn finish(mut self) -> PathSums {
        for thread in 0..self.threads.len() {
            self.end_serial(thread, None);
        }
        if let Some(caller) = self.caller {
            self.end_window(caller, Ns::MAX, None);
        }
        self.total
    }

    /// The path was on this thread until now.
    fn end_window(&mut self, thread: usize, time: Ns, region: Option<PlaceId>) {
        if time <= self.since {
            return;
        }
        let first = self.threads.get(thread).and_then(|of| of.first).unwrap_or(time);
        if let Some(region) = region.filter(|_| self.is_forked) {
            let ns = overlap(self.times(), (self.since, first.min(time)));
            self.put(thread, Cause::Fork, Some((region, false)), ns, true);
        }
        for (number, of) in self.threads.iter_mut().enumerate() {
            of.first = None;
            for (key, ns) in of.sums.drain() {
                if number == thread {
                    self.total.entry(key).or_default().grow_by(ns);
                }
            }
        }
        if self.windows.len() == MAX_WINDOWS {
            self.windows.pop_front();
        }
        self.windows.push_back((self.since, time, thread));
        (self.since, self.is_forked) = (time, false);
    }

    /// The times of the only thread that calls MPI.
    fn times(&self) -> &[(Ns, Ns)] {
        self.by_stream.values().next().map_or(&[], |times| times)
    }

    /// Adds time of a thread. `is_on_path`: not only if the window's path turns out to be on the thread.
    fn put(&mut self, thread: usize, cause: Cause, site: Option<Site>, ns: u64, is_on_path: bool) {
        let Some(of) = self.threads.get_mut(thread).filter(|_| ns > 0) else { return };
        if is_on_path && site.is_none() {
            match of.serial.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, sum)) => sum.grow_by(ns),
                None => of.serial.push((cause, ns)),
            }
            return;
        }
        let sums = if is_on_path { &mut self.total } else { &mut of.sums };
        sums.entry((cause, site)).or_default().grow_by(ns);
    }

    /// The serial code of a thread ends here.
    fn end_serial(&mut self, thread: usize, site: Option<Site>) {
        let Some(of) = self.threads.get_mut(thread) else { return };
        for (cause, ns) in of.serial.drain(..) {
            self.total.entry((cause, site)).or_default().grow_by(ns);
        }
    }
}

/// How much of a span is in these times.
fn overlap(times: &[(Ns, Ns)], (begin, end): (Ns, Ns)) -> u64 {
    let first = times.partition_point(|(_, until)| *until <= begin);
    let inside = times[first..].iter().take_while(|(from, _)| *from < end);
    sum(inside.map(|(from, until)| {
        let (from, until) = (begin.max(*from), end.min(*until));
        if from < until { from.abs_diff(until) } else { 0 }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: PlaceId = 7;
    const BARRIER: PlaceId = 8;

    fn path(times: &[(Ns, Ns)]) -> ProcessPath {
        let mut path = ProcessPath::of(BTreeMap::from([(3, times.to_vec())]));
        [3, 4].into_iter().for_each(|stream| path.add_thread(Some(stream)));
        path
    }

    fn sums(path: ProcessPath) -> Vec<(Cause, Option<Site>, u64)> {
        let mut all: Vec<_> =
            path.finish().into_iter().map(|((cause, site), ns)| (cause, site, ns)).collect();
        all.sort_by_key(|(cause, site, ns)| (*site, *cause, *ns));
        all
    }

    /// The second thread comes later to the first barrier, and the first one to the second.
    fn region(path: &mut ProcessPath) {
        path.add(0, (0, 100), Cause::Useful, None);
        path.fork(0, 100);
        path.add(0, (100, 150), Cause::Useful, Some(REGION));
        path.add(1, (110, 200), Cause::Useful, Some(REGION + 10));
        path.last_arrives(1, 200, REGION, &[0, 1]);
        path.add(0, (150, 200), Cause::Imbalance, Some(BARRIER));
        path.add_pending(0, 1, (200, 210), BARRIER);
        path.add_pending(1, 1, (200, 210), BARRIER);
        path.add(1, (210, 230), Cause::Useful, Some(REGION));
        path.add(0, (210, 260), Cause::Useful, Some(REGION));
        path.last_arrives(0, 260, REGION, &[0, 1]);
        (0..2).for_each(|thread| path.end_pending(thread, 1, Cause::Barrier, BARRIER));
        path.add(1, (230, 260), Cause::Imbalance, Some(BARRIER));
        path.add(0, (260, 300), Cause::Useful, None);
    }

    #[test]
    fn the_path_is_on_the_thread_that_arrives_last() {
        let mut path = path(&[(0, 300)]);
        region(&mut path);
        let expected = [
            (Cause::Useful, None, 40),
            (Cause::Useful, Some((REGION, false)), 50),
            (Cause::Fork, Some((REGION, false)), 10),
            (Cause::Useful, Some((REGION, true)), 100),
            (Cause::Barrier, Some((BARRIER, false)), 10),
            (Cause::Useful, Some((REGION + 10, false)), 90),
        ];
        let mut expected = expected.to_vec();
        expected.sort_by_key(|(cause, site, ns)| (*site, *cause, *ns));
        assert_eq!(sums(path), expected);
    }

    #[test]
    fn only_times_on_the_path_count() {
        let mut path = path(&[(50, 120), (190, 205), (290, 1000)]);
        region(&mut path);
        let all: u64 = sums(path).iter().map(|(.., ns)| ns).sum();
        assert_eq!(all, 70 + 15 + 10);
    }

    #[test]
    fn each_of_several_threads_that_call_mpi_counts_for_itself() {
        let mut path = ProcessPath::of(BTreeMap::from([(3, vec![(0, 160)]), (4, vec![(160, 300)])]));
        [3, 4].into_iter().for_each(|stream| path.add_thread(Some(stream)));
        region(&mut path);
        let all = sums(path);
        assert!(all.contains(&(Cause::Imbalance, Some((BARRIER, false)), 10 + 30)), "{all:?}");
    }
}
