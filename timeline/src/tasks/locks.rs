//! The holders of locks, critical, atomic and ordered regions, and a track per lock that shows its holds.
//!
//! Locks are not block-structured: set A, set B, unset A is legal, and a lock may be held beyond the region in which it
//! was set. So holds of locks cannot be slices of a thread.

use ompt_sys as ompt;
use omptrace_symbols::fast_map::RecentMap;

use crate::interpret::item_emitter::Stage;
use crate::model::{
    Anchor, Category, Interval, LocationId, LocationKind, LockId, Ns, Point, RegionId, ThreadEvent,
};

/// The mutexes of a process, by `wait_id`.
#[derive(Default)]
pub(crate) struct Locks {
    /// In the order of their first use.
    locks: Vec<Lock>,
    /// The index of each mutex in `locks`, by `wait_id`.
    places: RecentMap<u64, u32>,
}

#[derive(Default)]
struct Lock {
    wait_id: u64,
    /// The track, once a hold has ended; only locks have one.
    track: Option<LocationId>,
    hold: Option<Hold>,
    /// Number of acquisitions.
    acquisitions: u32,
    /// The end of the previous hold.
    released: Option<Release>,
    /// Threads whose hold was ended by the next acquisition, and whose own release is still to come, with the number of
    /// their acquisition.
    displaced: Vec<(usize, u32)>,
}

#[derive(Clone, Copy)]
struct Hold {
    /// The index of the holder's thread.
    holder: usize,
    /// The number of the acquisition.
    order: u32,
    since: Point,
    /// The number of the event that reported the acquisition.
    event: u64,
    /// The region in which the mutex was acquired.
    region: Option<RegionId>,
    /// The hold is shown on the lock's track.
    has_track: bool,
}

/// A mutex that is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldLock {
    pub(crate) wait_id: u64,
    /// The index of the holder's thread.
    pub(crate) holder: usize,
    pub(crate) since: Ns,
    pub(crate) has_track: bool,
    /// The region in which the mutex was acquired.
    pub(crate) region: Option<RegionId>,
    /// The number of the event that reported its acquisition.
    pub(crate) event: u64,
}

#[derive(Clone, Copy)]
struct Release {
    by: usize,
    at: Point,
    anchor: Anchor,
}

/// A thread acquires a mutex.
#[derive(Clone, Copy)]
pub(crate) struct Acquisition {
    pub(crate) wait_id: u64,
    pub(crate) kind: ompt::ompt_mutex_t,
    /// The index of the thread.
    pub(crate) holder: usize,
    pub(crate) at: Point,
    /// The start of its wait.
    pub(crate) waited_since: Ns,
    /// The thread's innermost region, except for the wait.
    pub(crate) region: Option<RegionId>,
    /// Holds are shown on the lock's track.
    pub(crate) has_track: bool,
}

impl Locks {
    /// The current holder's thread, the number of its acquisition, and the number of the event that reported it.
    pub(crate) fn holder(&mut self, wait_id: u64) -> Option<(usize, u32, u64)> {
        let hold = self.known(wait_id)?.hold?;
        Some((hold.holder, hold.order, hold.event))
    }

    /// Whether all holds that were ended by the next acquisition have been released, too.
    pub(crate) fn are_settled(&self) -> bool {
        self.locks.iter().all(|lock| lock.displaced.is_empty())
    }

    /// Whether a thread other than `waiter` has released a mutex since then, and no thread holds it now. `None` as
    /// `wait_id` means any mutex.
    pub(crate) fn is_released(&self, wait_id: Option<u64>, waiter: usize, since: Ns) -> bool {
        let is_asked_for = |lock: &&Lock| wait_id.is_none_or(|wait_id| wait_id == lock.wait_id);
        let mut locks = self.locks.iter().filter(is_asked_for);
        locks.any(|lock| {
            let is_since = |release: Release| release.by != waiter && release.at.time >= since;
            lock.hold.is_none() && lock.released.is_some_and(is_since)
        })
    }

    /// The held mutexes, sorted by `wait_id`.
    pub(crate) fn held(&self) -> Vec<HeldLock> {
        let held = self.locks.iter().filter_map(|lock| {
            let hold = lock.hold?;
            Some(HeldLock {
                wait_id: lock.wait_id,
                holder: hold.holder,
                since: hold.since.time,
                has_track: hold.has_track,
                region: hold.region,
                event: hold.event,
            })
        });
        let mut held: Vec<HeldLock> = held.collect();
        held.sort_unstable_by_key(|held| held.wait_id);
        held
    }

    /// The mutex, if it occurred before.
    #[inline(always)]
    fn known(&mut self, wait_id: u64) -> Option<&mut Lock> {
        let place = self.places.get(wait_id)?;
        self.locks.get_mut(place as usize)
    }

    /// The mutex, which is created if it has not occurred before.
    #[inline(always)]
    fn any(&mut self, wait_id: u64) -> &mut Lock {
        let place = match self.places.get(wait_id) {
            Some(place) => place as usize,
            None => self.new_lock(wait_id),
        };
        &mut self.locks[place]
    }

