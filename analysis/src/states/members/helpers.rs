//! Hidden helper threads of the runtime, which run target tasks (`target nowait`). They are not threads of the program:
//! their time is not accounted for, but other threads wait for them.

use crate::states::*;

/// A hidden helper thread.
#[derive(Debug, Default)]
pub(in crate::states) struct Helper<const S: usize> {
    /// The task whose start comes next.
    pub(in crate::states) next: Option<TaskId>,
    /// Number of open regions around the slice that it runs.
    depth: usize,
    runs: Option<Slice<S>>,
    /// The [`Threads::epoch`] of the previous slice, and the time when that slice ended.
    done: Option<(u64, PredictedTimes<S>)>,
}

/// A slice of a task: the task from its start or resumption to its end or suspension.
#[derive(Debug)]
pub(in crate::states) struct Slice<const S: usize> {
    task: Option<TaskId>,
    place: PlaceId,
    since: Ns,
    /// The team that waits for the task; `None` in serial code.
    team: Option<usize>,
    /// The team's running sum when the slice started, and those of its open barriers, by barrier number.
    by_tasks: f64,
    at_barriers: Vec<(u64, f64)>,
    now: ChainEnd<S>,
    /// Number of open regions around the slice.
    depth: usize,
}

impl<const S: usize> Helper<S> {
    /// The chain of the running slice.
    pub(in crate::states) fn chain(&mut self) -> Option<&mut Chain> {
        self.runs.as_mut().map(|slice| &mut slice.now.chain)
    }
}

impl<const S: usize> Threads<S> {
    /// A helper enters a region.
    pub(in crate::states) fn helper_enters(
        &mut self,
        location: usize,
        time: Ns,
        region: PlaceId,
        kind: Kind,
    ) {
        let Some(helper) = self.helpers.get_mut(&location) else {
            return;
        };
        let task = helper.next.take();
        let depth = helper.depth;
        let done = helper.done.filter(|(epoch, _)| *epoch == self.epoch).map(|(_, done)| done);
        helper.depth += 1;
        if kind == Kind::Task && helper.runs.is_none() {
            self.latest = self.latest.max(time);
            let slice = self.helper_begins(time, (task, region), depth, done);
            self.helpers.entry(location).or_default().runs = Some(slice);
        }
    }

    fn helper_begins(
        &mut self,
        time: Ns,
        (task, place): (Option<TaskId>, PlaceId),
        depth: usize,
        done: Option<PredictedTimes<S>>,
    ) -> Slice<S> {
        let known = task.and_then(|task| self.tasks.get(&task));
        let (team, mut now) = known.map_or((None, ChainEnd::never()), |task| (task.team, task.start));
        // A helper runs its tasks one after another.
        let start = done.unwrap_or(now.stamp);
        now.stamp.meet(time, &start, 0, &mut [0; S]);
        let mut slice =
            Slice { task, place, since: time, team, by_tasks: 0.0, at_barriers: vec![], now, depth };
        let Some(slot) = team else {
            self.change_serial(time, |serial| serial.push(place));
            return slice;
        };
        let team = &mut self.teams[slot];
        let size = team.size();
        team.until(time);
        team.running += 1;
        team.helpers += 1;
        slice.by_tasks = team.by_tasks;
        let numbers = team.first..;
        // A barrier that a member has left is over.
        let open = team.barriers.iter_mut().zip(numbers).filter(|(barrier, _)| barrier.left == 0);
        for (barrier, number) in open {
            barrier.until(time, size);
            barrier.helper_begins(size);
            slice.at_barriers.push((number, barrier.by_tasks));
        }
        slice
    }

    /// A helper leaves a region.
    pub(in crate::states) fn helper_leaves(&mut self, location: usize, time: Ns) {
        let Some(helper) = self.helpers.get_mut(&location) else {
            return;
        };
        helper.depth = helper.depth.saturating_sub(1);
        let depth = helper.depth;
        if let Some(mut slice) = helper.runs.take_if(|slice| slice.depth >= depth) {
            self.latest = self.latest.max(time);
            slice.now.stamp.advance(time, time.abs_diff(slice.since));
            helper.done = Some((self.epoch, slice.now.stamp));
            self.helper_ends(location, time, slice);
        }
    }

    fn helper_ends(&mut self, location: usize, time: Ns, slice: Slice<S>) {
        let (begin, place) = (slice.since, slice.place);
        if let Some(task) = slice.task.and_then(|task| self.tasks.get_mut(&task)) {
            task.start.raise(&slice.now);
        }
        let Some(slot) = slice.team else {
            return self.change_serial(time, |serial| {
                if let Some(index) = serial.iter().position(|of| *of == place) {
                    serial.swap_remove(index);
                }
            });
        };
        let instance = |weight| Instance { begin, end: time, location, weight };
        let team = &mut self.teams[slot];
        let size = team.size();
        team.until(time);
        team.running = team.running.saturating_sub(1);
        team.helpers = team.helpers.saturating_sub(1);
        let outside = team.outside.get_or_insert_with(|| Box::new(ChainEnd::never()));
        outside.raise(&slice.now);
        self.sums.blame(Cause::TaskWait, place, instance(team.by_tasks - slice.by_tasks));
        for (barrier, number) in team.barriers.iter_mut().zip(team.first..) {
            if barrier.helpers == 0 {
                continue;
            }
            barrier.until(time, size);
            barrier.helpers -= 1;
            let since = slice.at_barriers.iter().find(|(of, _)| *of == number);
            let weight = barrier.by_tasks - since.map_or(0.0, |(_, since)| *since);
            self.sums.blame(Cause::TaskStarvation, place, instance(weight));
        }
        for arrivals in &mut team.arrivals {
            arrivals.left.raise(&slice.now);
        }
    }

    /// Changes which tasks of serial code are run by helpers.
    fn change_serial(&mut self, time: Ns, change: impl FnOnce(&mut Vec<PlaceId>)) {
        let outside: Vec<usize> =
            (0..self.threads.len()).filter(|thread| self.threads[*thread].memberships.is_empty()).collect();
        for thread in &outside {
            self.settle(*thread, time);
        }
        change(&mut self.serial_helpers);
        for thread in outside {
            self.change_state(thread, time);
        }
    }

    /// A thread in serial code has waited for tasks that helpers run: blames these tasks.
    pub(in crate::states) fn blame_helpers(&mut self, thread: usize, cause: Cause, since: Ns, ns: u64) {
        let location = self.threads[thread].location;
        let weight = ns as f64 / self.serial_helpers.len().max(1) as f64;
        let end = since + ns.cast_signed();
        for place in &self.serial_helpers {
            self.sums.blame(cause, *place, Instance { begin: since, end, location, weight });
        }
    }

    /// A task of a helper is complete.
    pub(in crate::states) fn helper_completes(&mut self, time: Ns, task: TaskId) {
        if let Some(known) = self.tasks.get(&task) {
            let mut end = known.start;
            let start = end.stamp;
            end.stamp.meet(time, &start, 0, &mut [0; S]);
            self.complete(task, end);
        }
    }
}
