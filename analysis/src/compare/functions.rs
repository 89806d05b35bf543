//! Pairs the functions of two sets of runs, by samples, with their times.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::compare::run::Run;
use crate::model::answers::FunctionName;

/// A function before and after; `None` on the side that lacks it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FunctionPair {
    /// The function before.
    pub before: Option<FunctionName>,
    /// The function after.
    pub after: Option<FunctionName>,
}

/// What identifies a function: its name, and its module's file name. The module's directory may differ between builds.
type Key = (String, String);

fn key(name: &FunctionName) -> Key {
    let module = name.module.rsplit('/').next().unwrap_or_default();
    (name.function.clone(), module.to_owned())
}

/// The functions of `runs`, and the time of each function in each run; `None` if a run was not sampled.
fn times(runs: &[Run]) -> Option<BTreeMap<Key, (FunctionName, Vec<u64>)>> {
    let mut times: BTreeMap<Key, (FunctionName, Vec<u64>)> = BTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        for function in run.functions.as_ref()? {
            let new = || (function.name.clone(), vec![0; runs.len()]);
            let (_, times) = times.entry(key(&function.name)).or_insert_with(new);
            times[number] = times[number].saturating_add(function.self_ns);
        }
    }
    Some(times)
}

/// A function and its own times in the runs of each set, in nanoseconds.
pub(super) type Times = (FunctionPair, Vec<u64>, Vec<u64>);

/// The functions of both sets; empty if a run was not sampled.
pub(super) fn of(before: &[Run], after: &[Run]) -> Vec<Times> {
    let (Some(mut old), Some(mut new)) = (times(before), times(after)) else {
        return Vec::new();
    };
    // A module may have another name in another build. Functions are matched across modules if exactly one module on
    // each side has the function.
    let renamed = |of: &BTreeMap<Key, _>, other: &BTreeMap<Key, _>| {
        let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (function, module) in of.keys().filter(|key| !other.contains_key(*key)) {
            let known = modules.entry(function.clone()).or_default();
            known.insert(module.clone());
        }
        modules.retain(|_, modules| modules.len() == 1);
        modules
    };
    let (gone, come) = (renamed(&old, &new), renamed(&new, &old));
    let mut pairs: Vec<(Option<Key>, Option<Key>)> = Vec::new();
    let only = |modules: &BTreeSet<String>| modules.first().cloned().unwrap_or_default();
    let mut moved = BTreeSet::new();
    for (function, modules) in gone {
        if let Some(module) = come.get(&function) {
            let was = (function.clone(), only(&modules));
            let is = (function, only(module));
            moved.extend([was.clone(), is.clone()]);
            pairs.push((Some(was), Some(is)));
        }
    }
    let keys: BTreeSet<Key> = old.keys().chain(new.keys()).cloned().collect();
    for key in keys.into_iter().filter(|key| !moved.contains(key)) {
        let of = |times: &BTreeMap<Key, _>| times.contains_key(&key).then(|| key.clone());
        pairs.push((of(&old), of(&new)));
    }
    let mut rows = Vec::new();
    for (was, is) in pairs {
        let (was, is) =
            (was.and_then(|key| old.remove(&key)).unzip(), is.and_then(|key| new.remove(&key)).unzip());
        let pair = FunctionPair { before: was.0, after: is.0 };
        // A run that does not reach a function spends no time there.
        let none = |runs: &[Run]| vec![0; runs.len()];
        rows.push((pair, was.1.unwrap_or_else(|| none(before)), is.1.unwrap_or_else(|| none(after))));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::run::FunctionTime;

    fn run(functions: &[(&str, &str, u64)]) -> Run {
        let time = |(function, module, self_ns): &(&str, &str, u64)| FunctionTime {
            name: FunctionName { function: (*function).to_owned(), module: (*module).to_owned(), file: None },
            self_ns: *self_ns,
        };
        Run { functions: Some(functions.iter().map(time).collect()), ..Run::default() }
    }

    fn shown(before: &[Run], after: &[Run]) -> Vec<(String, Vec<u64>, Vec<u64>)> {
        let rows = of(before, after).into_iter();
        let words = |name: Option<FunctionName>| match name {
            Some(name) => format!("{}:{}", name.module, name.function),
            None => "-".to_owned(),
        };
        rows.map(|(pair, old, new)| (words(pair.before) + " " + &words(pair.after), old, new)).collect()
    }

    #[test]
    fn functions_are_paired_by_name_and_module() {
        let before = [run(&[("f", "/old/app", 3), ("g", "/old/app", 1)]), run(&[("f", "/old/app", 4)])];
        let after = [run(&[("f", "/new/app", 5), ("h", "/new/app", 6), ("g", "/new/libg.so", 7)])];
        let rows = shown(&before, &after);
        let row = |words: &str, old: &[u64], new: &[u64]| (words.to_owned(), old.to_vec(), new.to_vec());
        assert_eq!(
            rows,
            [
                row("/old/app:g /new/libg.so:g", &[1, 0], &[7]),
                row("/old/app:f /new/app:f", &[3, 4], &[5]),
                row("- /new/app:h", &[0, 0], &[6]),
            ]
        );
    }

    #[test]
    fn runs_without_samples_have_no_functions_to_compare() {
        let sampled = run(&[("f", "app", 3)]);
        assert!(of(&[sampled], &[Run::default()]).is_empty());
    }
}
