//! The observers of a process's states in the first pass, as one.

use std::any::Any;

use omptrace_timeline::model::Ns;

use crate::model::cause::Cause;
use crate::model::place_id::PlaceId;
use crate::overview::OverviewCollector;
use crate::rank_waits::spans::RankSpans;
use crate::states::observer::{AwaitedMutex, StateObserver};

/// The observers of a process.
#[derive(Debug)]
pub(crate) struct Observed {
    /// For the overview.
    pub(crate) gathering: Option<OverviewCollector>,
    /// For the waits of MPI ranks.
    pub(crate) ranks: Option<RankSpans>,
}

impl Observed {
    /// `None` without observers.
    pub(crate) fn of(gathering: Option<OverviewCollector>, ranks: Option<RankSpans>) -> Option<Observed> {
        (gathering.is_some() || ranks.is_some()).then_some(Observed { gathering, ranks })
    }

    fn all(&mut self) -> impl Iterator<Item = &mut dyn StateObserver> {
        let gathering = self.gathering.as_mut().map(|it| -> &mut dyn StateObserver { it });
        let ranks = self.ranks.as_mut().map(|it| -> &mut dyn StateObserver { it });
        gathering.into_iter().chain(ranks)
    }
}

impl StateObserver for Observed {
    fn begin_process(&mut self, begin: Ns, ended: Option<Ns>) {
        self.all().for_each(|it| it.begin_process(begin, ended));
    }

    fn add_thread(&mut self, location: usize) {
        self.all().for_each(|it| it.add_thread(location));
    }

    fn add_stream(&mut self, location: usize, stream: u32) {
        self.all().for_each(|it| it.add_stream(location, stream));
    }

    fn add(
        &mut self,
        thread: usize,
        spans: &mut dyn Iterator<Item = (Ns, Ns)>,
        cause: Cause,
        place: Option<PlaceId>,
        due: Option<AwaitedMutex>,
    ) {
        // There is one span, unless recording was paused.
        for span in spans {
            self.all().for_each(|it| it.add(thread, &mut std::iter::once(span), cause, place, due));
        }
    }

    fn add_pending(&mut self, thread: usize, depth: usize, span: (Ns, Ns), place: PlaceId) {
        self.all().for_each(|it| it.add_pending(thread, depth, span, place));
    }

    fn end_pending(&mut self, thread: usize, depth: usize, cause: Cause, place: PlaceId) {
        self.all().for_each(|it| it.end_pending(thread, depth, cause, place));
    }

    fn fork(&mut self, thread: usize, time: Ns) {
        self.all().for_each(|it| it.fork(thread, time));
    }

    fn last_arrives(&mut self, thread: usize, time: Ns, region: PlaceId, members: &[usize]) {
        self.all().for_each(|it| it.last_arrives(thread, time, region, members));
    }

    fn add_visit(&mut self, region: PlaceId, span: (Ns, Ns)) {
        self.all().for_each(|it| it.add_visit(region, span));
    }

    fn add_gaps(&mut self, thread: usize, gaps: &mut dyn Iterator<Item = (Ns, Ns)>) {
        for gap in gaps {
            self.all().for_each(|it| it.add_gaps(thread, &mut std::iter::once(gap)));
        }
    }

    fn begin_segment(&mut self) {
        self.all().for_each(StateObserver::begin_segment);
    }

    fn append(&mut self, next: Box<dyn StateObserver>, place: &dyn Fn(PlaceId) -> PlaceId) -> bool {
        let next: Box<dyn Any> = next;
        let Ok(next) = next.downcast::<Observed>() else {
            return false;
        };
        match (&mut self.gathering, next.gathering) {
            (Some(own), Some(next)) => self.ranks.is_none() && own.append(next, place),
            _ => false,
        }
    }
}
