//! What is the same after a checkpoint and after all events before it.

use ompt_sys as ompt;

use super::super::mutexes::UNSET;
use super::super::{Interpreter, Member, Team};
use crate::interpret::activity_counters::CountersState;
use crate::interpret::annotations::AnnotationState;
use crate::model::{Ns, RegionId};
use crate::names::construct::Construct;
use crate::tasks::state::{Task, TaskState};
use crate::threads::open_regions::FrameState;

/// The state of interpretation, but for numbers that are the reader's own.
#[derive(Debug, PartialEq)]
pub(super) struct State {
    /// The open regions, the task at the bottom, and the time of the newest thing where a region may have begun before that.
    threads: Vec<(Vec<FrameState>, Option<u64>, Option<Ns>)>,
    /// By thread, the label of regions that begin.
    labels: Vec<u32>,
    teams: Vec<TeamState>,
    tasks: Vec<AliveTask>,
    /// Wait id, holder, since when, whether it shows on a track, and where it was acquired.
    locks: Vec<(u64, usize, Ns, bool, Option<RegionId>)>,
    counters: CountersState,
    delayed_tasks: usize,
    given: Vec<(u64, u64)>,
    unset_tasks: u64,
    unannounced_tasks: u64,
    has_proxy_tasks: bool,
    annotations: AnnotationState,
}

#[derive(Debug, PartialEq)]
struct TeamState {
    id: u64,
    begin: Ns,
    encountering_task: u64,
    construct: Construct,
    region: RegionId,
    thread: usize,
    actual_parallelism: u32,
    members: Vec<Member>,
}

#[derive(Debug, PartialEq)]
struct AliveTask {
    id: u64,
    construct: Construct,
    region: RegionId,
    parent: u64,
    implicit_task: Option<u64>,
    flags: ompt::ompt_task_flag_t,
    /// The thread on whose stack it is; `None` before it runs.
    on: Option<usize>,
    created: Option<Ns>,
}

impl Interpreter<'_, '_> {
    /// The state; `None` where a checkpoint cannot give it.
    pub(super) fn state(&self) -> Option<State> {
        let is_plain = self.joins.is_empty()
            && self.finished_tasks.are_none()
            && self.usual_numbers.is_empty()
            && self.repeated_forks.is_empty()
            && self.bodies_of_leagues.is_empty()
            && self.tasks_of_leagues.is_empty()
            && self.dependences.are_none()
            && self.locks.are_settled()
            && self.recording.paused_since.is_none()
            && self.stage.pause.is_none();
        if !is_plain
            || self.is_a_mutex_about_to_be_acquired()
            || !self.teams.values().all(|team| self.is_in_step(team))
        {
            return None;
        }
        // A thread that is woken up for a team belongs to it since that was formed.
        let misses_some = |team: &&Team| (team.members.len() as u64) < u64::from(team.actual_parallelism);
        let incomplete = self.teams.values().filter(|team| team.members.is_empty() || misses_some(team));
        let since = incomplete.map(|team| team.begin).min();
        let threads = self.threads.iter().map(|thread| {
            let states = thread.states()?;
            let last = since.map(|since| thread.last().max(since));
            Some((states, thread.unannounced_base, last))
        });
        let teams = self.teams.iter();
        let mut teams: Vec<TeamState> = teams.map(|(id, team)| team_state(*id, team)).collect();
        teams.sort_unstable_by_key(|team| team.id);
        let tasks = self.tasks.iter().map(|(id, task)| alive(*id, task));
        let mut tasks: Vec<AliveTask> = tasks.collect::<Option<_>>()?;
        tasks.sort_unstable_by_key(|task| task.id);
        let locks = self.locks.held().into_iter();
        let mut given: Vec<(u64, u64)> = self.given_ids.ranges().collect();
        given.sort_unstable();
        Some(State {
            threads: threads.collect::<Option<_>>()?,
            labels: self.threads.iter().map(|thread| thread.label).collect(),
            teams,
            tasks,
            locks: locks
                .map(|held| (held.wait_id, held.holder, held.since, held.has_track, held.region))
                .collect(),
            counters: self.counters.state(),
            delayed_tasks: self.delayed_tasks,
            given,
            unset_tasks: self.unset_tasks,
            unannounced_tasks: self.unannounced_tasks,
            has_proxy_tasks: self.has_proxy_tasks,
            annotations: self.annotations.state(self.clock.start)?,
        })
    }

    /// Whether a thread waits for a mutex that another has released meanwhile. An arrow will show that, and only events that are over
    /// know of the release.
    fn is_a_mutex_about_to_be_acquired(&self) -> bool {
        let mut threads = self.threads.iter().enumerate();
        threads.any(|(place, thread)| {
            let wait = thread.stack().last();
            let wait = wait.filter(|top| matches!(top.construct, Construct::MutexWait(_)));
            wait.is_some_and(|wait| {
                let wait_id = (wait.key != UNSET).then_some(wait.key);
                self.locks.is_released(wait_id, place, wait.begin())
            })
        })
    }

    /// Whether all members have left the same barriers. Who waits for others that have gone on already waits for the runtime, which
    /// only the events of these others show.
    fn is_in_step(&self, team: &Team) -> bool {
        let left = |&(thread, task): &Member| self.threads[thread].barriers_left(task);
        let members = team.members.len() as u64;
        let missing = (members < u64::from(team.actual_parallelism)).then_some(0);
        let mut left = team.members.iter().map(left).chain(missing);
        let first = left.next();
        left.all(|other| Some(other) == first)
    }
}

fn team_state(id: u64, team: &Team) -> TeamState {
    TeamState {
        id,
        begin: team.begin,
        encountering_task: team.encountering_task.0,
        construct: team.construct,
        region: team.region,
        thread: team.thread,
        actual_parallelism: team.actual_parallelism,
        members: team.members.clone(),
    }
}

/// A task with dependences has links to others, of which only events that are over know.
fn alive(id: u64, task: &Task) -> Option<AliveTask> {
    let on = match task.state {
        TaskState::Created => None,
        TaskState::OnThread(thread) => Some(thread),
        TaskState::Suspended(_) | TaskState::Hidden | TaskState::Detached => return None,
    };
    (task.links.is_none() && !task.is_known_untied).then(|| AliveTask {
        id,
        construct: task.construct,
        region: task.region,
        parent: task.parent,
        implicit_task: task.implicit_task,
        flags: task.flags,
        on,
        created: task.created.map(|at| at.time),
    })
}
