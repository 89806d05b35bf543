//! The state of a thread, and the cause to which its time is attributed.

use std::iter;

use super::*;
use crate::model::sum::Sum;
use crate::model::within::Within;

/// Whether the longest instances of the loss itself are kept. For other causes, the instances of causing it are kept.
fn has_instances(cause: Cause) -> bool {
    cause.is_in_own_code()
        || matches!(cause, Cause::Fork | Cause::Target | Cause::Reduction | Cause::Preempted | Cause::Tracer)
}

impl<const S: usize> Threads<S> {
    /// Attributes the time of the thread's state up to now to its cause. Returns `time`, or a later time up to which
    /// the thread was already accounted for.
    #[inline(always)]
    pub(super) fn settle(&mut self, thread: usize, time: Ns) -> Ns {
        let until = self.threads[thread].until;
        if time > until {
            self.settle_until(thread, time);
        }
        time.max(until)
    }

    #[inline(never)]
    fn settle_until(&mut self, thread: usize, time: Ns) {
        let ThreadState { until, state, .. } = self.threads[thread];
        if state != State::Useful(None) {
            self.pause_serial(thread);
        }
        self.threads[thread].until = time;
        self.predict(thread, time, until);
        let ns = time.abs_diff(until);
        let ns = ns - self.gaps.between(until, time).min(ns);
        let work = match state {
            State::Useful(place) => Some(place),
            // For other threads, waits in the program's own code are part of this thread's work.
            State::Loses(cause, place) if cause.is_in_own_code() => Some(Some(place)),
            _ => None,
        };
        if let Some(place) = work {
            self.graph_work(thread, ns);
            let of_thread = &mut self.threads[thread];
            match place {
                Some(place) => of_thread.longest = longer_work(of_thread.longest, (ns, place)),
                None => of_thread.serial_ns.grow_by(ns),
            }
        }
        if Self::COUNTS {
            self.count(thread, (until, time), ns);
        }
    }

    /// Attributes the time of the thread's state, of which `ns` were recorded, to its cause.
    fn count(&mut self, thread: usize, (until, time): (Ns, Ns), ns: u64) {
        if self.observer.is_some() {
            self.observe(thread, until, time);
        }
        match self.threads[thread].state {
            State::Rests => return,
            State::Useful(place) => {
                let region = self.charge(thread, Cause::Useful, ns);
                let of_thread = &mut self.threads[thread];
                of_thread.useful.grow_by(ns);
                if let Some(place) = place {
                    let step = Step { place, location: of_thread.location, begin: until, end: time };
                    self.chains.extend(&mut of_thread.now.chain, step, ns);
                    let innermost = of_thread.memberships.last();
                    if innermost.is_some_and(|m| self.teams[m.team].is_in_single) {
                        let outermost = of_thread.memberships.first();
                        let around = outermost.map_or(0, |m| self.teams[m.team].size());
                        let known = self.sums.in_single.entry(place).or_default();
                        *known = around.max(*known);
                    }
                    let sums = self.sums.useful_at.at(place);
                    sums.ns.grow_by(ns);
                    sums.within.merge(region.map_or(Within::Nowhere, Within::One));
                }
            }
            State::Loses(cause, place) => {
                self.lose(thread, cause, place, ns);
                if cause.is_mutex() && ns > 0 && self.threads[thread].is_selected {
                    self.block(thread, cause, place, ns);
                }
                if cause.is_mpi_call() && ns > 0 {
                    let of_thread = &self.threads[thread];
                    let mut open = of_thread.open.iter().rev();
                    if let Some(hold) = open.find(|open| open.kind == Kind::MutexHold) {
                        let key = (hold.region, of_thread.location);
                        self.sums.held_in_mpi.entry(key).or_default().grow_by(ns);
                    }
                }
                match cause {
                    Cause::TaskWait => self.await_tasks(thread, time, place, ns),
                    Cause::TaskStarvation => self.blame_helpers(thread, cause, until, ns),
                    cause if cause.is_in_own_code() => {
                        let of_thread = &mut self.threads[thread];
                        let step = Step { place, location: of_thread.location, begin: until, end: time };
                        self.chains.extend(&mut of_thread.now.chain, step, ns);
                    }
                    _ => {}
                }
                if has_instances(cause) {
                    self.sums.instances.at(cause, place).add(Instance {
                        begin: until,
                        end: time,
                        location: self.threads[thread].location,
                        weight: ns as f64,
                    });
                }
            }
            State::InBarrier(place) => self.settle_barrier(thread, time, place, ns),
        }
        self.blame_for_delay(thread, until, time);
    }