    #[cold]
    fn new_lock(&mut self, wait_id: u64) -> usize {
        let place = self.locks.len();
        self.places.insert(wait_id, place as u32);
        self.locks.push(Lock { wait_id, ..Lock::default() });
        place
    }

    /// A thread acquires the mutex. Returns the release by another thread for which it waited.
    ///
    /// A release is reported after the mutex is free, so the next acquisition may be reported earlier: it ends the old
    /// hold.
    pub(crate) fn acquired(
        &mut self,
        stage: &mut Stage<'_>,
        names: &[String],
        new: Acquisition,
    ) -> Option<(Point, Anchor)> {
        let lock = self.any(new.wait_id);
        // The region of the old hold, if it has one, is still open.
        let old = lock.end_hold(stage, names, new.at.time, Anchor::Inside, None);
        if let Some(old) = old {
            lock.displaced.push(old);
        }
        // A thread that acquires the mutex again has released it, whether or not that was reported.
        let is_own = |(thread, _): &mut (usize, u32)| *thread == new.holder;
        for (_, order) in lock.displaced.extract_if(.., is_own) {
            stage.thread_event(new.at, release(new.wait_id, order));
        }
        lock.acquisitions = lock.acquisitions.saturating_add(1);
        let order = lock.acquisitions;
        let acquire = ThreadEvent::AcquireLock { lock: LockId(new.wait_id), kind: new.kind, order };
        stage.thread_event(new.at, acquire);
        lock.hold = Some(Hold {
            holder: new.holder,
            order,
            since: new.at,
            event: stage.event,
            region: new.region,
            has_track: new.has_track,
        });
        let released = lock.released?;
        let was_waited_for = released.by != new.holder && released.at.time >= new.waited_since;
        was_waited_for.then_some((released.at, released.anchor))
    }

    /// `thread` releases the mutex. A task that has moved to another thread may release what it acquired on the first.
    /// `anchor`: the anchor of the region that ends with the hold. False if no thread held the mutex.
    pub(crate) fn released(
        &mut self,
        stage: &mut Stage<'_>,
        names: &[String],
        wait_id: u64,
        thread: usize,
        (at, anchor): (Point, Anchor),
    ) -> bool {
        let Some(lock) = self.known(wait_id) else {
            return false;
        };
        let mut displaced = lock.displaced.iter();
        let ended = match displaced.position(|(displaced, _)| *displaced == thread) {
            Some(index) => Some(lock.displaced.swap_remove(index)),
            None => lock.end_hold(stage, names, at.time, anchor, Some((thread, at.location))),
        };
        let Some((_, order)) = ended else {
            return false;
        };
        stage.thread_event(at, release(wait_id, order));
        true
    }

    /// The trace ends. Returns releases for the mutexes that are still held, with the index of the holder's thread.
    pub(crate) fn finish(
        &mut self,
        stage: &mut Stage<'_>,
        names: &[String],
        time: Ns,
    ) -> Vec<(usize, ThreadEvent)> {
        let since = |lock: &Lock| lock.hold.as_ref().map(|hold| hold.since.time);
        let is_held = |lock: &&mut Lock| lock.hold.is_some() || !lock.displaced.is_empty();
        let mut held: Vec<&mut Lock> = self.locks.iter_mut().filter(is_held).collect();
        held.sort_unstable_by_key(|lock| (since(lock), lock.wait_id));
        let mut unreleased = Vec::new();
        for lock in held {
            let newest = lock.end_hold(stage, names, time, Anchor::Moment, None);
            let holders = lock.displaced.drain(..).chain(newest);
            let of_holder = |(thread, order)| (thread, release(lock.wait_id, order));
            unreleased.extend(holders.map(of_holder));
        }
        unreleased
    }
}

fn release(wait_id: u64, order: u32) -> ThreadEvent {
    let lock = LockId(wait_id);
    ThreadEvent::ReleaseLock { lock, order }
}

impl Lock {
    /// Ends the hold. `by`: the releasing thread, if it is not the holder. Returns the holder and the number of its
    /// acquisition.
    #[inline(always)]
    fn end_hold(
        &mut self,
        stage: &mut Stage<'_>,
        names: &[String],
        time: Ns,
        anchor: Anchor,
        by: Option<(usize, LocationId)>,
    ) -> Option<(usize, u32)> {
        let hold = self.hold.take()?;
        let end = time.max(hold.since.time);
        let (by, location) = by.unwrap_or((hold.holder, hold.since.location));
        self.released = Some(Release {
            by,
            at: Point { location, time: end },
            anchor: if hold.has_track { Anchor::Moment } else { anchor },
        });
        if hold.has_track {
            let new_track = || {
                let wait_id = self.wait_id;
                stage.location(LocationKind::Lock { wait_id }, format!("lock {wait_id:#x}"))
            };
            let track = *self.track.get_or_insert_with(new_track);
            stage.interval(Interval {
                track,
                name: &names[hold.holder],
                category: Category::Mutex,
                begin: hold.since.time,
                end,
                // The lock is identified by the track's name.
                arguments: &[],
                work: None,
            });
        }
        Some((hold.holder, hold.order))
    }
}
