//! Locks, critical, ordered and atomic regions: their holders and waiters.

use crate::model::sum::Sum;
use crate::states::*;

impl<const S: usize> Threads<S> {
    /// The number of a mutex, whose waits are blamed up to `time`.
    pub(in crate::states) fn lock(&mut self, time: Ns, lock: LockId, cause: Cause) -> LockSlot {
        let slot = self.lock_slot(time, lock, cause);
        self.blame_holder(slot, time);
        slot
    }

    /// The number of a mutex.
    #[inline]
    fn lock_slot(&mut self, time: Ns, lock: LockId, cause: Cause) -> LockSlot {
        let epoch = self.epoch;
        self.locks.slot(lock, || Lock {
            id: lock,
            cause,
            epoch,
            waiters: Vec::new(),
            now: time,
            holder: None,
            last: None,
            since: time,
            location: 0,
            found_held: false,
            release: ChainEnd::never(),
            freed: None,
        })
    }

    /// Blames the thread that holds the mutex, or held it last, for the waits up to `time`.
    fn blame_holder(&mut self, slot: LockSlot, time: Ns) {
        let epoch = self.epoch;
        let known = &mut self.locks[slot];
        if known.epoch != epoch {
            known.epoch = epoch;
            if known.holder.is_none() {
                known.last = None;
                known.release = ChainEnd::never();
                known.freed = None;
            }
        }
        if Self::COUNTS && time > known.now {
            let ns = time.abs_diff(known.now);
            known.now = time;
            if !known.waiters.is_empty()
                && let Some(place) = known.holder.or(known.last)
            {
                let instance = Instance {
                    begin: known.now - ns.cast_signed(),
                    end: known.now,
                    location: known.location,
                    weight: ns as f64 * known.waiters.len() as f64,
                };
                self.sums.blame(known.cause, place, instance);
            }
        }
    }

    pub(in crate::states) fn await_lock(
        &mut self,
        thread: usize,
        time: Ns,
        lock: Option<LockId>,
        cause: Cause,
    ) {
        let Some(lock) = lock else { return };
        let slot = self.lock(time, lock, cause);
        self.threads[thread].awaits = Some(slot);
        let known = &mut self.locks[slot];
        known.cause = cause;
        known.waiters.push(thread);
        self.threads[thread].found_held = known.holder.is_some();
    }

    /// Accounts for the waits for the lock up to now, which are due to the thread that held it.
    fn settle_waiters(&mut self, thread: usize, time: Ns, slot: LockSlot) {
        let waiters = std::mem::take(&mut self.locks[slot].waiters);
        for waiter in waiters.iter().filter(|waiter| **waiter != thread) {
            self.settle(*waiter, time);
        }
        self.locks[slot].waiters = waiters;
    }

    /// The mutex that the thread waits for, and its holder.
    pub(in crate::states) fn due(&self, thread: usize) -> AwaitedMutex {
        let of_thread = &self.threads[thread];
        let known = of_thread.awaits.map(|slot| &self.locks[slot]);
        let holder = known.and_then(|known| {
            let place = known.holder.or(known.last)?;
            // No other thread holds the mutex: it is being handed over.
            let is_another = known.location != of_thread.location;
            is_another.then_some((known.location, place))
        });
        let lock = known.map(|known| known.id.0);
        AwaitedMutex { lock, holder }
    }

    /// Adds a thread's wait for a mutex.
    pub(in crate::states) fn block(&mut self, thread: usize, cause: Cause, place: PlaceId, ns: u64) {
        let AwaitedMutex { lock, holder } = self.due(thread);
        let known = self.threads[thread].awaits.map(|slot| &self.locks[slot]);
        if known.is_none_or(|known| known.holder.or(known.last).is_none()) {
            self.sums.uncaused_at.at(cause, place).grow_by(ns);
        }
        let block =
            Block { cause, lock: lock.map(LockId), holder, waiter: (self.threads[thread].location, place) };
        self.sums.block(block, ns);
    }

    pub(in crate::states) fn await_no_more(&mut self, thread: usize, time: Ns) {
        if let Some(slot) = self.threads[thread].awaits.take() {
            self.blame_holder(slot, time);
            self.locks[slot].waiters.retain(|waiter| *waiter != thread);
        }
    }

    pub(in crate::states) fn acquire(&mut self, thread: usize, time: Ns, lock: LockId) {
        let slot = self.lock_slot(time, lock, Cause::Lock);
        let of_thread = &mut self.threads[thread];
        let has_waited = of_thread.awaits == Some(slot);
        let found_held = has_waited && of_thread.found_held;
        let location = of_thread.location;
        let innermost = of_thread.open.iter().rev();
        let mut places =
            innermost.filter(|open| !matches!(open.kind, Kind::Transparent | Kind::TaskGroup | Kind::Chunk));
        let place = places.next().map(|open| open.region);
        if has_waited {
            of_thread.awaits = None;
        }
        self.settle_waiters(thread, time, slot);
        self.blame_holder(slot, time);
        let known = &mut self.locks[slot];
        known.waiters.retain(|waiter| *waiter != thread);
        known.holder = place;
        known.since = time;
        known.location = location;
        known.found_held = found_held;
        let last = known.last;
        let free = last.map_or(0, |place| self.scenarios.lock_free(place));
        self.hold_lock(thread, slot);
        let of_thread = &mut self.threads[thread];
        of_thread.acquired = Some(slot);
        let Lock { release, freed, .. } = &self.locks[slot];
        let now = &mut of_thread.now;
        now.chain = now.chain.max(release.chain);
        let is_member = |team: usize| of_thread.memberships.iter().any(|m| m.team == team);
        let freed = freed.as_ref().filter(|(team, _)| is_member(*team));
        now.stamp.acquire(time, freed.map_or(&release.stamp, |(_, stamp)| stamp), free);
    }

    /// A region starts whose mutex was just acquired: the region is the place of the hold.
    pub(in crate::states) fn hold(&mut self, thread: usize, region: PlaceId) {
        if let Some(slot) = self.threads[thread].acquired.take() {
            self.locks[slot].holder = Some(region);
        }
    }

    pub(in crate::states) fn release(&mut self, thread: usize, time: Ns, lock: LockId) {
        let slot = self.lock(time, lock, Cause::Lock);
        let of_thread = &mut self.threads[thread];
        of_thread.held.retain(|held| *held != slot);
        let known = &mut self.locks[slot];
        known.freed = None;
        let Some(place) = known.holder.take() else {
            known.release = of_thread.now;
            return;
        };
        // In scenarios without waits for mutexes held from this place, waiters depend on the previous release.
        known.last = Some(place);
        let (cause, waited) = (known.cause, known.found_held);
        let held = time.abs_diff(known.since);
        match self.scenarios.lock_free(place) {
            0 => known.release = of_thread.now,
            free => {
                let before = std::mem::replace(&mut known.release, of_thread.now);
                known.release.stamp.keep(&before.stamp, free);
            }
        }
        self.graph_held(thread, lock, held);
        if self.scenarios.spread() != 0 {
            // Holds in a nested region count for the regions around it, too.
            let mut next = self.threads[thread].memberships.last().map(|membership| membership.team);
            while let Some(team) = next.map(|team| &mut self.teams[team]) {
                team.held.entry(slot).or_default().grow_by(held);
                next = team.around;
            }
        }
        if !Self::COUNTS {
            return;
        }
        if held == 0 && !self.is_inside {
            return;
        }
        let sums = self.sums.holds.at(cause, place);
        sums.count += 1;
        sums.waited += u64::from(waited);
        sums.held_ns.grow_by(held);
    }
}
