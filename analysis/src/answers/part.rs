//! The answers of some processes, which can be merged with those of others.
//!
//! All sums are integers, and keys are places in words, so that parts merge to the same answers in any order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use ompt_sys as ompt;
use omptrace_timeline::sink::{Construct, LockId, Ns, RuntimeActivity};
use serde::{Deserialize, Serialize};

use crate::answers::activity::{Between, Span};
use crate::answers::collector::{Predicted, Regions};
use crate::answers::functions::{ByCause, Functions, within};
use crate::answers::instances::MAX_INSTANCES;
use crate::answers::plan::{Plan, Target};
use crate::answers::process::{Finished, PlaceId, RegionSums, SERIAL};
use crate::answers::queues::{Kernels, Queues};
use crate::answers::scalability::{self, Scalability};
use crate::answers::what_if::{Change, MAX_SCENARIOS};
use crate::answers::{
    Accounting, Answers, Blame, Blocked, Cause, CriticalPath, Efficiency, FunctionName, Moment,
    NotSeen, PathRow, Place, RegionAnswer, SCHEMA, WhatIf, findings,
};
use crate::sum::{Sum, sum};
use crate::summary::{pairs, words};
use crate::window::Windows;

/// Places whose work is tried twice as fast.
const MAX_FASTER: usize = 3;

/// The sums of a process, by its own numbers.
#[derive(Debug)]
pub(super) struct Outcome<const S: usize> {
    pub(super) finished: Finished<S>,
    pub(super) processors: Option<u32>,
    pub(super) queues: Queues,
    pub(super) begin: Ns,
    pub(super) end: Ns,
    /// The time that the runtime takes to hand out a chunk of a loop.
    pub(super) chunk_cost: u64,
    pub(super) not_seen: Vec<NotSeen>,
}

/// When a process ran, and with how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Life {
    begin: Ns,
    end: Ns,
    threads: u64,
    /// The processors that it may run on, where the trace has them.
    processors: Option<u32>,
}

/// The regions before and after serial code; `None` at the program's begin and end.
pub(super) type Around = (Option<Place>, Option<Place>);

/// Sums of a parallel region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RegionPart {
    pub(super) visits: u64,
    pub(super) duration: u64,
    pub(super) accounting: Accounting,
    pub(super) path: u64,
    pub(super) max_useful: u64,
    pub(super) threads: u64,
    pub(super) max_team: u32,
}

impl RegionPart {
    fn merge(&mut self, other: RegionPart) {
        self.visits += other.visits;
        self.duration.grow_by(other.duration);
        self.accounting.merge(&other.accounting);
        self.path.grow_by(other.path);
        self.max_useful.grow_by(other.max_useful);
        self.threads = self.threads.max(other.threads);
        self.max_team = self.max_team.max(other.max_team);
    }
}

/// Sums of a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlaceSums {
    pub(super) useful: u64,
    pub(super) visits: u64,
    pub(super) tasks: u64,
    pub(super) chunks: u64,
    /// The least that it costs to hand these out.
    pub(super) chunks_cost: u64,
    /// The threads of the team around a region that was opened in a single or masked region; else 0.
    pub(super) around_single: u32,
    pub(super) arrivals: u64,
    pub(super) idle_arrivals: u64,
    pub(super) holds: u64,
    pub(super) contended: u64,
    pub(super) held_ns: u64,
    pub(super) is_single: bool,
    /// The place of a device's work: `jacobi.c:41`, `main+0x13c`.
    pub(super) spot: String,
    /// It is an operation on a device's data.
    pub(super) is_data_op: bool,
    pub(super) data_ops: u64,
    pub(super) sized_ops: u64,
    pub(super) bytes: u64,
    pub(super) kernels: u64,
    /// The part of `kernels` of which a device or the host showed a time, and that time.
    pub(super) timed_kernels: u64,
    pub(super) kernels_ns: u64,
    /// The threads that were busy at the busiest time of a region inside another, in a process with these processors.
    pub(super) nested: BTreeMap<u32, u32>,
    pub(super) nested_barriers_ns: u64,
    #[serde(deserialize_with = "words::set")]
    pub(super) schedules: BTreeSet<&'static str>,
}

