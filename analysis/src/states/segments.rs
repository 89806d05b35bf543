//! The threads in a segment of the process, which begins and ends between two parallel regions.
//!
//! At these points, only the initial thread continues, in serial code that has just begun. All chains of work and
//! predicted times have met in that thread. So a segment does not depend on earlier ones, and the lengths, times and
//! sums of segments add up.

use super::*;

impl<const S: usize> Threads<S> {
    /// A segment begins at the latest event. Nothing that came before is counted; only the open regions remain.
    pub(crate) fn begin_segment(&mut self) {
        let begin = self.latest;
        self.begin = begin;
        self.epoch += 1;
        self.sums = Sums::default();
        self.chains = Chains::default();
        self.samples = Samples::default();
        self.locks.clear();
        self.tasks.clear();
        if let Some(graphs) = &mut self.graphs {
            graphs.forget();
        }
        let main = self.threads.iter().find(|thread| thread.role != ThreadRole::Worker);
        let last_region = main.and_then(|main| main.last_region);
        self.activity = Concurrency::new(begin).behind(last_region);
        let now = ChainEnd { stamp: PredictedTimes::new(begin), ..ChainEnd::never() };
        for thread in &mut self.threads {
            thread.until = begin;
            thread.fork_ns = 0;
            thread.serial_ns = 0;
            thread.since_region_ns = 0;
            thread.longest = (0, 0);
            thread.useful = 0;
            thread.now = now;
            thread.waited = [0; S];
            (thread.awaits, thread.acquired) = (None, None);
            thread.held.clear();
            for membership in &mut thread.memberships {
                membership.around = ([0; S], (0, 0));
                membership.children = ChainEnd::never();
            }
            if thread.is_busy && thread.is_selected {
                self.activity.push(begin, Change::Works);
            }
        }
        // Workers that report their end late are still members.
        for team in &mut self.teams {
            (team.fork, team.join) = (now, now);
            team.began = now.stamp;
            team.held.clear();
            let arrivals = team.arrivals.iter_mut();
            arrivals.for_each(|arrivals| *arrivals = Arrivals::new());
            team.outside = None;
        }
        // Drops chains of the previous segment.
        for thread in &mut self.threads {
            (thread.before_wait, thread.has_waited_until) = ((ChainEnd::never(), [0; S]), None);
        }
        self.groups.values_mut().for_each(|group| *group = ChainEnd::never());
        if let Some(observer) = &mut self.observer {
            observer.begin_segment();
        }
    }

    /// Whether a segment can end at the latest event.
    pub(crate) fn is_between_regions(&self) -> bool {
        let is_at_rest = |thread: &ThreadState<S>| match thread.role {
            ThreadRole::Worker | ThreadRole::Helper => thread.state == State::Rests,
            _ => thread.state == State::Useful(None) && thread.serial_ns == 0 && thread.until == self.latest,
        };
        let main = self.threads.iter().filter(|thread| thread.role != ThreadRole::Worker);
        let longest = main.map(|main| main.now.chain.length).max().unwrap_or(0);
        let mut chains = self.threads.iter().map(|thread| thread.now.chain.length);
        self.by_id.is_empty()
            && chains.all(|length| length <= longest)
            && self.tasks.is_empty()
            && !self.gaps.is_open()
            && self.locks.all.iter().all(|lock| lock.holder.is_none())
            && self.threads.iter().all(is_at_rest)
    }

    /// The time of the latest event.
    pub(crate) fn latest(&self) -> Ns {
        self.latest
    }

    /// Ends the segment at the latest event.
    pub(crate) fn end_segment(self) -> Finished<S> {
        let end = self.latest;
        self.finish(end, end)
    }
}

impl<const S: usize> Finished<S> {
    /// Adds the following segment, which began at `begin`. `known` maps its regions to regions here. False if the
    /// observers do not fit together.
    pub(crate) fn append(
        &mut self,
        next: Finished<S>,
        begin: Ns,
        known: &dyn Fn(PlaceId) -> PlaceId,
    ) -> bool {
        for (own, next) in self.predicted.iter_mut().zip(next.predicted) {
            *own = own.saturating_add(next.saturating_sub(begin));
        }
        let place = self.sums.append(next.sums, known);
        self.path.grow_by(next.path);
        for (id, ns) in next.path_by_place {
            self.path_by_place.entry(place(id)).or_default().grow_by(ns);
        }
        for (id, mut scaling) in next.scaling {
            scaling.renumber(&place);
            self.scaling.entry(place(id)).or_default().merge(&scaling);
        }
        self.activity.append(next.activity, known);
        for (own, next) in self.useful.iter_mut().zip(next.useful) {
            own.grow_by(next);
        }
        match (&mut self.observer, next.observer) {
            (Some(own), Some(next)) => own.append(next, &place),
            (None, None) => true,
            _ => false,
        }
    }
}
