//! Rules: what could be improved, and what that would gain.

mod functions;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::answers::instances::MAX_INSTANCES;
use crate::answers::part::{Overlap, Part, PlaceSums, RegionPart};
use crate::answers::plan::{Plan, Target};
use crate::answers::what_if::Change;
use crate::answers::{Cause, Finding, Moment, Place};

/// The rules: their ids, and when they apply beside a gain of [`MIN_GAIN`]. `docs/analysis.md` has the same table.
pub const RULES: &[(&str, &str)] = &[
    (
        "load_imbalance",
        "threads wait at a barrier for those that work longer at this place, and chance does not explain it",
    ),
    (
        "single_serialises",
        "threads wait for the one in a single region",
    ),
    (
        "region_in_single",
        "as single_serialises, for a parallel region that is opened in a single or masked region",
    ),
    (
        "single_creator",
        "as single_serialises, in a program with explicit tasks",
    ),
    (
        "serial_part",
        "serial code before this region; 250 ms or more at the program's begin and end",
    ),
    (
        "serial_function",
        "a function of the program takes 250 ms of processor time and a tenth of all, by samples, and all of it in serial code",
    ),
    (
        "user_spinning",
        "by samples, a function takes 50 ms of processor time and a twentieth of all for flushes, or to test whether a lock is free",
    ),
    ("narrow_team", "the region has fewer threads than N"),
    (
        "false_num_threads",
        "as narrow_team, and the region gets fewer threads than it asks for",
    ),
    (
        "nested_oversubscription",
        "begin, end and barriers of a region inside another, while more threads are busy than there are processors",
    ),
    ("critical_contention", "threads wait for a critical region"),
    (
        "critical_for_atomic",
        "as critical_contention, held for 500 ns or less on average",
    ),
    ("lock_contention", "threads wait for a lock"),
    ("atomic_contention", "threads wait for an atomic update"),
    (
        "ordered_serialises",
        "threads wait for their turn in an ordered region",
    ),
    (
        "too_few_tasks",
        "threads at a barrier have no task while others run theirs, and chance does not explain it",
    ),
    (
        "taskwait_chain",
        "as too_few_tasks, with a wait for every two tasks or more",
    ),
    (
        "tasks_too_fine",
        "more than 1000 tasks of less than 5 us, in a region whose begin, end and barriers cost",
    ),
    (
        "region_too_small",
        "two visits or more, in which a member works less than 20 us on average",
    ),
    (
        "needless_barrier",
        "the cost of a barrier at which most threads arrive with less than 1 us of work since the one before",
    ),
    (
        "chunk_too_small",
        "more than 1000 chunks of less than 2 us, on average",
    ),
    (
        "late_wake_up",
        "threads begin late in a region that is entered ten times or more",
    ),
    (
        "oversubscription",
        "as late_wake_up, in a process that has more threads than processors",
    ),
    ("target_wait", "the host waits in a target construct"),
    (
        "small_kernels",
        "as target_wait, with 100 kernels or more that run less than 10 us on average",
    ),
    (
        "small_transfers",
        "the host waits in 100 operations or more on device data of less than 64 KiB on average, at one line",
    ),
    (
        "transfers_not_overlapped",
        "a device moves bytes and runs kernels, at the same time for less than a fifth of the shorter of both",
    ),
    (
        "reduction_cost",
        "threads combine the results of a reduction",
    ),
    (
        TRACER_DISTURBS,
        "the tracer's writing takes more than 1 % of the threads' time, whatever the gain",
    ),
];

/// Regions that are entered less often do not show how threads are woken.
const MIN_WAKE_UPS: u64 = 10;

/// A chunk should run longer than this.
const MIN_CHUNK_NS: u64 = 2_000;

/// Below this share of the wall time, nothing is worth a finding.
const MIN_GAIN: f64 = 0.03;

/// As [`MIN_GAIN`], where few instances show that some threads work longer: a thread that loses its processor once would be enough.
const MIN_GAIN_OF_FEW: f64 = 0.1;

/// Instances are few where the heaviest has at least this share of the loss.
const MAX_SHARE_OF_ONE: f64 = 0.25;

