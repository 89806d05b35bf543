//! What rules are applied to, and what they give.

use serde_json::{Map, Value};

use crate::answers::mergeable::MergeableAnswers;
use crate::model::answers::{Finding, Moment};
use crate::model::cause::Cause;
use crate::model::place::{Place, Position};
use crate::what_if::Change;
use crate::what_if::scenario::{Plan, Target};

use super::rule_table::MIN_GAIN;

/// The facts that rules are applied to.
pub(crate) struct Case<'a> {
    pub(crate) part: &'a MergeableAnswers,
    pub(crate) threads: u64,
    pub(crate) duration: u64,
}

/// A finding as the sums show it, and the replay that shows what it would gain.
pub(crate) struct Candidate {
    pub(crate) finding: Finding,
    pub(crate) plan: Option<Plan>,
    /// The replay of what else may help.
    pub(crate) other_plan: Option<Plan>,
    /// The share of the wall time that it must gain.
    pub(crate) min_gain: f64,
    /// What it gains whatever the replay shows.
    pub(crate) gain_at_least: u64,
    /// What it gains at most: a replay may also show what other places would gain.
    pub(crate) gain_at_most: u64,
    /// The findings whose advice does not help where this one is true.
    pub(crate) overrules: Option<Overrules>,
}

/// Findings about the same loss as another one.
#[derive(Debug)]
pub(crate) struct Overrules {
    pub(crate) rules: &'static [&'static str],
    /// The outermost region whose waits the other finding explains, or a loop.
    pub(crate) place: Place,
}

impl Candidate {
    /// One that has the usual gain, or that which the replay of a plan shows.
    pub(crate) fn of(finding: Finding, plan: Option<Plan>) -> Candidate {
        Candidate {
            finding,
            plan,
            other_plan: None,
            min_gain: MIN_GAIN,
            gain_at_least: 0,
            gain_at_most: u64::MAX,
            overrules: None,
        }
    }
}

impl Case<'_> {
    /// Lost thread time as wall time: what all threads lose together, each gains.
    pub(crate) fn gain(&self, ns: u64) -> u64 {
        ns / self.threads.max(1)
    }

    pub(crate) fn is_worth_it(&self, gain: u64) -> bool {
        self.threads > 1 && self.is_much(gain)
    }

    /// Like [`Case::is_worth_it`], also of what a single thread waits for.
    pub(crate) fn is_much(&self, gain: u64) -> bool {
        gain as f64 >= MIN_GAIN * self.duration as f64
    }

    pub(crate) fn instances(&self, cause: Cause, place: &Place) -> Vec<Moment> {
        let known = self.part.instances.get(&(cause, place.clone()));
        let moments = known.into_iter().flatten();
        moments.map(|(_, moment)| moment.clone()).collect()
    }
}

/// A finding without worst instances.
pub(crate) fn finding(
    id: &str,
    place: Place,
    gain_ns: u64,
    text: String,
    figures: &[(&str, u64)],
) -> Finding {
    Finding { id: id.to_owned(), place, gain_ns, text, evidence: evidence(figures), instances: Vec::new() }
}

/// The figures that a finding rests on.
pub(crate) fn evidence(figures: &[(&str, u64)]) -> Map<String, Value> {
    let figures = figures.iter();
    figures.map(|(name, figure)| ((*name).to_owned(), Value::from(*figure))).collect()
}

/// A place in words: `at jacobi.c:41`, `near jacobi.c:41`.
pub fn at(place: &Place) -> String {
    if let Some(beside) = place.beside_region() {
        return beside;
    }
    match (place.source(), &place.function) {
        (Some(source), _) => format!("at {source}"),
        _ if place.position == Some(Position::Inside) => format!("\"{}\"", place.long()),
        _ if place.position == Some(Position::Near) => place.near().unwrap_or_else(|| place.long()),
        (None, Some(function)) => format!("in {function}"),
        (None, None) => format!("\"{}\"", place.construct_name()),
    }
}

/// The replay without what the region at `place` costs to begin and to end.
pub(super) fn without_region_cost(place: &Place) -> Plan {
    Plan {
        change: Change::RegionsFree,
        target: Target::Place(place.clone()),
        text: "without the cost of starting and ending the region".to_owned(),
    }
}
