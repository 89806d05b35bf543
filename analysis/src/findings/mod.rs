//! Rules: what could be improved, and what that would gain.

mod case;
mod clauses;
pub(crate) mod counters;
mod devices;
mod fine_work;
mod functions;
pub(crate) mod hosts;
pub(crate) mod mpi_calls;
mod mutexes;
mod pages;
mod place_rules;
pub(crate) mod ranks;
mod rule_table;

pub use rule_table::{RULES, Rule};

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

pub use case::at;
use case::{Candidate, Case, evidence, finding, without_region_cost};
use devices::is_small_kernel;
pub(crate) use fine_work::depends_on_fetching;
use rule_table::{
    CHANCE_EXPLAINS, DELAYS, MAX_SHARE_OF_ONE, MAX_SHARE_OF_REPEATED, MAX_TRACER, MAY_BE_MPI, MIN_GAIN,
    MIN_GAIN_OF_FEW, TRACER_DISTURBS, WORKS_LESS,
};

use crate::answers::mergeable::{MergeableAnswers, PlaceSums};
use crate::model::answers::{Answers, Finding, LoopAnswer};
use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::model::sum::{Sum, sum};
use crate::model::within::Within;
use crate::model::worst_instances::MAX_INSTANCES;
use crate::what_if::Change;
use crate::what_if::scenario::{Plan, Target};

/// A warning about the savings of other findings, if tracing takes 10 % of the wall time or more.
pub fn tracing_note(answers: &Answers) -> Option<&'static str> {
    const NOTE: &str = "the savings are estimated for the run with tracing, which is much slower than the program alone: without tracing, the problems cost less time";
    let (of_tracer, others): (Vec<_>, Vec<_>) =
        answers.findings.iter().partition(|finding| finding.id == TRACER_DISTURBS);
    let is_much = of_tracer.iter().any(|finding| finding.gain_ns >= answers.duration_ns.div_ceil(10));
    (is_much && !others.is_empty()).then_some(NOTE)
}

/// A row of blame, with what is known of its place.
struct Row<'a> {
    cause: Cause,
    place: &'a Place,
    ns: u64,
    sums: &'a PlaceSums,
}

/// The statement of a rule.
struct Advice {
    id: &'static str,
    text: String,
    evidence: Map<String, Value>,
}

/// Possible improvements, the one that gains the most first. `gains`: what replays of plans showed.
/// `loops`: what other schedules of loops would take.
pub(crate) fn of(
    part: &MergeableAnswers,
    threads: u64,
    duration: u64,
    gains: &[(&Plan, u64)],
    loops: &[LoopAnswer],
) -> Vec<Finding> {
    let gain_of = |plan: &Plan| gains.iter().find(|(other, _)| *other == plan);
    let mut candidates = candidates(part, threads, duration);
    let (most, untraced) = (part.most_to_gain(), part.untraced());
    candidates.retain_mut(|candidate| {
        let finding = &mut candidate.finding;
        if let Some((_, gain)) = candidate.plan.as_ref().and_then(gain_of) {
            finding.gain_ns = (*gain).max(candidate.gain_at_least).min(candidate.gain_at_most);
        }
        // Of several processes, it is not known which waits for which.
        if !part.has_several() {
            let nowait = candidate.other_plan.as_ref().and_then(gain_of).map(|(_, gain)| *gain);
            clauses::advise(finding, loops, nowait, duration);
        }
        let most = match &*finding.id {
            TRACER_DISTURBS => None,
            id if WORKS_LESS.contains(&id) => untraced,
            _ => most,
        };
        finding.gain_ns = finding.gain_ns.min(most.unwrap_or(u64::MAX));
        let is_much = finding.gain_ns as f64 >= candidate.min_gain * duration as f64;
        is_much || finding.id == TRACER_DISTURBS
    });
    mutexes::drop_unless_together(&mut candidates, duration);
    fine_work::drop_overruled(part, &mut candidates);
    let findings = candidates.into_iter().map(|candidate| candidate.finding);
    let mut findings: Vec<Finding> = findings.collect();
    sort(&mut findings);
    // A fault that makes threads wait in two ways is one.
    let mut known = BTreeSet::new();
    findings.retain(|finding| known.insert((finding.id.clone(), finding.place.clone())));
    findings
}

impl Answers {
    /// Takes up what else was found.
    pub(crate) fn add_findings(&mut self, more: Vec<Finding>) {
        self.findings.extend(more);
        sort(&mut self.findings);
    }
}

/// Puts what gains the most first.
fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| (b.gain_ns, &a.id, &a.place).cmp(&(a.gain_ns, &b.id, &b.place)));
}

