//! The times of a process's threads, in sums by place.

use std::collections::BTreeMap;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::sink::{LockId, RuntimeActivity};
use serde::{Deserialize, Serialize};

use super::{ByFunction, FunctionNumber, PlaceId, SERIAL};
use crate::answers::activity::Between;
use crate::answers::by_place::{ByCause, ByPlace, Dense};
use crate::answers::instances::{Instance, Instances};
use crate::answers::{Accounting, Cause};
use crate::sum::Sum;

/// Sums of an outermost region's visits.
#[derive(Clone, Debug, Default)]
pub(in crate::answers) struct RegionSums {
    pub(in crate::answers) visits: u64,
    pub(in crate::answers) duration: u64,
    pub(in crate::answers) accounting: Accounting,
    pub(in crate::answers) path: u64,
    /// By thread.
    pub(in crate::answers) useful: Dense<u64>,
    pub(in crate::answers) max_team: u32,
    /// The threads of the process that were busy at the busiest time of regions inside; 0 where there were none.
    pub(in crate::answers) busiest_inside: u32,
}

/// Sums of a mutex's critical sections at one place.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::answers) struct HoldSums {
    pub(in crate::answers) count: u64,
    pub(in crate::answers) waited: u64,
    pub(in crate::answers) held_ns: u64,
}

/// A wait for a mutex that another thread had: locations are threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::answers) struct Block {
    pub(in crate::answers) cause: Cause,
    /// `None` where that is not known, and of what is summed up.
    pub(in crate::answers) lock: Option<LockId>,
    /// The thread that has it, or had it last, and from where; `None` where that was not seen.
    pub(in crate::answers) holder: Option<(usize, PlaceId)>,
    pub(in crate::answers) waiter: (usize, PlaceId),
}

/// Sums of the explicit tasks created at one place.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::answers) struct TaskSums {
    pub(in crate::answers) created: u64,
    /// Those that had to wait for others.
    pub(in crate::answers) dependent: u64,
}

/// Sums of the target constructs and operations on data at one place.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::answers) struct TargetSums {
    pub(in crate::answers) kernels: u64,
    pub(in crate::answers) data_ops: u64,
    /// The operations whose size is known, and their bytes.
    pub(in crate::answers) sized_ops: u64,
    pub(in crate::answers) bytes: u64,
}

/// A function's own processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::answers) struct SerialTimes {
    /// While no parallel region was open.
    pub(in crate::answers) serial_ns: u64,
    /// At other times.
    pub(in crate::answers) other_ns: u64,
}

impl SerialTimes {
    pub(in crate::answers) fn all(&self) -> u64 {
        self.serial_ns.saturating_add(self.other_ns)
    }
}

/// The sum of weights of who caused waits, in parts of nanoseconds: in whatever order they are added, it is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::answers) struct Weight(u128);

impl Weight {
    const PARTS: f64 = 1024.0;

    fn add(&mut self, ns: f64) {
        self.0 += u128::from((ns * Weight::PARTS + 0.5) as u64);
    }

    /// Nanoseconds.
    pub(in crate::answers) fn ns(self) -> f64 {
        self.0 as f64 / Weight::PARTS
    }
}

/// Sums of regions inside others.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::answers) struct NestedSums {
    /// The threads of the process that were busy at the busiest time.
    pub(in crate::answers) threads: u32,
    pub(in crate::answers) barriers_ns: u64,
}

/// The times of a process's threads, in sums.
#[derive(Debug, Default)]
pub(in crate::answers) struct Sums {
    pub(in crate::answers) accounting: Accounting,
    pub(in crate::answers) regions: ByPlace<RegionSums>,
    /// Weights of who caused waits.
    pub(in crate::answers) blame: ByCause<Weight>,
    /// The same by function, as far as who caused them was sampled. Of [`Cause::NarrowTeam`], processor time in the region.
    pub(in crate::answers) functions: BTreeMap<(Cause, PlaceId), BTreeMap<FunctionNumber, f64>>,
    /// Processor time in serial code.
    pub(in crate::answers) serial_functions: BTreeMap<Between, ByFunction>,
    /// Processor time of each function itself.
    pub(in crate::answers) serial_times: BTreeMap<FunctionNumber, SerialTimes>,
    /// Processor time of flushes and lock tests, by the function that makes them.
    pub(in crate::answers) spins: BTreeMap<(FunctionNumber, RuntimeActivity), u64>,
    /// A sample was taken.
    pub(in crate::answers) has_samples: bool,
    /// The instances that caused most, as in `blame`, or else lost most.
    pub(in crate::answers) instances: ByCause<Instances>,
    /// Loss by the place of the thread that lost it.
    pub(in crate::answers) lost_at: ByCause<u64>,
    pub(in crate::answers) useful_at: ByPlace<u64>,
    pub(in crate::answers) holds: ByCause<HoldSums>,
    /// Waits for mutexes.
    pub(in crate::answers) blocked: FastMap<Block, u64>,
    pub(in crate::answers) tasks: ByPlace<TaskSums>,
    pub(in crate::answers) targets: BTreeMap<PlaceId, TargetSums>,
    pub(in crate::answers) nested: BTreeMap<PlaceId, NestedSums>,
    /// Chunks of loops.
    pub(in crate::answers) chunks: ByPlace<u64>,
    /// Places in regions that were opened in a single or masked region of a team, and that team's threads.
    pub(in crate::answers) in_single: BTreeMap<PlaceId, u32>,
    /// Arrivals at barriers, and those with next to no work since the barrier before.
    pub(in crate::answers) arrivals: ByPlace<(u64, u64)>,
    /// The threads that a region's `num_threads` or the environment asked for, at least.
    pub(in crate::answers) requested: BTreeMap<PlaceId, u32>,
    /// Waits for tasks.
    pub(in crate::answers) taskwaits: u64,
    pub(in crate::answers) visits: ByPlace<u64>,
    /// Serial places, by number from [`SERIAL`] on.
    pub(in crate::answers) serial_places: Vec<Between>,
    serial_numbers: FastMap<Between, PlaceId>,
}

