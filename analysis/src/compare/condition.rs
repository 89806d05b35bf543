//! Conditions on a comparison, as in `parallel_efficiency<-3%,duration@solve.c:41>5%`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::compare::metric::{Metric, Row};
use crate::compare::named_place::NamedPlace;
use crate::compare::sample::real;

/// A change that must not be.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub(super) metric: Metric,
    /// The regions that it is about; `None` for the whole run.
    pub(super) place: Option<NamedPlace>,
    is_above: bool,
    /// For times, of the duration before, of the run or of the regions at the place; for efficiencies, of 1.
    limit: f64,
}

/// Conditions with commas between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions(pub Vec<Condition>);

impl FromStr for Conditions {
    type Err = String;

    fn from_str(text: &str) -> Result<Conditions, String> {
        let mut parts: Vec<String> = Vec::new();
        for part in text.split(',') {
            match parts.last_mut() {
                // Names of functions have commas, too.
                Some(last) if last.contains('@') && !last.trim_end().ends_with('%') => {
                    *last += ",";
                    *last += part;
                }
                _ => parts.push(part.to_owned()),
            }
        }
        let conditions: Result<Vec<Condition>, String> = parts.iter().map(|part| part.parse()).collect();
        conditions.map(Conditions)
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        // Names of functions have such signs, too.
        let at = text.rfind(['<', '>']);
        let at = at.ok_or(
            "write a condition as in duration>5%, parallel_efficiency<-3% or duration@solve.c:41>5%",
        )?;
        let (name, limit) = text.split_at(at);
        let (name, place) = match name.split_once('@') {
            Some((name, place)) => (name, Some(place.trim())),
            None => (name, None),
        };
        let name = name.trim();
        if place == Some("") {
            return Err(format!("write the location as FILE:LINE or FUNCTION, as in {name}@solve.c:41"));
        }
        let metric = Metric::all().find(|metric| metric.name() == name);
        let metric = metric.ok_or_else(|| {
            let names: Vec<&str> = Metric::all().map(Metric::name).collect();
            format!("\"{name}\" cannot be compared; choose one of: {}", names.join(", "))
        })?;
        let percent = limit[1..].trim().strip_suffix('%').map(str::trim);
        let percent = percent.and_then(|percent| percent.parse::<f64>().ok());
        match percent.filter(|percent| percent.is_finite()) {
            Some(percent) => {
                let place = place.map(NamedPlace::of);
                Ok(Condition { metric, place, is_above: limit.starts_with('>'), limit: percent / 100.0 })
            }
            None => Err(format!("\"{}\" is not a percentage such as -3%", &limit[1..])),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_above { '>' } else { '<' };
        // Percent of what was typed: no digits that only rounding makes.
        let percent = (self.limit * 1e8).round() / 1e6;
        f.write_str(self.metric.name())?;
        if let Some(place) = &self.place {
            write!(f, "@{place}")?;
        }
        write!(f, "{sign}{percent}%")
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

/// What was measured of what a condition is about.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The row of its metric; `None` where there is none in a run, or where no thread spent any time on it.
    pub(crate) row: Option<Row>,
    /// The mean duration before that times are compared with; `None` where what the condition is about was not there.
    pub(crate) duration_ns: Option<f64>,
}

impl Unmet {
    /// The conditions that what was measured for each breaks: the change is beyond the limit and, where repetitions show the
    /// noise, more than chance. A number that a run lacks breaks its condition, since nothing shows that it is kept.
    pub(crate) fn of(conditions: &[Condition], measured: &[Measured], chance: f64) -> Vec<Unmet> {
        let chances = measured.iter().map(|measured| {
            // Without repetitions, what is measured counts.
            measured.row.as_ref().map_or(1.0, |row| row.chance.unwrap_or(0.0))
        });
        let real = real(&chances.collect::<Vec<f64>>(), chance);
        let broken =
            conditions.iter().zip(measured).zip(real).filter_map(|((condition, measured), is_real)| {
                let unmet = |change| Unmet { condition: condition.clone(), change };
                let change = match &measured.row {
                    Some(row) if condition.metric.is_time() => {
                        measured.duration_ns.map(|duration| row.difference / duration.max(1.0))
                    }
                    Some(row) => Some(row.difference),
                    // No thread spent any time on it, before or after.
                    None if condition.metric.is_time() => Some(0.0),
                    None => None,
                };
                let Some(change) = change else {
                    return Some(unmet(None));
                };
                let is_beyond =
                    if condition.is_above { change > condition.limit } else { change < condition.limit };
                // A limit that no change at all is beyond is broken by no change, too.
                let is_broken = is_beyond && (is_real || condition.holds_without_change());
                is_broken.then(|| unmet(Some(change)))
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
        for text in [
            "duration>5%",
            "parallel_efficiency<-3%",
            "task_wait>0.25%",
            "duration@solve.c:41>5%",
            "imbalance@solve>5%",
            "load_balance@apply<std::pair<int, long>>(int)<-3%",
        ] {
            assert_eq!(text.parse::<Condition>().expect(text).to_string(), text);
        }
        assert!(" duration > 5 % ".parse::<Condition>().is_ok());
        for (text, words) in [
            ("duration", "write a condition as in"),
            ("speed>5%", "\"speed\" cannot be compared"),
            ("duration>5", "\"5\" is not a percentage"),
            ("duration>nan%", "\"nan%\" is not a percentage"),
            ("", "write a condition as in"),
            ("duration@>5%", "write the location as FILE:LINE"),
        ] {
            let error = text.parse::<Condition>().expect_err(text);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn commas_are_between_conditions_and_in_functions() {
        let text = "duration@f(int, int)>5%, load_balance<-3%,duration@a.c:4>1%";
        let conditions = text.parse::<Conditions>().expect(text).0;
        let words: Vec<String> = conditions.iter().map(Condition::to_string).collect();
        assert_eq!(words, ["duration@f(int, int)>5%", "load_balance<-3%", "duration@a.c:4>1%"]);
        assert!("duration>5,load_balance<-3%".parse::<Conditions>().is_err());
    }
}
