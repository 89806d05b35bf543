//! How long an MPI job would take with changes.

use serde::Serialize;

use crate::model::place::Place;

/// What an MPI job would gain from changes, according to a replay of all ranks in which waits in MPI calls follow from when the
/// other ranks arrive.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobGains {
    /// The changes, sorted by gain.
    pub gains: Vec<JobGain>,
    /// The gains that are not known, each with the reason; or the reasons why none is known.
    pub unknown: Vec<String>,
}

/// What the job would gain from a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobGain {
    /// The change.
    pub change: JobChange,
    /// The region; `None` if the change concerns the whole job.
    pub place: Option<Place>,
    /// How long the job would take.
    pub duration_ns: u64,
    /// The time that the job would save.
    pub gain_ns: u64,
    /// The same in percent of the job's duration.
    pub gain_percent: f64,
}

/// A change of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobChange {
    /// Messages are there when they are asked for.
    NoLateSenders,
    /// All ranks compute equally long between operations in which all ranks wait for each other.
    BalancedRanks,
    /// The threads of each rank have equal work between two MPI calls.
    BalancedThreads,
    /// Communication takes no time but for waits.
    IdealNetwork,
    /// A parallel region is twice as fast.
    FasterRegion,
}

impl JobChange {
    /// The changes that concern the whole job.
    pub(crate) const OF_ALL: [JobChange; 4] = [
        JobChange::NoLateSenders,
        JobChange::BalancedRanks,
        JobChange::BalancedThreads,
        JobChange::IdealNetwork,
    ];

    /// The change in words.
    pub fn words(self) -> &'static str {
        match self {
            JobChange::NoLateSenders => "without late senders",
            JobChange::BalancedRanks => "with balanced ranks",
            JobChange::BalancedThreads => "with balanced threads in each rank",
            JobChange::IdealNetwork => "with an ideal network",
            JobChange::FasterRegion => "with a region that is twice as fast",
        }
    }
}

impl JobGains {
    /// How long the job would take if communication took no time but for waits; or why this is not known.
    pub(crate) fn ideal_ns(&self) -> Result<u64, &str> {
        let ideal = self.gains.iter().find(|gain| gain.change == JobChange::IdealNetwork);
        let reason = || self.unknown.first().map_or("the job was not replayed", String::as_str);
        ideal.map(|gain| gain.duration_ns).ok_or_else(reason)
    }
}
