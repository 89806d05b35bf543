//! The answers of some processes, mergeable with the answers of others.
//!
//! All sums are integers, and keys are places by name, so that parts merge to the same answers in any order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use omptrace_timeline::model::Ns;
use serde::{Deserialize, Serialize};

use crate::model::accounting::Accounting;
use crate::model::answers::{FunctionName, Moment};
use crate::model::cause::Cause;
use crate::model::creation_times::CreationTimes;
use crate::model::effort::{Cpu, Effort};
use crate::model::place::Place;
use crate::model::sum::{Sum, sum};
use crate::model::task_levels::TaskLevels;
use crate::model::within::Within;
use crate::model::worst_instances::MAX_INSTANCES;
use crate::passes::window::Windows;
use crate::scaling::thread_counts;
use crate::states::blamed_functions::Functions;
use crate::summary::{map_as_pairs, static_str};
use omptrace_symbols::FileNames;

/// Threads keep their CPUs busy if they use at least this share of the CPUs' time.
const MIN_BUSY: f64 = 0.8;

/// Threads are starved if they have a CPU for less than this share of the time during which they could use one.
const MAX_STARVED: f64 = 0.85;

/// Least share of the threads' time during which other programs must have had the CPUs; a smaller share is not
/// reported.
const MIN_DELAY: f64 = 0.03;

/// Longest start of a process about which nothing is known. The loader and the runtime take 50 to 150 ms on a busy
/// machine.
const LONGEST_START_NS: u64 = 150_000_000;

/// The place of the tracer's work after the program's last event.
pub(super) const TRACER_ENDS: &str = "end of tracing";

/// When a process ran, and with how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Life {
    pub(super) begin: Ns,
    pub(super) end: Ns,
    pub(super) threads: u64,
    /// The CPUs that the process may run on, if the trace has their number.
    pub(super) processors: Option<u32>,
    /// The process's CPU time. Left empty if only part of the run was analysed.
    pub(super) effort: Effort,
}

/// The regions before and after serial code; `None` at the start and at the end of the program.
pub(crate) type Around = (Option<Place>, Option<Place>);

/// Sums of a parallel region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegionPart {
    pub(crate) visits: u64,
    pub(crate) duration: u64,
    pub(crate) accounting: Accounting,
    pub(crate) path: u64,
    pub(crate) max_useful: u64,
    pub(crate) threads: u64,
    pub(crate) max_team: u32,
    /// See [`RegionSums`](crate::model::state_sums::RegionSums).
    pub(crate) busiest_inside: u32,
    pub(crate) tasks: u64,
    pub(crate) tasks_with_dependences: u64,
    pub(crate) creation_times: CreationTimes,
    /// The most that creating a task costs in the runtime, if known.
    pub(crate) max_creation_ns: Option<u64>,
}

impl RegionPart {
    pub(super) fn merge(&mut self, other: RegionPart) {
        self.visits += other.visits;
        self.duration.grow_by(other.duration);
        self.accounting.merge(&other.accounting);
        self.path.grow_by(other.path);
        self.max_useful.grow_by(other.max_useful);
        self.threads = self.threads.max(other.threads);
        self.max_team = self.max_team.max(other.max_team);
        self.busiest_inside = self.busiest_inside.max(other.busiest_inside);
        self.tasks.grow_by(other.tasks);
        self.tasks_with_dependences.grow_by(other.tasks_with_dependences);
        self.creation_times.merge(&other.creation_times);
        self.max_creation_ns = self.max_creation_ns.max(other.max_creation_ns);
    }
}

/// Time without a CPU is reported as waiting only if it is at least this long, and at least this share of useful time:
/// clocks differ, and are read at different moments.
const MIN_WAITS_NS: u64 = 100_000_000;
const MIN_WAITS: f64 = 0.25;
/// The share if the system does not say how long other programs had the CPUs.
const MIN_WAITS_OR_DELAYS: f64 = 0.5;

