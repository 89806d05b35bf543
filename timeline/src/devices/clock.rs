//! Converts a device's clock to the timeline's by a piecewise linear map.
//!
//! There are three sources, in order of preference: pairs of both clocks that the tracer has read; times that the
//! runtime has translated; and if there are neither, bounds: no operation begins before the host requests it, and none
//! ends after its record was delivered.

use serde::Serialize;

/// Points closer together than this make the rate too inaccurate; of such points, the most accurate one is kept.
const KNOT_DISTANCE_NS: f64 = 50e6;
/// If a translated time is off by more than this, it does not count from the epoch of the time of day.
const SAME_ZERO_NS: f64 = 1e9;

/// A time on both clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockPoint {
    pub(crate) device_time: u64,
    /// Nanoseconds since the session's start.
    pub(crate) ns: f64,
    /// The largest error of `ns`.
    pub(crate) uncertainty_ns: f64,
}

/// Bounds of a record whose host operation is known; the map must respect them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    /// The start on the device's clock.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// When the host requested the operation, in nanoseconds since the session's start; `None` if unknown.
    pub(crate) asked_ns: Option<f64>,
    /// When the record was delivered.
    pub(crate) delivered_ns: f64,
}

/// The source of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// Both clocks were read together.
    #[default]
    ClockPairs,
    /// `ompt_translate_time` was called.
    TranslateTime,
    /// The map was fitted between the requests of the host and the deliveries of records.
    HostOperations,
}

impl ClockSource {
    fn text(self) -> &'static str {
        match self {
            ClockSource::ClockPairs => "readings of both clocks",
            ClockSource::TranslateTime => "results of ompt_translate_time",
            ClockSource::HostOperations => "operations on the host",
        }
    }
}

/// How a device's times were mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceClockReport {
    /// The kind of readings from which the map was made.
    pub source: ClockSource,
    /// Number of points of the map.
    pub points: usize,
    /// The largest error of mapped times, in nanoseconds: the uncertainty of the points, or the deviation of points
    /// that the map does not pass through.
    pub uncertainty_ns: u64,
    /// The largest difference between `ompt_translate_time` and the readings of both clocks, if there are both.
    pub translation_differs_ns: Option<u64>,
    /// How much mapped times contradict the host's operations, as the mean over the records that were checked.
    pub residual_ns: u64,
}

impl std::fmt::Display for DeviceClockReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "device clock derived from {} {}, accurate to {} ns; on average, the device's timestamps contradict those of operations on the host by {} ns",
            self.points,
            self.source.text(),
            self.uncertainty_ns,
            self.residual_ns
        )?;
        match self.translation_differs_ns {
            Some(ns) => write!(f, "; results of ompt_translate_time differ from this clock by up to {ns} ns"),
            None => Ok(()),
        }
    }
}

/// The map of one device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceClockMap {
    knots: Vec<Knot>,
    uncertainty_ns: f64,
}

/// A segment of the map: from this point on, `ns_per_tick` applies.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Knot {
    device_time: u64,
    ns: f64,
    ns_per_tick: f64,
}

impl DeviceClockMap {
    /// The map through `points`; `None` if there are none.
    pub(crate) fn through(mut points: Vec<ClockPoint>) -> Option<DeviceClockMap> {
        points.retain(|point| point.ns.is_finite());
        points.sort_by(|a, b| a.device_time.cmp(&b.device_time).then(a.ns.total_cmp(&b.ns)));
        let path = path(&points);
        let first = *path.first()?;
        let knot = |two: &[ClockPoint]| Knot {
            device_time: two[0].device_time,
            ns: two[0].ns,
            ns_per_tick: rate(two[0], two[1]).unwrap_or(1.0),
        };
        let mut knots: Vec<Knot> = path.windows(2).map(knot).collect();
        if knots.is_empty() {
            knots.push(Knot { device_time: first.device_time, ns: first.ns, ns_per_tick: 1.0 });
        }
        let mut map = DeviceClockMap { knots, uncertainty_ns: 0.0 };
        let contradiction =
            |point: &ClockPoint| (map.ns(point.device_time) - point.ns).abs() - point.uncertainty_ns;
        let of_path = path.iter().map(|point| point.uncertainty_ns).fold(0.0, f64::max);
        map.uncertainty_ns = points.iter().map(contradiction).fold(of_path, f64::max);
        Some(map)
    }

