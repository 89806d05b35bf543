//! Converts raw ticks to nanoseconds, with one monotone map per session.
//!
//! Each block holds a [`ClockPair`]: the session's clock and the system's clocks, read together. Taking the readings is
//! not instantaneous, and the thread may be preempted between them, so pairs close to each other say little about the
//! clock's rate. The map therefore goes through pairs that are at least a second apart, and skips pairs whose rate
//! differs from the session's by more than a thousandth. Because both clocks are steady, a few pairs of a long session
//! are as good as all of them, and quicker to search.

use crate::layout::block::ClockPair;
use crate::metadata::Clock;
use crate::read::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};

/// Minimum distance between two pairs from which the clock's rate is computed.
const KNOT_DISTANCE_NS: u64 = 1_000_000_000;
/// Maximum number of stretches of the map; there may be one more.
const MAX_STRETCHES: u64 = 16;
/// Upper limit for the time between the session's start and an event, in nanoseconds: more than two years, which no
/// program runs. The limit keeps sums of nonsensical times from overflowing.
pub const MAX_SESSION_NS: i64 = 1 << 56;
/// Relative difference between two rates that are taken to be equal. A clock keeps its rate to tens of millionths. A
/// thread interrupted between two readings, and the rate estimated at the session's start, cause larger errors, but
/// below one thousandth for pairs a second apart.
const TOLERANCE: f64 = 1e-3;

/// Start of a piece of the piecewise linear map: `ns_per_tick` applies from here on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Knot {
    ticks: u64,
    ns: i64,
    ns_per_tick: f64,
}

/// The [`ClockMap`] between two of its knots.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    knot: Knot,
    /// Raw ticks at which the next stretch starts.
    end: u64,
    /// Bounds of the nanoseconds since the knot, so that sums do not overflow.
    least: i64,
    most: i64,
}

impl Stretch {
    /// End of the stretch (exclusive), in raw ticks.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Like [`ClockMap::ns`], for `ticks` within this stretch.
    #[inline]
    pub fn ns(&self, ticks: u64) -> i64 {
        // Ticks before the first knot give a negative difference.
        let ticks = ticks.wrapping_sub(self.knot.ticks) as i64;
        let ns = (ticks as f64 * self.knot.ns_per_tick) as i64;
        self.knot.ns + ns.min(self.most).max(self.least)
    }

    /// Returns the stretch shifted, so that [`Stretch::ns`] gives times on a timeline on which the session starts at
    /// `start` nanoseconds. Times before the timeline's zero become 0.
    pub fn on_timeline(self, start: i64) -> Stretch {
        let ns = self.knot.ns.saturating_add(start);
        Stretch {
            knot: Knot { ns, ..self.knot },
            least: 0i64.saturating_sub(ns).max(self.least),
            most: i64::MAX.saturating_sub(ns).min(self.most),
            ..self
        }
    }
}

/// The map from raw ticks to nanoseconds since the session's start: monotone, piecewise linear, and continued beyond
/// both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockMap {
    knots: Vec<Knot>,
    start_raw_ns: u64,
    start_realtime_ns: u64,
    realtime_uncertainty_ns: u64,
}

impl ClockMap {
    /// Builds the map from `pairs`, in any order. The session starts at `start` or, without one, at the earliest pair.
    pub(crate) fn new(
        start: Option<ClockPair>,
        mut pairs: Vec<ClockPair>,
        clock: Option<&Clock>,
        diagnostics: &mut Diagnostics,
    ) -> ClockMap {
        pairs.extend(start);
        pairs.retain(|pair| *pair != ClockPair::default());
        pairs.sort_unstable_by_key(|pair| (pair.ticks, pair.monotonic_raw_ns));
        pairs.dedup();
        let Some(&first) = pairs.first() else {
            diagnostics.push(Diagnostic::new(DiagnosticKind::ClockMissing));
            return ClockMap::straight(0, 1.0);
        };
        let start = start.filter(|start| *start != ClockPair::default());
        let start = start.unwrap_or(first);
        let nominal = clock.map(|clock| 1e9 / clock.ticks_per_second).filter(|rate| is_rate(*rate));
        let rate = session_rate(&pairs, nominal);
        let (path, skipped) = path(&pairs, rate);
        if skipped > 0 {
            diagnostics.push(Diagnostic::new(DiagnosticKind::ClockSkipped).count(skipped));
        }
        let mut map = ClockMap::straight(first.ticks, rate);
        if path.len() > 1 {
            map.knots = path.windows(2).map(|two| knot(first, two[0], two[1])).collect();
        }
        // The map has its zero at the first pair so far; move the zero to the session's start.
        let zero = map.ns(start.ticks);
        for knot in &mut map.knots {
            knot.ns = knot.ns.saturating_sub(zero);
        }
        map.start_raw_ns = start.monotonic_raw_ns;
        map.start_realtime_ns = start.realtime_ns;
        let read = clock.map_or(0.0, |clock| clock.uncertainty_ticks as f64 * rate);
        map.realtime_uncertainty_ns = (read as u64).saturating_add(realtime_drift(&pairs));
        map
    }