impl PlaceSums {
    fn merge(&mut self, other: PlaceSums) {
        self.useful.grow_by(other.useful);
        self.visits += other.visits;
        self.tasks.grow_by(other.tasks);
        self.chunks += other.chunks;
        self.chunks_cost.grow_by(other.chunks_cost);
        self.around_single = self.around_single.max(other.around_single);
        self.arrivals += other.arrivals;
        self.idle_arrivals += other.idle_arrivals;
        self.holds += other.holds;
        self.contended += other.contended;
        self.held_ns.grow_by(other.held_ns);
        self.is_single |= other.is_single;
        self.spot = std::mem::take(&mut self.spot).max(other.spot);
        self.is_data_op |= other.is_data_op;
        self.data_ops += other.data_ops;
        self.sized_ops += other.sized_ops;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.kernels += other.kernels;
        self.timed_kernels += other.timed_kernels;
        self.kernels_ns.grow_by(other.kernels_ns);
        for (processors, threads) in other.nested {
            let known = self.nested.entry(processors).or_default();
            *known = (*known).max(threads);
        }
        self.nested_barriers_ns.grow_by(other.nested_barriers_ns);
        self.schedules.extend(other.schedules);
    }
}

/// A pair of threads, one of which waited for a mutex of the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct BlockedBy {
    cause: Cause,
    process: String,
    lock: Option<u64>,
    holder: Option<(String, Place)>,
    waiter: (String, Place),
}

/// A device that ran kernels and moved bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Overlap {
    pub(super) process: String,
    pub(super) device_num: i32,
    pub(super) kernels_ns: u64,
    pub(super) transfers_ns: u64,
    /// When both were done.
    pub(super) both_ns: u64,
}

/// The longest chain of work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Path {
    ns: u64,
    #[serde(with = "pairs")]
    places: BTreeMap<Place, u64>,
    #[serde(with = "pairs")]
    functions: BTreeMap<FunctionName, u64>,
}

impl Path {
    /// Whether it is the longer one of two, in any order of comparison.
    fn is_longer(&self, other: &Path) -> bool {
        (self.ns, &other.places, &other.functions) > (other.ns, &self.places, &self.functions)
    }
}

/// The answers of some processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    lives: Vec<Life>,
    pub(super) accounting: Accounting,
    #[serde(with = "pairs")]
    pub(super) regions: BTreeMap<Place, RegionPart>,
    #[serde(with = "pairs")]
    pub(super) blame: BTreeMap<(Cause, Place), u64>,
    #[serde(with = "pairs")]
    pub(super) places: BTreeMap<Place, PlaceSums>,
    pub(super) taskwaits: u64,
    /// The fewest threads that regions asked for.
    #[serde(with = "pairs")]
    pub(super) requested: BTreeMap<Place, u32>,
    /// The instances that caused most, or lost most.
    #[serde(with = "pairs")]
    pub(super) instances: BTreeMap<(Cause, Place), Vec<(u64, Moment)>>,
    /// The waits for mutexes that other threads had.
    #[serde(with = "pairs")]
    blocked: BTreeMap<BlockedBy, u64>,
    /// The overlaps of each device that shows when it did what.
    pub(super) overlaps: Vec<Overlap>,
    /// The functions that waits are due to.
    pub(super) functions: Functions,
    max_useful: u64,
    path: Path,
    /// The regions around serial code.
    #[serde(with = "pairs")]
    pub(super) serial: BTreeMap<Place, Around>,
    #[serde(with = "pairs")]
    not_seen: BTreeMap<Cause, String>,
}