/// It is the same thread again and again where the heaviest instances are of one thread, and none has this share of the loss.
const MAX_SHARE_OF_REPEATED: f64 = 0.5;

/// Where chance may explain a loss, the gain must be larger by this many times what threads take to begin and end regions. A busy
/// machine delays that as it delays work.
const DELAYS: f64 = 2.0;

/// A mutex's section that is shorter could be an atomic or a reduction.
const MAX_ATOMIC_NS: u64 = 500;

/// A region's threads should work longer than this, each.
const MIN_REGION_NS: u64 = 20_000;

/// A task should run longer than this.
const MIN_TASK_NS: u64 = 5_000;

/// Fewer kernels or operations on data cannot cost much.
const MIN_TARGETS: u64 = 100;

/// A kernel should run longer than this: about what it takes to launch it.
const MIN_KERNEL_NS: u64 = 10_000;

/// Operations on data should be of more bytes: a bus moves as many in the time that an operation takes to begin.
const MIN_OP_BYTES: u64 = 64 << 10;

/// At least this share of the shorter of kernels and transfers should overlap.
const MIN_OVERLAP: f64 = 0.2;

/// The tracer should take less of the threads' time.
const MAX_TRACER: f64 = 0.01;

/// The facts that rules are applied to.
struct Case<'a> {
    part: &'a Part,
    threads: u64,
    duration: u64,
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

/// A finding as the sums show it, and the replay that shows what it would gain.
pub(super) struct Candidate {
    finding: Finding,
    pub(super) plan: Option<Plan>,
    /// The share of the wall time that it must gain.
    min_gain: f64,
}

/// Possible improvements, the one that gains the most first. `gains`: what replays of plans showed.
pub(super) fn of(part: &Part, threads: u64, duration: u64, gains: &[(&Plan, u64)]) -> Vec<Finding> {
    let gain_of = |plan: &Plan| gains.iter().find(|(other, _)| *other == plan);
    let candidates = candidates(part, threads, duration).into_iter();
    let findings = candidates.filter_map(|mut candidate| {
        let finding = &mut candidate.finding;
        if let Some((_, gain)) = candidate.plan.as_ref().and_then(gain_of) {
            finding.gain_ns = *gain;
        }
        let is_much = finding.gain_ns as f64 >= candidate.min_gain * duration as f64;
        (is_much || finding.id == TRACER_DISTURBS).then_some(candidate.finding)
    });
    let mut findings: Vec<Finding> = findings.collect();
    findings.sort_by(|a, b| (b.gain_ns, &a.id, &a.place).cmp(&(a.gain_ns, &b.id, &b.place)));
    findings
}

/// Possible improvements by the sums alone, the one that seems to gain the most first.
pub(super) fn candidates(part: &Part, threads: u64, duration: u64) -> Vec<Candidate> {
    let case = Case {
        part,
        threads,
        duration,
    };
    let none = PlaceSums::default();
    let serial = serial_by_end(part);
    let rows = part
        .blame
        .iter()
        .filter(|((cause, _), _)| *cause != Cause::Serial);
    let rows = rows.map(|((cause, place), ns)| (cause, place, ns));
    let serial = serial
        .iter()
        .map(|(place, ns)| (&Cause::Serial, *place, ns));
    let mut candidates: Vec<Candidate> = rows
        .chain(serial)
        .filter_map(|(cause, place, ns)| {
            let row = Row {
                cause: *cause,
                place,
                ns: *ns,
                sums: part.places.get(place).unwrap_or(&none),
            };
            case.of_blame(&row)
        })
        .collect();
    candidates.extend(
        part.regions
            .iter()
            .filter_map(|(place, region)| case.of_region(place, region)),
    );
    let places = part.places.iter();
    candidates.extend(places.filter_map(|(place, sums)| case.of_chunks(place, sums)));
    let places = part.places.iter();
    candidates.extend(places.filter_map(|(place, sums)| case.of_nested(place, sums)));
    candidates.extend(functions::candidates(&case));
    candidates.extend(case.of_data_ops());
    let devices = part.overlaps.iter();
    candidates.extend(devices.filter_map(|device| case.of_device(device)));
    candidates.sort_by(|a, b| {
        let (a, b) = (&a.finding, &b.finding);
        (b.gain_ns, &a.id, &a.place).cmp(&(a.gain_ns, &b.id, &b.place))
    });
    candidates
}

