//! Compares two sets of runs: what takes longer or shorter than chance explains.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::compare::condition::{Condition, Measured, Unmet};
use crate::compare::functions;
use crate::compare::metric::{Metric, RegionPair, Row, mark, row, tested};
use crate::compare::named_place::{NamedPlace, PairOfPlaces, together};
use crate::compare::pairs::pairs;
use crate::compare::run::Run;
use crate::compare::sample::{Difference, Summary, real};
use crate::compare::steps::ComparedSteps;
use crate::compare::useful::{UsefulGrowth, by_place};
use crate::model::answers::{FunctionName, RegionAnswer, SCHEMA};
use crate::model::place::Place;

/// The chance that a comparison of equal programs reports a difference of the duration or of the parallel efficiency of
/// the whole run. Most users compare runs for these two numbers, so the other tests do not make them less sensitive.
const MAX_CHANCE_OF_RUN: f64 = 1e-3;
/// The chance that a comparison of equal programs reports any other difference. If there are time steps, their tests get
/// half of it.
const MAX_CHANCE: f64 = 1e-4;
/// The largest chance for all conditions of `--fail-on` together.
const MAX_CHANCE_OF_CONDITIONS: f64 = 1e-3;

/// How to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// Smaller differences are not reported. For times, relative to the duration before; for efficiencies, absolute.
    pub min_effect: f64,
    /// The conditions under which the comparison fails.
    pub conditions: Vec<Condition>,
}

impl Default for Options {
    fn default() -> Options {
        Options { min_effect: 0.02, conditions: Vec::new() }
    }
}

/// A place in a condition at which no run has a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPlace {
    /// The place, as the user named it.
    pub name: String,
    /// The most similar names of places that exist.
    pub nearest: Vec<String>,
}

impl Options {
    /// The first place in the conditions at which no run has a region.
    pub fn unknown_place(&self, before: &[Run], after: &[Run]) -> Option<UnknownPlace> {
        let mut places = places(before);
        places.extend(self::places(after));
        let mut named = self.conditions.iter().filter_map(|condition| condition.place.as_ref());
        let unknown = named.find(|named| !places.iter().any(|place| named.is(place)))?;
        Some(UnknownPlace { name: unknown.to_string(), nearest: unknown.nearest(&places) })
    }
}

/// A set of runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Side {
    /// The runs.
    pub runs: Vec<String>,
    /// Their number of threads; the largest number if it differs.
    pub threads: u32,
    /// Their mean duration.
    pub duration_ns: u64,
    /// The programs that ran, each once.
    pub programs: BTreeSet<String>,
    /// The number of runs in which other programs or threads used the CPUs: see [`cpu_note`](crate::answers::Answers::cpu_note).
    pub busy_runs: usize,
}

impl Side {
    fn of(runs: &[Run]) -> Side {
        let threads = runs.iter().map(|run| run.answers.threads);
        let sum: u128 = runs.iter().map(|run| u128::from(run.answers.duration_ns)).sum();
        Side {
            runs: runs.iter().map(|run| run.name.clone()).collect(),
            threads: threads.max().unwrap_or(0),
            duration_ns: (sum / runs.len().max(1) as u128) as u64,
            programs: runs.iter().flat_map(|run| run.programs.iter().cloned()).collect(),
            busy_runs: runs.iter().filter(|run| run.answers.cpu_note.is_some()).count(),
        }
    }
}

