//! When nothing was recorded in a process.

use omptrace_timeline::sink::Ns;

/// The times of a process in which recording was off, in the order of time. None overlaps another.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<Gap>);

#[derive(Debug)]
struct Gap {
    begin: Ns,
    /// `Ns::MAX` until recording goes on.
    end: Ns,
    /// The time of all gaps before.
    before: u64,
}

impl Gaps {
    /// Recording is off from `time` on.
    pub(super) fn begin(&mut self, time: Ns) {
        let begin = self.0.last().map_or(time, |last| time.max(last.end));
        if begin < Ns::MAX {
            let before = self.until(begin);
            let end = Ns::MAX;
            self.0.push(Gap { begin, end, before });
        }
    }

    /// Recording goes on at `time`.
    pub(super) fn end(&mut self, time: Ns) {
        if let Some(last) = self.0.last_mut().filter(|last| last.end == Ns::MAX) {
            last.end = time.clamp(last.begin, Ns::MAX - 1);
        }
    }

    /// The time of all gaps until `time`.
    fn until(&self, time: Ns) -> u64 {
        let begun = self.0.partition_point(|gap| gap.begin < time);
        let last = begun.checked_sub(1).map(|index| &self.0[index]);
        last.map_or(0, |gap| {
            gap.before
                .saturating_add(gap.end.min(time).abs_diff(gap.begin))
        })
    }

    /// How much of the time from `begin` to `end` lies in gaps.
    pub(super) fn between(&self, begin: Ns, end: Ns) -> u64 {
        self.until(end).saturating_sub(self.until(begin))
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
        // Nonsense.
        gaps.begin(35);
        gaps.end(5);
        assert_eq!(gaps.between(0, Ns::MAX), 20);
    }
}