    /// Passes the state that ends to the observer.
    fn observe(&mut self, thread: usize, until: Ns, time: Ns) {
        let (cause, place) = match self.threads[thread].state {
            State::Useful(place) => (Cause::Useful, place),
            State::Loses(cause, place) => (cause, Some(place)),
            State::Rests | State::InBarrier(_) => return,
        };
        let due = cause.is_mutex().then(|| self.due(thread));
        let mut seen = self.gaps.outside(until, time);
        if let Some(observer) = &mut self.observer {
            observer.add(thread, &mut seen, cause, place, due);
        }
    }

    /// Advances the predicted times: work takes its time, and waits end when threads meet.
    pub(super) fn predict(&mut self, thread: usize, time: Ns, since: Ns) {
        if !Self::PREDICTS {
            return;
        }
        let ns = time.abs_diff(since);
        let (cause, place) = match self.threads[thread].state {
            State::Rests | State::InBarrier(_) => return,
            State::Useful(None) => return self.threads[thread].now.stamp.advance(time, ns),
            State::Useful(Some(place)) => (Cause::Useful, place),
            State::Loses(
                Cause::Fork
                | Cause::Join
                | Cause::TaskWait
                | Cause::TaskStarvation
                | Cause::Lock
                | Cause::Critical
                | Cause::Ordered
                | Cause::Atomic,
                _,
            ) => return,
            State::Loses(cause, place) => (cause, place),
        };
        let around = self.threads[thread].memberships.last().map(|membership| {
            let team = &self.teams[membership.team];
            (team.outermost, team.size())
        });
        let stamp = &mut self.threads[thread].now.stamp;
        stamp.work(time, ns, place, around, cause, &self.scenarios);
    }

    /// Adds time to a cause. Returns the outermost region in which the thread was.
    pub(super) fn charge(&mut self, thread: usize, cause: Cause, ns: u64) -> Option<PlaceId> {
        if !self.threads[thread].is_selected {
            return None;
        }
        self.sums.accounting.add(cause, ns);
        let membership = self.threads[thread].memberships.first();
        let team = membership.map(|membership| membership.team);
        let team = team.or_else(|| self.threads[thread].open.iter().find_map(|open| open.team));
        let team = team.or(self.outermost_open);
        let region = team.map(|team| self.teams[team].outermost);
        if let Some(region) = region {
            let sums = self.sums.regions.at(region);
            sums.accounting.add(cause, ns);
            if cause == Cause::Useful {
                sums.useful.at(thread).grow_by(ns);
            }
        } else if cause == Cause::Fork {
            self.threads[thread].fork_ns.grow_by(ns);
        }
        region
    }

    pub(super) fn lose(&mut self, thread: usize, cause: Cause, place: PlaceId, ns: u64) {
        if ns > 0 && self.threads[thread].is_selected {
            let region = self.charge(thread, cause, ns);
            self.sums.lost_at.at(cause, place).grow_by(ns);
            self.sums.useful_at.at(place).within.merge(region.map_or(Within::Nowhere, Within::One));
            if matches!(cause, Cause::Join | Cause::Barrier) {
                self.add_nested_cost(thread, ns);
            }
        }
    }

    /// Adds the cost of barriers of a nested region.
    fn add_nested_cost(&mut self, thread: usize, ns: u64) {
        let innermost = self.threads[thread].memberships.last();
        let team = innermost.map(|membership| &self.teams[membership.team]);
        if let Some(team) = team.filter(|team| !team.is_outermost) {
            self.sums.nested.entry(team.region).or_default().barriers_ns.grow_by(ns);
        }
    }

