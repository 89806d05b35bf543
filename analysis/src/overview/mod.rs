//! The states of each thread over time, in limited space regardless of the trace's length.
//!
//! ```text
//! spans of threads --> Bins, one set per row; if there are too many, bins double in width --> Overview
//! kernels, counters --> the same (levels)
//! ```

pub(crate) mod additive;
mod bins;
pub(crate) mod by_step;
pub(crate) mod fixed_bins;
pub(crate) mod levels;
pub(crate) mod mpi_efficiency;
pub(crate) mod ranks;

use std::collections::BTreeMap;

use omptrace_timeline::model::Ns;

use crate::constructs::flame::FlameGraph;
use crate::model::accounting::Accounting;
use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::model::place_id::{PlaceId, SERIAL};
use crate::model::region_table::Regions;
use crate::model::state_sums::Sums;
use crate::model::sum::Sum as _;
use crate::states::observer::{AwaitedMutex, StateObserver};

use bins::{Bins, MAX_BINS, MIN_WIDTH, Merge, merge_bins};
pub use by_step::StepTime;
use fixed_bins::{FixedBins, without_serial_places};
pub use levels::Level;
use levels::Levels;

/// Maximum number of cells in all rows together.
const MAX_CELLS: usize = 1 << 17;
/// Maximum number of rows. If there are more threads, neighbouring threads share a row.
const MAX_ROWS: usize = 512;
/// Minimum number of bins in a row.
const MIN_BINS: usize = MAX_CELLS / MAX_ROWS;
/// Maximum number of bins in which a region's visits are counted.
const MAX_VISIT_BINS: usize = 256;
/// Maximum number of regions with a [`RegionShape`].
const MAX_REGIONS: usize = 256;
/// Number of classes in which durations are counted, one per power of two.
pub const DURATION_CLASSES: usize = 64;

/// The sums of a row's threads in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell {
    accounting: Accounting,
    /// The majority place and its margin: if one place has more than half of the time, it is this one.
    most: (PlaceId, u64),
}

impl Cell {
    fn vote(&mut self, (place, ns): (PlaceId, u64)) {
        let (known, weight) = &mut self.most;
        if *known == place {
            *weight = weight.saturating_add(ns);
        } else if *weight >= ns {
            *weight -= ns;
        } else {
            self.most = (place, ns - *weight);
        }
    }
}

impl Merge for Cell {
    fn merge(&mut self, other: &Cell) {
        self.accounting.merge(&other.accounting);
        self.vote(other.most);
    }
}

/// A thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    location: usize,
    /// Time in a barrier, which is drawn when the next event tells whether it was the last one of its region.
    pending: Option<(Ns, Ns)>,
}

/// An outermost region: its visits and their durations.
#[derive(Clone, Debug, Default)]
struct Region {
    /// The position in the order of first visits.
    number: usize,
    visits: Bins<u64>,
    durations: Vec<u64>,
}

/// Collects the [`Overview`] of a process while the states of its threads are computed.
#[derive(Clone, Debug)]
pub(crate) struct OverviewCollector {
    max_rows: usize,
    max_cells: usize,
    rows: Vec<Bins<Cell>>,
    /// The number of threads per row.
    per_row: usize,
    threads: Vec<Thread>,
    regions: BTreeMap<PlaceId, Region>,
    has_more_regions: bool,
    /// The bins of a process that is analysed alone.
    fixed: Option<FixedBins>,
}

/// The part of an [`Overview`] that comes from one process.
#[derive(Debug)]
pub(crate) struct Gathered {
    rows: Vec<Row>,
    /// The names of places, to which cells refer by index.
    names: Vec<String>,
    regions: Vec<RegionShape>,
    has_more_regions: bool,
}

/// A thread, or neighbouring threads.
#[derive(Debug)]
struct Row {
    process: String,
    first: String,
    last: String,
    /// The lifetimes of the processes, each with the number of its threads in this row.
    lives: Vec<((Ns, Ns), usize)>,
    bins: Bins<Cell>,
}

/// The number of bins per row that keeps all rows within `max_cells`.
fn max_bins(max_cells: usize, rows: usize) -> usize {
    (max_cells / rows.max(1)).clamp(MIN_BINS, MAX_BINS)
}

