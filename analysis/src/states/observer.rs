//! Who sees each thread's states while they are accounted for: a picture over time, or the states themselves.

use std::any::Any;
use std::fmt::Debug;

use omptrace_timeline::model::Ns;

use crate::model::cause::Cause;
use crate::model::place_id::PlaceId;

/// Barrier times of a thread that wait for their cause. Beyond, the oldest are [`Cause::Barrier`].
const MAX_PENDING: usize = 1 << 12;

/// Who sees each thread's states.
pub(crate) trait StateObserver: Any + Debug + Send {
    /// The next thread.
    fn add_thread(&mut self, location: usize);

    /// The next thread's stream in the trace, by its number.
    fn add_stream(&mut self, _location: usize, _stream: u32) {}

    /// What a thread did in these times; the place of serial code is `None`.
    fn add(
        &mut self,
        lane: usize,
        spans: &mut dyn Iterator<Item = (Ns, Ns)>,
        cause: Cause,
        place: Option<PlaceId>,
        due: Option<Due>,
    );

    /// A thread was in a barrier of the team at `depth`: what comes shows in which.
    fn add_pending(&mut self, lane: usize, depth: usize, span: (Ns, Ns), place: PlaceId);

    /// What waited for its cause since then has this one.
    fn end_pending(&mut self, lane: usize, depth: usize, cause: Cause, place: PlaceId);

    /// An outermost region took this time.
    fn add_visit(&mut self, _region: PlaceId, _span: (Ns, Ns)) {}

    /// Nothing was recorded in these times. As a state it belongs to no thread.
    fn add_gaps(&mut self, _lane: usize, _gaps: &mut dyn Iterator<Item = (Ns, Ns)>) {}
}

/// What a thread waited for: a mutex that another one had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The mutex, where the runtime names it.
    pub(crate) lock: Option<u64>,
    /// The thread's location and the place from which it had the mutex.
    pub(crate) holder: Option<(usize, PlaceId)>,
}

/// Cause, place and what the thread waited for.
type Why = (Cause, Option<PlaceId>, Option<Due>);

/// The time of a thread from `begin` to `end`, which has one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The thread's location.
    pub(crate) location: usize,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) why: Why,
}

/// A thread, and the state that may go on.
#[derive(Debug, Default)]
struct Thread {
    location: usize,
    newest: Option<(Ns, Ns, Why)>,
    pending: Vec<(usize, Ns, Ns)>,
}

/// The states of a process's threads, as long as they can be.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    threads: Vec<Thread>,
    /// Those that are complete.
    pub(crate) ready: Vec<Span>,
}

impl StateObserver for Spans {
    fn add_thread(&mut self, location: usize) {
        self.threads.push(Thread { location, ..Thread::default() });
    }

    fn add(
        &mut self,
        lane: usize,
        spans: &mut dyn Iterator<Item = (Ns, Ns)>,
        cause: Cause,
        place: Option<PlaceId>,
        due: Option<Due>,
    ) {
        for (begin, end) in spans {
            self.push(lane, begin, end, (cause, place, due));
        }
    }

    fn add_pending(&mut self, lane: usize, depth: usize, (begin, end): (Ns, Ns), place: PlaceId) {
        let Some(thread) = self.threads.get_mut(lane) else {
            return;
        };
        thread.pending.push((depth, begin, end));
        if thread.pending.len() >= MAX_PENDING {
            self.end_pending(lane, depth, Cause::Barrier, place);
        }
    }

    fn end_pending(&mut self, lane: usize, depth: usize, cause: Cause, place: PlaceId) {
        let Some(thread) = self.threads.get_mut(lane) else {
            return;
        };
        // Those of teams around wait on.
        let first = thread.pending.partition_point(|(of, ..)| *of < depth);
        for (_, begin, end) in thread.pending.split_off(first) {
            self.push(lane, begin, end, (cause, Some(place), None));
        }
    }
}

impl Spans {
    fn push(&mut self, lane: usize, begin: Ns, end: Ns, why: Why) {
        if begin >= end {
            return;
        }
        let Some(thread) = self.threads.get_mut(lane) else {
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

    /// The process has ended.
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