/// Possible improvements by the sums alone, the one that seems to gain the most first.
pub(crate) fn candidates(part: &MergeableAnswers, threads: u64, duration: u64) -> Vec<Candidate> {
    let case = Case { part, threads, duration };
    let none = PlaceSums::default();
    let serial = serial_by_end(part);
    let rows = part.blame.iter().filter(|((cause, _), _)| *cause != Cause::Serial);
    let rows = rows.map(|((cause, place), ns)| (cause, place, ns));
    let serial = serial.iter().map(|(place, ns)| (&Cause::Serial, *place, ns));
    let mut candidates: Vec<Candidate> = rows
        .chain(serial)
        .filter_map(|(cause, place, ns)| {
            let row = Row { cause: *cause, place, ns: *ns, sums: part.places.get(place).unwrap_or(&none) };
            case.of_blame(&row)
        })
        .collect();
    candidates.extend(case.fine_work());
    let places = part.places.iter();
    candidates.extend(places.filter_map(|(place, sums)| case.of_nested(place, sums)));
    candidates.extend(case.of_mutexes());
    candidates.extend(case.of_tracer());
    candidates.extend(functions::candidates(&case));
    candidates.extend(case.of_data_ops());
    let devices = part.overlaps.iter();
    candidates.extend(devices.filter_map(|device| case.of_device(device)));
    if part.has_unseen_mpi {
        candidates.retain(|candidate| !MAY_BE_MPI.contains(&&*candidate.finding.id));
    }
    candidates.sort_by(|a, b| {
        let (a, b) = (&a.finding, &b.finding);
        (b.gain_ns, &a.id, &a.place).cmp(&(a.gain_ns, &b.id, &b.place))
    });
    candidates
}

/// Serial code that ends at the same region is one: the first time it is after the program's begin, then after the last
/// region. Its place is that with the longest time. What lies at the program's begin and end only, and takes no longer than processes
/// may take to start, is the loader's.
fn serial_by_end(part: &MergeableAnswers) -> Vec<(&Place, u64)> {
    let mut sums: BTreeMap<Option<&Place>, (u64, u64, &Place)> = BTreeMap::new();
    for ((cause, place), ns) in &part.blame {
        let Some((after, before)) = part.serial.get(place).filter(|_| *cause == Cause::Serial) else {
            continue;
        };
        let is_edge = after.is_none() || before.is_none();
        if is_edge && *ns <= part.lost_at_edge() {
            continue;
        }
        let (sum, longest, at) = sums.entry(before.as_ref()).or_insert((0, 0, place));
        sum.grow_by(*ns);
        if ns > longest {
            (*longest, *at) = (*ns, place);
        }
    }
    sums.into_values().map(|(sum, _, at)| (at, sum)).collect()
}