/// Two sets of runs, compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// The version of the JSON schema.
    pub schema: u32,
    /// The runs before.
    pub before: Side,
    /// The runs after.
    pub after: Side,
    /// Whether any number differs by more than chance explains.
    pub is_different: bool,
    /// Whether there are repetitions, which show how much equal runs differ. Without them, no row counts as different.
    pub is_noise_known: bool,
    /// The smallest saving of wall time that these runs could show; `None` if the noise is unknown.
    pub smallest_ns: Option<f64>,
    /// Differences below this share of the duration (efficiencies: absolute) are not reported.
    pub min_effect: f64,
    /// The conditions that were broken.
    pub failed: Vec<Unmet>,
    /// The place where useful time grows most; `None` if no growth exceeds both the least effect and chance. Without
    /// repetitions, the measured values are taken as exact.
    pub useful_growth: Option<UsefulGrowth>,
    /// Why time steps were not compared, or not one by one; `None` if there is nothing to report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_note: Option<String>,
    /// First the whole run's numbers, then those of time steps, then those of regions and functions, largest difference
    /// first. Regions and functions whose time is below the least effect in both sets are left out.
    pub rows: Vec<Row>,
}

impl Diff {
    /// Compares two sets of runs. Neither may be empty.
    pub fn of(before: &[Run], after: &[Run], options: &Options) -> Diff {
        let (old, new) = (Side::of(before), Side::of(after));
        let least_ns = options.min_effect * old.duration_ns as f64;
        let mut rows = Vec::new();
        for metric in Metric::all() {
            let values = |runs: &[Run]| {
                let values = runs.iter().map(|run| metric.of_run(&run.answers));
                values.collect::<Option<Vec<f64>>>()
            };
            rows.extend(row(metric, None, values(before), values(after)));
        }
        let of_run = rows.len();
        rows.extend(of_regions(before, after, least_ns));
        rows.extend(of_functions(before, after));
        let mut index = 0;
        rows.retain(|row| {
            index += 1;
            let is_seen = row.before.mean.max(row.after.mean) >= least_ns;
            // Rows that a condition may refer to are kept.
            index <= of_run || !row.metric.is_time() || is_seen
        });
        for row in &mut rows {
            let least = if row.metric.is_time() { least_ns } else { options.min_effect };
            row.is_large = row.difference != 0.0 && row.difference.abs() >= least;
        }
        let steps = ComparedSteps::of(before, after, options.min_effect, MAX_CHANCE / 2.0);
        let of_others = if steps.rows.is_empty() { MAX_CHANCE } else { MAX_CHANCE / 2.0 };
        mark_families(&mut rows, least_ns, of_others);
        let measured = options.conditions.iter().map(|condition| match &condition.place {
            Some(place) => at_place(condition.metric, place, before, after),
            None => {
                let row = |metric| rows[..of_run].iter().find(|row| row.metric == metric).cloned();
                let duration = row(Metric::Duration).map_or(0.0, |row| row.before.mean);
                Measured { row: row(condition.metric), duration_ns: Some(duration) }
            }
        });
        let measured: Vec<Measured> = measured.collect();
        let failed = Unmet::of(&options.conditions, &measured, MAX_CHANCE_OF_CONDITIONS);
        let of_parts = rows.split_off(of_run);
        rows.extend(steps.rows);
        rows.extend(sorted(of_parts));
        let duration = rows.iter().find(|row| row.metric == Metric::Duration);
        let difference = duration.and_then(|row| Difference::of(&row.before, &row.after));
        Diff {
            schema: SCHEMA,
            before: old,
            after: new,
            is_different: rows.iter().any(|row| row.is_different),
            is_noise_known: difference.is_some(),
            smallest_ns: smallest_saving(before, after).map(|ns| ns.max(least_ns)),
            min_effect: options.min_effect,
            failed,
            useful_growth: most_growing(before, after, least_ns),
            steps_note: steps.note,
            rows,
        }
    }
}

/// The smallest saving of wall time that these runs could show, in nanoseconds; `None` if the noise is unknown.
fn smallest_saving(before: &[Run], after: &[Run]) -> Option<f64> {
    let durations =
        |runs: &[Run]| -> Vec<f64> { runs.iter().map(|run| run.answers.duration_ns.max(1) as f64).collect() };
    let (old, new) = (durations(before), durations(after));
    let factor = tested(Metric::Duration, &old, &new)?.smallest(MAX_CHANCE_OF_RUN / 2.0);
    Some(Summary::of(&old).mean * (1.0 - (-factor).exp()))
}

