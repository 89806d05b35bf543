//! Predicts the time of a run on other numbers of threads, or gives the reason why that is impossible.

pub(crate) mod list_scheduler;
pub(crate) mod loop_schedules;
pub(crate) mod min_clock;
pub(crate) mod phase;
pub(crate) mod region_scaling;
pub(crate) mod scheduler_pool;
pub(crate) mod thread_counts;
mod waiters;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::answers::mergeable::{MergeableAnswers, RegionPart};
use crate::model::answers::{NotPredicted, OtherThreads, TaskRegion};
use crate::model::place::Place;
use crate::scaling::phase::Problem;
use crate::scaling::region_scaling::Scaling;

/// The model must reproduce a region's recorded time up to this relative error.
const MAX_MODEL_ERROR: f64 = 0.15;

/// The assumption on which some predictions rest.
const ASSUMPTION: &str = "each thread executes all code outside of loops and tasks";

/// If a larger share of the wall time cannot be predicted, nothing is predicted.
const MAX_UNKNOWN: f64 = 0.1;

/// The predicted time of a run on other numbers of threads.
#[derive(Debug, Default)]
pub(crate) struct Scalability {
    pub(crate) rows: Vec<OtherThreads>,
    pub(crate) not_predicted: Vec<NotPredicted>,
    pub(crate) task_regions: Vec<TaskRegion>,
}

impl Scalability {
    pub(crate) fn of(part: &MergeableAnswers, scaling: &BTreeMap<Place, Scaling>) -> Scalability {
        let mut all = Scalability { task_regions: task_regions(scaling), ..Scalability::default() };
        let (mut numbers, duration) = (part.numbers(), part.duration());
        if part.regions.is_empty() {
            numbers.clear();
        }
        if numbers.is_empty() || duration == 0 {
            return all;
        }
        if part.has_several() {
            all.not_predicted.push(NotPredicted {
                ns: duration,
                reason:
                    "the run has several processes, and the trace does not show which processes wait for each other"
                        .to_owned(),
                ..NotPredicted::default()
            });
            return all;
        }
        let busiest = part.busiest();
        let mut predicted = vec![duration as f64; numbers.len()];
        let mut is_assumed = false;
        for (place, region) in &part.regions {
            match change(part, (&numbers, busiest), region, scaling.get(place)) {
                Ok(changes) => {
                    is_assumed |= scaling.get(place).is_some_and(Scaling::is_assumed);
                    let sums = predicted.iter_mut().zip(changes);
                    sums.for_each(|(sum, change)| *sum += change);
                }
                Err(reason) => {
                    all.not_predicted.push(NotPredicted { place: place.clone(), ns: region.duration, reason })
                }
            }
        }
        all.not_predicted.sort_by_key(|row| Reverse(row.ns));
        let unknown: u64 = all.not_predicted.iter().map(|row| row.ns).sum();
        if unknown as f64 <= MAX_UNKNOWN * duration as f64 {
            let rows = numbers.iter().zip(predicted);
            all.rows = rows
                .map(|(threads, ns)| OtherThreads {
                    threads: *threads,
                    duration_ns: ns.max(0.0) as u64,
                    gain_percent: (1.0 - ns / duration as f64) * 100.0,
                    assumption: is_assumed.then(|| ASSUMPTION.to_owned()),
                })
                .collect();
        }
        all
    }
}

/// How much longer a region takes, by number of threads; or why this is unknown. `busiest`: the recorded number of
/// threads.
fn change(
    part: &MergeableAnswers,
    (numbers, busiest): (&[u32], u64),
    region: &RegionPart,
    scaling: Option<&Scaling>,
) -> Result<Vec<f64>, String> {
    let Some(scaling) = scaling.filter(|scaling| scaling.modelled > 0) else {
        // A region that takes almost no time changes nothing.
        return match region.duration as f64 <= 1e-3 * part.duration() as f64 {
            true => Ok(Vec::new()),
            false => Err("the runtime does not report what the threads of the region do".to_owned()),
        };
    };
    if let Some(problem) = scaling.problem() {
        return Err(problem.text().to_owned());
    }
    let (recorded, modelled) = (region.duration as f64, scaling.modelled as f64);
    let error = recorded - modelled;
    // Costs of the region itself are not errors of the model.
    let costs = part.costs(region) as f64 / busiest.max(1) as f64;
    if error < -MAX_MODEL_ERROR * recorded || error - costs > MAX_MODEL_ERROR * recorded {
        return Err(format!(
            "a replay of the region with the recorded schedule takes {:.0} % of the recorded time, so predictions would not be reliable",
            modelled * 100.0 / recorded.max(1.0)
        ));
    }
    let is_narrow = u64::from(scaling.threads) < busiest;
    let numbers = numbers.iter().copied().zip(&scaling.on);
    let changes = numbers.map(|(threads, on)| {
        // The region requested fewer threads than there were.
        let is_limited = is_narrow && threads >= scaling.threads;
        if is_limited || threads == scaling.threads {
            return 0.0;
        }
        // A single thread waits for no other.
        let besides = error.clamp(0.0, if threads == 1 { costs } else { f64::MAX });
        *on as f64 + besides - recorded
    });
    Ok(changes.collect())
}

fn task_regions(scaling: &BTreeMap<Place, Scaling>) -> Vec<TaskRegion> {
    let regions = scaling.iter().filter(|(_, scaling)| scaling.tasks > 0);
    let mut regions: Vec<TaskRegion> = regions
        .map(|(place, scaling)| {
            let unknown = [Problem::TooLarge, Problem::Nested];
            let reason = unknown.into_iter().find(|problem| scaling.problems.contains_key(problem));
            let is_whole = reason.is_none();
            let by = |span: u64| (span > 0).then(|| scaling.work as f64 / span as f64);
            let span = is_whole.then_some(scaling.span);
            let creation_ns = scaling.creation_ns.filter(|_| is_whole);
            let burdened = creation_ns.map(|_| scaling.burdened_span);
            TaskRegion {
                place: place.clone(),
                tasks: scaling.tasks,
                work_ns: scaling.work,
                span_ns: span,
                span_reason: reason.map(|reason| reason.text().to_owned()),
                parallelism: span.and_then(by),
                creation_ns,
                burdened_span_ns: burdened,
                burdened_parallelism: burdened.and_then(by),
            }
        })
        .collect();
    regions.sort_by_key(|region| Reverse(region.work_ns));
    regions
}
