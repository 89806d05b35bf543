//! The waits of a job's ranks by call.

use std::collections::BTreeMap;

use crate::model::place::Place;

/// The waits of a job by call, and those that are serialised.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallWaits {
    /// By rank and call.
    pub(crate) by_call: BTreeMap<(u32, Place), u64>,
    pub(crate) serialised: Vec<SerialisedWaits>,
    /// The number of ranks that take part in serialised waits.
    pub(crate) serialised_ranks: usize,
}

/// The waits of a rank in a call for messages of a rank that waited itself before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SerialisedWaits {
    pub(crate) rank: u32,
    pub(crate) waits_for: u32,
    /// The call.
    pub(crate) place: Place,
    pub(crate) count: u64,
    pub(crate) ns: u64,
    /// The time that could be avoided.
    pub(crate) avoidable_ns: u64,
}