impl OverviewCollector {
    /// The collector for one of `processes`, which share the limits.
    pub(crate) fn new(processes: usize) -> OverviewCollector {
        let processes = processes.max(1);
        OverviewCollector {
            max_rows: (MAX_ROWS / processes).max(1),
            max_cells: MAX_CELLS / processes,
            rows: Vec::new(),
            per_row: 1,
            threads: Vec::new(),
            regions: BTreeMap::new(),
            has_more_regions: false,
            fixed: None,
        }
    }

    /// Uses these bins, because the process may be analysed in segments.
    pub(crate) fn in_fixed_bins(self, fixed: FixedBins) -> OverviewCollector {
        OverviewCollector { fixed: Some(fixed), ..self }
    }

    fn max_bins(&self) -> usize {
        max_bins(self.max_cells, self.rows.len())
    }

    /// Adds the next thread.
    fn add_thread(&mut self, location: usize) {
        self.threads.push(Thread { location, pending: None });
        if self.threads.len().div_ceil(self.per_row) > self.max_rows {
            self.per_row *= 2;
            self.fixed.iter_mut().for_each(FixedBins::share_rows);
            self.rows = paired(std::mem::take(&mut self.rows), |row, mut other| {
                merge_bins(row, &mut other, MAX_BINS);
            });
        }
        let rows = self.threads.len().div_ceil(self.per_row);
        self.rows.resize_with(rows, Bins::default);
        let max = self.max_bins();
        for row in &mut self.rows {
            row.limit(max);
        }
    }

    /// Adds a state of a thread in these intervals.
    fn add(
        &mut self,
        index: usize,
        spans: impl IntoIterator<Item = (Ns, Ns)>,
        cause: Cause,
        place: Option<PlaceId>,
    ) {
        let max = self.max_bins();
        let number = index / self.per_row;
        let Some(row) = self.rows.get_mut(number) else {
            return;
        };
        let place = without_serial_places(place);
        for (begin, end) in spans {
            if let Some(fixed) = &mut self.fixed {
                row.widen_to(fixed.width(max));
                fixed.add(number, (begin, end), place);
            }
            row.fill(begin, end, max, |cell, part| {
                cell.accounting.add(cause, part);
                cell.vote((place, part));
            });
        }
    }

    /// Adds time in a barrier. The next event shows which barrier it was.
    fn add_pending(&mut self, index: usize, (begin, end): (Ns, Ns), place: PlaceId) {
        let Some(thread) = self.threads.get_mut(index) else {
            return;
        };
        match &mut thread.pending {
            Some((_, until)) if *until == begin => *until = end,
            Some(_) => {
                self.end_pending(index, Cause::Barrier, place);
                self.add_pending(index, (begin, end), place);
            }
            None => thread.pending = Some((begin, end)),
        }
    }

    fn end_pending(&mut self, index: usize, cause: Cause, place: PlaceId) {
        let thread = self.threads.get_mut(index);
        if let Some(span) = thread.and_then(|thread| thread.pending.take()) {
            self.add(index, [span], cause, Some(place));
        }
    }

    /// Adds a visit of an outermost region.
    fn add_visit(&mut self, region: PlaceId, (begin, end): (Ns, Ns)) {
        if !self.regions.contains_key(&region) && self.regions.len() >= MAX_REGIONS {
            self.has_more_regions = true;
            return;
        }
        let number = self.regions.len();
        let region = self.regions.entry(region).or_insert_with(|| Region { number, ..Region::default() });
        *region.visits.at(begin, MAX_VISIT_BINS) += 1;
        region.durations.resize(DURATION_CLASSES, 0);
        let class = end.abs_diff(begin).max(1).ilog2() as usize;
        region.durations[class] += 1;
    }

    /// Whether the bins have their final width, so that those of another segment can be added.
    fn has_fixed_bins(&self, rows: &[Bins<Cell>]) -> bool {
        let mut rows = rows.iter().filter(|row| !row.cells.is_empty());
        self.fixed.as_ref().is_some_and(|fixed| rows.all(|row| fixed.have_width(row.width)))
    }

