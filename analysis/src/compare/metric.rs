//! The numbers that are compared.

use serde::{Serialize, Serializer};

use crate::compare::functions::FunctionPair;
use crate::compare::sample::{Difference, Summary, real};
use crate::model::accounting::Accounting;
use crate::model::answers::{Answers, Efficiency, RegionAnswer};
use crate::model::cause::Cause;
use crate::model::place::Place;

/// A number that is compared.
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
    /// The time of a cause, of all threads together, by the number of threads: wall time.
    Cause(Cause),
    /// A function's own CPU time, by samples: of all threads together, by the number of threads.
    FunctionSelf,
    /// The median of the time steps.
    StepMedian,
    /// The time that 95 % of the time steps do not exceed.
    StepP95,
    /// How much longer each time step is than the one before; 0 where chance may make it look so.
    StepDrift,
    /// One time step; the median of some, where there are many.
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
    /// All metrics but those of functions and time steps.
    pub fn all() -> impl Iterator<Item = Metric> {
        let efficiencies = EFFICIENCIES.iter().map(|(metric, _, _)| *metric);
        let causes = Cause::ALL.iter().map(|cause| Metric::Cause(*cause));
        [Metric::Duration].into_iter().chain(efficiencies).chain(causes)
    }

    /// Its name in JSON and in conditions.
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

    /// Whether it is a time; else it is a share, 0 to 1.
    pub fn is_time(self) -> bool {
        !EFFICIENCIES.iter().any(|row| row.0 == self)
    }

    /// Whether the tests of the whole run's figures are about it.
    pub(super) fn is_of_whole(self) -> bool {
        matches!(self, Metric::Duration | Metric::ParallelEfficiency)
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

/// A parallel region before and after; `None` where there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RegionPair {
    /// Where it was.
    pub before: Option<Place>,
    /// Where it is.
    pub after: Option<Place>,
}

/// A number before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The region that it is of; `None` of the whole run, and of functions.
    pub region: Option<RegionPair>,
    /// The function that it is of.
    pub function: Option<FunctionPair>,
    /// The time steps that it is of; `None` of all else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepNumbers>,
    /// Which number.
    pub metric: Metric,
    /// Its unit: `ns` or `share`.
    pub unit: &'static str,
    /// The value before.
    pub before: Summary,
    /// The value now.
    pub after: Summary,
    /// `after` less `before`.
    pub difference: f64,
    /// The change divided by `before`; `None` where that is 0.
    pub relative: Option<f64>,
    /// The 95 % confidence interval of the difference; `None` where a set is a single run.
    pub interval: Option<[f64; 2]>,
    /// How probable such a difference is where the programs are equal; `None` where a set is a single run.
    pub chance: Option<f64>,
    /// Whether it is large enough and more than chance explains.
    pub is_different: bool,
    /// Whether it is large enough.
    pub is_large: bool,
}

/// The time steps that a number is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StepNumbers {
    /// The range whose instances they are.
    pub name: String,
    /// The first of them, from 1; `None` of a number of all steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// The last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
}

/// A row, unless a run lacks the number.
pub(super) fn row(
    metric: Metric,
    region: Option<&RegionPair>,
    before: Option<Vec<f64>>,
    after: Option<Vec<f64>>,
) -> Option<Row> {
    let (before, after) = (Summary::of(&before?), Summary::of(&after?));
    let is_nothing = |of: &Summary| of.mean == 0.0;
    if metric.is_time() && is_nothing(&before) && is_nothing(&after) {
        return None;
    }
    let difference = Difference::of(&before, &after);
    let value = after.mean - before.mean;
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
        interval: difference.map(|difference| difference.interval()),
        chance: difference.map(|difference| difference.chance()),
        is_different: false,
        is_large: false,
    })
}

/// Marks the rows whose difference is large enough and real, where `chance` is that of equal programs to differ in any of them.
pub(super) fn mark(rows: &mut [&mut Row], chance: f64) {
    let chances: Option<Vec<f64>> = rows.iter().map(|row| row.chance).collect();
    for (row, is_real) in rows.iter_mut().zip(real(&chances.unwrap_or_default(), chance)) {
        row.is_different = is_real && row.is_large;
    }
}
