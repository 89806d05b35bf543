//! Gaps of the recording of a process.

use omptrace_timeline::model::Ns;

/// The intervals in which recording was off, in chronological order and without overlap.
#[derive(Debug, Default)]
pub(crate) struct Gaps(Vec<Gap>);

#[derive(Debug)]
struct Gap {
    begin: Ns,
    /// `Ns::MAX` while recording is off.
    end: Ns,
    /// The total time of all earlier gaps.
    before: u64,
}

impl Gaps {
    /// Recording was switched off at `time`.
    pub(crate) fn begin(&mut self, time: Ns) {
        let begin = self.0.last().map_or(time, |last| time.max(last.end));
        if begin < Ns::MAX {
            let before = self.until(begin);
            let end = Ns::MAX;
            self.0.push(Gap { begin, end, before });
        }
    }

    /// Whether recording is off.
    pub(crate) fn is_open(&self) -> bool {
        self.0.last().is_some_and(|last| last.end == Ns::MAX)
    }

    /// Recording was switched on at `time`.
    pub(crate) fn end(&mut self, time: Ns) {
        if let Some(last) = self.0.last_mut().filter(|last| last.end == Ns::MAX) {
            last.end = time.clamp(last.begin, Ns::MAX - 1);
        }
    }

    /// The total time of all gaps up to `time`.
    fn until(&self, time: Ns) -> u64 {
        let begun = self.0.partition_point(|gap| gap.begin < time);
        let last = begun.checked_sub(1).map(|index| &self.0[index]);
        last.map_or(0, |gap| gap.before.saturating_add(gap.end.min(time).abs_diff(gap.begin)))
    }

    /// The parts of the interval from `begin` to `end` outside of gaps, in chronological order.
    pub(crate) fn outside(&self, begin: Ns, end: Ns) -> impl Iterator<Item = (Ns, Ns)> {
        let first = self.0.partition_point(|gap| gap.end <= begin);
        let gaps = self.0[first..].iter().take_while(move |gap| gap.begin < end);
        let mut from = begin;
        let ends = gaps.map(|gap| (gap.begin, gap.end)).chain(std::iter::once((end, end)));
        let spans = ends.map(move |(gap_begin, gap_end)| {
            let span = (from, gap_begin.min(end));
            from = gap_end;
            span
        });
        spans.filter(|(begin, end)| begin < end)
    }

    /// The gaps up to `end`.
    pub(crate) fn inside(&self, end: Ns) -> impl Iterator<Item = (Ns, Ns)> {
        let gaps = self.0.iter().take_while(move |gap| gap.begin < end);
        gaps.map(move |gap| (gap.begin, gap.end.min(end)))
    }

    /// The time in gaps between `begin` and `end`.
    #[inline]
    pub(crate) fn between(&self, begin: Ns, end: Ns) -> u64 {
        // Most processes have no gaps.
        match self.0.is_empty() {
            true => 0,
            false => self.until(end).saturating_sub(self.until(begin)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_as_far_as_they_lie_in_a_time() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.between(0, 100), 0);
        gaps.begin(10);
        assert_eq!(gaps.between(0, 15), 5);
        gaps.begin(12);
        gaps.end(20);
        gaps.end(90);
        gaps.begin(30);
        gaps.end(40);
        for (begin, end, expected) in [(0, 100, 20), (15, 35, 10), (20, 30, 0), (0, 10, 0)] {
            assert_eq!(gaps.between(begin, end), expected, "{begin} to {end}");
        }
        let outside = |begin, end| gaps.outside(begin, end).collect::<Vec<_>>();
        assert_eq!(outside(0, 100), [(0, 10), (20, 30), (40, 100)]);
        assert_eq!(outside(15, 35), [(20, 30)]);
        assert_eq!(outside(12, 18), []);
        assert_eq!(gaps.inside(35).collect::<Vec<_>>(), [(10, 20), (30, 35)]);
        // An invalid order of times.
        gaps.begin(35);
        gaps.end(5);
        assert_eq!(gaps.between(0, Ns::MAX), 20);
    }
}
