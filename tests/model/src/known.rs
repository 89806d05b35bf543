//! The kinds of differences that are known, as data: `known.json` beside the sources.

use serde_json::Value;

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
    /// The smallest seed and size at which it was found.
    pub seed: u64,
    pub size: usize,
    /// Its numbers there.
    pub expected: String,
    pub shown: String,
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
        let text = |field: &str| row[field].as_str().unwrap_or_else(|| panic!("no {field} in {row}")).to_owned();
        let needs = row["needs"].as_array().into_iter().flatten();
        Known {
            kind: text("kind"),
            field: text("field"),
            needs: needs.filter_map(Value::as_str).map(str::to_owned).collect(),
            seed: row["seed"].as_u64().unwrap_or(0),
            size: row["size"].as_u64().unwrap_or(0) as usize,
            expected: text("expected"),
            shown: text("shown"),
        }
    }

    /// Whether `difference` of `case` is of this kind.
    pub fn explains(&self, case: &Case, difference: &Difference) -> bool {
        let features = case.features();
        let is_field = difference.field == self.field
            || self.field.strip_suffix('*').is_some_and(|begin| difference.field.starts_with(begin));
        is_field && self.needs.iter().all(|need| features.contains(&need.as_str()))
    }

    /// Whether `difference` is that of the list.
    pub fn is(&self, difference: &Difference) -> bool {
        difference.expected == self.expected && difference.shown == self.shown
    }
}
