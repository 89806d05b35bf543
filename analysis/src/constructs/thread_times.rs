//! The state of a thread at each moment. States do not overlap, so their times add up to the lifetime of the process.

use ompt_sys as ompt;

use crate::model::sum::{Sum, add};
use crate::passes::gaps::Gaps;
use omptrace_timeline::Reports;
use omptrace_timeline::model::{Category, Construct, Ns, Process, Region, ThreadRole};

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Barrier,
    Tasks,
    Lock,
    WakeUp,
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// In a parallel region, and not waiting.
    Working,
    /// In a parallel region, and waiting.
    Waiting(Wait),
    /// Running the program outside of parallel regions, or waiting there.
    Serial,
    /// In no parallel region, and not running the program.
    Idle,
    /// Unknown.
    Unknown,
    /// Nothing was recorded, or the events were lost.
    Unobserved,
}

/// The kind of a region, for thread states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A thread in this region belongs to a parallel region.
    Parallel,
    /// A wait that the runtime reports as such.
    Wait(Wait),
    /// The region of a barrier. It counts as a wait if the runtime does not report the waits inside.
    BarrierRegion,
    /// Like [`Kind::BarrierRegion`].
    TaskwaitRegion,
    Idle,
    Task,
    /// The tracer's own work, and other regions that say nothing about OpenMP.
    Tracer,
    /// Events were lost in this region.
    Lost,
    Other,
}

impl Kind {
    pub(crate) fn of(region: &Region) -> Kind {
        match region.construct {
            Construct::Parallel | Construct::Teams => Kind::Parallel,
            Construct::ParallelWakeUp | Construct::TeamsWakeUp => Kind::Wait(Wait::WakeUp),
            Construct::Idle => Kind::Idle,
            Construct::Lost => Kind::Lost,
            // Such calls occur anywhere, and do not make the thread a member of a team.
            Construct::ExternalWait(_) | Construct::MpiCall(_) | Construct::MpiWait(_) => Kind::Tracer,
            // Testing a lock is not waiting for it.
            Construct::MutexWait(ompt::ompt_mutex_test_lock | ompt::ompt_mutex_test_nest_lock) => Kind::Other,
            Construct::MutexWait(_) => Kind::Wait(Wait::Lock),
            Construct::SyncRegionWait(kind) => Kind::Wait(waits_for(kind)),
            Construct::SyncRegion(ompt::ompt_sync_region_taskwait) => Kind::TaskwaitRegion,
            // Contains code of the program, so it is not a wait.
            Construct::SyncRegion(ompt::ompt_sync_region_taskgroup | ompt::ompt_sync_region_reduction) => {
                Kind::Other
            }
            Construct::SyncRegion(_) => Kind::BarrierRegion,
            _ => match region.category {
                Category::Task => Kind::Task,
                Category::Omptrace => Kind::Tracer,
                _ => Kind::Other,
            },
        }
    }

    /// What a thread waits for if a region of this kind is its innermost one.
    pub(crate) fn wait(self, reports: &Reports) -> Option<Wait> {
        match self {
            Kind::Wait(wait) => Some(wait),
            Kind::BarrierRegion if !reports.barrier_waits => Some(Wait::Barrier),
            Kind::TaskwaitRegion if !reports.taskwait_waits => Some(Wait::Tasks),
            _ => None,
        }
    }
}

fn waits_for(kind: ompt::ompt_sync_region_t) -> Wait {
    match kind {
        ompt::ompt_sync_region_taskwait | ompt::ompt_sync_region_taskgroup => Wait::Tasks,
        _ => Wait::Barrier,
    }
}

/// The time of a thread, by state.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// The time up to which the states are known.
    until: Ns,
    pub(crate) working: u64,
    pub(crate) barriers: u64,
    pub(crate) taskwaits: u64,
    pub(crate) locks: u64,
    pub(crate) wake_up: u64,
    pub(crate) serial: u64,
    pub(crate) idle: u64,
    pub(crate) unknown: u64,
    pub(crate) unobserved: u64,
    /// The part of `serial` before the first parallel region, and the part up to the end of the last one.
    first: Option<u64>,
    last: u64,
}

