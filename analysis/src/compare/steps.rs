//! Compares the time steps of two sets of runs: the median, the 95th percentile, the drift, and step by step.

use crate::compare::metric::{Metric, Row, StepNumbers, mark, row};
use crate::compare::run::Run;
use crate::constructs::steps::Steps;

/// The comparison of time steps.
#[derive(Debug, Default)]
pub(crate) struct ComparedSteps {
    /// First the rows about all steps, then those about single steps: different ones first, then by size of the
    /// difference.
    pub(crate) rows: Vec<Row>,
    /// Why steps were not compared, or not one by one.
    pub(crate) note: Option<String>,
}

impl ComparedSteps {
    /// Compares the steps of runs that have any. Differences below the share `least` of a step's median are not
    /// reported. `chance`: the probability that equal programs differ in any row.
    pub(crate) fn of(before: &[Run], after: &[Run], least: f64, chance: f64) -> ComparedSteps {
        let steps =
            |runs: &'_ [Run]| runs.iter().map(|run| run.steps.clone()).collect::<Option<Vec<Steps>>>();
        let (Some(old), Some(new)) = (steps(before), steps(after)) else {
            return ComparedSteps::default();
        };
        let mut all = old.iter().chain(&new);
        let Some(first) = all.next() else { return ComparedSteps::default() };
        if let Some(other) = all.find(|steps| steps.name != first.name) {
            let note = format!(
                "time steps are not compared: the runs have different time steps, {} and {}",
                first.name, other.name
            );
            return ComparedSteps { rows: Vec::new(), note: Some(note) };
        }
        let compared = |metric: Metric, of: &dyn Fn(&Steps) -> f64| {
            let values = |steps: &[Steps]| Some(steps.iter().map(of).collect());
            row(metric, None, values(&old), values(&new))
        };
        let name = &first.name;
        let of_all = |row: Row| Row {
            steps: Some(StepNumbers { name: name.clone(), ..StepNumbers::default() }),
            ..row
        };
        let median = compared(Metric::StepMedian, &|steps| steps.median_ns as f64);
        let least_ns = least * median.as_ref().map_or(0.0, |row| row.before.mean);
        let numbers = [
            median,
            compared(Metric::StepP95, &|steps| steps.p95_ns as f64),
            compared(Metric::StepDrift, &|steps| steps.drift_ns.unwrap_or(0.0)),
        ];
        let mut rows: Vec<Row> = numbers.into_iter().flatten().map(of_all).collect();
        let count = fewest(&old, &new);
        for row in &mut rows {
            // A drift adds up over all steps.
            let times = if row.metric == Metric::StepDrift { count as f64 } else { 1.0 };
            row.is_large = row.difference != 0.0 && row.difference.abs() * times >= least_ns;
        }
        let numbers = rows.len();
        let (bins, note) = bins(&old, &new);
        for index in 0..bins {
            let per_bin = first.steps_per_bin;
            let begin = (index as u64).saturating_mul(per_bin);
            let last = begin.saturating_add(per_bin).min(count);
            let of_bin = compared(Metric::Step, &|steps| steps.bins[index].median_ns as f64);
            rows.extend(of_bin.map(|row| Row {
                steps: Some(StepNumbers { name: name.clone(), first: Some(begin + 1), last: Some(last) }),
                is_large: row.difference != 0.0 && row.difference.abs() >= least_ns,
                ..row
            }));
        }
        mark(&mut rows.iter_mut().collect::<Vec<_>>(), chance);
        rows[numbers..].sort_by(|a, b| {
            let by_size = b.difference.abs().total_cmp(&a.difference.abs());
            b.is_different.cmp(&a.is_different).then(by_size)
        });
        ComparedSteps { rows, note }
    }
}

/// The number of steps that all runs have.
fn fewest(old: &[Steps], new: &[Steps]) -> u64 {
    old.iter().chain(new).map(|steps| steps.count).min().unwrap_or(0)
}

