//! The times of a process's threads, as sums by place.

use std::collections::BTreeMap;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{LockId, RuntimeActivity};
use serde::{Deserialize, Serialize};

use crate::model::accounting::Accounting;
use crate::model::by_place::{ByCause, ByPlace, Dense};
use crate::model::cause::Cause;
use crate::model::creation_times::CreationTimes;
use crate::model::function_number::{ByFunction, FunctionNumber};
use crate::model::place_id::{PlaceId, SERIAL};
use crate::model::sum::Sum;
use crate::model::task_levels::TaskLevels;
use crate::model::within::Within;
use crate::model::worst_instances::{Instance, Instances};
use crate::states::concurrency::Between;

/// Sums over the visits of an outermost region.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegionSums {
    pub(crate) visits: u64,
    pub(crate) duration: u64,
    pub(crate) accounting: Accounting,
    pub(crate) path: u64,
    /// Useful time by thread.
    pub(crate) useful: Dense<u64>,
    pub(crate) max_team: u32,
    /// The peak number of busy threads of the process while nested regions were open; 0 if there were none.
    pub(crate) busiest_inside: u32,
    /// Explicit tasks created in the region.
    pub(crate) tasks: u64,
    /// Those of them that have a `depend` clause.
    pub(crate) tasks_with_dependences: u64,
    pub(crate) creation_times: CreationTimes,
}

/// Useful time at a place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsefulSums {
    pub(crate) ns: u64,
    /// The outermost region around the place, for useful time and for losses.
    pub(crate) within: Within<PlaceId>,
}

/// Sums over the holds of a mutex at one place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HoldSums {
    pub(crate) count: u64,
    pub(crate) waited: u64,
    pub(crate) held_ns: u64,
}

/// A wait for a mutex that another thread held. Threads are given as locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Block {
    pub(crate) cause: Cause,
    /// `None` if unknown, or if several mutexes were summed up.
    pub(crate) lock: Option<LockId>,
    /// The thread that holds the mutex or held it last, and the place where it acquired the mutex; `None` if that was
    /// not observed.
    pub(crate) holder: Option<(usize, PlaceId)>,
    pub(crate) waiter: (usize, PlaceId),
}

/// Sums over the explicit tasks created at one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskSums {
    pub(crate) created: u64,
    pub(crate) levels: TaskLevels,
    /// Tasks that had to wait for other tasks.
    pub(crate) dependent: u64,
}

/// Sums over the target constructs and data operations at one place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TargetSums {
    pub(crate) kernels: u64,
    pub(crate) data_ops: u64,
    /// The operations whose size is known, and their bytes.
    pub(crate) sized_ops: u64,
    pub(crate) bytes: u64,
}

/// Sums over the external waits (outside of OpenMP) at one place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExternalSums {
    pub(crate) waits: u64,
    /// The address or number of the object that is waited for; 0 if it has none.
    pub(crate) object: Within<u64>,
}

/// A function's own CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SerialTimes {
    /// The part while no parallel region was open.
    pub(crate) serial_ns: u64,
    /// The part at other times.
    pub(crate) other_ns: u64,
}

impl SerialTimes {
    pub(crate) fn all(&self) -> u64 {
        self.serial_ns.saturating_add(self.other_ns)
    }
}

/// A sum of blame weights. It is a fixed-point number, so that the sum does not depend on the order of addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight(u128);

impl Weight {
    const PARTS: f64 = 1024.0;

    pub(crate) fn add(&mut self, ns: f64) {
        self.0 += u128::from((ns * Weight::PARTS + 0.5) as u64);
    }

    /// The weight in nanoseconds.
    pub(crate) fn ns(self) -> f64 {
        self.0 as f64 / Weight::PARTS
    }
}

/// Sums over nested regions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NestedSums {
    /// The peak number of busy threads of the process.
    pub(crate) threads: u32,
    pub(crate) barriers_ns: u64,
}

/// Sums over a place in nested regions that ran on one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AloneSums {
    /// The weight of waits of threads of the teams around.
    pub(crate) weight: Weight,
    /// The construct around the nested region.
    pub(crate) around: Within<PlaceId>,
}

