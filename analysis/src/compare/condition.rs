//! Conditions on a comparison, as in `parallel_efficiency<-3%,duration>5%`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::compare::metric::{Metric, Row};
use crate::compare::sample::real;

/// A change that must not be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    metric: Metric,
    is_above: bool,
    /// For times, of the duration before; for efficiencies, of 1.
    limit: f64,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let at = text.find(['<', '>']);
        let at = at.ok_or("write it as duration>5% or parallel_efficiency<-3%")?;
        let (name, limit) = text.split_at(at);
        let name = name.trim();
        let metric = Metric::all().find(|metric| metric.name() == name);
        let metric = metric.ok_or_else(|| {
            let names: Vec<&str> = Metric::all().map(Metric::name).collect();
            format!("\"{name}\" cannot be compared; allowed are {}", names.join(", "))
        })?;
        let percent = limit[1..].trim().strip_suffix('%').map(str::trim);
        let percent = percent.and_then(|percent| percent.parse::<f64>().ok());
        match percent.filter(|percent| percent.is_finite()) {
            Some(percent) => {
                Ok(Condition { metric, is_above: limit.starts_with('>'), limit: percent / 100.0 })
            }
            None => Err(format!("\"{}\" is no number of percent, as in -3%", &limit[1..])),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_above { '>' } else { '<' };
        // Percent of what was typed: no digits that only rounding makes.
        let percent = (self.limit * 1e8).round() / 1e6;
        write!(f, "{}{sign}{percent}%", self.metric.name())
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A condition that is not kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unmet {
    /// Which.
    pub condition: Condition,
    /// The change: for times, of the duration before; for efficiencies, of 1. `None` where a run has no such number.
    pub change: Option<f64>,
}

impl Unmet {
    /// The conditions that `rows` of whole runs break: the change is beyond the limit and, where repetitions show the noise,
    /// more than chance. A number that a run lacks breaks its condition, since nothing shows that it is kept.
    pub(crate) fn of(conditions: &[Condition], rows: &[Row], chance: f64) -> Vec<Unmet> {
        let duration = rows.iter().find(|row| row.metric == Metric::Duration);
        let duration = duration.map_or(0.0, |row| row.before.mean);
        let row = |condition: &Condition| rows.iter().find(|row| row.metric == condition.metric);
        let chances = conditions.iter().map(|condition| {
            let row = row(condition);
            // Without repetitions, what is measured counts.
            row.map_or(1.0, |row| row.chance.unwrap_or(0.0))
        });
        let real = real(&chances.collect::<Vec<f64>>(), chance);
        let broken = conditions.iter().zip(real).filter_map(|(condition, is_real)| {
            let change = match row(condition) {
                Some(row) if condition.metric.is_time() => row.difference / duration.max(1.0),
                Some(row) => row.difference,
                // No thread spent any time on it, before or after.
                None if condition.metric.is_time() => 0.0,
                None => {
                    return Some(Unmet { condition: *condition, change: None });
                }
            };
            let is_beyond =
                if condition.is_above { change > condition.limit } else { change < condition.limit };
            // A limit that no change at all is beyond is broken by no change, too.
            let is_broken = is_beyond && (is_real || condition.holds_without_change());
            is_broken.then_some(Unmet { condition: *condition, change: Some(change) })
        });
        broken.collect()
    }
}

impl Condition {
    /// Whether runs without any change are beyond the limit, as of `duration>-10%`, which wants it to be faster.
    fn holds_without_change(&self) -> bool {
        if self.is_above { 0.0 > self.limit } else { 0.0 < self.limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_written() {
        for text in ["duration>5%", "parallel_efficiency<-3%", "task_wait>0.25%"] {
            assert_eq!(text.parse::<Condition>().expect(text).to_string(), text);
        }
        assert!(" duration > 5 % ".parse::<Condition>().is_ok());
        for (text, words) in [
            ("duration", "write it as"),
            ("speed>5%", "\"speed\" cannot be compared"),
            ("duration>5", "\"5\" is no number"),
            ("duration>nan%", "\"nan%\" is no number"),
            ("", "write it as"),
        ] {
            let error = text.parse::<Condition>().expect_err(text);
            assert!(error.contains(words), "{error}");
        }
    }
}