/// Sums of a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlaceSums {
    pub(crate) useful: u64,
    /// The outermost region that contains the place.
    pub(crate) within: Within<Place>,
    pub(crate) visits: u64,
    pub(crate) tasks: u64,
    pub(crate) dependent_tasks: u64,
    pub(crate) task_levels: TaskLevels,
    pub(crate) chunks: u64,
    /// The least time that the runtime needs to hand out these chunks.
    pub(crate) chunks_cost: u64,
    /// For a region opened inside a `single` or `masked` region: the number of threads of the team around it; otherwise
    /// 0.
    pub(crate) around_single: u32,
    /// If threads wait for this place mostly while it is in a nested region of one thread: the construct around that
    /// region.
    pub(crate) alone_inside: Within<Place>,
    pub(crate) arrivals: u64,
    pub(crate) idle_arrivals: u64,
    pub(crate) holds: u64,
    pub(crate) contended: u64,
    pub(crate) held_ns: u64,
    /// The part of `held_ns` in which the holder was in MPI calls. In one process, all threads but the one with the longest such time
    /// had at most the next field together.
    pub(crate) held_in_mpi_ns: u64,
    pub(crate) held_in_mpi_by_others_ns: u64,
    pub(crate) is_single: bool,
    /// The place of device work, as text: `jacobi.c:41`, `main+0x13c`.
    pub(crate) spot: String,
    /// The place is a data operation of a device, not a kernel.
    pub(crate) is_data_op: bool,
    pub(crate) data_ops: u64,
    pub(crate) sized_ops: u64,
    pub(crate) bytes: u64,
    pub(crate) kernels: u64,
    /// The number of `kernels` for which a device or the host reported a time, and the sum of these times.
    pub(crate) timed_kernels: u64,
    pub(crate) kernels_ns: u64,
    /// External waits (outside of OpenMP), and the address or number of the object that was waited for.
    pub(crate) external_waits: u64,
    pub(crate) object: Within<u64>,
    /// For nested regions: the peak number of busy threads, by the number of CPUs of the process.
    pub(crate) nested: BTreeMap<u32, u32>,
    pub(crate) nested_barriers_ns: u64,
    #[serde(deserialize_with = "static_str::set")]
    pub(crate) schedules: BTreeSet<&'static str>,
}

impl PlaceSums {
    pub(super) fn merge(&mut self, other: PlaceSums) {
        self.useful.grow_by(other.useful);
        self.within.merge(other.within);
        self.visits += other.visits;
        self.tasks.grow_by(other.tasks);
        self.dependent_tasks.grow_by(other.dependent_tasks);
        self.task_levels.merge(&other.task_levels);
        self.chunks += other.chunks;
        self.chunks_cost.grow_by(other.chunks_cost);
        self.around_single = self.around_single.max(other.around_single);
        self.alone_inside.merge(other.alone_inside);
        self.arrivals += other.arrivals;
        self.idle_arrivals += other.idle_arrivals;
        self.holds += other.holds;
        self.contended += other.contended;
        self.held_ns.grow_by(other.held_ns);
        self.held_in_mpi_ns.grow_by(other.held_in_mpi_ns);
        self.held_in_mpi_by_others_ns = self.held_in_mpi_by_others_ns.max(other.held_in_mpi_by_others_ns);
        self.is_single |= other.is_single;
        self.spot = std::mem::take(&mut self.spot).max(other.spot);
        self.is_data_op |= other.is_data_op;
        self.data_ops += other.data_ops;
        self.sized_ops += other.sized_ops;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.kernels += other.kernels;
        self.timed_kernels += other.timed_kernels;
        self.kernels_ns.grow_by(other.kernels_ns);
        self.external_waits += other.external_waits;
        self.object.merge(other.object);
        for (processors, threads) in other.nested {
            let known = self.nested.entry(processors).or_default();
            *known = (*known).max(threads);
        }
        self.nested_barriers_ns.grow_by(other.nested_barriers_ns);
        self.schedules.extend(other.schedules);
    }
}

/// A pair of threads, one of which waited for a mutex that the other held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct BlockedBy {
    pub(super) cause: Cause,
    pub(super) process: String,
    pub(super) lock: Option<u64>,
    pub(super) holder: Option<(String, Place)>,
    pub(super) waiter: (String, Place),
}

/// A mutex of a process, identified by the runtime's number, or if there is none, by the place that held it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mutex<'p> {
    Number(Cause, u64),
    At(Cause, &'p Place),
}

/// The waits for a mutex.
#[derive(Clone, Debug, Default)]
pub(crate) struct MutexWaits<'p> {
    pub(crate) ns: u64,
    /// The places that held the mutex during the waits.
    pub(crate) holders: BTreeSet<&'p Place>,
}

