//! The results that concern the ranks of an MPI job together.

use super::*;
use crate::job::gains::JobProcess;
use crate::job::walk::Walk;
use crate::model::cause::Cause;
use crate::model::job_path::JobPath;
use crate::model::process_stats::ProcessStats;
use crate::overview::additive::{AdditiveEfficiency, ProcessTimes};
use crate::rank_waits::spans::ProcessSpans;

/// What the findings about a job need beside its numbers.
#[derive(Debug, Default)]
pub(super) struct OfJob {
    pub(super) additive: Option<AdditiveEfficiency>,
    /// The call sites of each process.
    pub(super) sites: Sites,
    pub(super) call_waits: CallWaits,
}

/// See [`Answers::what_if_note`](crate::model::answers::Answers::what_if_note).
const WHAT_IF_OF_RANKS: &str = "the savings of changes to OpenMP code are predicted for each rank by itself: its waits for other ranks take as long as recorded, and the job ends with its last rank";

impl Run<'_> {
    /// The times in which it matters to other ranks of an MPI job what each process does; empty if they are not needed.
    pub(super) fn awaited_times(&self, windows: Option<&Windows>) -> Vec<Arc<AwaitedTimes>> {
        let ranks = self.timeline.ranks().filter(|ranks| ranks.are_complete());
        match ranks.filter(|_| self.selected.is_all() && !self.is_summarised) {
            Some(ranks) => {
                let walk = self.walk();
                AwaitedTimes::of_job(ranks, self.members.len(), on_windows(windows), walk.as_ref())
            }
            None => Vec::new(),
        }
    }

    /// The critical path of an MPI job; `None` unless there are traces of all ranks and the whole job is analysed.
    fn walk(&self) -> Option<Walk> {
        let ranks = self.timeline.ranks().filter(|_| self.options.analysed().is_none())?;
        Walk::of(ranks, self.members.len())
    }

    /// Sets what is known of the ranks' waits, of the job's critical path, and of its gains. `processes` are in the timeline's
    /// order; there are none if waits are not known.
    pub(super) fn set_job(
        &self,
        stats: &mut Stats,
        mut processes: Vec<ProcessSpans>,
        windows: Option<&Windows>,
    ) -> OfJob {
        let mut of_job = OfJob {
            sites: processes.iter_mut().map(|spans| std::mem::take(&mut spans.sites)).collect(),
            ..OfJob::default()
        };
        let Some(ranks) = self.timeline.ranks() else { return of_job };
        if ranks.size > 1 && !stats.answers.what_if.is_empty() {
            stats.answers.what_if_note = Some(WHAT_IF_OF_RANKS.to_owned());
        }
        let is_whole = self.options.analysed().is_none() && !self.is_summarised;
        if let Some(walk) = self.walk().filter(|_| is_whole && !processes.is_empty()) {
            stats.job_path = Some(JobPath::of(&walk, ranks, &processes));
        }
        if is_whole && ranks.size > 1 {
            let no_imbalance = stats.answers.not_seen.iter().find(|it| it.cause == Cause::Imbalance);
            let all = processes.iter().zip(&stats.processes);
            let all: Vec<JobProcess<'_>> =
                all.map(|(spans, of)| JobProcess { spans, threads: of.threads }).collect();
            stats.job_gains = Some(JobGains::of(ranks, &all, no_imbalance.map(|it| &*it.reason)));
        }
        let times = |(spans, of): (&ProcessSpans, &ProcessStats)| ProcessTimes {
            threads: of.threads.max(1),
            in_regions: spans.in_regions_ns,
            serial_useful: spans.serial_useful_ns,
            useful: of.accounting[Cause::Useful],
        };
        let times: Vec<ProcessTimes> = processes.iter().zip(&stats.processes).map(times).collect();
        if !processes.is_empty() {
            let (waits, call_waits) = RankWaits::of(ranks, processes, on_windows(windows));
            (stats.rank_waits, of_job.call_waits) = (Some(waits), call_waits);
            let is_all = windows.is_none();
            stats.rank_traffic = is_all.then(|| RankTraffic::of(ranks, &of_job.sites, &of_job.call_waits));
        }
        // Without the states of members, efficiencies are not known.
        if stats.answers.efficiency.parallel.is_some() {
            of_job.additive = AdditiveEfficiency::of(&times, stats.answers.duration_ns);
        }
        of_job
    }
}