    /// Adds the following segment; `place` maps its places to those here. False if the two do not fit together.
    pub(crate) fn append(&mut self, mut next: OverviewCollector, place: &dyn Fn(PlaceId) -> PlaceId) -> bool {
        let fits = self.has_fixed_bins(&self.rows)
            && next.has_fixed_bins(&next.rows)
            && (self.rows.len(), self.per_row) == (next.rows.len(), 1)
            && !next.has_more_regions;
        let (true, Some(fixed), Some(next_fixed)) = (fits, &mut self.fixed, next.fixed.take()) else {
            return false;
        };
        let place = |id: PlaceId| match id {
            SERIAL.. => SERIAL,
            id => place(id),
        };
        fixed.append(next_fixed, &place);
        for (row, mut next) in self.rows.iter_mut().zip(next.rows) {
            for (id, _) in next.cells.iter_mut().map(|cell| &mut cell.most).filter(|most| most.1 > 0) {
                *id = place(*id);
            }
            merge_bins(row, &mut next, MAX_BINS);
        }
        self.threads = next.threads;
        let mut regions: Vec<(PlaceId, Region)> = next.regions.into_iter().collect();
        regions.sort_by_key(|(_, region)| region.number);
        for (id, mut region) in regions {
            let (id, number) = (place(id), self.regions.len());
            if !self.regions.contains_key(&id) && number >= MAX_REGIONS {
                self.has_more_regions = true;
                continue;
            }
            let known = self.regions.entry(id).or_insert_with(|| Region { number, ..Region::default() });
            merge_bins(&mut known.visits, &mut region.visits, MAX_VISIT_BINS);
            known.durations.resize(DURATION_CLASSES, 0);
            for (sum, count) in known.durations.iter_mut().zip(region.durations) {
                *sum += count;
            }
        }
        true
    }

    /// Completes the data when the process has ended.
    pub(crate) fn finish(
        mut self,
        process: &str,
        names: &[Option<String>],
        life: (Ns, Ns),
        sums: &Sums,
        regions: &Regions,
    ) -> Gathered {
        let name_of = |thread: Option<&Thread>| {
            let name = thread.and_then(|thread| names.get(thread.location));
            name.cloned().flatten().unwrap_or_default()
        };
        let mut rows = std::mem::take(&mut self.rows);
        let has_fixed = self.has_fixed_bins(&rows);
        let fixed = self.fixed.take().filter(|_| has_fixed);
        let words = |place: PlaceId| match place {
            SERIAL.. => "serial code".to_owned(),
            id => regions.places[id as usize].long(),
        };
        let mut numbers: BTreeMap<String, PlaceId> = BTreeMap::new();
        let mut place_names = Vec::new();
        let mut number_of = |words: String| {
            *numbers.entry(words).or_insert_with_key(|words| {
                place_names.push(words.clone());
                place_names.len() as PlaceId - 1
            })
        };
        for bins in &mut rows {
            for (place, weight) in bins.cells.iter_mut().map(|cell| &mut cell.most) {
                *place = match *weight {
                    0 => PlaceId::MAX,
                    _ => number_of(words(*place)),
                };
            }
        }
        for ((row, bin), times) in fixed.into_iter().flat_map(FixedBins::into_times) {
            let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
            for (place, ns) in times {
                by_name.entry(words(place)).or_default().grow_by(ns);
            }
            if let Some(cell) = rows.get_mut(row).and_then(|row| row.get_mut(bin))
                && let Some((name, weight)) = most_of(by_name)
            {
                cell.most = (number_of(name), weight);
            }
        }
        let (threads, per_row) = (&self.threads, self.per_row);
        let of_rows = rows;
        let mut rows: Vec<Row> = Vec::new();
        for (bins, threads) in of_rows.into_iter().zip(threads.chunks(per_row)) {
            rows.push(Row {
                process: process.to_owned(),
                first: name_of(threads.first()),
                last: name_of(threads.last()),
                lives: vec![(life, threads.len())],
                bins,
            });
        }
        let shapes = self.regions.into_iter().map(|(id, region)| {
            let of_region = sums.regions.get(id).into_iter();
            let useful = of_region.flat_map(|sums| sums.useful.iter());
            RegionShape {
                place: regions.places[id as usize].clone(),
                visits: Visits(region.visits),
                durations: region.durations,
                useful: useful
                    .map(|(index, ns)| (process.to_owned(), name_of(threads.get(index)), *ns))
                    .collect(),
            }
        });
        Gathered {
            rows,
            names: place_names,
            regions: shapes.collect(),
            has_more_regions: self.has_more_regions,
        }
    }
}