    /// The map that shifts device times, which are assumed to be nanoseconds, so that they respect as many `bounds` as
    /// possible.
    pub(crate) fn between(bounds: &[Bounds]) -> Option<DeviceClockMap> {
        let zero = bounds.first()?.begin;
        let since = |time: u64| time.wrapping_sub(zero) as i64 as f64;
        let earliest = bounds.iter().filter_map(|bound| Some(bound.asked_ns? - since(bound.begin)));
        let earliest = earliest.fold(f64::NEG_INFINITY, f64::max);
        let latest = bounds.iter().map(|bound| bound.delivered_ns - since(bound.end));
        let latest = latest.fold(f64::INFINITY, f64::min);
        let ns = if earliest.is_finite() { earliest } else { latest };
        Some(DeviceClockMap {
            knots: vec![Knot { device_time: zero, ns, ns_per_tick: 1.0 }],
            uncertainty_ns: (latest - ns).abs(),
        })
    }

    /// Nanoseconds from the session's start to `device_time`.
    pub(crate) fn ns(&self, device_time: u64) -> f64 {
        let after = self.knots.partition_point(|knot| knot.device_time <= device_time);
        let knot = &self.knots[after.saturating_sub(1)];
        // The difference keeps its sign before the first knot.
        let ticks = device_time.wrapping_sub(knot.device_time) as i64;
        knot.ns + ticks as f64 * knot.ns_per_tick
    }

    /// How much the map contradicts `bounds`, on average.
    fn residual_ns(&self, bounds: &[Bounds]) -> f64 {
        let contradiction = |bound: &Bounds| {
            let early = bound.asked_ns.map_or(0.0, |asked| asked - self.ns(bound.begin));
            let late = self.ns(bound.end) - bound.delivered_ns;
            early.max(0.0) + late.max(0.0)
        };
        bounds.iter().map(contradiction).sum::<f64>() / bounds.len().max(1) as f64
    }
}

/// Nanoseconds per tick between two points; `None` unless both clocks advanced.
fn rate(a: ClockPoint, b: ClockPoint) -> Option<f64> {
    let ticks = b.device_time.checked_sub(a.device_time)?;
    let rate = (b.ns - a.ns) / ticks as f64;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// The points through which the map passes: the first, the last, and in between the most accurate one of each interval.
fn path(points: &[ClockPoint]) -> Vec<ClockPoint> {
    let mut path: Vec<ClockPoint> = Vec::new();
    let last = points.last().copied();
    for stretch in
        points.chunk_by(|a, b| (a.ns / KNOT_DISTANCE_NS).floor() == (b.ns / KNOT_DISTANCE_NS).floor())
    {
        let best = stretch.iter().min_by(|a, b| a.uncertainty_ns.total_cmp(&b.uncertainty_ns));
        let best = if path.is_empty() { stretch.first() } else { best };
        let Some(best) = best else { continue };
        let far = path.last().is_none_or(|before| best.ns - before.ns >= KNOT_DISTANCE_NS / 2.0);
        if far && path.last().is_none_or(|before| rate(*before, *best).is_some()) {
            path.push(*best);
        }
    }
    // Without the last point, later times would be extrapolated with the rate of an earlier interval.
    if let Some(last) = last
        && let Some(before) = path.last().copied()
        && before != last
        && rate(before, last).is_some()
    {
        if path.len() > 1 && last.ns - before.ns < KNOT_DISTANCE_NS / 2.0 {
            path.pop();
        }
        path.push(last);
    }
    path
}

/// A translation by the runtime: device time, seconds, and when the tracer requested it, in nanoseconds since the
/// session's start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Translation {
    pub(crate) device_time: u64,
    pub(crate) seconds: f64,
    pub(crate) asked_ns: f64,
}

