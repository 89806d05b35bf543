//! The regions, tasks, waits etc. that a thread has opened and not closed. They are kept after the events that opened
//! them are dropped.
//!
//! Parallel regions that a thread has ended are kept for a while, too: their workers report the end of their implicit
//! tasks only when the next region starts, so for the workers the region is still open.

use std::collections::{BTreeSet, VecDeque};

use ompt_sys::{ompt_scope_begin, ompt_scope_end};

use crate::event::field::{Address, Id};
use crate::event::{Event, ImplicitTaskEnd, ParallelEnd};
use crate::read::reader::Record;

/// Maximum number of ended regions to keep.
const MAX_ENDED: usize = 64;
/// Maximum number of open regions, tasks etc. of a thread. The limit is exceeded only by nonsensical traces, for which
/// their ends are not reported.
const MAX_OPEN: usize = 256;

/// The kind of an open region, task etc., with its id if the end event has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Parallel(Id),
    Implicit(Id),
    Work,
    Sync,
    Wait,
    Masked,
    Reduction,
    Target,
    /// Waiting for a mutex.
    Awaits(Address),
    Holds(Address),
    /// A running explicit task.
    Task,
}

/// An open region, task, wait or mutex.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    kind: Kind,
    /// The event that opened it.
    pub(crate) record: Record,
}

impl Open {
    /// The end event for a parallel region or implicit task that `record` begins, at the same time as `record`; `None`
    /// for other events.
    pub(crate) fn end_of(record: &Record) -> Option<Record> {
        let event = match &record.event {
            Event::ParallelBegin(begin) => Event::from(ParallelEnd {
                parallel_data: begin.parallel_data,
                encountering_task_data: begin.encountering_task_data,
                flags: begin.flags,
                codeptr_ra: begin.codeptr_ra,
            }),
            Event::ImplicitTaskBegin(begin) => Event::from(ImplicitTaskEnd {
                endpoint: ompt_scope_end,
                parallel_data: Id::NULL,
                task_data: begin.task_data,
                actual_parallelism: begin.actual_parallelism,
                index: begin.index,
                flags: begin.flags,
            }),
            _ => return None,
        };
        Some(Record { ticks: record.ticks, event })
    }
}

/// What an event opens or closes.
enum Half {
    Begin(Kind),
    End(Kind),
    /// A wait for a mutex ends, and the mutex is held.
    Acquired(Address),
    /// The thread switches to another task.
    Switch(Id),
    Neither,
}

fn half(event: &Event<'_>) -> Half {
    let of = |endpoint, kind| match endpoint {
        _ if endpoint == ompt_scope_begin => Half::Begin(kind),
        _ if endpoint == ompt_scope_end => Half::End(kind),
        _ => Half::Neither,
    };
    match event {
        Event::ParallelBegin(begin) => Half::Begin(Kind::Parallel(begin.parallel_data)),
        Event::ParallelEnd(end) => Half::End(Kind::Parallel(end.parallel_data)),
        Event::ImplicitTaskBegin(task) => of(task.endpoint, Kind::Implicit(task.task_data)),
        Event::ImplicitTaskEnd(task) => of(task.endpoint, Kind::Implicit(task.task_data)),
        Event::Work(work) => of(work.endpoint, Kind::Work),
        Event::SyncRegion(sync) => of(sync.endpoint, Kind::Sync),
        Event::SyncRegionWait(wait) => of(wait.endpoint, Kind::Wait),
        Event::Masked(masked) => of(masked.endpoint, Kind::Masked),
        Event::Reduction(reduction) => of(reduction.endpoint, Kind::Reduction),
        Event::Target(target) => of(target.endpoint, Kind::Target),
        Event::TargetEmi(target) => of(target.endpoint, Kind::Target),
        Event::MutexAcquire(mutex) => Half::Begin(Kind::Awaits(mutex.wait_id)),
        Event::MutexAcquired(mutex) => Half::Acquired(mutex.wait_id),
        Event::MutexReleased(mutex) => Half::End(Kind::Holds(mutex.wait_id)),
        Event::TaskSchedule(switch) => Half::Switch(switch.next_task_data),
        Event::TaskComplete(switch) => Half::Switch(switch.next_task_data),
        _ => Half::Neither,
    }
}

/// The regions, tasks etc. that a thread has open, outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opens {
    list: Vec<Open>,
    /// Begin and end events of the parallel regions that ended last.
    ended: VecDeque<(Record, Record)>,
    /// Events were skipped, so the listed regions and tasks may have ended.
    is_doubtful: bool,
}

impl Opens {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Open> {
        self.list.iter()
    }

    /// Ids of the parallel regions whose implicit tasks the thread has open.
    pub(crate) fn regions(&self) -> impl Iterator<Item = Id> {
        self.list.iter().filter_map(|open| match &open.record.event {
            Event::ImplicitTaskBegin(begin) => Some(begin.parallel_data),
            _ => None,
        })
    }

