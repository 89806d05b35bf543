//! What annotations leave behind, for checkpoints: ranges of the process that are open, their tracks, and the values of counters.
//!
//! Ranges of threads are no part of it: checkpoints have the events that began them. Nor are ranges
//! [word for word](super::verbatim): sinks that want those read a trace from its start.

use serde::{Deserialize, Serialize};

use super::*;

/// Values of counters, at most. Of a program with more, there are no checkpoints.
const MAX_COUNTERS: usize = 1 << 12;

/// The state. Times count from the session's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::interpret) struct AnnotationState {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tracks: Vec<TracksState>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ranges: Vec<RangeState>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    counters: Vec<CounterState>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    memory: Vec<MemoryState>,
}

/// The tracks of a domain: of each, the end of its newest range. An open range is on those that are used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TracksState {
    source: u32,
    domain: u32,
    is_frame: bool,
    tracks: Vec<(bool, Ns)>,
}

/// A range of the process. Of one instance, the outermost comes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RangeState {
    source: u32,
    domain: u32,
    instance: u64,
    name: u32,
    begin: Ns,
    is_frame: bool,
    track: Option<usize>,
}

/// A counter, and when it got its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CounterState {
    source: u32,
    domain: u32,
    name: u32,
    value: Number,
    at: Ns,
}

/// A number that JSON does not round: one with a fraction by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Number {
    Whole(i64),
    Real(u64),
}

/// The memory that is allocated in a space, since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MemoryState {
    space: u32,
    bytes: i64,
    at: Ns,
}

impl Number {
    fn of(value: CountValue) -> Number {
        match value {
            CountValue::Whole(whole) => Number::Whole(whole),
            CountValue::Real(real) => Number::Real(real.to_bits()),
        }
    }

    fn value(self) -> CountValue {
        match self {
            Number::Whole(whole) => CountValue::Whole(whole),
            Number::Real(bits) => CountValue::Real(f64::from_bits(bits)),
        }
    }
}

impl AnnotationState {
    /// Whether there is nothing.
    pub(in crate::interpret) fn is_none(&self) -> bool {
        *self == AnnotationState::default()
    }

    /// Whether `is_time` is true of all times, and there is no more of anything than there can be.
    pub(in crate::interpret) fn is_sensible(&self, is_time: &dyn Fn(&Ns) -> bool) -> bool {
        let of_tracks = self.tracks.iter().flat_map(|of| of.tracks.iter().map(|(_, last)| last));
        let of_ranges = self.ranges.iter().map(|range| &range.begin);
        let of_counters = self.counters.iter().map(|counter| &counter.at);
        let of_memory = self.memory.iter().map(|space| &space.at);
        let mut times = of_tracks.chain(of_ranges).chain(of_counters).chain(of_memory);
        let is_finite = |counter: &CounterState| match counter.value {
            Number::Whole(_) => true,
            Number::Real(bits) => f64::from_bits(bits).is_finite(),
        };
        times.all(is_time)
            && self.counters.iter().all(is_finite)
            && self.ranges.len() <= MAX_OPEN
            && self.tracks.iter().all(|of| of.tracks.len() <= MAX_TRACKS)
            && self.counters.len().max(self.memory.len()).max(self.tracks.len()) <= MAX_COUNTERS
    }
}

impl Annotations {
    /// The state; `None` where that is too much for a checkpoint. `start` is the session's start.
    pub(in crate::interpret) fn state(&self, start: Ns) -> Option<AnnotationState> {
        let tracks = self.tracks.iter().map(|((source, domain, is_frame), tracks)| TracksState {
            source: *source,
            domain: *domain,
            is_frame: *is_frame,
            tracks: tracks.iter().map(|track| (track.is_used, track.last - start)).collect(),
        });
        let ranges = self.open.iter().flat_map(|((source, domain, instance), ranges)| {
            ranges.iter().map(|range| RangeState {
                source: *source,
                domain: *domain,
                instance: *instance,
                name: range.name,
                begin: range.begin - start,
                is_frame: range.is_frame,
                track: range.track,
            })
        });
        let counters = self.counters.iter().map(|((source, domain, name), counter)| CounterState {
            source: *source,
            domain: *domain,
            name: *name,
            value: Number::of(counter.value),
            at: counter.at - start,
        });
        let memory = self.memory.iter().map(|(space, counter)| MemoryState {
            space: *space,
            bytes: counter.value,
            at: counter.at - start,
        });
        let is_small = self.counters.len().max(self.memory.len()).max(self.tracks.len()) <= MAX_COUNTERS;
        is_small.then(|| AnnotationState {
            tracks: tracks.collect(),
            ranges: ranges.collect(),
            counters: counters.collect(),
            memory: memory.collect(),
        })
    }
}

impl Interpreter<'_, '_> {
    /// Goes on from `state`. Counters say their values again.
    pub(in crate::interpret) fn begin_annotations_at(&mut self, state: &AnnotationState) {
        let start = self.clock.start;
        for of in &state.tracks {
            let source = AnnotationSource(of.source);
            let tracks = (0..of.tracks.len()).map(|number| {
                let id = self.new_track((source, of.domain, of.is_frame), number);
                let (is_used, last) = of.tracks[number];
                Track { id, is_used, last: last + start }
            });
            let tracks = tracks.collect();
            self.annotations.tracks.insert((of.source, of.domain, of.is_frame), tracks);
        }
        for range in &state.ranges {
            let open = self.annotations.open.entry((range.source, range.domain, range.instance)).or_default();
            open.push(OpenRange {
                begin: range.begin + start,
                name: range.name,
                track: range.track,
                is_frame: range.is_frame,
            });
        }
        self.annotations.count = state.ranges.len();
        for counter in &state.counters {
            let (source, domain, name) = (counter.source, counter.domain, counter.name);
            self.count_annotated((source, domain, name), counter.at + start, |_| counter.value.value());
        }
        for space in &state.memory {
            self.count_memory(space.space, space.at + start, |_| space.bytes);
        }
    }
}
