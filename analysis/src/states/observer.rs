//! Receivers of the threads' states, as each of them ends: the overview's intervals, or a list.

use std::any::Any;
use std::fmt::Debug;

use omptrace_timeline::model::Ns;

use crate::model::cause::Cause;
use crate::model::place_id::PlaceId;

/// Maximum number of barrier times per thread that are kept until their cause is known. The oldest of further ones
/// become [`Cause::Barrier`].
const MAX_PENDING: usize = 1 << 12;

/// A receiver of the threads' states.
pub(crate) trait StateObserver: Any + Debug + Send {
    /// The process exists from `begin` until `ended`, if that is known.
    fn begin_process(&mut self, _begin: Ns, _ended: Option<Ns>) {}

    /// Adds the next thread.
    fn add_thread(&mut self, location: usize);

    /// The number of the stream of the thread that is added next.
    fn add_stream(&mut self, _location: usize, _stream: u32) {}

    /// The thread was in this state in these intervals. `place` is `None` in serial code.
    fn add(
        &mut self,
        index: usize,
        spans: &mut dyn Iterator<Item = (Ns, Ns)>,
        cause: Cause,
        place: Option<PlaceId>,
        due: Option<AwaitedMutex>,
    );

    /// The thread was in a barrier of the team at `depth`. The next event shows which barrier it was.
    fn add_pending(&mut self, index: usize, depth: usize, span: (Ns, Ns), place: PlaceId);

    /// Sets the cause of the barrier times that were pending at this depth.
    fn end_pending(&mut self, index: usize, depth: usize, cause: Cause, place: PlaceId);

    /// The thread forks the team of an outermost region.
    fn fork(&mut self, _index: usize, _time: Ns) {}

    /// The thread arrives at a barrier of the team of an outermost `region`, as the last of its `members`.
    fn last_arrives(&mut self, _index: usize, _time: Ns, _region: PlaceId, _members: &[usize]) {}

    /// A visit of an outermost region.
    fn add_visit(&mut self, _region: PlaceId, _span: (Ns, Ns)) {}

    /// Nothing was recorded in these intervals. As a state, a gap belongs to no thread.
    fn add_gaps(&mut self, _index: usize, _gaps: &mut dyn Iterator<Item = (Ns, Ns)>) {}

    /// A segment of the process begins. What was before it is not counted.
    fn begin_segment(&mut self) {}

    /// Adds the observer of the following segment; `place` maps its places to those here. False if the two do not fit
    /// together.
    fn append(&mut self, _next: Box<dyn StateObserver>, _place: &dyn Fn(PlaceId) -> PlaceId) -> bool {
        false
    }
}

/// What a thread waited for: a mutex that another thread held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AwaitedMutex {
    /// The mutex, if the runtime reports its wait id.
    pub(crate) lock: Option<u64>,
    /// The location of the holder, and the place at which it acquired the mutex.
    pub(crate) holder: Option<(usize, PlaceId)>,
}

/// The cause, the place, and the mutex that the thread waited for.
type Why = (Cause, Option<PlaceId>, Option<AwaitedMutex>);

/// The time of a thread from `begin` to `end`, which has one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The thread's location.
    pub(crate) location: usize,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) why: Why,
}

/// A thread, and its latest state, which may continue.
#[derive(Debug, Default)]
struct Thread {
    location: usize,
    newest: Option<(Ns, Ns, Why)>,
    pending: PendingBarriers,
}

/// Barrier times of a thread whose cause is not known yet, each with the depth of the team.
#[derive(Debug, Default)]
pub(crate) struct PendingBarriers(Vec<(usize, (Ns, Ns))>);

impl PendingBarriers {
    /// Adds a time. Returns true if there is no room for more, so that the pending times have to end.
    pub(crate) fn add(&mut self, depth: usize, span: (Ns, Ns)) -> bool {
        self.0.push((depth, span));
        self.0.len() >= MAX_PENDING
    }

    /// Takes the times at this depth and below. Waiting times in enclosing teams remain pending.
    pub(crate) fn end(&mut self, depth: usize) -> impl Iterator<Item = (Ns, Ns)> + use<> {
        let first = self.0.partition_point(|(of, _)| *of < depth);
        self.0.split_off(first).into_iter().map(|(_, span)| span)
    }
}

/// The states of a process's threads. Consecutive equal states are merged.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    threads: Vec<Thread>,
    /// The states that have ended.
    pub(crate) ready: Vec<Span>,
}

impl StateObserver for Spans {
    fn add_thread(&mut self, location: usize) {
        self.threads.push(Thread { location, ..Thread::default() });
    }

    fn add(
        &mut self,
        index: usize,
        spans: &mut dyn Iterator<Item = (Ns, Ns)>,
        cause: Cause,
        place: Option<PlaceId>,
        due: Option<AwaitedMutex>,
    ) {
        for (begin, end) in spans {
            self.push(index, begin, end, (cause, place, due));
        }
    }

    fn add_pending(&mut self, index: usize, depth: usize, span: (Ns, Ns), place: PlaceId) {
        if self.threads.get_mut(index).is_some_and(|thread| thread.pending.add(depth, span)) {
            self.end_pending(index, depth, Cause::Barrier, place);
        }
    }

    fn end_pending(&mut self, index: usize, depth: usize, cause: Cause, place: PlaceId) {
        let Some(thread) = self.threads.get_mut(index) else {
            return;
        };
        for (begin, end) in thread.pending.end(depth) {
            self.push(index, begin, end, (cause, Some(place), None));
        }
    }
}

impl Spans {
    fn push(&mut self, index: usize, begin: Ns, end: Ns, why: Why) {
        if begin >= end {
            return;
        }
        let Some(thread) = self.threads.get_mut(index) else {
            return;
        };
        if let Some((_, until, known)) = &mut thread.newest
            && *until == begin
            && *known == why
        {
            *until = end;
            return;
        }
        let newest = thread.newest.replace((begin, end, why));
        let location = thread.location;
        self.ready.extend(newest.map(|(begin, end, why)| Span { location, begin, end, why }));
    }

    /// Completes the states at the end of the process.
    pub(crate) fn finish(mut self) -> Vec<Span> {
        for thread in &mut self.threads {
            let location = thread.location;
            let newest = thread.newest.take();
            self.ready.extend(newest.map(|(begin, end, why)| Span { location, begin, end, why }));
        }
        self.ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_that_go_on_are_one() {
        let mut spans = Spans::default();
        spans.threads.push(Thread { location: 7, ..Thread::default() });
        let useful = (Cause::Useful, Some(3), None);
        spans.push(0, 0, 5, useful);
        spans.push(0, 5, 9, useful);
        spans.add_pending(0, 1, (9, 10), 4);
        spans.add_pending(0, 2, (10, 12), 4);
        spans.end_pending(0, 2, Cause::Barrier, 4);
        spans.end_pending(0, 1, Cause::Join, 4);
        let span =
            |begin, end, cause, place| Span { location: 7, begin, end, why: (cause, Some(place), None) };
        let expected =
            [span(0, 9, Cause::Useful, 3), span(10, 12, Cause::Barrier, 4), span(9, 10, Cause::Join, 4)];
        assert_eq!(spans.finish(), expected);
    }
}
