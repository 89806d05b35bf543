//! Analyses only a part of the timeline: one window, or all instances of a phase.
//!
//! ```text
//! timeline --> Windowed: time stops outside of the windows --> a collector
//! ```
//!
//! The collector receives every item, so that it knows the teams, tasks and locks that exist when a window begins.
//! Outside of the windows, its time stands still. Collectors that count things, rather than add up time, ask whether
//! they are inside a window.

use omptrace_timeline::model::{
    Enter, Instant, Interval, Item, Leave, Lifetime, Ns, Point, Process, Sink, Summary, Wants,
};

use crate::passes::segments::Continues;

/// Larger than the distance of any time in a trace from the timeline's start; differences of two such values do not
/// overflow.
const FAR: Ns = 1 << 60;

/// Windows in chronological order and without overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Windows(Vec<Span>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    begin: Ns,
    end: Ns,
    /// The start on the compressed timeline, which consists of the windows only.
    at: Ns,
}

impl Windows {
    /// The union of `intervals`.
    pub(crate) fn of(mut intervals: Vec<(Ns, Ns)>) -> Windows {
        for (begin, end) in &mut intervals {
            (*begin, *end) = ((*begin).clamp(-FAR, FAR), (*end).clamp(-FAR, FAR));
        }
        intervals.retain(|(begin, end)| begin < end);
        intervals.sort_unstable();
        let mut spans: Vec<Span> = Vec::new();
        for (begin, end) in intervals {
            let at = match spans.last_mut() {
                Some(last) if begin <= last.end => {
                    last.end = last.end.max(end);
                    continue;
                }
                Some(last) => last.at.saturating_add(last.end - last.begin),
                None => begin,
            };
            spans.push(Span { begin, end, at });
        }
        Windows(spans)
    }

    /// The intersection with `other`.
    pub(crate) fn and(&self, other: &Windows) -> Windows {
        let both = self.0.iter().flat_map(|one| {
            let others = other.0.iter();
            others.map(|other| (one.begin.max(other.begin), one.end.min(other.end)))
        });
        Windows::of(both.collect())
    }

