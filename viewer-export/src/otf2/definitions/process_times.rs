//! When the events of a process lie.

/// When a process was seen.
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
    /// There is an event.
    #[inline]
    pub(crate) fn extend(&mut self, time: u64) {
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }
}
