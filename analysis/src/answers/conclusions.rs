//! What follows from the merged sums: changes that are worth a replay, and then numbers and words.

use std::cmp::Reverse;

use omptrace_timeline::model::Ns;

use super::mergeable::{BlockedBy, MergeableAnswers, RegionPart, Starved};
use crate::findings;
use crate::model::accounting::Accounting;
use crate::model::answers::{
    Answers, Blame, Blocked, CriticalPath, Efficiency, NotSeen, PathRow, RegionAnswer, SCHEMA, UsefulAt,
    WhatIf,
};
use crate::model::cause::Cause;
use crate::model::mpi::MPI_NOT_SEEN;
use crate::model::place::Place;
use crate::scaling::{Scalability, loop_schedules};
use crate::states::collector::Predicted;
use crate::what_if::scenario::{Plan, Target};
use crate::what_if::{Change, MAX_SCENARIOS};

/// Number of places whose work is also replayed at twice the speed.
const MAX_FASTER: usize = 3;

impl MergeableAnswers {
    /// The changes that are worth a replay.
    pub(crate) fn plans(&self) -> Vec<Plan> {
        let plan = |change, target, text: &str| Plan { change, target, text: text.to_owned() };
        let mut plans = vec![
            plan(Change::Nothing, Target::Everything, "nothing changed"),
            plan(Change::OverheadFree, Target::Everything, "regions and barriers without cost"),
        ];
        let candidates = findings::candidates(self, self.busiest(), self.duration());
        let (first, other): (Vec<_>, Vec<_>) =
            candidates.into_iter().map(|candidate| (candidate.plan, candidate.other_plan)).unzip();
        let mut wanted: Vec<Plan> = Vec::new();
        for plan in first.into_iter().chain(other).flatten() {
            if !wanted.contains(&plan) {
                wanted.push(plan);
            }
        }
        wanted.truncate(MAX_SCENARIOS - plans.len() - MAX_FASTER);
        plans.extend(wanted);
        let mut useful: Vec<_> = self.path.places.iter().collect();
        useful.sort_by_key(|(place, ns)| (Reverse(**ns), *place));
        useful.retain(|(place, _)| !self.serial.contains_key(place));
        plans.extend(
            useful
                .into_iter()
                .take(MAX_FASTER)
                .map(|(place, _)| plan(Change::Faster(0.5), Target::Place(place.clone()), "twice as fast")),
        );
        plans
    }

    /// See [`Answers::cpu_note`].
    fn cpu_note(&self) -> Option<String> {
        let Starved { share, is_by_tracer } = self.starved()?;
        let (reason, remedy) = match self.oversubscribed() {
            Some((threads, processors)) => {
                (format!("there are {threads} threads on {processors} CPUs"), "use fewer threads")
            }
            None if is_by_tracer => (
                "the tracer's thread that writes the trace used the CPUs".to_owned(),
                "record fewer events (--events), or leave a CPU free for this thread",
            ),
            None => (
                "other programs or threads used the CPUs".to_owned(),
                "repeat the run on an idle machine, or with fewer threads",
            ),
        };
        // If preemption was observed, time without a CPU is already not counted as work.
        let with_counters = match self.not_seen.contains_key(&Cause::Preempted) && !is_by_tracer {
            true => "; record with --cpu-time to see where the threads had no CPU",
            false => "",
        };
        Some(format!(
            "threads had a CPU for only {:.0} % of the time in which they could have run, because {reason}: {remedy}{with_counters}",
            share * 100.0
        ))
    }

    /// See [`Answers::waits_note`].
    fn waits_note(&self) -> Option<String> {
        let (ns, is_certain) = self.waits_unseen()?;
        let or = if is_certain {
            ""
        } else {
            ", and omptrace record --cpu-time shows where other threads used the CPUs"
        };
        Some(format!(
            "threads were off the CPU for {:.2} s of their useful time; omptrace record --waits shows where the threads waited{or}",
            ns as f64 / 1e9
        ))
    }