impl Part {
    /// The answers of one process. `threads`: N, where the user says it.
    pub(super) fn of<const S: usize>(
        outcome: Outcome<S>,
        regions: &Regions,
        threads: Option<NonZero<u32>>,
        names: &Names,
    ) -> Part {
        let Finished {
            sums,
            activity,
            useful,
            path,
            path_by_place,
            path_by_function,
            ..
        } = outcome.finished;
        let chunk_cost = outcome.chunk_cost;
        let threads = activity.most.max(threads.map_or(1, |n| n.get().into()));
        let serial_place = |between: Between| serial_between(regions, between);
        let place = |id: PlaceId| place(regions, &sums.serial_places, id);

        let mut part = Part {
            accounting: sums.accounting,
            taskwaits: sums.taskwaits,
            max_useful: useful.iter().copied().max().unwrap_or(0),
            ..Part::default()
        };
        part.lives.push(Life {
            begin: outcome.begin,
            end: outcome.end,
            threads,
            processors: outcome.processors,
        });
        for not_seen in outcome.not_seen {
            part.not_seen.insert(not_seen.cause, not_seen.reason);
        }

        // Regions outside of the window have no time.
        let in_window = |region: &RegionSums| region.visits > 0 || region.accounting.total() > 0;
        for (id, region) in sums.regions.iter().filter(|(_, sums)| in_window(sums)) {
            part.regions
                .entry(place(id))
                .or_default()
                .merge(RegionPart {
                    visits: region.visits,
                    duration: region.duration,
                    accounting: region.accounting,
                    path: region.path,
                    max_useful: region.useful.iter().map(|(_, ns)| *ns).max().unwrap_or(0),
                    threads,
                    max_team: region.max_team,
                });
        }

        for (after, before) in activity.serial.keys() {
            let place = |id: &Option<PlaceId>| id.map(|id| regions.places[id as usize].clone());
            let around = (place(after), place(before));
            part.serial.insert(serial_place((*after, *before)), around);
        }
        part.idle(
            &activity.serial,
            &activity.regions,
            threads,
            serial_place,
            place,
        );
        part.unobserved(activity.paused_ns.saturating_mul(threads));
        part.close(threads, outcome.begin, outcome.end);

        let mut functions = ByCause::default();
        for cause in Cause::ALL {
            let weights = sums.blame.of(*cause);
            let weights: Vec<_> = weights.map(|(id, weight)| (id, *weight)).collect();
            let lost: Vec<_> = sums.lost_at.of(*cause).map(|(id, ns)| (id, *ns)).collect();
            for (id, ns) in divide(&weights, &lost) {
                part.blame
                    .entry((*cause, place(id)))
                    .or_default()
                    .grow_by(ns);
            }
            let scale = scale(&weights, &lost);
            for ((_, id), by_function) in sums.functions.iter().filter(|((key, _), _)| key == cause)
            {
                let scale = match cause {
                    Cause::NarrowTeam => activity
                        .regions
                        .get(id)
                        .map_or(0.0, |span| span.idle_share(threads)),
                    _ => scale,
                };
                let shares = by_function
                    .iter()
                    .map(|(function, weight)| (*function, weight * scale));
                functions.add((*cause, place(*id)), shares);
            }
        }
        for (between, by_function) in &sums.serial_functions {
            let span = activity.serial.get(between);
            let scale = span.map_or(0.0, |span| span.idle_share(threads));
            let shares = by_function.iter();
            let shares = shares.map(|(function, ns)| (*function, *ns as f64 * scale));
            functions.add((Cause::Serial, serial_place(*between)), shares);
        }
        part.functions = functions.limited(&part.blame, &regions.functions, sums.has_samples);
        for ((function, activity), ns) in &sums.spins {
            if let Some(name) = regions.functions.get(*function as usize) {
                let is_flush = *activity == RuntimeActivity::Flush;
                part.functions.add_spins((name.clone(), is_flush), *ns);
            }
        }
        for (function, times) in &sums.serial_times {
            if let Some(name) = regions.functions.get(*function as usize) {
                part.functions.add_times(name.clone(), *times);
            }
        }

        for (cause, id, instances) in sums.instances.iter() {
            let moments = instances.iter().map(|instance| {
                let thread = names.threads.get(instance.location).cloned();
                let moment = Moment {
                    begin_ns: instance.begin,
                    end_ns: instance.end,
                    process: names.process.clone(),
                    thread: thread.flatten().unwrap_or_default(),
                };
                (instance.weight as u64, moment)
            });
            let known = part.instances.entry((cause, place(id))).or_default();
            merge_moments(known, moments);
        }
        for (id, ns) in sums.useful_at.iter() {
            part.places
                .entry(place(id))
                .or_default()
                .useful
                .grow_by(*ns);
        }
        for (id, count) in sums.visits.iter() {
            part.places.entry(place(id)).or_default().visits += count;
        }
        for (id, tasks) in sums.tasks.iter() {
            part.places.entry(place(id)).or_default().tasks += tasks.created;
        }
        for (id, threads) in &sums.in_single {
            let of_place = part.places.entry(place(*id)).or_default();
            of_place.around_single = of_place.around_single.max(*threads);
        }
        for (id, (all, idle)) in sums.arrivals.iter() {
            let of_place = part.places.entry(place(id)).or_default();
            of_place.arrivals += all;
            of_place.idle_arrivals += idle;
        }
        for (id, requested) in &sums.requested {
            let known = part.requested.entry(place(*id)).or_insert(*requested);
            *known = (*known).min(*requested);
        }
        for (id, chunks) in sums.chunks.iter() {
            let sums = part.places.entry(place(id)).or_default();
            sums.chunks += chunks;
            sums.chunks_cost.grow_by(chunks * chunk_cost);
        }
        let name = |location: usize| {
            let thread = names.threads.get(location).cloned();
            thread.flatten().unwrap_or_default()
        };
        for (block, ns) in &sums.blocked {
            let key = BlockedBy {
                cause: block.cause,
                process: names.process.clone(),
                lock: block.lock.map(|LockId(wait_id)| wait_id),
                holder: block.holder.map(|(thread, at)| (name(thread), place(at))),
                waiter: (name(block.waiter.0), place(block.waiter.1)),
            };
            part.blocked.entry(key).or_default().grow_by(*ns);
        }
        part.limit_blocked();
        for (id, target) in &sums.targets {
            let spot = regions.spots.get(*id as usize).cloned().unwrap_or_default();
            let kernels = match target.kernels {
                0 => Kernels::default(),
                _ => outcome.queues.kernels(&spot),
            };
            let of_place = part.places.entry(place(*id)).or_default();
            of_place.spot = spot;
            of_place.kernels += target.kernels;
            of_place.timed_kernels += kernels.count;
            of_place.kernels_ns += kernels.ns;
            of_place.data_ops += target.data_ops;
            of_place.sized_ops += target.sized_ops;
            of_place.bytes = of_place.bytes.saturating_add(target.bytes);
        }
        for (id, nested) in &sums.nested {
            let of_place = part.places.entry(place(*id)).or_default();
            of_place.nested_barriers_ns += nested.barriers_ns;
            if let Some(processors) = outcome.processors {
                let known = of_place.nested.entry(processors).or_default();
                *known = (*known).max(nested.threads);
            }
        }
        let devices = outcome.queues.devices().into_iter();
        part.overlaps.extend(devices.filter_map(|device| {
            Some(Overlap {
                process: names.process.clone(),
                device_num: device.device_num,
                kernels_ns: device.kernels_ns?,
                transfers_ns: device.transfers_ns?,
                both_ns: device.overlap_ns?,
            })
        }));
        for (_, id, holds) in sums.holds.iter() {
            let of_place = part.places.entry(place(id)).or_default();
            of_place.holds += holds.count;
            of_place.contended += holds.waited;
            of_place.held_ns += holds.held_ns;
        }
        for (id, construct) in regions.constructs.iter().enumerate() {
            let Some(of_place) = part.places.get_mut(&regions.places[id]) else {
                continue;
            };
            of_place.is_data_op |= matches!(construct, Construct::TargetDataOp(_));
            if let Construct::Work(kind) = construct {
                of_place.is_single |= matches!(
                    *kind,
                    ompt::ompt_work_single_executor | ompt::ompt_work_single_other
                );
                of_place
                    .schedules
                    .extend(omptrace_timeline::schedule(*kind));
            }
        }
        let mut rows = BTreeMap::<_, u64>::new();
        for (id, ns) in path_by_place {
            rows.entry(place(id)).or_default().grow_by(ns);
        }
        part.path = Path {
            ns: path,
            places: rows,
            functions: within(path, path_by_function, &regions.functions),
        };
        part
    }