/// The place where useful time grows most, by at least `least_ns` of wall time and by more than chance.
fn most_growing(before: &[Run], after: &[Run], least_ns: f64) -> Option<UsefulGrowth> {
    let runs = |runs| <&[Run]>::into_iter(runs).collect::<Vec<&Run>>();
    let (old, new) = (runs(before), runs(after));
    let by_threads = |runs: &[&Run], times: &[f64]| {
        let times = runs.iter().zip(times);
        let times = times.map(|(run, ns)| ns / f64::from(run.answers.threads.max(1)));
        Summary::of(&times.collect::<Vec<f64>>())
    };
    let places = by_place(&old, &new);
    let differences = places.iter().map(|row| (by_threads(&old, &row.before), by_threads(&new, &row.after)));
    let differences: Vec<_> = differences.collect();
    let chances = differences.iter().map(|(before, after)| {
        // Without repetitions, the measured values are taken as exact.
        Difference::of(before, after).map_or(0.0, |difference| difference.chance())
    });
    let real = real(&chances.collect::<Vec<f64>>(), MAX_CHANCE);
    let rows = places.iter().zip(&differences).zip(real);
    let grown = rows.filter_map(|((row, (before, after)), is_real)| {
        let growth = after.mean - before.mean;
        (is_real && growth > 0.0 && growth >= least_ns).then_some((growth, row))
    });
    let (_, row) = grown.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let mean = |times: &[f64]| Summary::of(times).mean as u64;
    Some(UsefulGrowth { place: row.place.clone(), before_ns: mean(&row.before), after_ns: mean(&row.after) })
}

/// The rows of all regions. Efficiencies are given only for regions that take at least `least_ns` before or after,
/// because those of shorter regions mean nothing.
fn of_regions(before: &[Run], after: &[Run], least_ns: f64) -> Vec<Row> {
    let (old_places, new_places) = (places(before), places(after));
    let mut rows = Vec::new();
    for (old, new) in pairs(&old_places, &new_places) {
        let pair = RegionPair {
            before: old.map(|index| old_places[index].clone()),
            after: new.map(|index| new_places[index].clone()),
        };
        let mut is_large = false;
        for metric in Metric::all().filter(|metric| metric.is_time()) {
            // A run that does not reach a region spends no time there.
            let values = |runs: &[Run], place: Option<&Place>| {
                let value = |run: &Run| of_region(metric, run, place).unwrap_or(0.0);
                Some(runs.iter().map(value).collect())
            };
            let old = values(before, pair.before.as_ref());
            let new = values(after, pair.after.as_ref());
            let row = row(metric, Some(&pair), old, new);
            if metric == Metric::Duration {
                let longest = |row: &Row| row.before.mean.max(row.after.mean);
                is_large = row.as_ref().is_some_and(|row| longest(row) >= least_ns);
            }
            rows.extend(row);
        }
        let efficiencies = Metric::all().filter(|metric| is_large && !metric.is_time());
        for metric in efficiencies {
            // A run that does not reach the region has no efficiency of it.
            let values = |runs: &[Run], place: Option<&Place>| {
                let values = runs.iter().map(|run| of_region(metric, run, place));
                values.collect()
            };
            let old = values(before, pair.before.as_ref());
            let new = values(after, pair.after.as_ref());
            rows.extend(row(metric, Some(&pair), old, new));
        }
    }
    rows
}

