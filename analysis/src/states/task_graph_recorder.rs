//! Records the work of threads in their teams' [phases](crate::scaling::phase).

use super::*;
use crate::scaling::phase::{At, Creator, Phase, Problem};
use crate::scaling::scheduler_pool::Scheduling;

/// The thread is in a nested region that has several threads.
#[derive(Clone, Copy, Debug)]
struct Inside;

/// A phase, and the position of the thread in it.
type InGraph<'p> = (&'p mut Phase, Result<(At, Creator), Inside>);

/// The phases of the existing outermost teams.
#[derive(Debug)]
pub(super) struct Graphs {
    /// By team.
    phases: Vec<Option<Phase>>,
    scheduling: Scheduling,
}

impl Graphs {
    /// Forgets all phases.
    pub(super) fn forget(&mut self) {
        self.phases.clear();
        self.scheduling.forget();
    }

    pub(super) fn places(self) -> BTreeMap<PlaceId, Scaling> {
        self.scheduling.places()
    }

    /// The phase of the outermost team around a thread with these memberships, and that team; `None` instead of the
    /// team in a nested region that has several threads.
    #[inline(always)]
    fn phase_of<const S: usize>(
        &mut self,
        memberships: &[Membership<S>],
        teams: &[Team<S>],
        reports: &Reports,
    ) -> Option<(&mut Phase, Option<usize>)> {
        let [first, ..] = memberships else { return None };
        let first = first.team;
        let slot = teams[first].outermost_slot.unwrap_or(first);
        if !matches!(self.phases.get(slot), Some(Some(_))) {
            self.begin_phase(slot, reports);
        }
        let phase = self.phases.get_mut(slot)?.as_mut()?;
        let innermost = memberships.last()?.team;
        let is_inside = first != slot || innermost != slot && teams[innermost].size() > 1;
        Some((phase, (!is_inside).then_some(slot)))
    }

    #[inline(never)]
    fn begin_phase(&mut self, slot: usize, reports: &Reports) {
        if slot >= self.phases.len() {
            self.phases.resize_with(slot + 1, || None);
        }
        let mut phase = self.scheduling.phase();
        phase.hides_loops = !reports.inlined;
        phase.chunk_cost_ns = reports.chunk_cost_ns;
        self.phases[slot] = Some(phase);
    }
}

impl<const S: usize> Threads<S> {
    /// Schedules regions on other numbers of threads, using up to `threads` additional threads.
    pub(crate) fn schedule_on(&mut self, numbers: Vec<u32>, threads: usize) {
        self.graphs = Some(Graphs { phases: Vec::new(), scheduling: Scheduling::new(numbers, threads) });
    }

    /// Whether regions are scheduled on other numbers of threads.
    pub(crate) fn are_scheduled(&self) -> bool {
        self.graphs.is_some()
    }