    /// Begin and end events of those `regions` that the thread had begun and has ended.
    pub(crate) fn ended_of(&self, regions: &BTreeSet<Id>) -> impl Iterator<Item = &Record> {
        let is_wanted = |(begin, _): &&(Record, Record)| match &begin.event {
            Event::ParallelBegin(begin) => regions.contains(&begin.parallel_data),
            _ => false,
        };
        let ended = self.ended.iter().filter(is_wanted);
        ended.flat_map(|(begin, end)| [begin, end])
    }

    fn end_region(&mut self, begin: Record, end: Record) {
        if self.ended.len() == MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((begin, end));
    }

    /// Marks that events are skipped from here on.
    pub(crate) fn doubt(&mut self) {
        self.is_doubtful = true;
        self.list.retain(|open| matches!(open.kind, Kind::Parallel(_) | Kind::Implicit(_)));
    }

    /// Checks the list against the next event. After skipped events, it may show which region and implicit task are
    /// still open: those that it belongs to.
    pub(crate) fn check(&mut self, record: &Record) {
        if !self.is_doubtful {
            return;
        }
        let event = &record.event;
        let (region, task) = match event {
            Event::Work(it) => (it.parallel_data, it.task_data),
            Event::SyncRegion(it) => (it.parallel_data, it.task_data),
            Event::SyncRegionWait(it) => (it.parallel_data, it.task_data),
            Event::Masked(it) => (it.parallel_data, it.task_data),
            Event::Reduction(it) => (it.parallel_data, it.task_data),
            Event::Dispatch(it) => (it.parallel_data, it.task_data),
            Event::ImplicitTaskBegin(it) => (it.parallel_data, Id::NULL),
            Event::ImplicitTaskEnd(it) => (Id::NULL, it.task_data),
            Event::ParallelBegin(it) => (Id::NULL, it.encountering_task_data),
            Event::ParallelEnd(it) => (it.parallel_data, it.encountering_task_data),
            Event::ThreadEnd(_) => (Id::NULL, Id::NULL),
            _ => return,
        };
        self.is_doubtful = false;
        let begins_task = matches!(event, Event::ImplicitTaskBegin(_));
        let is_region = |id: Id| id.known().is_some() && id == region;
        let is_task = |id: Id| id.known().is_some() && id == task;
        // A region begun by a thread of the team is open as long as that thread's own implicit task in the region.
        let of_task = |open: &Open| match &open.record.event {
            Event::ImplicitTaskBegin(begin) if is_task(begin.task_data) => Some(begin.parallel_data),
            _ => None,
        };
        let around = self.list.iter().find_map(of_task);
        let stays = |open: &Open| match (&open.record.event, open.kind) {
            (_, Kind::Parallel(id)) => is_region(id) || Some(id) == around,
            (Event::ImplicitTaskBegin(begin), Kind::Implicit(id)) => {
                is_task(id) || is_region(begin.parallel_data) && !begins_task
            }
            _ => false,
        };
        let (list, over): (Vec<Open>, Vec<Open>) =
            std::mem::take(&mut self.list).into_iter().partition(stays);
        self.list = list;
        // Regions that ended among the skipped events; this event is the best estimate of when.
        for open in over {
            if let Some(end) = Open::end_of(&open.record)
                && matches!(open.kind, Kind::Parallel(_))
            {
                let ticks = record.ticks;
                self.end_region(open.record, Record { ticks, ..end });
            }
        }
    }

    /// Updates the open regions and tasks with an event that is dropped.
    pub(crate) fn take(&mut self, record: Record) {
        match half(&record.event) {
            Half::Begin(kind) => self.push(kind, record),
            Half::End(kind) => {
                let begin = self.remove(kind);
                if let (Some(begin), Kind::Parallel(_)) = (begin, kind) {
                    self.end_region(begin.record, record);
                }
            }
            Half::Acquired(wait_id) => {
                let _waited = self.remove(Kind::Awaits(wait_id));
                self.push(Kind::Holds(wait_id), record);
            }
            Half::Switch(next) => {
                let _ran = self.remove(Kind::Task);
                let is_implicit = |open: &Open| open.kind == Kind::Implicit(next);
                if !self.list.iter().any(is_implicit) {
                    self.push(Kind::Task, record);
                }
            }
            Half::Neither => {}
        }
    }

    fn push(&mut self, kind: Kind, record: Record) {
        if self.list.len() < MAX_OPEN {
            self.list.push(Open { kind, record });
        }
    }

    /// Removes the innermost open one of this kind.
    fn remove(&mut self, kind: Kind) -> Option<Open> {
        let index = self.list.iter().rposition(|open| open.kind == kind)?;
        Some(self.list.remove(index))
    }
}
