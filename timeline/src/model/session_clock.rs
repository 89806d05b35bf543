//! Converts a session's raw ticks to the timeline's nanoseconds.

use omptrace_trace_format::clock::{ClockMap, Stretch};

use crate::model::Ns;

/// Converts times of a session to times on the timeline.
#[derive(Clone, Copy)]
pub(crate) struct SessionClock<'t> {
    pub(crate) map: &'t ClockMap,
    /// The session's start on the timeline.
    pub(crate) start: Ns,
}

impl SessionClock<'_> {
    pub(crate) fn time(&self, ticks: u64) -> Ns {
        self.on_timeline(self.map.ns(ticks))
    }

    /// The time at this distance, in nanoseconds, from the session's start.
    pub(crate) fn on_timeline(&self, ns: i64) -> Ns {
        self.start.saturating_add(ns).max(0)
    }

    /// The piece of the map that contains `ticks`, with times on the timeline.
    pub(crate) fn stretch(&self, ticks: u64) -> Stretch {
        self.map.stretch(ticks).on_timeline(self.start)
    }
}