    /// Divides a wait at a barrier by what the other members did in the meantime.
    pub(super) fn settle_barrier(&mut self, thread: usize, time: Ns, place: PlaceId, ns: u64) {
        let Some(membership) = self.threads[thread].memberships.last().copied() else {
            if let Some(observer) = &mut self.observer {
                let span = (time - ns.cast_signed(), time);
                observer.add(thread, &mut iter::once(span), Cause::Barrier, Some(place), None);
            }
            return self.lose(thread, Cause::Barrier, place, ns);
        };
        let team = &mut self.teams[membership.team];
        let size = team.size();
        let (clocks, gaps) = match membership.inside.and_then(|number| team.open_barrier(number)) {
            Some(barrier) => {
                barrier.until(time, size);
                (barrier.clocks(), barrier.gaps)
            }
            None => (membership.clocks, 0),
        };
        let late = (clocks.late - membership.clocks.late).min(ns);
        let starved = (clocks.starved - membership.clocks.starved).min(ns - late);
        if late > 0 {
            self.lose(thread, Cause::Imbalance, place, late);
        }
        if starved > 0 {
            self.lose(thread, Cause::TaskStarvation, place, starved);
        }
        let depth = self.threads[thread].memberships.len();
        if let Some(observer) = &mut self.observer {
            // The interval is drawn as late arrival, then no work, then the barrier's own cost. A gap in the recording is taken
            // from the front.
            let begin = time - ns.cast_signed();
            let arrived = begin + late.cast_signed();
            let done = arrived + starved.cast_signed();
            let mut span = iter::once((begin, arrived));
            observer.add(thread, &mut span, Cause::Imbalance, Some(place), None);
            let cause = Cause::TaskStarvation;
            observer.add(thread, &mut iter::once((arrived, done)), cause, Some(place), None);
            if done < time {
                observer.add_pending(thread, depth, (done, time), place);
            }
        }
        let own = ns - late - starved;
        // The barrier was not over before the last task began.
        let gaps = gaps.saturating_sub(membership.clocks.over).min(own);
        if gaps > 0 {
            self.end_of_barrier_cost(thread, Cause::Barrier);
            self.lose(thread, Cause::Barrier, place, gaps);
        }
        if own > 0 {
            self.sums.instances.at(Cause::Barrier, place).add(Instance {
                begin: time - own.cast_signed(),
                end: time,
                location: self.threads[thread].location,
                weight: own as f64,
            });
        }
        if let Some(membership) = self.threads[thread].memberships.last_mut() {
            membership.clocks = clocks;
            membership.own.grow_by(own - gaps);
            membership.own_place = place;
        }
    }

    /// Attributes the barrier's own cost to `cause`, which is known only at its end.
    pub(super) fn end_of_barrier_cost(&mut self, thread: usize, cause: Cause) {
        if !Self::COUNTS {
            return;
        }
        let depth = self.threads[thread].memberships.len();
        if let Some(membership) = self.threads[thread].memberships.last_mut() {
            let (own, place) = (std::mem::take(&mut membership.own), membership.own_place);
            if let Some(observer) = &mut self.observer {
                observer.end_pending(thread, depth, cause, place);
            }
            if own > 0 {
                self.lose(thread, cause, place, own);
            }
        }
    }

    /// The thread, which is in a nested region, delays threads of a team around it.
    #[cold]
    fn blame_nested(&mut self, thread: usize, work: PlaceId, weight: f64) {
        let of_thread = &self.threads[thread];
        let Some(innermost) = of_thread.memberships.last() else {
            return;
        };
        if self.teams[innermost.team].size() > 1 {
            return;
        }
        let begin = of_thread.open.iter().position(|open| open.team == Some(innermost.team));
        let around = begin.and_then(|begin| self.worked_at(&of_thread.open[..begin]));
        let sums = self.sums.alone.entry(work).or_default();
        sums.weight.add(weight);
        sums.around.merge(around.map_or(Within::Nowhere, Within::One));
    }

    /// Blames the thread for the waits of others during the state that ends.
    pub(super) fn blame_for_delay(&mut self, thread: usize, since: Ns, time: Ns) {
        if self.threads[thread].memberships.is_empty() {
            return;
        }
        let location = self.threads[thread].location;
        let instance = |weight| Instance { begin: since, end: time, location, weight };
        let ThreadState { state, runs_task, by_tasks, last_region, .. } = self.threads[thread];
        let place = match state {
            State::Useful(Some(place)) | State::Loses(_, place) => place,
            State::Useful(None) => self.sums.serial((last_region, None)),
            State::InBarrier(place) => place,
            State::Rests => return,
        };
        // A thread that waits in a barrier of its team delays those waiting at barriers of the teams around.
        let innermost = usize::from(matches!(state, State::InBarrier(_)));
        for index in 0..self.threads[thread].memberships.len() - innermost {
            let membership = self.threads[thread].memberships[index];
            let team = &mut self.teams[membership.team];
            let (size, region) = (team.size(), team.region);
            let number = membership.inside.unwrap_or(membership.barriers);
            let Some(barrier) = team.open_barrier(number) else {
                continue;
            };
            barrier.until(time, size);
            let (late, tasks) = (barrier.by_late, barrier.by_tasks);
            let work = barrier.place_before(place, region, self.reports.inlined);
            let charged = &mut self.threads[thread].memberships[index];
            (charged.by_late, charged.by_tasks) = (late, tasks);
            match membership.inside {
                None => {
                    let weight = late - membership.by_late;
                    self.sums.blame(Cause::Imbalance, work, instance(weight));
                    if weight > 0.0 && index + 1 < self.threads[thread].memberships.len() {
                        self.blame_nested(thread, work, weight);
                    }
                }
                Some(_) => {
                    let weight = tasks - membership.by_tasks;
                    let instance = instance(weight);
                    self.sums.blame(Cause::TaskStarvation, place, instance);
                }
            }
        }
        let innermost = self.threads[thread].memberships.last();
        if let Some(team) = innermost.map(|membership| membership.team).filter(|_| runs_task) {
            let team = &mut self.teams[team];
            team.until(time);
            let weight = team.by_tasks - by_tasks;
            self.threads[thread].by_tasks = team.by_tasks;
            self.sums.blame(Cause::TaskWait, place, instance(weight));
        }
    }