/// The measurements of all regions at a place together.
fn at_place(metric: Metric, named: &NamedPlace, before: &[Run], after: &[Run]) -> Measured {
    let (old_places, new_places) = (places(before), places(after));
    let pairs: Vec<PairOfPlaces> = pairs(&old_places, &new_places)
        .into_iter()
        .map(|(old, new)| (old.map(|index| &old_places[index]), new.map(|index| &new_places[index])))
        .collect();
    let (old, new): (Vec<_>, Vec<_>) = named.select(&pairs).into_iter().unzip();
    let values = |metric: Metric, runs: &[Run], places: &[Option<&Place>]| {
        let values = runs.iter().map(|run| {
            let is_there = |region: &&RegionAnswer| places.contains(&Some(&region.place));
            let regions: Vec<&RegionAnswer> = run.answers.regions.iter().filter(is_there).collect();
            let value = together(&regions).and_then(|all| metric.of_region(&all, run.answers.threads));
            // A run that does not reach a region spends no time there.
            value.or_else(|| metric.is_time().then_some(0.0))
        });
        values.collect::<Option<Vec<f64>>>()
    };
    let was_there = old.iter().any(Option::is_some);
    let duration = values(Metric::Duration, before, &old).filter(|_| was_there);
    Measured {
        row: row(metric, None, values(metric, before, &old), values(metric, after, &new)),
        duration_ns: duration.map(|values| Summary::of(&values).mean),
    }
}

/// The rows of all functions, if all runs were sampled.
fn of_functions(before: &[Run], after: &[Run]) -> Vec<Row> {
    let by_threads = |runs: &[Run], times: &[u64]| {
        let times = runs.iter().zip(times);
        let times = times.map(|(run, ns)| *ns as f64 / f64::from(run.answers.threads.max(1)));
        Some(times.collect())
    };
    let rows = functions::of(before, after).into_iter();
    let rows = rows.filter_map(|(pair, old, new)| {
        let (old, new) = (by_threads(before, &old), by_threads(after, &new));
        let row = row(Metric::FunctionSelf, None, old, new)?;
        Some(Row { function: Some(pair), ..row })
    });
    rows.collect()
}

/// The value of a metric for a region in a run.
fn of_region(metric: Metric, run: &Run, place: Option<&Place>) -> Option<f64> {
    let mut regions = run.answers.regions.iter();
    let region = regions.find(|region| Some(&region.place) == place)?;
    metric.of_region(region, run.answers.threads)
}

/// The regions of all runs, without duplicates.
fn places(runs: &[Run]) -> Vec<Place> {
    let regions = runs.iter().flat_map(|run| &run.answers.regions);
    let mut places: Vec<Place> = regions.map(|region| region.place.clone()).collect();
    places.sort();
    places.dedup();
    places
}

/// Marks the rows of both families of tests. `of_parts`: the chance that the second family reports a difference between
/// equal programs.
fn mark_families(rows: &mut [Row], least_ns: f64, of_parts: f64) {
    for (is_of_whole, chance) in [(true, MAX_CHANCE_OF_RUN), (false, of_parts)] {
        // Differences too small to report are not tested, because further tests would only weaken the others.
        let is_tested = |row: &Row| {
            let is_whole = row.is_headline();
            let is_seen = row.before.mean.max(row.after.mean) >= least_ns;
            is_whole == is_of_whole && (is_seen || !row.metric.is_time())
        };
        mark(&mut rows.iter_mut().filter(|row| is_tested(row)).collect::<Vec<_>>(), chance);
    }
}

/// The rows of regions and functions, grouped by region or function, those with the largest difference first.
fn sorted(rows: Vec<Row>) -> Vec<Row> {
    type Key<T> = (Option<T>, Option<T>);
    let key = |row: &Row| -> (Key<Place>, Key<FunctionName>) {
        let region = row.region.clone().unwrap_or_default();
        let function = row.function.clone().unwrap_or_default();
        ((region.before, region.after), (function.before, function.after))
    };
    let mut regions = BTreeMap::new();
    for row in rows {
        let of_one: &mut Vec<Row> = regions.entry(key(&row)).or_default();
        of_one.push(row);
    }
    let mut regions: Vec<Vec<Row>> = regions.into_values().collect();
    let greatest = |rows: &Vec<Row>| rows.iter().map(|row| row.difference.abs()).fold(0.0, f64::max);
    regions.sort_by(|a, b| greatest(b).total_cmp(&greatest(a)));
    regions.into_iter().flatten().collect()
}