/// Serial code that ends at the same region is one: the first time it is after the program's begin, then after the last
/// region. Its place is that with the longest time. What lies at the program's begin and end only, and is short, is the
/// loader's.
fn serial_by_end(part: &Part) -> Vec<(&Place, u64)> {
    let mut sums: BTreeMap<Option<&Place>, (u64, u64, &Place)> = BTreeMap::new();
    for ((cause, place), ns) in &part.blame {
        let Some((after, before)) = part.serial.get(place).filter(|_| *cause == Cause::Serial)
        else {
            continue;
        };
        let is_edge = after.is_none() || before.is_none();
        if is_edge && *ns < MIN_EDGE_NS * part.busiest().saturating_sub(1) {
            continue;
        }
        let (sum, longest, at) = sums.entry(before.as_ref()).or_insert((0, 0, place));
        *sum += ns;
        if ns > longest {
            (*longest, *at) = (*ns, place);
        }
    }
    sums.into_values().map(|(sum, _, at)| (at, sum)).collect()
}

/// The rules about losses that also arise where a thread loses its processor.
const CHANCE_EXPLAINS: [&str; 2] = ["load_imbalance", "too_few_tasks"];

/// Serial code at the program's begin or end that is shorter is the loader's and the runtime's.
/// On a busy machine these take 50 to 150 ms.
const MIN_EDGE_NS: u64 = 250_000_000;

/// The rule about the tracer itself, whose share counts and not its gain.
const TRACER_DISTURBS: &str = "tracer_disturbs";