/// Kernels and transfers of a device, and their overlap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Overlap {
    pub(crate) process: String,
    pub(crate) device_num: i32,
    pub(crate) kernels_ns: u64,
    pub(crate) transfers_ns: u64,
    /// Time during which a kernel and a transfer ran at once.
    pub(crate) both_ns: u64,
}

/// The longest chain of work among all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Path {
    pub(super) ns: u64,
    #[serde(with = "map_as_pairs")]
    pub(super) places: BTreeMap<Place, u64>,
    #[serde(with = "map_as_pairs")]
    pub(super) functions: BTreeMap<FunctionName, u64>,
}

impl Path {
    /// Whether this path is longer; a total order, so that merging in any order gives the same path.
    fn is_longer(&self, other: &Path) -> bool {
        (self.ns, &other.places, &other.functions) > (other.ns, &self.places, &self.functions)
    }
}

/// Threads that were ready to run but had no CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starved {
    /// The share of the time in which they could have run that they had a CPU.
    pub(crate) share: f64,
    /// The tracer's own threads used at least half of the missing time.
    pub(crate) is_by_tracer: bool,
}

/// The answers of some processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MergeableAnswers {
    pub(super) lives: Vec<Life>,
    pub(crate) accounting: Accounting,
    #[serde(with = "map_as_pairs")]
    pub(crate) regions: BTreeMap<Place, RegionPart>,
    #[serde(with = "map_as_pairs")]
    pub(crate) blame: BTreeMap<(Cause, Place), u64>,
    #[serde(with = "map_as_pairs")]
    pub(crate) places: BTreeMap<Place, PlaceSums>,
    pub(crate) taskwaits: u64,
    /// By region, the smallest number of threads requested.
    #[serde(with = "map_as_pairs")]
    pub(crate) requested: BTreeMap<Place, u32>,
    /// The instances with the most time caused or lost, by cause and place.
    #[serde(with = "map_as_pairs")]
    pub(crate) instances: BTreeMap<(Cause, Place), Vec<(u64, Moment)>>,
    /// Waits for mutexes that other threads held, in nanoseconds.
    #[serde(with = "map_as_pairs")]
    pub(super) blocked: BTreeMap<BlockedBy, u64>,
    /// The overlaps of the devices whose records have times.
    pub(crate) overlaps: Vec<Overlap>,
    /// The functions that other threads waited for.
    pub(crate) functions: Functions,
    pub(super) max_useful: u64,
    pub(super) path: Path,
    /// The sums over processes of N times the largest useful time, and of N times the critical path, where N is the
    /// process's number of threads.
    pub(super) of_threads: (u64, u64),
    /// The regions before and after each piece of serial code.
    #[serde(with = "map_as_pairs")]
    pub(crate) serial: BTreeMap<Place, Around>,
    #[serde(with = "map_as_pairs")]
    pub(super) not_seen: BTreeMap<Cause, String>,
    /// A process uses MPI, but no MPI calls were recorded.
    #[serde(default)]
    pub(crate) has_unseen_mpi: bool,
}

impl MergeableAnswers {
    /// Adds the answers of other processes: associative and commutative.
    pub(crate) fn merge(&mut self, other: MergeableAnswers) {
        self.lives.extend(other.lives);
        self.lives.sort_unstable();
        self.accounting.merge(&other.accounting);
        for (place, region) in other.regions {
            self.regions.entry(place).or_default().merge(region);
        }
        for (key, ns) in other.blame {
            self.blame.entry(key).or_default().grow_by(ns);
        }
        self.taskwaits += other.taskwaits;
        for (place, requested) in other.requested {
            let known = self.requested.entry(place).or_insert(requested);
            *known = (*known).min(requested);
        }
        for (key, ns) in other.blocked {
            self.blocked.entry(key).or_default().grow_by(ns);
        }
        self.overlaps.extend(other.overlaps);
        self.overlaps.sort_unstable();
        for (key, moments) in other.instances {
            merge_moments(self.instances.entry(key).or_default(), moments);
        }
        for (place, sums) in other.places {
            self.places.entry(place).or_default().merge(sums);
        }
        self.max_useful = self.max_useful.max(other.max_useful);
        self.of_threads.0.grow_by(other.of_threads.0);
        self.of_threads.1.grow_by(other.of_threads.1);
        self.has_unseen_mpi |= other.has_unseen_mpi;
        self.functions.merge(other.functions);
        if other.path.is_longer(&self.path) {
            self.path = other.path;
        }
        for (place, around) in other.serial {
            let known = self.serial.entry(place).or_insert_with(|| around.clone());
            if around < *known {
                *known = around;
            }
        }
        for (cause, reason) in other.not_seen {
            let known = self.not_seen.entry(cause).or_default();
            if reason > *known {
                *known = reason;
            }
        }
    }