    /// Adds the time that threads had nothing to do.
    fn idle(
        &mut self,
        serial: &BTreeMap<(Option<PlaceId>, Option<PlaceId>), Span>,
        regions: &BTreeMap<PlaceId, Span>,
        threads: u64,
        serial_place: impl Fn((Option<PlaceId>, Option<PlaceId>)) -> Place,
        place: impl Fn(PlaceId) -> Place,
    ) {
        for (between, span) in serial {
            self.lose(Cause::Serial, serial_place(*between), span.idle(threads));
        }
        for (region, span) in regions {
            let (idle, place) = (span.idle(threads), place(*region));
            if let Some(of_place) = self.regions.get_mut(&place) {
                of_place.accounting.add(Cause::NarrowTeam, idle);
            }
            self.lose(Cause::NarrowTeam, place, idle);
        }
    }

    fn lose(&mut self, cause: Cause, place: Place, ns: u64) {
        if ns > 0 {
            self.accounting.add(cause, ns);
            self.blame.entry((cause, place)).or_default().grow_by(ns);
        }
    }

    fn unobserved(&mut self, ns: u64) {
        let place = Place {
            construct: "nothing recorded".to_owned(),
            ..Place::default()
        };
        self.lose(Cause::Unobserved, place, ns);
    }

    /// Where events make no sense, a thread's regions may lie before what was known of the others: idle time makes up for it.
    fn close(&mut self, threads: u64, begin: Ns, end: Ns) {
        let whole = end.abs_diff(begin).saturating_mul(threads);
        let total = self.accounting.total();
        if total < whole {
            let place = serial_place(None, None);
            self.lose(Cause::Serial, place, whole - total);
        }
        let mut rest = total.saturating_sub(whole);
        let idle = |cause: Cause| matches!(cause, Cause::Serial | Cause::NarrowTeam);
        let mut rows: Vec<_> = self.blame.iter_mut().collect();
        rows.sort_by_key(|((cause, _), ns)| (!idle(*cause), Reverse(**ns)));
        for ((cause, _), ns) in rows {
            let less = rest.min(*ns).min(self.accounting[*cause]);
            rest -= less;
            *ns -= less;
            self.accounting[*cause] -= less;
        }
        self.accounting[Cause::Useful] -= rest.min(self.accounting[Cause::Useful]);
    }

