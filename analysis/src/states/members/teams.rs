//! Teams: how threads join them, arrive at their barriers, and leave.

use crate::model::sum::Sum;
use crate::states::*;

/// Less work between two barriers counts as almost none.
const MIN_WORK_NS: u64 = 1_000;

impl<const S: usize> Threads<S> {
    pub(in crate::states) fn fork(&mut self, thread: usize, time: Ns, id: TeamId, region: PlaceId) -> usize {
        let around = self.threads[thread].memberships.last().map(|membership| membership.team);
        let outermost = around.map(|team| self.teams[team].outermost);
        let outermost_slot = around.map(|team| self.teams[team].outermost_slot.unwrap_or(team));
        if outermost.is_none() {
            self.end_serial(thread, Some(region));
            if self.by_id.is_empty() {
                self.samples.end_serial(Some(region), &mut self.sums);
            }
            self.push_activity(time, Change::Opens { region });
            if let Some(observer) = &mut self.observer {
                observer.fork(thread, time);
            }
        }
        let is_alone = |open: &Open| open.kind == Kind::Alone;
        let is_in_single = self.threads[thread].open.iter().any(is_alone);
        let team = Team {
            region,
            outermost: outermost.unwrap_or(region),
            is_outermost: outermost.is_none(),
            outermost_slot,
            around,
            group: around.map(|_| self.begin_group()),
            is_counted: self.is_inside,
            is_in_single,
            begin: time,
            size: None,
            begun: 0,
            began: self.threads[thread].now.stamp,
            held: FastMap::default(),
            members: Vec::new(),
            barriers: VecDeque::new(),
            first: 0,
            arrivals: VecDeque::new(),
            fork: self.threads[thread].now,
            join: self.threads[thread].now,
            waiting: 0,
            running: 0,
            helpers: 0,
            outside: None,
            now: time,
            by_tasks: 0.0,
            taskless: 0,
            is_over: false,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.teams[slot] = team;
                slot
            }
            None => {
                self.teams.push(team);
                self.teams.len() - 1
            }
        };
        if let Some(old) = self.by_id.insert(id, slot) {
            self.end_team(old, time);
        }
        if Self::COUNTS {
            *self.sums.visits.at(region) += u64::from(self.is_inside);
        }
        if self.teams[slot].is_outermost {
            self.change_unseen(time);
        }
        slot
    }

    pub(in crate::states) fn join_team(
        &mut self,
        thread: usize,
        time: Ns,
        id: TeamId,
        size: u32,
    ) -> Option<usize> {
        let slot = *self.by_id.get(&id)?;
        let team = &mut self.teams[slot];
        team.begun += 1;
        team.size = Some(size);
        team.members.push(thread);
        let of_thread = &mut self.threads[thread];
        of_thread.is_released = false;
        let costless = self.scenarios.without_fork(team.region);
        // Waits and work in the team around are resumed when the thread returns there.
        let around = (of_thread.waited, of_thread.longest);
        let ThreadState { now, waited, epoch, .. } = &mut *of_thread;
        // Work of earlier epochs delays nobody.
        if std::mem::replace(epoch, self.epoch) != self.epoch {
            now.stamp = team.fork.stamp;
        }
        // On a tie, it takes the chain of the thread that forked the region.
        now.chain = team.fork.chain.max(now.chain);
        now.stamp.meet(time, &team.fork.stamp, costless, waited);
        *waited = [0; S];
        of_thread.longest = (0, 0);
        let fork_ns = std::mem::take(&mut of_thread.fork_ns);
        let encountering = of_thread.open.iter_mut().rev();
        let mut parallel = encountering.filter(|open| open.team == Some(slot));
        if let Some(parallel) = parallel.next() {
            parallel.has_begun = true;
        }
        if Self::COUNTS {
            self.count_member(thread, time, slot, fork_ns);
        }
        self.threads[thread].memberships.push(Membership {
            team: slot,
            barriers: 0,
            inside: None,
            tasks_inside: 0,
            own: 0,
            own_place: 0,
            clocks: Clocks::default(),
            by_late: 0.0,
            by_tasks: 0.0,
            around,
            longest: (0, 0),
            added: [0; S],
            children: ChainEnd::never(),
        });
        Some(slot)
    }

    /// Counts a thread that joins the team, after losing `fork_ns`.
    fn count_member(&mut self, thread: usize, time: Ns, slot: usize, fork_ns: u64) {
        let team = &mut self.teams[slot];
        let (outermost, region, is_counted) = (team.outermost, team.region, team.is_counted);
        let (size, begin) = (team.size(), team.begin);
        self.blame_for_absence(thread, (Some(begin), time), (slot, 0), region);
        let sums = self.sums.regions.at(outermost);
        sums.accounting.add(Cause::Fork, fork_ns);
        if is_counted {
            sums.max_team = sums.max_team.max(size);
        }
        // The thread's part in the team around is interrupted here.
        self.leave_task_clock(thread, time);
        // This thread may still be idle, but is busy from now on.
        let busy = self.busy + u32::from(!self.threads[thread].is_busy);
        if !self.teams[slot].is_outermost && size > 1 && is_counted {
            let nested = self.sums.nested.entry(region).or_default();
            nested.threads = nested.threads.max(busy);
            let sums = self.sums.regions.at(outermost);
            sums.busiest_inside = sums.busiest_inside.max(busy);
        }
    }

    /// The thread no longer counts as running or awaiting tasks of its innermost team.
    pub(in crate::states) fn leave_task_clock(&mut self, thread: usize, time: Ns) {
        if !Self::COUNTS {
            return;
        }
        let of_thread = &mut self.threads[thread];
        if let Some(innermost) = of_thread.memberships.last() {
            let team = &mut self.teams[innermost.team];
            team.until(time);
            let waited = std::mem::take(&mut of_thread.waits_for_tasks);
            let ran = std::mem::take(&mut of_thread.runs_task);
            team.waiting = team.waiting.saturating_sub(waited.into());
            team.running = team.running.saturating_sub(ran.into());
        }
    }

    /// The thread arrives at a barrier; false if it is already in one. `is_last`: the runtime reports that this is the
    /// barrier at the region's end.
    pub(in crate::states) fn arrive(
        &mut self,
        thread: usize,
        time: Ns,
        (region, is_last): (PlaceId, bool),
    ) -> bool {
        let ends_region = is_last;
        let is_last = is_last || !self.reports.barrier_kinds;
        let of_thread = &mut self.threads[thread];
        let last_work = of_thread.longest.1;
        let Some(membership) = of_thread.memberships.last_mut() else {
            return false;
        };
        if membership.inside.is_some() {
            return false;
        }
        let number = membership.barriers;
        if self.is_inside && Self::COUNTS {
            let (all, idle) = self.sums.arrivals.at(region);
            *all += 1;
            *idle += u64::from(number > 0 && of_thread.longest.0 < MIN_WORK_NS);
        }
        membership.barriers += 1;
        membership.inside = Some(number);
        membership.tasks_inside = 0;
        membership.own_place = region;
        let team = &mut self.teams[membership.team];
        let (size, team_region) = (team.size(), team.region);
        while team.first + team.barriers.len() as u64 <= number {
            let mut barrier = Barrier::new(time);
            barrier.helpers = team.helpers;
            team.barriers.push_back(barrier);
            let mut arrivals = Arrivals::new();
            if let Some(outside) = &team.outside {
                arrivals.left.raise(outside);
            }
            team.arrivals.push_back(arrivals);
        }
        if let Some((barrier, arrivals)) = team.barrier(number) {
            if Self::COUNTS {
                barrier.until(time, size);
            }
            barrier.arrived += 1;
            let is_complete = barrier.arrived == size;
            barrier.is_last |= is_last;
            if !ends_region {
                barrier.place.get_or_insert(region);
            }
            membership.added = [0; S];
            let counted = (&of_thread.waited, &mut membership.added);
            arrivals.add(&of_thread.now, counted, &self.scenarios);
            arrivals.arrived.raise(&of_thread.now.stamp);
            arrivals.last_member = Some(barrier.place_before(last_work, team_region, self.reports.inlined));
            if let Some(observer) = self.observer.as_mut().filter(|_| is_complete && team.is_outermost) {
                observer.last_arrives(thread, time, team_region, &team.members);
            }
        }
        while team.barriers.len() > MAX_OPEN_BARRIERS {
            team.barriers.pop_front();
            team.arrivals.pop_front();
            team.first += 1;
        }
        true
    }

    /// The thread leaves its barrier.
    pub(in crate::states) fn depart(&mut self, thread: usize, time: Ns, is_last: bool) {
        let of_thread = &mut self.threads[thread];
        let Some(membership) = of_thread.memberships.last_mut() else {
            return;
        };
        let Some(number) = membership.inside.take() else {
            return;
        };
        let runs = std::mem::take(&mut membership.tasks_inside) > 0;
        let team = &mut self.teams[membership.team];
        let size = team.size();
        let (mut is_over, region, mut balanced) = (false, team.region, 0);
        let barrier = team.barrier(number);
        let is_first = barrier.is_some_and(|(barrier, _)| barrier.left == 0);
        let by_helpers = team.outside.as_deref().map(|left| left.stamp);
        let before = is_first.then(|| {
            let held = team.held.values().copied().max();
            (team.began, held.unwrap_or(0).cast_signed())
        });
        if let Some((barrier, arrivals)) = team.barrier(number) {
            if Self::COUNTS {
                barrier.until(time, size);
            }
            barrier.running = barrier.running.saturating_sub(runs.into());
            barrier.left += 1;
            if let Some(before) = before {
                (arrivals.began, arrivals.held) = before;
            }
            is_over = barrier.left >= size;
            let (now, waited) = (&mut of_thread.now, &mut of_thread.waited);
            now.chain = now.chain.max(arrivals.left.chain);
            let scenarios = &self.scenarios;
            let (member, tasks) = (arrivals.last_member, arrivals.spread_tasks);
            let members = member.map_or(0, |place| scenarios.balanced(place));
            let spread = |scenario| {
                let time = arrivals.in_balance(scenario, barrier.arrived);
                // Work of hidden helpers cannot be spread over the members.
                let time = by_helpers.as_ref().map_or(time, |left| left.time(scenario).max(time));
                match tasks & 1 << scenario {
                    0 => time,
                    _ => time.max(arrivals.arrived.time(scenario)),
                }
            };
            balanced = members | tasks;
            let costless = scenarios.without_cost(region);
            let nowait = match barrier.is_last {
                true => 0,
                false => member.map_or(0, |place| scenarios.nowait(place)),
            };
            let arrived = (nowait != 0).then_some(now.stamp);
            let all = &arrivals.left.stamp;
            now.stamp.leave_barrier(time, all, costless, (balanced, spread), waited);
            if let Some(arrived) = arrived {
                now.stamp.keep(&arrived, nowait);
            }
            *waited = [0; S];
            let longest = std::mem::take(&mut of_thread.longest);
            membership.longest = longer_work(membership.longest, longest);
            // The barrier has waited for all child tasks.
            membership.children = ChainEnd::never();
        }
        let (slot, next, state) = (membership.team, membership.barriers, of_thread.state);
        if is_over && number == team.first {
            team.barriers.pop_front();
            team.arrivals.pop_front();
            team.first += 1;
        }
        // When the first member leaves, all have arrived and all tasks are complete.
        if is_first {
            let team = &mut self.teams[slot];
            team.began = self.threads[thread].now.stamp;
            // Members that held a mutex have arrived, too, so it is free.
            for (held, _) in team.held.drain() {
                if balanced != 0 {
                    let lock = &mut self.locks[held];
                    let mut freed = lock.release.stamp;
                    freed.lower(&team.began, balanced);
                    lock.freed = Some((slot, freed));
                }
            }
            self.end_graph(slot);
            if let Some(group) = self.teams[slot].group {
                self.graph_wait_for_group(thread, group);
            }
        }
        if let (true, State::InBarrier(place)) = (Self::COUNTS, state) {
            self.blame_for_absence(thread, (None, time), (slot, next), place);
        }
        if is_last {
            self.end_of_barrier_cost(thread, Cause::Join);
        }
    }

    /// Blames the thread, which was at `place` until now, for the waits of the members that have arrived at barrier
    /// `number` of the team. By default, the blamed interval starts when the first of these members arrived.
    fn blame_for_absence(
        &mut self,
        thread: usize,
        (begin, time): (Option<Ns>, Ns),
        (slot, number): (usize, u64),
        place: PlaceId,
    ) {
        let team = &mut self.teams[slot];
        let size = team.size();
        if let Some(barrier) = team.open_barrier(number) {
            barrier.until(time, size);
            let begin = begin.unwrap_or(time - barrier.clocks().late.cast_signed());
            let location = self.threads[thread].location;
            let instance = Instance { begin, end: time, location, weight: barrier.by_late };
            self.sums.blame(Cause::Imbalance, place, instance);
        }
    }

    /// The thread's implicit task has ended before its region, whose end the thread awaits.
    pub(in crate::states) fn member_done(&mut self, thread: usize, time: Ns) {
        let time = self.settle(thread, time);
        self.depart(thread, time, false);
        self.end_of_barrier_cost(thread, Cause::Join);
        let mut open = self.threads[thread].open.iter_mut().rev();
        if let Some(member) = open.find(|open| open.kind == Kind::Member) {
            member.is_done = true;
        }
        self.change_state(thread, time);
    }

    /// The thread's implicit task ends.
    pub(in crate::states) fn leave_team(&mut self, thread: usize, time: Ns) {
        self.depart(thread, time, false);
        self.end_of_barrier_cost(thread, Cause::Join);
        self.leave_task_clock(thread, time);
        let of_thread = &mut self.threads[thread];
        of_thread.is_released = false;
        let Some(membership) = of_thread.memberships.pop() else {
            return;
        };
        if of_thread.memberships.is_empty() {
            of_thread.burst = None;
        }
        // For the team around, everything that the thread did in this team is work.
        let (waited, longest) = membership.around;
        of_thread.waited = waited;
        let before = longer_work(longest, membership.longest);
        of_thread.longest = longer_work(before, of_thread.longest);
        let team = &mut self.teams[membership.team];
        team.join.raise(&of_thread.now);
        team.members.retain(|member| *member != thread);
        if team.is_over && team.members.is_empty() {
            self.free.push(membership.team);
        }
        self.sweep();
    }

    /// The encountering thread leaves the parallel region.
    pub(in crate::states) fn join(&mut self, thread: usize, time: Ns, id: TeamId) {
        let Some(slot) = self.by_id.remove(&id) else {
            return;
        };
        self.epoch += u64::from(self.by_id.is_empty());
        let time = self.settle(thread, time);
        if self.teams[slot].is_outermost {
            self.change_unseen(time);
        }
        self.end_team(slot, time);
        self.end_graph(slot);
        if let Some(group) = self.teams[slot].group {
            self.graph_wait_for_group(thread, group);
            self.groups.remove(&group);
        }
        let team = &self.teams[slot];
        let of_thread = &mut self.threads[thread];
        let before = team.fork.chain.length;
        let costless = self.scenarios.without_cost(team.region);
        let now = &mut of_thread.now;
        now.chain = now.chain.max(team.join.chain);
        // For the team around, the thread worked until now.
        let waited = &mut [0; S];
        now.stamp.meet(time, &team.join.stamp, costless, waited);
        if team.is_outermost && Self::COUNTS {
            let region = team.region;
            // Serial code is named after the regions that are analysed.
            if team.is_counted {
                of_thread.last_region = Some(region);
            }
            let sums = self.sums.regions.at(region);
            sums.visits += u64::from(team.is_counted);
            sums.path.grow_by(of_thread.now.chain.length.saturating_sub(before));
            let ns = time.abs_diff(team.begin);
            sums.duration.grow_by(ns - self.gaps.between(team.begin, time).min(ns));
            self.sums.instances.at(Cause::NarrowTeam, region).add_alone(Instance {
                begin: team.begin,
                end: time,
                location: of_thread.location,
                weight: ns as f64,
            });
            if let Some(observer) = &mut self.observer {
                observer.add_visit(region, (team.begin, time));
            }
            self.push_activity(time, Change::Closes { region });
            if self.by_id.is_empty() {
                self.samples.begin_serial(region);
            }
        }
        self.change_state(thread, time);
        self.sweep();
    }

    /// Ends the team at `time` for all its members, including those that report their end later.
    pub(in crate::states) fn end_team(&mut self, slot: usize, time: Ns) {
        self.teams[slot].is_over = true;
        for member in self.teams[slot].members.clone() {
            let time = self.settle(member, time);
            self.depart(member, time, false);
            self.end_of_barrier_cost(member, Cause::Join);
            let of_thread = &mut self.threads[member];
            let innermost = of_thread.memberships.last();
            if innermost.is_some_and(|innermost| innermost.team == slot)
                && of_thread.memberships.len() == 1
                && of_thread.role != ThreadRole::Main
                && !of_thread.open.iter().any(|open| open.kind == Kind::Initial)
            {
                of_thread.is_released = true;
            }
            let now = &of_thread.now;
            self.teams[slot].join.raise(now);
            self.change_state(member, time);
        }
        if self.teams[slot].members.is_empty() {
            self.free.push(slot);
        }
    }
}