    /// The phase of the outermost team around the thread, and the thread's position in it. `Err` in a nested region
    /// that has several threads.
    fn graph(&mut self, thread: usize) -> Option<InGraph<'_>> {
        let graphs = self.graphs.as_mut()?;
        let of_thread = &mut self.threads[thread];
        let (phase, slot) = graphs.phase_of(&of_thread.memberships, &self.teams, &self.reports)?;
        let Some(slot) = slot else {
            return Some((phase, Err(Inside)));
        };
        let (mut at, mut creator) = (At::Member, None);
        for open in of_thread.open.iter_mut().rev() {
            // Hundreds of tasks may be open if they wait for other tasks.
            if at != At::Member && creator.is_some() {
                break;
            }
            if open.kind == Kind::Member {
                if open.team == Some(slot) {
                    break;
                }
                // A nested region with one thread is work of that thread, except for its tasks.
                if creator.is_none() {
                    at = At::Member;
                    creator = open.team.map(Creator::Member);
                }
                continue;
            }
            if at != At::Member {
                continue;
            }
            let strand = match open.kind {
                Kind::Task => {
                    if open.strand.0 != phase.number {
                        let strand = open.task.and_then(|task| phase.task(task));
                        open.strand = (phase.number, strand);
                    }
                    creator = creator.or(open.task.map(Creator::Task));
                    // The phase had no room for the task, so what the task does is ignored.
                    if open.strand.1.is_none() && phase.is_full() {
                        break;
                    }
                    open.strand.1
                }
                Kind::Alone => of_thread.alone,
                Kind::Chunk => of_thread.chunk,
                Kind::StaticLoop => {
                    at = At::Static(open.region);
                    continue;
                }
                Kind::Sections => {
                    at = At::Sections;
                    continue;
                }
                _ => None,
            };
            if let Some(strand) = strand {
                at = At::Strand(strand);
            }
        }
        Some((phase, Ok((at, creator.unwrap_or(Creator::Member(slot))))))
    }

    /// The phase of the outermost team around the thread, unless the thread is in a nested region with several threads.
    /// Also returns the team.
    #[inline]
    fn phase_around(&mut self, thread: usize) -> Option<(&mut Phase, usize)> {
        let graphs = self.graphs.as_mut()?;
        let memberships = &self.threads[thread].memberships;
        let (phase, slot) = graphs.phase_of(memberships, &self.teams, &self.reports)?;
        Some((phase, slot?))
    }

    /// The phase and the position in it, unless the thread is in a nested region with several threads.
    fn place_in_graph(&mut self, thread: usize) -> Option<(&mut Phase, (At, Creator))> {
        let (phase, place) = self.graph(thread)?;
        Some((phase, place.ok()?))
    }

    pub(super) fn graph_work(&mut self, thread: usize, ns: u64) {
        if ns == 0 {
            return;
        }
        match self.graph(thread) {
            Some((phase, Ok((at, _)))) => phase.work(thread, at, ns),
            Some((phase, Err(Inside))) => phase.work_inside(ns),
            None => {}
        }
    }

    /// A region starts.
    pub(super) fn graph_enter(&mut self, thread: usize, kind: Kind) {
        let is_shared = matches!(kind, Kind::Alone | Kind::Chunk);
        let is_of_outermost = || {
            let innermost = self.threads[thread].memberships.last();
            innermost.is_some_and(|innermost| self.teams[innermost.team].is_outermost)
        };
        if is_shared
            && is_of_outermost()
            && let Some((phase, _)) = self.phase_around(thread)
        {
            let strand = Some(phase.share());
            let of_thread = &mut self.threads[thread];
            match kind {
                Kind::Alone => of_thread.alone = strand,
                _ => of_thread.chunk = strand,
            }
        }
    }

    pub(super) fn graph_leave(&mut self, thread: usize, kind: Kind) {
        let innermost = self.threads[thread].memberships.last();
        if innermost.is_some_and(|innermost| !self.teams[innermost.team].is_outermost) {
            return;
        }
        match kind {
            Kind::Alone => self.threads[thread].alone = None,
            Kind::Chunk => self.threads[thread].chunk = None,
            _ => {}
        }
    }

    pub(super) fn graph_create(
        &mut self,
        thread: usize,
        task: TaskId,
        is_undeferred: bool,
        group: Option<GroupId>,
    ) {
        match self.graph(thread) {
            Some((phase, Ok(place))) => phase.create(thread, place, task, is_undeferred, group),
            Some((phase, Err(Inside))) => phase.create_inside(is_undeferred),
            None => {}
        }
    }

    /// The thread does something that makes predictions impossible.
    pub(crate) fn problem(&mut self, location: usize, problem: Problem) {
        if let Some(Some(thread)) = self.by_location.get(location).copied()
            && let Some((phase, _)) = self.graph(thread)
        {
            phase.problem(problem);
        }
    }

    /// The code of a task has ended.
    pub(super) fn graph_complete(&mut self, thread: usize, task: TaskId) {
        if let Some((phase, _)) = self.place_in_graph(thread) {
            phase.complete(task);
        }
    }

    /// The event of a detached task is fulfilled. `is_late`: the task's code has already ended.
    pub(super) fn graph_fulfil(&mut self, thread: usize, task: TaskId, is_late: bool) {
        if let Some((phase, (at, _))) = self.place_in_graph(thread) {
            phase.fulfil(thread, at, task, is_late);
        }
    }

    pub(super) fn graph_depend(&mut self, thread: usize, from: TaskId, to: TaskId) {
        if let Some((phase, _)) = self.place_in_graph(thread) {
            phase.depend(from, to);
        }
    }

    pub(super) fn graph_wait(&mut self, thread: usize) {
        if let Some((phase, place)) = self.place_in_graph(thread) {
            phase.wait(thread, place);
        }
    }

    pub(super) fn graph_wait_for_group(&mut self, thread: usize, group: GroupId) {
        if let Some((phase, (at, _))) = self.place_in_graph(thread) {
            phase.wait_for_group(thread, at, group);
        }
    }

    pub(super) fn graph_held(&mut self, thread: usize, lock: LockId, ns: u64) {
        if let Some((phase, (at, _))) = self.place_in_graph(thread) {
            phase.hold(at, lock, ns);
        }
    }

    /// The static loop that starts next has this number of iterations, over all threads.
    pub(crate) fn static_loop(&mut self, location: usize, iterations: u64) {
        if let Some(Some(thread)) = self.by_location.get(location) {
            self.threads[*thread].iterations = iterations;
        }
    }

    /// The thread, which has started a chunk of a loop, receives these iterations.
    pub(crate) fn dynamic_chunk(&mut self, location: usize, chunk: [u64; 2]) {
        let Some(Some(thread)) = self.by_location.get(location).copied() else {
            return;
        };
        let of_thread = &self.threads[thread];
        let around = of_thread.open.iter().rev().find(|open| open.kind == Kind::Work);
        let (Some(strand), Some(place)) = (of_thread.chunk, around.map(|open| open.region)) else {
            return;
        };
        let mut open = of_thread.open.iter().rev();
        let team = open.find(|open| open.kind == Kind::Member).and_then(|open| open.team);
        let Some((phase, slot)) = self.phase_around(thread) else {
            return;
        };
        // The chunk is the innermost region, so its strand is the thread's position, except in a nested region.
        if team == Some(slot) {
            return phase.chunk(strand, place, chunk);
        }
        if let Some((phase, (At::Strand(at), _))) = self.place_in_graph(thread)
            && at == strand
        {
            phase.chunk(strand, place, chunk);
        }
    }

    /// The thread receives a chunk of its static loop.
    pub(crate) fn first_chunk(&mut self, location: usize, [first, iterations]: [u64; 2]) {
        let Some(Some(thread)) = self.by_location.get(location).copied() else {
            return;
        };
        // For ordered loops, each chunk is reported; only the first one is used.
        let count = std::mem::take(&mut self.threads[thread].iterations);
        if let Some((phase, (At::Static(place), _))) = self.place_in_graph(thread) {
            match count {
                0 => phase.next_chunk(thread, place),
                count => phase.static_chunk(thread, place, [count, first, iterations]),
            }
        }
    }

    /// Ends the phase: all members are at a barrier and its tasks are complete, or the team ends.
    pub(super) fn end_graph(&mut self, slot: usize) {
        let team = &self.teams[slot];
        if let Some(graphs) = &mut self.graphs
            && let Some(Some(phase)) = graphs.phases.get_mut(slot).map(Option::take)
        {
            graphs.scheduling.add(team.region, team.size(), phase);
        }
    }
}