    /// Where idle time made up for events that make no sense, waits for mutexes may be fewer than what was seen.
    fn limit_blocked(&mut self) {
        for cause in Cause::ALL.iter().filter(|cause| cause.is_mutex()) {
            let blocked = self.blocked.iter_mut();
            let mut rows: Vec<_> = blocked.filter(|(key, _)| key.cause == *cause).collect();
            let sum = sum(rows.iter().map(|(_, ns)| **ns));
            let mut rest = sum.saturating_sub(self.accounting[*cause]);
            rows.sort_by_key(|(_, ns)| Reverse(**ns));
            for (_, ns) in rows {
                let less = rest.min(*ns);
                rest -= less;
                *ns -= less;
            }
        }
    }

    /// Adds the answers of other processes: associative and commutative.
    pub(crate) fn merge(&mut self, other: Part) {
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

    /// Times that were those in windows are those of the whole timeline.
    pub(crate) fn on_timeline(&mut self, windows: &Windows) {
        for (_, moment) in self.instances.values_mut().flatten() {
            moment.begin_ns = windows.begin(moment.begin_ns);
            moment.end_ns = windows.end(moment.end_ns);
        }
    }

    /// All of it happened `ns` later.
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
        let mut useful: Vec<_> = places
            .map(|(place, sums)| (place.clone(), sums.useful))
            .collect();
        useful.sort_by_key(|(_, ns)| Reverse(*ns));
        useful
    }

