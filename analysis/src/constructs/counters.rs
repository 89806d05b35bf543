//! Counter values by construct, without inner constructs: cycles, instructions, page faults and so on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use omptrace_timeline::model::{
    Arguments, Category, Counted, Enter, Item, Location, LocationKind, Part, Region, Sink, Wants,
};
use omptrace_trace_format::metadata::Counting;
use serde::{Deserialize, Serialize};

use crate::findings::counters::WorkCounts;
use crate::model::place::Place;
use crate::model::sum::add;
use crate::passes::selection::SelectedThreads;
use crate::passes::window::Windows;
use crate::summary::map_as_pairs;

/// In shorter visits, the tracer's own work at the boundaries is more than a tenth of the counted instructions.
const MIN_INSTRUCTIONS_PER_VISIT: u64 = 12_000;

/// Marks a counter that did not count.
const UNKNOWN: u64 = u64::MAX;

/// The threads' counters in a construct at a location, without those of other constructs inside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CounterStats {
    /// The construct and its location, as timelines show them: `!$omp for @stencil.c:41`.
    pub name: String,
    /// The construct that the programmer wrote, even if the row is about a wait, and its location.
    #[serde(flatten)]
    pub place: Place,
    /// How often threads entered the construct.
    pub visits: u64,
    /// The time that the counters cover: the time in the construct, without the time in constructs inside
    /// it.
    pub counted_ns: u64,
    /// The values of the counters, by name.
    pub counters: BTreeMap<String, u64>,
    /// Instructions per cycle.
    pub ipc: Option<f64>,
    /// Cycles per nanosecond of CPU time.
    pub ghz: Option<f64>,
    /// Why `ipc` and `ghz` are not known; left out if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_ratios: Option<String>,
}

impl CounterStats {
    /// The sums of a construct, with what follows from them.
    fn of((name, place): Named, sums: Sums) -> CounterStats {
        let Sums { visits, ns, values, .. } = sums;
        let value = |name: &str| values.get(name).copied();
        let instructions = value("instructions");
        let is_short = |instructions: u64| instructions < MIN_INSTRUCTIONS_PER_VISIT.saturating_mul(visits);
        let no_ratios = match (value("cycles"), instructions) {
            (None, _) => Some("cycles were not counted".to_owned()),
            (_, Some(instructions)) if is_short(instructions) => Some(format!(
                "the construct takes fewer than {MIN_INSTRUCTIONS_PER_VISIT} instructions per visit on average, so the tracer's own instructions would distort the ratios"
            )),
            _ => None,
        };
        let ratio = |of: Option<u64>, by: Option<u64>| {
            let ratio = of? as f64 / by.filter(|by| *by > 0)? as f64;
            no_ratios.is_none().then_some(ratio)
        };
        CounterStats {
            ipc: ratio(instructions, value("cycles")),
            ghz: ratio(value("cycles"), value("task-clock")),
            name,
            place,
            visits,
            counted_ns: ns,
            no_ratios,
            counters: values,
        }
    }
}

/// A construct: its printed name, and its place.
type Named = (String, Place);

/// The sums of a construct.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    visits: u64,
    ns: u64,
    values: BTreeMap<String, u64>,
    /// Threads work in this construct (rather than wait).
    is_work: bool,
}

impl Sums {
    /// The counts that findings need, if the CPU's counters were counted for long enough.
    fn work_counts(&self, place: &Place) -> Option<WorkCounts> {
        let stats = CounterStats::of(Named::default(), self.clone());
        let value = |name: &str| self.values.get(name).copied();
        stats.ipc?;
        Some(WorkCounts {
            place: self.is_work.then(|| place.clone())?,
            ns: self.ns,
            instructions: value("instructions")?,
            cycles: value("cycles")?,
            cache_misses: value("cache-misses"),
            stalled_cycles: value("stalled-cycles-backend"),
        })
    }
}

/// The counter sums of some processes, by construct. They merge in any order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CounterSums {
    #[serde(with = "map_as_pairs")]
    constructs: BTreeMap<Named, Sums>,
    /// The user asked for counters.
    was_asked: bool,
    /// The counters that could not be counted, each with the reason.
    not_counted: BTreeSet<String>,
}

impl CounterSums {
    /// Adds the sums of other processes.
    pub(crate) fn merge(&mut self, other: CounterSums) {
        self.was_asked |= other.was_asked;
        self.not_counted.extend(other.not_counted);
        for (construct, more) in other.constructs {
            self.add(construct, more);
        }
    }