impl Case<'_> {
    fn of_blame(&self, row: &Row<'_>) -> Option<Candidate> {
        // See [`Case::late`].
        let holds_mutex = row.sums.holds > 0;
        if holds_mutex && row.cause == Cause::Imbalance {
            return None;
        }
        // The regions inside have all threads, and some of them are over before others.
        if row.cause == Cause::NarrowTeam && self.has_all_threads_inside(row.place) {
            return None;
        }
        // They are many, and belong together.
        if row.cause == Cause::Target && self.is_small_op(row.sums) {
            return None;
        }
        // Whatever others lose by it, the wait is what there is to do about it.
        if row.sums.external_waits > 0 && row.cause != Cause::ExternalWait {
            return None;
        }
        // Others wait for a thread that is in MPI: no advice about OpenMP shortens that.
        if row.place.is_call() {
            return None;
        }
        // See [`Case::of_tracer`].
        if row.cause == Cause::Tracer && self.part.tracer_gain().is_some() {
            return None;
        }
        let lost = match row.cause {
            cause if cause.is_mutex() => row.ns + self.late(row.place),
            Cause::ExternalWait => self.lost_by_all(row.place),
            _ => row.ns,
        };
        let gain = match row.cause {
            // The others may have nothing to do meanwhile.
            Cause::Target | Cause::ExternalWait => lost.min(self.duration),
            _ => self.gain(lost),
        };
        let share = lost as f64 / (self.duration as f64 * self.threads as f64).max(1.0);
        let is_worth_it = match row.cause {
            Cause::Tracer => share > MAX_TRACER,
            Cause::Target | Cause::ExternalWait => self.is_much(gain),
            _ => self.is_worth_it(gain),
        };
        if !is_worth_it {
            return None;
        }
        let instances = self.instances(row.cause, row.place);
        let advice = self.advice(row)?;
        let min_gain = match CHANCE_EXPLAINS.contains(&advice.id) {
            true => self.min_gain_beyond_chance(row),
            false => MIN_GAIN,
        };
        let mut evidence = advice.evidence;
        evidence.insert("lost_ns".to_owned(), lost.into());
        evidence.insert("threads".to_owned(), self.threads.into());
        // A replay of one process does not show that the ranks that wait for it become faster, too.
        let gain_at_least = match advice.id {
            "mpi_in_critical" => row.sums.held_in_mpi_by_others_ns.min(row.ns),
            _ => 0,
        };
        Some(Candidate {
            min_gain,
            gain_at_least,
            gain_at_most: self.most_by_tasks(row),
            other_plan: self.without_wait(row),
            ..Candidate::of(
                Finding {
                    id: advice.id.to_owned(),
                    place: self.waits_at(row).clone(),
                    gain_ns: gain,
                    text: advice.text,
                    evidence,
                    instances,
                },
                self.plan(row),
            )
        })
    }

    /// The place of the finding about a row: a team of one thread has no imbalance of its own.
    fn waits_at<'r>(&self, row: &'r Row<'_>) -> &'r Place {
        match &row.sums.alone_inside {
            Within::One(around) if row.cause == Cause::Imbalance && row.sums.around_single == 0 => around,
            _ => row.place,
        }
    }

    /// The share of the wall time that must be gained where threads that lose their processor look like threads that work longer.
    fn min_gain_beyond_chance(&self, row: &Row<'_>) -> f64 {
        let known = self.part.instances.get(&(row.cause, row.place.clone()));
        let known = known.map_or(&[][..], |known| &known[..]);
        let heaviest = known.first().map_or(0, |(weight, _)| *weight);
        let heaviest = heaviest as f64 / row.ns.max(1) as f64;
        let mut threads = known.iter().map(|(_, moment)| (&moment.process, &moment.thread));
        let first = threads.next();
        let is_same = known.len() >= MAX_INSTANCES && threads.all(|thread| Some(thread) == first);
        if is_same && heaviest < MAX_SHARE_OF_REPEATED {
            return MIN_GAIN;
        }
        let sums = &self.part.accounting;
        let delays = [Cause::Fork, Cause::Join].map(|cause| sums[cause]);
        let delays = sum(delays) as f64;
        let all = self.duration as f64 * self.threads as f64;
        let min_gain = match heaviest < MAX_SHARE_OF_ONE {
            true => MIN_GAIN,
            false => MIN_GAIN_OF_FEW,
        };
        min_gain + DELAYS * delays / all.max(1.0)
    }

    /// The replay that shows the gain if a loss ended.
    fn plan(&self, row: &Row<'_>) -> Option<Plan> {
        let place = Target::Place(row.place.clone());
        let (change, target, text) = match row.cause {
            Cause::Serial => {
                let (_, before) = self.part.serial.get(row.place)?.clone();
                let share = 1.0 / self.threads as f64;
                let target = Target::Serial(before);
                (Change::Faster(share), target, "spread over all threads")
            }
            Cause::Imbalance if row.sums.around_single > 0 => {
                let change = Change::Wider(row.sums.around_single);
                (change, place, "with the threads of the enclosing team")
            }
            Cause::NarrowTeam => {
                let threads = u32::try_from(self.threads).ok()?;
                (Change::Wider(threads), place, "with all threads")
            }
            Cause::Imbalance => (Change::Balanced, place, "in perfect balance"),
            Cause::TaskStarvation => (Change::TasksBalanced, place, "in perfect balance"),
            cause if cause.is_mutex() => (Change::LockFree, place, "without waits for the mutex"),
            Cause::Fork => (Change::Without(Cause::Fork), place, "without the start-up delay"),
            Cause::Target if is_small_kernel(row.sums) => {
                let share = row.sums.kernels_ns as f64 / row.ns.max(1) as f64;
                let change = Change::Shorter(Cause::Target, share.min(1.0));
                (change, place, "only its kernels")
            }
            Cause::Reduction | Cause::Target | Cause::ExternalWait | Cause::Preempted | Cause::Tracer => {
                (Change::Without(row.cause), place, "without this time")
            }
            _ => return None,
        };
        Some(Plan { change, target, text: text.to_owned() })
    }

    /// What a team gains at most where tasks at the place no longer keep its threads waiting: in the replay, tasks at other places of the
    /// region keep none waiting either. One of the threads runs the task.
    fn most_by_tasks(&self, row: &Row<'_>) -> u64 {
        let (Cause::TaskStarvation, Within::One(region)) = (row.cause, &row.sums.within) else {
            return u64::MAX;
        };
        let is_other = |place: &Place| {
            let within = self.part.places.get(place).map(|sums| &sums.within);
            place != row.place && matches!(within, Some(Within::One(other)) if other == region)
        };
        let mut rows = self.part.blame.keys();
        if !rows.any(|(cause, place)| *cause == row.cause && is_other(place)) {
            return u64::MAX;
        }
        let team = self.part.regions.get(region).map_or(0, |region| u64::from(region.max_team));
        row.ns / team.saturating_sub(1).max(1)
    }

    /// The replay that shows what it would gain if nobody waited behind a loop or a single region.
    fn without_wait(&self, row: &Row<'_>) -> Option<Plan> {
        let may_be_nowait = row.sums.is_single || !row.sums.schedules.is_empty();
        let is_wanted = row.cause == Cause::Imbalance
            && row.sums.around_single == 0
            && row.sums.alone_inside == Within::Nowhere
            && may_be_nowait;
        // The barrier also waits for tasks, which would have to be complete at a later one.
        (is_wanted && !self.has_tasks()).then(|| Plan {
            change: Change::Nowait,
            target: Target::Place(row.place.clone()),
            text: "with nowait".to_owned(),
        })
    }

    /// Whether the region and those inside it have all threads of its process at one time.
    fn has_all_threads_inside(&self, place: &Place) -> bool {
        let region = self.part.regions.get(place);
        region.is_some_and(|region| u64::from(region.busiest_inside) >= region.threads)
    }

    /// What all threads lose by what happens at the place.
    fn lost_by_all(&self, place: &Place) -> u64 {
        sum(Cause::ALL.iter().filter_map(|cause| self.part.blame.get(&(*cause, place.clone())).copied()))
    }

    fn has_tasks(&self) -> bool {
        self.part.places.values().any(|sums| sums.tasks > 0)
    }

    /// The tracer itself, where it has measured what its events cost.
    fn of_tracer(&self) -> Option<Candidate> {
        let gain = self.part.tracer_gain()?;
        let share = gain as f64 / self.duration.max(1) as f64;
        if share <= MAX_TRACER {
            return None;
        }
        let lost = gain.saturating_mul(self.threads);
        let event_ns = self.part.event_ps().unwrap_or(0) as f64 / 1e3;
        let mut evidence = evidence(&[
            ("lost_ns", lost),
            ("written_ns", self.part.accounting[Cause::Tracer]),
            ("threads", self.threads),
        ]);
        evidence.insert("event_cost_ns".to_owned(), event_ns.into());
        let counters_ns = self.part.counters_ns();
        if counters_ns > 0 {
            evidence.insert("counters_ns".to_owned(), counters_ns.into());
        }
        let percents = share * 100.0;
        let is_mostly = |ns: u64| ns > lost / 2;
        let text = match is_mostly(self.part.accounting[Cause::Tracer]) {
            _ if is_mostly(counters_ns) => format!(
                "tracing takes about {percents:.0} % of the time, mostly to read counters at the start and end of constructs: record without --cpu-time and --counters"
            ),
            true => format!(
                "tracing takes about {percents:.0} % of the time, mostly to write the remaining events when the program ends; in a longer run, tracing takes a smaller share of the time"
            ),
            false => format!(
                "tracing takes about {percents:.0} % of the time because recording an event costs {event_ns:.0} ns, so the recorded durations of short constructs consist mostly of the tracer's own time: trace fewer events (OMPTRACE_EVENTS)"
            ),
        };
        Some(Candidate::of(
            Finding {
                id: TRACER_DISTURBS.to_owned(),
                place: Place::new("tracing"),
                gain_ns: gain,
                text,
                evidence,
                instances: Vec::new(),
            },
            None,
        ))
    }

    /// Regions inside others, where threads wait for processors.
    fn of_nested(&self, place: &Place, sums: &PlaceSums) -> Option<Candidate> {
        // Threads that sleep or read leave them to others.
        if self.part.keeps_processors_busy() == Some(false) {
            return None;
        }
        let too_many = |(processors, threads): &(&u32, &u32)| threads > processors;
        let (processors, threads) = sums.nested.iter().find(too_many)?;
        let of = |cause| self.part.blame.get(&(cause, place.clone()));
        let forks = of(Cause::Fork).unwrap_or(&0) + of(Cause::Join).unwrap_or(&0);
        let cost = sums.nested_barriers_ns + forks;
        let gain = self.gain(cost);
        if !self.is_worth_it(gain) {
            return None;
        }
        let mut evidence = Map::new();
        evidence.insert("busy_threads".to_owned(), (*threads).into());
        evidence.insert("processors".to_owned(), (*processors).into());
        evidence.insert("cost_ns".to_owned(), cost.into());
        Some(Candidate::of(
            Finding {
                id: "nested_oversubscription".to_owned(),
                place: place.clone(),
                gain_ns: gain,
                text: format!(
                    "the nested region {} keeps {threads} threads busy on {processors} CPUs: set OMP_MAX_ACTIVE_LEVELS=1, or limit num_threads of both the outer and the nested region",
                    at(place)
                ),
                evidence,
                instances: self.instances(Cause::Fork, place),
            },
            Some(without_region_cost(place)),
        ))
    }
}
