//! Functions by samples: CPU time of each function, without and with its callees.
//!
//! Stacks follow the user's model, in which the runtime's code appears as one function per activity. *OpenMP Work* and
//! *OpenMP Wait* are defined as in the Collector API's paper (section 6): the program's code and reductions are work,
//! and everything else that the runtime does is wait. Both add up to the time of all samples. A sleeping thread spends
//! no CPU time, and has no samples.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use omptrace_timeline::model::{Function, FunctionId, Item, Location, LocationKind, Sample, Sink, Wants};
use serde::{Deserialize, Serialize};

use crate::constructs::flame::{Stacks, Tree};
use crate::model::answers::{Answers, FunctionName};
use crate::model::sum::add;
use crate::passes::selection::SelectedThreads;
use crate::passes::window::Windows;
use crate::summary::map_as_pairs;

/// The CPU time of all samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledTime {
    /// The number of samples.
    pub samples: u64,
    /// The CPU time that the samples represent.
    pub sampled_ns: u64,
    /// Of that, OpenMP Work.
    pub work_ns: u64,
    /// Of that, OpenMP Wait.
    pub wait_ns: u64,
    /// The number of lost samples, over all threads and the whole run.
    pub lost: u64,
    /// The CPU time that the lost samples represented.
    pub lost_ns: u64,
}

/// A function in the user's model, summed over threads and processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionStats {
    /// The function's name, without parameters. Names of runtime activities are in angle brackets.
    pub function: String,
    /// The module that contains the function; empty for runtime activities.
    pub module: String,
    /// The source file, if it is known.
    pub file: Option<String>,
    /// The number of samples taken in the function itself, not in functions that it called.
    pub samples: u64,
    /// The CPU time that these samples represent.
    pub self_ns: u64,
    /// The CPU time of the function and of all functions that it called, including the work of threads in
    /// the parallel regions and tasks that it created.
    pub total_ns: u64,
    /// Of that, OpenMP Work.
    pub work_ns: u64,
    /// Of that, OpenMP Wait.
    pub wait_ns: u64,
    /// The time that other threads spent waiting for threads that were executing this function: the sum
    /// over [`Blame::functions`](crate::model::answers::Blame::functions).
    pub blame_ns: u64,
    /// The function's part of the critical path, as in
    /// [`CriticalPath::functions`](crate::model::answers::CriticalPath::functions).
    pub path_ns: u64,
}

impl FunctionStats {
    fn name(&self) -> FunctionName {
        FunctionName { function: self.function.clone(), module: self.module.clone(), file: self.file.clone() }
    }

    /// Copies the functions' times from the answers (blame, critical path) into `functions`.
    pub(crate) fn join(functions: &mut [FunctionStats], answers: &Answers) {
        let mut times: BTreeMap<&FunctionName, (u64, u64)> = BTreeMap::new();
        for share in answers.blame.iter().flat_map(|row| &row.functions) {
            add(&mut times.entry(&share.name).or_default().0, share.ns);
        }
        for share in &answers.critical_path.functions {
            add(&mut times.entry(&share.name).or_default().1, share.ns);
        }
        for stats in functions {
            if let Some((blame, path)) = times.get(&stats.name()) {
                (stats.blame_ns, stats.path_ns) = (*blame, *path);
            }
        }
    }
}

/// Function, module and file.
type Key = (String, String, Option<String>);

/// The function sums of some processes. They merge in any order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FunctionSums {
    time: SampledTime,
    #[serde(with = "map_as_pairs")]
    functions: BTreeMap<Key, FunctionStats>,
    /// Empty if stacks are not needed.
    #[serde(skip)]
    pub(crate) stacks: Tree,
}

impl FunctionSums {
    /// Adds the sums of other processes.
    pub(crate) fn merge(&mut self, other: FunctionSums) {
        let (time, more) = (&mut self.time, other.time);
        add(&mut time.samples, more.samples);
        add(&mut time.sampled_ns, more.sampled_ns);
        add(&mut time.work_ns, more.work_ns);
        add(&mut time.wait_ns, more.wait_ns);
        add(&mut time.lost, more.lost);
        add(&mut time.lost_ns, more.lost_ns);
        for more in other.functions.into_values() {
            self.add(more);
        }
        self.stacks.merge(other.stacks);
    }

    /// Adds the sums of a function to those that it may already have.
    fn add(&mut self, more: FunctionStats) {
        let FunctionStats { function, module, file, .. } = more.clone();
        match self.functions.entry((function, module, file)) {
            Entry::Vacant(place) => {
                place.insert(more);
            }
            Entry::Occupied(mut known) => {
                let stats = known.get_mut();
                add(&mut stats.samples, more.samples);
                add(&mut stats.self_ns, more.self_ns);
                add(&mut stats.total_ns, more.total_ns);
                add(&mut stats.work_ns, more.work_ns);
                add(&mut stats.wait_ns, more.wait_ns);
            }
        }
    }