    /// Shortens the file paths of all places to names that are unique among them, and returns the names. This is done
    /// once for all processes, because processes of one program may know different files and the names must not depend
    /// on the order of merging.
    pub(crate) fn name_files(&mut self) -> FileNames {
        let places = self.regions.keys().chain(self.places.keys());
        let places = places.chain(self.requested.keys());
        let places = places.chain(self.blame.keys().map(|(_, place)| place));
        let places = places.chain(self.instances.keys().map(|(_, place)| place));
        let places = places.chain(self.path.places.keys()).chain(self.serial.keys());
        let around = self.serial.values();
        let places = places.chain(around.flat_map(|(after, before)| after.iter().chain(before)));
        let blocked = self.blocked.keys().flat_map(|key| {
            let holder = key.holder.iter().map(|(_, place)| place);
            holder.chain([&key.waiter.1])
        });
        let names = Place::file_names(places.chain(blocked));
        let name = |mut place: Place| {
            place.name_file(&names);
            place
        };
        /// Replaces the keys by keys that compare in the same order.
        fn with_keys<K: Ord, V>(map: &mut BTreeMap<K, V>, key: impl Fn(K) -> K) {
            let entries = std::mem::take(map).into_iter();
            *map = entries.map(|(old, value)| (key(old), value)).collect();
        }
        with_keys(&mut self.regions, name);
        with_keys(&mut self.places, name);
        with_keys(&mut self.requested, name);
        with_keys(&mut self.blame, |(cause, place)| (cause, name(place)));
        with_keys(&mut self.instances, |(cause, place)| (cause, name(place)));
        with_keys(&mut self.path.places, name);
        with_keys(&mut self.serial, name);
        for sums in self.places.values_mut() {
            sums.within = std::mem::take(&mut sums.within).map(name);
        }
        for (after, before) in self.serial.values_mut() {
            let places = after.iter_mut().chain(before);
            places.for_each(|place| place.name_file(&names));
        }
        with_keys(&mut self.blocked, |key| BlockedBy {
            holder: key.holder.map(|(thread, place)| (thread, name(place))),
            waiter: (key.waiter.0, name(key.waiter.1)),
            ..key
        });
        names
    }

    /// Converts moments from window time (with the time between windows cut out) to times on the timeline.
    pub(crate) fn on_timeline(&mut self, windows: &Windows) {
        for (_, moment) in self.instances.values_mut().flatten() {
            moment.begin_ns = windows.begin(moment.begin_ns);
            moment.end_ns = windows.end(moment.end_ns);
        }
    }

    /// Shifts all times by `ns`.
    pub(crate) fn shift(&mut self, ns: Ns) {
        for life in &mut self.lives {
            life.begin = life.begin.saturating_add(ns);
            life.end = life.end.saturating_add(ns);
        }
        for (_, moment) in self.instances.values_mut().flatten() {
            moment.begin_ns = moment.begin_ns.saturating_add(ns);
            moment.end_ns = moment.end_ns.saturating_add(ns);
        }
    }

    /// Notes that a process uses MPI without recorded calls: time in MPI counts as work.
    pub(crate) fn set_unseen_mpi(&mut self) {
        self.has_unseen_mpi = true;
    }

    /// Whether nothing of any process was analysed.
    pub(crate) fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    /// The thread time by cause.
    pub(crate) fn account(&self) -> Accounting {
        self.accounting
    }

    /// Useful time by place, the most first.
    pub(crate) fn useful(&self) -> Vec<(Place, u64)> {
        let places = self.places.iter().filter(|(_, sums)| sums.useful > 0);
        let mut useful: Vec<_> = places.map(|(place, sums)| (place.clone(), sums.useful)).collect();
        useful.sort_by_key(|(_, ns)| Reverse(*ns));
        useful
    }

