//! How long a job would take with changes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use omptrace_symbols::parallel::in_parallel;
use omptrace_timeline::model::Ns;
use omptrace_timeline::{JobGraph, Ranks};

use crate::job::replay::{Changes, Computation, computation, end};
use crate::model::job_gains::{JobChange, JobGain, JobGains};
use crate::model::place::Place;
use crate::model::sum::{Sum as _, sum};
use crate::rank_waits::spans::ProcessSpans;

/// Number of regions that are made faster.
const MAX_REGIONS: usize = 5;

/// The part of a region's time that a region which is twice as fast saves: one in so many.
const SAVED: u64 = 2;

/// A process of the job.
#[derive(Debug)]
pub(crate) struct JobProcess<'s> {
    pub(crate) spans: &'s ProcessSpans,
    /// Its number of threads.
    pub(crate) threads: u32,
}

/// Changes of a job's computation, or of its communication.
#[derive(Clone, Debug)]
struct Scenario {
    change: JobChange,
    place: Option<Place>,
}

impl JobGains {
    /// The gains of a job. `processes` are in the timeline's order. `no_imbalance`: why imbalance is not known.
    pub(crate) fn of(ranks: &Ranks, processes: &[JobProcess<'_>], no_imbalance: Option<&str>) -> JobGains {
        let unknown = |reasons: Vec<String>| JobGains { unknown: reasons, ..JobGains::default() };
        let missing = ranks.missing().len();
        if missing > 0 {
            return unknown(vec![format!("the traces of {missing} of {} ranks are missing", ranks.size)]);
        }
        let Some(graph) = ranks.graph() else {
            return unknown(vec!["the sends and receives of the ranks could not be matched".to_owned()]);
        };
        if ranks.hosts.is_some_and(|hosts| hosts.error_ns.is_none()) {
            let reason = "the clocks of the hosts are aligned only by the time of day, so it is not known which rank waits for which";
            return unknown(vec![reason.to_owned()]);
        }
        if !graph.unknown.is_empty() {
            let reasons = graph.unknown.iter();
            return unknown(
                reasons
                    .map(|reason| {
                        format!("{reason}, so the job may behave differently if its timing changes")
                    })
                    .collect(),
            );
        }
        let of_ranks: BTreeMap<u32, (usize, (Ns, Ns))> = (0..processes.len())
            .filter_map(|number| ranks.process(number).map(|of| (of.rank, (number, of.life))))
            .collect();
        let places = graph.ranks.iter().map(|rank| of_ranks.get(&rank.rank).copied());
        let Some(places) = places.collect::<Option<Vec<_>>>() else { return JobGains::default() };
        let job = Job {
            graph,
            lives: places.iter().map(|(_, life)| *life).collect(),
            processes: places.iter().map(|(number, _)| &processes[*number]).collect(),
        };
        job.gains(no_imbalance)
    }
}

/// A job to replay. All lists are in the order of the graph's ranks.
struct Job<'j> {
    graph: &'j JobGraph,
    lives: Vec<(Ns, Ns)>,
    processes: Vec<&'j JobProcess<'j>>,
}

