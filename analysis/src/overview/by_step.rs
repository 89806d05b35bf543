//! What threads did in each time step.
//!
//! ```text
//! spans of threads --> the instances that they overlap --> sums by cause, of each bin of steps
//! ```

use std::any::Any;
use std::sync::Arc;

use omptrace_timeline::model::Ns;

use crate::constructs::ranges::Instance;
use crate::model::accounting::Accounting;
use crate::model::cause::Cause;
use crate::model::place_id::PlaceId;
use crate::states::observer::{AwaitedMutex, PendingBarriers, StateObserver};

/// The time of consecutive steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTime {
    /// The time of all threads by cause. A thread had nothing to do in the part of `duration_ns` that is missing here.
    pub accounting: Accounting,
    /// The sum of the steps' durations.
    pub duration_ns: u64,
}

/// The times of the steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepTimes {
    /// Sorted by begin.
    instances: Arc<[Instance]>,
    /// For each instance, the latest end of it and of all earlier ones.
    latest: Arc<[Ns]>,
    per_bin: usize,
}

impl StepTimes {
    /// `instances` are sorted by begin; `per_bin` of them share a bin.
    pub(crate) fn new(instances: &[Instance], per_bin: u64) -> StepTimes {
        let mut latest = Ns::MIN;
        let latest = instances.iter().map(|(_, end)| {
            latest = latest.max(*end);
            latest
        });
        StepTimes {
            latest: latest.collect(),
            instances: instances.into(),
            per_bin: usize::try_from(per_bin).unwrap_or(usize::MAX).max(1),
        }
    }

    /// The times of the bins. `sums` has the accounting of each bin, for all processes together.
    pub(crate) fn times(&self, sums: &[Accounting]) -> Vec<StepTime> {
        let bins = self.instances.chunks(self.per_bin).zip(sums);
        let times = bins.map(|(instances, accounting)| StepTime {
            accounting: *accounting,
            duration_ns: instances.iter().map(|(begin, end)| end.abs_diff(*begin)).sum(),
        });
        times.collect()
    }

    fn bins(&self) -> usize {
        self.instances.len().div_ceil(self.per_bin)
    }
}

/// The sums of the threads of a process by cause, for each bin of steps.
#[derive(Debug)]
pub(crate) struct ByStep {
    times: StepTimes,
    bins: Vec<Accounting>,
    /// By thread.
    pending: Vec<PendingBarriers>,
}

impl ByStep {
    pub(crate) fn new(times: StepTimes) -> ByStep {
        ByStep { bins: vec![Accounting::default(); times.bins()], times, pending: Vec::new() }
    }

    /// The sums.
    pub(crate) fn finish(self) -> Vec<Accounting> {
        self.bins
    }

    fn push(&mut self, (begin, end): (Ns, Ns), cause: Cause) {
        let times = &self.times;
        let behind = times.instances.partition_point(|(first, _)| *first < end);
        for number in (0..behind).rev() {
            if times.latest[number] <= begin {
                break;
            }
            let (first, last) = times.instances[number];
            let ns = last.min(end).saturating_sub(first.max(begin));
            if ns > 0 {
                self.bins[number / times.per_bin].add(cause, ns.cast_unsigned());
            }
        }
    }
}

impl StateObserver for ByStep {
    fn add_thread(&mut self, _: usize) {
        self.pending.push(PendingBarriers::default());
    }

    fn add(
        &mut self,
        _: usize,
        spans: &mut dyn Iterator<Item = (Ns, Ns)>,
        cause: Cause,
        _: Option<PlaceId>,
        _: Option<AwaitedMutex>,
    ) {
        spans.for_each(|span| self.push(span, cause));
    }

    fn add_pending(&mut self, index: usize, depth: usize, span: (Ns, Ns), place: PlaceId) {
        if self.pending.get_mut(index).is_some_and(|pending| pending.add(depth, span)) {
            self.end_pending(index, depth, Cause::Barrier, place);
        }
    }

    fn end_pending(&mut self, index: usize, depth: usize, cause: Cause, _: PlaceId) {
        let Some(pending) = self.pending.get_mut(index) else { return };
        for span in pending.end(depth) {
            self.push(span, cause);
        }
    }

    fn add_gaps(&mut self, index: usize, gaps: &mut dyn Iterator<Item = (Ns, Ns)>) {
        self.add(index, gaps, Cause::Unobserved, None, None);
    }

    fn begin_segment(&mut self) {
        self.bins.fill(Accounting::default());
        self.pending.fill_with(PendingBarriers::default);
    }

    fn append(&mut self, next: Box<dyn StateObserver>, _: &dyn Fn(PlaceId) -> PlaceId) -> bool {
        let next: Box<dyn Any> = next;
        let Ok(next) = next.downcast::<ByStep>() else {
            return false;
        };
        for (own, next) in self.bins.iter_mut().zip(&next.bins) {
            own.merge(next);
        }
        self.pending = next.pending;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(instances: &[Instance], per_bin: u64, spans: &[(Ns, Ns)]) -> Vec<u64> {
        let mut by_step = ByStep::new(StepTimes::new(instances, per_bin));
        by_step.add_thread(0);
        by_step.add(0, &mut spans.iter().copied(), Cause::Useful, None, None);
        by_step.finish().iter().map(|bin| bin[Cause::Useful]).collect()
    }

    #[test]
    fn spans_are_divided_among_the_steps_that_they_overlap() {
        assert_eq!(bins(&[(0, 10), (10, 30), (40, 50)], 1, &[(5, 45)]), [5, 20, 5]);
        assert_eq!(bins(&[(0, 10), (10, 30), (40, 50)], 2, &[(5, 45), (60, 70)]), [25, 5]);
        // A long step is around short ones.
        assert_eq!(bins(&[(0, 100), (10, 20), (30, 40)], 1, &[(15, 35)]), [20, 5, 5]);
    }

    #[test]
    fn barriers_wait_for_their_cause() {
        let mut by_step = ByStep::new(StepTimes::new(&[(0, 10), (10, 20)], 1));
        by_step.add_thread(0);
        by_step.add_pending(0, 1, (5, 8), 0);
        by_step.add_pending(0, 2, (8, 12), 0);
        by_step.end_pending(0, 2, Cause::Barrier, 0);
        by_step.end_pending(0, 1, Cause::Join, 0);
        let bins = by_step.finish();
        assert_eq!((bins[0][Cause::Join], bins[0][Cause::Barrier], bins[1][Cause::Barrier]), (3, 2, 2));
    }
}