    /// The current state of the thread, by its open regions. External waits interrupt only work.
    pub(super) fn state(&self, thread: usize) -> State {
        let thread = &self.threads[thread];
        let state = |open: &[Open]| self.state_in(thread, open);
        match thread.open.split_last() {
            Some((wait, around)) if wait.kind == Kind::ExternalWait => match state(around) {
                State::Useful(_) => State::Loses(Cause::ExternalWait, wait.region),
                other => other,
            },
            _ => state(&thread.open),
        }
    }

    /// The state of a thread with these open regions.
    fn state_in(&self, thread: &ThreadState<S>, open: &[Open]) -> State {
        if thread.is_released {
            return State::Rests;
        }
        for (index, open) in open.iter().enumerate().rev() {
            let place = open.region;
            return match open.kind {
                Kind::Transparent | Kind::TaskGroup | Kind::Chunk | Kind::Idle | Kind::ExternalWait => {
                    continue;
                }
                // If the runtime does not report members, the encountering thread is a member from here on.
                Kind::Parallel if !self.reports.members => State::Useful(Some(place)),
                Kind::Parallel if open.has_begun => State::Loses(Cause::Join, place),
                Kind::Parallel | Kind::WakeUp => State::Loses(Cause::Fork, place),
                Kind::Initial => State::Useful(None),
                Kind::Member => {
                    let team = open.team.map(|team| self.teams[team].region);
                    let place = team.unwrap_or(place);
                    match open.is_done {
                        true => State::Loses(Cause::Join, place),
                        false => State::Useful(Some(place)),
                    }
                }
                Kind::Task
                | Kind::Work
                | Kind::StaticLoop
                | Kind::Sections
                | Kind::Alone
                | Kind::MutexHold => State::Useful(Some(place)),
                Kind::MutexWait(cause) => State::Loses(cause, place),
                // The tracer's work on a thread that takes no part in the program costs the program nothing, nor does
                // the program wait for MPI calls of a thread outside of OpenMP.
                Kind::Charged(_)
                    if !open.kind.shows_activity()
                        && !self.takes_part(thread)
                        && self.works_unseen(thread).is_none() =>
                {
                    State::Rests
                }
                Kind::Charged(Cause::Preempted) => {
                    let place = self.worked_at(&thread.open[..index]).unwrap_or(place);
                    State::Loses(Cause::Preempted, place)
                }
                Kind::Charged(cause) => State::Loses(cause, place),
                Kind::Submit => State::Loses(Cause::Target, target(&thread.open[..=index])),
                Kind::TaskSync { is_wait: true } | Kind::GroupWait | Kind::DependWait => {
                    State::Loses(Cause::TaskWait, place)
                }
                Kind::TaskSync { is_wait: false } => match self.reports.taskwait_waits {
                    true => State::Loses(Cause::Runtime, place),
                    false => State::Loses(Cause::TaskWait, place),
                },
                Kind::Barrier { .. } => match self.is_in_barrier(thread, index) {
                    true => State::InBarrier(place),
                    false if !self.serial_helpers.is_empty() => State::Loses(Cause::TaskStarvation, place),
                    false => State::Loses(Cause::Barrier, place),
                },
            };
        }
        if let Some(region) = self.works_unseen(thread) {
            return State::Useful(Some(region));
        }
        match self.takes_part(thread) {
            true => State::Useful(None),
            false => State::Rests,
        }
    }