    /// The threads that all processes that ran at once had, at the busiest time.
    pub(super) fn busiest(&self) -> u64 {
        let ends = self
            .lives
            .iter()
            .map(|life| (life.end, false, life.threads));
        let begins = self
            .lives
            .iter()
            .map(|life| (life.begin, true, life.threads));
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

    /// The threads and processors of the process that has most threads for each of its processors, where they are too few.
    pub(super) fn oversubscribed(&self) -> Option<(u64, u32)> {
        let known = |life: &Life| Some((life.threads, life.processors.filter(|known| *known > 0)?));
        let per_processor = |(threads, processors): &(u64, u32)| threads / u64::from(*processors);
        let lives = self.lives.iter().filter_map(known);
        lives
            .filter(|(threads, processors)| *threads > u64::from(*processors))
            .max_by_key(per_processor)
    }

    /// The cost of a region's begin, end, barriers and waits for tasks to its threads, beside the work that they wait for.
    pub(super) fn costs(&self, region: &RegionPart) -> u64 {
        let causes = [Cause::Fork, Cause::Join, Cause::Barrier, Cause::Runtime];
        sum(causes.map(|cause| region.accounting[cause]))
    }

    /// Whether there are several processes.
    pub(super) fn has_several(&self) -> bool {
        self.lives.len() > 1
    }

    /// From the first process's begin to the last one's end.
    pub(super) fn duration(&self) -> u64 {
        let begin = self.lives.iter().map(|life| life.begin).min().unwrap_or(0);
        let end = self.lives.iter().map(|life| life.end).max().unwrap_or(0);
        end.abs_diff(begin)
    }

    /// The numbers of threads that it is worth to schedule regions on: up to 2 x N.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        scalability::numbers(u32::try_from(self.busiest()).unwrap_or(u32::MAX))
    }

    /// The changes that are worth a replay.
    pub(crate) fn plans(&self) -> Vec<Plan> {
        let plan = |change, target, text: &str| Plan {
            change,
            target,
            text: text.to_owned(),
        };
        let mut plans = vec![
            plan(Change::Nothing, Target::Everything, "nothing changed"),
            plan(
                Change::OverheadFree,
                Target::Everything,
                "regions and barriers without cost",
            ),
        ];
        let candidates = findings::candidates(self, self.busiest(), self.duration());
        let mut wanted: Vec<Plan> = Vec::new();
        for plan in candidates
            .into_iter()
            .filter_map(|candidate| candidate.plan)
        {
            if !wanted.contains(&plan) {
                wanted.push(plan);
            }
        }
        wanted.truncate(MAX_SCENARIOS - plans.len() - MAX_FASTER);
        plans.extend(wanted);
        let mut useful: Vec<_> = self.path.places.iter().collect();
        useful.sort_by_key(|(place, ns)| (Reverse(**ns), *place));
        useful.retain(|(place, _)| !self.serial.contains_key(place));
        plans.extend(useful.into_iter().take(MAX_FASTER).map(|(place, _)| {
            plan(
                Change::Faster(0.5),
                Target::Place(place.clone()),
                "twice as fast",
            )
        }));
        plans
    }