    fn straight(ticks: u64, ns_per_tick: f64) -> ClockMap {
        ClockMap {
            knots: vec![Knot { ticks, ns: 0, ns_per_tick }],
            start_raw_ns: 0,
            start_realtime_ns: 0,
            realtime_uncertainty_ns: 0,
        }
    }

    /// Returns the map with `corrected` applied to its times (nanoseconds since the session's start). `corrected` must
    /// be monotone, and linear between two consecutive `bends`.
    pub fn corrected(&self, bends: &[i64], corrected: impl Fn(i64) -> i64) -> ClockMap {
        let mut ticks: Vec<u64> = self.knots.iter().map(|knot| knot.ticks).collect();
        ticks.extend(bends.iter().map(|ns| self.ticks_at(*ns)));
        ticks.sort_unstable();
        ticks.dedup();
        let knots = ticks.iter().enumerate().map(|(place, from)| {
            let knot = self.stretch(*from).knot;
            let ns = corrected(self.ns(*from));
            let ns_per_tick = match ticks.get(place + 1) {
                Some(to) => corrected(self.ns(*to)).saturating_sub(ns) as f64 / (to - from) as f64,
                None => {
                    let later = self.ns(*from).saturating_add(1 << 30);
                    let ratio = corrected(later).saturating_sub(ns) as f64 / f64::from(1 << 30);
                    knot.ns_per_tick * ratio
                }
            };
            Knot { ticks: *from, ns, ns_per_tick }
        });
        ClockMap { knots: knots.collect(), ..*self }
    }

    /// Nanoseconds from the session's start to `ticks`; negative before it. At most [`MAX_SESSION_NS`] either way.
    pub fn ns(&self, ticks: u64) -> i64 {
        self.stretch(ticks).ns(ticks)
    }

