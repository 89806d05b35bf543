//! The holders of locks, critical, atomic and ordered regions; the holds of locks on one track per lock.
//!
//! Locks are not block-structured: set A, set B, unset A is legal, and a lock is kept beyond the region in which it was
//! set. So holds of locks are no slices of a thread.

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
    /// The place of each among them.
    places: RecentMap<u64, u32>,
}

#[derive(Default)]
struct Lock {
    wait_id: u64,
    /// Its track, once a hold has ended; only a lock has one.
    track: Option<LocationId>,
    hold: Option<Hold>,
    /// How often it was acquired.
    acquisitions: u32,
    /// The end of the hold before.
    released: Option<Release>,
    /// Threads whose hold was ended by the next acquisition, until their own release comes, each with the order of its
    /// acquisition.
    displaced: Vec<(usize, u32)>,
}

#[derive(Clone, Copy)]
struct Hold {
    /// The holder's place in the list of threads.
    holder: usize,
    /// The number of its acquisition.
    order: u32,
    since: Point,
    /// The number of the event that reported it.
    event: u64,
    /// The region that it was in.
    region: Option<RegionId>,
    /// It shows on the lock's track.
    has_track: bool,
}

/// A mutex that is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) wait_id: u64,
    /// The holder's place in the list of threads.
    pub(crate) holder: usize,
    pub(crate) since: Ns,
    pub(crate) has_track: bool,
    /// The region that it was acquired in.
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

/// A thread gets a mutex.
#[derive(Clone, Copy)]
pub(crate) struct Acquisition {
    pub(crate) wait_id: u64,
    pub(crate) kind: ompt::ompt_mutex_t,
    /// The thread's place in the list of threads.
    pub(crate) holder: usize,
    pub(crate) at: Point,
    /// Since when it waited.
    pub(crate) waited_since: Ns,
    /// The region that it is in, but for the wait.
    pub(crate) region: Option<RegionId>,
    /// Holds show on the lock's track.
    pub(crate) has_track: bool,
}

impl Locks {
    /// The thread that holds the mutex now, the order of that acquisition, and the number of its event.
    pub(crate) fn holder(&mut self, wait_id: u64) -> Option<(usize, u32, u64)> {
        let hold = self.known(wait_id)?.hold?;
        Some((hold.holder, hold.order, hold.event))
    }

    /// Whether each hold that was ended by the next acquisition was released, too.
    pub(crate) fn are_settled(&self) -> bool {
        self.locks.iter().all(|lock| lock.displaced.is_empty())
    }

    /// Whether another thread than `waiter` has released a mutex since that time, which nobody has now. It is that of
    /// `wait_id`, or any where that is `None`.
    pub(crate) fn is_released(&self, wait_id: Option<u64>, waiter: usize, since: Ns) -> bool {
        let is_asked_for = |lock: &&Lock| wait_id.is_none_or(|wait_id| wait_id == lock.wait_id);
        let mut locks = self.locks.iter().filter(is_asked_for);
        locks.any(|lock| {
            let is_since = |release: Release| release.by != waiter && release.at.time >= since;
            lock.hold.is_none() && lock.released.is_some_and(is_since)
        })
    }

    /// The mutexes that are held, by `wait_id`.
    pub(crate) fn held(&self) -> Vec<Held> {
        let held = self.locks.iter().filter_map(|lock| {
            let hold = lock.hold?;
            Some(Held {
                wait_id: lock.wait_id,
                holder: hold.holder,
                since: hold.since.time,
                has_track: hold.has_track,
                region: hold.region,
                event: hold.event,
            })
        });
        let mut held: Vec<Held> = held.collect();
        held.sort_unstable_by_key(|held| held.wait_id);
        held
    }

    /// The mutex, if it was acquired before.
    #[inline(always)]
    fn known(&mut self, wait_id: u64) -> Option<&mut Lock> {
        let place = self.places.get(wait_id)?;
        self.locks.get_mut(place as usize)
    }

    /// The mutex, acquired before or not.
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

    /// A thread has got the mutex. Gives the release by another thread that it waited for.
    ///
    /// A release is reported after the mutex is free, so the next acquisition may come first: it ends the old hold.
    pub(crate) fn acquired(
        &mut self,
        stage: &mut Stage<'_>,
        names: &[String],
        new: Acquisition,
    ) -> Option<(Point, Anchor)> {
        let lock = self.any(new.wait_id);
        // Its region, if it has one, is still open.
        let old = lock.end_hold(stage, names, new.at.time, Anchor::Inside, None);
        if let Some(old) = old {
            lock.displaced.push(old);
        }
        // Who gets it again has released it, seen or not.
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

    /// `thread` releases the mutex; a task that moved may release what it set on another thread. `anchor` is that of the region
    /// which ends with the hold. False where nobody held it.
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

    /// The trace is at its end. Gives what was not released, each with the place of its holder in the list of threads.
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
    /// The hold ends, by another thread than the holder where that is `by`; gives its holder and order.
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
                // The track's name says which lock it is.
                arguments: &[],
                work: None,
            });
        }
        Some((hold.holder, hold.order))
    }
}