    fn add(&mut self, construct: Named, more: Sums) {
        let sums = self.constructs.entry(construct).or_default();
        add(&mut sums.visits, more.visits);
        add(&mut sums.ns, more.ns);
        sums.is_work |= more.is_work;
        for (name, value) in more.values {
            add(sums.values.entry(name).or_default(), value);
        }
    }

    /// The counters that are missing, each with the reason.
    pub(crate) fn not_counted(&self) -> Vec<String> {
        match self.was_asked {
            true => self.not_counted.iter().cloned().collect(),
            false => vec!["counters were not requested while recording".to_owned()],
        }
    }

    /// The constructs in which threads work, with the counts that findings need.
    pub(crate) fn work_counts(&self) -> Vec<WorkCounts> {
        self.constructs.iter().filter_map(|((_, place), sums)| sums.work_counts(place)).collect()
    }

    /// The constructs with counter values, those with the longest counted time first.
    pub(crate) fn into_stats(self) -> Vec<CounterStats> {
        let sums = self.constructs.into_iter().filter(|(_, sums)| sums.ns > 0);
        let mut stats: Vec<CounterStats> =
            sums.map(|(construct, sums)| CounterStats::of(construct, sums)).collect();
        stats.sort_by_key(|stats| Reverse(stats.counted_ns));
        stats
    }
}

/// Adds up the counter values of a process's threads.
#[derive(Debug, Default)]
pub(crate) struct CounterCollector {
    windows: Option<Windows>,
    selected: SelectedThreads,
    /// The names of the counters.
    names: Vec<String>,
    /// By location, its open regions; `None` for locations other than selected threads.
    open: Vec<Option<Vec<usize>>>,
    /// Number of threads seen so far.
    place: u32,
    /// The constructs, by region. Several regions may have the same name.
    constructs: Vec<(Named, Sums)>,
    /// Counts outside of all regions.
    outside: Sums,
    /// The counts that are known without the timeline.
    sums: CounterSums,
}

impl CounterCollector {
    /// Collects what these threads counted in `windows`, if there are any. `counting`: the metadata of the recorded
    /// counters.
    pub(crate) fn new(
        windows: Option<Windows>,
        selected: SelectedThreads,
        counting: Option<&Counting>,
    ) -> CounterCollector {
        CounterCollector {
            windows,
            selected,
            sums: CounterSums {
                was_asked: counting.is_some(),
                not_counted: counting.into_iter().flat_map(Counting::not_counted).collect(),
                ..CounterSums::default()
            },
            ..CounterCollector::default()
        }
    }

    fn location(&mut self, location: &Location) {
        let is_selected = match location.kind {
            LocationKind::Thread { os_tid, .. } => {
                self.place += 1;
                self.selected.has(&location.name, self.place - 1, os_tid)
            }
            _ => false,
        };
        self.open.push(is_selected.then(Vec::new));
    }

    fn region(&mut self, region: &Region) {
        let works =
            [Category::Parallel, Category::ImplicitTask, Category::Work, Category::Task, Category::User];
        let sums = Sums { is_work: works.contains(&region.category), ..Sums::default() };
        let named = (region.name.clone(), Place::of(region));
        self.constructs.push((named, sums));
    }

    fn is_outside(&self, time: i64) -> bool {
        let windows = self.windows.as_ref();
        windows.is_some_and(|windows| !windows.contains(time))
    }

    fn enter(&mut self, enter: &Enter<Arguments<'_>>) {
        let is_visit = enter.part == Part::First && !self.is_outside(enter.at.time);
        let region = enter.region.0 as usize;
        if let Some(open) = &mut self.open[enter.at.location.0 as usize] {
            open.push(region);
            self.constructs[region].1.visits += u64::from(is_visit);
        }
    }

    fn counted(&mut self, counted: &Counted<'_>) {
        let is_outside = self.is_outside(counted.at.time);
        let Some(open) = &self.open[counted.at.location.0 as usize] else {
            return;
        };
        if is_outside {
            return;
        }
        let sums = match open.last() {
            Some(region) => &mut self.constructs[*region].1,
            None => &mut self.outside,
        };
        add(&mut sums.ns, counted.at.time.abs_diff(counted.since));
        for (name, value) in self.names.iter().zip(counted.values) {
            if *value != UNKNOWN {
                add(sums.values.entry(name.clone()).or_default(), *value);
            }
        }
    }

