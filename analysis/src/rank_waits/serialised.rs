//! Waits for messages that a rank sends or receives only after it has waited for a message itself.
//!
//! ```text
//! rank 0  send ------------------------
//! rank 1  [wait  ] work send ----------
//! rank 2  [wait             ] work send
//! ```
//!
//! If each rank sent its message before it waits, no rank would wait for longer than the first one does. So of the wait
//! of rank 2, the part since rank 1 began its own wait could be avoided.

use std::collections::{BTreeMap, BTreeSet};

use omptrace_timeline::WaitKind;

use crate::model::sum::Sum as _;
use crate::rank_waits::call_waits::SerialisedWaits;
use crate::rank_waits::charge::{Job, Wait};

/// The awaited rank must wait for at least one part in so many of the wait.
const MIN_SHARE: u64 = 10;

impl Wait {
    /// Whether the wait is for a message.
    fn is_for_message(&self) -> bool {
        matches!(
            self.kind,
            WaitKind::LateSender | WaitKind::WrongOrder | WaitKind::LateReceiver | WaitKind::Several
        )
    }
}

impl Job {
    /// The serialised waits, by rank, awaited rank and call, and the number of ranks that take part in them.
    pub(super) fn serialised(&self) -> (Vec<SerialisedWaits>, usize) {
        let mut sums: BTreeMap<(u32, u32, u32), (u64, u64, u64)> = BTreeMap::new();
        let mut ranks: BTreeSet<u32> = BTreeSet::new();
        for ((rank, _), waits) in &self.waits {
            for wait in waits.iter().filter(|wait| wait.is_for_message()) {
                let Some(before) = self.wait_before(*rank, wait) else { continue };
                let since = before.begin.max(wait.begin);
                let (count, ns, avoidable) = sums.entry((*rank, wait.of.0, wait.place)).or_default();
                *count += u64::from(wait.is_first);
                ns.grow_by(wait.begin.abs_diff(wait.end));
                avoidable.grow_by(since.abs_diff(wait.end));
                ranks.extend([*rank, wait.of.0, before.of.0]);
            }
        }
        let rows =
            sums.into_iter().map(|((rank, waits_for, place), (count, ns, avoidable_ns))| SerialisedWaits {
                rank,
                waits_for,
                place: self.places[place as usize].clone(),
                count,
                ns,
                avoidable_ns,
            });
        (rows.collect(), ranks.len())
    }

    /// The last wait of the awaited thread before it ended `wait`, if this was a wait for a message of a third rank that
    /// took up a part of `wait`.
    fn wait_before(&self, rank: u32, wait: &Wait) -> Option<&Wait> {
        let waits = self.waits.get(&wait.of)?;
        let before = waits.partition_point(|it| it.begin < wait.end).checked_sub(1)?;
        let before = waits.get(before).filter(|before| before.end <= wait.end)?;
        let both = before.end.saturating_sub(before.begin.max(wait.begin));
        let is_part = both > 0 && both.unsigned_abs() >= wait.begin.abs_diff(wait.end) / MIN_SHARE;
        (is_part && before.is_for_message() && before.of.0 != rank).then_some(before)
    }
}
