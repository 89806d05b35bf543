//! Time steps: the consecutive instances of a range that repeats.
//!
//! The steps are the program's frames, or if there are none, the outermost range with at least [`MIN_STEPS`] instances.
//! If several threads have ranges with this name, each instance counts as a step.

use omptrace_timeline::model::Ns;
use serde::{Deserialize, Serialize};

use crate::constructs::ranges::{Instance, Ranges};
use crate::model::accounting::Accounting;
use crate::model::cause::Cause;

/// A range with fewer instances is not a sequence of steps.
pub(crate) const MIN_STEPS: usize = 8;

/// Number of longest steps that are analysed.
pub(crate) const WORST: usize = 3;

/// Largest number of bins of steps. A chart has no room for more columns.
const MAX_BINS: usize = 256;

/// A drift is reported if chance produces one of this size less often than this.
const SIGNIFICANT: f64 = 0.01;

/// The time steps of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// The range whose instances are the steps.
    pub name: String,
    /// The number of steps.
    pub count: u64,
    /// The median of their durations.
    pub median_ns: u64,
    /// The duration that 95 % of the steps do not exceed.
    pub p95_ns: u64,
    /// The longest duration.
    pub longest_ns: u64,
    /// How much longer each step is than the one before, by linear regression over all steps except the first; `None`
    /// if chance may explain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ns: Option<f64>,
    /// The first step's duration if it is at least 1.5 times the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_ns: Option<u64>,
    /// The longest steps, longest first.
    pub worst: Vec<Step>,
    /// The number of steps per bin; the last bin may have fewer.
    #[serde(default)]
    pub steps_per_bin: u64,
    /// All steps in chronological order, in at most 256 bins.
    #[serde(default)]
    pub bins: Vec<StepBin>,
    /// When each step began and ended, in nanoseconds since the timeline's start. No part of answers that are stored.
    #[serde(skip)]
    pub instances: Vec<(Ns, Ns)>,
}

/// Consecutive steps; a single step if the program has few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepBin {
    /// The median of their durations.
    pub median_ns: u64,
    /// The longest of their durations.
    pub longest_ns: u64,
}

/// A long step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, counted from 1.
    pub number: u64,
    /// When it began.
    pub begin_ns: i64,
    /// Its duration.
    pub duration_ns: u64,
    /// The cause that explains most of the step's excess over the mean step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The share of this cause in the excess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl Step {
    /// What explains the step's excess, in words; `None` if no cause does.
    pub fn why(&self) -> Option<String> {
        let (cause, share) = self.cause.zip(self.share)?;
        Some(format!("{:.0} % of the time above the mean is {}", share * 100.0, cause.title()))
    }
}

impl Steps {
    /// How many times as long as the median step this one took.
    pub fn medians(&self, step: &Step) -> f64 {
        step.duration_ns as f64 / self.median_ns.max(1) as f64
    }

    /// The name of the range whose instances are the steps, and the instances in chronological order.
    pub(crate) fn choose<'p>(
        ranges: &Ranges,
        phases: impl Iterator<Item = (&'p String, &'p Vec<Instance>)>,
    ) -> Option<(String, Vec<Instance>)> {
        let rank = |name: &str, instances: &[Instance]| {
            let is_frame = ranges.frames.contains(name);
            let depth = ranges.depth(name)?;
            let total: i64 = instances.iter().map(|(begin, end)| end - begin).sum();
            Some((!is_frame, depth, -total))
        };
        let many = phases.filter(|(_, instances)| instances.len() >= MIN_STEPS);
        let ranked = many.filter_map(|(name, instances)| Some((rank(name, instances)?, name, instances)));
        let (_, name, instances) = ranked.min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)))?;
        let mut instances = instances.clone();
        instances.sort_unstable();
        Some((name.clone(), instances))
    }

    pub(crate) fn of(name: String, instances: &[Instance]) -> Steps {
        let durations: Vec<u64> = instances.iter().map(|(begin, end)| end.abs_diff(*begin)).collect();
        let mut sorted = durations.clone();
        sorted.sort_unstable();
        let median_ns = at(&sorted, 0.5);
        let first = durations.first().copied().unwrap_or(0);
        let mut worst: Vec<Step> = durations
            .iter()
            .zip(instances)
            .zip(1..)
            .map(|((duration_ns, (begin_ns, _)), number)| Step {
                number,
                begin_ns: *begin_ns,
                duration_ns: *duration_ns,
                ..Step::default()
            })
            .collect();
        worst.sort_by(|a, b| b.duration_ns.cmp(&a.duration_ns).then(a.number.cmp(&b.number)));
        worst.truncate(WORST);
        let steps_per_bin = durations.len().div_ceil(MAX_BINS).max(1);
        Steps {
            name,
            count: durations.len() as u64,
            median_ns,
            p95_ns: at(&sorted, 0.95),
            longest_ns: sorted.last().copied().unwrap_or(0),
            drift_ns: drift(&durations[1..]),
            warm_up_ns: (first >= median_ns + median_ns / 2).then_some(first),
            worst,
            steps_per_bin: steps_per_bin as u64,
            bins: durations.chunks(steps_per_bin).map(StepBin::of).collect(),
            instances: instances.to_vec(),
        }
    }

    /// Explains the excess of each of the worst steps. `all`: the accounting of all steps; `of_worst`: of each of the
    /// worst steps.
    pub(crate) fn explain(&mut self, all: &Accounting, of_worst: &[Accounting]) {
        let count = self.count.max(1);
        for (step, own) in self.worst.iter_mut().zip(of_worst) {
            let excess_of = |cause: Cause| own[cause].saturating_sub(all[cause] / count);
            let whole = own.total().saturating_sub(all.total() / count);
            let most = Cause::ALL.iter().copied().max_by_key(|cause| excess_of(*cause));
            if let Some(most) = most.filter(|most| whole > 0 && excess_of(*most) > 0) {
                step.cause = Some(most);
                step.share = Some((excess_of(most) as f64 / whole as f64).min(1.0));
            }
        }
    }
}

