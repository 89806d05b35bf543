//! Waits and holds of each lock and each critical or atomic region, by thread.

use ompt_sys as ompt;

use crate::model::place::Place;
use crate::model::stats::{LockStats, Times};
use crate::model::sum::add;
use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{LockId, Ns, Process, split_place};

/// The known locks, critical and atomic regions, by process and wait id.
#[derive(Default)]
pub(crate) struct Locks {
    known: FastMap<Which, Lock>,
    /// The number of locks that have been counted.
    counted: usize,
}

#[derive(Clone, Copy)]
struct Lock {
    kind: ompt::ompt_mutex_t,
    /// The position in the order in which locks were first counted: created, requested or held. `None` for a lock that
    /// was not counted.
    order: Option<usize>,
    /// The region in which the lock was created, or if that is unknown, first requested or held.
    region: Option<usize>,
    /// `region` comes from a hold that is not counted, which may end before the window.
    is_before: bool,
    acquisitions: u64,
    waits: u64,
    waiting_ns: u64,
    failures: u64,
    /// The current acquisition, and its start.
    hold: Option<(u32, Ns)>,
    holds: Times,
}

impl Lock {
    /// Ends the hold. It is added if it is counted, or took time inside the window: outside, window time stands still.
    fn held_until(&mut self, time: Ns, is_counted: bool) {
        if let Some((_, since)) = self.hold.take() {
            let ns = time.saturating_sub(since).max(0).cast_unsigned();
            if is_counted || ns > 0 {
                self.holds.add(ns);
                self.is_before = false;
            } else if std::mem::take(&mut self.is_before) {
                self.region = None;
            }
        }
    }

    /// Gives the lock the next position among the `counted` ones, unless it has one.
    fn count(&mut self, is_counted: bool, counted: &mut usize) {
        if is_counted && self.order.is_none() {
            self.order = Some(*counted);
            *counted += 1;
        }
    }

    /// The lock is requested or held in this region.
    fn used(&mut self, region: usize, is_counted: bool) {
        if self.region.is_none() {
            self.region = Some(region);
            self.is_before = !is_counted;
        }
    }
}

/// A lock, by process and wait id. The id is 0 if the runtime does not report one (TR2, 4.4).
pub(crate) type Which = (u32, LockId);

impl Locks {
    fn any(&mut self, which: Which, is_counted: bool) -> &mut Lock {
        let new = || Lock {
            kind: ompt::ompt_mutex_lock,
            order: None,
            region: None,
            is_before: false,
            acquisitions: 0,
            waits: 0,
            waiting_ns: 0,
            failures: 0,
            hold: None,
            holds: Times::default(),
        };
        let lock = self.known.entry(which).or_insert_with(new);
        lock.count(is_counted, &mut self.counted);
        lock
    }

    /// The lock is created in this region.
    pub(crate) fn made(&mut self, which: Which, region: usize, is_counted: bool) {
        self.any(which, is_counted).region.get_or_insert(region);
    }

    /// A thread acquires the lock. `asked`: the region of the request, whether another thread held the lock, and how
    /// long the thread waited. Here and below, events with `is_counted` false are outside of the window.
    pub(crate) fn acquired(
        &mut self,
        which: Which,
        kind: ompt::ompt_mutex_t,
        (order, time): (u32, Ns),
        asked: Option<(usize, bool, u64)>,
        is_counted: bool,
    ) {
        let lock = self.any(which, is_counted);
        lock.kind = kind;
        lock.acquisitions += u64::from(is_counted);
        if let Some((region, was_held, ns)) = asked {
            if is_lock(kind) {
                lock.used(region, is_counted);
            }
            lock.waits += u64::from(was_held && is_counted);
            add(&mut lock.waiting_ns, ns);
        }
        // A release is reported after the mutex is free, so the next acquisition may come first.
        lock.held_until(time, is_counted);
        lock.hold = Some((order, time));
    }

    /// The thread that acquired a critical or atomic region enters it.
    pub(crate) fn entered(&mut self, which: Which, region: usize, is_counted: bool) {
        self.any(which, is_counted).used(region, is_counted);
    }

    /// The acquisition with this number ends.
    pub(crate) fn released(&mut self, which: Which, order: u32, time: Ns, is_counted: bool) {
        if let Some(lock) = self.known.get_mut(&which)
            && lock.hold.is_some_and(|(held, _)| held == order)
        {
            lock.count(is_counted, &mut self.counted);
            lock.held_until(time, is_counted);
        }
    }

