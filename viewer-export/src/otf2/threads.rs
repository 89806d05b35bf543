//! The state of one thread in OTF2: its open regions, its teams, and the task that it runs.
//!
//! On the timeline, a task that runs on top of another is nested in it. In OTF2, each task has regions of its own, and
//! [`ThreadTaskSwitch`] tells to which task the following events belong. So each open region knows its task, and when
//! the thread has left the upper task's regions, it switches to the task of the region below.

use std::io;

use omptrace_timeline::model::ThreadRole;
use otf2_archive::chunks::Site;
use otf2_archive::encoding::CommRef;
use otf2_archive::events::EventFile;
use otf2_archive::records::{
    Enter, Leave, MEASUREMENT_ON, MeasurementOnOff, Record, ThreadReleaseLock, ThreadTaskCreate,
    ThreadTaskSwitch, paradigm,
};

use super::tasks::{Task, TaskName, Tasks};
use super::teams::{TeamId, Teams};

/// A location that is a thread.
pub(super) struct Thread {
    /// The thread's number in the archive.
    pub(super) location: u32,
    /// The index of its process.
    pub(super) process: usize,
    pub(super) name: String,
    pub(super) os_tid: u32,
    pub(super) role: ThreadRole,
    pub(super) file: EventFile,
    /// The open regions, outermost first.
    pub(super) open: Vec<Open>,
    /// The teams of the thread, innermost last; the first is its initial team.
    pub(super) teams: Vec<Membership>,
    /// The current task according to the events written so far.
    pub(super) current: Task,
    /// The time since which the innermost open region has belonged to another task.
    pub(super) switched: Option<u64>,
    /// The task of the region that starts next, if it differs from that of the innermost region.
    pub(super) next: Option<Task>,
    /// The end of a pause of the recording, while earlier events may still follow.
    pub(super) pause_end: Option<u64>,
    /// The time of the first event.
    pub(super) first: u64,
    /// The time, or the end, of the newest event.
    pub(super) last: u64,
    /// The thread has events. The only one may be the program's start, caused by an event of another thread.
    pub(super) has_begun: bool,
    /// The thread has events of its own.
    pub(super) is_seen: bool,
}

/// A region that is open on the timeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// The region's number, if it is written as Enter and Leave.
    pub(super) region: Option<u32>,
    pub(super) task: Task,
    pub(super) state: State,
}

/// Special states of open regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Usual,
    /// Waiting for a critical, atomic or ordered region.
    Waiting,
    /// Waiting for such a region; the thread has just acquired it.
    Acquires,
    /// The wait has ended on the timeline, but in OTF2 it continues around the acquired region, as in Score-P.
    Acquired,
    /// Holding a critical, atomic or ordered region.
    Holding,
    /// Holding such a region; the thread has just released it. The release is written after the region's end, as in
    /// Score-P.
    Releases {
        lock: u32,
        order: u32,
    },
    /// A buffer flush, which is a single event, whose end is filled in later.
    Flush(Site),
}

/// A thread's membership in a team.
#[derive(Clone, Copy, Debug)]
pub(super) struct Membership {
    pub(super) team: TeamId,
    /// The thread's number in the team.
    pub(super) index: u32,
    /// Number of tasks that the thread created in the team.
    pub(super) created: u32,
}

impl Membership {
    /// The identity of the thread's implicit task in the team.
    fn implicit_task(&self) -> TaskName {
        TaskName { team: self.team, creating_thread: self.index, generation: 0 }
    }

    /// The identity of the next task that the thread creates in the team.
    fn next_task(&mut self) -> TaskName {
        self.created += 1;
        TaskName { team: self.team, creating_thread: self.index, generation: self.created }
    }
}

impl Thread {
    /// The task of the innermost open region.
    #[inline]
    pub(super) fn task(&self) -> Task {
        self.open.last().map_or(Task::Implicit(0), |top| top.task)
    }

    /// The innermost team.
    pub(super) fn membership(&mut self) -> &mut Membership {
        self.teams.last_mut().expect("the initial team stays")
    }

    /// The implicit task of the innermost team.
    pub(super) fn implicit_task(&self) -> Task {
        Task::Implicit(self.teams.len() as u32 - 1)
    }

    /// Makes sure that the events show that the thread runs `task`.
    #[inline]
    pub(super) fn run(&mut self, tasks: &mut Tasks, teams: &mut Teams, time: u64, task: Task) {
        let since = self.switched.take();
        if self.current != task {
            self.run_another(tasks, teams, time, task, since);
        }
    }

    #[cold]
    fn run_another(
        &mut self,
        tasks: &mut Tasks,
        teams: &mut Teams,
        time: u64,
        task: Task,
        since: Option<u64>,
    ) {
        // The thread may have run another task in between.
        let between = self.task();
        // The end of a task on another location may have been written since.
        let since = since.map(|since| since.max(self.last));
        if let Some(since) = since
            && since < time
            && self.current != between
        {
            self.switch(tasks, teams, since, between);
        }
        if self.current != task {
            self.switch(tasks, teams, time, task);
        }
    }

    /// A task whose creation is not in the trace is taken for the thread's implicit task.
    fn switch(&mut self, tasks: &mut Tasks, teams: &mut Teams, time: u64, task: Task) {
        self.current = task;
        let name = match task {
            // In contradictory traces, a task may move so that a region belongs to a team that has ended.
            Task::Implicit(place) => {
                let innermost = *self.membership();
                let team = self.teams.get(place as usize).copied();
                team.unwrap_or(innermost).implicit_task()
            }
            Task::Explicit(task) => match tasks.name(task) {
                Some(name) => name,
                None => self.create(tasks, teams, time, task),
            },
        };
        self.team_event(teams, time, name.team, |team| ThreadTaskSwitch {
            team,
            creating_thread: name.creating_thread,
            generation: name.generation,
        });
    }

