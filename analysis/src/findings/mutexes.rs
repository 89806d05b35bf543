//! A rule about several mutexes. Where threads wait for each of them at the same time, to free one alone gains little.

use serde_json::{Map, Value};

use super::case::{Candidate, Case, at};
use super::rules::{MIN_GAIN, SEVERAL_MUTEXES};
use crate::model::answers::Finding;
use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::model::sum::sum;
use crate::what_if::Change;
use crate::what_if::scenario::{Plan, Target};

/// Several mutexes are a finding where to free them together gains more than to free each alone.
pub(super) fn drop_unless_together(candidates: &mut Vec<Candidate>, duration: u64) {
    let is_together = |candidate: &Candidate| candidate.finding.id == SEVERAL_MUTEXES;
    let frees = |plan: &Plan| plan.change == Change::LockFree;
    let alone = candidates
        .iter()
        .filter(|candidate| candidate.plan.as_ref().is_some_and(frees) && !is_together(candidate));
    let alone = sum(alone.map(|candidate| candidate.finding.gain_ns));
    let min_gain = alone as f64 + MIN_GAIN * duration as f64;
    candidates.retain(|candidate| !is_together(candidate) || candidate.finding.gain_ns as f64 >= min_gain);
}

impl Case<'_> {
    /// The waits at barriers that work at the place caused. Who waits for a mutex late is late at the next barrier, too: that belongs to
    /// the mutex.
    pub(super) fn late(&self, place: &Place) -> u64 {
        let late = self.part.blame.get(&(Cause::Imbalance, place.clone()));
        late.copied().unwrap_or(0)
    }

    /// All mutexes that threads wait for, where there are several.
    pub(super) fn of_mutexes(&self) -> Option<Candidate> {
        let rows = self.part.blame.iter();
        let rows = rows.filter(|((cause, _), _)| cause.is_mutex());
        let mut rows: Vec<(u64, Cause, &Place)> =
            rows.map(|((cause, place), ns)| (*ns, *cause, place)).collect();
        rows.sort_unstable_by(|a, b| b.cmp(a));
        let [(_, cause, first), (_, _, second), ..] = rows[..] else {
            return None;
        };
        let lost = rows.iter().flat_map(|(ns, _, place)| [*ns, self.late(place)]);
        let lost = sum(lost);
        let gain = self.gain(lost);
        if !self.is_worth_it(gain) {
            return None;
        }
        let mut evidence = Map::new();
        evidence.insert("lost_ns".to_owned(), lost.into());
        evidence.insert("threads".to_owned(), self.threads.into());
        evidence.insert("places".to_owned(), Value::from(rows.len()));
        Some(Candidate {
            finding: Finding {
                id: SEVERAL_MUTEXES.to_owned(),
                place: first.clone(),
                gain_ns: gain,
                text: format!(
                    "threads wait for several mutexes, most for those held {} and {}: shorten the work in all of them, as one alone gains little",
                    at(first),
                    at(second)
                ),
                evidence,
                instances: self.instances(cause, first),
            },
            plan: Some(Plan {
                change: Change::LockFree,
                target: Target::Places(rows.iter().map(|(.., place)| (*place).clone()).collect()),
                text: "without waits for any mutex".to_owned(),
            }),
            min_gain: MIN_GAIN,
        })
    }
}
