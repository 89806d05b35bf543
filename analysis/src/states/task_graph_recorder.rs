//! Where a thread's work goes in its team's [phase](super::phase).

use super::*;
use crate::scaling::phase::{At, Phase, Problem};
use crate::scaling::scheduler_pool::Scheduling;

/// The graphs of the outermost teams that there are.
#[derive(Debug)]
pub(super) struct Graphs {
    /// By team.
    phases: Vec<Option<Phase>>,
    scheduling: Scheduling,
}

impl Graphs {
    /// Forgets all that was.
    pub(super) fn forget(&mut self) {
        self.phases.clear();
        self.scheduling.forget();
    }

    pub(super) fn places(self) -> BTreeMap<PlaceId, Scaling> {
        self.scheduling.places()
    }
}

impl<const S: usize> Threads<S> {
    /// Schedules regions on other numbers of threads. At most `threads` others do that.
    pub(crate) fn schedule_on(&mut self, numbers: Vec<u32>, threads: usize) {
        self.graphs = Some(Graphs { phases: Vec::new(), scheduling: Scheduling::new(numbers, threads) });
    }

    /// The phase of the thread's outermost team, and where it is in there.
    fn graph(&mut self, lane: usize) -> Option<(&mut Phase, At)> {
        let graphs = self.graphs.as_mut()?;
        let of_thread = &mut self.all[lane];
        let slot = of_thread.memberships.first()?.team;
        if slot >= graphs.phases.len() {
            graphs.phases.resize_with(slot + 1, || None);
        }
        let phase = &mut graphs.phases[slot];
        let hides_loops = !self.reports.inlined;
        let phase = phase.get_or_insert_with(|| {
            let mut phase = graphs.scheduling.phase();
            phase.hides_loops = hides_loops;
            phase
        });
        let innermost = of_thread.memberships.last()?.team;
        if innermost != slot && self.teams[innermost].size() > 1 {
            phase.problem(Problem::Nested);
            return None;
        }
        let mut at = At::Member;
        for open in of_thread.open.iter_mut().rev() {
            let strand = match open.kind {
                Kind::Member if open.team == Some(slot) => break,
                Kind::Task => {
                    if open.strand.0 != phase.number {
                        let strand = open.task.and_then(|task| phase.task(task));
                        open.strand = (phase.number, strand);
                    }
                    open.strand.1
                }
                Kind::Alone => of_thread.alone,
                Kind::Chunk => of_thread.chunk,
                Kind::StaticLoop => {
                    at = At::Static(open.region);
                    break;
                }
                _ => None,
            };
            if let Some(strand) = strand {
                at = At::Strand(strand);
                break;
            }
        }
        Some((phase, at))
    }

    pub(super) fn graph_work(&mut self, lane: usize, ns: u64) {
        if ns > 0
            && let Some((phase, at)) = self.graph(lane)
        {
            phase.work(lane, at, ns);
        }
    }

    /// A region was entered.
    pub(super) fn graph_enter(&mut self, lane: usize, kind: Kind) {
        let is_shared = matches!(kind, Kind::Alone | Kind::Chunk);
        if is_shared && let Some((phase, _)) = self.graph(lane) {
            let strand = Some(phase.share());
            let of_thread = &mut self.all[lane];
            match kind {
                Kind::Alone => of_thread.alone = strand,
                _ => of_thread.chunk = strand,
            }
        }
    }

    pub(super) fn graph_leave(&mut self, lane: usize, kind: Kind) {
        match kind {
            Kind::Alone => self.all[lane].alone = None,
            Kind::Chunk => self.all[lane].chunk = None,
            _ => {}
        }
    }

    pub(super) fn graph_create(&mut self, lane: usize, task: TaskId, is_undeferred: bool) {
        if let Some((phase, at)) = self.graph(lane) {
            phase.create(lane, at, task, is_undeferred);
        }
    }

    pub(super) fn graph_depend(&mut self, lane: usize, from: TaskId, to: TaskId) {
        if let Some((phase, _)) = self.graph(lane) {
            phase.depend(from, to);
        }
    }

    pub(super) fn graph_wait(&mut self, lane: usize) {
        if let Some((phase, at)) = self.graph(lane) {
            phase.wait(lane, at);
        }
    }

    pub(super) fn graph_held(&mut self, lane: usize, lock: LockId, ns: u64) {
        if let Some((phase, at)) = self.graph(lane) {
            phase.hold(at, lock, ns);
        }
    }

    /// The static loop that is entered has this many iterations, of all threads together.
    pub(crate) fn static_loop(&mut self, location: usize, iterations: u64) {
        if let Some(Some(lane)) = self.lanes.get(location) {
            self.all[*lane].iterations = iterations;
        }
    }

    /// The thread gets its first chunk of the loop that it is in.
    pub(crate) fn first_chunk(&mut self, location: usize, first: u64, iterations: u64) {
        let Some(Some(lane)) = self.lanes.get(location).copied() else {
            return;
        };
        let count = self.all[lane].iterations;
        if let Some((phase, At::Static(place))) = self.graph(lane) {
            phase.static_chunk(lane, place, [count, first, iterations]);
        }
    }

    /// All of the team are at a barrier, and its tasks are complete; or the team is dissolved.
    pub(super) fn end_graph(&mut self, slot: usize) {
        let team = &self.teams[slot];
        if let Some(graphs) = &mut self.graphs
            && let Some(Some(phase)) = graphs.phases.get_mut(slot).map(Option::take)
        {
            graphs.scheduling.add(team.region, team.size(), phase);
        }
    }
}