impl Case<'_> {
    /// Lost thread time as wall time: what all threads lose together, each gains.
    fn gain(&self, ns: u64) -> u64 {
        ns / self.threads.max(1)
    }

    fn is_worth_it(&self, gain: u64) -> bool {
        self.threads > 1 && self.is_much(gain)
    }

    /// Like [`Case::is_worth_it`], also of what a single thread waits for.
    fn is_much(&self, gain: u64) -> bool {
        gain as f64 >= MIN_GAIN * self.duration as f64
    }

    fn of_blame(&self, row: &Row<'_>) -> Option<Candidate> {
        // Who waits for a mutex late is late at the next barrier, too: that belongs to the mutex.
        let of = |cause| self.part.blame.get(&(cause, row.place.clone())).copied();
        let holds_mutex = row.sums.holds > 0;
        if holds_mutex && row.cause == Cause::Imbalance {
            return None;
        }
        // They are many, and belong together.
        if row.cause == Cause::Target && self.is_small_op(row.sums) {
            return None;
        }
        let lost = match row.cause {
            cause if cause.is_mutex() => row.ns + of(Cause::Imbalance).unwrap_or(0),
            _ => row.ns,
        };
        let gain = match row.cause {
            // The others may have nothing to do meanwhile.
            Cause::Target => lost,
            _ => self.gain(lost),
        };
        let share = lost as f64 / (self.duration as f64 * self.threads as f64).max(1.0);
        let is_worth_it = match row.cause {
            Cause::Tracer => share > MAX_TRACER,
            Cause::Target => self.is_much(gain),
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
        Some(Candidate {
            finding: Finding {
                id: advice.id.to_owned(),
                place: row.place.clone(),
                gain_ns: gain,
                text: advice.text,
                evidence,
                instances,
            },
            plan: self.plan(row),
            min_gain,
        })
    }

    /// The share of the wall time that must be gained where threads that lose their processor look like threads that work longer.
    fn min_gain_beyond_chance(&self, row: &Row<'_>) -> f64 {
        let known = self.part.instances.get(&(row.cause, row.place.clone()));
        let known = known.map_or(&[][..], |known| &known[..]);
        let heaviest = known.first().map_or(0, |(weight, _)| *weight);
        let heaviest = heaviest as f64 / row.ns.max(1) as f64;
        let mut threads = known
            .iter()
            .map(|(_, moment)| (&moment.process, &moment.thread));
        let first = threads.next();
        let is_same = known.len() >= MAX_INSTANCES && threads.all(|thread| Some(thread) == first);
        if is_same && heaviest < MAX_SHARE_OF_REPEATED {
            return MIN_GAIN;
        }
        let sums = &self.part.accounting;
        let delays = [Cause::Fork, Cause::Join].map(|cause| sums[cause]);
        let delays = delays.iter().sum::<u64>() as f64;
        let all = self.duration as f64 * self.threads as f64;
        let min_gain = match heaviest < MAX_SHARE_OF_ONE {
            true => MIN_GAIN,
            false => MIN_GAIN_OF_FEW,
        };
        min_gain + DELAYS * delays / all.max(1.0)
    }

    fn instances(&self, cause: Cause, place: &Place) -> Vec<Moment> {
        let known = self.part.instances.get(&(cause, place.clone()));
        let moments = known.into_iter().flatten();
        moments.map(|(_, moment)| moment.clone()).collect()
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
                (change, place, "with the threads of the team around")
            }
            Cause::NarrowTeam => {
                let threads = u32::try_from(self.threads).ok()?;
                (Change::Wider(threads), place, "with all threads")
            }
            Cause::Imbalance | Cause::TaskStarvation => {
                (Change::Balanced, place, "in perfect balance")
            }
            cause if cause.is_mutex() => (Change::LockFree, place, "without waits for the mutex"),
            Cause::Fork => (Change::Without(Cause::Fork), place, "threads begin at once"),
            Cause::Target if is_small_kernel(row.sums) => {
                let share = row.sums.kernels_ns as f64 / row.ns.max(1) as f64;
                let change = Change::Shorter(Cause::Target, share.min(1.0));
                (change, place, "its kernels only")
            }
            Cause::Reduction | Cause::Target | Cause::Preempted | Cause::Tracer => {
                (Change::Without(row.cause), place, "without this time")
            }
            _ => return None,
        };
        Some(Plan {
            change,
            target,
            text: text.to_owned(),
        })
    }

    fn advice(&self, row: &Row<'_>) -> Option<Advice> {
        let at = at(row.place);
        let mut evidence = Map::new();
        let (id, text) = match row.cause {
            Cause::Serial => (
                "serial_part",
                format!("{} runs on one thread while the others wait: parallelise it", row.place.construct),
            ),
            Cause::NarrowTeam => self.narrow(row, &at, &mut evidence),
            Cause::Imbalance if row.sums.around_single > 0 => (
                "region_in_single",
                format!("the region {at} is opened in a single or masked region while the team around it waits: open it outside"),
            ),
            Cause::Imbalance if row.sums.is_single && self.has_tasks() => (
                "single_creator",
                format!("one thread creates tasks {at} while others wait: create them in parallel, or make them larger"),
            ),
            Cause::Imbalance if row.sums.is_single => (
                "single_serialises",
                format!("one thread works in a single region {at} while others wait: add nowait, or share the work"),
            ),
            Cause::Imbalance if row.sums.tasks > 0 => self.tasks(row, &at),
            Cause::Imbalance => {
                let schedule = row.sums.schedules.iter().next();
                let advice = match schedule {
                    Some(&"static") => "try schedule(dynamic) or schedule(guided)",
                    Some(&"dynamic" | &"guided") => "try smaller chunks, or the longest iterations first",
                    _ => "share the work evenly, or let tasks do it",
                };
                ("load_imbalance", format!("threads wait for those that work longer {at}: {advice}"))
            }
            Cause::TaskStarvation => self.tasks(row, &at),
            Cause::TaskWait => (
                "taskwait_chain",
                format!("threads wait for tasks {at} and have no other to run: create more tasks before the wait"),
            ),
            Cause::Lock | Cause::Critical | Cause::Atomic => self.mutex(row, &at, &mut evidence),
            Cause::Ordered => (
                "ordered_serialises",
                format!("iterations wait for their turn in the ordered region {at}: do less in it, or drop it"),
            ),
            // The first time, the runtime makes its threads.
            Cause::Fork if row.sums.visits < MIN_WAKE_UPS => return None,
            Cause::Fork if let Some((threads, processors)) = self.part.oversubscribed() => {
                evidence.insert("threads".to_owned(), threads.into());
                evidence.insert("processors".to_owned(), processors.into());
                let shared = match processors {
                    1 => "one processor".to_owned(),
                    _ => format!("{processors} processors"),
                };
                (
                    "oversubscription",
                    format!("threads begin late in the region {at}, as {threads} threads share {shared}: set OMP_NUM_THREADS={processors}, or give the process more processors"),
                )
            }
            Cause::Fork => (
                "late_wake_up",
                format!("threads begin late in the region {at}: keep them awake (OMP_WAIT_POLICY=active), or merge regions"),
            ),
            Cause::Target if is_small_kernel(row.sums) => {
                evidence.insert("kernels".to_owned(), row.sums.kernels.into());
                let mean = row.sums.kernels_ns / row.sums.timed_kernels.max(1);
                evidence.insert("kernel_mean_ns".to_owned(), mean.into());
                (
                    "small_kernels",
                    format!("the kernels {at} run {mean} ns on average, less than it takes to launch them: do more in each, or stay on the host"),
                )
            }
            Cause::Target => (
                "target_wait",
                format!("the host waits for the device {at}: use nowait and depend to overlap them, and map data once"),
            ),
            Cause::Reduction => (
                "reduction_cost",
                format!("threads combine results {at}: reduce less often, or smaller arrays"),
            ),
            Cause::Preempted => (
                "preempted",
                format!("other threads had the processor of those that worked {at}: start fewer threads, bind them (OMP_PROC_BIND), or leave processors to the other programs"),
            ),
            Cause::Tracer => (
                TRACER_DISTURBS,
                "the tracer's own writing takes more than 1 % of the threads' time: trace fewer events, or to a faster disk".to_owned(),
            ),
            Cause::Barrier if row.sums.idle_arrivals * 2 > row.sums.arrivals => (
                "needless_barrier",
                format!("threads arrive at the barrier {at} with next to no work since the one before: remove one, or add nowait"),
            ),
            Cause::Useful
            | Cause::Join
            | Cause::Barrier
            | Cause::Runtime
            | Cause::Unobserved => return None,
        };
        Some(Advice { id, text, evidence })
    }

    fn narrow(
        &self,
        row: &Row<'_>,
        at: &str,
        evidence: &mut Map<String, Value>,
    ) -> (&'static str, String) {
        let requested = self.part.requested.get(row.place).copied().unwrap_or(0);
        if requested == 0 || requested == u32::MAX {
            let text = format!(
                "the region {at} has fewer threads than others: check num_threads and the loop's length"
            );
            return ("narrow_team", text);
        }
        evidence.insert("requested_threads".to_owned(), requested.into());
        let region = self.part.regions.get(row.place);
        let got = region.map_or(0, |region| region.max_team);
        if got > 0 && got < requested {
            evidence.insert("team_threads".to_owned(), got.into());
            let text = format!(
                "the region {at} asks for {requested} threads and gets {got}: check OMP_THREAD_LIMIT, OMP_DYNAMIC and nesting"
            );
            return ("false_num_threads", text);
        }
        let text = match u64::from(requested) < self.threads {
            true => format!("the region {at} asks for {requested} threads only: raise num_threads"),
            false => format!(
                "the region {at} runs while fewer threads are busy than at other times: start other work beside it"
            ),
        };
        ("narrow_team", text)
    }

    fn mutex(
        &self,
        row: &Row<'_>,
        at: &str,
        evidence: &mut Map<String, Value>,
    ) -> (&'static str, String) {
        let mean = row.sums.held_ns / row.sums.holds.max(1);
        evidence.insert("acquisitions".to_owned(), row.sums.holds.into());
        evidence.insert("contended".to_owned(), row.sums.contended.into());
        evidence.insert("held_mean_ns".to_owned(), mean.into());
        if row.cause == Cause::Critical && row.sums.holds > 0 && mean <= MAX_ATOMIC_NS {
            let text =
                format!("threads wait for the short critical region {at}: try atomic or reduction");
            return ("critical_for_atomic", text);
        }
        match row.cause {
            Cause::Critical => (
                "critical_contention",
                format!(
                    "threads wait for the critical region {at}: do less in it, name it apart, or use a reduction"
                ),
            ),
            Cause::Atomic => (
                "atomic_contention",
                format!(
                    "threads wait for the atomic update {at}: use a reduction, or a variable for each thread"
                ),
            ),
            _ => (
                "lock_contention",
                format!(
                    "threads wait for the lock that is set {at}: hold it for less time, or use several locks"
                ),
            ),
        }
    }

    /// Threads have no task while others run theirs.
    fn tasks(&self, row: &Row<'_>, at: &str) -> (&'static str, String) {
        if row.sums.tasks > 1 && self.part.taskwaits >= row.sums.tasks / 2 {
            let text = format!(
                "each task {at} is waited for before the next is created: create several, then wait"
            );
            return ("taskwait_chain", text);
        }
        (
            "too_few_tasks",
            format!(
                "threads at a barrier have no task while others run theirs {at}: create more and smaller tasks"
            ),
        )
    }

    fn has_tasks(&self) -> bool {
        self.part.places.values().any(|sums| sums.tasks > 0)
    }

    /// Rules of whole regions: their costs lie in several causes.
    fn of_region(&self, place: &Place, region: &RegionPart) -> Option<Candidate> {
        let cost: u64 = [Cause::Fork, Cause::Join, Cause::Barrier]
            .map(|cause| region.accounting[cause])
            .iter()
            .sum();
        let gain = self.gain(cost);
        if !self.is_worth_it(gain) || region.visits < 2 {
            return None;
        }
        let members = u64::from(region.max_team.max(1));
        let mean = region.accounting[Cause::Useful] / members / region.visits;
        let (id, text) = if mean < MIN_REGION_NS {
            (
                "region_too_small",
                format!(
                    "the region {} works shorter than it takes to begin and end: merge it with others, or use an if clause",
                    at(place)
                ),
            )
        } else if let Some((tasks, grain)) = self.fine_tasks() {
            (
                "tasks_too_fine",
                format!(
                    "{tasks} tasks of {grain} ns each cost more than they work: make them larger, or use final and mergeable"
                ),
            )
        } else {
            return None;
        };
        let mut evidence = Map::new();
        evidence.insert("visits".to_owned(), region.visits.into());
        evidence.insert("useful_mean_ns".to_owned(), mean.into());
        evidence.insert("cost_ns".to_owned(), cost.into());
        Some(Candidate {
            finding: Finding {
                id: id.to_owned(),
                place: place.clone(),
                gain_ns: gain,
                text,
                evidence,
                instances: self.instances(Cause::Fork, place),
            },
            plan: Some(without_region_cost(place)),
            min_gain: MIN_GAIN,
        })
    }

    /// Loops whose chunks cost as much as they work.
    fn of_chunks(&self, place: &Place, sums: &PlaceSums) -> Option<Candidate> {
        let mean = sums.useful.checked_div(sums.chunks)?;
        let cost = sums.chunks_cost.checked_div(sums.chunks)?;
        let gain = self.gain(sums.chunks * cost.min(mean));
        if sums.chunks <= 1000 || mean >= MIN_CHUNK_NS || !self.is_worth_it(gain) {
            return None;
        }
        let mut evidence = Map::new();
        evidence.insert("chunks".to_owned(), sums.chunks.into());
        evidence.insert("chunk_mean_ns".to_owned(), mean.into());
        evidence.insert("assumed_chunk_cost_ns".to_owned(), cost.into());
        Some(Candidate {
            finding: Finding {
                id: "chunk_too_small".to_owned(),
                place: place.clone(),
                gain_ns: gain,
                text: format!(
                    "the loop {} hands out its iterations in chunks of {mean} ns: give schedule a larger chunk size",
                    at(place)
                ),
                evidence,
                instances: self.instances(Cause::Useful, place),
            },
            plan: None,
            min_gain: MIN_GAIN,
        })
    }

    /// Regions inside others, where threads wait for processors.
    fn of_nested(&self, place: &Place, sums: &PlaceSums) -> Option<Candidate> {
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
        Some(Candidate {
            finding: Finding {
                id: "nested_oversubscription".to_owned(),
                place: place.clone(),
                gain_ns: gain,
                text: format!(
                    "the region {} inside another one makes {threads} threads busy on {processors} processors: set OMP_MAX_ACTIVE_LEVELS=1, or num_threads of both",
                    at(place)
                ),
                evidence,
                instances: self.instances(Cause::Fork, place),
            },
            plan: Some(without_region_cost(place)),
            min_gain: MIN_GAIN,
        })
    }

    /// Whether it is one of many operations on data at its line, which are small.
    fn is_small_op(&self, sums: &PlaceSums) -> bool {
        sums.is_data_op && self.small_ops(&sums.spot).is_some()
    }

    /// The operations on data there, where they are many and small: their number and mean size.
    fn small_ops(&self, spot: &str) -> Option<(u64, u64)> {
        let same = self.data_ops_at(spot);
        let (mut count, mut sized, mut bytes) = (0, 0, 0_u64);
        for (_, sums) in same {
            count += sums.data_ops;
            sized += sums.sized_ops;
            bytes = bytes.saturating_add(sums.bytes);
        }
        let mean = bytes.checked_div(sized)?;
        (count >= MIN_TARGETS && mean < MIN_OP_BYTES).then_some((count, mean))
    }

    fn data_ops_at<'a>(
        &'a self,
        spot: &'a str,
    ) -> impl Iterator<Item = (&'a Place, &'a PlaceSums)> {
        let places = self.part.places.iter();
        places.filter(move |(_, sums)| sums.is_data_op && sums.spot == spot)
    }

    /// Many small operations on a device's data, by line: allocations, transfers, deletions.
    fn of_data_ops(&self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let places = self.part.places.iter();
        for (place, sums) in places.filter(|(_, sums)| sums.is_data_op) {
            let Some((count, mean)) = self.small_ops(&sums.spot) else {
                continue;
            };
            let lost = |place: &Place| self.part.blame.get(&(Cause::Target, place.clone()));
            let mut same: Vec<(u64, &Place)> = self
                .data_ops_at(&sums.spot)
                .map(|(place, _)| (lost(place).copied().unwrap_or(0), place))
                .collect();
            same.sort_unstable_by(|a, b| b.cmp(a));
            // All of a line are one finding, named by the longest.
            let gain: u64 = same.iter().map(|(ns, _)| ns).sum();
            if same.first().is_none_or(|(_, first)| *first != place) || !self.is_much(gain) {
                continue;
            }
            let places: Vec<Place> = same.iter().map(|(_, place)| (*place).clone()).collect();
            let mut evidence = Map::new();
            evidence.insert("operations".to_owned(), count.into());
            evidence.insert("mean_bytes".to_owned(), mean.into());
            evidence.insert("lost_ns".to_owned(), gain.into());
            candidates.push(Candidate {
                finding: Finding {
                    id: "small_transfers".to_owned(),
                    place: place.clone(),
                    gain_ns: gain,
                    text: format!(
                        "{count} operations of {mean} bytes each on the device's data {}: map once for all with target data, and larger parts at once",
                        at(place)
                    ),
                    evidence,
                    instances: self.instances(Cause::Target, place),
                },
                plan: Some(Plan {
                    change: Change::Without(Cause::Target),
                    target: Target::Places(places),
                    text: "without operations on the device's data".to_owned(),
                }),
                min_gain: MIN_GAIN,
            });
        }
        candidates
    }

    /// Transfers that could be made while kernels run.
    fn of_device(&self, device: &Overlap) -> Option<Candidate> {
        let shorter = device.kernels_ns.min(device.transfers_ns);
        // Nobody gains what nobody waits for.
        let gain = shorter.saturating_sub(device.both_ns);
        let gain = gain.min(self.part.accounting[Cause::Target]);
        let is_overlapped = device.both_ns as f64 >= MIN_OVERLAP * shorter as f64;
        if is_overlapped || !self.is_much(gain) {
            return None;
        }
        let waits = self.part.blame.iter();
        let waits = waits.filter(|((cause, _), _)| *cause == Cause::Target);
        let is_data_op = |place| {
            self.part
                .places
                .get(place)
                .is_some_and(|sums| sums.is_data_op)
        };
        let longest = waits.max_by_key(|((_, place), ns)| (is_data_op(place), **ns));
        let ((_, place), _) = longest?;
        let mut evidence = Map::new();
        evidence.insert("process".to_owned(), device.process.clone().into());
        evidence.insert("device".to_owned(), device.device_num.into());
        evidence.insert("kernels_ns".to_owned(), device.kernels_ns.into());
        evidence.insert("transfers_ns".to_owned(), device.transfers_ns.into());
        evidence.insert("overlap_ns".to_owned(), device.both_ns.into());
        Some(Candidate {
            finding: Finding {
                id: "transfers_not_overlapped".to_owned(),
                place: place.clone(),
                gain_ns: gain,
                text: format!(
                    "device {} moves bytes while it runs no kernel: split the work {} in parts with nowait and depend",
                    device.device_num,
                    at(place)
                ),
                evidence,
                instances: self.instances(Cause::Target, place),
            },
            plan: None,
            min_gain: MIN_GAIN,
        })
    }

    fn fine_tasks(&self) -> Option<(u64, u64)> {
        let mut tasks = self.part.places.values().filter(|sums| sums.tasks > 1000);
        tasks.find_map(|sums| {
            let grain = sums.useful / sums.tasks;
            (grain < MIN_TASK_NS).then_some((sums.tasks, grain))
        })
    }
}

