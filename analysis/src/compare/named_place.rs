//! Places as users name them, as in `duration@solve.c:41>5%`, and the regions at these places.

use std::fmt;

use crate::model::accounting::Accounting;
use crate::model::answers::{Efficiency, RegionAnswer};
use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::model::sum::Sum;

/// Number of similar places that are suggested if no place has the user's name.
const MAX_NEAREST: usize = 3;
/// Number of a name's characters that are compared to find similar names.
const MAX_COMPARED: usize = 128;

/// A place as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamedPlace {
    /// A line of a file, which is named by its path or by the end of its path.
    Line(String, u32),
    /// A function.
    Function(String),
}

impl NamedPlace {
    /// Parses a place: `solve.c:41`; any other text is a function.
    pub(super) fn of(name: &str) -> NamedPlace {
        let line = name.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        match line {
            Some((file, line)) if !file.is_empty() => NamedPlace::Line(file.to_owned(), line),
            _ => NamedPlace::Function(name.to_owned()),
        }
    }

    /// Whether `place` has this name. The name of a function may lack its parameters.
    pub(super) fn is(&self, place: &Place) -> bool {
        match self {
            NamedPlace::Line(file, line) => place.line == Some(*line) && is_file(file, place),
            NamedPlace::Function(name) => {
                let rest = place.function.as_deref().and_then(|function| function.strip_prefix(&**name));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
            }
        }
    }

    /// The pairs of places that the name refers to. The name refers to places before: in the runs after, the same line
    /// may contain other code. Places that exist only after are matched by their own names.
    pub(super) fn select<'p>(&self, pairs: &[PairOfPlaces<'p>]) -> Vec<PairOfPlaces<'p>> {
        let is_before = |pair: &PairOfPlaces| pair.0.is_some_and(|place| self.is(place));
        let is_after = |pair: &PairOfPlaces| pair.1.is_some_and(|place| self.is(place));
        let has_before = pairs.iter().any(is_before);
        let is_new = |pair: &PairOfPlaces| {
            let is_of_function = pair.0.is_none() && matches!(self, NamedPlace::Function(_));
            is_after(pair) && (is_of_function || !has_before)
        };
        pairs.iter().filter(|pair| is_before(pair) || is_new(pair)).copied().collect()
    }

    /// The most similar places, in words.
    pub(super) fn nearest(&self, places: &[Place]) -> Vec<String> {
        const OTHER_FILE: u64 = 1 << 32;
        let distance = |place: &Place| match self {
            NamedPlace::Line(file, line) if is_file(file, place) => {
                u64::from(place.line.map_or(u32::MAX, |own| own.abs_diff(*line)))
            }
            NamedPlace::Line(file, _) => {
                OTHER_FILE + edits(file, place.file.as_deref().map(last).unwrap_or_default())
            }
            NamedPlace::Function(name) => edits(name, place.function.as_deref().unwrap_or_default()),
        };
        let mut rows: Vec<(u64, String)> = Vec::new();
        for place in places {
            let name = match &place.function {
                Some(function) if place.line.is_some() => format!("{} in {function}", place.short()),
                _ => place.short(),
            };
            rows.push((distance(place), name));
        }
        rows.sort();
        let mut names: Vec<String> = rows.into_iter().map(|(_, name)| name).collect();
        names.dedup();
        names.truncate(MAX_NEAREST);
        names
    }
}

impl fmt::Display for NamedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamedPlace::Line(file, line) => write!(f, "{file}:{line}"),
            NamedPlace::Function(name) => f.write_str(name),
        }
    }
}

/// A place before and after; `None` on the side that lacks it.
pub(super) type PairOfPlaces<'p> = (Option<&'p Place>, Option<&'p Place>);

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether the place's file has this path, or a path that ends with it.
fn is_file(name: &str, place: &Place) -> bool {
    let folders = place.file.as_deref().and_then(|path| path.strip_suffix(name));
    folders.is_some_and(|folders| folders.is_empty() || folders.ends_with('/'))
}

