//! What a thread has begun and not ended, kept while the events that began it are forgotten.
//!
//! Regions that it has ended are kept for a while, too. Their workers report that they left them when the next region begins: until
//! then they are open for them.

use std::collections::{BTreeSet, VecDeque};

use ompt_sys::{ompt_scope_begin, ompt_scope_end};

use crate::event::field::{Address, Id};
use crate::event::{Event, ImplicitTaskEnd, ParallelEnd};
use crate::read::reader::Record;

/// Regions that have ended and that are kept.
const MAX_ENDED: usize = 64;
/// Things that are open at once. More are nonsense: their ends are not reported.
const MAX_OPEN: usize = 256;

/// The kind of a thing that is open, and which one it is where the ends say so.
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
    /// The wait for a mutex.
    Awaits(Address),
    Holds(Address),
    /// An explicit task that runs.
    Task,
}

/// A thing that is open.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    kind: Kind,
    /// The event that began it.
    pub(crate) record: Record,
}

impl Open {
    /// The end of what `record` began, at the same time, where a thread introduces itself by that; `None` of others.
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

/// Whether an event begins or ends something.
enum Half {
    Begin(Kind),
    End(Kind),
    /// The wait is over, and the mutex is held.
    Acquired(Address),
    /// The thread runs another task.
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

/// The things that a thread has open, the outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opens {
    list: Vec<Open>,
    /// Begin and end of the regions that ended last.
    ended: VecDeque<(Record, Record)>,
    /// Events were passed over: what is open may have ended.
    is_doubtful: bool,
}

impl Opens {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Open> {
        self.list.iter()
    }

    /// The regions whose implicit tasks the thread has open.
    pub(crate) fn regions(&self) -> impl Iterator<Item = Id> {
        self.list.iter().filter_map(|open| match &open.record.event {
            Event::ImplicitTaskBegin(begin) => Some(begin.parallel_data),
            _ => None,
        })
    }

    /// Begin and end of those of `regions` that the thread had begun and that are over.
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

    /// Events are passed over from here on.
    pub(crate) fn doubt(&mut self) {
        self.is_doubtful = true;
        self.list.retain(|open| matches!(open.kind, Kind::Parallel(_) | Kind::Implicit(_)));
    }

    /// The next event comes. Where some were passed over, it may say what is still open: the region and the implicit task that
    /// it belongs to.
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
        // A region that a thread of the team has begun is open as long as the thread's own task in it.
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
        // Regions that ended in between: when, is not known better.
        for open in over {
            if let Some(end) = Open::end_of(&open.record)
                && matches!(open.kind, Kind::Parallel(_))
            {
                let ticks = record.ticks;
                self.end_region(open.record, Record { ticks, ..end });
            }
        }
    }

    /// Takes note of an event that is forgotten.
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

    /// The innermost of that kind ends.
    fn remove(&mut self, kind: Kind) -> Option<Open> {
        let index = self.list.iter().rposition(|open| open.kind == kind)?;
        Some(self.list.remove(index))
    }
}
