//! The metrics that are compared.

use serde::{Serialize, Serializer};

use crate::compare::functions::FunctionPair;
use crate::compare::sample::{Difference, Summary, real};
use crate::model::accounting::Accounting;
use crate::model::answers::{Answers, Efficiency, RegionAnswer};
use crate::model::cause::Cause;
use crate::model::place::Place;

/// A metric that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Wall time: of the run, or of all visits of a region.
    Duration,
    /// See [`Efficiency::parallel`], and so on.
    ParallelEfficiency,
    /// See [`Efficiency::load_balance`].
    LoadBalance,
    /// See [`Efficiency::communication`].
    Communication,
    /// See [`Efficiency::serialisation`].
    Serialisation,
    /// See [`Efficiency::transfer`].
    Transfer,
    /// Wall time lost to a cause: the sum over all threads, divided by the number of threads.
    Cause(Cause),
    /// A function's own CPU time, by samples: the sum over all threads, divided by the number of threads.
    FunctionSelf,
    /// The median of the time steps.
    StepMedian,
    /// The time that 95 % of the time steps do not exceed.
    StepP95,
    /// How much longer each time step is than the one before; 0 if chance could explain it.
    StepDrift,
    /// One time step; if there are many, the median of a bin of steps.
    Step,
}

/// An efficiency: its metric, its name, and its value.
type EfficiencyRow = (Metric, &'static str, fn(&Efficiency) -> Option<f64>);

/// All efficiencies.
const EFFICIENCIES: [EfficiencyRow; 5] = [
    (Metric::ParallelEfficiency, "parallel_efficiency", |of| of.parallel),
    (Metric::LoadBalance, "load_balance", |of| of.load_balance),
    (Metric::Communication, "communication", |of| of.communication),
    (Metric::Serialisation, "serialisation", |of| of.serialisation),
    (Metric::Transfer, "transfer", |of| of.transfer),
];

impl Metric {
    /// All metrics except those of functions and time steps.
    pub fn all() -> impl Iterator<Item = Metric> {
        let efficiencies = EFFICIENCIES.iter().map(|(metric, _, _)| *metric);
        let causes = Cause::ALL.iter().map(|cause| Metric::Cause(*cause));
        [Metric::Duration].into_iter().chain(efficiencies).chain(causes)
    }

    /// Its name in texts.
    pub fn title(self) -> String {
        match self {
            Metric::Cause(cause) => cause.title().to_owned(),
            other => other.name().replace('_', " "),
        }
    }

    /// The metric's name in JSON and in conditions.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Duration => "duration",
            Metric::Cause(cause) => cause.name(),
            Metric::FunctionSelf => "function_self",
            Metric::StepMedian => "step_median",
            Metric::StepP95 => "step_p95",
            Metric::StepDrift => "step_drift",
            Metric::Step => "step",
            efficiency => {
                let row = EFFICIENCIES.iter().find(|row| row.0 == efficiency);
                row.map_or("", |row| row.1)
            }
        }
    }

    /// Whether the metric is a time; otherwise it is a share, 0 to 1.
    pub fn is_time(self) -> bool {
        !EFFICIENCIES.iter().any(|row| row.0 == self)
    }

    pub(super) fn of_run(self, answers: &Answers) -> Option<f64> {
        self.of(answers.duration_ns, &answers.accounting, &answers.efficiency, answers.threads)
    }

    pub(super) fn of_region(self, region: &RegionAnswer, threads: u32) -> Option<f64> {
        self.of(region.duration_ns, &region.accounting, &region.efficiency, threads)
    }

    fn of(
        self,
        duration_ns: u64,
        accounting: &Accounting,
        efficiency: &Efficiency,
        threads: u32,
    ) -> Option<f64> {
        match self {
            Metric::Duration => Some(duration_ns as f64),
            Metric::Cause(cause) => Some(accounting[cause] as f64 / f64::from(threads.max(1))),
            metric => {
                let row = EFFICIENCIES.iter().find(|row| row.0 == metric)?;
                row.2(efficiency)
            }
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A parallel region before and after; `None` on the side that lacks it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RegionPair {
    /// The region's place before.
    pub before: Option<Place>,
    /// The region's place after.
    pub after: Option<Place>,
}

/// A metric's values before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The region that the row is about; `None` for the whole run and for functions.
    pub region: Option<RegionPair>,
    /// The function that the row is about.
    pub function: Option<FunctionPair>,
    /// The time steps that the row is about; `None` for all other rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepNumbers>,
    /// The metric.
    pub metric: Metric,
    /// Its unit: `ns` or `share`.
    pub unit: &'static str,
    /// The value before.
    pub before: Summary,
    /// The value now.
    pub after: Summary,
    /// `after` less `before`.
    pub difference: f64,
    /// The difference divided by the mean before; `None` if that is 0.
    pub relative: Option<f64>,
    /// The 95 % confidence interval of the difference, by the same test as `chance`; `None` if a set has a single run.
    pub interval: Option<[f64; 2]>,
    /// The probability of a difference of at least this size between equal programs; `None` if a set has a single run.
    pub chance: Option<f64>,
    /// Whether the difference is large enough to be reported and more than chance explains.
    pub is_different: bool,
    /// Whether the difference is large enough to be reported.
    pub is_large: bool,
}

impl Row {
    /// Whether the row is about the duration or the parallel efficiency of the whole run. These rows form a family of
    /// tests of their own.
    pub fn is_headline(&self) -> bool {
        self.region.is_none() && matches!(self.metric, Metric::Duration | Metric::ParallelEfficiency)
    }
}

/// The time steps that a row is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StepNumbers {
    /// The range whose instances are the steps.
    pub name: String,
    /// The first of the steps, counted from 1; `None` for a metric of all steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// The last of the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
}

