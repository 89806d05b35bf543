//! Tracks that come about while a process is interpreted: of locks, of devices' queues, of counters. In a file of several
//! segments, each segment describes those that it has events of, and they have numbers by their names.

use std::hash::Hasher;

use super::track_event::EventTrack;
use super::tracks::ProcessTracks;
use super::{Perfetto, tracks};
use omptrace_symbols::fast_map::Fold;
use omptrace_timeline::sink::{Counter, LocationKind, ProcessId};

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

impl Perfetto {
    /// The track around those of the locks.
    fn lock_group(&mut self, process: ProcessId) -> u64 {
        const NAME: &str = "Locks";
        let ProcessTracks { uuid, locks, .. } = self.processes[process.0 as usize];
        if let Some(group) = locks {
            return group;
        }
        let group = match self.share.is_in_segments() {
            true => late_uuid(NAME),
            false => self.new_uuid(),
        };
        self.packet(|out| tracks::plain(out, group, uuid, NAME, ""));
        self.processes[process.0 as usize].locks = Some(group);
        group
    }

    /// The track that one of this kind lies under.
    pub(super) fn parent(&mut self, process: ProcessId, kind: LocationKind) -> u64 {
        match kind {
            LocationKind::Lock { .. } => self.lock_group(process),
            LocationKind::DeviceQueue { device_num, .. } => {
                let process = &self.processes[process.0 as usize];
                let around = process.devices.get(&device_num);
                around.copied().unwrap_or(process.uuid)
            }
            _ => self.processes[process.0 as usize].uuid,
        }
    }

    /// Describes the track of a location that has come about on the way, if this segment has not done so.
    #[cold]
    pub(super) fn describe(&mut self, location: usize) {
        let Some(late) = &mut self.late[location] else {
            return;
        };
        if std::mem::replace(&mut late.is_described, true) {
            return;
        }
        let (process, kind, uuid, name) = (late.process, late.kind, late.uuid, late.name.clone());
        let parent = self.parent(process, kind);
        self.packet(|out| tracks::plain(out, uuid, parent, &name, ""));
    }

    #[cold]
    pub(super) fn describe_counter(&mut self, place: usize) {
        let CounterTrack { counter, uuid, .. } = &self.counters[place];
        let parent = self.processes[counter.process.0 as usize].uuid;
        let (uuid, counter) = (*uuid, counter.clone());
        self.packet(|out| tracks::counter(out, uuid, parent, &counter));
        self.counters[place].is_described = true;
    }
}