impl RegionSums {
    fn append(&mut self, more: RegionSums) {
        self.visits += more.visits;
        self.duration.grow_by(more.duration);
        self.accounting.merge(&more.accounting);
        self.path.grow_by(more.path);
        self.useful.append(more.useful, |own, more| own.grow_by(more));
        self.max_team = self.max_team.max(more.max_team);
        self.busiest_inside = self.busiest_inside.max(more.busiest_inside);
    }
}

/// Pairs of threads that are kept apart by lock. Of further ones, what each waited is known.
const MAX_BLOCKS: usize = 1 << 16;

impl Sums {
    /// A thread waited for a mutex.
    pub(super) fn block(&mut self, block: Block, ns: u64) {
        let is_full = self.blocked.len() >= MAX_BLOCKS;
        if let Some(sum) = self.blocked.get_mut(&block) {
            sum.grow_by(ns);
        } else if is_full && block.lock.is_some() {
            let rest = Block { lock: None, holder: None, ..block };
            self.blocked.entry(rest).or_default().grow_by(ns);
        } else {
            self.blocked.insert(block, ns);
        }
    }

    /// Whether more pairs of threads waited for each other than are kept apart.
    pub(in crate::answers) fn is_full(&self) -> bool {
        self.blocked.len() >= MAX_BLOCKS
    }

    /// Adds those of a later time, without samples and devices. `known`: what the regions of that time are here. Gives the same of all
    /// places.
    pub(super) fn append<'k>(
        &mut self,
        more: Sums,
        known: &'k dyn Fn(PlaceId) -> PlaceId,
    ) -> impl Fn(PlaceId) -> PlaceId + use<'k> {
        let serial = more.serial_places.iter();
        let serial = serial.map(|(after, before)| self.serial((after.map(known), before.map(known))));
        let serial: Vec<PlaceId> = serial.collect();
        let place = move |place: PlaceId| match place.checked_sub(SERIAL) {
            Some(number) => serial[number as usize],
            None => known(place),
        };
        let known = &place;
        self.accounting.merge(&more.accounting);
        self.regions.append(more.regions, known, RegionSums::append);
        self.blame.append(more.blame, known, |own, more| own.0 += more.0);
        self.instances.append(more.instances, known, |own, more| own.append(&more));
        let grow = |own: &mut u64, more: u64| own.grow_by(more);
        self.lost_at.append(more.lost_at, known, grow);
        self.useful_at.append(more.useful_at, known, grow);
        self.holds.append(more.holds, known, |own, more| {
            own.count += more.count;
            own.waited += more.waited;
            own.held_ns.grow_by(more.held_ns);
        });
        let on = |(thread, place): (usize, PlaceId)| (thread, known(place));
        let mut blocked: Vec<(Block, u64)> = more.blocked.into_iter().collect();
        blocked.sort_unstable();
        for (block, ns) in blocked {
            let block = Block { holder: block.holder.map(on), waiter: on(block.waiter), ..block };
            self.block(block, ns);
        }
        self.tasks.append(more.tasks, known, |own, more| {
            own.created += more.created;
            own.dependent += more.dependent;
        });
        for (place, more) in more.targets {
            let own = self.targets.entry(known(place)).or_default();
            own.kernels += more.kernels;
            own.data_ops += more.data_ops;
            own.sized_ops += more.sized_ops;
            own.bytes = own.bytes.saturating_add(more.bytes);
        }
        for (place, more) in more.nested {
            let own = self.nested.entry(known(place)).or_default();
            own.threads = own.threads.max(more.threads);
            own.barriers_ns.grow_by(more.barriers_ns);
        }
        self.chunks.append(more.chunks, known, |own, more| *own += more);
        for (place, threads) in more.in_single {
            let own = self.in_single.entry(known(place)).or_default();
            *own = threads.max(*own);
        }
        self.arrivals.append(more.arrivals, known, |own, more| {
            own.0 += more.0;
            own.1 += more.1;
        });
        for (place, requested) in more.requested {
            let own = self.requested.entry(known(place)).or_insert(requested);
            *own = requested.min(*own);
        }
        self.taskwaits += more.taskwaits;
        self.visits.append(more.visits, known, |own, more| *own += more);
        place
    }

    pub(super) fn serial(&mut self, between: Between) -> PlaceId {
        let places = &mut self.serial_places;
        *self.serial_numbers.entry(between).or_insert_with(|| {
            places.push(between);
            SERIAL + places.len() as PlaceId - 1
        })
    }

    pub(super) fn blame(&mut self, cause: Cause, place: PlaceId, instance: Instance) {
        if instance.weight > 0.0 {
            self.blame.at(cause, place).add(instance.weight);
            self.instances.at(cause, place).add(instance);
        }
    }
}
