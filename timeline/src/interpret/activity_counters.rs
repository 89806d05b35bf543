//! Counters over time: the number of working threads, of threads that wait, by what they wait for, and of tasks.
//!
//! Samples have a resolution of a microsecond: of several changes within one, only the result is reported. That is
//! finer than a viewer can show, and avoids most samples if tasks and barriers are short.

use ompt_sys as ompt;

use crate::interpret::item_emitter::Stage;
use crate::model::CounterId;
use crate::model::Ns;
use crate::names::construct::Construct;
use crate::threads::open_regions::Thread;

/// Changes that are closer together are combined.
const RESOLUTION_NS: Ns = 1_000;

/// The numbers that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    ActiveThreads,
    UnfinishedTasks,
    WaitingAtBarriers,
    WaitingForTasks,
    WaitingForLocks,
}

impl Count {
    const ALL: [Count; 5] = [
        Count::ActiveThreads,
        Count::UnfinishedTasks,
        Count::WaitingAtBarriers,
        Count::WaitingForTasks,
        Count::WaitingForLocks,
    ];

    /// The displayed name.
    fn name(self) -> &'static str {
        match self {
            Count::ActiveThreads => "in parallel regions",
            Count::UnfinishedTasks => "created but not finished",
            Count::WaitingAtBarriers => "waiting at barriers",
            Count::WaitingForTasks => "waiting for tasks",
            Count::WaitingForLocks => "waiting for locks",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Count::UnfinishedTasks => "tasks",
            _ => "threads",
        }
    }

    /// The number to which a thread in this wait belongs.
    #[inline]
    fn of_wait(wait: Construct) -> Count {
        match wait {
            Construct::MutexWait(_) => Count::WaitingForLocks,
            Construct::SyncRegionWait(ompt::ompt_sync_region_taskwait | ompt::ompt_sync_region_taskgroup) => {
                Count::WaitingForTasks
            }
            _ => Count::WaitingAtBarriers,
        }
    }
}

/// The counters of a process.
pub(crate) struct Counters {
    counters: [Counter; Count::ALL.len()],
    threads: Vec<Counted>,
}

/// The state of the counters at one time.
#[derive(Debug, PartialEq)]
pub(crate) struct CountersState {
    values: [i64; Count::ALL.len()],
    threads: Vec<Counted>,
}

/// The numbers to which a thread contributes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    wait: Option<Count>,
    is_active: bool,
    /// The thread is one of the runtime's own, whose work is not counted.
    is_helper: bool,
}

/// One counter. It is defined to the sink when its value is not 0 for the first time.
#[derive(Clone, Copy, Default)]
struct Counter {
    id: Option<CounterId>,
    shown: i64,
    value: i64,
    /// The time of the first change since the last report.
    changed: Option<Ns>,
}

impl Counters {
    pub(crate) fn new(threads: &[Thread]) -> Counters {
        let counted = |thread: &Thread| Counted { is_helper: thread.is_helper, ..Counted::default() };
        Counters {
            counters: [Counter::default(); Count::ALL.len()],
            threads: threads.iter().map(counted).collect(),
        }
    }

    /// Sets the wait in which the thread is, if any. Called for each event; usually, nothing has changed.
    #[inline(always)]
    pub(crate) fn wait(&mut self, stage: &mut Stage<'_>, thread: usize, time: Ns, wait: Option<Construct>) {
        let wait = wait.map(Count::of_wait);
        let before = std::mem::replace(&mut self.threads[thread].wait, wait);
        if before != wait && !self.threads[thread].is_helper {
            self.change_wait(stage, time, before, wait);
        }
    }

    fn change_wait(&mut self, stage: &mut Stage<'_>, time: Ns, before: Option<Count>, wait: Option<Count>) {
        if let Some(before) = before {
            self.add(stage, before, time, -1);
        }
        if let Some(wait) = wait {
            self.add(stage, wait, time, 1);
        }
    }

    /// Sets whether the thread is in a parallel region.
    pub(crate) fn active(&mut self, stage: &mut Stage<'_>, thread: usize, time: Ns, is_active: bool) {
        let was_active = std::mem::replace(&mut self.threads[thread].is_active, is_active);
        let change = i64::from(is_active) - i64::from(was_active);
        if change != 0 && !self.threads[thread].is_helper {
            self.add(stage, Count::ActiveThreads, time, change);
        }
    }

    /// Sets the number of unfinished tasks.
    #[inline]
    pub(crate) fn tasks(&mut self, stage: &mut Stage<'_>, time: Ns, tasks: usize) {
        let change = tasks as i64 - self.counters[Count::UnfinishedTasks as usize].value;
        if change != 0 {
            self.add(stage, Count::UnfinishedTasks, time, change);
        }
    }

    fn add(&mut self, stage: &mut Stage<'_>, count: Count, time: Ns, change: i64) {
        let counter = &mut self.counters[count as usize];
        if counter.changed.is_some_and(|since| time.saturating_sub(since) >= RESOLUTION_NS) {
            counter.show(stage, count);
        }
        counter.value += change;
        counter.changed.get_or_insert(time);
    }

    /// The values, and the contribution of each thread.
    pub(crate) fn state(&self) -> CountersState {
        CountersState { values: self.counters.map(|counter| counter.value), threads: self.threads.clone() }
    }

    /// Reports all changes.
    pub(crate) fn show(&mut self, stage: &mut Stage<'_>) {
        for count in Count::ALL {
            self.counters[count as usize].show(stage, count);
        }
    }

    /// The process ends: sets all counters to 0.
    pub(crate) fn finish(&mut self, stage: &mut Stage<'_>, time: Ns) {
        for count in Count::ALL {
            let counter = &mut self.counters[count as usize];
            counter.show(stage, count);
            counter.value = 0;
            counter.changed = Some(time);
            counter.show(stage, count);
        }
    }
}

impl Counter {
    fn show(&mut self, stage: &mut Stage<'_>, count: Count) {
        let Some(since) = self.changed.take() else {
            return;
        };
        if self.value == self.shown {
            return;
        }
        let new = || stage.counter(count.name().to_owned(), count.unit());
        let id = *self.id.get_or_insert_with(new);
        stage.count(id, since, self.value);
        self.shown = self.value;
    }
}