    /// The peak number of threads, summed over the processes that ran at the same time.
    pub(crate) fn busiest(&self) -> u64 {
        let ends = self.lives.iter().map(|life| (life.end, false, life.threads));
        let begins = self.lives.iter().map(|life| (life.begin, true, life.threads));
        let mut changes: Vec<_> = ends.chain(begins).collect();
        changes.sort_unstable();
        let (mut now, mut most) = (0_u64, 0);
        for (_, begins, threads) in changes {
            now = match begins {
                true => now + threads,
                false => now.saturating_sub(threads),
            };
            most = most.max(now);
        }
        most
    }

    /// Whether loops with a static schedule are invisible: compilers that inline these loops (GCC) inline reductions,
    /// too.
    pub(crate) fn hides_static_loops(&self) -> bool {
        self.not_seen.contains_key(&Cause::Reduction)
    }

    /// Threads and CPUs of the process with the most threads per CPU, if it has more threads than CPUs.
    pub(crate) fn oversubscribed(&self) -> Option<(u64, u32)> {
        let known = |life: &Life| Some((life.threads, life.processors.filter(|known| *known > 0)?));
        let per_processor = |(threads, processors): &(u64, u32)| threads / u64::from(*processors);
        let lives = self.lives.iter().filter_map(known);
        lives.filter(|(threads, processors)| *threads > u64::from(*processors)).max_by_key(per_processor)
    }

    /// Fills in the efforts, for a part that consists of one process.
    pub(crate) fn set_effort(&mut self, effort: impl Fn((u64, Option<u32>)) -> Effort) {
        // Threads may also spin in waits that the program calls itself, and writing events for the tracer is not the
        // program's work.
        let other = Cause::ALL.iter().filter(|cause| cause.is_in_own_code() || **cause == Cause::Tracer);
        let other = sum(other.map(|cause| self.accounting[*cause]));
        // The tracer's time after the last event belongs to no thread.
        let behind = (Cause::Tracer, Place::new(TRACER_ENDS));
        let other = other.saturating_sub(self.blame.get(&behind).copied().unwrap_or(0));
        for life in &mut self.lives {
            life.effort = effort((life.threads, life.processors));
            if let Some(cpu) = &mut life.effort.cpu {
                cpu.work_ns = cpu.work_ns.saturating_sub(other);
            }
        }
    }

    /// Upper bound of the wall time that a change can save without reducing the work: the wall time without the tracer,
    /// less the work divided by the number of CPUs. `None` if neither is known.
    pub(crate) fn most_to_gain(&self) -> Option<u64> {
        let duration = self.duration();
        let least = |life: &Life| {
            let (cpu, processors) = (life.effort.cpu?, life.processors.filter(|known| *known > 0)?);
            // If false, the process also ran on CPUs that are not counted here.
            let is_possible = cpu.all_ns <= life.end.abs_diff(life.begin).saturating_mul(processors.into());
            is_possible.then_some(())?;
            // Recording is not the program's work.
            let work = cpu.work_ns.saturating_sub(life.effort.recording_ns.unwrap_or(0));
            Some(work / u64::from(processors))
        };
        let least = self.lives.iter().filter_map(least).max();
        let untraced = self.untraced();
        match least {
            Some(least) => Some(untraced.unwrap_or(duration).saturating_sub(least)),
            None => untraced,
        }
    }

    /// Wall time without the tracer's time and without unobserved time, as far as these are known; an upper bound of
    /// any saving.
    pub(crate) fn untraced(&self) -> Option<u64> {
        // With several processes, one may run while another is unobserved.
        let unobserved = match &self.lives[..] {
            [life] => self.accounting[Cause::Unobserved] / life.threads.max(1),
            _ => 0,
        };
        let tracer = self.tracer_gain()?;
        Some(self.duration().saturating_sub(tracer.saturating_add(unobserved)))
    }

    /// The wall time that the tracer took to record and write events. `None` if the cost of an event is unknown.
    pub(crate) fn tracer_gain(&self) -> Option<u64> {
        let recording = sum(self.recording()?);
        let all = recording.saturating_add(self.accounting[Cause::Tracer]);
        Some((all / self.busiest().max(1)).min(self.duration()))
    }

    /// The thread time that recording took, for each process that reports it; `None` if no process does.
    fn recording(&self) -> Option<Vec<u64>> {
        let known: Vec<u64> = self.lives.iter().filter_map(|life| life.effort.recording_ns).collect();
        (!known.is_empty()).then_some(known)
    }

