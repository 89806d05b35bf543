//! Levels over time, as the mean in each bin: the number of kernels that run at once, and the values of the timeline's
//! counters, such as the memory in use on a device.

use std::collections::BTreeMap;

use omptrace_timeline::model::{
    CountValue, CounterId, DeviceWork, Item, Location, LocationId, LocationKind, Ns, Sink, Wants,
};

use super::bins::{Bins, MAX_BINS, Merge, merge_bins};

/// Maximum number of levels in an overview.
const MAX_LEVELS: usize = 32;

/// Values are converted to integers with this many fractional bits, so that sums do not depend on the order of
/// addition.
const FRACTION_BITS: u32 = 20;

/// The integral of a level over a bin, in nanoseconds times its fixed-point value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Area(i128);

impl Merge for Area {
    fn merge(&mut self, other: &Area) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// A level that is being collected.
#[derive(Clone, Debug)]
struct Gathered {
    name: String,
    unit: &'static str,
    bins: Bins<Area>,
    /// For a counter: its current value, and since when.
    last: Option<(Ns, CountValue)>,
    /// The time of its first value.
    first: Option<Ns>,
}

impl Gathered {
    fn add(&mut self, (begin, end): (Ns, Ns), value: CountValue) {
        let value = match value {
            CountValue::Whole(value) => i128::from(value) << FRACTION_BITS,
            CountValue::Real(value) => (value * f64::from(1 << FRACTION_BITS)) as i128,
        };
        if value != 0 {
            self.bins.fill(begin, end, MAX_BINS, |area, ns| {
                area.merge(&Area(value.saturating_mul(ns.into())));
            });
        }
    }

    /// Sets the value of the counter from `time` on; `None` when the process has ended.
    fn count(&mut self, time: Ns, value: Option<CountValue>) {
        if let Some((since, before)) = self.last {
            self.add((since, time), before);
        }
        self.last = value.map(|value| (time, value));
        self.first = self.first.or(Some(time));
    }

    /// A segment of the process begins: what was before is not counted.
    fn begin_segment(&mut self) {
        self.bins = Bins::default();
        (self.last, self.first) = (None, None);
    }

    /// Adds the same level in the following segment. A counter keeps its value until its first one there.
    fn append(&mut self, mut next: Gathered) {
        if let Some(first) = next.first {
            self.count(first, None);
            self.last = next.last;
        }
        merge_bins(&mut self.bins, &mut next.bins, MAX_BINS);
    }
}

/// Collects the levels of one process.
#[derive(Debug, Default)]
pub(crate) struct LevelCollector {
    process: String,
    levels: Vec<Gathered>,
    counters: BTreeMap<CounterId, usize>,
    /// By location of a queue: the level for the kernels of its device.
    queues: BTreeMap<LocationId, usize>,
    kernels: BTreeMap<(i32, bool), usize>,
}

impl LevelCollector {
    /// The levels, except those that were always 0.
    pub(crate) fn levels(self) -> Levels {
        let levels = self.levels.into_iter();
        let levels = levels.filter(|level| !level.bins.cells.is_empty());
        Levels(levels.map(|level| (self.process.clone(), level)).collect())
    }

    /// Adds the levels of the following segment of the process.
    pub(crate) fn append(&mut self, next: LevelCollector) {
        for level in next.levels {
            let mut known = self.levels.iter_mut();
            match known.find(|known| (&known.name, known.unit) == (&level.name, level.unit)) {
                Some(known) => known.append(level),
                None => self.levels.push(level),
            }
        }
    }

    fn add(&mut self, name: String, unit: &'static str) -> usize {
        self.levels.push(Gathered { name, unit, bins: Bins::default(), last: None, first: None });
        self.levels.len() - 1
    }

