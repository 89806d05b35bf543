//! The kinds of differences that are known, as data: `known.json` beside the sources.

use serde_json::{Value, json};

use crate::case::Case;
use crate::checker::Checker;
use crate::compare::Difference;
use crate::without::without;

/// How far a prediction is off at most that is scaled, as `docs/analysis.md` says of predictions that count.
const SCALED: f64 = 0.15;

/// A kind of difference that is known.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Known {
    /// What it is, in words.
    pub kind: String,
    pub field: String,
    /// Constructs that it needs. Without the first, the field must be right again.
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

    /// The kinds that may explain a difference of a case, by its constructs.
    pub fn candidates<'k>(known: &'k [Known], case: &Case, difference: &Difference) -> Vec<&'k Known> {
        known.iter().filter(|known| known.explains(case, difference)).collect()
    }

    /// Whether the kinds in `known` explain `difference`: the field must not differ in the case without what these need. So a kind that is
    /// not known does not hide behind one that is.
    pub fn explain(known: &[Known], checker: &Checker, case: &Case, difference: &Difference) -> bool {
        let mut case = case.clone();
        let mut differs = difference.clone();
        // Without one construct, another may come into view.
        for _ in 0..4 {
            let candidates = Known::candidates(known, &case, &differs);
            if candidates.is_empty() {
                return false;
            }
            let before = case.clone();
            for candidate in &candidates {
                let changed = candidate.needs.first().and_then(|first| without(&case, first));
                if let Some(changed) = changed.filter(|changed| changed.run().is_some()) {
                    case = changed;
                }
            }
            if case == before {
                // Nothing takes the place of what these kinds need.
                return is_scaled(&differs);
            }
            let Some(verdict) = checker.check(&case) else {
                return false;
            };
            match verdict.differences.into_iter().find(|of| of.field == difference.field) {
                None => return true,
                Some(still) => differs = still,
            }
        }
        false
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

    /// Whether `difference` is that of the list.
    pub fn is(&self, difference: &Difference) -> bool {
        difference.expected == self.expected && difference.shown == self.shown
    }
}

/// Whether a prediction is off by no more than scaling explains. Nothing excuses other fields.
fn is_scaled(difference: &Difference) -> bool {
    let number = |text: &str| text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    let most = difference.expected.split(' ').nth(2).unwrap_or_default();
    match (number(&difference.expected), number(most), number(&difference.shown)) {
        (Some(least), Some(most), Some(shown)) if difference.field.starts_with("other_threads.") => {
            shown >= (1.0 - SCALED) * least && shown <= (1.0 + SCALED) * most
        }
        _ => false,
    }
}
