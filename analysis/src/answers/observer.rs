//! Who sees each thread's states while they are accounted for: a picture over time, or the states themselves.

use omptrace_timeline::sink::Ns;

use super::overview::Gathering;
use crate::answers::Cause;
use crate::answers::place_id::PlaceId;

/// Barrier times of a thread that wait for their cause. Beyond, the oldest are [`Cause::Barrier`].
const MAX_PENDING: usize = 1 << 12;

/// Who sees each thread's states.
#[derive(Debug)]
pub(crate) enum Observer {
    /// A picture over time.
    Overview(Box<Gathering>),
    /// The states, one by one.
    Spans(Spans),
}

/// What a thread waited for: a mutex that another one had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The mutex, where the runtime names it.
    pub(crate) lock: Option<u64>,
    /// The thread's location and the place from which it had the mutex.
    pub(crate) holder: Option<(usize, PlaceId)>,
}

impl Observer {
    /// The next thread.
    pub(crate) fn add_thread(&mut self, location: usize) {
        match self {
            Observer::Overview(gathering) => gathering.add_thread(location),
            Observer::Spans(spans) => spans.threads.push(Thread { location, ..Thread::default() }),
        }
    }

    /// What a thread did in these times; the place of serial code is `None`.
    pub(crate) fn add(
        &mut self,
        lane: usize,
        spans: impl IntoIterator<Item = (Ns, Ns)>,
        cause: Cause,
        place: Option<PlaceId>,
        due: Option<Due>,
    ) {
        match self {
            Observer::Overview(gathering) => gathering.add(lane, spans, cause, place),
            Observer::Spans(of_threads) => {
                for (begin, end) in spans {
                    of_threads.add(lane, begin, end, (cause, place, due));
                }
            }
        }
    }

    /// A thread was in a barrier of the team at `depth`: what comes shows in which.
    pub(crate) fn add_pending(&mut self, lane: usize, depth: usize, span: (Ns, Ns), place: PlaceId) {
        match self {
            Observer::Overview(gathering) => gathering.add_pending(lane, span, place),
            Observer::Spans(spans) => spans.add_pending(lane, depth, span, place),
        }
    }

    pub(crate) fn end_pending(&mut self, lane: usize, depth: usize, cause: Cause, place: PlaceId) {
        match self {
            Observer::Overview(gathering) => gathering.end_pending(lane, cause, place),
            Observer::Spans(spans) => spans.end_pending(lane, depth, cause, place),
        }
    }

    /// An outermost region took this time.
    pub(crate) fn add_visit(&mut self, region: PlaceId, span: (Ns, Ns)) {
        if let Observer::Overview(gathering) = self {
            gathering.add_visit(region, span);
        }
    }

    /// Nothing was recorded in these times. As a state it belongs to no thread.
    pub(crate) fn add_gaps(&mut self, lane: usize, gaps: impl IntoIterator<Item = (Ns, Ns)>) {
        if let Observer::Overview(gathering) = self {
            gathering.add(lane, gaps, Cause::Unobserved, None);
        }
    }
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

impl Spans {
    fn add(&mut self, lane: usize, begin: Ns, end: Ns, why: Why) {
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
            self.add(lane, begin, end, (cause, Some(place), None));
        }
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
        spans.add(0, 0, 5, useful);
        spans.add(0, 5, 9, useful);
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