/// Serial time by its position relative to the parallel regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Serial {
    pub(crate) before: u64,
    pub(crate) between: u64,
    pub(crate) after: u64,
}

impl Account {
    /// The account of a thread whose process began at `begin`.
    pub(crate) fn new(begin: Ns) -> Account {
        Account {
            until: begin,
            working: 0,
            barriers: 0,
            taskwaits: 0,
            locks: 0,
            wake_up: 0,
            serial: 0,
            idle: 0,
            unknown: 0,
            unobserved: 0,
            first: None,
            last: 0,
        }
    }

    /// The thread was in this state until `time`, except in gaps of the recording.
    pub(crate) fn until(&mut self, time: Ns, doing: Doing, gaps: &Gaps) {
        if time <= self.until {
            return;
        }
        let unobserved = gaps.between(self.until, time);
        let ns = time.abs_diff(self.until).saturating_sub(unobserved);
        self.until = time;
        self.unobserved += unobserved;
        match doing {
            Doing::Working => self.working.grow_by(ns),
            Doing::Waiting(Wait::Barrier) => self.barriers.grow_by(ns),
            Doing::Waiting(Wait::Tasks) => self.taskwaits.grow_by(ns),
            Doing::Waiting(Wait::Lock) => self.locks.grow_by(ns),
            Doing::Waiting(Wait::WakeUp) => self.wake_up.grow_by(ns),
            Doing::Serial => self.serial.grow_by(ns),
            Doing::Idle => self.idle.grow_by(ns),
            Doing::Unknown => self.unknown.grow_by(ns),
            Doing::Unobserved => self.unobserved.grow_by(ns),
        }
        if matches!(doing, Doing::Working | Doing::Waiting(_)) {
            self.first.get_or_insert(self.serial);
            self.last = self.serial;
        }
    }

    /// Adds the account of a later time.
    pub(crate) fn append(&mut self, more: &Account) {
        self.first = self.first.or(more.first.map(|first| self.serial.saturating_add(first)));
        if more.first.is_some() {
            self.last = self.serial.saturating_add(more.last);
        }
        self.until = more.until;
        self.working.grow_by(more.working);
        self.barriers.grow_by(more.barriers);
        self.taskwaits.grow_by(more.taskwaits);
        self.locks.grow_by(more.locks);
        self.wake_up.grow_by(more.wake_up);
        self.serial.grow_by(more.serial);
        self.idle.grow_by(more.idle);
        self.unknown.grow_by(more.unknown);
        self.unobserved.grow_by(more.unobserved);
    }

    pub(crate) fn parallel(&self) -> u64 {
        let parts = [self.working, self.barriers, self.taskwaits, self.locks];
        let mut sum = self.wake_up;
        parts.iter().for_each(|part| add(&mut sum, *part));
        sum
    }

    pub(crate) fn serial(&self) -> Serial {
        let before = self.first.unwrap_or(self.serial);
        let until_last = self.first.map_or(self.serial, |_| self.last);
        Serial { before, between: until_last - before, after: self.serial - until_last }
    }
}

/// The state of a thread with this role while it has no open region. `has_begun`: the thread has appeared in the trace.
pub(crate) fn outside(role: ThreadRole, process: &Process, has_begun: bool) -> Doing {
    let reports = &process.reports;
    match role {
        _ if process.is_overwritten && !has_begun => Doing::Unobserved,
        ThreadRole::Main => Doing::Serial,
        ThreadRole::Worker | ThreadRole::Other if !reports.members && has_begun => {
            if reports.idle {
                Doing::Working
            } else {
                Doing::Unknown
            }
        }
        _ => Doing::Idle,
    }
}
