//! Counters of threads: what a thread counted between two readings, and when it was preempted.
//!
//! A reading comes immediately before an event at which a region starts or ends. So what was counted since the previous
//! reading belongs to the region that is innermost now.

use super::*;
use crate::model::{Counted, CounterId, Item, Point};

/// Marks a counter that did not count.
const UNKNOWN: u64 = u64::MAX;

/// Ratios are shown only for times that are at least this long, because shorter times mostly show the tracer.
const RESOLUTION_NS: Ns = 100_000;

/// The counters of a process's threads.
#[derive(Default)]
pub(crate) struct Counting {
    names: Vec<String>,
    /// By thread: what it has counted since the last report.
    gathered: FastMap<usize, Gathered>,
    /// The positions of the values that show preemptions, if all of them are recorded.
    switches: Option<Switches>,
    /// The newest reading of each thread.
    newest: FastMap<usize, (Ns, Vec<u64>)>,
}

/// What a thread counted in some interval, for the timeline's counters.
#[derive(Default)]
struct Gathered {
    begin: Ns,
    ns: Ns,
    values: Vec<u64>,
    /// The counters that have been defined.
    shown: [Option<CounterId>; Ratio::ALL.len()],
}

/// A ratio that is shown as a counter of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ratio {
    Processor,
    Instructions,
    Clock,
}

impl Ratio {
    const ALL: [Ratio; 3] = [Ratio::Processor, Ratio::Instructions, Ratio::Clock];

    /// The name and the unit.
    fn name(self) -> (&'static str, &'static str) {
        match self {
            Ratio::Processor => ("had a processor", "%"),
            Ratio::Instructions => ("IPC", "instructions per 1000 cycles"),
            Ratio::Clock => ("clock rate", "MHz"),
        }
    }

    /// The ratio over `ns`; `value` returns a counter's increment.
    fn value(self, ns: Ns, value: impl Fn(&str) -> Option<u64>) -> Option<i64> {
        let (of, factor, by) = match self {
            Ratio::Processor => (value("task-clock")?, 100, ns.max(0).cast_unsigned()),
            Ratio::Instructions => (value("instructions")?, 1000, value("cycles")?),
            Ratio::Clock => (value("cycles")?, 1000, value("task-clock")?),
        };
        let ratio = u128::from(of) * factor / u128::from(by).max(1);
        (by > 0).then(|| i64::try_from(ratio).unwrap_or(i64::MAX))
    }
}

impl Gathered {
    /// Restarts the sums.
    fn forget(&mut self) {
        self.ns = 0;
        self.values.clear();
    }

    /// Adds what the thread counted in `ns`, from `begin` on.
    fn add(&mut self, begin: Ns, ns: Ns, values: &[u64]) {
        if self.ns == 0 {
            self.begin = begin;
        }
        self.ns += ns;
        self.values.resize(values.len(), 0);
        for (sum, value) in self.values.iter_mut().zip(values) {
            *sum = match [*sum, *value].contains(&UNKNOWN) {
                true => UNKNOWN,
                false => sum.saturating_add(*value),
            };
        }
    }
}

/// The positions of these values in a reading.
#[derive(Clone, Copy)]
struct Switches {
    task_clock: usize,
    context_switches: usize,
    preemptions: usize,
}

/// The time that a thread lost to other threads, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Preempted {
    ns: Ns,
    times: u64,
}

impl Switches {
    fn of(names: &[String]) -> Option<Switches> {
        let place = |name: &str| names.iter().position(|own| own == name);
        Some(Switches {
            task_clock: place("task-clock")?,
            context_switches: place("context-switches")?,
            preemptions: place("preemptions")?,
        })
    }

    /// The time in `ns` that the thread lost to others, if it counted `values`. `None` also if the thread gave up its
    /// CPU by itself in between, because the two times cannot be told apart.
    fn preempted(self, ns: Ns, values: &[u64]) -> Option<Preempted> {
        let value = |place: usize| values.get(place).copied().filter(|value| *value != UNKNOWN);
        let times = value(self.preemptions)?;
        let is_all = times > 0 && value(self.context_switches)? == times;
        let ran = Ns::try_from(value(self.task_clock)?).ok()?;
        let ns = ns.saturating_sub(ran);
        (is_all && ns > 0).then_some(Preempted { ns, times })
    }
}

impl Counting {
    /// Counts for a process whose readings contain the counters that `metadata` names.
    pub(crate) fn of(metadata: &Metadata) -> Counting {
        let names = metadata.counting.as_ref();
        let names = names.map_or(Vec::new(), |of| of.counters.clone());
        Counting { switches: Switches::of(&names), names, ..Counting::default() }
    }

    /// Events of the thread are missing, so what it counted belongs to no region.
    pub(super) fn lost(&mut self, thread: usize) {
        self.newest.remove(&thread);
        if let Some(gathered) = self.gathered.get_mut(&thread) {
            gathered.forget();
        }
    }

    /// Events of all threads are missing.
    pub(super) fn paused(&mut self) {
        self.newest.clear();
        self.gathered.values_mut().for_each(Gathered::forget);
    }
}