    /// The answers in words and numbers. `replay`: the replayed plans, and what the replay predicted for them.
    pub(crate) fn answers(mut self, replay: Option<(&[Plan], &Predicted)>) -> Answers {
        let (threads, duration) = (self.busiest(), self.duration());
        // Includes the time before later processes start and after earlier ones end.
        let whole = duration.saturating_mul(threads);
        let missing = whole.saturating_sub(self.accounting.total());
        self.lose(Cause::Unobserved, Place::new("no process"), missing);
        let file_names = self.name_files();
        let last = self.lives.iter().map(|life| life.end).max();
        let replayed = replay.and_then(|(_, predicted)| predicted.ends.first());
        let replay_error_ns = replayed.map(|end| end - last.unwrap_or(*end));
        let gains: Vec<(&Plan, u64)> = replay.map_or_else(Vec::new, |(plans, predicted)| {
            let predicted = &predicted.ends;
            let recorded = predicted.first().copied().unwrap_or_default();
            let gain = |end: &Ns| (recorded - end).max(0).cast_unsigned();
            plans.iter().zip(predicted.iter().map(gain)).collect()
        });

        let scalability = replay
            .map_or_else(Scalability::default, |(_, predicted)| Scalability::of(&self, &predicted.scaling));
        // Processes that run one after another use the same threads, so sums over processes may exceed the whole; no
        // share is above 1.
        let (useful, path) = self.of_threads;
        let max_useful = self.max_useful.max(useful / threads.max(1));
        let path = self.path.ns.max(path / threads.max(1));
        let efficiency = efficiency(&self.accounting, threads, max_useful, path, duration);
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
                Blame { cause: *cause, place: place.clone(), ns: *ns, functions, no_sample_ns }
            })
            .collect();
        blame.sort_by_key(|row| Reverse(row.ns));
        let rows = self.path.functions.iter();
        let rows = rows.map(|(name, ns)| (name, *ns));
        let (path_functions, path_no_sample_ns) = self.functions.shares(self.path.ns, rows);
        let mut rows: Vec<PathRow> =
            self.path.places.iter().map(|(place, ns)| PathRow { place: place.clone(), ns: *ns }).collect();
        rows.sort_by_key(|row| Reverse(row.ns));
        let (cpu_note, waits_note) = (self.cpu_note(), self.waits_note());
        let useful = self.useful().into_iter().map(|(place, ns)| UsefulAt { place, ns }).collect();
        let loops = replay.map_or_else(Vec::new, |(_, predicted)| loop_schedules::answers(&predicted.loops));
        let findings = findings::of(&self, threads, duration, &gains, &loops);
        let mut blocked: Vec<Blocked> = self
            .blocked
            .iter()
            .filter(|(_, ns)| **ns > 0)
            .map(|(key, ns)| Blocked::of(key.clone(), *ns))
            .collect();
        blocked.sort_by_key(|row| Reverse(row.ns));
        let mut what_if: Vec<WhatIf> = gains
            .iter()
            .filter(|(plan, _)| {
                plan.change != Change::Nothing && !findings::depends_on_fetching(&self, &findings, plan)
            })
            .map(|(plan, gain)| what_if(plan, *gain, duration))
            .collect();
        what_if.sort_by_key(|row| Reverse(row.gain_ns));
        let mut answers = Answers {
            schema: SCHEMA,
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            duration_ns: duration,
            accounting: self.accounting,
            efficiency,
            useful,
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
            loops,
            replay_error_ns,
            not_seen: self.not_seen.into_iter().map(|(cause, reason)| NotSeen { cause, reason }).collect(),
            cpu_note,
            waits_note,
            what_if_note: None,
            damage_note: None,
            mpi_note: self.has_unseen_mpi.then(|| MPI_NOT_SEEN.to_owned()),
        };
        let places = answers.what_if.iter_mut().map(|row| &mut row.place);
        let not_predicted = answers.not_predicted.iter_mut();
        let places = places.chain(not_predicted.map(|row| &mut row.place));
        let task_regions = answers.task_regions.iter_mut();
        let places = places.chain(task_regions.map(|row| &mut row.place));
        let places = places.chain(answers.loops.iter_mut().map(|row| &mut row.place));
        places.for_each(|place| place.name_file(&file_names));
        answers
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

fn efficiency_of(region: &RegionPart) -> Efficiency {
    efficiency(&region.accounting, region.threads, region.max_useful, region.path, region.duration)
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

/// The saving of a plan, in words.
fn what_if(plan: &Plan, gain_ns: u64, duration_ns: u64) -> WhatIf {
    let place = match &plan.target {
        Target::Everything => Place::default(),
        Target::Place(place) => place.clone(),
        Target::Places(places) => places.first().cloned().unwrap_or_default(),
        Target::Serial(before) => Place::serial(None, before.as_ref()),
    };
    WhatIf {
        change: plan.text.clone(),
        place,
        gain_ns,
        gain_percent: gain_ns as f64 * 100.0 / duration_ns.max(1) as f64,
    }
}
