//! Consecutive segments of a process in one sequence.

use std::hash::Hasher;

use omptrace_symbols::fast_map::Fold;

use super::intern::Strings;
use super::schema::{INCREMENTAL_STATE_CLEARED, packet};
use super::{Perfetto, tracks};
use crate::writer::interned_text::RecentTexts;
use crate::writer::protobuf as pb;

impl Perfetto {
    /// Writes what was held back, and adds to the file's identity.
    pub(super) fn end_segment(&mut self) {
        for track in &mut self.tracks {
            track.write_newest(self.out.buffer());
            self.out.written();
        }
        let mut identity = match self.segment {
            0 => std::mem::take(&mut self.identity),
            _ => Fold::default(),
        };
        identity.write_u64(std::mem::take(&mut self.times));
        self.share.identify(identity.finish());
    }

    /// Starts as if nothing had been written, except for the tracks of the process and its threads.
    #[cold]
    pub(super) fn begin_segment(&mut self) {
        if !std::mem::take(&mut self.is_before_segment) {
            self.end_segment();
        }
        self.segment += 1;
        self.flows = 0;
        self.sources = 0;
        self.strings = Strings::new(self.sequence);
        self.names = RecentTexts::new();
        for region in &mut self.regions {
            region.name = None;
        }
        for process in &mut self.processes {
            process.locks = None;
        }
        for track in &mut self.tracks {
            track.begin();
        }
        for late in self.late.iter_mut().flatten() {
            late.is_described = false;
        }
        for counter in &mut self.counters {
            counter.is_described = false;
            counter.track.begin();
        }
        self.packet(|out| pb::uint(out, packet::SEQUENCE_FLAGS, INCREMENTAL_STATE_CLEARED));
        if let Some(uuid) = self.default_track {
            self.packet(|out| tracks::default(out, uuid));
        }
    }
}
