//! Compares useful time by place. If the same work takes more useful time, the reason may be false sharing, atomic
//! updates, limited memory bandwidth or slower CPUs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::compare::pairs::pairs;
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

/// The useful time of each place that both sets have, and of new constructs.
pub(super) fn by_place(before: &[&Run], after: &[&Run]) -> Vec<AtPlace> {
    // JSON contains only the useful time of regions, which is a different sum.
    let is_known = before.iter().chain(after).all(|run| !run.answers.useful.is_empty());
    let (old, new) = (times(before, is_known), times(after, is_known));
    let places = |times: &BTreeMap<Place, Vec<f64>>| times.keys().cloned().collect::<Vec<Place>>();
    let (old_places, new_places) = (places(&old), places(&new));
    let rows = pairs(&old_places, &new_places).into_iter().filter_map(|(was, is)| {
        let place = new_places[is?].clone();
        // Serial code is named after the regions around it, so it may only have got another name.
        if was.is_none() && place.is_serial() {
            return None;
        }
        let before = was.map_or_else(|| vec![0.0; before.len()], |was| old[&old_places[was]].clone());
        Some(AtPlace { before, after: new[&place].clone(), place })
    });
    rows.collect()
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
