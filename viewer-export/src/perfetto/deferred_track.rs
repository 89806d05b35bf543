//! What is kept of tracks that come about on the way, and their numbers.

use std::hash::Hasher;

use omptrace_symbols::fast_map::Fold;
use omptrace_timeline::model::{Counter, LocationKind, ProcessId};

use crate::perfetto::track_event::EventTrack;

/// A track of a location that comes about on the way.
pub(super) struct LateTrack {
    pub(super) process: ProcessId,
    pub(super) kind: LocationKind,
    pub(super) uuid: u64,
    pub(super) name: String,
    /// This segment has its description.
    pub(super) is_described: bool,
}

pub(super) struct CounterTrack {
    pub(super) counter: Counter,
    pub(super) uuid: u64,
    pub(super) is_described: bool,
    pub(super) track: EventTrack,
}

/// Numbers of tracks by their names lie from these on: those of counters take three bytes, and others no more than seven.
const FIRST_COUNTER: u64 = 1 << 20;
const FIRST_LATE: u64 = 1 << 48;

/// A number below `below`, a power of two, that belongs to `name`.
fn number_of(name: &str, below: u64) -> u64 {
    let mut hash = Fold::default();
    hash.write(name.as_bytes());
    hash.finish() >> below.leading_zeros() >> 1
}

/// The number of a counter's track, in a file of several segments.
pub(super) fn counter_uuid(name: &str) -> u64 {
    FIRST_COUNTER + number_of(name, FIRST_COUNTER)
}

/// The same of another track that comes about on the way.
pub(super) fn late_uuid(name: &str) -> u64 {
    FIRST_LATE + number_of(name, FIRST_LATE)
}