    /// The place of the work in these regions; `None` in serial code.
    fn worked_at(&self, open: &[Open]) -> Option<PlaceId> {
        let mut regions = open.iter().rev();
        let innermost = regions.find(|open| {
            !matches!(open.kind, Kind::Transparent | Kind::TaskGroup | Kind::Chunk | Kind::ExternalWait)
        })?;
        match innermost.kind {
            Kind::Member => Some(match innermost.team {
                Some(team) => self.teams[team].region,
                None => innermost.region,
            }),
            Kind::Initial => None,
            _ => Some(innermost.region),
        }
    }

    /// For runtimes that report idle threads, but not members: the region in which a thread that is not idle works.
    fn works_unseen(&self, thread: &ThreadState<S>) -> Option<PlaceId> {
        let reports = &self.reports;
        let is_worker = thread.role != ThreadRole::Main && thread.is_seen;
        if reports.members || !reports.idle || !is_worker || thread.shown > 0 {
            return None;
        }
        let idles = thread.open.iter().any(|open| open.kind == Kind::Idle);
        self.outermost_open.filter(|_| !idles).map(|team| self.teams[team].region)
    }

    /// An outermost region starts or ends. Threads about which nothing more is known start or stop working in it.
    pub(super) fn change_unseen(&mut self, time: Ns) {
        if self.reports.members || !self.reports.idle {
            return;
        }
        for thread in 0..self.threads.len() {
            self.settle(thread, time);
        }
        let mut open = self.by_id.values().copied().filter(|team| self.teams[*team].is_outermost);
        self.outermost_open = open.next();
        for thread in 0..self.threads.len() {
            self.change_state(thread, time);
        }
    }

    pub(super) fn takes_part(&self, thread: &ThreadState<S>) -> bool {
        thread.role == ThreadRole::Main || thread.shown > 0
    }

    /// Whether the barrier region at `index` lies in the barrier of the thread's innermost team.
    pub(super) fn is_in_barrier(&self, thread: &ThreadState<S>, index: usize) -> bool {
        let is_inside = thread.memberships.last().is_some_and(|m| m.inside.is_some());
        is_inside && thread.open[..=index].iter().any(|open| open.is_barrier)
    }

    /// The thread's open regions have changed.
    pub(super) fn change_state(&mut self, thread: usize, time: Ns) {
        let state = self.state(thread);
        let of_thread = &mut self.threads[thread];
        let before = std::mem::replace(&mut of_thread.state, state);
        if Self::COUNTS && before != state {
            // Reported for all threads, because selected threads may be idle during a call of another one.
            let mut call = |state, change: fn(u32) -> Change| {
                if let State::Loses(cause, region) = state
                    && cause.is_mpi_call()
                {
                    self.activity.push(time, change(region));
                }
            };
            call(before, |region| Change::Returns { region });
            call(state, |region| Change::Calls { region });
        }
        if Self::COUNTS {
            self.count_state(thread, time);
        }
    }

    /// Updates the sums that concern other threads for the thread's state from `time` on.
    fn count_state(&mut self, thread: usize, time: Ns) {
        let of_thread = &mut self.threads[thread];
        let state = of_thread.state;
        let is_busy = state != State::Rests;
        if is_busy != of_thread.is_busy {
            of_thread.is_busy = is_busy;
            let change = match is_busy {
                true => Change::Works,
                false => Change::Rests,
            };
            self.busy = match is_busy {
                true => self.busy + 1,
                false => self.busy - 1,
            };
            if of_thread.is_selected {
                self.activity.push(time, change);
            }
        }
        let Some(innermost) = of_thread.memberships.last() else {
            return;
        };
        let waits = matches!(state, State::Loses(Cause::TaskWait, _));
        let runs = !waits
            && !matches!(state, State::InBarrier(_))
            && of_thread
                .open
                .iter()
                .rev()
                .take_while(|open| open.kind != Kind::Member)
                .any(|open| open.kind == Kind::Task);
        let team = &mut self.teams[innermost.team];
        if waits != of_thread.waits_for_tasks || runs != of_thread.runs_task {
            team.until(time);
            // In a damaged trace, the thread's team may have ended, and its slot may belong to another team.
            let (waited, ran) = (of_thread.waits_for_tasks, of_thread.runs_task);
            team.waiting = (team.waiting + u32::from(waits)).saturating_sub(waited.into());
            team.running = (team.running + u32::from(runs)).saturating_sub(ran.into());
            of_thread.waits_for_tasks = waits;
            of_thread.runs_task = runs;
        }
        if runs {
            team.until(time);
        }
        of_thread.by_tasks = team.by_tasks;
        of_thread.taskless = team.taskless;
        for membership in &mut of_thread.memberships {
            let team = &mut self.teams[membership.team];
            let size = team.size();
            let number = membership.inside.unwrap_or(membership.barriers);
            match team.open_barrier(number) {
                Some(barrier) => {
                    barrier.until(time, size);
                    membership.clocks = barrier.clocks();
                    membership.by_late = barrier.by_late;
                    membership.by_tasks = barrier.by_tasks;
                }
                None => {
                    membership.clocks = Clocks::default();
                    membership.by_late = 0.0;
                    membership.by_tasks = 0.0;
                }
            }
        }
    }