    /// Returns the earliest raw tick whose time is at least `ns` nanoseconds after the session's start.
    pub fn ticks_at(&self, ns: i64) -> u64 {
        let (mut low, mut high) = (0, u64::MAX >> 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.ns(middle) >= ns {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    /// The stretch of the map that contains `ticks`. Converting many close times through their stretch saves the search
    /// for each.
    pub fn stretch(&self, ticks: u64) -> Stretch {
        let after = self.knots.partition_point(|knot| knot.ticks <= ticks);
        let next = self.knots.get(after);
        let knot = self.knots[after.saturating_sub(1)];
        // Rounding must not carry a time beyond the next knot.
        let most_ns = next.map_or(MAX_SESSION_NS, |next| next.ns.min(MAX_SESSION_NS));
        Stretch {
            knot,
            end: next.map_or(u64::MAX, |next| next.ticks),
            least: (-MAX_SESSION_NS).saturating_sub(knot.ns),
            most: most_ns.saturating_sub(knot.ns),
        }
    }

    /// `CLOCK_MONOTONIC_RAW` at the session's start, in nanoseconds; 0 where unknown.
    pub fn start_raw_ns(&self) -> u64 {
        self.start_raw_ns
    }

    /// `CLOCK_REALTIME` at the session's start, in nanoseconds since 1970; 0 where unknown.
    pub fn start_realtime_ns(&self) -> u64 {
        self.start_realtime_ns
    }

    /// Upper bound for the difference between an event's real time and the start's real time plus [`ClockMap::ns`]: the
    /// time taken to read both clocks, plus the adjustments of the system's real time during the session.
    pub fn realtime_uncertainty_ns(&self) -> u64 {
        self.realtime_uncertainty_ns
    }
}

fn is_rate(ns_per_tick: f64) -> bool {
    ns_per_tick.is_finite() && ns_per_tick > 0.0
}

/// The pairs that determine the session's map: `start`, each pair that is at least [`KNOT_DISTANCE_NS`] after the one
/// kept before it, and the latest.
pub(crate) fn relevant_pairs(start: ClockPair, mut pairs: Vec<ClockPair>) -> Vec<ClockPair> {
    pairs.sort_unstable_by_key(|pair| pair.ticks);
    let mut relevant = vec![start];
    for (index, pair) in pairs.iter().enumerate() {
        let before = relevant[relevant.len() - 1].monotonic_raw_ns;
        let is_far = pair.monotonic_raw_ns.abs_diff(before) >= KNOT_DISTANCE_NS;
        if is_far || index + 1 == pairs.len() {
            relevant.push(*pair);
        }
    }
    relevant.dedup();
    relevant
}

/// Nanoseconds per tick between two pairs; `None` unless both clocks went forward.
fn rate_between(a: ClockPair, b: ClockPair) -> Option<f64> {
    let ticks = b.ticks.checked_sub(a.ticks)?;
    let ns = b.monotonic_raw_ns.checked_sub(a.monotonic_raw_ns)?;
    let rate = ns as f64 / ticks as f64;
    is_rate(rate).then_some(rate)
}

fn agree(rate: f64, other: f64) -> bool {
    (rate / other - 1.0).abs() <= TOLERANCE
}

/// The reference rate: that of the whole session if the session is long or its rate agrees with the nominal one, else
/// the nominal rate.
fn session_rate(pairs: &[ClockPair], nominal: Option<f64>) -> f64 {
    let (first, last) = (pairs[0], pairs[pairs.len() - 1]);
    let whole = rate_between(first, last);
    match (whole, nominal) {
        (Some(whole), Some(nominal)) => {
            let distance = last.monotonic_raw_ns - first.monotonic_raw_ns;
            if distance >= KNOT_DISTANCE_NS || agree(whole, nominal) { whole } else { nominal }
        }
        (Some(rate), None) | (None, Some(rate)) => rate,
        (None, None) => 1.0,
    }
}

/// The pairs that the map goes through, at least [`KNOT_DISTANCE_NS`] apart, and the number of pairs that contradict
/// `rate`.
fn path(pairs: &[ClockPair], rate: f64) -> (Vec<ClockPair>, u64) {
    let whole = (pairs[pairs.len() - 1].ticks - pairs[0].ticks) as f64 * rate;
    let least = KNOT_DISTANCE_NS.max(whole as u64 / MAX_STRETCHES);
    let mut path = vec![pairs[0]];
    let mut skipped = 0;
    for &pair in &pairs[1..] {
        let before = path[path.len() - 1];
        let distance = pair.monotonic_raw_ns.saturating_sub(before.monotonic_raw_ns);
        let near = ((pair.ticks - before.ticks) as f64 * rate) < least as f64;
        match rate_between(before, pair) {
            _ if near && distance < least => {}
            Some(here) if agree(here, rate) => path.push(pair),
            _ => skipped += 1,
        }
    }
    (path, skipped)
}

/// The knot at pair `a`, with the rate between `a` and `b`; its time is in nanoseconds since `first`.
fn knot(first: ClockPair, a: ClockPair, b: ClockPair) -> Knot {
    Knot {
        ticks: a.ticks,
        ns: i64::try_from(a.monotonic_raw_ns - first.monotonic_raw_ns).unwrap_or(i64::MAX),
        ns_per_tick: rate_between(a, b).unwrap_or(1.0),
    }
}

/// The range of the differences between `CLOCK_REALTIME` and `CLOCK_MONOTONIC_RAW`.
fn realtime_drift(pairs: &[ClockPair]) -> u64 {
    let offsets = pairs.iter().map(|pair| pair.realtime_ns.wrapping_sub(pair.monotonic_raw_ns) as i64);
    let (min, max) =
        offsets.fold((i64::MAX, i64::MIN), |(min, max), offset| (min.min(offset), max.max(offset)));
    max.abs_diff(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GHZ2: f64 = 2e9;

    fn pair(ticks: u64, ns: u64) -> ClockPair {
        ClockPair { ticks, monotonic_raw_ns: ns, realtime_ns: ns.wrapping_add(7) }
    }

    fn map(pairs: &[(u64, u64)], ticks_per_second: f64) -> (ClockMap, Vec<DiagnosticKind>) {
        let mut diagnostics = Diagnostics::new(10);
        let pairs: Vec<ClockPair> = pairs.iter().map(|(ticks, ns)| pair(*ticks, *ns)).collect();
        let clock = Clock { ticks_per_second, ..Clock::default() };
        let map = ClockMap::new(pairs.first().copied(), pairs, Some(&clock), &mut diagnostics);
        let kinds = diagnostics.take().iter().map(|found| found.kind).collect();
        (map, kinds)
    }

    /// Checks the nanoseconds of some ticks, with a tolerance of one.
    fn check(pairs: &[(u64, u64)], ticks_per_second: f64, expected: &[(u64, i64)]) {
        let (map, kinds) = map(pairs, ticks_per_second);
        assert_eq!(kinds, []);
        for (ticks, ns) in expected {
            assert!(map.ns(*ticks).abs_diff(*ns) <= 1, "{ticks}: {}", map.ns(*ticks));
        }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn follows_pairs_far_apart() {
        // The clock runs at 2 GHz, then a hundred millionths faster.
        let pairs =
            [(1000, 5 * SECOND), (1000 + 4 * SECOND, 7 * SECOND), (1000 + 8 * SECOND, 9 * SECOND - 200_000)];
        let second = SECOND as i64;
        let expected = [
            (1000, 0),
            (1000 + 2 * SECOND, second),
            (1000 + 4 * SECOND, 2 * second),
            (1000 + 6 * SECOND, 3 * second - 100_000),
            // Beyond both ends.
            (0, -500),
            (1000 + 10 * SECOND, 5 * second - 300_000),
        ];
        check(&pairs, 1.9e9, &expected);
    }

    #[test]
    fn close_pairs_make_no_wild_rate() {
        // The second pair was read by an interrupted thread.
        let pairs = [(0, 0), (2000, 50_000), (4000, 2000)];
        check(&pairs[..2], GHZ2, &[(2 * SECOND, SECOND as i64)]);
        let long = [(0, 0), (2 * SECOND, SECOND), (2 * SECOND + 10, SECOND + 9999), (4 * SECOND, 2 * SECOND)];
        check(&long, GHZ2, &[(3 * SECOND, 1_500_000_000), (4 * SECOND, 2 * SECOND as i64)]);
    }

    #[test]
    fn short_sessions_use_their_own_rate_where_it_is_sane() {
        let pairs = [(0, 0), (SECOND, SECOND / 2 + 5000)];
        check(&pairs, GHZ2, &[(SECOND, SECOND as i64 / 2 + 5000)]);
        check(&pairs, 0.0, &[(SECOND, SECOND as i64 / 2 + 5000)]);
    }

    #[test]
    fn skips_pairs_that_contradict_the_others() {
        let pairs = [(0, 0), (2 * SECOND, 3 * SECOND), (4 * SECOND, 2 * SECOND)];
        let (map, kinds) = map(&pairs, GHZ2);
        assert_eq!(kinds, [DiagnosticKind::ClockSkipped]);
        assert_eq!(map.ns(2 * SECOND), SECOND as i64);
    }

    #[test]
    fn without_pairs_a_tick_is_a_nanosecond() {
        let (map, kinds) = map(&[], 0.0);
        assert_eq!(kinds, [DiagnosticKind::ClockMissing]);
        assert_eq!((map.ns(5), map.start_realtime_ns()), (5, 0));
    }

    #[test]
    fn never_goes_back() {
        let jitter = [3, 900, 0, 450, 77, 1000, 12];
        let pairs: Vec<(u64, u64)> =
            (0..40).map(|i| (i * 3_333_333_333, i * 1_111_111_111 + jitter[i as usize % 7])).collect();
        let (map, _) = map(&pairs, 3e9);
        let mut before = i64::MIN;
        for &(ticks, _) in &pairs {
            for ticks in ticks.saturating_sub(20)..ticks + 20 {
                let ns = map.ns(ticks);
                assert!(ns >= before, "{ticks}");
                before = ns;
            }
        }
    }

    #[test]
    fn any_pairs_make_a_map() {
        let extremes = [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        for a in extremes {
            for b in extremes {
                let pairs = [(a, b), (b, a), (a / 3, b), (b, 5)];
                let (map, _) = map(&pairs, a as f64);
                for ticks in extremes {
                    assert!(map.ns(ticks).unsigned_abs() <= MAX_SESSION_NS.unsigned_abs());
                }
            }
        }
    }
}