/// Whether a target construct's kernels are many and short.
fn is_small_kernel(sums: &PlaceSums) -> bool {
    let mean = sums.kernels_ns.checked_div(sums.timed_kernels);
    sums.kernels >= MIN_TARGETS && mean.is_some_and(|mean| mean < MIN_KERNEL_NS)
}

/// The replay without what the region at `place` costs to begin and to end.
fn without_region_cost(place: &Place) -> Plan {
    Plan {
        change: Change::RegionsFree,
        target: Target::Place(place.clone()),
        text: "without the cost of the region's begin and end".to_owned(),
    }
}

/// A place in words: `at jacobi.c:41`.
fn at(place: &Place) -> String {
    match (place.source(), &place.function) {
        (Some(source), _) => format!("at {source}"),
        (None, Some(function)) => format!("in {function}"),
        (None, None) => format!("\"{}\"", place.construct),
    }
}

#[cfg(test)]
mod tests {
    use super::RULES;

    /// The ids in this file and the table's are the same.
    #[test]
    fn the_table_has_all_rules() {
        let source = include_str!("findings.rs");
        let (_, rest) = source.split_once("];").expect("the table's end");
        let code = rest.split_once("#[cfg(test)]").expect("the code's end").0;
        let of_functions = include_str!("findings/functions.rs");
        for (id, _) in RULES {
            let id_in_quotes = format!("\"{id}\"");
            let is_used = [code, of_functions]
                .iter()
                .any(|code| code.contains(&id_in_quotes));
            assert!(is_used, "{id} is never reported");
        }
    }

    #[test]
    fn the_documentation_has_the_same_table() {
        let text = include_str!("../../../docs/analysis.md");
        for (id, when) in RULES {
            let row = format!("| `{id}` | {when} |");
            assert!(text.contains(&row), "docs/analysis.md lacks\n{row}");
        }
        for cause in crate::answers::Cause::ALL {
            let row = format!("| `{}` | {} |", cause.name(), cause.meaning());
            assert!(text.contains(&row), "docs/analysis.md lacks\n{row}");
        }
    }
}
