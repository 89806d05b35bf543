//! The number of busy threads over time, and what kept the others idle.
//!
//! Changes arrive approximately in chronological order: a worker that is woken late belongs to its team from the start
//! of the region. So changes are queued until no earlier change can arrive.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use omptrace_timeline::model::Ns;

use crate::model::sum::Sum;

/// A change of what threads do. The variants are sorted so that of simultaneous changes, ends precede starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// A thread stops being busy.
    Rests,
    /// An MPI call returns.
    Returns { region: u32 },
    /// The newest outermost region with this place ends.
    Closes { region: u32 },
    /// Recording continues.
    Records,
    /// Recording pauses.
    Pauses,
    /// An outermost region with this place starts.
    Opens { region: u32 },
    /// A thread starts an MPI call.
    Calls { region: u32 },
    /// A thread becomes busy.
    Works,
}

/// An amount of time, and the thread time of the threads that were busy in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Nanoseconds.
    pub(crate) ns: u64,
    /// Thread-nanoseconds.
    pub(crate) busy_ns: u64,
}

impl Span {
    fn add(&mut self, ns: u64, busy: u64) {
        self.ns = self.ns.saturating_add(ns);
        self.busy_ns = self.busy_ns.saturating_add(ns.saturating_mul(busy));
    }

    /// The number of threads with nothing to do per busy thread, if there are `threads` threads.
    pub(crate) fn idle_share(&self, threads: u64) -> f64 {
        self.idle(threads) as f64 / self.busy_ns.max(1) as f64
    }

    fn append(&mut self, more: Span) {
        self.ns.grow_by(more.ns);
        self.busy_ns.grow_by(more.busy_ns);
    }

    /// The thread time during which `threads` threads had nothing to do.
    pub(crate) fn idle(&self, threads: u64) -> u64 {
        self.ns.saturating_mul(threads).saturating_sub(self.busy_ns)
    }
}

/// Serial code, identified by the regions before and after it; `None` before the first region or after the last.
pub(crate) type Between = (Option<u32>, Option<u32>);

/// The number of busy threads over time.
#[derive(Debug)]
pub(crate) struct Concurrency {
    waiting: BinaryHeap<Reverse<(Ns, Change)>>,
    now: Ns,
    /// May be negative for an instant: the end of a state that took no time sorts before its begin.
    busy: i64,
    /// The peak number of busy threads.
    pub(crate) most: u64,
    open: Vec<u32>,
    /// Zero-length regions: their end has been seen, but not their start.
    closed: Vec<u32>,
    last: Option<u32>,
    /// The MPI calls that are in progress, newest last; then zero-length calls whose end has been seen, but not their
    /// start.
    in_calls: Vec<u32>,
    returned: Vec<u32>,
    /// Number of pauses in progress. It is negative for an instant if a pause has zero length.
    pauses: i32,
    current: Span,
    /// Serial code, by the regions before and after it.
    pub(crate) serial: BTreeMap<Between, Span>,
    /// Time without an open region during which a thread was in an MPI call, by the newest such call.
    pub(crate) calls: BTreeMap<u32, Span>,
    /// Time with open regions, by the newest open region.
    pub(crate) regions: BTreeMap<u32, Span>,
    /// Time during which nothing was recorded.
    pub(crate) paused_ns: u64,
}

impl Concurrency {
    pub(crate) fn new(begin: Ns) -> Concurrency {
        Concurrency {
            waiting: BinaryHeap::new(),
            now: begin,
            busy: 0,
            most: 0,
            open: Vec::new(),
            closed: Vec::new(),
            last: None,
            in_calls: Vec::new(),
            returned: Vec::new(),
            pauses: 0,
            current: Span::default(),
            serial: BTreeMap::new(),
            calls: BTreeMap::new(),
            regions: BTreeMap::new(),
            paused_ns: 0,
        }
    }

    pub(crate) fn push(&mut self, time: Ns, change: Change) {
        self.waiting.push(Reverse((time, change)));
    }