    /// The thread creates a task.
    pub(super) fn create(&mut self, tasks: &mut Tasks, teams: &mut Teams, time: u64, task: u64) -> TaskName {
        let name = self.membership().next_task();
        tasks.create(task, name);
        self.team_event(teams, time, name.team, |team| ThreadTaskCreate {
            team,
            creating_thread: name.creating_thread,
            generation: name.generation,
        });
        name
    }

    /// Ends the innermost region of the timeline.
    #[inline]
    pub(super) fn leave_innermost(
        &mut self,
        tasks: &mut Tasks,
        teams: &mut Teams,
        time: u64,
        attributes: &[u8],
    ) {
        self.leave_acquired(tasks, teams, time);
        let Some(top) = self.open.last_mut() else {
            return;
        };
        match top.state {
            State::Acquires => return top.state = State::Acquired,
            State::Flush(stop_time) => {
                self.file.patch(stop_time, 2, &time.to_le_bytes());
                self.last = self.last.max(time);
            }
            _ => {}
        }
        self.leave_top(tasks, teams, time, attributes);
        self.leave_acquired(tasks, teams, time);
    }

    /// Ends the waits around a critical, atomic or ordered region that has ended.
    #[inline]
    pub(super) fn leave_acquired(&mut self, tasks: &mut Tasks, teams: &mut Teams, time: u64) {
        let is_acquired = |top: &Open| top.state == State::Acquired;
        if self.open.last().is_some_and(is_acquired) {
            self.leave_all_acquired(tasks, teams, time);
        }
    }

    #[inline(never)]
    fn leave_all_acquired(&mut self, tasks: &mut Tasks, teams: &mut Teams, time: u64) {
        let is_acquired = |top: &Open| top.state == State::Acquired;
        while self.open.last().is_some_and(is_acquired) {
            self.leave_top(tasks, teams, time, &[]);
        }
    }

    #[inline(always)]
    fn leave_top(&mut self, tasks: &mut Tasks, teams: &mut Teams, time: u64, attributes: &[u8]) {
        let Some(&Open { region, task, state }) = self.open.last() else {
            return;
        };
        if let Some(region) = region {
            self.run(tasks, teams, time, task);
            self.leave(time, attributes, region);
        }
        if let State::Releases { lock, order } = state {
            self.release(time, lock, order);
        }
        self.open.pop();
        if task != self.task() {
            self.switched = Some(time);
        }
    }

    /// Writes the end of a pause before an event at `time`; later events are not earlier.
    #[inline(always)]
    pub(super) fn end_pause(&mut self, time: u64) {
        if let Some(end) = self.pause_end
            && end <= time
        {
            self.go_on(end);
        }
    }

    #[cold]
    fn go_on(&mut self, time: u64) {
        self.pause_end = None;
        let mode = MEASUREMENT_ON;
        self.event(time, &MeasurementOnOff { mode });
    }

    /// The thread has acquired what it waits for.
    pub(super) fn acquired(&mut self) {
        if let Some(top) = self.open.last_mut()
            && top.state == State::Waiting
        {
            top.state = State::Acquires;
        }
    }

    /// The thread holds what it acquired. A wait that has not ended by then is for something else, for example because
    /// events were lost.
    pub(super) fn holds(&mut self) {
        if let Some(top) = self.open.last_mut()
            && top.state == State::Acquires
        {
            top.state = State::Waiting;
        }
    }

    /// The thread releases a lock. If it is in a region that holds the lock, the region is left first.
    pub(super) fn releases(&mut self, time: u64, lock: u32, order: u32) {
        match self.open.last_mut() {
            Some(top) if top.state == State::Holding => top.state = State::Releases { lock, order },
            _ => self.release(time, lock, order),
        }
    }

    fn release(&mut self, time: u64, lock: u32, order: u32) {
        let event = ThreadReleaseLock { paradigm: paradigm::OPENMP, lock, acquisition_order: order };
        self.event(time, &event);
    }

    /// Writes an event whose first field is a team.
    pub(super) fn team_event<R: Record>(
        &mut self,
        teams: &mut Teams,
        time: u64,
        team: TeamId,
        event: impl FnOnce(CommRef) -> R,
    ) {
        let (comm, is_settled) = teams.comm(team);
        let site = self.event(time, &event(comm));
        if !is_settled {
            teams.named(team, self.location, site);
        }
    }

    pub(super) fn event<R: Record>(&mut self, time: u64, event: &R) -> Site {
        self.event_with(time, &[], event)
    }

    pub(super) fn event_with<R: Record>(&mut self, time: u64, attributes: &[u8], event: &R) -> Site {
        self.last = time;
        self.file.event(time, attributes, event)
    }

    #[inline]
    pub(super) fn enter(&mut self, time: u64, attributes: &[u8], region: u32) {
        self.last = time;
        self.file.region(Enter::ID, time, attributes, region);
    }

    #[inline]
    pub(super) fn leave(&mut self, time: u64, attributes: &[u8], region: u32) {
        self.last = time;
        self.file.region(Leave::ID, time, attributes, region);
    }

    /// Writes the remaining events.
    ///
    /// # Errors
    /// The first write error.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.file.finish()
    }
}
