//! How long a job would take with changes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use omptrace_symbols::parallel::in_parallel;
use omptrace_timeline::model::Ns;
use omptrace_timeline::{JobGraph, Ranks};

use crate::job::computation::Computation;
use crate::job::replay::{Changes, end};
use crate::model::job_gains::{JobChange, JobGain, JobGains};
use crate::model::place::Place;
use crate::model::sum::Sum as _;
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
        let gains = job.gains(no_imbalance);
        if graph.has_failed() {
            return unknown(vec!["the temporary file with the calls of the ranks cannot be read".to_owned()]);
        }
        gains
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
            let computation = self.computation(&scenario);
            let changes = Changes {
                are_senders_in_time: scenario.change == JobChange::NoLateSenders,
                is_network_ideal: scenario.change == JobChange::IdealNetwork,
            };
            let end = end(self.graph, &self.lives, &computation, changes);
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

    /// The computation with a change.
    fn computation(&self, scenario: &Scenario) -> Computation {
        match (scenario.change, &scenario.place) {
            (JobChange::BalancedRanks, _) => Computation::balanced(self.graph, &self.lives),
            (JobChange::BalancedThreads, _) => Computation::less(self.processes.iter().map(|process| {
                let threads = u64::from(process.threads.max(1));
                process.spans.imbalance.iter().map(|(interval, ns)| (*interval, ns / threads)).collect()
            })),
            (JobChange::FasterRegion, Some(place)) => {
                Computation::less(self.processes.iter().map(|process| {
                    // A rank may have several regions at a place.
                    let mut all: BTreeMap<u32, u64> = BTreeMap::new();
                    for (interval, region, ns) in &process.spans.regions {
                        if process.spans.places.get(*region as usize) == Some(place) {
                            all.entry(*interval).or_default().grow_by(*ns);
                        }
                    }
                    all.into_iter().map(|(interval, ns)| (interval, ns / SAVED)).collect()
                }))
            }
            _ => Computation::Recorded,
        }
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