    /// The thread time that other threads may lose while processes start or end.
    pub(crate) fn lost_at_edge(&self) -> u64 {
        let of_life = |life: &Life| {
            let start_ns = life.effort.start_ns.unwrap_or(LONGEST_START_NS);
            start_ns.saturating_mul(life.threads.saturating_sub(1))
        };
        sum(self.lives.iter().map(of_life))
    }

    /// The time in which threads read counters, summed over all threads.
    pub(crate) fn counters_ns(&self) -> u64 {
        sum(self.lives.iter().map(|life| life.effort.counters_ns))
    }

    /// The highest cost of an event in any process, in picoseconds; `None` if unknown.
    pub(crate) fn event_ps(&self) -> Option<u64> {
        self.lives.iter().filter_map(|life| life.effort.event_ps).max()
    }

    /// Whether the threads of the process with the most threads per CPU kept its CPUs busy; `None` if unknown.
    pub(crate) fn keeps_processors_busy(&self) -> Option<bool> {
        let known = |life: &&Life| life.processors.is_some_and(|known| known > 0);
        let per_processor = |life: &&Life| life.threads / u64::from(life.processors.unwrap_or(1));
        let life = self.lives.iter().filter(known).max_by_key(per_processor)?;
        let processors = u64::from(life.processors?);
        let all = life.end.abs_diff(life.begin).saturating_mul(processors);
        Some(life.effort.cpu?.all_ns as f64 >= MIN_BUSY * all as f64)
    }