    /// Whether enough changes are queued to be worth processing.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() > 256
    }

    /// Whether the queue should be processed although no region has ended for a long time.
    pub(crate) fn is_overfull(&self) -> bool {
        self.waiting.len() > 1 << 16
    }

    /// Processes the changes up to `time`. No earlier change will arrive.
    pub(crate) fn advance(&mut self, time: Ns) {
        while let Some(Reverse((at, change))) = self.waiting.peek().copied()
            && at <= time
        {
            self.waiting.pop();
            self.until(at);
            self.make(change);
        }
        self.until(time);
    }

    fn until(&mut self, time: Ns) {
        if time <= self.now {
            return;
        }
        let ns = time.abs_diff(self.now);
        self.now = time;
        if self.pauses > 0 {
            self.paused_ns.grow_by(ns);
            return;
        }
        let busy = self.busy.max(0).cast_unsigned();
        self.most = self.most.max(busy);
        let span = match (self.open.last(), self.in_calls.last()) {
            (Some(region), _) => self.regions.entry(*region).or_default(),
            (None, Some(call)) => self.calls.entry(*call).or_default(),
            (None, None) => &mut self.current,
        };
        span.add(ns, busy);
    }

    fn make(&mut self, change: Change) {
        match change {
            Change::Works => self.busy += 1,
            Change::Rests => self.busy -= 1,
            Change::Calls { region } => match self.returned.iter().position(|returned| *returned == region) {
                Some(index) => {
                    self.returned.swap_remove(index);
                }
                None => self.in_calls.push(region),
            },
            Change::Returns { region } => match self.in_calls.iter().rposition(|call| *call == region) {
                Some(index) => {
                    self.in_calls.remove(index);
                }
                None => self.returned.push(region),
            },
            Change::Pauses => self.pauses += 1,
            Change::Records => self.pauses -= 1,
            Change::Opens { region } => {
                let closed = self.closed.iter().position(|closed| *closed == region);
                if self.open.is_empty() {
                    self.end_serial(Some(region));
                    // In the time of windows, regions after a window have zero length, but serial code still lies
                    // before them.
                    if closed.is_some() {
                        self.last = Some(region);
                    }
                }
                match closed {
                    Some(index) => {
                        self.closed.swap_remove(index);
                    }
                    None => self.open.push(region),
                }
            }
            Change::Closes { region } => {
                match self.open.iter().rposition(|open| *open == region) {
                    Some(index) => {
                        self.open.remove(index);
                    }
                    None => return self.closed.push(region),
                }
                if self.open.is_empty() {
                    self.last = Some(region);
                }
            }
        }
    }

    fn end_serial(&mut self, before: Option<u32>) {
        let current = std::mem::take(&mut self.current);
        if current.ns > 0 {
            let span = self.serial.entry((self.last, before)).or_default();
            span.append(current);
        }
    }

    /// Starts after the region `last`.
    pub(crate) fn behind(self, last: Option<u32>) -> Concurrency {
        Concurrency { last, ..self }
    }

    /// Adds a later segment. `known` maps its regions to regions here.
    pub(crate) fn append(&mut self, more: Concurrency, known: impl Fn(u32) -> u32) {
        self.most = self.most.max(more.most);
        self.paused_ns.grow_by(more.paused_ns);
        for ((after, before), span) in more.serial {
            let between = (after.map(&known), before.map(&known));
            self.serial.entry(between).or_default().append(span);
        }
        for (region, span) in more.calls {
            self.calls.entry(known(region)).or_default().append(span);
        }
        for (region, span) in more.regions {
            self.regions.entry(known(region)).or_default().append(span);
        }
    }

    /// Processes the remaining changes at the end of the process.
    pub(crate) fn finish(&mut self, end: Ns) {
        self.advance(end.max(self.now));
        self.end_serial(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_woken_late_was_missed_since_the_region_began() {
        let mut activity = Concurrency::new(0);
        activity.push(0, Change::Works);
        activity.push(10, Change::Opens { region: 7 });
        activity.push(20, Change::Rests);
        activity.push(10, Change::Works);
        activity.push(20, Change::Closes { region: 7 });
        activity.push(20, Change::Works);
        activity.push(30, Change::Rests);
        activity.finish(30);
        assert_eq!(activity.most, 2);
        let serial = |ns, busy_ns| Span { ns, busy_ns };
        assert_eq!(activity.serial[&(None, Some(7))], serial(10, 10));
        assert_eq!(activity.serial[&(Some(7), None)], serial(10, 20));
        assert_eq!(activity.regions[&7], serial(10, 20));
        assert_eq!(activity.regions[&7].idle(4), 20);
    }

    #[test]
    fn the_newest_call_is_charged_for_idle_threads() {
        let mut activity = Concurrency::new(0);
        activity.push(0, Change::Works);
        activity.push(0, Change::Works);
        activity.push(10, Change::Calls { region: 3 });
        activity.push(20, Change::Calls { region: 4 });
        activity.push(30, Change::Returns { region: 4 });
        activity.push(40, Change::Returns { region: 3 });
        activity.push(50, Change::Rests);
        activity.push(50, Change::Rests);
        activity.finish(50);
        let span = |ns, busy_ns| Span { ns, busy_ns };
        assert_eq!(activity.calls[&3], span(20, 40));
        assert_eq!(activity.calls[&4], span(10, 20));
        assert_eq!(activity.serial[&(None, None)], span(20, 40));
    }

    #[test]
    fn serial_code_lies_before_a_region_that_took_no_time() {
        let mut activity = Concurrency::new(0);
        activity.push(0, Change::Works);
        activity.push(10, Change::Opens { region: 7 });
        activity.push(10, Change::Closes { region: 7 });
        activity.push(25, Change::Rests);
        activity.finish(25);
        let serial = |ns, busy_ns| Span { ns, busy_ns };
        assert_eq!(activity.serial[&(None, Some(7))], serial(10, 10));
        assert_eq!(activity.serial[&(Some(7), None)], serial(15, 15));
        assert!(activity.regions.is_empty());
    }
}
