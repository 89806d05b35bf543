//! Rules about mutexes that are held at several places. Where threads wait for several mutexes at the same time, to free one alone
//! gains little. Nor does it gain much to free one place of a mutex that is held at many.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::case::{Candidate, Case, at};
use super::rule_table::{MIN_GAIN, SEVERAL_MUTEXES};
use crate::answers::mergeable::MutexWaits;
use crate::model::answers::Finding;
use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::model::sum::sum;
use crate::what_if::Change;
use crate::what_if::scenario::{Plan, Target};

/// The share of the waits for mutexes from which on one of them is what threads wait for.
const NEARLY_ALL: f64 = 0.9;

/// All places together are a finding where to free them gains more than to free each alone.
pub(super) fn drop_unless_together(candidates: &mut Vec<Candidate>, duration: u64) {
    let frees = |candidate: &Candidate, together: bool| {
        let plan = candidate.plan.as_ref().filter(|plan| plan.change == Change::LockFree);
        plan.is_some_and(|plan| matches!(plan.target, Target::Places(_)) == together)
    };
    let is_together = |candidate: &Candidate| frees(candidate, true);
    let alone = candidates.iter().filter(|candidate| frees(candidate, false));
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

    /// Of the places that mutexes are held at, `first` and those behind it, one at which another mutex is held than at `first`; the
    /// next one where that is not known.
    fn other_mutex<'p>(mutexes: &[MutexWaits<'_>], first: &Place, next: &[&'p Place]) -> Option<&'p Place> {
        let here = mutexes.iter().filter(|waits| waits.holders.contains(first));
        let here: BTreeSet<&Place> = here.flat_map(|waits| waits.holders.iter().copied()).collect();
        let other = next.iter().find(|place| !here.contains(**place));
        other.or(next.first()).copied()
    }

    /// All places at which mutexes are held that threads wait for, where there are several.
    pub(super) fn of_mutexes(&self) -> Option<Candidate> {
        let rows = self.part.blame.iter();
        let rows = rows.filter(|((cause, _), _)| cause.is_mutex());
        let mut rows: Vec<(u64, Cause, &Place)> =
            rows.map(|((cause, place), ns)| (*ns, *cause, place)).collect();
        rows.sort_unstable_by(|a, b| b.cmp(a));
        let [(_, cause, first), next @ ..] = &rows[..] else {
            return None;
        };
        let (cause, first) = (*cause, *first);
        let mutexes = self.part.mutexes();
        let mut longest: BTreeMap<&str, u64> = BTreeMap::new();
        for ((process, _), waits) in &mutexes {
            let longest = longest.entry(process).or_default();
            *longest = (*longest).max(waits.ns);
        }
        let all = sum(mutexes.values().map(|waits| waits.ns)) as f64;
        // Each process has its own.
        let is_one = all > 0.0 && sum(longest.into_values()) as f64 >= NEARLY_ALL * all;
        let mutexes: Vec<MutexWaits<'_>> = mutexes.into_values().collect();
        let next: Vec<&Place> = next.iter().map(|(.., place)| *place).collect();
        let second = Self::other_mutex(&mutexes, first, &next)?;
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
        let (at_first, at_second) = (at(first), at(second));
        let (id, text) = match is_one {
            true => (
                contention(cause),
                format!(
                    "threads wait for one mutex that is acquired in {} places, mostly {at_first} and {at_second}: hold this mutex for a shorter time in all these places, or use several mutexes",
                    rows.len()
                ),
            ),
            false => (
                SEVERAL_MUTEXES,
                format!(
                    "threads wait for several mutexes, mostly for those acquired {at_first} and {at_second}: do less work while holding any of these mutexes. Shortening the waits for only one of them would save little"
                ),
            ),
        };
        Some(Candidate::of(
            Finding {
                id: id.to_owned(),
                place: first.clone(),
                gain_ns: gain,
                text,
                evidence,
                instances: self.instances(cause, first),
            },
            Some(Plan {
                change: Change::LockFree,
                target: Target::Places(rows.iter().map(|(.., place)| (*place).clone()).collect()),
                text: "without waits for any mutex".to_owned(),
            }),
        ))
    }
}

/// The rule about a mutex that threads wait for.
fn contention(cause: Cause) -> &'static str {
    match cause {
        Cause::Lock => "lock_contention",
        Cause::Atomic => "atomic_contention",
        Cause::Ordered => "ordered_serialises",
        _ => "critical_contention",
    }
}
