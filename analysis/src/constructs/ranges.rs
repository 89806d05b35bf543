//! The tree of the ranges that the program named: how often each occurred, and how long it took, with and without inner
//! ranges.

use std::collections::{BTreeMap, BTreeSet};

use omptrace_timeline::model::{Folding, Ns};
use omptrace_trace_format::wildcards::match_name;
use serde::{Deserialize, Serialize};

/// Number of paths that are kept per process. A recursive program has a path per depth.
const MAX_PATHS: usize = 1 << 12;

/// A range's path: the names of the ranges around it, outermost first, and its own.
pub(crate) type Path = Vec<String>;

/// Sums over the instances of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSums {
    pub(crate) count: u64,
    pub(crate) total: u64,
    /// The time in inner ranges.
    pub(crate) inside: u64,
    squares: u128,
}

impl RangeSums {
    pub(crate) fn add(&mut self, ns: u64) {
        self.total = self.total.saturating_add(ns);
        self.squares = self.squares.saturating_add(u128::from(ns) * u128::from(ns));
    }

    /// Removes a part that was already added: it continues, and will be added as a whole.
    pub(crate) fn take_back(&mut self, ns: u64) {
        self.total = self.total.saturating_sub(ns);
        self.squares = self.squares.saturating_sub(u128::from(ns) * u128::from(ns));
    }

    fn merge(&mut self, other: RangeSums) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.inside = self.inside.saturating_add(other.inside);
        self.squares = self.squares.saturating_add(other.squares);
    }

    fn mean(self) -> u64 {
        self.total / self.count.max(1)
    }

    /// The standard deviation of the instances' durations.
    fn deviation(self) -> u64 {
        let count = self.count.max(1) as f64;
        let mean = self.total as f64 / count;
        (self.squares as f64 / count - mean * mean).max(0.0).sqrt().round() as u64
    }
}

/// A range: the sum of all instances with the same path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RangeStats {
    /// Its name.
    pub name: String,
    /// The ranges around it, outermost first.
    pub path: Vec<String>,
    /// How often it started.
    pub count: u64,
    /// The time of all instances, summed over all threads.
    pub total_ns: u64,
    /// The part of this time outside of inner ranges.
    pub self_ns: u64,
    /// The mean duration of an instance.
    pub mean_ns: u64,
    /// The standard deviation of the instances' durations.
    pub deviation_ns: u64,
}

/// The ranges of one process, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    pub(crate) sums: BTreeMap<Path, RangeSums>,
    /// By place of a construct: how often each range was the innermost one around it.
    pub(crate) owners: BTreeMap<String, BTreeMap<String, u64>>,
    /// The names of frames.
    pub(crate) frames: BTreeSet<String>,
    /// Which names are put together.
    pub(crate) folding: Folding,
}

impl Ranges {
    /// Adds the ranges of another process; associative and commutative.
    pub(crate) fn merge(&mut self, other: Ranges) {
        for (path, sums) in other.sums {
            self.sums.entry(path).or_default().merge(sums);
        }
        for (place, owners) in other.owners {
            let known = self.owners.entry(place).or_default();
            for (name, count) in owners {
                *known.entry(name).or_default() += count;
            }
        }
        self.frames.extend(other.frames);
        self.folding.merge(other.folding);
    }

    /// The sums of a path; `None` if there are too many paths.
    pub(crate) fn of(&mut self, path: &Path) -> Option<&mut RangeSums> {
        if !self.sums.contains_key(path) {
            if self.sums.len() >= MAX_PATHS {
                return None;
            }
            self.sums.insert(path.clone(), RangeSums::default());
        }
        self.sums.get_mut(path)
    }

    /// Merges ranges whose names differ only in numbers.
    pub(crate) fn folded(self, folding: &Folding) -> Ranges {
        let mut folded = Ranges { folding: folding.clone(), ..Ranges::default() };
        folded.folding.merge(self.folding);
        for (path, sums) in self.sums {
            let path: Path = path.iter().map(|name| folding.name(name)).collect();
            folded.sums.entry(path).or_default().merge(sums);
        }
        for (place, owners) in self.owners {
            let known = folded.owners.entry(place).or_default();
            for (name, count) in owners {
                *known.entry(folding.name(&name)).or_default() += count;
            }
        }
        folded.frames = self.frames.iter().map(|name| folding.name(name)).collect();
        folded
    }

    /// Whether there is no room for another path.
    pub(crate) fn are_full(&self) -> bool {
        self.sums.len() >= MAX_PATHS
    }

    /// The names of all ranges.
    pub(crate) fn names(&self) -> BTreeSet<&String> {
        self.sums.keys().filter_map(|path| path.last()).collect()
    }

