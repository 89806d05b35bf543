//! The waits and holds of each lock and critical region, by thread.

use ompt_sys as ompt;

use crate::model::place::Place;
use crate::model::stats::{LockStats, Times};
use crate::model::sum::add;
use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{LockId, Ns, Process, split_place};

/// The locks, critical and atomic regions that are known, by process and number.
#[derive(Default)]
pub(crate) struct Locks {
    known: FastMap<Which, Lock>,
    /// How many were counted.
    counted: usize,
}

#[derive(Clone, Copy)]
struct Lock {
    kind: ompt::ompt_mutex_t,
    /// The order in which they were first counted: made, asked for or held. `None` of those that were not.
    order: Option<usize>,
    /// The region of the place where it was made, or else first asked for or held while that was counted.
    region: Option<usize>,
    /// The region is that of a hold that is not counted, and may end before the window.
    is_before: bool,
    acquisitions: u64,
    waits: u64,
    waiting_ns: u64,
    failures: u64,
    /// The acquisition that has not ended, and since when.
    hold: Option<(u32, Ns)>,
    holds: Times,
}

impl Lock {
    /// Ends the hold, and adds it where it is counted or took time in the window: outside, no time passes.
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

    /// It is the next of those that were `counted`, unless it is one of them.
    fn count(&mut self, is_counted: bool, counted: &mut usize) {
        if is_counted && self.order.is_none() {
            self.order = Some(*counted);
            *counted += 1;
        }
    }

    /// It is asked for or held in this region.
    fn used(&mut self, region: usize, is_counted: bool) {
        if self.region.is_none() {
            self.region = Some(region);
            self.is_before = !is_counted;
        }
    }
}

/// Which lock: that of a process with a number. Where a runtime does not know the number, it is 0 (TR2, 4.4).
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

    /// It is made in this region.
    pub(crate) fn made(&mut self, which: Which, region: usize, is_counted: bool) {
        self.any(which, is_counted).region.get_or_insert(region);
    }

    /// A thread gets it. `asked`: in which region, whether another thread had it, and how long it took. Here and below, what
    /// is not counted lies outside of the window.
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

    /// A thread is in the critical or atomic region that it got.
    pub(crate) fn entered(&mut self, which: Which, region: usize, is_counted: bool) {
        self.any(which, is_counted).used(region, is_counted);
    }

    /// The acquisition of that order ends.
    pub(crate) fn released(&mut self, which: Which, order: u32, time: Ns, is_counted: bool) {
        if let Some(lock) = self.known.get_mut(&which)
            && lock.hold.is_some_and(|(held, _)| held == order)
        {
            lock.count(is_counted, &mut self.counted);
            lock.held_until(time, is_counted);
        }
    }

    /// It is released, and was not reported to be acquired.
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

    /// A thread asked for it in vain.
    pub(crate) fn not_acquired(&mut self, which: Which) {
        self.any(which, true).failures += 1;
    }

    /// A segment of the process begins: nobody has any, and nothing is counted as yet.
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

    /// Whether nobody has any.
    pub(crate) fn are_free(&self) -> bool {
        self.known.values().all(|lock| lock.hold.is_none())
    }

    /// Adds those of a later segment. `known`: what the regions of that are here.
    pub(crate) fn append(&mut self, more: Locks, known: impl Fn(usize) -> usize) {
        let mut more: Vec<(Which, Lock)> = more.known.into_iter().collect();
        more.sort_unstable_by_key(|(_, lock)| lock.order);
        for (which, more) in more {
            let own = self.any(which, true);
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

    /// The numbers of what was held or asked for in a process, numbered in the order in which they were met. `names` are
    /// those of regions, with their places.
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

/// Distinguishes a lock from a critical or atomic region, which shows on its thread where it is.
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