impl StateObserver for OverviewCollector {
    fn add_thread(&mut self, location: usize) {
        self.add_thread(location);
    }

    fn add(
        &mut self,
        index: usize,
        spans: &mut dyn Iterator<Item = (Ns, Ns)>,
        cause: Cause,
        place: Option<PlaceId>,
        _: Option<AwaitedMutex>,
    ) {
        self.add(index, spans, cause, place);
    }

    fn add_pending(&mut self, index: usize, _: usize, span: (Ns, Ns), place: PlaceId) {
        self.add_pending(index, span, place);
    }

    fn end_pending(&mut self, index: usize, _: usize, cause: Cause, place: PlaceId) {
        self.end_pending(index, cause, place);
    }

    fn add_visit(&mut self, region: PlaceId, span: (Ns, Ns)) {
        self.add_visit(region, span);
    }

    fn add_gaps(&mut self, index: usize, gaps: &mut dyn Iterator<Item = (Ns, Ns)>) {
        self.add(index, gaps, Cause::Unobserved, None);
    }

    fn begin_process(&mut self, begin: Ns, ended: Option<Ns>) {
        self.fixed.iter_mut().for_each(|fixed| fixed.set_life(begin, ended));
    }

    fn begin_segment(&mut self) {
        self.rows.fill_with(Bins::default);
        self.threads.iter_mut().for_each(|thread| thread.pending = None);
        self.regions.clear();
        self.has_more_regions = false;
        self.fixed.iter_mut().for_each(FixedBins::begin_segment);
    }
}

/// The largest of these times and its name, with its distance from the second largest; at least 1.
fn most_of(times: BTreeMap<String, u64>) -> Option<(String, u64)> {
    let mut times: Vec<(String, u64)> = times.into_iter().collect();
    // Equal times remain in the order of names.
    times.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let second = times.get(1).map_or(0, |(_, ns)| *ns);
    let (name, ns) = times.into_iter().next()?;
    Some((name, (ns - second).max(1)))
}

/// Merges pairs of neighbours.
fn paired<T>(rows: Vec<T>, merge: impl Fn(&mut T, T)) -> Vec<T> {
    let mut pairs = Vec::new();
    let mut rows = rows.into_iter();
    while let Some(mut row) = rows.next() {
        if let Some(other) = rows.next() {
            merge(&mut row, other);
        }
        pairs.push(row);
    }
    pairs
}

impl Overview {
    /// The overview of all processes, in the timeline's order. `useful`: useful time by place, largest first.
    pub(crate) fn of(processes: Vec<Gathered>, levels: Levels, useful: Vec<(Place, u64)>) -> Overview {
        let mut overview = Overview { useful, ..Overview::default() };
        let mut weights: BTreeMap<String, u64> = BTreeMap::new();
        for process in &processes {
            for (place, weight) in process.rows.iter().flat_map(|row| &row.bins.cells).map(|cell| cell.most) {
                if let Some(name) = process.names.get(place as usize) {
                    *weights.entry(name.clone()).or_default() += weight;
                }
            }
        }
        overview.names = weights.keys().cloned().collect();
        let by_weight = |name: &String| std::cmp::Reverse(weights[name]);
        overview.names.sort_by_key(by_weight);
        overview.names.truncate(usize::from(u8::MAX));
        let numbers: BTreeMap<&String, PlaceId> = overview.names.iter().zip(0..).collect();

        let mut rows: Vec<Row> = Vec::new();
        let mut shapes: BTreeMap<Place, RegionShape> = BTreeMap::new();
        for process in processes {
            overview.has_more_regions |= process.has_more_regions;
            for mut row in process.rows {
                for (place, _) in row.bins.cells.iter_mut().map(|cell| &mut cell.most) {
                    let name = process.names.get(*place as usize);
                    let number = name.and_then(|name| numbers.get(name));
                    *place = number.copied().unwrap_or(PlaceId::MAX);
                }
                rows.push(row);
            }
            for shape in process.regions {
                if shapes.len() >= MAX_REGIONS && !shapes.contains_key(&shape.place) {
                    overview.has_more_regions = true;
                    continue;
                }
                let known = shapes.entry(shape.place.clone()).or_default();
                known.merge(shape);
            }
        }
        overview.regions = shapes.into_values().collect();
        while rows.len() > MAX_ROWS {
            rows = paired(rows, |row, mut other| {
                merge_bins(&mut row.bins, &mut other.bins, MAX_BINS);
                row.last = other.last;
                row.lives.extend(other.lives);
            });
        }
        overview.draw(rows, levels);
        overview
    }

