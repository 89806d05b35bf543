//! Waits of ranks for each other in MPI calls, and what is charged for them.

use serde::Serialize;

use crate::model::cause::Cause;
use crate::model::place::Place;

/// The waits of an MPI job's ranks for each other. Each of the sums over `states`, `charged` and `first_causes` is `total_ns`,
/// with the rows that are not listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankWaits {
    /// The sum of all waits: the `mpi_wait_ns` of the accounting.
    pub total_ns: u64,
    /// The waits by wait state.
    pub states: Vec<WaitState>,
    /// The waits by waiting rank, wait state, call and awaited rank, sorted by time. At most 1,000 rows are listed.
    pub waits: Vec<RankWait>,
    /// The time in rows that are not in `waits`; left out if it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_waits_ns: u64,
    /// What the awaited ranks did during the waits, sorted by time. At most 1,000 rows are listed.
    pub charged: Vec<Charge>,
    /// The time in rows that are not in `charged`; left out if it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_charged_ns: u64,
    /// Like `charged`, but if an awaited rank itself waits for another rank, that rank is charged instead, and so on.
    pub first_causes: Vec<Charge>,
    /// The time in rows that are not in `first_causes`; left out if it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_first_causes_ns: u64,
}

/// A wait state.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaitState {
    /// Its name.
    pub state: &'static str,
    /// The time, summed over the ranks.
    pub ns: u64,
    /// The number of calls.
    pub count: u64,
}

/// The waits of a rank for another one in a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankWait {
    /// The rank that waited.
    pub rank: u32,
    /// The wait state.
    pub state: &'static str,
    /// The call, and its location.
    pub place: Place,
    /// The rank that it waited for.
    pub waits_for: u32,
    /// The time.
    pub ns: u64,
    /// The number of calls.
    pub count: u64,
}

/// What a rank did while others waited for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Charge {
    /// The awaited rank.
    pub rank: u32,
    /// The cause that the awaited thread's time went to; `None` if the trace does not show what the thread did, for example
    /// before its first event.
    pub cause: Option<Cause>,
    /// Where the awaited thread was; `None` if that is not known.
    pub place: Option<Place>,
    /// The wait state of the others.
    pub state: &'static str,
    /// The call in which they waited, and its location.
    pub waits_at: Place,
    /// The time that they waited, summed over the ranks.
    pub ns: u64,
    /// The number of ranks that waited.
    pub ranks: u64,
}

impl Charge {
    /// What the rank did, as its own: `work at solve.c:41`, `wait in MPI_Recv at halo.c:20`.
    pub fn what(&self) -> Option<String> {
        Some(activity(self.cause?, self.place.as_ref()))
    }
}

/// What a rank does, as its own: `work at solve.c:41`, `wait in MPI_Recv at halo.c:20`.
pub(crate) fn activity(cause: Cause, place: Option<&Place>) -> String {
    let Some(place) = place else {
        return match cause {
            Cause::Useful => "serial code".to_owned(),
            _ => cause.title().to_owned(),
        };
    };
    let at = place.at_short();
    match cause {
        Cause::Useful if place.is_serial() => place.construct_name(),
        Cause::Useful => format!("work {at}"),
        Cause::MpiWait => format!("wait in {}", place.with_line()),
        _ if cause.is_mpi_call() => place.with_line(),
        _ => format!("{} {at}", cause.title()),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
pub(crate) fn is_zero(ns: &u64) -> bool {
    *ns == 0
}
