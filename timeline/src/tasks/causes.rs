//! The causes that end waits: the last arrival at a barrier, the end of the last child at a taskwait.
//!
//! Memory: two barriers per existing team, because no member enters the next barrier but one before all have left; and
//! one point per existing task that has a completed child. Nothing is kept unless the sink wants causes.

use ompt_sys as ompt;
use omptrace_symbols::fast_map::FastMap;

use crate::model::{Awaited, LinkKind, Ns, Point, Reports, TaskId, TeamId};
use crate::names::construct::Construct;

/// The potential causes in a process.
#[derive(Default)]
pub(crate) struct Causes {
    reports: Reports,
    /// The barriers of teams, indexed by the parity of their number.
    barriers: FastMap<TeamId, [Option<Arrival>; 2]>,
    /// By parent task: the end of its latest completed child.
    children: FastMap<TaskId, Point>,
}

/// The latest arrival at a barrier.
#[derive(Clone, Copy)]
struct Arrival {
    number: u32,
    at: Point,
}

impl Causes {
    /// The causes in a process whose runtime reports this.
    pub(crate) fn new(reports: Reports) -> Causes {
        Causes { reports, ..Causes::default() }
    }

    /// A thread starts to wait.
    pub(crate) fn waits(&mut self, at: Point, awaited: Awaited) {
        let Awaited::Barrier { team, number } = awaited else {
            return;
        };
        let arrivals = self.barriers.entry(team).or_default();
        let newest = &mut arrivals[number as usize % 2];
        let is_later = |newest: &Arrival| newest.number < number || newest.at.time <= at.time;
        if newest.as_ref().is_none_or(is_later) {
            *newest = Some(Arrival { number, at });
        }
    }

    /// The cause that ended a wait in a region of `construct` that started at `begin`.
    pub(crate) fn of_end(
        &self,
        construct: Construct,
        begin: Ns,
        awaited: Awaited,
    ) -> Option<(LinkKind, Point)> {
        match awaited {
            Awaited::Barrier { team, number } if self.is_wait(construct) => {
                let arrival = self.barriers.get(&team)?[number as usize % 2]?;
                (arrival.number == number).then_some((LinkKind::BarrierRelease, arrival.at))
            }
            Awaited::Taskwait { task } if self.is_wait(construct) => {
                let ended = *self.children.get(&task)?;
                (ended.time >= begin).then_some((LinkKind::Taskwait, ended))
            }
            _ => None,
        }
    }

    /// Whether the region counts as the wait. If the runtime does not report waits, the region around them does.
    fn is_wait(&self, construct: Construct) -> bool {
        match construct {
            Construct::SyncRegion(ompt::ompt_sync_region_taskwait) => !self.reports.taskwait_waits,
            Construct::SyncRegion(_) => !self.reports.barrier_waits,
            _ => true,
        }
    }

    /// A child of `parent` is complete.
    pub(crate) fn child_ended(&mut self, parent: TaskId, at: Point) {
        let newest = self.children.entry(parent).or_insert(at);
        if newest.time <= at.time {
            *newest = at;
        }
    }

    /// The task has ended.
    pub(crate) fn forget_task(&mut self, task: TaskId) {
        self.children.remove(&task);
    }

    /// The team has ended.
    pub(crate) fn forget_team(&mut self, team: TeamId) {
        self.barriers.remove(&team);
    }
}