/// Number of characters to insert, delete or replace to turn one name into the other (Levenshtein distance).
fn edits(one: &str, other: &str) -> u64 {
    let other: Vec<char> = other.chars().take(MAX_COMPARED).collect();
    let mut row: Vec<u64> = (0..=other.len() as u64).collect();
    for letter in one.chars().take(MAX_COMPARED) {
        let mut diagonal = row[0];
        row[0] += 1;
        for (index, own) in other.iter().enumerate() {
            let replaced = diagonal + u64::from(letter != *own);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Adds up regions of a run; `None` if there are none.
pub(super) fn together(regions: &[&RegionAnswer]) -> Option<RegionAnswer> {
    let [first, more @ ..] = regions else {
        return None;
    };
    if more.is_empty() {
        return Some((*first).clone());
    }
    let (mut visits, mut duration_ns, mut accounting) = (0u64, 0u64, Accounting::default());
    for region in regions {
        visits = visits.saturating_add(region.visits);
        duration_ns.grow_by(region.duration_ns);
        accounting.merge(&region.accounting);
    }
    // Efficiencies are quotients: adds up their numerators and denominators, if known for all regions.
    let sum = |of: &dyn Fn(&RegionAnswer) -> Option<f64>| {
        let lasting = regions.iter().filter(|region| region.duration_ns > 0);
        lasting.map(|region| of(region)).sum::<Option<f64>>()
    };
    let busiest = |region: &RegionAnswer| Some(region.efficiency.communication? * region.duration_ns as f64);
    let even = sum(&|region| Some(busiest(region)? * region.efficiency.load_balance?));
    let path = sum(&|region| Some(region.efficiency.transfer? * region.duration_ns as f64));
    let (busiest, duration) = (sum(&busiest), Some(duration_ns as f64));
    let ratio = |part: Option<f64>, whole: Option<f64>| Some(part? / whole.filter(|whole| *whole > 0.0)?);
    Some(RegionAnswer {
        place: first.place.clone(),
        visits,
        duration_ns,
        accounting,
        efficiency: Efficiency {
            parallel: accounting.share(Cause::Useful),
            load_balance: ratio(even, busiest),
            communication: ratio(busiest, duration),
            serialisation: ratio(busiest, path),
            transfer: ratio(path, duration),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: u32, function: &str) -> Place {
        Place::at("!$omp parallel", Some("/src/lib/solve.c"), Some(line), Some(function))
    }

    #[test]
    fn lines_and_functions_are_places() {
        let solve = place(41, "ns::solve(int, double)");
        for name in
            ["solve.c:41", "lib/solve.c:41", "/src/lib/solve.c:41", "ns::solve", "ns::solve(int, double)"]
        {
            let named = NamedPlace::of(name);
            assert!(named.is(&solve), "{name}");
            assert_eq!(named.to_string(), name);
        }
        for name in ["solve.c:42", "olve.c:41", "solve", "ns::sol", "solve.c", ":41", ""] {
            assert!(!NamedPlace::of(name).is(&solve), "{name}");
        }
    }

    #[test]
    fn a_line_is_that_of_the_runs_before() {
        let (old, moved, new) = (place(41, "f"), place(50, "f"), place(41, "f"));
        let pairs = [(Some(&old), Some(&moved)), (None, Some(&new))];
        assert_eq!(NamedPlace::of("solve.c:41").select(&pairs), pairs[..1]);
        assert_eq!(NamedPlace::of("f").select(&pairs), pairs);
        assert_eq!(NamedPlace::of("solve.c:50").select(&pairs), pairs[..1]);
        assert!(NamedPlace::of("solve.c:42").select(&pairs).is_empty());
    }

    #[test]
    fn the_nearest_places_are_named() {
        let other = Place::at("!$omp parallel", Some("/src/main.c"), Some(42), Some("main"));
        let places = [other, place(10, "init"), place(41, "solve"), place(90, "solve")];
        let nearest = |name: &str| NamedPlace::of(name).nearest(&places).join(", ");
        assert_eq!(nearest("solve.c:42"), "solve.c:41 in solve, solve.c:10 in init, solve.c:90 in solve");
        assert!(nearest("man.c:42").starts_with("main.c:42 in main, "), "{}", nearest("man.c:42"));
        assert!(nearest("slove").starts_with("solve.c:41 in solve, "), "{}", nearest("slove"));
    }

    #[test]
    fn regions_are_added() {
        let region = |duration_ns: u64, busiest: f64| {
            let mut accounting = Accounting::default();
            accounting.add(Cause::Useful, 2 * duration_ns);
            accounting.add(Cause::Imbalance, 2 * duration_ns);
            let duration = duration_ns as f64;
            let efficiency = Efficiency {
                parallel: Some(0.5),
                load_balance: Some(0.5 * duration / busiest),
                communication: Some(busiest / duration),
                serialisation: Some(busiest / (0.9 * duration)),
                transfer: Some(0.9),
            };
            RegionAnswer { visits: 1, duration_ns, accounting, efficiency, ..RegionAnswer::default() }
        };
        let (one, other, empty) = (region(1000, 600.0), region(3000, 2400.0), RegionAnswer::default());
        let both = together(&[&one, &other, &empty]).expect("regions");
        assert_eq!((both.visits, both.duration_ns, both.accounting[Cause::Useful]), (2, 4000, 8000));
        let Efficiency { parallel, load_balance, communication, serialisation, transfer } = both.efficiency;
        for (value, right) in [
            (parallel, 0.5),
            (load_balance, 2000.0 / 3000.0),
            (communication, 3000.0 / 4000.0),
            (serialisation, 3000.0 / 3600.0),
            (transfer, 0.9),
        ] {
            assert!((value.expect("known") - right).abs() < 1e-9, "{value:?}, not {right}");
        }
        assert_eq!(together(&[&one]), Some(one));
        assert_eq!(together(&[]), None);
    }
}
