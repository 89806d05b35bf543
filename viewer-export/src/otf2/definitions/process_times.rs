//! The time range of a process's events.

/// The first and the last time of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessTimes {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Default for ProcessTimes {
    fn default() -> ProcessTimes {
        ProcessTimes { first: u64::MAX, last: 0 }
    }
}

impl ProcessTimes {
    /// Includes the time of an event.
    #[inline]
    pub(crate) fn extend(&mut self, time: u64) {
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }
}