    fn draw(&mut self, rows: Vec<Row>, levels: Levels) {
        let lives = || rows.iter().flat_map(|row| &row.lives).map(|(life, _)| *life);
        let begin = lives().map(|life| life.0).min().unwrap_or(0);
        let end = lives().map(|life| life.1).max().unwrap_or(0).max(begin);
        let last = end.saturating_sub(1).max(begin);
        let max = max_bins(MAX_CELLS, rows.len());
        let width = rows.iter().map(|row| row.bins.width).max();
        let width = width.max(levels.width());
        let mut width = width.unwrap_or(MIN_WIDTH);
        while (last >> width).abs_diff(begin >> width) as usize >= max {
            width += 1;
        }
        let first = begin >> width;
        let bins = (last >> width).abs_diff(first) as usize + 1;
        self.begin_ns = begin;
        self.end_ns = end;
        self.first_bin_ns = first << width;
        self.width_ns = 1 << width;
        self.levels = levels.draw(width, first, bins);
        for mut row in rows {
            row.bins.widen_to(width);
            let cells = (first..).take(bins).map(|number| {
                let bin_begin = number << width;
                let span = (bin_begin, bin_begin.saturating_add(1 << width));
                let cell = row.bins.get(number).copied().unwrap_or_default();
                let (place, weight) = cell.most;
                let lived = row.lives.iter();
                OverviewCell {
                    accounting: cell.accounting,
                    lived_ns: lived
                        .map(|(life, threads)| overlap(*life, span).saturating_mul(*threads as u64))
                        .fold(0, u64::saturating_add),
                    place: u8::try_from(place).ok().filter(|_| weight > 0),
                }
            });
            let cells = cells.collect();
            self.rows.push(OverviewRow {
                process: row.process,
                first: row.first,
                last: row.last,
                threads: row.lives.iter().map(|(_, threads)| threads).sum(),
                cells,
            });
        }
    }
}

impl RegionShape {
    /// Adds the visits in another process.
    fn merge(&mut self, mut other: RegionShape) {
        merge_bins(&mut self.visits.0, &mut other.visits.0, MAX_VISIT_BINS);
        self.durations.resize(DURATION_CLASSES, 0);
        for (sum, count) in self.durations.iter_mut().zip(other.durations) {
            *sum += count;
        }
        self.useful.extend(other.useful);
        self.place = other.place;
    }
}

/// The number of visits of a region over time, by their start.
#[derive(Clone, Debug, Default)]
pub struct Visits(Bins<u64>);

impl Visits {
    /// The start of the first bin.
    pub fn begin_ns(&self) -> i64 {
        self.0.first << self.0.width
    }

    /// The width of a bin, in nanoseconds.
    pub fn width_ns(&self) -> u64 {
        1 << self.0.width
    }

    /// The number of visits in each bin.
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.cells.iter().copied()
    }
}

fn overlap(life: (Ns, Ns), span: (Ns, Ns)) -> u64 {
    let (begin, end) = (life.0.max(span.0), life.1.min(span.1));
    if begin < end { end.abs_diff(begin) } else { 0 }
}

