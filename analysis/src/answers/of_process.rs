//! Turns a process's sums into a part: place numbers become places with names.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZero;

use ompt_sys as ompt;
use omptrace_timeline::TaskCreation;
use omptrace_timeline::model::{Construct, LockId, Ns, RuntimeActivity};

use super::mergeable::{
    BlockedBy, Life, MergeableAnswers, Overlap, Path, RegionPart, TRACER_ENDS, merge_moments,
};
use crate::devices::overlap::{Kernels, Queues};
use crate::model::answers::{Moment, NotSeen};
use crate::model::cause::Cause;
use crate::model::effort::Effort;
use crate::model::place::Place;
use crate::model::place_id::{PlaceId, SERIAL};
use crate::model::region_table::Regions;
use crate::model::state_sums::RegionSums;
use crate::model::sum::{Sum, sum};
use crate::states::Finished;
use crate::states::blamed_functions::{ByCause, within};
use crate::states::concurrency::{Between, Span};

/// Number of pairs of threads per process for which waits on mutexes are kept apart; the longest waits are kept. 200
/// threads make tens of thousands of pairs: too many to read, and too many for a summary.
const MAX_PAIRS: usize = 1 << 10;

/// The sums of a process; places and functions are numbered per process.
#[derive(Debug)]
pub(crate) struct Outcome<const S: usize> {
    pub(crate) finished: Finished<S>,
    pub(crate) processors: Option<u32>,
    pub(crate) queues: Queues,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    /// The part of the time after the last event during which the tracer wrote out buffered events.
    pub(crate) tracer_ns: u64,
    /// The time that the runtime takes to hand out one chunk of a loop.
    pub(crate) chunk_cost: u64,
    pub(crate) task_creation: Option<TaskCreation>,
    pub(crate) not_seen: Vec<NotSeen>,
}

/// The names of a process and its threads, by location.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) process: String,
    pub(crate) threads: Vec<Option<String>>,
}

