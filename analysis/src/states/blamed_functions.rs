//! The functions that other threads waited for, according to samples of the threads that caused the waits.
//!
//! ```text
//! blame of a cause at a place = waits caused by sampled functions + waits without samples
//! ```
//!
//! A sample blames its function for its CPU time, times the number of threads that waited when it was taken. This is a
//! statistical value, whereas the blame of the place is exact, so the sum over functions is limited to the latter.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::answers::{FunctionName, FunctionShare};
use crate::model::cause::Cause;
use crate::model::function_number::{ByFunction, FunctionNumber};
use crate::model::place::Place;
use crate::model::state_sums::SerialTimes;
use crate::model::sum::{Sum, sum};
use crate::summary::map_as_pairs;

/// Blamed time of a process by cause, place and function, not yet limited.
#[derive(Debug, Default)]
pub(crate) struct ByCause(BTreeMap<(Cause, Place), BTreeMap<FunctionNumber, f64>>);

/// Blamed time by cause, place and function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Functions {
    /// At least one sample was taken.
    pub(crate) has_samples: bool,
    #[serde(with = "map_as_pairs")]
    of: BTreeMap<(Cause, Place, FunctionName), u64>,
    /// CPU time of each function without its callees.
    #[serde(with = "map_as_pairs")]
    pub(crate) times: BTreeMap<FunctionName, SerialTimes>,
    /// CPU time of flushes (true) or lock tests (false), by calling function.
    #[serde(with = "map_as_pairs")]
    pub(crate) spins: BTreeMap<(FunctionName, bool), u64>,
}

impl ByCause {
    pub(crate) fn add(&mut self, key: (Cause, Place), shares: impl Iterator<Item = (FunctionNumber, f64)>) {
        let known = self.0.entry(key).or_default();
        for (function, weight) in shares {
            *known.entry(function).or_default() += weight;
        }
    }

    /// The blamed time, limited to `blame` for each cause and place.
    pub(crate) fn limited(
        self,
        blame: &BTreeMap<(Cause, Place), u64>,
        names: &[FunctionName],
        has_samples: bool,
    ) -> Functions {
        let limited = self.0.into_iter().flat_map(|(key, weights)| {
            let whole = blame.get(&key).copied().unwrap_or(0);
            let rows = limit(whole, weights, names).into_iter();
            rows.map(move |(name, ns)| ((key.0, key.1.clone(), name), ns))
        });
        Functions { has_samples, of: limited.collect(), ..Functions::default() }
    }
}

/// Scales or cuts the time of functions so that it does not exceed `whole`.
fn limit(
    whole: u64,
    weights: BTreeMap<FunctionNumber, f64>,
    names: &[FunctionName],
) -> BTreeMap<FunctionName, u64> {
    let sum: f64 = weights.values().sum();
    let scale = match sum > whole as f64 {
        true => whole as f64 / sum,
        false => 1.0,
    };
    let mut rest = whole;
    let mut limited = BTreeMap::<_, u64>::new();
    for (function, weight) in weights {
        let ns = ((weight * scale) as u64).min(rest);
        if let Some(name) = names.get(function as usize).filter(|_| ns > 0) {
            rest -= ns;
            limited.entry(name.clone()).or_default().grow_by(ns);
        }
    }
    limited
}

/// CPU time by function, limited to `whole`.
pub(crate) fn within(whole: u64, times: ByFunction, names: &[FunctionName]) -> BTreeMap<FunctionName, u64> {
    let times = times.into_iter();
    let weights = times.map(|(function, ns)| (function, ns as f64));
    limit(whole, weights.collect(), names)
}

impl Functions {
    pub(crate) fn merge(&mut self, other: Functions) {
        self.has_samples |= other.has_samples;
        for (name, times) in other.times {
            self.add_times(name, times);
        }
        for (key, ns) in other.spins {
            self.add_spins(key, ns);
        }
        for (key, ns) in other.of {
            self.of.entry(key).or_default().grow_by(ns);
        }
    }

    pub(crate) fn add_spins(&mut self, key: (FunctionName, bool), ns: u64) {
        let known = self.spins.entry(key).or_default();
        *known = known.saturating_add(ns);
    }

    pub(crate) fn add_times(&mut self, name: FunctionName, times: SerialTimes) {
        let known = self.times.entry(name).or_default();
        known.serial_ns = known.serial_ns.saturating_add(times.serial_ns);
        known.other_ns = known.other_ns.saturating_add(times.other_ns);
    }

    /// The functions of a row of blame, largest time first, and the part of `ns` that no function accounts for.
    pub(crate) fn of_row(&self, cause: Cause, place: &Place, ns: u64) -> (Vec<FunctionShare>, Option<u64>) {
        let first = (cause, place.clone(), FunctionName::default());
        let rows = self.of.range(first..);
        let rows = rows.take_while(|((of, at, _), _)| *of == cause && at == place);
        self.shares(ns, rows.map(|((_, _, name), ns)| (name, *ns)))
    }

    /// `rows` as shares, largest first, and the part of `whole` that they do not cover.
    pub(crate) fn shares<'f>(
        &self,
        whole: u64,
        rows: impl Iterator<Item = (&'f FunctionName, u64)>,
    ) -> (Vec<FunctionShare>, Option<u64>) {
        let mut shares: Vec<FunctionShare> =
            rows.map(|(name, ns)| FunctionShare { name: name.clone(), ns }).collect();
        shares.sort_by_key(|share| Reverse(share.ns));
        let named = sum(shares.iter().map(|share| share.ns));
        let unnamed = whole.saturating_sub(named);
        (shares, self.has_samples.then_some(unnamed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<FunctionName> {
        let name = |name: &str| FunctionName { function: name.to_owned(), ..FunctionName::default() };
        ["work", "wait"].map(name).to_vec()
    }

    #[test]
    fn functions_have_no_more_than_the_whole() {
        let place = Place::default();
        let key = (Cause::Lock, place.clone());
        for (weights, expected, unnamed) in
            [([30.0, 10.0], [30, 10], 60), ([300.0, 100.0], [75, 25], 0), ([0.0, 0.5], [0, 0], 100)]
        {
            let mut by_cause = ByCause::default();
            by_cause.add(key.clone(), (0..).zip(weights));
            let blame = BTreeMap::from([(key.clone(), 100)]);
            let functions = by_cause.limited(&blame, &names(), true);
            let (shares, rest) = functions.of_row(Cause::Lock, &place, 100);
            let of = |name: &str| {
                let mut shares = shares.iter();
                let share = shares.find(|share| share.name.function == name);
                share.map_or(0, |share| share.ns)
            };
            assert_eq!([of("work"), of("wait")], expected);
            assert_eq!(rest, Some(unnamed));
        }
    }

    #[test]
    fn nothing_is_said_of_functions_without_samples() {
        let functions = ByCause::default().limited(&BTreeMap::new(), &names(), false);
        let (shares, rest) = functions.of_row(Cause::Lock, &Place::default(), 100);
        assert_eq!((shares.len(), rest), (0, None));
    }
}
