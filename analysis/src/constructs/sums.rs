//! The sums of some processes, mergeable with the sums of others.
//!
//! All sums are integers. Constructs are identified by names and places, and processes by their numbers, so processes
//! that are analysed separately merge to the same sums in any order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use omptrace_timeline::DeviceReport;
use omptrace_timeline::model::{Category, Folding, split_place};
use omptrace_timeline::schedule;
use omptrace_trace_format::{Ending, Metadata};

use crate::constructs::open_loop::OpenLoop;
use crate::devices::DeviceUse;
use crate::model::accounting::Accounting;
use crate::model::histogram::Histogram;
use crate::model::place::Place;
use crate::model::process_stats::{ProcessStats, ending_words};
use crate::model::stats::{
    ConstructStats, DeviceStats, LockStats, LoopStats, Share, Stats, TeamStats, ThreadStats, Times,
};
use crate::model::sum::add;
use crate::overview::ranks::Ranks;

/// The sums of some processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    /// By number.
    pub(crate) processes: BTreeMap<u32, ProcessSums>,
    pub(crate) constructs: BTreeMap<Key, ConstructSums>,
}

/// Name, category and place of a construct.
pub(crate) type Key = (String, &'static str, Place);

/// The sums of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProcessSums {
    pub(crate) stats: ProcessStats,
    pub(crate) threads: Vec<ThreadStats>,
    pub(crate) locks: Vec<LockStats>,
    pub(crate) device_use: Vec<DeviceUse>,
    pub(crate) devices: Vec<DeviceStats>,
    pub(crate) notes: Vec<String>,
}

/// The mergeable sums of a construct. Means and shares are derived from them at the end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConstructSums {
    pub(crate) stats: ConstructStats,
    pub(crate) is_parallel: bool,
    /// Durations of executions that are known as a whole. If it is empty, the shortest and longest are unknown.
    pub(crate) durations: Histogram,
    /// The schedules of a loop.
    pub(crate) schedules: BTreeSet<&'static str>,
}

impl ConstructSums {
    /// Empty sums of a construct, of which `stats` contains only name and place.
    pub(crate) fn of(stats: ConstructStats, is_parallel: bool) -> ConstructSums {
        ConstructSums { stats, is_parallel, durations: Histogram::default(), schedules: BTreeSet::new() }
    }

    /// Empty sums of the same construct.
    pub(crate) fn without_numbers(&self) -> ConstructSums {
        let stats = ConstructStats {
            name: self.stats.name.clone(),
            category: self.stats.category,
            place: self.stats.place.clone(),
            ..ConstructStats::default()
        };
        ConstructSums::of(stats, self.is_parallel)
    }

    /// Adds an execution that took this long.
    pub(crate) fn add_whole(&mut self, ns: u64) {
        let is_first = self.durations.is_empty();
        self.stats.times.add_whole(ns, is_first);
        self.durations.add(ns);
    }

    /// Adds a thread's part in a loop, which took this long.
    pub(crate) fn add_loop(&mut self, of_loop: &OpenLoop, ns: u64) {
        self.schedules.extend(of_loop.schedule.and_then(schedule));
        if of_loop.chunks > 0 {
            let share = Share { chunks: of_loop.chunks, iterations: of_loop.iterations, ns };
            self.stats.of_loop.get_or_insert_default().add(&share);
        }
    }

    fn key(&self) -> Key {
        let stats = &self.stats;
        // Different processes may need different parts of a path to tell files apart.
        let name = match stats.place.position {
            Some(_) => split_place(&stats.name).0,
            None => &stats.name,
        };
        (name.to_owned(), stats.category, stats.place.clone())
    }