    /// The range that is most often the innermost one around a place.
    pub(crate) fn owner(&self, place: &str) -> Option<&String> {
        let owners = self.owners.get(place)?;
        let most = owners.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)))?;
        Some(most.0)
    }

    /// The smallest number of ranges around any instance with this name.
    pub(crate) fn depth(&self, name: &str) -> Option<usize> {
        let paths = self.sums.keys().filter(|path| path.last().is_some_and(|last| last == name));
        paths.map(|path| path.len() - 1).min()
    }

    /// The rows of the tree: each range is followed by its inner ranges, longest first.
    pub(crate) fn rows(&self) -> Vec<RangeStats> {
        let mut rows = Vec::new();
        self.add_rows(&Path::new(), &mut rows);
        rows
    }

    fn add_rows(&self, around: &Path, rows: &mut Vec<RangeStats>) {
        let is_inside = |path: &&Path| path.len() == around.len() + 1 && path.starts_with(around);
        let mut inside: Vec<(&Path, &RangeSums)> = match around.is_empty() {
            true => self.sums.iter().filter(|(path, _)| is_inside(path)).collect(),
            false => {
                let behind = self.sums.range(around.clone()..);
                let below = behind.take_while(|(path, _)| path.starts_with(around));
                below.filter(|(path, _)| is_inside(path)).collect()
            }
        };
        inside.sort_by(|a, b| b.1.total.cmp(&a.1.total).then_with(|| a.0.cmp(b.0)));
        for (path, sums) in inside {
            rows.push(RangeStats {
                name: path.last().cloned().unwrap_or_default(),
                path: around.clone(),
                count: sums.count,
                total_ns: sums.total,
                self_ns: sums.total.saturating_sub(sums.inside),
                mean_ns: sums.mean(),
                deviation_ns: sums.deviation(),
            });
            self.add_rows(path, rows);
        }
    }
}

/// A selection of phases by the user.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    pattern: &'a str,
    /// The number of the selected instance, counted from 1.
    pub(crate) instance: Option<usize>,
}

impl<'a> Wanted<'a> {
    /// `NAME`, `DOMAIN/NAME`, a pattern with `*` and `?`, or one of these with `#3` after it.
    pub(crate) fn of(text: &'a str) -> Wanted<'a> {
        let instance = text.rsplit_once('#').and_then(|(name, number)| Some((name, number.parse().ok()?)));
        match instance {
            Some((pattern, number)) if number > 0 => Wanted { pattern, instance: Some(number) },
            _ => Wanted { pattern: text, instance: None },
        }
    }

    /// Whether the phase with this name is selected.
    pub(crate) fn is(&self, name: &str) -> bool {
        let without_domain = name.split_once('/').map_or(name, |(_, name)| name);
        [name, without_domain].iter().any(|name| match_name(self.pattern.as_bytes(), name.as_bytes()))
    }
}

/// An instance of a range, from start to end.
pub(crate) type Instance = (Ns, Ns);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_selected_by_domain_name_pattern_and_number() {
        let is = |wanted: &str, name: &str| Wanted::of(wanted).is(name);
        assert!(is("solver/step", "solver/step") && is("step", "solver/step") && is("s*p", "solver/step"));
        assert!(!is("ste", "solver/step") && !is("other/step", "solver/step"));
        assert!(is("step#3", "step"));
        assert_eq!((Wanted::of("step#3").instance, Wanted::of("step#x").instance), (Some(3), None));
        assert!(is("a#b", "a#b"));
    }

    #[test]
    fn the_tree_has_the_longest_first_and_what_is_inside_behind_it() {
        let mut ranges = Ranges::default();
        let mut add = |path: &[&str], total: u64, inside: u64| {
            let path: Path = path.iter().map(|name| (*name).to_owned()).collect();
            let sums = ranges.of(&path).expect("room");
            sums.count += 2;
            sums.add(total / 4);
            sums.add(total - total / 4);
            sums.inside = inside;
        };
        add(&["init"], 8, 0);
        add(&["loop"], 100, 60);
        add(&["loop", "axpy"], 20, 0);
        add(&["loop", "dot"], 40, 0);
        let rows: Vec<(usize, String, u64, u64, u64)> = ranges
            .rows()
            .into_iter()
            .map(|row| (row.path.len(), row.name, row.total_ns, row.self_ns, row.deviation_ns))
            .collect();
        let expected =
            [(0, "loop", 100, 40, 25), (1, "dot", 40, 40, 10), (1, "axpy", 20, 20, 5), (0, "init", 8, 8, 2)];
        let expected = expected
            .map(|(depth, name, total, own, deviation)| (depth, name.to_owned(), total, own, deviation));
        assert_eq!(rows, expected);
    }
}