    /// The answers in words and numbers, with what the replay of `plans` predicted.
    pub(crate) fn answers(mut self, replay: Option<(&[Plan], &Predicted)>) -> Answers {
        let (threads, duration) = (self.busiest(), self.duration());
        // Processes that begin later or end earlier than others.
        let whole = duration.saturating_mul(threads);
        let missing = whole.saturating_sub(self.accounting.total());
        let place = Place {
            construct: "no process".to_owned(),
            ..Place::default()
        };
        self.lose(Cause::Unobserved, place, missing);
        let last = self.lives.iter().map(|life| life.end).max();
        let replayed = replay.and_then(|(_, predicted)| predicted.ends.first());
        let replay_error_ns = replayed.map(|end| end - last.unwrap_or(*end));
        let gains: Vec<(&Plan, u64)> = replay.map_or_else(Vec::new, |(plans, predicted)| {
            let predicted = &predicted.ends;
            let recorded = predicted.first().copied().unwrap_or_default();
            let gain = |end: &Ns| (recorded - end).max(0).cast_unsigned();
            plans.iter().zip(predicted.iter().map(gain)).collect()
        });

        let scalability = replay.map_or_else(Scalability::default, |(_, predicted)| {
            Scalability::of(&self, &predicted.scaling)
        });
        let efficiency = efficiency(
            &self.accounting,
            threads,
            self.max_useful,
            self.path.ns,
            duration,
        );
        let regions = self.regions.iter().map(|(place, region)| RegionAnswer {
            place: place.clone(),
            visits: region.visits,
            duration_ns: region.duration,
            accounting: region.accounting,
            efficiency: efficiency_of(region),
        });
        let mut regions: Vec<RegionAnswer> = regions.collect();
        regions.sort_by_key(|region| Reverse(region.accounting.lost()));
        let mut blame: Vec<Blame> = self
            .blame
            .iter()
            .filter(|(_, ns)| **ns > 0)
            .map(|((cause, place), ns)| {
                let (functions, no_sample_ns) = self.functions.of_row(*cause, place, *ns);
                Blame {
                    cause: *cause,
                    place: place.clone(),
                    ns: *ns,
                    functions,
                    no_sample_ns,
                }
            })
            .collect();
        blame.sort_by_key(|row| Reverse(row.ns));
        let rows = self.path.functions.iter();
        let rows = rows.map(|(name, ns)| (name, *ns));
        let (path_functions, path_no_sample_ns) = self.functions.shares(self.path.ns, rows);
        let mut rows: Vec<PathRow> = self
            .path
            .places
            .iter()
            .map(|(place, ns)| PathRow {
                place: place.clone(),
                ns: *ns,
            })
            .collect();
        rows.sort_by_key(|row| Reverse(row.ns));
        let mut blocked: Vec<Blocked> = self
            .blocked
            .into_iter()
            .filter(|(_, ns)| *ns > 0)
            .map(|(key, ns)| Blocked::of(key, ns))
            .collect();
        self.blocked = BTreeMap::new();
        blocked.sort_by_key(|row| Reverse(row.ns));
        let findings = findings::of(&self, threads, duration, &gains);
        let mut what_if: Vec<WhatIf> = gains
            .iter()
            .filter(|(plan, _)| plan.change != Change::Nothing)
            .map(|(plan, gain)| WhatIf::of(plan, *gain, duration))
            .collect();
        what_if.sort_by_key(|row| Reverse(row.gain_ns));
        Answers {
            schema: SCHEMA,
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            duration_ns: duration,
            accounting: self.accounting,
            efficiency,
            regions,
            blame,
            blocked,
            critical_path: CriticalPath {
                length_ns: duration,
                useful_ns: self.path.ns,
                rows,
                functions: path_functions,
                no_sample_ns: path_no_sample_ns,
            },
            findings,
            what_if,
            other_threads: scalability.rows,
            not_predicted: scalability.not_predicted,
            task_regions: scalability.task_regions,
            replay_error_ns,
            not_seen: self
                .not_seen
                .into_iter()
                .map(|(cause, reason)| NotSeen { cause, reason })
                .collect(),
        }
    }
}

impl Blocked {
    fn of(key: BlockedBy, ns: u64) -> Blocked {
        let (holder_thread, holder) = key.holder.unzip();
        let (waiter_thread, waiter) = key.waiter;
        let lock = key.lock.filter(|wait_id| *wait_id != 0);
        Blocked {
            cause: key.cause,
            process: key.process,
            lock: lock.map(|wait_id| format!("{} {wait_id:#x}", key.cause.name())),
            holder_thread,
            holder,
            waiter_thread,
            waiter,
            ns,
        }
    }
}

fn serial_between(regions: &Regions, (after, before): Between) -> Place {
    let place = |id: PlaceId| &regions.places[id as usize];
    serial_place(after.map(place), before.map(place))
}

/// The place of a number; those of serial code are in `serial`.
pub(super) fn place(regions: &Regions, serial: &[Between], id: PlaceId) -> Place {
    match id.checked_sub(SERIAL) {
        Some(number) => serial_between(regions, serial[number as usize]),
        None => regions.places[id as usize].clone(),
    }
}

/// The names of a process and its threads, by location.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) process: String,
    pub(super) threads: Vec<Option<String>>,
}

/// Keeps the heaviest of all.
fn merge_moments(known: &mut Vec<(u64, Moment)>, more: impl IntoIterator<Item = (u64, Moment)>) {
    known.extend(more);
    known.sort_by(|(a, at), (b, other)| b.cmp(a).then_with(|| at.cmp(other)));
    known.truncate(MAX_INSTANCES);
}

fn efficiency_of(region: &RegionPart) -> Efficiency {
    efficiency(
        &region.accounting,
        region.threads,
        region.max_useful,
        region.path,
        region.duration,
    )
}