    pub(crate) fn merge(&mut self, other: ConstructSums) {
        let (stats, more) = (&mut self.stats, other.stats);
        if (more.name.len(), &more.name) > (stats.name.len(), &stats.name) {
            stats.name = more.name;
        }
        let has_whole = !self.durations.is_empty();
        stats.times.merge(&more.times, has_whole, !other.durations.is_empty());
        add(&mut stats.self_ns, more.self_ns);
        stats.waiting_ns = either(stats.waiting_ns, more.waiting_ns, |a, b| a.saturating_add(b));
        stats.team = either(stats.team, more.team, TeamStats::and);
        stats.of_loop = either(stats.of_loop, more.of_loop, LoopStats::and);
        self.is_parallel |= other.is_parallel;
        self.durations.merge(&other.durations);
        self.schedules.extend(other.schedules);
    }

    fn stats(mut self) -> ConstructStats {
        let stats = &mut self.stats;
        if !self.schedules.is_empty() {
            let schedules: Vec<&str> = self.schedules.into_iter().collect();
            stats.schedule = Some(schedules.join(", "));
        }
        if self.is_parallel {
            stats.waiting_ns = stats.team.and_then(|team| {
                let total = u128::from(stats.times.total_ns);
                let waiting = total * u128::from(team.waiting_ns);
                u64::try_from(waiting.checked_div(team.members_ns.into())?).ok()
            });
        }
        stats.team.iter_mut().for_each(TeamStats::complete);
        stats.of_loop.iter_mut().for_each(LoopStats::complete);
        let times = &mut stats.times;
        times.mean_ns = times.total_ns / times.count.max(1);
        let (is_whole, longest) = (!times.is_of_parts && times.max_ns > 0, times.max_ns);
        let quantile = |percent: u64| self.durations.quantile(percent).filter(|_| is_whole);
        stats.median_ns = quantile(50).map(|ns| ns.min(longest));
        stats.p99_ns = quantile(99).map(|ns| ns.min(longest));
        if is_whole {
            stats.durations = self.durations.powers();
            if stats.category == Category::Task.name() {
                stats.lengths.clone_from(&stats.durations);
            }
        }
        stats.self_mean_ns = (!times.is_of_parts).then_some(stats.self_ns / stats.times.count.max(1));
        self.stats
    }
}

/// The one that is present, or `both` applied to both.
fn either<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

impl Times {
    /// Adds the times of another construct. `has_whole`, `has_other`: whether an execution is known as a whole here and
    /// there.
    pub(crate) fn merge(&mut self, other: &Times, has_whole: bool, has_other: bool) {
        self.count += other.count;
        add(&mut self.total_ns, other.total_ns);
        self.min_ns = match (has_whole, has_other) {
            (true, true) => self.min_ns.min(other.min_ns),
            (false, true) => other.min_ns,
            (_, false) => self.min_ns,
        };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.is_of_parts |= other.is_of_parts;
    }
}

impl Sums {
    /// Whether there are loops with chunks.
    pub(crate) fn have_chunks(&self) -> bool {
        let mut constructs = self.constructs.values();
        constructs.any(|construct| construct.stats.of_loop.is_some())
    }

    /// The sums of the process of this number.
    pub(crate) fn of(
        number: u32,
        process: ProcessSums,
        constructs: impl Iterator<Item = ConstructSums>,
    ) -> Sums {
        let mut sums = Sums::default();
        sums.processes.insert(number, process);
        constructs.for_each(|construct| sums.add(construct));
        sums
    }

    /// Merges ranges whose names differ only in numbers.
    pub(crate) fn folded(self, folding: &Folding) -> Sums {
        if folding.is_none() {
            return self;
        }
        let mut folded = Sums { processes: self.processes, constructs: BTreeMap::new() };
        for mut construct in self.constructs.into_values() {
            let stats = &mut construct.stats;
            let name = folding.name(&stats.name);
            if stats.category == Category::User.name() && name != stats.name {
                (stats.place, stats.name) = (Place::new(&name), name);
            }
            folded.add(construct);
        }
        folded
    }