    /// Of the time during which threads could have used a CPU, the share during which they had one; `None` unless this
    /// share is clearly below 1. The system reports how long threads were ready to run while other programs had the
    /// CPUs; threads that sleep or read do not count.
    pub(crate) fn starved(&self) -> Option<Starved> {
        let starved = self.lives.iter().filter_map(|life| {
            let cpu = life.effort.cpu?;
            let delay = cpu.delay_ns? as f64;
            let all = life.end.abs_diff(life.begin).saturating_mul(life.threads) as f64;
            let share = cpu.all_ns as f64 / (cpu.all_ns as f64 + delay).max(1.0);
            let is_by_tracer = cpu.tracer_ns.is_some_and(|ns| ns as f64 > delay / 2.0);
            (share < MAX_STARVED && delay >= MIN_DELAY * all).then_some(Starved { share, is_by_tracer })
        });
        starved.min_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// The time that threads in the program's code spent without a CPU and without needing one, at least: the program
    /// waited for something. The second value is false if the system does not report how long other programs had the
    /// CPUs, so that this time may be included. `None` if unknown, if too little, or if the trace contains external
    /// waits, which explain it.
    pub(crate) fn waits_unseen(&self) -> Option<(u64, bool)> {
        let cpu = |life: &Life| life.effort.cpu.filter(|_| !life.effort.has_external_waits);
        let cpus: Vec<Cpu> = self.lives.iter().map(cpu).collect::<Option<_>>()?;
        let delays: Option<Vec<u64>> = cpus.iter().map(|cpu| cpu.delay_ns).collect();
        let is_certain = delays.is_some();
        let had = sum(cpus.iter().map(|cpu| cpu.all_ns).chain(delays.into_iter().flatten()));
        let useful = self.accounting[Cause::Useful];
        let without = useful.saturating_sub(had);
        let least = if is_certain { MIN_WAITS } else { MIN_WAITS_OR_DELAYS };
        (without >= MIN_WAITS_NS && without as f64 >= least * useful as f64).then_some((without, is_certain))
    }

    /// The time that a region's start, end, barriers and waits for tasks cost its threads, without the work that they
    /// wait for.
    pub(crate) fn costs(&self, region: &RegionPart) -> u64 {
        let causes = [Cause::Fork, Cause::Join, Cause::Barrier, Cause::Runtime];
        sum(causes.map(|cause| region.accounting[cause]))
    }

    /// The waits for each mutex of each process.
    pub(crate) fn mutexes(&self) -> BTreeMap<(&str, Mutex<'_>), MutexWaits<'_>> {
        let mut mutexes: BTreeMap<_, MutexWaits<'_>> = BTreeMap::new();
        for (key, ns) in self.blocked.iter().filter(|(_, ns)| **ns > 0) {
            let at = key.holder.as_ref().map_or(&key.waiter.1, |(_, place)| place);
            let mutex = match key.lock {
                Some(number) if number != 0 => Mutex::Number(key.cause, number),
                _ => Mutex::At(key.cause, at),
            };
            let waits = mutexes.entry((&*key.process, mutex)).or_default();
            waits.ns.grow_by(*ns);
            waits.holders.insert(at);
        }
        mutexes
    }

    /// Whether there are several processes.
    pub(crate) fn has_several(&self) -> bool {
        self.lives.len() > 1
    }

    /// From the first process's start to the last one's end.
    pub(crate) fn duration(&self) -> u64 {
        let begin = self.lives.iter().map(|life| life.begin).min().unwrap_or(0);
        let end = self.lives.iter().map(|life| life.end).max().unwrap_or(0);
        end.abs_diff(begin)
    }

    /// The numbers of threads for which regions are rescheduled: up to 2 x N.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        thread_counts::numbers(u32::try_from(self.busiest()).unwrap_or(u32::MAX))
    }
}

/// Keeps the heaviest instances of both.
pub(crate) fn merge_moments(known: &mut Vec<(u64, Moment)>, more: impl IntoIterator<Item = (u64, Moment)>) {
    known.extend(more);
    known.sort_by(|(a, at), (b, other)| b.cmp(a).then_with(|| at.cmp(other)));
    known.truncate(MAX_INSTANCES);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A process with two threads on two CPUs that ran for a second, using this much CPU time, without waits.
    fn part_with(work_ns: u64, waits: Cause) -> MergeableAnswers {
        let life =
            Life { begin: 0, end: 1_000_000_000, threads: 2, processors: Some(2), effort: Effort::default() };
        let mut part = MergeableAnswers { lives: vec![life], ..MergeableAnswers::default() };
        part.accounting.add(waits, 300 * MS);
        let cpu = Cpu { all_ns: 2000 * MS, work_ns, ..Cpu::default() };
        part.set_effort(|_| Effort { cpu: Some(cpu), ..Effort::default() });
        part
    }

    #[test]
    fn threads_without_a_cpu_are_told_from_those_that_the_tracer_took_it_from() {
        let starved = |tracer_ns| {
            let mut part = part_with(0, Cause::Unobserved);
            let cpu = Cpu { all_ns: 1500 * MS, delay_ns: Some(500 * MS), tracer_ns, ..Cpu::default() };
            part.set_effort(|_| Effort { cpu: Some(cpu), ..Effort::default() });
            let starved = part.starved().expect("a quarter of the time is missing");
            assert!((starved.share - 0.75).abs() < 1e-9, "{starved:?}");
            starved.is_by_tracer
        };
        assert!(starved(Some(400 * MS)));
        assert!(!starved(Some(100 * MS)) && !starved(None));
    }

    #[test]
    fn no_more_is_gained_than_the_program_takes_without_the_tracer_beside_its_work() {
        let mut part = part_with(0, Cause::Unobserved);
        let cpu = Cpu { all_ns: 2000 * MS, work_ns: 1000 * MS, ..Cpu::default() };
        part.set_effort(|_| Effort { cpu: Some(cpu), recording_ns: Some(100 * MS), ..Effort::default() });
        // Each of the two threads was unobserved for 150 ms, and recorded events for 50 ms.
        assert_eq!(part.untraced(), Some(800 * MS));
        assert_eq!(part.most_to_gain(), Some(350 * MS));
    }

    #[test]
    fn others_lose_the_start_of_each_process() {
        let mut part = part_with(0, Cause::Imbalance);
        assert_eq!(part.lost_at_edge(), 150 * MS);
        part.set_effort(|_| Effort { start_ns: Some(60 * MS), ..Effort::default() });
        let mut other = part.clone();
        other.lives[0].threads = 4;
        part.merge(other);
        assert_eq!(part.lost_at_edge(), 60 * MS + 180 * MS);
    }

    #[test]
    fn time_in_waits_of_the_threads_own_code_and_for_the_tracer_is_not_certainly_work() {
        assert_eq!(part_with(1000 * MS, Cause::Imbalance).most_to_gain(), Some(500 * MS));
        let of_mpi = [Cause::Mpi, Cause::MpiWait, Cause::MpiTransfer, Cause::MpiOther];
        for cause in [Cause::ExternalWait, Cause::Tracer].into_iter().chain(of_mpi) {
            assert_eq!(part_with(1000 * MS, cause).most_to_gain(), Some(650 * MS), "{}", cause.name());
            assert_eq!(part_with(200 * MS, cause).most_to_gain(), Some(1000 * MS), "{}", cause.name());
        }
    }
}
