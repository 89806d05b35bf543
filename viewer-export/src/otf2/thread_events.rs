//! The records of each event of a thread: forks and joins, teams, tasks and locks.

use omptrace_timeline::model::{Point, RegionId, ThreadEvent};
use otf2_archive::records::{
    MEASUREMENT_OFF, MeasurementOnOff, ThreadAcquireLock, ThreadFork, ThreadJoin, ThreadTaskComplete,
    ThreadTeamBegin, ThreadTeamEnd, paradigm,
};

use super::Otf2;
use super::tasks::Task;
use super::threads::Membership;

impl Otf2 {
    #[inline(never)]
    pub(super) fn thread_event(&mut self, at: Point, event: &ThreadEvent) {
        // OTF2 has no record for dependences; arrows show them as marks.
        if matches!(event, ThreadEvent::TaskDependence { .. }) {
            return;
        }
        let Some((thread, time)) = self.at(at) else {
            return;
        };
        match *event {
            ThreadEvent::Recording { on: true } => {
                return self.threads[thread].pause_end = Some(time);
            }
            // These events end the region that was just left.
            ThreadEvent::TeamEnd { .. } => return self.team_end(thread, time),
            ThreadEvent::TaskComplete { task } => return self.task_complete(thread, time, task.0),
            ThreadEvent::TaskSwitch { task, .. } => {
                let task = Task::Explicit(task.0);
                let thread = &mut self.threads[thread];
                thread.run(&mut self.tasks, &mut self.teams, time, task);
                thread.next = Some(task);
                return;
            }
            // The attributes of regions contain this data.
            ThreadEvent::Loop { .. }
            | ThreadEvent::Chunks { .. }
            | ThreadEvent::MemberDone
            | ThreadEvent::InitLock { .. }
            | ThreadEvent::Sampled { .. }
            | ThreadEvent::ReleaseUnseen { .. } => return,
            _ => {}
        }
        let state = &mut self.threads[thread];
        let task = state.task();
        state.run(&mut self.tasks, &mut self.teams, time, task);
        match *event {
            ThreadEvent::Fork { team, requested } => self.fork(thread, time, team.0, requested),
            ThreadEvent::Join { team } => {
                let paradigm = paradigm::OPENMP;
                self.threads[thread].event(time, &ThreadJoin { paradigm });
                self.teams.join(team.0);
                self.patch_teams();
            }
            ThreadEvent::TeamBegin { team, index, size, .. } => {
                self.team_begin(thread, time, team.0, index, size);
            }
            ThreadEvent::TaskCreate { task, region, .. } => {
                self.task_create(thread, time, task.0, region);
            }
            ThreadEvent::AcquireLock { lock, order, .. } => {
                let event = ThreadAcquireLock {
                    paradigm: paradigm::OPENMP,
                    lock: self.lock(lock.0),
                    acquisition_order: order,
                };
                self.threads[thread].event(time, &event);
                self.threads[thread].acquired();
            }
            ThreadEvent::ReleaseLock { lock, order } => {
                let lock = self.lock(lock.0);
                self.threads[thread].releases(time, lock, order);
            }
            ThreadEvent::Recording { .. } => {
                let mode = MEASUREMENT_OFF;
                self.threads[thread].event(time, &MeasurementOnOff { mode });
            }
            _ => {}
        }
    }

    fn fork(&mut self, thread: usize, time: u64, team: u64, requested_threads: u32) {
        let thread = &mut self.threads[thread];
        let event = ThreadFork { paradigm: paradigm::OPENMP, requested_threads };
        thread.event(time, &event);
        self.teams.fork(team, thread.membership().team);
    }

    fn team_begin(&mut self, thread: usize, time: u64, team: u64, index: u32, size: u32) {
        let thread = &mut self.threads[thread];
        let team = self.teams.begin(team, thread.location, index, size);
        thread.team_event(&mut self.teams, time, team, |team| ThreadTeamBegin { team });
        self.teams.begun(team);
        thread.teams.push(Membership { team, index, created: 0 });
        thread.current = thread.implicit_task();
        thread.next = Some(thread.current);
        self.patch_teams();
    }

    fn team_end(&mut self, thread: usize, time: u64) {
        let thread = &mut self.threads[thread];
        if thread.teams.len() == 1 {
            return;
        }
        let team = thread.membership().team;
        thread.team_event(&mut self.teams, time, team, |team| ThreadTeamEnd { team });
        thread.teams.pop();
        // The end of a task implies that the thread resumes what it did before.
        thread.current = thread.task();
        thread.switched = None;
        self.teams.end(team);
    }

    fn task_create(&mut self, thread: usize, time: u64, task: u64, region: RegionId) {
        let region = self.regions.creation(&mut self.strings, region.0 as usize);
        let thread = &mut self.threads[thread];
        thread.enter(time, &[], region);
        thread.create(&mut self.tasks, &mut self.teams, time, task);
        thread.leave(time, &[], region);
    }

    fn task_complete(&mut self, thread: usize, time: u64, task: u64) {
        if let Some(name) = self.tasks.complete(task) {
            let thread = &mut self.threads[thread];
            thread.team_event(&mut self.teams, time, name.team, |team| ThreadTaskComplete {
                team,
                creating_thread: name.creating_thread,
                generation: name.generation,
            });
        }
    }

    fn lock(&mut self, lock: u64) -> u32 {
        *self.locks.entry(lock).or_insert_with(|| {
            self.next_lock += 1;
            self.next_lock - 1
        })
    }
}