    /// The sums.
    pub(crate) fn sums(self) -> CounterSums {
        let mut sums = self.sums;
        let name = "outside of regions";
        let outside = [((name.to_owned(), Place::new(name)), self.outside)];
        for (construct, of_region) in self.constructs.into_iter().chain(outside) {
            sums.add(construct, of_region);
        }
        sums
    }
}

impl Sink for CounterCollector {
    fn wants(&self) -> Wants {
        Wants::COUNTERS
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Process(process) => {
                self.place = 0;
                self.names.clone_from(&process.counters);
            }
            Item::Location(location) => self.location(location),
            Item::Region(region) => self.region(region),
            Item::Enter(enter) => self.enter(enter),
            Item::Leave(leave) => {
                if let Some(open) = &mut self.open[leave.at.location.0 as usize] {
                    open.pop();
                }
            }
            Item::Counted(counted) => self.counted(counted),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omptrace_timeline::model::{Construct, LocationId, Point, Process, RegionId, Source, ThreadRole};

    fn stats(visits: u64, values: &[(&str, u64)]) -> CounterStats {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value));
        let sums = Sums { visits, ns: 1, values: values.collect(), ..Sums::default() };
        CounterStats::of(Named::default(), sums)
    }

    /// The counter sums of a thread in a region of this category that starts with the process.
    fn counted_in(category: Category, values: &[u64]) -> CounterSums {
        let names = ["cycles", "instructions", "cache-misses"];
        let process = Process { counters: names.map(str::to_owned).to_vec(), ..Process::default() };
        let location = Location {
            id: LocationId(0),
            process: process.id,
            kind: LocationKind::Thread { os_tid: 1, stream: 1, role: ThreadRole::Main },
            name: "main".to_owned(),
        };
        let region = Region {
            id: RegionId(0),
            name: "!$omp for @stream.c:20".to_owned(),
            category,
            construct: Construct::Masked,
            source: Some(Source {
                function: Some("triad".to_owned()),
                line: Some(("/src/stream.c".to_owned(), 20)),
                ..Source::default()
            }),
        };
        let at = |time| Point { location: location.id, time };
        let mut collector = CounterCollector::default();
        for item in [
            Item::Process(&process),
            Item::Location(&location),
            Item::Region(&region),
            Item::Enter(Enter {
                at: at(0),
                region: region.id,
                part: Part::First,
                awaited: None,
                arguments: &[],
            }),
            Item::Counted(Counted { at: at(1_000_000), since: 0, values }),
        ] {
            collector.item(&item);
        }
        collector.sums()
    }

    #[test]
    fn constructs_in_which_threads_work_are_for_findings() {
        let values = [3_000_000, 500_000, 10_000];
        let expected = WorkCounts {
            place: Place::at("!$omp for", Some("/src/stream.c"), Some(20), Some("triad")),
            ns: 1_000_000,
            instructions: 500_000,
            cycles: 3_000_000,
            cache_misses: Some(10_000),
            stalled_cycles: None,
        };
        let mut sums = counted_in(Category::Work, &values);
        assert_eq!(sums.work_counts(), std::slice::from_ref(&expected));
        sums.merge(counted_in(Category::Work, &values));
        assert_eq!(sums.work_counts()[0].ns, 2 * expected.ns);

        // Instructions of a waiting thread are the runtime's.
        assert!(counted_in(Category::Sync, &values).work_counts().is_empty());
        let unknown = [UNKNOWN, 500_000, 10_000];
        assert!(counted_in(Category::Work, &unknown).work_counts().is_empty());
        let short = [3_000, 500, 10];
        assert!(counted_in(Category::Work, &short).work_counts().is_empty());
    }

    #[test]
    fn ratios_are_those_of_constructs_that_are_long_enough() {
        let long = stats(2, &[("cycles", 20_000), ("instructions", 30_000), ("task-clock", 10_000)]);
        assert_eq!((long.ipc, long.ghz), (Some(1.5), Some(2.0)));
        assert_eq!(long.no_ratios, None);

        let short = stats(3, &[("cycles", 20_000), ("instructions", 30_000)]);
        assert_eq!((short.ipc, short.ghz), (None, None));
        assert!(short.no_ratios.unwrap().contains("12000 instructions"));

        let without = stats(1, &[("task-clock", 10_000)]);
        assert_eq!((without.ipc, without.ghz), (None, None));
        assert_eq!(without.no_ratios.unwrap(), "cycles were not counted");
    }
}