/// The number of leading bins that consist of the same steps in all runs. If there are none, the reason.
fn bins(old: &[Steps], new: &[Steps]) -> (usize, Option<String>) {
    let all = || old.iter().chain(new);
    let mut widths: Vec<u64> = all().map(|steps| steps.steps_per_bin).collect();
    widths.dedup();
    let count = fewest(old, new);
    match widths[..] {
        [width] if width > 0 => {
            // The last bin may have fewer steps, provided that all runs have the same number of steps.
            let is_equal = all().all(|steps| steps.count == count);
            let whole = if is_equal { count.div_ceil(width) } else { count / width };
            let known = all().map(|steps| steps.bins.len()).min().unwrap_or(0);
            (known.min(usize::try_from(whole).unwrap_or(usize::MAX)), None)
        }
        _ => {
            let note =
                "single time steps are not compared: the runs have very different numbers of time steps";
            (0, Some(note.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, durations: &[u64]) -> Run {
        let mut begin = 0;
        let instances: Vec<(i64, i64)> = durations
            .iter()
            .map(|ns| {
                begin += *ns as i64;
                (begin - *ns as i64, begin)
            })
            .collect();
        Run { steps: Some(Steps::of(name.to_owned(), &instances)), ..Run::default() }
    }

    fn compared(before: &[Run], after: &[Run]) -> ComparedSteps {
        ComparedSteps::of(before, after, 0.02, 1e-4)
    }

    #[test]
    fn the_step_that_got_slower_is_found() {
        let runs = |slow: u64| -> Vec<Run> {
            let of_run = |run_number: u64| {
                let duration =
                    |step: u64| 1_000_000 + (run_number * 7 + step) % 5 + u64::from(step == 6) * slow;
                run("step", &(0..10).map(duration).collect::<Vec<u64>>())
            };
            (0..5).map(of_run).collect()
        };
        let ComparedSteps { rows, note } = compared(&runs(0), &runs(400_000));
        assert_eq!(note, None);
        let different: Vec<&Row> = rows.iter().filter(|row| row.is_different).collect();
        let metrics: Vec<Metric> = different.iter().map(|row| row.metric).collect();
        assert_eq!(metrics, [Metric::StepP95, Metric::Step]);
        let numbers = different[1].steps.as_ref().expect("steps");
        assert_eq!((numbers.first, numbers.last), (Some(7), Some(7)));
        assert!(different[1].relative.is_some_and(|change| (change - 0.4).abs() < 0.001));
        assert!(!compared(&runs(0), &runs(0)).rows.iter().any(|row| row.is_different || row.is_large));
    }

    #[test]
    fn a_drift_that_is_new_is_large() {
        let growing: Vec<u64> = (0..50).map(|step| 100_000 + 500 * step).collect();
        let rows = compared(&[run("step", &[100_000; 50])], &[run("step", &growing)]).rows;
        let drift = rows.iter().find(|row| row.metric == Metric::StepDrift).expect("a drift");
        assert!(drift.is_large && (drift.after.mean - 500.0).abs() < 1.0 && drift.before.mean == 0.0);
    }

    #[test]
    fn steps_that_are_not_the_same_are_not_compared() {
        let other = compared(&[run("step", &[5; 9])], &[run("frame", &[5; 9])]);
        assert!(other.rows.is_empty() && other.note.is_some_and(|note| note.contains("step and frame")));
        let more = compared(&[run("step", &[5; 9])], &[run("step", &[5; 900])]);
        assert!(more.rows.iter().all(|row| row.metric != Metric::Step) && more.note.is_some());
        let fewer = compared(&[run("step", &[5; 900])], &[run("step", &[6; 890])]);
        let last = fewer.rows.iter().filter_map(|row| row.steps.as_ref()?.last).max();
        assert_eq!(last, Some(888), "four steps in each bin");
        assert!(compared(&[Run::default()], &[run("step", &[5; 9])]).rows.is_empty());
    }
}
