//! The tree of tracks:
//!
//! ```text
//! process ── thread ...          in the timeline's order
//!         ── "Locks" ── one track per lock
//!         ── device ── one track per queue, and the tracer's work on its stream
//!         ── "hidden helpers" ── one track per helper thread
//!         ── other tracks
//! ```
//!
//! Rules of the importer that the format's description does not contain:
//!
//! * A thread's descriptor needs a process id and a thread id. Both have 32 bits, and threads with equal ids are
//!   merged.
//! * A child track of a thread is shown next to the thread, so nested tracks need a parent track of their own.
//! * All threads of a process are shown above its other tracks, which are sorted by name. The track of a helper is not
//!   a thread's track, so that helpers are shown below the devices, in a group that can be collapsed.
//! * Sibling tracks with equal names are merged, unless they disable merging.

use std::collections::BTreeMap;

use omptrace_timeline::model::{Counter, Process};

use super::schema::{
    CHRONOLOGICAL, EXPLICIT_ORDERING, SIBLING_MERGE_BEHAVIOR_NONE, UNIT_COUNT, UNIT_SIZE_BYTES, counter,
    event_defaults, packet, packet_defaults, process, thread, track,
};
use crate::writer::protobuf as pb;
use crate::writer::system_ids::SystemIds;

/// The parent tracks in a process.
pub(super) struct ProcessTracks {
    pub(super) uuid: u64,
    pub(super) ids: SystemIds,
    /// The parent track of the locks' tracks, once it exists.
    pub(super) locks: Option<u64>,
    /// The parent track of the hidden helpers' tracks, once it exists.
    pub(super) helpers: Option<u64>,
    /// The parent tracks of the devices' queues, by device number.
    pub(super) devices: BTreeMap<i32, u64>,
    /// The track of notes about the process, once it exists.
    pub(super) notes: Option<u64>,
    /// The requested time between samples; 0 if no samples were requested.
    pub(super) sampling_period_ns: u64,
}

/// Specifies that processes and threads are sorted by their ranks.
pub(super) fn root(out: &mut Vec<u8>) {
    pb::message(out, packet::TRACK_DESCRIPTOR, |out| {
        pb::uint(out, track::UUID, 0);
        pb::uint(out, track::PROCESS_ORDERING, EXPLICIT_ORDERING);
        pb::uint(out, track::THREAD_ORDERING, EXPLICIT_ORDERING);
    });
}

pub(super) fn process(out: &mut Vec<u8>, tracks: &ProcessTracks, rank: u32, defined: &Process) {
    let rank = u64::from(rank);
    pb::message(out, packet::TRACK_DESCRIPTOR, |out| {
        pb::uint(out, track::UUID, tracks.uuid);
        pb::message(out, track::PROCESS, |out| {
            pb::uint(out, process::PID, tracks.ids.pid().into());
            for word in &defined.command_line {
                pb::text(out, process::CMDLINE, word);
            }
            pb::uint(out, process::LEGACY_SORT_INDEX, rank);
            let name = match tracks.ids.is_systems() {
                true => defined.name_beside_id(),
                false => &defined.name,
            };
            pb::text(out, process::PROCESS_NAME, name);
        });
        pb::uint(out, track::SIBLING_ORDER_RANK, rank);
    });
}

/// The contents of a thread's descriptor.
pub(super) struct ThreadTrack<'a> {
    pub(super) uuid: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) rank: u32,
    pub(super) name: &'a str,
}

/// Makes `uuid` the track of events that name no track.
pub(super) fn default(out: &mut Vec<u8>, uuid: u64) {
    pb::message(out, packet::TRACE_PACKET_DEFAULTS, |out| {
        pb::message(out, packet_defaults::TRACK_EVENT_DEFAULTS, |out| {
            pb::uint(out, event_defaults::TRACK_UUID, uuid);
        });
    });
}

pub(super) fn thread(out: &mut Vec<u8>, defined: &ThreadTrack<'_>) {
    pb::message(out, packet::TRACK_DESCRIPTOR, |out| {
        pb::uint(out, track::UUID, defined.uuid);
        pb::message(out, track::THREAD, |out| {
            pb::uint(out, thread::PID, defined.pid.into());
            pb::uint(out, thread::TID, defined.tid.into());
            pb::uint(out, thread::LEGACY_SORT_INDEX, defined.rank.into());
            pb::text(out, thread::THREAD_NAME, defined.name);
        });
        pb::uint(out, track::SIBLING_ORDER_RANK, defined.rank.into());
    });
}

/// Explains how to read the timeline. The user interface shows this text on request for the track with our notes; it
/// shows no such text for a thread's track.
pub(super) const READING_AID: &str = "\
Colours show what a thread did: blue is useful work, violet is work while a lock is held, and teal is a phase that the program named. Orange is waiting at a barrier for slower threads, red is waiting for a lock, and pink is waiting for tasks. Olive is the cost of starting and ending parallel regions, and of barriers. Light blue is the host's work for a device, and data transfers; green is the tracer's own time. Pale violet is a region; if there is no slice below the region, the thread executes the region's own code.";

/// The text that the user interface shows on request for a hidden helper's track.
pub(super) fn helper_aid(os_tid: u32) -> String {
    let thread = match os_tid {
        0 => "This thread".to_owned(),
        tid => format!("Thread {tid}"),
    };
    format!(
        "{thread} belongs to the OpenMP runtime. This thread runs the target tasks that the program creates with target nowait."
    )
}

/// A track below `parent`. Its children are sorted by their first events.
pub(super) fn plain(out: &mut Vec<u8>, uuid: u64, parent: u64, name: &str, description: &str) {
    pb::message(out, packet::TRACK_DESCRIPTOR, |out| {
        pb::uint(out, track::UUID, uuid);
        pb::text(out, track::NAME, name);
        pb::uint(out, track::PARENT_UUID, parent);
        if !description.is_empty() {
            pb::text(out, track::DESCRIPTION, description);
        }
        pb::uint(out, track::CHILD_ORDERING, CHRONOLOGICAL);
        pb::uint(out, track::SIBLING_MERGE_BEHAVIOR, SIBLING_MERGE_BEHAVIOR_NONE);
    });
}

/// A counter of the process whose track is `parent`.
pub(super) fn counter(out: &mut Vec<u8>, uuid: u64, parent: u64, defined: &Counter) {
    pb::message(out, packet::TRACK_DESCRIPTOR, |out| {
        pb::uint(out, track::UUID, uuid);
        pb::text(out, track::NAME, &format!("{} {}", defined.unit, defined.name));
        pb::uint(out, track::PARENT_UUID, parent);
        pb::message(out, track::COUNTER, |out| {
            match defined.unit {
                // The track's name contains the unit, and a viewer would print "1 tasks".
                "threads" | "tasks" => pb::uint(out, counter::UNIT, UNIT_COUNT),
                "bytes" => pb::uint(out, counter::UNIT, UNIT_SIZE_BYTES),
                unit => pb::text(out, counter::UNIT_NAME, unit),
            }
        });
    });
}
