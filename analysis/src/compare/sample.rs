//! Repeated measurements, and whether two sets of them differ by more than chance.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The share of confidence intervals that contain the true difference.
const CONFIDENCE: f64 = 0.95;

/// Mean and spread of repeated measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The number of measurements.
    pub runs: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation; `None` for one measurement.
    pub stddev: Option<f64>,
}

impl Summary {
    /// The summary of `values`.
    pub fn of(values: &[f64]) -> Summary {
        let runs = values.len();
        let mean = values.iter().sum::<f64>() / runs.max(1) as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Summary { runs, mean, stddev: (runs > 1).then(|| (squares / (runs - 1) as f64).sqrt()) }
    }

    /// The variance of the mean, and its degrees of freedom.
    fn of_mean(&self) -> Option<(f64, f64)> {
        let stddev = self.stddev?;
        Some((stddev.powi(2) / self.runs as f64, (self.runs - 1) as f64))
    }
}

/// The difference of two means by Welch's test, which does not assume equal variances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    /// The difference of the means.
    pub(crate) value: f64,
    error: f64,
    degrees: f64,
}

impl Difference {
    /// `None` if a set has a single measurement, so that the noise is unknown.
    pub(crate) fn of(before: &Summary, after: &Summary) -> Option<Difference> {
        let (before_variance, before_degrees) = before.of_mean()?;
        let (after_variance, after_degrees) = after.of_mean()?;
        let sum = before_variance + after_variance;
        let below = before_variance.powi(2) / before_degrees + after_variance.powi(2) / after_degrees;
        Some(Difference {
            value: after.mean - before.mean,
            error: sum.sqrt(),
            degrees: match below > 0.0 {
                true => sum.powi(2) / below,
                false => before_degrees + after_degrees,
            },
        })
    }

    fn distribution(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, self.degrees).ok()
    }

    /// The probability (0 to 1) of a difference of at least this size between sets of equal programs.
    pub(crate) fn chance(&self) -> f64 {
        if self.value == 0.0 {
            return 1.0;
        }
        if self.error == 0.0 {
            return 0.0;
        }
        let distribution = self.distribution();
        let tail = distribution.map(|t| t.cdf(-(self.value / self.error).abs()));
        tail.map_or(1.0, |tail| (2.0 * tail).clamp(0.0, 1.0))
    }

    /// The difference with exactly this chance: smaller differences cannot be detected.
    pub(crate) fn smallest(&self, chance: f64) -> f64 {
        let distribution = self.distribution();
        let quantile = distribution.map(|t| t.inverse_cdf(1.0 - chance / 2.0));
        quantile.map_or(f64::INFINITY, |t| t * self.error)
    }

    /// The confidence interval, which contains the true difference in 95 of 100 comparisons.
    pub(crate) fn interval(&self) -> [f64; 2] {
        let half = self.smallest(1.0 - CONFIDENCE);
        [self.value - half, self.value + half]
    }
}

/// Holm's procedure: marks the tests that show a difference, such that the probability of any false mark is at most
/// `chance`.
pub(crate) fn real(chances: &[f64], chance: f64) -> Vec<bool> {
    let mut by_chance: Vec<usize> = (0..chances.len()).collect();
    by_chance.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut real = vec![false; chances.len()];
    for (rank, index) in by_chance.into_iter().enumerate() {
        if chances[index] > chance / (chances.len() - rank) as f64 {
            break;
        }
        real[index] = true;
    }
    real
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(before: &[f64], after: &[f64]) -> Difference {
        Difference::of(&Summary::of(before), &Summary::of(after)).expect("repetitions")
    }

    /// The last two values were computed by integrating the density of t.
    #[test]
    fn welch_is_as_the_formulas_say() {
        let before = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9];
        let after = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0];
        let difference = difference(&before, &after);
        for (value, right) in [
            (difference.value, 2.5),
            (difference.error, 1.776_922),
            (difference.degrees, 7.046_875),
            (difference.chance(), 0.201_989),
        ] {
            assert!((value - right).abs() < 1e-5, "{value}, not {right}");
        }
        let [low, high] = difference.interval();
        assert!(low < 0.0 && high > 2.5 && ((low + high) / 2.0 - 2.5).abs() < 1e-9);
    }

    /// Quantiles from tables: t of 0.975 is 2.262 with 9 degrees of freedom, and 12.706 with 1.
    #[test]
    fn quantiles_are_those_of_tables() {
        for (degrees, quantile) in [(1.0, 12.706), (9.0, 2.262), (18.0, 2.101)] {
            let difference = Difference { value: 1.0, error: 1.0, degrees };
            assert!((difference.smallest(0.05) - quantile).abs() < 1e-3);
            let tail = Difference { value: difference.smallest(1e-6), ..difference };
            assert!((tail.chance() / 1e-6 - 1.0).abs() < 1e-3, "{}", tail.chance());
        }
    }

    #[test]
    fn measurements_without_noise_differ_or_do_not() {
        assert_eq!(difference(&[1.0; 3], &[2.0; 3]).chance(), 0.0);
        assert_eq!(difference(&[1.0; 3], &[1.0; 3]).chance(), 1.0);
        assert_eq!(Difference::of(&Summary::of(&[1.0]), &Summary::of(&[2.0; 3])), None);
    }

    #[test]
    fn of_many_tests_each_must_show_more() {
        assert_eq!(real(&[0.04], 0.05), [true]);
        assert_eq!(real(&[0.04, 0.5], 0.05), [false, false]);
        assert_eq!(real(&[0.04, 0.02], 0.05), [true, true]);
        assert_eq!(real(&[], 0.05), [] as [bool; 0]);
    }
}
