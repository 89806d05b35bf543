//! Data and ids of tracks that are described only when they are first used.

use std::hash::Hasher;

use omptrace_symbols::fast_map::Fold;
use omptrace_timeline::model::{Counter, LocationKind, ProcessId};

use crate::perfetto::track_event::EventTrack;

/// A location's track that is described when it is first used.
pub(super) struct DeferredTrack {
    pub(super) process: ProcessId,
    pub(super) kind: LocationKind,
    pub(super) uuid: u64,
    pub(super) name: String,
    /// The current segment contains its description.
    pub(super) is_described: bool,
}

pub(super) struct CounterTrack {
    pub(super) counter: Counter,
    pub(super) uuid: u64,
    pub(super) is_described: bool,
    pub(super) track: EventTrack,
}

/// Ids of tracks that follow from names are above this one. Those of counters take three bytes, and others at most
/// seven.
const FIRST_COUNTER: u64 = 1 << 20;
const FIRST_LATE: u64 = 1 << 48;

/// A number below `below` (a power of two) that follows from `name`.
fn number_of(name: &str, below: u64) -> u64 {
    let mut hash = Fold::default();
    hash.write(name.as_bytes());
    hash.finish() >> below.leading_zeros() >> 1
}

/// The id of a counter's track in a file of several segments.
pub(super) fn counter_uuid(name: &str) -> u64 {
    FIRST_COUNTER + number_of(name, FIRST_COUNTER)
}

/// The id of another deferred track in a file of several segments.
pub(super) fn late_uuid(name: &str) -> u64 {
    FIRST_LATE + number_of(name, FIRST_LATE)
}