/// The runtime's translations as points. Their epoch is unknown. It may be that of the time of day, on which the
/// session started at `realtime_ns`. Otherwise it is derived from `pairs`, or if there are none, from the fact that no
/// translated time lies in the future.
fn translated(
    translations: &[Translation],
    pairs: Option<&DeviceClockMap>,
    realtime_ns: u64,
) -> Vec<ClockPoint> {
    let ns = |translation: &Translation| translation.seconds * 1e9;
    let zeros = translations.iter().map(|translation| match pairs {
        Some(pairs) => ns(translation) - pairs.ns(translation.device_time),
        None => ns(translation) - translation.asked_ns,
    });
    let mut zeros: Vec<f64> = zeros.collect();
    zeros.sort_by(f64::total_cmp);
    let found = match pairs {
        Some(_) => zeros.get(zeros.len() / 2),
        None => zeros.last(),
    };
    let Some(&found) = found else {
        return Vec::new();
    };
    let of_day = realtime_ns as f64;
    let zero = if (found - of_day).abs() < SAME_ZERO_NS { of_day } else { found };
    let point = |translation: &Translation| ClockPoint {
        device_time: translation.device_time,
        ns: ns(translation) - zero,
        // The precision of a `double` that contains seconds since 1970.
        uncertainty_ns: ns(translation).abs() * f64::EPSILON,
    };
    translations.iter().map(point).collect()
}