/// Thread time over time, by cause.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// The start of the first process, in nanoseconds since the timeline's start.
    pub begin_ns: i64,
    /// The end of the last process.
    pub end_ns: i64,
    /// The start of the first bin.
    pub first_bin_ns: i64,
    /// The width of a bin, in nanoseconds.
    pub width_ns: u64,
    /// The names of places, to which cells refer by index.
    pub names: Vec<String>,
    /// The threads, in the timeline's order. If there are many, neighbouring threads share a row.
    pub rows: Vec<OverviewRow>,
    /// Levels of devices and counters, in the same bins.
    pub levels: Vec<Level>,
    /// Visits, durations and useful time of outermost regions.
    pub regions: Vec<RegionShape>,
    /// Useful time by place, largest first.
    pub useful: Vec<(Place, u64)>,
    /// Whether there are further regions, which `regions` does not contain.
    pub has_more_regions: bool,
    /// The number of chunks per power of two of their duration in nanoseconds, by the name of the loop construct.
    pub chunks: BTreeMap<String, Vec<u64>>,
    /// The samples by stack; empty if there are none.
    pub stacks: FlameGraph,
    /// What threads did in each bin of time steps; empty where that is not known.
    pub steps: Vec<StepTime>,
}

/// A thread, or neighbouring threads.
#[derive(Clone, Debug, Default)]
pub struct OverviewRow {
    /// The name of the first thread's process.
    pub process: String,
    /// The name of the first thread.
    pub first: String,
    /// The name of the last thread.
    pub last: String,
    /// The number of threads.
    pub threads: usize,
    /// The sums of each bin.
    pub cells: Vec<OverviewCell>,
}

/// The sums of a row's threads in a bin.
#[derive(Clone, Copy, Debug, Default)]
pub struct OverviewCell {
    /// Thread time by cause. The rest of `lived_ns` is time during which the threads had nothing to do, or which is
    /// unknown.
    pub accounting: Accounting,
    /// The time of the bin during which the threads' processes existed, summed over the threads.
    pub lived_ns: u64,
    /// The place with most of the time, as an index in [`Overview::names`].
    pub place: Option<u8>,
}

/// An outermost region's visits, durations and useful time.
#[derive(Clone, Debug, Default)]
pub struct RegionShape {
    /// The region.
    pub place: Place,
    /// Its visits over time.
    pub visits: Visits,
    /// The number of visits per power of two of their duration in nanoseconds.
    pub durations: Vec<u64>,
    /// Useful time by process and thread.
    pub useful: Vec<(String, String, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_rows_where_threads_are_many() {
        let mut gathering = OverviewCollector::new(1);
        for thread in 0..MAX_ROWS * 3 {
            gathering.add_thread(thread);
            let span = (thread as Ns, 5_000_000 + thread as Ns);
            gathering.add(thread, [span], Cause::Useful, Some(0));
        }
        assert_eq!(gathering.rows.len(), MAX_ROWS * 3 / 4);
        let cells = gathering.rows.iter().flat_map(|row| &row.cells);
        let sum: u64 = cells.map(|cell| cell.accounting.total()).sum();
        assert_eq!(sum, 5_000_000 * 3 * MAX_ROWS as u64);
        let cells: usize = gathering.rows.iter().map(|row| row.cells.len()).sum();
        assert!(cells <= MAX_CELLS, "{cells}");
    }

    #[test]
    fn processes_share_rows_where_they_are_many() {
        let processes = MAX_ROWS + 200;
        let gathered = (0..processes).map(|process| {
            let mut gathering = OverviewCollector::new(processes);
            for thread in 0..4 {
                gathering.add_thread(thread);
                gathering.add(thread, [(0, 3_000_000)], Cause::Useful, None);
            }
            let name = process.to_string();
            let life = (0, 5_000_000);
            gathering.finish(&name, &[], life, &Sums::default(), &Regions::default())
        });
        let overview = Overview::of(gathered.collect(), Levels::default(), Vec::new());
        assert_eq!(overview.rows.len(), processes.div_ceil(2));
        let cells = || overview.rows.iter().flat_map(|row| &row.cells);
        let useful: u64 = cells().map(|cell| cell.accounting.total()).sum();
        let lived: u64 = cells().map(|cell| cell.lived_ns).sum();
        assert_eq!(useful, processes as u64 * 4 * 3_000_000);
        assert_eq!(lived, processes as u64 * 4 * 5_000_000);
        assert!(cells().count() <= MAX_CELLS);
        assert_eq!(overview.names, ["serial code"]);
    }
}