impl StepBin {
    fn of(durations: &[u64]) -> StepBin {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        StepBin { median_ns: at(&sorted, 0.5), longest_ns: at(&sorted, 1.0) }
    }
}

/// The smallest of the sorted durations that this share of them does not exceed; 0 if there are none.
fn at(sorted: &[u64], share: f64) -> u64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// The slope of the regression line through the durations, if it is significant.
fn drift(durations: &[u64]) -> Option<f64> {
    let count = durations.len() as f64;
    if durations.len() < MIN_STEPS {
        return None;
    }
    let mean_x = (count - 1.0) / 2.0;
    let mean_y = durations.iter().map(|ns| *ns as f64).sum::<f64>() / count;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (number, ns) in durations.iter().enumerate() {
        let (x, y) = (number as f64 - mean_x, *ns as f64 - mean_y);
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    let slope = xy / xx;
    let rest = (yy - slope * xy).max(0.0);
    let freedom = count - 2.0;
    let error = (rest / freedom / xx).sqrt();
    let t = if error > 0.0 { (slope / error).abs() } else { f64::INFINITY };
    (slope != 0.0 && yy > 0.0 && t >= quantile(freedom)).then_some(slope)
}

/// The value that |t| exceeds with the probability [`SIGNIFICANT`] by chance: an expansion of the normal distribution's
/// quantile for this many degrees of freedom (Abramowitz and Stegun, 26.7.5), accurate to 1 % from 6 degrees on.
fn quantile(freedom: f64) -> f64 {
    const NORMAL: f64 = 2.575_829_3;
    const { assert!(SIGNIFICANT == 0.01) };
    let z = NORMAL;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / freedom + second / freedom.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(durations: &[u64]) -> Steps {
        let mut begin = 0_i64;
        let instances: Vec<Instance> = durations
            .iter()
            .map(|ns| {
                let instance = (begin, begin + *ns as i64);
                begin += *ns as i64 + 1;
                instance
            })
            .collect();
        Steps::of("step".to_owned(), &instances)
    }

    #[test]
    fn median_percentile_worst_and_warm_up_are_those_of_the_times() {
        let mut durations: Vec<u64> = (0..40).map(|step| 1000 + step % 3).collect();
        durations[0] = 2000;
        durations[16] = 3100;
        let steps = steps(&durations);
        assert_eq!((steps.count, steps.median_ns, steps.longest_ns), (40, 1001, 3100));
        assert_eq!((steps.p95_ns, steps.warm_up_ns, steps.drift_ns), (1002, Some(2000), None));
        let worst: Vec<u64> = steps.worst.iter().map(|step| step.number).collect();
        assert_eq!(worst[..2], [17, 1]);
    }

    #[test]
    fn many_steps_are_binned() {
        let durations: Vec<u64> = (0..1000).collect();
        let steps = steps(&durations);
        assert_eq!((steps.steps_per_bin, steps.bins.len()), (4, 250));
        assert_eq!(steps.bins[1], StepBin { median_ns: 5, longest_ns: 7 });
        let few = super::Steps::of("step".to_owned(), &[(0, 3), (3, 5)]);
        let bin = |ns: u64| StepBin { median_ns: ns, longest_ns: ns };
        assert_eq!((few.steps_per_bin, few.bins), (1, vec![bin(3), bin(2)]));
    }

    #[test]
    fn steps_that_grow_drift() {
        let durations: Vec<u64> = (0..50).map(|step| 10_000 + 20 * step + step * 7919 % 13).collect();
        let drift = steps(&durations).drift_ns.expect("a drift");
        assert!((19.0..21.0).contains(&drift), "{drift}");
        let alternating: Vec<u64> = (0..50).map(|step| 10_000 + step % 2 * 500).collect();
        assert_eq!(steps(&alternating).drift_ns, None);
    }
}