    /// The total time of all windows.
    pub(crate) fn duration(&self) -> u64 {
        let spans = self.0.iter();
        spans.fold(0, |sum: u64, span| sum.saturating_add(span.end.abs_diff(span.begin)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last window that starts at or before `time`.
    fn last_begun(&self, time: Ns) -> Option<&Span> {
        let begun = self.0.partition_point(|span| span.begin <= time);
        Some(&self.0[begun.checked_sub(1)?])
    }

    /// The position of `time` on the compressed timeline.
    pub(crate) fn on(&self, time: Ns) -> Ns {
        match self.last_begun(time) {
            Some(span) => span.at + (time.min(span.end) - span.begin),
            None => self.0.first().map_or(time, |first| first.begin),
        }
    }

    /// Whether a window contains `time`.
    pub(crate) fn contains(&self, time: Ns) -> bool {
        self.last_begun(time).is_some_and(|span| time < span.end)
    }

    /// Whether one window contains all times from `begin` to `end`.
    pub(crate) fn hold(&self, begin: Ns, end: Ns) -> bool {
        self.last_begun(begin).is_some_and(|span| span.begin < begin && end < span.end)
    }

    /// How much of an interval lies in windows, in ns; `None` if it does not touch any.
    pub(crate) fn overlap(&self, begin: Ns, end: Ns) -> Option<u64> {
        let ns = self.on(end.max(begin)).abs_diff(self.on(begin));
        (ns > 0 || self.contains(begin)).then_some(ns)
    }

    /// Converts a start at `at` on the compressed timeline to the time on the whole timeline.
    pub(crate) fn begin(&self, at: Ns) -> Ns {
        let begun = self.0.partition_point(|span| span.at <= at);
        self.whole(begun.saturating_sub(1), at)
    }

    /// Like [`Windows::begin`], for an end.
    pub(crate) fn end(&self, at: Ns) -> Ns {
        let begun = self.0.partition_point(|span| span.at < at);
        self.whole(begun.saturating_sub(1), at)
    }

    fn whole(&self, index: usize, at: Ns) -> Ns {
        let span = self.0.get(index);
        span.map_or(at, |span| span.begin.saturating_add(at - span.at))
    }
}

/// A collector that counts only inside windows.
pub(crate) trait Collects: Sink {
    /// Whether the following items are inside a window.
    fn set_inside(&mut self, is_inside: bool);
    /// A window begins: the open regions are inside it.
    fn window_begins(&mut self);
}

/// Passes a timeline on to `inner`. Its time passes only inside windows; without windows, all the time.
#[derive(Debug)]
pub(crate) struct Windowed<S> {
    windows: Option<Windows>,
    /// The next window to begin.
    next: usize,
    /// The time of the latest item of the process.
    latest: Ns,
    /// For a segment of the process: that time when the segment began.
    began: Option<Ns>,
    pub(crate) inner: S,
}

impl<S: Collects> Windowed<S> {
    pub(crate) fn new(windows: Option<Windows>, mut inner: S) -> Windowed<S> {
        if windows.is_some() {
            inner.set_inside(false);
        }
        Windowed { windows, next: 0, latest: Ns::MIN, began: None, inner }
    }

    /// Begins the windows that start before `time`. A region that ends exactly when a window starts is outside of it.
    fn advance(&mut self, windows: &Windows, time: Ns) {
        let before = self.next;
        while windows.0.get(self.next).is_some_and(|span| span.begin < time) {
            self.next += 1;
        }
        if self.next > before {
            self.inner.window_begins();
        }
        self.latest = self.latest.max(time);
    }

    /// Processes an item at `time`; returns its time on the compressed timeline.
    fn at(&mut self, windows: &Windows, time: Ns) -> Ns {
        self.advance(windows, time);
        let on = windows.on(time);
        // A late item may lie before a window that has already begun.
        let is_inside = windows.contains(time) || on < windows.on(self.latest);
        self.inner.set_inside(is_inside);
        on
    }

    #[inline(never)]
    fn item_in(&mut self, windows: &Windows, item: &Item<'_>) {
        let moved = |at: Point, time: Ns| Point { time, ..at };
        match item {
            Item::Enter(enter) => {
                let at = moved(enter.at, self.at(windows, enter.at.time));
                self.inner.item(&Item::Enter(Enter { at, ..*enter }));
            }
            Item::Leave(leave) => {
                let at = moved(leave.at, self.at(windows, leave.at.time));
                self.inner.item(&Item::Leave(Leave { at, ..*leave }));
            }
            Item::Instant(instant) => {
                let at = moved(instant.at, self.at(windows, instant.at.time));
                self.inner.item(&Item::Instant(Instant { at, ..*instant }));
            }
            Item::ThreadEvent(at, event) => {
                let at = moved(*at, self.at(windows, at.time));
                self.inner.item(&Item::ThreadEvent(at, *event));
            }
            Item::Interval(interval) => {
                let (begin, end) = (windows.on(interval.begin), windows.on(interval.end));
                if begin < end || windows.contains(interval.begin) {
                    self.inner.set_inside(true);
                    self.inner.item(&Item::Interval(Interval { begin, end, ..*interval }));
                }
            }
            Item::Link(link) if !windows.contains(link.to.time) => {}
            Item::Process(process) => {
                self.next = 0;
                self.latest = Ns::MIN;
                let on = |time: Option<Ns>| time.map(|time| windows.on(time));
                let lifetime = Lifetime {
                    started: on(process.lifetime.started),
                    traced_from: windows.on(process.lifetime.traced_from),
                    ended: on(process.lifetime.ended),
                    tracer_ended: process
                        .lifetime
                        .tracer_ended
                        .and_then(|(begin, end)| on(Some(begin)).zip(on(Some(end)))),
                };
                let process = (*process).clone();
                self.inner.item(&Item::Process(&Process { lifetime, ..process }));
            }
            Item::Summary(id, summary) => {
                self.advance(windows, summary.end);
                let summary = Summary { end: windows.on(summary.end), ..(*summary).clone() };
                self.inner.item(&Item::Summary(*id, &summary));
            }
            Item::Segment => {
                self.began = Some(self.latest);
                self.inner.item(item);
            }
            _ => self.inner.item(item),
        }
    }
}

impl<S: Collects + Continues> Continues for Windowed<S> {
    fn end_segment(&mut self) -> bool {
        self.inner.end_segment()
    }

    fn append(&mut self, next: Self) -> bool {
        let is_next = self.windows.is_none() || next.began == Some(self.latest);
        self.latest = next.latest;
        self.inner.append(next.inner) && is_next
    }

    fn complete(&mut self) {
        self.inner.complete();
    }
}

impl<S: Collects> Sink for Windowed<S> {
    fn wants(&self) -> Wants {
        self.inner.wants()
    }

    #[inline(always)]
    fn item(&mut self, item: &Item<'_>) {
        if self.windows.is_none() {
            self.inner.item(item);
        } else if let Some(windows) = self.windows.take() {
            self.item_in(&windows, item);
            self.windows = Some(windows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stops_outside_of_windows() {
        let windows = Windows::of(vec![(50, 60), (10, 20), (15, 30), (70, 70)]);
        let on = |time| windows.on(time);
        assert_eq!([0, 10, 12, 30, 40, 50].map(on), [10, 10, 12, 30, 30, 30]);
        assert_eq!([55, 60, 99].map(on), [35, 40, 40]);
        let inside = |time| windows.contains(time);
        assert_eq!([9, 10, 29, 30, 50, 60].map(inside), [false, true, true, false, true, false]);
        assert_eq!([10, 12, 30, 35].map(|at| windows.begin(at)), [10, 12, 50, 55]);
        assert_eq!([10, 12, 30, 40].map(|at| windows.end(at)), [10, 12, 30, 60]);
        let overlap = |begin, end| windows.overlap(begin, end);
        assert_eq!([overlap(0, 10), overlap(30, 50), overlap(0, 12)], [None, None, Some(2)]);
        assert_eq!([overlap(12, 12), overlap(0, 99)], [Some(0), Some(30)]);
        let hold = |begin, end| windows.hold(begin, end);
        assert_eq!([hold(11, 29), hold(51, 59)], [true, true]);
        assert_eq!([hold(10, 29), hold(11, 30), hold(11, 55), hold(35, 40), hold(0, 5)], [false; 5]);
        let half = Windows::of(vec![(25, 55)]);
        assert_eq!(windows.and(&half), Windows::of(vec![(25, 30), (50, 55)]));
        assert!(windows.and(&Windows::default()).is_empty());
    }

    #[test]
    fn open_ends_reach_to_the_end_of_time() {
        let windows = Windows::of(vec![(5, Ns::MAX)]);
        assert_eq!((windows.on(3), windows.on(7)), (5, 7));
        assert_eq!(windows.on(Ns::MAX), FAR);
        let windows = Windows::of(vec![(Ns::MIN, Ns::MAX)]);
        assert_eq!((windows.on(-3), windows.on(FAR)), (-3, FAR));
    }
}
