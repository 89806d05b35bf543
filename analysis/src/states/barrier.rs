//! One barrier of one team: which members have arrived, and what the others do in the meantime.

use omptrace_timeline::model::Ns;

use crate::model::place_id::PlaceId;
use crate::model::sum::Sum;

/// The time that a barrier has spent in each phase, in nanoseconds. The sum is the time since the first member arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// Some members had not arrived.
    pub(crate) late: u64,
    /// All members had arrived, and some ran tasks.
    pub(crate) starved: u64,
    /// All members had arrived, and none ran a task.
    pub(crate) over: u64,
}

/// One barrier of one team.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// Number of members that have arrived, including those that have left since.
    pub(crate) arrived: u32,
    /// Number of members that have left.
    pub(crate) left: u32,
    /// Number of members inside the barrier that run tasks.
    pub(crate) running: u32,
    /// The barrier is the one at its region's end.
    pub(crate) is_last: bool,
    /// Number of hidden helpers that run tasks of the team.
    pub(crate) helpers: u32,
    /// The barrier at which the first member arrived; `None` for the barrier at a region's end.
    pub(crate) place: Option<PlaceId>,
    now: Ns,
    clocks: Clocks,
    /// [`Clocks::over`] when the last task began: at that time, the barrier turned out not to be over.
    pub(crate) gaps: u64,
    /// Running sum of the waiting time caused by each late member: the number of waiting threads divided by the number
    /// of late ones, integrated over time.
    pub(crate) by_late: f64,
    /// The same for each thread that ran a task after all members had arrived.
    pub(crate) by_tasks: f64,
}

impl Barrier {
    pub(crate) fn new(now: Ns) -> Barrier {
        Barrier { now, ..Barrier::default() }
    }

    /// Advances the clocks to `time`, in a team of `size` threads.
    pub(crate) fn until(&mut self, time: Ns, size: u32) {
        if time <= self.now {
            return;
        }
        let ns = time.abs_diff(self.now);
        self.now = time;
        let kept = self.kept_waiting(size);
        if self.arrived < size {
            self.clocks.late.grow_by(ns);
            self.by_late += ns as f64 * kept;
        } else if self.running + self.helpers > 0 {
            self.clocks.starved.grow_by(ns);
            self.by_tasks += ns as f64 * kept;
        } else {
            self.clocks.over.grow_by(ns);
        }
    }

    /// A member inside the barrier starts to run tasks.
    pub(crate) fn run(&mut self) {
        self.running += 1;
        self.gaps = self.clocks.over;
    }

    /// A hidden helper starts to run a task of the team.
    pub(crate) fn helper_begins(&mut self, size: u32) {
        self.helpers += 1;
        if self.arrived >= size {
            self.gaps = self.clocks.over;
        }
    }

    /// How many threads of a team of `size` each late member currently keeps waiting; if none is late, each thread that
    /// runs a task.
    pub(crate) fn kept_waiting(&self, size: u32) -> f64 {
        let waiting = self.arrived.saturating_sub(self.left + self.running);
        let by = match size.checked_sub(self.arrived) {
            None | Some(0) => self.running + self.helpers,
            Some(late) => late,
        };
        match by {
            0 => 0.0,
            by => f64::from(waiting) / f64::from(by),
        }
    }

    /// The place of work before the barrier, recorded at `place`. If GCC's static loops are invisible, such work is
    /// recorded at the `region` itself; the barrier's place then tells the loops of the region apart.
    pub(crate) fn place_before(&self, place: PlaceId, region: PlaceId, shows_loops: bool) -> PlaceId {
        self.place.filter(|_| !shows_loops && place == region).unwrap_or(place)
    }

    pub(crate) fn clocks(&self) -> Clocks {
        self.clocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_split_where_the_last_member_arrives_and_the_last_task_ends() {
        let mut barrier = Barrier::new(0);
        barrier.arrived = 1;
        barrier.until(10, 2);
        barrier.arrived = 2;
        barrier.running = 1;
        barrier.until(25, 2);
        barrier.running = 0;
        barrier.until(28, 2);
        let clocks = Clocks { late: 10, starved: 15, over: 3 };
        assert_eq!(barrier.clocks(), clocks);
        assert_eq!((barrier.by_late, barrier.by_tasks), (10.0, 15.0));
    }
}
