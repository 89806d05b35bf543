//! Conditions on a comparison, as in `parallel_efficiency<-3%,duration@solve.c:41>5%`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::compare::metric::{Metric, Row};
use crate::compare::named_place::NamedPlace;
use crate::compare::sample::real;

/// A change that makes the comparison fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub(super) metric: Metric,
    /// The regions that the condition is about; `None` for the whole run.
    pub(super) place: Option<NamedPlace>,
    is_above: bool,
    /// The limit. For times, a share of the duration before (of the run, or of the regions at the place); for
    /// efficiencies, absolute.
    limit: f64,
}

/// Conditions, separated by commas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions(pub Vec<Condition>);

impl FromStr for Conditions {
    type Err = String;

    fn from_str(text: &str) -> Result<Conditions, String> {
        let mut parts: Vec<String> = Vec::new();
        for part in text.split(',') {
            match parts.last_mut() {
                // Function names may contain commas, too.
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
        // Function names may contain these characters, too.
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
        // Rounds to the digits that the user typed.
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

/// A condition that is broken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unmet {
    /// The broken condition.
    pub condition: Condition,
    /// The change: for times, relative to the duration before; for efficiencies, absolute. `None` if a run lacks this
    /// number.
    pub change: Option<f64>,
}

/// The measurements that a condition is checked against.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The row of the condition's metric; `None` if a run lacks it, or if no thread spent any time on it.
    pub(crate) row: Option<Row>,
    /// The mean duration before, to which changes of times are relative; `None` if the runs before lack the region.
    pub(crate) duration_ns: Option<f64>,
}

impl Unmet {
    /// The broken conditions: those whose change exceeds the limit and, if repetitions show the noise, is more than
    /// chance. If a run lacks a number, its condition counts as broken, because nothing shows that it holds.
    pub(crate) fn of(conditions: &[Condition], measured: &[Measured], chance: f64) -> Vec<Unmet> {
        let chances = measured.iter().map(|measured| {
            // Without repetitions, the measured values are taken as exact.
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
                    // No thread spent any time on it before or after.
                    None if condition.metric.is_time() => Some(0.0),
                    None => None,
                };
                let Some(change) = change else {
                    return Some(unmet(None));
                };
                let is_beyond =
                    if condition.is_above { change > condition.limit } else { change < condition.limit };
                // If even no change at all exceeds the limit (see below), chance cannot excuse it.
                let is_broken = is_beyond && (is_real || condition.holds_without_change());
                is_broken.then(|| unmet(Some(change)))
            });
        broken.collect()
    }
}

impl Condition {
    /// Whether a run without any change breaks the condition: `duration>-10%` requires the program to get faster.
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