/// The best available map, and a report about it.
pub(crate) fn choose(
    pairs: Vec<ClockPoint>,
    translations: &[Translation],
    bounds: &[Bounds],
    realtime_ns: u64,
) -> Option<(DeviceClockMap, DeviceClockReport)> {
    let number = (pairs.len(), translations.len());
    let of_pairs = DeviceClockMap::through(pairs.clone());
    let of_runtime = DeviceClockMap::through(translated(translations, of_pairs.as_ref(), realtime_ns));
    let differs = of_pairs.as_ref().zip(of_runtime.as_ref()).map(|(a, b)| {
        let difference = |point: &ClockPoint| (a.ns(point.device_time) - b.ns(point.device_time)).abs();
        pairs.iter().map(difference).fold(0.0, f64::max) as u64
    });
    let (source, points, map) = match (of_pairs, of_runtime) {
        // If both contradict the host equally little, prefers the measured map.
        (Some(a), Some(b)) if b.residual_ns(bounds) < a.residual_ns(bounds) => {
            (ClockSource::TranslateTime, number.1, b)
        }
        (Some(a), _) => (ClockSource::ClockPairs, number.0, a),
        (None, Some(b)) => (ClockSource::TranslateTime, number.1, b),
        (None, None) => (ClockSource::HostOperations, bounds.len(), DeviceClockMap::between(bounds)?),
    };
    let report = DeviceClockReport {
        source,
        points,
        uncertainty_ns: map.uncertainty_ns as u64,
        translation_differs_ns: differs,
        residual_ns: map.residual_ns(bounds) as u64,
    };
    Some((map, report))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: f64 = 1e9;

    fn point(device_time: u64, ns: f64, uncertainty_ns: f64) -> ClockPoint {
        ClockPoint { device_time, ns, uncertainty_ns }
    }

    /// A device whose clock starts at 5000, runs at 2 GHz and drifts.
    fn device_time(ns: f64) -> u64 {
        5000 + (ns * 2.0 * (1.0 + 200e-6)) as u64
    }

    #[test]
    fn follows_drift_within_the_uncertainty_of_its_points() {
        let jitter = [0.0, 40e3, -30e3, 10e3, -50e3, 20e3];
        let points: Vec<ClockPoint> = (0..60)
            .map(|i| {
                let ns = f64::from(i) * SECOND / 7.0;
                point(device_time(ns), ns + jitter[i as usize % 6], 50e3)
            })
            .collect();
        let map = DeviceClockMap::through(points).expect("points");
        assert!(map.uncertainty_ns >= 50e3 && map.uncertainty_ns < 150e3, "{}", map.uncertainty_ns);
        for i in 0..840 {
            let ns = f64::from(i) * SECOND / 100.0;
            let error = (map.ns(device_time(ns)) - ns).abs();
            assert!(error <= map.uncertainty_ns + 1.0, "{ns}: off by {error}");
        }
    }

    #[test]
    fn points_that_contradict_the_map_make_it_less_certain() {
        let points = vec![point(0, 0.0, 10.0), point(1000, 9000.0, 10.0), point(1_000_000_000, SECOND, 10.0)];
        let map = DeviceClockMap::through(points).expect("points");
        assert!((map.ns(500_000_000) - SECOND / 2.0).abs() < 1.0);
        assert_eq!(map.uncertainty_ns as u64, 7990);
    }

    #[test]
    fn one_point_gives_nanoseconds() {
        let map = DeviceClockMap::through(vec![point(100, 5.0, 1.0)]).expect("a point");
        assert_eq!((map.ns(150), map.ns(50)), (55.0, -45.0));
        assert_eq!(DeviceClockMap::through(Vec::new()), None);
    }

    fn translation(ns: f64, zero: f64) -> Translation {
        Translation { device_time: device_time(ns), seconds: (ns + zero) / 1e9, asked_ns: ns + 1e6 }
    }

    #[test]
    fn a_translation_may_count_from_any_zero() {
        for zero in [1.7e18, 4.2e14] {
            let pairs: Vec<ClockPoint> = (0..3)
                .map(|s| point(device_time(f64::from(s) * SECOND), f64::from(s) * SECOND, 9.0))
                .collect();
            let translations: Vec<Translation> =
                (0..3).map(|s| translation(f64::from(s) * SECOND, zero)).collect();
            let (_, report) = choose(pairs, &translations, &[], 1_700_000_000_000_000_000).expect("a map");
            assert_eq!(report.source, ClockSource::ClockPairs);
            assert!(report.translation_differs_ns.is_some_and(|ns| ns < 600), "{report:?}");
        }
    }

    #[test]
    fn what_contradicts_the_host_less_is_chosen() {
        // The readings are a millisecond old.
        let pairs: Vec<ClockPoint> = (0..3)
            .map(|s| point(device_time(f64::from(s) * SECOND), f64::from(s) * SECOND - 1e6, 9.0))
            .collect();
        let translations: Vec<Translation> =
            (0..3).map(|s| translation(f64::from(s) * SECOND, 1.7e18)).collect();
        let bounds = [Bounds {
            begin: device_time(SECOND + 100.0),
            end: device_time(SECOND + 300.0),
            asked_ns: Some(SECOND),
            delivered_ns: SECOND + 1e6,
        }];
        let (map, report) = choose(pairs, &translations, &bounds, 1_700_000_000_000_000_000).expect("a map");
        assert_eq!((report.source, report.residual_ns), (ClockSource::TranslateTime, 0));
        assert!((map.ns(device_time(SECOND)) - SECOND).abs() < 1000.0);
    }

    #[test]
    fn without_any_clock_the_host_bounds_times() {
        let bound = |begin: u64, asked: f64, delivered: f64| Bounds {
            begin,
            end: begin + 10,
            asked_ns: Some(asked),
            delivered_ns: delivered,
        };
        let bounds = [bound(1000, 500.0, 900.0), bound(1100, 620.0, 900.0)];
        let (map, report) = choose(Vec::new(), &[], &bounds, 0).expect("a map");
        assert_eq!(report.source, ClockSource::HostOperations);
        assert_eq!((map.ns(1000), map.ns(1100)), (520.0, 620.0));
        assert_eq!(choose(Vec::new(), &[], &[], 0), None);
    }
}
