//! Rules about devices: kernels, operations on data, and whether both happen at once.

use serde_json::Map;

use super::case::{Candidate, Case, at};
use super::rule_table::{MIN_KERNEL_NS, MIN_OP_BYTES, MIN_OVERLAP, MIN_TARGETS};
use crate::answers::mergeable::{Overlap, PlaceSums};
use crate::model::answers::Finding;
use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::what_if::Change;
use crate::what_if::scenario::{Plan, Target};

impl Case<'_> {
    /// Whether it is one of many operations on data at its line, which are small.
    pub(super) fn is_small_op(&self, sums: &PlaceSums) -> bool {
        sums.is_data_op && self.small_ops(&sums.spot).is_some()
    }

    /// The operations on data there, where they are many and small: their number and mean size.
    fn small_ops(&self, spot: &str) -> Option<(u64, u64)> {
        let same = self.data_ops_at(spot);
        let (mut count, mut sized, mut bytes) = (0, 0, 0_u64);
        for (_, sums) in same {
            count += sums.data_ops;
            sized += sums.sized_ops;
            bytes = bytes.saturating_add(sums.bytes);
        }
        let mean = bytes.checked_div(sized)?;
        (count >= MIN_TARGETS && mean < MIN_OP_BYTES).then_some((count, mean))
    }

    fn data_ops_at<'a>(&'a self, spot: &'a str) -> impl Iterator<Item = (&'a Place, &'a PlaceSums)> {
        let places = self.part.places.iter();
        places.filter(move |(_, sums)| sums.is_data_op && sums.spot == spot)
    }

    /// Many small operations on a device's data, by line: allocations, transfers, deletions.
    pub(super) fn of_data_ops(&self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let places = self.part.places.iter();
        for (place, sums) in places.filter(|(_, sums)| sums.is_data_op) {
            let Some((count, mean)) = self.small_ops(&sums.spot) else {
                continue;
            };
            let lost = |place: &Place| self.part.blame.get(&(Cause::Target, place.clone()));
            let mut same: Vec<(u64, &Place)> = self
                .data_ops_at(&sums.spot)
                .map(|(place, _)| (lost(place).copied().unwrap_or(0), place))
                .collect();
            same.sort_unstable_by(|a, b| b.cmp(a));
            // All of a line are one finding, named by the longest.
            let gain: u64 = same.iter().map(|(ns, _)| ns).sum();
            if same.first().is_none_or(|(_, first)| *first != place) || !self.is_much(gain) {
                continue;
            }
            let places: Vec<Place> = same.iter().map(|(_, place)| (*place).clone()).collect();
            let mut evidence = Map::new();
            evidence.insert("operations".to_owned(), count.into());
            evidence.insert("mean_bytes".to_owned(), mean.into());
            evidence.insert("lost_ns".to_owned(), gain.into());
            candidates.push(Candidate::of(Finding {
                    id: "small_transfers".to_owned(),
                    place: place.clone(),
                    gain_ns: gain,
                    text: format!(
                        "{count} transfers or allocations {} average only {mean} bytes: map the data once, with a target data construct around this code, and combine small transfers into larger ones",
                        at(place)
                    ),
                    evidence,
                    instances: self.instances(Cause::Target, place),
                }, Some(Plan {
                    change: Change::Without(Cause::Target),
                    target: Target::Places(places),
                    text: "without operations on device data".to_owned(),
                })));
        }
        candidates
    }

    /// Transfers that could be made while kernels run.
    pub(super) fn of_device(&self, device: &Overlap) -> Option<Candidate> {
        let shorter = device.kernels_ns.min(device.transfers_ns);
        // Nobody gains what nobody waits for.
        let gain = shorter.saturating_sub(device.both_ns);
        let gain = gain.min(self.part.accounting[Cause::Target]);
        let is_overlapped = device.both_ns as f64 >= MIN_OVERLAP * shorter as f64;
        if is_overlapped || !self.is_much(gain) {
            return None;
        }
        let waits = self.part.blame.iter();
        let waits = waits.filter(|((cause, _), _)| *cause == Cause::Target);
        let is_data_op = |place| self.part.places.get(place).is_some_and(|sums| sums.is_data_op);
        let longest = waits.max_by_key(|((_, place), ns)| (is_data_op(place), **ns));
        let ((_, place), _) = longest?;
        let mut evidence = Map::new();
        evidence.insert("process".to_owned(), device.process.clone().into());
        evidence.insert("device".to_owned(), device.device_num.into());
        evidence.insert("kernels_ns".to_owned(), device.kernels_ns.into());
        evidence.insert("transfers_ns".to_owned(), device.transfers_ns.into());
        evidence.insert("overlap_ns".to_owned(), device.both_ns.into());
        Some(Candidate::of(
            Finding {
                id: "transfers_not_overlapped".to_owned(),
                place: place.clone(),
                gain_ns: gain,
                text: format!(
                    "device {} transfers data while no kernel runs: split the work {} into several target constructs with nowait and depend clauses",
                    device.device_num,
                    at(place)
                ),
                evidence,
                instances: self.instances(Cause::Target, place),
            },
            None,
        ))
    }
}

/// Whether a target construct's kernels are many and short.
pub(super) fn is_small_kernel(sums: &PlaceSums) -> bool {
    let mean = sums.kernels_ns.checked_div(sums.timed_kernels);
    sums.kernels >= MIN_TARGETS && mean.is_some_and(|mean| mean < MIN_KERNEL_NS)
}
