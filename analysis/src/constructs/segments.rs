//! Sums of a segment of a process. A segment begins and ends between two parallel regions.
//!
//! At these points, workers are in no region, though they may report the end of the last one late. The initial thread
//! is in its initial task, which continues: it is counted in the first segment, its time is added in each segment, and
//! its whole duration is known in the last.

use omptrace_timeline::model::LocationId;

use super::*;
use crate::passes::segments::{Continues, RegionKey, region_numbers};

impl Collector {
    /// A segment begins at the latest event. Nothing that came before is counted; only the open regions remain.
    pub(super) fn begin_segment(&mut self) {
        let Some(begin) = self.processes.last().map(|process| process.last) else {
            return;
        };
        self.began = Some(begin);
        for construct in &mut self.constructs {
            construct.lacks_ids = false;
            construct.sums = construct.sums.without_numbers();
        }
        for location in &mut self.locations {
            if let LocationState::Thread(thread) = location {
                thread.account = Account::new(begin);
                thread.tasks = 0;
                thread.lacks_ids = false;
                thread.just_left = JustLeft::default();
                thread.next = Upcoming::default();
                thread.chunks = None;
                for open in &mut thread.open {
                    match thread.role {
                        ThreadRole::Worker | ThreadRole::Helper => open.is_over(begin),
                        _ => open.goes_on(begin),
                    }
                }
            }
        }
        self.tasks = Tasks::default();
        self.teams.clear();
        self.locks.begin_segment();
        self.notes.clear();
    }
}

impl Collector {
    /// The end of the parallel region that the thread is a member of; `None` if that region has not ended.
    fn end_of_region(&self, thread: &ThreadState) -> Option<Ns> {
        let mut teams = thread.open.iter().rev().filter_map(|open| open.team);
        let (team, _) = teams.next()?;
        self.teams.get(&(thread.process, team))?.end
    }
}

impl Open {
    /// The region ended where the segment begins, but its thread reports the end late.
    fn is_over(&mut self, begin: Ns) {
        self.begin = begin;
        self.is_new = true;
        self.is_inside = false;
        self.is_counted = false;
        self.wait = None;
        self.task = None;
        self.team = None;
        self.forked = None;
        self.of_loop = None;
        self.lock = None;
    }

    /// The region continues in the segment.
    fn goes_on(&mut self, begin: Ns) {
        self.before = self.before.saturating_add(begin.abs_diff(self.begin));
        self.begin = begin;
        self.is_new = false;
        self.inside = 0;
        self.waited = 0;
        self.lost = 0;
        self.unobserved = 0;
    }
}

impl ThreadState {
    /// Counts the part up to `end` of the regions that continue after it.
    fn cut(&mut self, constructs: &mut [Collected], end: Ns) {
        let mut inside = (0, 0);
        for open in self.open.iter_mut().rev() {
            add(&mut open.inside, inside.0);
            add(&mut open.waited, inside.1);
            let ns = end.abs_diff(open.begin);
            let own = ns.saturating_sub(open.inside);
            if open.is_wait {
                add(&mut open.waited, own);
            }
            inside = (ns, open.waited);
            if open.is_counted && open.is_inside {
                let stats = &mut constructs[open.region].sums.stats;
                stats.times.add_part(ns, open.is_new);
                add(&mut stats.self_ns, own);
                add(stats.waiting_ns.get_or_insert(0), open.waited);
            }
        }
    }

    /// Adds the same thread in a later segment. `known` maps that segment's region numbers to those here.
    fn append(&mut self, next: ThreadState, known: impl Fn(usize) -> usize) {
        self.account.append(&next.account);
        self.tasks += next.tasks;
        self.lacks_ids |= next.lacks_ids;
        self.has_begun |= next.has_begun;
        self.open = next.open;
        for open in &mut self.open {
            open.region = known(open.region);
        }
        self.just_left = next.just_left.known_as(known);
    }
}

impl Continues for Collector {
    fn end_segment(&mut self) -> bool {
        let Some(end) = self.processes.last().map(|process| process.last) else {
            return false;
        };
        for number in 0..self.locations.len() {
            let location = LocationId(number as u32);
            while let LocationState::Thread(thread) = &self.locations[number]
                && matches!(thread.role, ThreadRole::Worker | ThreadRole::Helper)
                && thread.open.iter().any(|open| open.is_inside)
            {
                let Some(time) = self.end_of_region(thread) else {
                    return false;
                };
                self.leave(Point { location, time });
            }
            if let LocationState::Thread(thread) = &mut self.locations[number] {
                // Drops regions that were over before the segment began.
                thread.open.retain(|open| open.is_inside);
                Self::saw(&mut self.processes, thread, end);
                let mut whole = |region: usize, ns| self.constructs[region].sums.add_whole(ns);
                thread.just_left.end(&mut whole);
                thread.cut(&mut self.constructs, end);
            }
        }
        self.teams.is_empty() && self.tasks.are_none() && self.locks.are_free()
    }

    fn append(&mut self, next: Self) -> bool {
        let end = self.processes.last().map(|process| process.last);
        let own = self.constructs.iter().map(Collected::key);
        let numbers = region_numbers(own, next.constructs.iter().map(Collected::key));
        for (number, construct) in numbers.iter().zip(next.constructs) {
            match self.constructs.get_mut(*number) {
                Some(own) if !own.is_like(&construct) => return false,
                Some(own) => {
                    own.lacks_ids |= construct.lacks_ids;
                    own.sums.merge(construct.sums);
                }
                None => self.constructs.push(construct),
            }
        }
        let known = |region: usize| numbers[region];
        for (number, thread) in next.locations.into_iter().enumerate() {
            match (self.locations.get_mut(number), thread) {
                (Some(LocationState::Thread(own)), LocationState::Thread(next)) => own.append(*next, known),
                (Some(LocationState::Thread(_)), _) | (_, LocationState::Thread(_)) => return false,
                (Some(own), next) => *own = next,
                (None, next) => self.locations.push(next),
            }
        }
        self.tasks = next.tasks.known_as(known);
        for (key, mut team) in next.teams {
            team.region = known(team.region);
            self.teams.insert(key, team);
        }
        self.locks.append(next.locks, known);
        self.devices = next.devices;
        self.notes.extend(next.notes);
        for (own, next) in self.processes.iter_mut().zip(next.processes) {
            own.last = next.last;
            own.gaps = next.gaps;
        }
        self.summary = next.summary;
        end.is_some() && end == next.began
    }

    fn complete(&mut self) {
        if let Some((process, summary)) = self.summary.take() {
            self.ended(process, &summary);
        }
    }
}

impl Collected {
    fn key(&self) -> RegionKey {
        let stats = &self.sums.stats;
        (stats.name.clone(), self.category, stats.place.code.clone())
    }

    fn is_like(&self, other: &Collected) -> bool {
        let all = |it: &Collected| (it.kind, it.is_chunk, it.is_test, it.completes_task);
        all(self) == all(other)
    }
}
