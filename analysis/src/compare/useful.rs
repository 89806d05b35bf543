//! Compares useful time by place. If the same work takes more useful time, the reason may be false sharing, atomic
//! updates, limited memory bandwidth or slower CPUs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::compare::pairs::{Pair, pairs};
use crate::compare::run::Run;
use crate::model::cause::Cause;
use crate::model::place::Place;

/// A place whose useful time grows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UsefulGrowth {
    /// The place after; its line before may differ.
    #[serde(flatten)]
    pub place: Place,
    /// Useful time at this place before, as the mean of the runs: the sum over all threads, or with `scaling --weak`,
    /// per thread.
    pub before_ns: u64,
    /// The same after.
    pub after_ns: u64,
}

/// The useful time of a place in each run of both sets.
#[derive(Debug)]
pub(super) struct AtPlace {
    pub(super) place: Place,
    pub(super) before: Vec<f64>,
    pub(super) after: Vec<f64>,
}

/// The useful time of each place that both sets have, and of new constructs. Growth that is only another attribution of
/// the same work is left out: see [`Attributed`].
pub(super) fn by_place(before: &[&Run], after: &[&Run]) -> Vec<AtPlace> {
    // JSON contains only the useful time of regions, which is a different sum.
    let is_known = before.iter().chain(after).all(|run| !run.answers.useful.is_empty());
    let (old, new) = (times(before, is_known), times(after, is_known));
    let places = |times: &BTreeMap<Place, Vec<f64>>| times.keys().cloned().collect::<Vec<Place>>();
    let (old_places, new_places) = (places(&old), places(&new));
    let pairs = pairs(&old_places, &new_places);
    let attributed = Attributed::of(&pairs, &old, &new);
    let rows = pairs.into_iter().filter_map(|(was, is)| {
        let place = new_places[is?].clone();
        // Serial code is named after the regions around it, so it may only have got another name.
        if was.is_none() && place.is_serial() {
            return None;
        }
        let before = was.map_or_else(|| vec![0.0; before.len()], |was| old[&old_places[was]].clone());
        let row = AtPlace { before, after: new[&place].clone(), place };
        (!attributed.is_same_work(&row)).then_some(row)
    });
    rows.collect()
}

/// Functions with a construct that only one of the sets has. There, the work of this construct belongs to another one in
/// the other set, such as the surrounding `parallel`. For example, GCC's static loops are not visible, but dynamic ones
/// are.
#[derive(Debug, Default)]
struct Attributed {
    /// The mean useful time of each such function, by its name, before and after.
    functions: BTreeMap<Option<String>, [f64; 2]>,
}

impl Attributed {
    fn of(pairs: &[Pair], old: &BTreeMap<Place, Vec<f64>>, new: &BTreeMap<Place, Vec<f64>>) -> Attributed {
        let places = [old.keys().collect::<Vec<_>>(), new.keys().collect::<Vec<_>>()];
        let mut functions = BTreeMap::new();
        for (was, is) in pairs {
            let alone = match (was, is) {
                (Some(was), None) => places[0][*was],
                (None, Some(is)) => places[1][*is],
                _ => continue,
            };
            functions.insert(alone.function.clone(), [0.0; 2]);
        }
        for (side, times) in [old, new].into_iter().enumerate() {
            for (place, times) in times {
                if let Some(sums) = functions.get_mut(&place.function) {
                    sums[side] += mean(times);
                }
            }
        }
        Attributed { functions }
    }

    /// Whether most of the growth at a place is no growth of its function.
    fn is_same_work(&self, row: &AtPlace) -> bool {
        let growth = mean(&row.after) - mean(&row.before);
        let function = self.functions.get(&row.place.function);
        function.is_some_and(|[before, after]| after - before < growth / 2.0)
    }
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

/// The useful time of each place in each run. `is_known`: for all places, otherwise only for regions.
fn times(runs: &[&Run], is_known: bool) -> BTreeMap<Place, Vec<f64>> {
    let mut times: BTreeMap<Place, Vec<f64>> = BTreeMap::new();
    let mut add = |place: &Place, number: usize, ns: u64| {
        let times = times.entry(place.clone()).or_insert_with(|| vec![0.0; runs.len()]);
        times[number] += ns as f64;
    };
    for (number, run) in runs.iter().enumerate() {
        match is_known {
            true => run.answers.useful.iter().for_each(|row| add(&row.place, number, row.ns)),
            false => {
                let regions = run.answers.regions.iter();
                regions.for_each(|region| add(&region.place, number, region.accounting[Cause::Useful]));
            }
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::answers::{Answers, UsefulAt};

    fn run(places: &[(&str, u32, u64)]) -> Run {
        let useful = places.iter().map(|(construct, line, ms)| UsefulAt {
            place: Place::at(construct, Some("a.c"), Some(*line), Some("main")),
            ns: ms * 1_000_000,
        });
        Run { answers: Answers { useful: useful.collect(), ..Answers::default() }, ..Run::default() }
    }

    /// The constructs whose useful time grows.
    fn grown(before: &[(&str, u32, u64)], after: &[(&str, u32, u64)]) -> Vec<String> {
        let rows = by_place(&[&run(before)], &[&run(after)]);
        let grown = rows.into_iter().filter(|row| mean(&row.after) > mean(&row.before));
        grown.map(|row| row.place.long()).collect()
    }

    #[test]
    fn work_of_a_construct_that_was_invisible_before_does_not_grow() {
        let (invisible, visible) =
            ([("!$omp parallel", 28, 446)], [("!$omp parallel", 26, 1), ("!$omp for", 26, 447)]);
        assert_eq!(grown(&invisible, &visible), [""; 0]);
        assert_eq!(grown(&visible, &invisible), [""; 0]);
        // Here, the loop does more work than the region did.
        let more = [("!$omp parallel", 26, 1), ("!$omp for", 26, 1000)];
        assert_eq!(grown(&invisible, &more), ["for @a.c:26"]);
        // The constructs are the same, so each has its own work.
        let other = [("!$omp parallel", 26, 100), ("!$omp for", 26, 348)];
        assert_eq!(grown(&visible, &other), ["parallel @a.c:26"]);
    }
}