/// The sums over a process's threads.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) accounting: Accounting,
    pub(crate) regions: ByPlace<RegionSums>,
    /// Blame weights, by cause and place of the thread that others waited for.
    pub(crate) blame: ByCause<Weight>,
    /// The same by function, as far as the blamed threads were sampled. For [`Cause::NarrowTeam`], CPU time in the
    /// region.
    pub(crate) functions: BTreeMap<(Cause, PlaceId), BTreeMap<FunctionNumber, f64>>,
    /// CPU time in serial code.
    pub(crate) serial_functions: BTreeMap<Between, ByFunction>,
    /// CPU time of each function without its callees.
    pub(crate) serial_times: BTreeMap<FunctionNumber, SerialTimes>,
    /// CPU time of flushes and lock tests, by calling function.
    pub(crate) spins: BTreeMap<(FunctionNumber, RuntimeActivity), u64>,
    /// At least one sample was taken.
    pub(crate) has_samples: bool,
    /// The instances with the largest blame, or for causes without blame, with the largest loss.
    pub(crate) instances: ByCause<Instances>,
    /// Lost time, by the place of the thread that lost it.
    pub(crate) lost_at: ByCause<u64>,
    /// The part of `lost_at` that no other thread caused.
    pub(crate) uncaused_at: ByCause<u64>,
    pub(crate) useful_at: ByPlace<UsefulSums>,
    pub(crate) holds: ByCause<HoldSums>,
    /// Time in MPI calls during holds of a mutex, by the place of the hold and the thread's location.
    pub(crate) held_in_mpi: BTreeMap<(PlaceId, usize), u64>,
    /// Waits for mutexes.
    pub(crate) blocked: FastMap<Block, u64>,
    pub(crate) tasks: ByPlace<TaskSums>,
    pub(crate) targets: BTreeMap<PlaceId, TargetSums>,
    pub(crate) external: BTreeMap<PlaceId, ExternalSums>,
    pub(crate) nested: BTreeMap<PlaceId, NestedSums>,
    pub(crate) alone: BTreeMap<PlaceId, AloneSums>,
    /// Number of loop chunks.
    pub(crate) chunks: ByPlace<u64>,
    /// Places in regions that were opened in a `single` or `masked` region of a team, and the size of that team.
    pub(crate) in_single: BTreeMap<PlaceId, u32>,
    /// Arrivals at barriers, and the number of those with almost no work since the previous barrier.
    pub(crate) arrivals: ByPlace<(u64, u64)>,
    /// By region, the smallest number of threads requested by `num_threads` or the environment.
    pub(crate) requested: BTreeMap<PlaceId, u32>,
    /// Number of waits for tasks.
    pub(crate) taskwaits: u64,
    pub(crate) visits: ByPlace<u64>,
    /// Places of serial code, by number from [`SERIAL`] on.
    pub(crate) serial_places: Vec<Between>,
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
        self.tasks += more.tasks;
        self.tasks_with_dependences += more.tasks_with_dependences;
        self.creation_times.merge(&more.creation_times);
    }
}

/// Number of pairs of threads that are kept apart by lock. For further pairs, only the waiting thread is kept.
const MAX_BLOCKS: usize = 1 << 16;

impl Sums {
    /// Adds a wait for a mutex.
    pub(crate) fn block(&mut self, block: Block, ns: u64) {
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

    /// Whether the limit of pairs is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.blocked.len() >= MAX_BLOCKS
    }

    /// Adds the sums of a later segment, except for samples and devices. `known` maps its regions to regions here.
    /// Returns the same mapping for all places.
    pub(crate) fn append<'k>(
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
        self.uncaused_at.append(more.uncaused_at, known, grow);
        self.useful_at.append(more.useful_at, known, |own, more| {
            own.ns.grow_by(more.ns);
            own.within.merge(more.within.map(known));
        });
        self.holds.append(more.holds, known, |own, more| {
            own.count += more.count;
            own.waited += more.waited;
            own.held_ns.grow_by(more.held_ns);
        });
        for ((place, thread), ns) in more.held_in_mpi {
            self.held_in_mpi.entry((known(place), thread)).or_default().grow_by(ns);
        }
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
            own.levels.merge(&more.levels);
        });
        for (place, more) in more.targets {
            let own = self.targets.entry(known(place)).or_default();
            own.kernels += more.kernels;
            own.data_ops += more.data_ops;
            own.sized_ops += more.sized_ops;
            own.bytes = own.bytes.saturating_add(more.bytes);
        }
        for (place, more) in more.external {
            let own = self.external.entry(known(place)).or_default();
            own.waits += more.waits;
            own.object.merge(more.object);
        }
        for (place, more) in more.nested {
            let own = self.nested.entry(known(place)).or_default();
            own.threads = own.threads.max(more.threads);
            own.barriers_ns.grow_by(more.barriers_ns);
        }
        for (place, more) in more.alone {
            let own = self.alone.entry(known(place)).or_default();
            own.weight.0 += more.weight.0;
            own.around.merge(more.around.map(known));
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

    pub(crate) fn serial(&mut self, between: Between) -> PlaceId {
        let places = &mut self.serial_places;
        *self.serial_numbers.entry(between).or_insert_with(|| {
            places.push(between);
            SERIAL + places.len() as PlaceId - 1
        })
    }

    pub(crate) fn blame(&mut self, cause: Cause, place: PlaceId, instance: Instance) {
        if instance.weight > 0.0 {
            self.blame.at(cause, place).add(instance.weight);
            self.instances.at(cause, place).add(instance);
        }
    }
}
