//! `--short`: instructions per event beside those in `tests/benches/baseline.json`.
//!
//! With `OMPTRACE_BLESS=1` the file is written instead. Read the difference before you commit it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::process::root;
use crate::result::Result;

use super::case::Case;
use super::instructions::Instructions;
use super::tools::{EMPTY, FLOOR};

/// By how much a figure may grow, and that of the floor shrink. The floor is no code of ours, so the measurement
/// changes it.
const TOLERANCE: f64 = 1.05;

/// Instructions per event on the program's thread, above the empty tool: by case, by tool.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Baseline {
    cases: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Baseline {
    /// Takes in the counts of a case, to a tenth: further digits differ from run to run.
    pub(super) fn add(&mut self, case: &Case<'_>, instructions: &BTreeMap<&'static str, Instructions>) {
        let of_case: BTreeMap<String, f64> = instructions
            .iter()
            .filter(|(tool, _)| **tool != EMPTY)
            .map(|(tool, count)| ((*tool).to_owned(), (count.program * 10.0).round() / 10.0))
            .collect();
        if !of_case.is_empty() {
            self.cases.insert(case.name(), of_case);
        }
    }

    fn get(&self, case: &str, tool: &str) -> Option<f64> {
        self.cases.get(case)?.get(tool).copied()
    }
}

fn path() -> PathBuf {
    root().join("tests/benches/baseline.json")
}

/// Prints the counts beside the stored ones, or stores them. All that are stored must have been counted, unless only some
/// `cases` were wanted.
///
/// # Errors
/// One grew by more than [`TOLERANCE`] allows, is not stored, or was not counted.
pub(super) fn compare(counted: &Baseline, cases: Cases) -> Result<()> {
    if std::env::var_os("OMPTRACE_BLESS").is_some_and(|value| value == "1") {
        fs::write(path(), serde_json::to_string_pretty(counted)? + "\n")?;
        println!("wrote {}", path().display());
        return Ok(());
    }
    let text = fs::read(path()).map_err(|error| format!("{}: {error}", path().display()))?;
    let stored: Baseline = serde_json::from_slice(&text)?;
    println!("instructions per event above the empty tool\n");
    println!("{:<14}{:<14}{:>8}{:>8}", "case", "tool", "now", "stored");
    let mut wrong = 0;
    for (case, tool, now, before) in rows(counted, &stored, cases) {
        let verdict = verdict(tool, now, before);
        wrong += u32::from(verdict.is_some());
        let [now, before] =
            [now, before].map(|count| count.map_or("-".into(), |count| format!("{count:.1}")));
        let mark = verdict.map_or(String::new(), |verdict| format!("  {verdict}"));
        println!("{case:<14}{tool:<14}{now:>8}{before:>8}{mark}");
    }
    match wrong {
        0 => Ok(()),
        _ => Err(format!(
            "{wrong} numbers differ from the stored ones; if this is intended, run the command again with OMPTRACE_BLESS=1"
        )
        .into()),
    }
}

/// Which cases were to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cases {
    All,
    Some,
}

/// Case and tool, and the counts now and before.
type Row<'a> = (&'a str, &'a str, Option<f64>, Option<f64>);

fn rows<'a>(counted: &'a Baseline, stored: &'a Baseline, cases: Cases) -> Vec<Row<'a>> {
    let of = |baseline: &'a Baseline| {
        let cases = baseline.cases.iter();
        cases.flat_map(|(case, tools)| tools.keys().map(|tool| (&case[..], &tool[..])))
    };
    let wanted = of(stored).filter(|_| cases == Cases::All);
    let keys: BTreeSet<(&str, &str)> = of(counted).chain(wanted).collect();
    let row = |(case, tool)| (case, tool, counted.get(case, tool), stored.get(case, tool));
    keys.into_iter().map(row).collect()
}

/// The fault of a count, if there is one.
fn verdict(tool: &str, now: Option<f64>, before: Option<f64>) -> Option<&'static str> {
    match (now, before) {
        (None, _) => Some("not counted"),
        (_, None) => Some("new"),
        (Some(now), _) if !now.is_finite() || now <= 0.0 => Some("no count"),
        (Some(now), Some(before)) if now > before * TOLERANCE => Some("grown"),
        (Some(now), Some(before)) if tool == FLOOR && now < before / TOLERANCE => Some("shrunk"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(text: &str) -> Baseline {
        serde_json::from_str(text).expect("a baseline")
    }

    #[test]
    fn what_is_stored_must_be_counted() {
        let stored = baseline(r#"{"a/1": {"floor": 20.0, "omptrace": 50.0}, "b/1": {"floor": 20.0}}"#);
        let counted = baseline(r#"{"a/1": {"floor": 20.0}, "c/1": {"floor": 9.0}}"#);
        let found = |cases| -> Vec<(&str, &str, Option<&str>)> {
            let rows = rows(&counted, &stored, cases).into_iter();
            rows.map(|(case, tool, now, before)| (case, tool, verdict(tool, now, before))).collect()
        };
        assert_eq!(
            found(Cases::All),
            [
                ("a/1", "floor", None),
                ("a/1", "omptrace", Some("not counted")),
                ("b/1", "floor", Some("not counted")),
                ("c/1", "floor", Some("new")),
            ]
        );
        assert_eq!(found(Cases::Some), [("a/1", "floor", None), ("c/1", "floor", Some("new"))]);
    }

    #[test]
    fn only_the_floor_must_not_shrink() {
        let of = |tool, now| verdict(tool, Some(now), Some(100.0));
        assert_eq!(of("omptrace", 104.9), None);
        assert_eq!(of("omptrace", 105.1), Some("grown"));
        assert_eq!(of("omptrace", 50.0), None);
        assert_eq!(of("omptrace", 0.0), Some("no count"));
        assert_eq!(of("omptrace", f64::NAN), Some("no count"));
        assert_eq!(of(FLOOR, 105.1), Some("grown"));
        assert_eq!(of(FLOOR, 96.0), None);
        assert_eq!(of(FLOOR, 95.0), Some("shrunk"));
    }
}