    /// The time of all samples; `None` if there are no samples, not even lost ones.
    pub(crate) fn time(&self) -> Option<SampledTime> {
        (self.time != SampledTime::default()).then_some(self.time)
    }

    /// The functions, those with the most time of their own first.
    pub(crate) fn into_functions(self) -> Vec<FunctionStats> {
        let mut functions: Vec<FunctionStats> = self.functions.into_values().collect();
        functions.sort_by_key(|stats| Reverse((stats.self_ns, stats.total_ns)));
        functions
    }
}

/// Adds up the samples of a process.
#[derive(Debug, Default)]
pub(crate) struct FunctionCollector {
    windows: Option<Windows>,
    selected: SelectedThreads,
    /// By location, whether it is a selected thread.
    locations: Vec<bool>,
    /// Number of threads seen so far.
    place: u32,
    functions: Vec<FunctionStats>,
    /// The functions of a stack.
    stack: Vec<FunctionId>,
    time: SampledTime,
    /// The stacks, if they are needed.
    stacks: Option<Stacks>,
}

impl FunctionCollector {
    /// Collects the samples of these threads in `windows`, if there are any.
    pub(crate) fn new(windows: Option<Windows>, selected: SelectedThreads) -> FunctionCollector {
        FunctionCollector { windows, selected, ..FunctionCollector::default() }
    }

    /// Also collects stacks.
    pub(crate) fn with_stacks(self) -> FunctionCollector {
        FunctionCollector { stacks: Some(Stacks::default()), ..self }
    }

    fn location(&mut self, location: &Location) {
        let is_selected = match location.kind {
            LocationKind::Thread { os_tid, .. } => {
                self.place += 1;
                self.selected.has(&location.name, self.place - 1, os_tid)
            }
            _ => false,
        };
        self.locations.push(is_selected);
    }

    fn function(&mut self, function: &Function) {
        self.functions.push(FunctionStats {
            function: function.name.clone(),
            module: function.module.clone(),
            file: function.file.clone(),
            ..FunctionStats::default()
        });
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let is_outside = |windows: &Windows| !windows.contains(sample.at.time);
        if !self.locations[sample.at.location.0 as usize] || self.windows.as_ref().is_some_and(is_outside) {
            return;
        }
        let weight = sample.weight_ns;
        let (work, wait) = match sample.is_work() {
            true => (weight, 0),
            false => (0, weight),
        };
        self.time.samples += 1;
        add(&mut self.time.sampled_ns, weight);
        add(&mut self.time.work_ns, work);
        add(&mut self.time.wait_ns, wait);
        if let Some(innermost) = sample.stack.last() {
            let stats = &mut self.functions[innermost.function.0 as usize];
            stats.samples += 1;
            add(&mut stats.self_ns, weight);
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.sample(sample.stack, weight);
        }
        // A recursive function gets the time of a sample once.
        self.stack.clear();
        self.stack.extend(sample.stack.iter().map(|frame| frame.function));
        self.stack.sort_unstable();
        self.stack.dedup();
        for function in &self.stack {
            let stats = &mut self.functions[function.0 as usize];
            add(&mut stats.total_ns, weight);
            add(&mut stats.work_ns, work);
            add(&mut stats.wait_ns, wait);
        }
    }

    /// The sums.
    pub(crate) fn sums(self) -> FunctionSums {
        let names = self.functions.iter().map(FunctionStats::name);
        let names: Vec<FunctionName> = names.collect();
        let stacks = self.stacks.map(|stacks| stacks.tree(&names));
        let mut sums =
            FunctionSums { time: self.time, functions: BTreeMap::new(), stacks: stacks.unwrap_or_default() };
        let with_time = self.functions.into_iter().filter(|stats| stats.total_ns > 0);
        with_time.for_each(|stats| sums.add(stats));
        sums
    }
}

impl Sink for FunctionCollector {
    fn wants(&self) -> Wants {
        Wants::SAMPLES
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Process(_) => self.place = 0,
            Item::Location(location) => self.location(location),
            Item::Function(function) => self.function(function),
            Item::Sample(sample) => self.sample(sample),
            Item::Summary(_, summary) => {
                add(&mut self.time.lost, summary.samples.lost);
                add(&mut self.time.lost_ns, summary.samples.lost_ns);
            }
            _ => {}
        }
    }
}