    fn location(&mut self, location: &Location) {
        let LocationKind::DeviceQueue { device_num, host_observed } = location.kind else {
            return;
        };
        let known = self.kernels.get(&(device_num, host_observed)).copied();
        let level = known.unwrap_or_else(|| {
            let observed = if host_observed { " (host-observed)" } else { "" };
            self.add(format!("on device {device_num}{observed}"), "kernels")
        });
        self.kernels.insert((device_num, host_observed), level);
        self.queues.insert(location.id, level);
    }
}

impl Sink for LevelCollector {
    fn wants(&self) -> Wants {
        Wants::COUNTS
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Process(process) => self.process.clone_from(&process.name),
            Item::Location(location) => self.location(location),
            Item::Counter(counter) => {
                let level = self.add(counter.name.clone(), counter.unit);
                self.counters.insert(counter.id, level);
            }
            Item::Count(count) => {
                if let Some(level) = self.counters.get(&count.counter) {
                    self.levels[*level].count(count.time, Some(count.value));
                }
            }
            Item::Interval(interval) => {
                if let (Some(level), Some(DeviceWork::Kernel(_))) =
                    (self.queues.get(&interval.track), &interval.work)
                {
                    self.levels[*level].add((interval.begin, interval.end), CountValue::Whole(1));
                }
            }
            Item::Segment => self.levels.iter_mut().for_each(Gathered::begin_segment),
            Item::Summary(_, summary) => {
                let levels = self.levels.iter_mut();
                levels.for_each(|level| level.count(summary.end, None));
            }
            _ => {}
        }
    }
}

/// The levels of some processes, with the names of these.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels(Vec<(String, Gathered)>);

impl Levels {
    /// Adds the levels of another process.
    pub(crate) fn extend(&mut self, other: Levels) {
        self.0.extend(other.0);
        self.0.truncate(MAX_LEVELS);
    }

    /// The means in `count` bins of width `2^width` nanoseconds, from bin number `first` on.
    pub(crate) fn draw(self, width: u32, first: i64, count: usize) -> Vec<Level> {
        let levels = self.0.into_iter();
        levels
            .map(|(process, mut level)| {
                level.bins.widen_to(width);
                let ns = (1_u64 << width) as f64 * f64::from(1 << FRACTION_BITS);
                let area = |number| level.bins.get(number).copied().unwrap_or_default();
                let mean = |number| area(number).0 as f64 / ns;
                Level {
                    process,
                    unit: level.unit,
                    means: (first..).take(count).map(mean).collect(),
                    name: level.name,
                }
            })
            .collect()
    }

    /// The width of the widest bins, as a power of two.
    pub(crate) fn width(&self) -> Option<u32> {
        self.0.iter().map(|(_, level)| level.bins.width).max()
    }
}

/// A level over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    /// The name of its process.
    pub process: String,
    /// The name, to be read after the unit, as in `in use on device 0`.
    pub name: String,
    /// The unit, such as `bytes`.
    pub unit: &'static str,
    /// The mean in each bin of the [`Overview`](super::Overview).
    pub means: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_keeps_its_value_until_the_next() {
        let mut collector = LevelCollector::default();
        let level = collector.add("in use".to_owned(), "bytes");
        let level = &mut collector.levels[level];
        level.count(1 << 10, Some(4.into()));
        level.count(3 << 10, Some(CountValue::Real(0.25)));
        level.count(4 << 10, Some((-2).into()));
        level.count(9 << 9, None);
        let levels = collector.levels().draw(10, 0, 6);
        assert_eq!(levels[0].means, [0.0, 4.0, 4.0, 0.25, -1.0, 0.0]);
        assert_eq!(levels.len(), 1);
    }

    #[test]
    fn segments_add_up() {
        let counted = |values: &[(Ns, i64)]| {
            let mut collector = LevelCollector::default();
            let level = collector.add("in use".to_owned(), "bytes");
            for (time, value) in values {
                collector.levels[level].count(time << 10, Some((*value).into()));
            }
            collector
        };
        let drawn = |mut collector: LevelCollector| {
            collector.levels[0].count(9 << 10, None);
            collector.levels().draw(10, 0, 9).remove(0).means
        };
        let whole = drawn(counted(&[(1, 4), (3, 2), (6, 3)]));
        let mut first = counted(&[(1, 4), (3, 2)]);
        first.append(counted(&[]));
        let mut last = counted(&[(0, 100)]);
        last.levels.iter_mut().for_each(Gathered::begin_segment);
        last.levels[0].count(6 << 10, Some(3.into()));
        first.append(last);
        assert_eq!(drawn(first), whole);
    }
}