impl Job<'_> {
    fn gains(&self, no_imbalance: Option<&str>) -> JobGains {
        let recorded = computation(self.graph, &self.lives);
        let begin = self.lives.iter().map(|life| life.0).min().unwrap_or(0);
        let duration = |end: Ns| end.saturating_sub(begin).max(0).cast_unsigned();
        let duration_ns = duration(self.lives.iter().map(|life| life.1).max().unwrap_or(0));
        let mut all: Vec<Scenario> = JobChange::OF_ALL.map(|change| Scenario { change, place: None }).into();
        let mut unknown = Vec::new();
        if let Some(reason) = no_imbalance {
            all.retain(|scenario| scenario.change != JobChange::BalancedThreads);
            unknown.push(format!("balanced threads: {reason}"));
        }
        let regions = self.longest_regions().into_iter();
        all.extend(regions.map(|place| Scenario { change: JobChange::FasterRegion, place: Some(place) }));
        let ends = in_parallel(all, |scenario| {
            let changed = self.changed(&recorded, &scenario);
            let changes = Changes {
                are_senders_in_time: scenario.change == JobChange::NoLateSenders,
                is_network_ideal: scenario.change == JobChange::IdealNetwork,
            };
            let end = end(self.graph, &self.lives, changed.as_ref().unwrap_or(&recorded), changes);
            (scenario, duration(end))
        });
        let gain = |(Scenario { change, place }, predicted_ns): (Scenario, u64)| JobGain {
            change,
            place,
            duration_ns: predicted_ns,
            gain_ns: duration_ns.saturating_sub(predicted_ns),
            gain_percent: duration_ns.saturating_sub(predicted_ns) as f64 * 100.0 / duration_ns.max(1) as f64,
        };
        let mut gains: Vec<JobGain> = ends.into_iter().map(gain).collect();
        gains.sort_by(|a, b| {
            let key = |gain: &JobGain| (Reverse(gain.gain_ns), gain.change);
            key(a).cmp(&key(b)).then_with(|| a.place.cmp(&b.place))
        });
        JobGains { gains, unknown }
    }

    /// The computation with a change; `None` if it is the recorded one.
    fn changed(&self, recorded: &Computation, scenario: &Scenario) -> Option<Computation> {
        match (scenario.change, &scenario.place) {
            (JobChange::BalancedRanks, _) => Some(balanced(self.graph, recorded)),
            (JobChange::BalancedThreads, _) => Some(self.less(recorded, |process, saved| {
                for (interval, ns) in &process.spans.imbalance {
                    saved(*interval, ns / u64::from(process.threads.max(1)));
                }
            })),
            (JobChange::FasterRegion, Some(place)) => Some(self.less(recorded, |process, saved| {
                // A rank may have several regions at a place.
                let mut all: BTreeMap<u32, u64> = BTreeMap::new();
                for (interval, region, ns) in &process.spans.regions {
                    if process.spans.places.get(*region as usize) == Some(place) {
                        all.entry(*interval).or_default().grow_by(*ns);
                    }
                }
                all.into_iter().for_each(|(interval, ns)| saved(interval, ns / SAVED));
            })),
            _ => None,
        }
    }

    /// The computation without what is saved in intervals.
    fn less(
        &self,
        recorded: &Computation,
        savings: impl Fn(&JobProcess<'_>, &mut dyn FnMut(u32, u64)),
    ) -> Computation {
        let mut all = recorded.clone();
        for (process, computation) in self.processes.iter().zip(&mut all) {
            savings(process, &mut |interval, ns| {
                if let Some(known) = computation.get_mut(interval as usize) {
                    *known = known.saturating_sub(ns);
                }
            });
        }
        all
    }

    /// The regions in which ranks spend most time.
    fn longest_regions(&self) -> Vec<Place> {
        let mut sums: BTreeMap<&Place, u64> = BTreeMap::new();
        for process in &self.processes {
            for (_, region, ns) in &process.spans.regions {
                sums.entry(&process.spans.places[*region as usize]).or_default().grow_by(*ns);
            }
        }
        let mut sums: Vec<(&Place, u64)> = sums.into_iter().collect();
        sums.sort_by_key(|(place, ns)| (Reverse(*ns), *place));
        sums.into_iter().take(MAX_REGIONS).map(|(place, _)| place.clone()).collect()
    }
}

/// The computation, averaged over the ranks between each two operations that all ranks of the job wait in. The
/// intervals of a rank keep their relative lengths.
fn balanced(graph: &JobGraph, recorded: &Computation) -> Computation {
    let mut all = recorded.clone();
    let mut first = vec![0; all.len()];
    let ends = common_calls(graph).into_iter().map(Some).chain([None]);
    for ends in ends {
        let last = |rank: usize| ends.as_ref().map_or(all[rank].len(), |ends| ends[rank] as usize + 1);
        let parts: Vec<(usize, usize)> = (0..all.len()).map(|rank| (first[rank], last(rank))).collect();
        let sums: Vec<u64> =
            parts.iter().zip(&all).map(|((from, to), all)| sum(all[*from..*to].iter().copied())).collect();
        let mean = (sums.iter().map(|sum| u128::from(*sum)).sum::<u128>() / sums.len().max(1) as u128) as u64;
        for (((from, to), own), computation) in parts.iter().zip(sums).zip(&mut all) {
            scale(&mut computation[*from..*to], own, mean);
        }
        first = parts.into_iter().map(|(_, to)| to).collect();
    }
    all
}

/// Scales intervals whose sum is `own` so that the sum is `new`.
fn scale(intervals: &mut [u64], own: u64, new: u64) {
    let (mut before, mut scaled) = (0_u128, 0_u128);
    for interval in intervals.iter_mut() {
        before += u128::from(*interval);
        let until = (before * u128::from(new)).checked_div(u128::from(own)).unwrap_or(0);
        *interval = (until - scaled) as u64;
        scaled = until;
    }
    // A rank that has computed nothing does its part at last.
    if let (0, Some(last)) = (own, intervals.last_mut()) {
        *last = new;
    }
}

/// The calls in which all ranks of the job wait for each other, in chronological order; of each, its number in each rank.
fn common_calls(graph: &JobGraph) -> Vec<Vec<u32>> {
    let of_all = graph.gates.iter().filter(|gate| gate.is_of_all && gate.calls.len() == graph.ranks.len());
    // Calls are sorted by rank, and each rank has one.
    let mut all: Vec<Vec<u32>> =
        of_all.map(|gate| gate.calls.iter().map(|call| call.call).collect()).collect();
    all.sort_unstable();
    // Nobody can be in two at a time.
    all.dedup_by(|next, before| next.iter().zip(before.iter()).any(|(next, before)| next <= before));
    all
}