impl MergeableAnswers {
    /// The answers of one process. `threads`: N, if the user gave it.
    pub(crate) fn of<const S: usize>(
        outcome: Outcome<S>,
        regions: &Regions,
        threads: Option<NonZero<u32>>,
        names: &Names,
    ) -> MergeableAnswers {
        let Finished { sums, activity, useful, path, path_by_place, path_by_function, .. } = outcome.finished;
        let chunk_cost = outcome.chunk_cost;
        let threads = activity.most.max(threads.map_or(1, |n| n.get().into()));
        let serial_place = |between: Between| serial_between(regions, between);
        let place = |id: PlaceId| place(regions, &sums.serial_places, id);

        let mut part = MergeableAnswers {
            accounting: sums.accounting,
            taskwaits: sums.taskwaits,
            max_useful: useful.iter().copied().max().unwrap_or(0),
            ..MergeableAnswers::default()
        };
        part.lives.push(Life {
            begin: outcome.begin,
            end: outcome.end,
            threads,
            processors: outcome.processors,
            effort: Effort::default(),
        });
        for not_seen in outcome.not_seen {
            part.not_seen.insert(not_seen.cause, not_seen.reason);
        }

        // Regions outside of the window have no time.
        let in_window = |region: &RegionSums| region.visits > 0 || region.accounting.total() > 0;
        for (id, region) in sums.regions.iter().filter(|(_, sums)| in_window(sums)) {
            part.regions.entry(place(id)).or_default().merge(RegionPart {
                visits: region.visits,
                duration: region.duration,
                accounting: region.accounting,
                path: region.path,
                max_useful: region.useful.iter().map(|(_, ns)| *ns).max().unwrap_or(0),
                threads,
                max_team: region.max_team,
                busiest_inside: region.busiest_inside,
                tasks: region.tasks,
                tasks_with_dependences: region.tasks_with_dependences,
                creation_times: region.creation_times.clone(),
                max_creation_ns: outcome
                    .task_creation
                    .map(|cost| cost.mean_ns(region.tasks, region.tasks_with_dependences)),
            });
        }

        for (after, before) in activity.serial.keys() {
            let place = |id: &Option<PlaceId>| id.map(|id| regions.places[id as usize].clone());
            let around = (place(after), place(before));
            part.serial.insert(serial_place((*after, *before)), around);
        }
        part.idle(&activity.serial, &activity.regions, threads, serial_place, place);
        for (call, span) in &activity.calls {
            part.lose(Cause::IdleInMpi, place(*call), span.idle(threads));
        }
        let tracer_ns = outcome.tracer_ns.min(activity.paused_ns);
        part.unobserved((activity.paused_ns - tracer_ns).saturating_mul(threads));
        part.lose(Cause::Tracer, Place::new(TRACER_ENDS), tracer_ns.saturating_mul(threads));
        part.close(threads, outcome.begin, outcome.end);

        let mut functions = ByCause::default();
        for cause in Cause::ALL {
            let weights = sums.blame.of(*cause);
            let weights: Vec<_> = weights.map(|(id, weight)| (id, weight.ns())).collect();
            let lost: Vec<_> = sums.lost_at.of(*cause).map(|(id, ns)| (id, *ns)).collect();
            let uncaused: Vec<_> = sums.uncaused_at.of(*cause).map(|(id, ns)| (id, *ns)).collect();
            for (id, ns) in divide(&weights, &lost, &uncaused, place) {
                part.blame.entry((*cause, place(id))).or_default().grow_by(ns);
            }
            let scale = scale(&weights, &lost);
            for ((_, id), by_function) in sums.functions.iter().filter(|((key, _), _)| key == cause) {
                let scale = match cause {
                    Cause::NarrowTeam => {
                        activity.regions.get(id).map_or(0.0, |span| span.idle_share(threads))
                    }
                    _ => scale,
                };
                let shares = by_function.iter().map(|(function, weight)| (*function, weight * scale));
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
        for (id, useful) in sums.useful_at.iter() {
            let of_place = part.places.entry(place(id)).or_default();
            of_place.useful.grow_by(useful.ns);
            of_place.within.merge(useful.within.map(place));
        }
        for (id, count) in sums.visits.iter() {
            part.places.entry(place(id)).or_default().visits += count;
        }
        for (id, tasks) in sums.tasks.iter() {
            let sums = part.places.entry(place(id)).or_default();
            sums.tasks += tasks.created;
            sums.dependent_tasks += tasks.dependent;
            sums.task_levels.merge(&tasks.levels);
        }
        let all: BTreeMap<PlaceId, f64> =
            sums.blame.of(Cause::Imbalance).map(|(id, weight)| (id, weight.ns())).collect();
        for (id, alone) in &sums.alone {
            if alone.weight.ns() * 2.0 > all.get(id).copied().unwrap_or(0.0) {
                part.places.entry(place(*id)).or_default().alone_inside.merge(alone.around.map(place));
            }
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
        part.keep_longest_blocked();
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
        for (id, external) in &sums.external {
            let of_place = part.places.entry(place(*id)).or_default();
            of_place.external_waits += external.waits;
            of_place.object.merge(external.object);
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
        let mut in_mpi: BTreeMap<PlaceId, (u64, u64)> = BTreeMap::new();
        for ((id, _), ns) in &sums.held_in_mpi {
            let (all, longest) = in_mpi.entry(*id).or_default();
            all.grow_by(*ns);
            *longest = (*longest).max(*ns);
        }
        for (id, (all, longest)) in in_mpi {
            let of_place = part.places.entry(place(id)).or_default();
            of_place.held_in_mpi_ns.grow_by(all);
            let by_others = all.saturating_sub(longest);
            of_place.held_in_mpi_by_others_ns = of_place.held_in_mpi_by_others_ns.max(by_others);
        }
        for (id, construct) in regions.constructs.iter().enumerate() {
            let Some(of_place) = part.places.get_mut(&regions.places[id]) else {
                continue;
            };
            of_place.is_data_op |= matches!(construct, Construct::TargetDataOp(_));
            if let Construct::Work(kind) = construct {
                of_place.is_single |=
                    matches!(*kind, ompt::ompt_work_single_executor | ompt::ompt_work_single_other);
                of_place.schedules.extend(omptrace_timeline::schedule(*kind));
            }
        }
        let mut rows = BTreeMap::<_, u64>::new();
        for (id, ns) in path_by_place {
            rows.entry(place(id)).or_default().grow_by(ns);
        }
        part.path =
            Path { ns: path, places: rows, functions: within(path, path_by_function, &regions.functions) };
        part.of_threads = (part.max_useful.saturating_mul(threads), path.saturating_mul(threads));
        part
    }

    /// Adds the time during which threads had nothing to do.
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

    pub(crate) fn lose(&mut self, cause: Cause, place: Place, ns: u64) {
        if ns > 0 {
            self.accounting.add(cause, ns);
            self.blame.entry((cause, place)).or_default().grow_by(ns);
        }
    }

    fn unobserved(&mut self, ns: u64) {
        self.lose(Cause::Unobserved, Place::new("nothing recorded"), ns);
    }

    /// Makes the sum of all causes equal N x T. Contradictory events can place a thread's regions before times that
    /// were already accounted for, so the sum may differ; idle time absorbs the difference first.
    fn close(&mut self, threads: u64, begin: Ns, end: Ns) {
        let whole = end.abs_diff(begin).saturating_mul(threads);
        let total = self.accounting.total();
        if total < whole {
            let place = Place::serial(None, None);
            self.lose(Cause::Serial, place, whole - total);
        }
        let mut rest = total.saturating_sub(whole);
        let idle = |cause: Cause| matches!(cause, Cause::Serial | Cause::IdleInMpi | Cause::NarrowTeam);
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

    /// `close` may have reduced the time of mutex causes; reduces the waits of thread pairs to match.
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

    /// Keeps lock and holder only for the longest waits. How long each thread waited is kept for all.
    fn keep_longest_blocked(&mut self) {
        if self.blocked.len() <= MAX_PAIRS {
            return;
        }
        let mut rows: Vec<_> = std::mem::take(&mut self.blocked).into_iter().collect();
        rows.sort_by_key(|(_, ns)| Reverse(*ns));
        for (number, (key, ns)) in rows.into_iter().enumerate() {
            let key = match number < MAX_PAIRS {
                true => key,
                false => BlockedBy { lock: None, holder: None, ..key },
            };
            self.blocked.entry(key).or_default().grow_by(ns);
        }
    }
}

fn serial_between(regions: &Regions, (after, before): Between) -> Place {
    let place = |id: PlaceId| &regions.places[id as usize];
    Place::serial(after.map(place), before.map(place))
}

/// The place with this number. Numbers from `SERIAL` on are places in serial code, listed in `serial`.
pub(crate) fn place(regions: &Regions, serial: &[Between], id: PlaceId) -> Place {
    match id.checked_sub(SERIAL) {
        Some(number) => serial_between(regions, serial[number as usize]),
        None => regions.places[id as usize].clone(),
    }
}

/// The factor that converts blame weights to nanoseconds of the loss: 1, or less if not all of the loss counts.
fn scale(weights: &[(PlaceId, f64)], lost: &[(PlaceId, u64)]) -> f64 {
    let total = sum(lost.iter().map(|(_, ns)| *ns));
    let caused: f64 = weights.iter().map(|(_, weight)| weight).sum();
    match caused < 0.5 {
        true => 0.0,
        // Recording pauses and backward time steps make the weights too large.
        false => (total as f64 / caused).min(1.0),
    }
}

/// Divides the sum of `lost` among the places that caused it. The part that no place in `weights` caused stays at the
/// places in `uncaused`. Place numbers depend on the order of reading, so fractions of nanoseconds are distributed in
/// the order of `place`.
fn divide(
    weights: &[(PlaceId, f64)],
    lost: &[(PlaceId, u64)],
    uncaused: &[(PlaceId, u64)],
    place: impl Fn(PlaceId) -> Place,
) -> Vec<(PlaceId, u64)> {
    let total = sum(lost.iter().map(|(_, ns)| *ns));
    let scale = scale(weights, lost);
    if scale == 0.0 {
        return lost.to_vec();
    }
    let mut rows: Vec<(PlaceId, u64)> =
        weights.iter().map(|(id, weight)| (*id, (weight * scale) as u64)).collect();
    let mut rest = total.saturating_sub(sum(rows.iter().map(|(_, ns)| *ns)));
    for (id, ns) in uncaused {
        let ns = (*ns).min(rest);
        rest -= ns;
        rows.push((*id, ns));
    }
    // The rest consists of fractions of nanoseconds.
    let is_rounding = rest as f64 <= total as f64 * 1e-3 + rows.len() as f64;
    if !is_rounding {
        let whole = u128::from(rest);
        for (id, ns) in lost {
            let share = (whole * u128::from(*ns) / u128::from(total.max(1))) as u64;
            let share = share.min(rest);
            rest -= share;
            rows.push((*id, share));
        }
    }
    let by_name = |a: PlaceId, b: PlaceId| place(b).cmp(&place(a));
    let longest = rows.iter_mut().max_by(|(a, ns), (b, more)| ns.cmp(more).then_with(|| by_name(*a, *b)));
    if let Some((_, ns)) = longest {
        *ns += rest;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_lost_is_divided() {
        type Lost = &'static [(u32, u64)];
        type Case = (&'static [(u32, f64)], Lost, Lost);
        let cases: [Case; 6] = [
            (&[], &[(1, 10), (2, 5)], &[(1, 10)]),
            (&[(7, 10.0)], &[(1, 10)], &[]),
            (&[(7, 3.3), (8, 6.6)], &[(1, 10)], &[]),
            (&[(7, 1e6)], &[(1, 10), (2, 7)], &[(2, 7)]),
            (&[(7, 5e5)], &[(1, 700_000), (2, 300_001)], &[]),
            (&[(7, 5e5)], &[(1, 700_000), (2, 300_001)], &[(2, 300_001)]),
        ];
        for (weights, lost, uncaused) in cases {
            let total: u64 = lost.iter().map(|(_, ns)| ns).sum();
            let divided = divide(weights, lost, uncaused, place_of);
            let divided: u64 = divided.iter().map(|(_, ns)| ns).sum();
            assert_eq!(divided, total, "{weights:?} {lost:?}");
        }
    }

    fn place_of(id: PlaceId) -> Place {
        Place::at("", None, Some(100 - id), None)
    }

    /// If two places caused equally much, the extra nanosecond goes to the same place, whatever its number.
    #[test]
    fn parts_of_nanoseconds_go_by_the_place() {
        for (one, other) in [(1, 2), (2, 1)] {
            let divided = divide(&[(one, 5.5), (other, 5.5)], &[(1, 11)], &[], place_of);
            assert!(divided.contains(&(2, 6)), "{divided:?}");
            assert!(divided.contains(&(1, 5)), "{divided:?}");
        }
    }
}