impl Interpreter<'_, '_> {
    /// Processes a reading of the thread's counters.
    #[cold]
    pub(super) fn counters(&mut self, thread: usize, time: Ns, e: &Counters<'_>) {
        let values = e.values.to_vec();
        let before = self.counting.newest.insert(thread, (time, values));
        let Some((begin, before)) = before else {
            return;
        };
        let counted = e.values.iter().zip(&before);
        let counted: Vec<u64> = counted
            .map(|(now, before)| match [*now, *before].contains(&UNKNOWN) {
                true => UNKNOWN,
                false => now.saturating_sub(*before),
            })
            .collect();
        let ns = time.saturating_sub(begin);
        let preempted = self.counting.switches;
        let preempted = preempted.and_then(|of| of.preempted(ns, &counted));
        if let Some(Preempted { ns, times }) = preempted
            && self.threads[thread].stack().last().is_some_and(is_useful)
        {
            let arguments = arguments!["preemptions": uint(times)];
            let begin = time.saturating_sub(ns);
            self.span(thread, begin, time, Construct::Preempted, arguments);
        }
        if self.stage.wants_counts {
            self.show_ratios(thread, begin, ns, &counted);
        }
        if self.stage.wants_counters() {
            let at = Point { location: self.threads[thread].location, time };
            self.stage.item(&Item::Counted(Counted { at, since: begin, values: &counted }));
        }
    }

    /// Shows what the thread counted, once the interval is long enough.
    fn show_ratios(&mut self, thread: usize, begin: Ns, ns: Ns, counted: &[u64]) {
        let names = &self.counting.names;
        let gathered = self.counting.gathered.entry(thread).or_default();
        gathered.add(begin, ns, counted);
        if gathered.ns < RESOLUTION_NS {
            return;
        }
        let value = |name: &str| {
            let place = names.iter().position(|own| own == name)?;
            let value = gathered.values.get(place).copied();
            value.filter(|value| *value != UNKNOWN)
        };
        let values = Ratio::ALL.map(|ratio| ratio.value(gathered.ns, value));
        for (ratio, value) in Ratio::ALL.into_iter().zip(values) {
            let Some(value) = value else { continue };
            let (name, unit) = ratio.name();
            let shown = &mut gathered.shown[ratio as usize];
            let new = || {
                let thread = &self.thread_names[thread];
                self.stage.counter(format!("{name}: {thread}"), unit)
            };
            let id = *shown.get_or_insert_with(new);
            self.stage.count(id, gathered.begin, value);
        }
        gathered.forget();
    }
}

/// Whether the thread executes code of the program, according to its innermost region.
fn is_useful(innermost: &Frame) -> bool {
    match innermost.construct {
        Construct::ParallelWakeUp
        | Construct::TeamsWakeUp
        | Construct::Idle
        | Construct::SyncRegionWait(_)
        | Construct::MutexWait(_)
        | Construct::ExternalWait(_)
        | Construct::MpiCall(_)
        | Construct::MpiWait(_)
        | Construct::Target(_)
        | Construct::TargetDataOp(_)
        | Construct::TargetSubmit => false,
        Construct::SyncRegion(kind) => kind == ompt::ompt_sync_region_taskgroup,
        _ => !innermost.has_ended(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_only_others_took_the_processor_from_lost_what_it_did_not_run() {
        let names = ["preemptions", "context-switches", "task-clock"].map(str::to_owned);
        let switches = Switches::of(&names).unwrap();
        let preempted = |ns, values: [u64; 3]| switches.preempted(ns, &values);
        let lost = |ns, times| Some(Preempted { ns, times });
        assert_eq!(preempted(1000, [2, 2, 300]), lost(700, 2));
        // The thread slept, too.
        assert_eq!(preempted(1000, [2, 3, 300]), None);
        // The thread kept its CPU.
        assert_eq!(preempted(1000, [0, 0, 998]), None);
        assert_eq!(preempted(1000, [1, 1, 1001]), None);
        assert_eq!(preempted(1000, [1, 1, UNKNOWN]), None);
        assert!(Switches::of(&names[..2]).is_none());
    }

    #[test]
    fn ratios_are_those_of_what_was_counted() {
        let value = |ratio: Ratio, counted: &[(&str, u64)]| {
            let counted = |name: &str| {
                let found = counted.iter().find(|(own, _)| *own == name)?;
                Some(found.1)
            };
            ratio.value(1000, counted)
        };
        assert_eq!(value(Ratio::Processor, &[("task-clock", 250)]), Some(25));
        let both = [("instructions", 30), ("cycles", 20), ("task-clock", 10)];
        assert_eq!(value(Ratio::Instructions, &both), Some(1500));
        assert_eq!(value(Ratio::Clock, &both), Some(2000));
        assert_eq!(value(Ratio::Clock, &both[..2]), None);
        assert_eq!(value(Ratio::Instructions, &[("instructions", 30), ("cycles", 0)]), None);
    }
}
