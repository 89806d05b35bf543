//! Tracks that appear while a process is interpreted: of locks, device queues and counters. In a file of several
//! segments, each segment describes the tracks that it uses, and their ids follow from their names.

use omptrace_timeline::model::{LocationKind, ProcessId};

use crate::perfetto::deferred_track::{CounterTrack, late_uuid};
use crate::perfetto::tracks::ProcessTracks;
use crate::perfetto::{Perfetto, tracks};

impl Perfetto {
    /// The parent track of the locks' tracks.
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

    /// The parent track for tracks of this kind.
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

    /// Describes a location's deferred track, if the current segment has not done so.
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