/// POP's formulas (additive and multiplicative hybrid models), without MPI.
fn efficiency(
    accounting: &Accounting,
    threads: u64,
    max_useful: u64,
    path: u64,
    duration: u64,
) -> Efficiency {
    let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    let useful = accounting[Cause::Useful] as f64;
    let (max_useful, path, duration) = (max_useful as f64, path as f64, duration as f64);
    Efficiency {
        parallel: accounting.share(Cause::Useful),
        load_balance: ratio(useful / threads.max(1) as f64, max_useful),
        communication: ratio(max_useful, duration),
        serialisation: ratio(max_useful, path),
        transfer: ratio(path, duration),
    }
}

/// Serial code, named by the regions around it.
pub(super) fn serial_place(after: Option<&Place>, before: Option<&Place>) -> Place {
    let name = |place: &Place| place.source().unwrap_or_else(|| place.construct.clone());
    let construct = match (after, before) {
        (Some(after), Some(before)) => {
            format!("serial code from {} to {}", name(after), name(before))
        }
        (None, Some(before)) => format!("serial code before {}", name(before)),
        (Some(after), None) => format!("serial code after {}", name(after)),
        (None, None) => "serial code".to_owned(),
    };
    let at = before.or(after);
    Place {
        construct,
        file: at.and_then(|place| place.file.clone()),
        line: at.and_then(|place| place.line),
        function: at.and_then(|place| place.function.clone()),
    }
}

/// What the weights of who caused a loss make of it: 1, or less where not all of the loss counts.
fn scale(weights: &[(PlaceId, f64)], lost: &[(PlaceId, u64)]) -> f64 {
    let total = sum(lost.iter().map(|(_, ns)| *ns));
    let caused: f64 = weights.iter().map(|(_, weight)| weight).sum();
    match caused < 0.5 {
        true => 0.0,
        // Recording pauses and times that go back make the weights too heavy.
        false => (total as f64 / caused).min(1.0),
    }
}

/// Divides the sum of `lost` by who caused it. What nobody in `weights` caused stays where it was lost.
fn divide(weights: &[(PlaceId, f64)], lost: &[(PlaceId, u64)]) -> Vec<(PlaceId, u64)> {
    let total = sum(lost.iter().map(|(_, ns)| *ns));
    let scale = scale(weights, lost);
    if scale == 0.0 {
        return lost.to_vec();
    }
    let mut rows: Vec<(PlaceId, u64)> = weights
        .iter()
        .map(|(id, weight)| (*id, (weight * scale) as u64))
        .collect();
    let mut rest = total.saturating_sub(sum(rows.iter().map(|(_, ns)| *ns)));
    // Parts of nanoseconds.
    let is_rounding = rest as f64 <= total as f64 * 1e-3 + rows.len() as f64;
    if is_rounding {
        if let Some((_, ns)) = rows.iter_mut().max_by_key(|(_, ns)| *ns) {
            *ns += rest;
        }
        return rows;
    }
    let whole = u128::from(rest);
    for (id, ns) in lost {
        let share = (whole * u128::from(*ns) / u128::from(total.max(1))) as u64;
        let share = share.min(rest);
        rest -= share;
        rows.push((*id, share));
    }
    if let Some((_, ns)) = rows.iter_mut().max_by_key(|(_, ns)| *ns) {
        *ns += rest;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_lost_is_divided() {
        type Case = (&'static [(u32, f64)], &'static [(u32, u64)]);
        let cases: [Case; 5] = [
            (&[], &[(1, 10), (2, 5)]),
            (&[(7, 10.0)], &[(1, 10)]),
            (&[(7, 3.3), (8, 6.6)], &[(1, 10)]),
            (&[(7, 1e6)], &[(1, 10), (2, 7)]),
            (&[(7, 5e5)], &[(1, 700_000), (2, 300_001)]),
        ];
        for (weights, lost) in cases {
            let total: u64 = lost.iter().map(|(_, ns)| ns).sum();
            let divided: u64 = divide(weights, lost).iter().map(|(_, ns)| ns).sum();
            assert_eq!(divided, total, "{weights:?} {lost:?}");
        }
    }
}