/// A row; `None` if a run lacks the metric.
pub(super) fn row(
    metric: Metric,
    region: Option<&RegionPair>,
    before: Option<Vec<f64>>,
    after: Option<Vec<f64>>,
) -> Option<Row> {
    let (old, new) = (before?, after?);
    let (before, after) = (Summary::of(&old), Summary::of(&new));
    let is_nothing = |of: &Summary| of.mean == 0.0;
    if metric.is_time() && is_nothing(&before) && is_nothing(&after) {
        return None;
    }
    let tested = tested(metric, &old, &new);
    let value = after.mean - before.mean;
    let interval = tested.map(|difference| match has_logarithms(metric, &old, &new) {
        true => interval_of_factor(&difference, before.mean, value),
        false => difference.interval(),
    });
    Some(Row {
        region: region.cloned(),
        function: None,
        steps: None,
        metric,
        unit: if metric.is_time() { "ns" } else { "share" },
        before,
        after,
        difference: value,
        relative: (before.mean > 0.0).then(|| value / before.mean),
        interval,
        chance: tested.map(|difference| difference.chance()),
        is_different: false,
        is_large: false,
    })
}

/// Whether logarithms are compared. Times vary by factors rather than by seconds, but zero has no logarithm.
fn has_logarithms(metric: Metric, before: &[f64], after: &[f64]) -> bool {
    metric.is_time() && before.iter().chain(after).all(|value| *value > 0.0)
}

/// The confidence interval of the difference between times, from that of their logarithms: no time falls by more than
/// 100 %. The factor between geometric means may be another one than that between means, whose difference is `value`.
fn interval_of_factor(logarithms: &Difference, before: f64, value: f64) -> [f64; 2] {
    /// Keeps the numbers finite.
    const MOST: f64 = 50.0;
    let [low, high] = logarithms.interval().map(|end| before * end.min(MOST).exp_m1());
    [low.min(value), high.max(value)]
}

/// The difference that is tested: of times, the difference of their logarithms.
pub(super) fn tested(metric: Metric, before: &[f64], after: &[f64]) -> Option<Difference> {
    let has_logarithms = has_logarithms(metric, before, after);
    let summary = |values: &[f64]| match has_logarithms {
        true => Summary::of(&values.iter().map(|value| value.ln()).collect::<Vec<f64>>()),
        false => Summary::of(values),
    };
    Difference::of(&summary(before), &summary(after))
}

/// Marks the rows whose difference is large enough and real. `chance`: the probability that equal programs differ in
/// any of these rows.
pub(super) fn mark(rows: &mut [&mut Row], chance: f64) {
    let chances: Option<Vec<f64>> = rows.iter().map(|row| row.chance).collect();
    for (row, is_real) in rows.iter_mut().zip(real(&chances.unwrap_or_default(), chance)) {
        row.is_different = is_real && row.is_large;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of 4 to 8 seconds and of 0.4 to 0.9 seconds, on a busy machine.
    #[test]
    fn times_are_compared_by_factors() {
        let (before, after) = ([4.1, 5.3, 5.3, 7.5], [0.46, 0.61, 0.68, 0.85]);
        let chance = |metric| tested(metric, &before, &after).expect("repetitions").chance();
        assert!(chance(Metric::Duration) < 1e-4, "{}", chance(Metric::Duration));
        assert!(chance(Metric::ParallelEfficiency) > 1e-3, "{}", chance(Metric::ParallelEfficiency));
        let row = row(Metric::Duration, None, Some(before.to_vec()), Some(after.to_vec())).expect("times");
        let [low, high] = row.interval.expect("repetitions").map(|of| of / row.before.mean);
        assert!(-1.0 < low && low < row.difference / row.before.mean && high < -0.5, "{low} to {high}");
        let with_zero = tested(Metric::Duration, &[0.0, 0.0], &[1.0, 1.1]).expect("repetitions");
        assert!((with_zero.value - 1.05).abs() < 1e-9);
    }
}
