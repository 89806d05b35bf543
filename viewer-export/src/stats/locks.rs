//! Who asked for which lock, and whether it had to wait.

use crate::fast_map::FastMap;
use crate::stats::{LockStats, Times, add};

/// What is known of locks, critical, atomic and ordered regions, by process and number.
#[derive(Default)]
pub(super) struct Locks(FastMap<(u32, u64), Lock>);

#[derive(Clone, Copy, Default)]
struct Lock {
    /// The order in which they were met.
    order: usize,
    /// The region of the place where it was made, or else first asked for.
    region: Option<usize>,
    acquisitions: u64,
    waits: u64,
    waiting_ns: u64,
    failures: u64,
}

impl Locks {
    fn any(&mut self, process: u32, lock: u64) -> &mut Lock {
        let order = self.0.len();
        let new = || Lock {
            order,
            ..Lock::default()
        };
        self.0.entry((process, lock)).or_insert_with(new)
    }

    /// It is made in this region.
    pub(super) fn made(&mut self, process: u32, lock: u64, region: usize) {
        self.any(process, lock).region.get_or_insert(region);
    }

    /// A thread gets it; `asked`: in which region, whether another thread had it, and how long it took.
    pub(super) fn acquired(&mut self, process: u32, lock: u64, asked: Option<(usize, bool, u64)>) {
        let lock = self.any(process, lock);
        lock.acquisitions += 1;
        if let Some((region, was_held, ns)) = asked {
            lock.region.get_or_insert(region);
            lock.waits += u64::from(was_held);
            add(&mut lock.waiting_ns, ns);
        }
    }

    /// A thread asked for it in vain.
    pub(super) fn not_acquired(&mut self, process: u32, lock: u64) {
        self.any(process, lock).failures += 1;
    }

    /// The numbers of a lock that was held; `names` are those of regions.
    pub(super) fn stats(
        &self,
        process: u32,
        process_name: &str,
        wait_id: u64,
        times: Times,
        names: &[String],
    ) -> LockStats {
        let lock = self.0.get(&(process, wait_id)).copied().unwrap_or_default();
        LockStats {
            process: process_name.to_owned(),
            process_id: process,
            name: format!("lock {wait_id:#x}"),
            number: lock.order,
            place: lock.region.and_then(|region| names.get(region)).cloned(),
            acquisitions: lock.acquisitions,
            waits: lock.waits,
            waiting_ns: lock.waiting_ns,
            failures: lock.failures,
            times,
        }
    }

    /// Numbers `locks` of each process in the order in which they were met.
    pub(super) fn number(locks: &mut [LockStats]) {
        locks.sort_by_key(|lock| (lock.process_id, lock.number));
        for of_process in locks.chunk_by_mut(|a, b| a.process_id == b.process_id) {
            let numbered = of_process.iter_mut().enumerate();
            numbered.for_each(|(number, lock)| lock.number = number);
        }
    }
}
