//! The kinds of differences that are known, as data: `known.json` beside the sources.

use serde_json::{Value, json};

use crate::case::Case;
use crate::compare::Difference;

/// A kind of difference that is known.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Known {
    /// What it is, in words.
    pub kind: String,
    pub field: String,
    /// Constructs without which it does not occur.
    pub needs: Vec<String>,
    /// The smallest seed at which it was found.
    pub seed: u64,
    /// Its numbers there.
    pub expected: String,
    pub shown: String,
    /// The smallest program that it was shrunk to, as pseudo-code, with what differs there.
    pub program: Vec<String>,
}

impl Known {
    /// The list.
    ///
    /// # Panics
    /// The file is not a list of such kinds.
    pub fn all() -> Vec<Known> {
        let list: Value = serde_json::from_str(include_str!("../known.json")).expect("known.json is JSON");
        list.as_array().expect("a list").iter().map(Known::of).collect()
    }

    fn of(row: &Value) -> Known {
        let text =
            |field: &str| row[field].as_str().unwrap_or_else(|| panic!("no {field} in {row}")).to_owned();
        let needs = row["needs"].as_array().into_iter().flatten();
        Known {
            kind: text("kind"),
            field: text("field"),
            needs: needs.filter_map(Value::as_str).map(str::to_owned).collect(),
            seed: row["seed"].as_u64().unwrap_or(0),
            expected: text("expected"),
            shown: text("shown"),
            program: row["program"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Whether `difference` of `case` is of this kind.
    pub fn explains(&self, case: &Case, difference: &Difference) -> bool {
        let features = case.features();
        let is_field = difference.field == self.field
            || self.field.strip_suffix('*').is_some_and(|begin| difference.field.starts_with(begin));
        is_field && self.needs.iter().all(|need| features.contains(&need.as_str()))
    }

    /// It as a row of the list.
    pub fn row(&self) -> Value {
        json!({
            "kind": self.kind,
            "field": self.field,
            "needs": self.needs,
            "seed": self.seed,
            "expected": self.expected,
            "shown": self.shown,
            "program": self.program,
        })
    }

    /// Whether what is left of a case after shrinking is of this kind, and of no other that prompt ends explain.
    pub fn is_of(&self, small: &Case, difference: &Difference) -> bool {
        let is_prompt = !small.machine.reports_ends_late;
        self.explains(small, difference) && is_prompt == self.needs.iter().any(|need| need == "prompt ends")
    }

    /// Whether `difference` is that of the list.
    pub fn is(&self, difference: &Difference) -> bool {
        difference.expected == self.expected && difference.shown == self.shown
    }
}
