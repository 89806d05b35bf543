//! Counters of threads: what each thread counted from one reading to the next, and where it lost its CPU meanwhile.
//!
//! A reading comes right before the event at which something begins or ends. So what was counted since the reading before
//! belongs to the region that is innermost now.

use super::*;
use crate::model::{Counted, CounterId, Item, Point};

/// The value of a counter that did not count.
const UNKNOWN: u64 = u64::MAX;

/// Ratios are shown of times that are this long at least: those of short ones show the tracer.
const RESOLUTION_NS: Ns = 100_000;

/// The counters of a process's threads.
#[derive(Default)]
pub(crate) struct Counting {
    names: Vec<String>,
    /// What each thread has counted that is not shown yet.
    gathered: FastMap<usize, Gathered>,
    /// The places of the values that show when a thread lost its CPU, where all are there.
    switches: Option<Switches>,
    /// The newest reading of each thread.
    newest: FastMap<usize, (Ns, Vec<u64>)>,
}

/// What a thread counted in some time, for a timeline's counters.
#[derive(Default)]
struct Gathered {
    begin: Ns,
    ns: Ns,
    values: Vec<u64>,
    /// Those that were shown once.
    shown: [Option<CounterId>; Ratio::ALL.len()],
}

/// A number of a thread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ratio {
    Processor,
    Instructions,
    Clock,
}

impl Ratio {
    const ALL: [Ratio; 3] = [Ratio::Processor, Ratio::Instructions, Ratio::Clock];

    /// Its name and unit.
    fn name(self) -> (&'static str, &'static str) {
        match self {
            Ratio::Processor => ("had a processor", "%"),
            Ratio::Instructions => ("IPC", "instructions per 1000 cycles"),
            Ratio::Clock => ("clock rate", "MHz"),
        }
    }

    /// Its value, where `value` gives what was counted in `ns`.
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
    /// Begins anew.
    fn forget(&mut self) {
        self.ns = 0;
        self.values.clear();
    }

    /// Adds what the thread counted from `begin` on, for `ns`.
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

/// Where in a reading which value is.
#[derive(Clone, Copy)]
struct Switches {
    task_clock: usize,
    context_switches: usize,
    preemptions: usize,
}

/// What a thread has lost to others.
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

    /// What the thread has lost to others in `ns`, in which it counted `values`. `None` also where it gave its CPU away
    /// by itself, too: which time was which is not known.
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
    /// Of a process whose readings have the values that `metadata` names.
    pub(crate) fn of(metadata: &Metadata) -> Counting {
        let names = metadata.counting.as_ref();
        let names = names.map_or(Vec::new(), |of| of.counters.clone());
        Counting { switches: Switches::of(&names), names, ..Counting::default() }
    }

    /// Something of the thread is not in the trace: what it counted belongs to no region.
    pub(super) fn lost(&mut self, thread: usize) {
        self.newest.remove(&thread);
        if let Some(gathered) = self.gathered.get_mut(&thread) {
            gathered.forget();
        }
    }

    /// The same of all threads.
    pub(super) fn paused(&mut self) {
        self.newest.clear();
        self.gathered.values_mut().for_each(Gathered::forget);
    }
}

impl Interpreter<'_, '_> {
    /// A reading of the thread's counters.
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

    /// Shows what the thread counted, once that was long enough.
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

/// Whether the thread executes code of the program in a region of which no other is inside.
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
        // It slept, too.
        assert_eq!(preempted(1000, [2, 3, 300]), None);
        // It kept its CPU.
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
