//! The critical path of an MPI job.

use serde::Serialize;

use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::model::rank_waits::{activity, is_zero};

/// The critical path of an MPI job: from the end of the last rank backwards, on the thread that makes the rank's MPI calls; from a
/// wait, it continues on the rank that ended the wait. `before_ns` and each of the sums over `ranks`, over `causes`, and over
/// `rows` with the rows that are not listed, add up to `total_ns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobPath {
    /// From the start of the first rank to the end of the last one.
    pub total_ns: u64,
    /// How often the path goes from one rank to another.
    pub changes: u64,
    /// The time before the start of the rank on which the path begins; left out if it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub before_ns: u64,
    /// The path by rank.
    pub ranks: Vec<PathRank>,
    /// The path by cause.
    pub causes: Vec<PathCause>,
    /// The path by rank, cause and place, sorted by time. At most 1,000 rows are listed.
    pub rows: Vec<JobPathRow>,
    /// The time in rows that are not in `rows`; left out if it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_rows_ns: u64,
}

/// A rank's part of the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathRank {
    /// The rank.
    pub rank: u32,
    /// Its time on the path.
    pub ns: u64,
}

/// The part of the path with one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathCause {
    /// The cause; `None` if the trace does not show what the thread did.
    pub cause: Option<Cause>,
    /// The time on the path.
    pub ns: u64,
}

/// What a rank does on the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobPathRow {
    /// The rank.
    pub rank: u32,
    /// The cause of the thread's time; `None` if the trace does not show what the thread did.
    pub cause: Option<Cause>,
    /// Where the thread was; `None` if that is not known.
    pub place: Option<Place>,
    /// The time on the path.
    pub ns: u64,
}

impl JobPathRow {
    /// What the rank does, as its own: `work at solve.c:41`.
    pub fn what(&self) -> Option<String> {
        Some(activity(self.cause?, self.place.as_ref()))
    }
}