    /// The sums of one process, renumbered as `number`.
    pub(crate) fn numbered(mut self, number: u32) -> Sums {
        let Some((_, mut process)) = self.processes.pop_first() else {
            return self;
        };
        process.stats.id = number;
        let threads = process.threads.iter_mut();
        threads.for_each(|thread| thread.process_id = number);
        let locks = process.locks.iter_mut();
        locks.for_each(|lock| lock.process_id = number);
        let devices = process.device_use.iter_mut();
        devices.for_each(|device| device.process_id = number);
        let devices = process.devices.iter_mut();
        devices.for_each(|device| device.process_id = number);
        self.processes.insert(number, process);
        self
    }

    /// Adds a note about the process with this number, unless nothing of the process was selected.
    pub(crate) fn add_note(&mut self, number: u32, text: &str) {
        if let Some(process) = self.processes.get_mut(&number) {
            let note = format!("{}: {text}", process.stats.name);
            process.notes.push(note);
        }
    }

    /// Sets how the session of the process ended, and its accounting.
    pub(crate) fn set_account(&mut self, number: u32, ending: Option<Ending>, account: Accounting) {
        if let Some(process) = self.processes.get_mut(&number) {
            process.stats.ending = ending.map(ending_words).unwrap_or_default();
            process.stats.accounting = account;
        }
    }

    /// Sets the CPU time of the process and of its threads, as far as the trace has it.
    pub(crate) fn set_cpu_times(&mut self, number: u32, metadata: &Metadata) {
        let Some(process) = self.processes.get_mut(&number) else { return };
        process.stats.event_cost_ns = metadata.event_cost_ns();
        let Some(times) = &metadata.cpu_time else { return };
        // If the process's start is known, the analysis begins there.
        let is_from_start = process.stats.before_tracing_ns.is_some();
        let since = |begin: u64, end: u64| end.checked_sub(if is_from_start { 0 } else { begin });
        process.stats.cpu_ns =
            times.process_begin_ns.zip(times.process_end_ns).and_then(|(begin, end)| since(begin, end));
        let of_stream = times.threads.iter().map(|time| (time.stream, since(time.begin_ns, time.end_ns)));
        let of_stream: BTreeMap<u32, Option<u64>> = of_stream.collect();
        for thread in &mut process.threads {
            thread.cpu_ns = of_stream.get(&thread.stream).copied().flatten();
        }
    }

    /// Sets the peak memory use of the process's devices.
    pub(crate) fn set_memory(&mut self, number: u32, devices: &BTreeMap<i32, DeviceReport>) {
        let of_process = self.processes.get_mut(&number);
        for of_device in of_process.into_iter().flat_map(|process| &mut process.device_use) {
            if let Some(report) = devices.get(&of_device.device_num) {
                of_device.set_memory(report);
            }
        }
    }

    fn add(&mut self, construct: ConstructSums) {
        match self.constructs.entry(construct.key()) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(construct);
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                entry.get_mut().merge(construct);
            }
        }
    }

    /// Adds the sums of other processes; associative and commutative.
    pub(crate) fn merge(&mut self, other: Sums) {
        self.processes.extend(other.processes);
        let constructs = other.constructs.into_values();
        constructs.for_each(|construct| self.add(construct));
    }

    /// The statistics, without the answers. Device operations and locks are sorted by time.
    pub(crate) fn stats(self) -> Stats {
        let mut stats = Stats::default();
        for process in self.processes.into_values() {
            stats.processes.push(process.stats);
            stats.threads.extend(process.threads);
            stats.locks.extend(process.locks);
            stats.device_use.extend(process.device_use);
            stats.devices.extend(process.devices);
            stats.notes.extend(process.notes);
        }
        stats.ranks = Ranks::of(&stats.processes);
        let constructs = self.constructs.into_values();
        stats.constructs = constructs.map(ConstructSums::stats).collect();
        stats.constructs.sort_by_key(|stats| Reverse((stats.self_ns, stats.times.total_ns)));
        stats.devices.sort_by_key(|stats| Reverse(stats.times.total_ns));
        let held = |lock: &LockStats| lock.times.map_or(0, |times| times.total_ns);
        stats.locks.sort_by_key(|lock| Reverse(held(lock)));
        stats
    }
}
