//! The ranks of an MPI job, beside what processes answer alone.

use super::*;
use crate::findings::ranks::{idle_during_mpi, late_sender, rank_imbalance};
use crate::model::rank_waits::RankWaits;
use crate::overview::mpi_efficiency::MpiEfficiency;
use crate::rank_waits::spans::ProcessSpans;

impl Run<'_> {
    /// When other ranks wait for each process of an MPI job; empty where nobody asks for that.
    pub(super) fn awaited_times(&self, windows: Option<&Windows>) -> Vec<Arc<AwaitedTimes>> {
        let ranks = self.timeline.ranks().filter(|ranks| ranks.are_complete());
        match ranks.filter(|_| self.selected.is_all() && !self.is_summarised) {
            Some(ranks) => AwaitedTimes::of_job(ranks, self.members.len(), on_windows(windows)),
            None => Vec::new(),
        }
    }

    /// The waits of an MPI job's ranks, whose processes have these spans.
    pub(super) fn rank_waits(
        &self,
        spans: Vec<ProcessSpans>,
        windows: Option<&Windows>,
    ) -> Option<RankWaits> {
        let ranks = self.timeline.ranks().filter(|_| !spans.is_empty())?;
        Some(RankWaits::of(ranks, spans, on_windows(windows)))
    }

    /// Adds the efficiency of processes, and what is found of ranks.
    pub(super) fn add_ranks(&self, stats: &mut Stats) {
        let of_threads = (stats.answers.duration_ns, &stats.answers.efficiency);
        let ranks = self.timeline.ranks();
        stats.mpi_efficiency = MpiEfficiency::of(ranks, &stats.processes, of_threads);
        let of_ranks = rank_imbalance(ranks, &stats.processes, &stats.answers);
        let late = late_sender(stats.rank_waits.as_ref(), &stats.processes, &stats.answers);
        let idle = idle_during_mpi(&stats.answers);
        stats.answers.add_findings([of_ranks, late, idle].into_iter().flatten().collect());
    }
}

/// Where a time lies on the timeline that has windows only; itself where there are none.
fn on_windows(windows: Option<&Windows>) -> impl Fn(Ns) -> Ns {
    move |time| windows.map_or(time, |windows| windows.on(time))
}