    /// A release without a reported acquisition.
    pub(crate) fn released_unseen(
        &mut self,
        which: Which,
        kind: ompt::ompt_mutex_t,
        region: usize,
        is_counted: bool,
    ) {
        let lock = self.any(which, is_counted);
        lock.kind = kind;
        lock.used(region, is_counted);
        lock.acquisitions += u64::from(is_counted);
    }

    /// A thread requested the lock without success.
    pub(crate) fn not_acquired(&mut self, which: Which) {
        self.any(which, true).failures += 1;
    }

    /// A segment of the process begins: no lock is held, and the counts start from 0.
    pub(crate) fn begin_segment(&mut self) {
        for lock in self.known.values_mut() {
            lock.is_before = false;
            lock.acquisitions = 0;
            lock.waits = 0;
            lock.waiting_ns = 0;
            lock.failures = 0;
            lock.hold = None;
            lock.holds = Times::default();
        }
    }

    /// Whether no lock is held.
    pub(crate) fn are_free(&self) -> bool {
        self.known.values().all(|lock| lock.hold.is_none())
    }

    /// Adds the locks of a later segment. `known` maps its region numbers to those of this segment.
    pub(crate) fn append(&mut self, more: Locks, known: impl Fn(usize) -> usize) {
        let mut more: Vec<(Which, Lock)> = more.known.into_iter().collect();
        more.sort_unstable_by_key(|(_, lock)| lock.order);
        for (which, more) in more {
            let own = self.any(which, more.order.is_some());
            own.region = own.region.or(more.region.map(&known));
            if more.acquisitions > 0 {
                own.kind = more.kind;
            }
            own.acquisitions += more.acquisitions;
            own.waits += more.waits;
            add(&mut own.waiting_ns, more.waiting_ns);
            own.failures += more.failures;
            let (has_own, has_more) = (own.holds.count > 0, more.holds.count > 0);
            own.holds.merge(&more.holds, has_own, has_more);
            own.holds.mean_ns = own.holds.total_ns / own.holds.count.max(1);
            own.hold = more.hold;
        }
    }

    /// The statistics of a process's locks, numbered in the order in which they were first counted. `names`: the names
    /// and places of regions.
    pub(crate) fn stats(
        self,
        process_id: u32,
        process: &Process,
        names: &[(String, Place)],
    ) -> Vec<LockStats> {
        let mut locks: Vec<_> = self.known.into_iter().collect();
        locks.retain(|((_, LockId(wait_id)), lock)| {
            let is_distinguished = *wait_id != 0 && lock.kind != ompt::ompt_mutex_ordered;
            is_distinguished && lock.acquisitions + lock.failures + lock.holds.count > 0
        });
        locks.sort_unstable_by_key(|(_, lock)| lock.order);
        let numbered = locks.iter().enumerate();
        let stats = numbered.map(|(number, ((_, LockId(wait_id)), lock))| {
            let reports_waits = match is_lock(lock.kind) {
                true => process.reports.lock_waits,
                false => process.reports.critical_waits,
            };
            let kind = kind_name(lock.kind);
            let place = lock.region.and_then(|region| names.get(region));
            let place = place.filter(|(name, _)| !split_place(name).1.is_empty());
            let (place_name, place) = place.cloned().unzip();
            LockStats {
                process: process.name.clone(),
                process_id,
                name: format!("{kind} {wait_id:#x}"),
                kind,
                number,
                place,
                place_name,
                acquisitions: lock.acquisitions,
                waits: reports_waits.then_some(lock.waits),
                waiting_ns: reports_waits.then_some(lock.waiting_ns),
                failures: lock.failures,
                times: (lock.holds.count > 0).then_some(lock.holds),
            }
        });
        stats.collect()
    }
}

/// Tells a lock from a critical or atomic region. The latter is a region on its thread, which shows its place.
fn is_lock(kind: ompt::ompt_mutex_t) -> bool {
    !matches!(kind, ompt::ompt_mutex_critical | ompt::ompt_mutex_atomic | ompt::ompt_mutex_ordered)
}

fn kind_name(kind: ompt::ompt_mutex_t) -> &'static str {
    match kind {
        ompt::ompt_mutex_critical => "critical",
        ompt::ompt_mutex_atomic => "atomic",
        _ => "lock",
    }
}