    /// The region `before` ends the current serial work.
    pub(super) fn end_serial(&mut self, thread: usize, before: Option<PlaceId>) {
        self.add_serial(thread, before);
        let of_thread = &mut self.threads[thread];
        let ns = std::mem::take(&mut of_thread.since_region_ns);
        of_thread.now.stamp.was_serial(ns, before, &self.scenarios);
    }

    /// Another event comes before the region that would end the current serial work.
    pub(super) fn pause_serial(&mut self, thread: usize) {
        self.add_serial(thread, None);
    }

    #[inline]
    fn add_serial(&mut self, thread: usize, before: Option<PlaceId>) {
        if self.threads[thread].serial_ns > 0 {
            self.serial_was_before(thread, before);
        }
    }

    #[inline(never)]
    fn serial_was_before(&mut self, thread: usize, before: Option<PlaceId>) {
        let of_thread = &mut self.threads[thread];
        let ns = std::mem::take(&mut of_thread.serial_ns);
        of_thread.since_region_ns.grow_by(ns);
        if !Self::COUNTS {
            return;
        }
        let place = self.sums.serial((of_thread.last_region, before));
        let step = Step {
            place,
            location: of_thread.location,
            begin: of_thread.until - ns.cast_signed(),
            end: of_thread.until,
        };
        self.sums.useful_at.at(place).ns.grow_by(ns);
        self.sums.instances.at(Cause::Serial, place).add(Instance {
            begin: step.begin,
            end: step.end,
            location: step.location,
            weight: ns as f64,
        });
        self.chains.extend(&mut of_thread.now.chain, step, ns);
    }

    /// Processes the changes before which no earlier ones can come.
    pub(super) fn sweep(&mut self) {
        if Self::COUNTS && self.activity.is_full() {
            let incomplete = self.by_id.values().map(|team| &self.teams[*team]);
            let incomplete = incomplete.filter(|team| team.begun < team.size.unwrap_or(u32::MAX));
            let until = incomplete.map(|team| team.begin).min();
            self.activity.advance(until.unwrap_or(self.latest).min(self.latest));
        }
    }

    /// Merges pieces of chains, after many have accumulated. This function must know all chains in use.
    #[cold]
    pub(super) fn sum_up_chains(&mut self) {
        let threads = self.threads.iter_mut();
        let mut alive: Vec<&mut Chain> = threads
            .flat_map(|thread| {
                let children = thread.memberships.iter_mut().map(|m| &mut m.children.chain);
                [&mut thread.now.chain, &mut thread.before_wait.0.chain].into_iter().chain(children)
            })
            .collect();
        for team in &mut self.teams {
            alive.extend([&mut team.fork.chain, &mut team.join.chain]);
            alive.extend(team.arrivals.iter_mut().map(|at| &mut at.left.chain));
            alive.extend(team.outside.as_mut().map(|outside| &mut outside.chain));
        }
        alive.extend(self.locks.all.iter_mut().map(|lock| &mut lock.release.chain));
        alive.extend(self.groups.values_mut().map(|group| &mut group.chain));
        alive.extend(self.helpers.values_mut().filter_map(Helper::chain));
        for task in self.tasks.values_mut() {
            alive.push(&mut task.start.chain);
            let children = task.children.as_deref_mut();
            alive.extend(children.map(|children| &mut children.chain));
        }
        self.chains.sum_up(&mut alive, &self.samples.take_names());
    }
}

/// The target construct of a kernel's submission, the last of the open regions; if there is none, the submission
/// itself.
pub(super) fn target(open: &[Open]) -> PlaceId {
    let around = open.iter().rev();
    let mut targets = around.filter(|open| open.kind == Kind::Charged(Cause::Target));
    let target = targets.next().or(open.last());
    target.map_or(0, |open| open.region)
}
