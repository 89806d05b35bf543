//! The times of regions on other numbers of threads.

use std::collections::BTreeMap;

use super::list_scheduler::Scheduler;
use super::loop_schedules::{self, LoopTimes};
use super::phase::{Phase, Problem};
use crate::model::place_id::PlaceId;
use crate::model::sum::Sum;

/// A problem that affects less than this share of a region's time is ignored.
const MAX_PROBLEM: f64 = 0.05;

/// If code outside of loops and tasks takes more than this share of a region's time, it is not assumed to be executed
/// by each thread.
const MAX_REPLICATED: f64 = 0.5;

/// The times of the regions at a place on other numbers of threads, and the work and span of their tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scaling {
    /// The largest recorded number of threads.
    pub(crate) threads: u32,
    /// The time that the model computes for the recorded numbers of threads.
    pub(crate) modelled: u64,
    /// The time that the model computes for each requested number of threads.
    pub(crate) on: Vec<u64>,
    pub(crate) tasks: u64,
    pub(crate) work: u64,
    pub(crate) span: u64,
    pub(crate) burdened_span: u64,
    /// Upper bound of the cost of creating a task, if several were created in succession.
    pub(crate) creation_ns: Option<u64>,
    /// The members' time in code outside of loops and tasks.
    pub(crate) replicated: u64,
    /// By problem, the time that cannot be predicted because of it.
    pub(crate) problems: BTreeMap<Problem, u64>,
    /// The region's loops with other schedules.
    pub(crate) loops: BTreeMap<PlaceId, LoopTimes>,
}

impl Scaling {
    /// The reason why the region cannot be predicted.
    pub(crate) fn problem(&self) -> Option<Problem> {
        let is_much = |ns: u64| ns as f64 > MAX_PROBLEM * self.modelled as f64;
        let mut problems = self.problems.iter();
        let problem = problems.find_map(|(problem, ns)| is_much(*ns).then_some(*problem));
        let is_replicated = self.replicated as f64 > MAX_REPLICATED * self.modelled as f64;
        problem.or(is_replicated.then_some(Problem::Replicated))
    }

    /// Whether the prediction assumes that each thread executes the code outside of loops and tasks.
    pub(crate) fn is_assumed(&self) -> bool {
        self.replicated as f64 > MAX_PROBLEM * self.modelled as f64
    }

    /// Adds a phase of `size` threads, which a barrier has ended.
    pub(crate) fn add(&mut self, phase: &Phase, size: u32, numbers: &[u32], scheduler: &mut Scheduler) {
        let as_recorded = size as usize;
        loop_schedules::add(&mut self.loops, phase, size);
        let mut schedules = scheduler.schedules(phase, as_recorded);
        let modelled = schedules.time_on(as_recorded);
        let known = phase.problems.iter().map(|problem| (*problem, modelled));
        let mut problems: BTreeMap<_, _> = known.collect();
        let (divided, ns) = match as_recorded {
            1 => (Problem::Alone, phase.longest_of_members()),
            _ => (Problem::Divided, phase.uneven(as_recorded)),
        };
        problems.entry(divided).or_default().grow_by(ns);
        if phase.in_sections > 0 {
            problems
                .entry(Problem::Sections)
                .or_default()
                .grow_by(phase.in_sections / u64::from(size.max(1)));
        }
        if phase.hides_loops {
            problems.entry(Problem::Unreported).or_default().grow_by(phase.longest_of_members());
        }
        let numbers = numbers.iter().map(|threads| *threads as usize);
        self.on.resize(self.on.len().max(numbers.len()), 0);
        for (sum, threads) in self.on.iter_mut().zip(numbers) {
            *sum += match threads == as_recorded {
                true => modelled,
                false => schedules.time_on(threads),
            };
        }
        let creation_ns = phase.creation_ns();
        let span = phase.span(0);
        self.merge(&Scaling {
            threads: size,
            modelled,
            on: Vec::new(),
            tasks: phase.created,
            work: phase.all_work(),
            span,
            burdened_span: match creation_ns {
                Some(ns) if ns > 0 => phase.span(ns),
                _ => span,
            },
            creation_ns,
            replicated: phase.longest_of_members(),
            problems,
            loops: BTreeMap::new(),
        });
    }

    /// Renumbers places.
    pub(crate) fn renumber(&mut self, place: impl Fn(PlaceId) -> PlaceId) {
        let loops = std::mem::take(&mut self.loops);
        self.loops = loops.into_iter().map(|(id, times)| (place(id), times)).collect();
    }

    pub(crate) fn merge(&mut self, other: &Scaling) {
        self.threads = self.threads.max(other.threads);
        self.modelled.grow_by(other.modelled);
        self.on.resize(self.on.len().max(other.on.len()), 0);
        for (sum, more) in self.on.iter_mut().zip(&other.on) {
            sum.grow_by(*more);
        }
        self.tasks.grow_by(other.tasks);
        self.work.grow_by(other.work);
        self.span.grow_by(other.span);
        self.burdened_span.grow_by(other.burdened_span);
        self.replicated.grow_by(other.replicated);
        self.creation_ns = match (self.creation_ns, other.creation_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for (problem, ns) in &other.problems {
            self.problems.entry(*problem).or_default().grow_by(*ns);
        }
        for (place, times) in &other.loops {
            self.loops.entry(*place).or_default().merge(times);
        }
    }
}

#[cfg(test)]
mod tests {
    use omptrace_timeline::model::{LockId, TaskId};

    use super::*;
    use crate::scaling::phase::{At, Creator};

    fn scaling(phase: Phase, size: u32, numbers: &[u32]) -> Scaling {
        let mut scaling = Scaling::default();
        scaling.add(&phase, size, numbers, &mut Scheduler::default());
        scaling
    }

    /// A phase in which one thread creates tasks with this work.
    fn fan(tasks: impl Iterator<Item = u64>) -> Phase {
        let mut phase = Phase::default();
        let single = At::Strand(phase.share());
        for (task, ns) in tasks.enumerate() {
            let task = TaskId(task as u64);
            phase.create(0, (single, Creator::Member(0)), task, false, None);
            let at = phase.task(task).map_or(At::Member, At::Strand);
            phase.work(0, at, ns);
        }
        phase
    }

    #[test]
    fn tasks_of_one_to_eight_units_are_scheduled() {
        // Two threads: 1 3 5 7 and 2 4 6 8; four: 1 5, 2 6, 3 7, 4 8.
        let scaling = scaling(fan(1..=8), 2, &[1, 2, 4, 8, 16]);
        assert_eq!(scaling.on, [36, 20, 12, 8, 8]);
        assert_eq!((scaling.work, scaling.span, scaling.tasks), (36, 8, 8));
        assert_eq!(scaling.modelled, 20);
    }

    #[test]
    fn a_chain_gains_nothing_by_threads() {
        let mut phase = fan((1..=8).map(|_| 5));
        for task in 1..8 {
            phase.depend(TaskId(task - 1), TaskId(task));
        }
        let scaling = scaling(phase, 4, &[1, 2, 4, 8]);
        assert_eq!(scaling.on, [40; 4]);
        assert_eq!((scaling.work, scaling.span), (40, 40));
    }

    #[test]
    fn a_wait_for_each_task_makes_a_chain() {
        let mut phase = Phase::default();
        let single = At::Strand(phase.share());
        for task in 0..6 {
            let task = TaskId(task);
            phase.create(0, (single, Creator::Member(0)), task, false, None);
            let strand = phase.task(task).expect("created");
            phase.work(1, At::Strand(strand), 10);
            phase.wait(0, (single, Creator::Member(0)));
        }
        let scaling = scaling(phase, 4, &[1, 4]);
        assert_eq!((scaling.on, scaling.span), (vec![60, 60], 60));
    }

    #[test]
    fn the_span_is_burdened_by_creations() {
        let mut phase = Phase::default();
        let single = At::Strand(phase.share());
        for task in 0..4 {
            let task = TaskId(task);
            phase.create(0, (single, Creator::Member(0)), task, false, None);
            let strand = phase.task(task).expect("created");
            phase.work(1, At::Strand(strand), 100);
            phase.work(0, single, 7);
        }
        let scaling = scaling(phase, 4, &[2]);
        assert_eq!((scaling.span, scaling.creation_ns, scaling.burdened_span), (121, Some(7), 128));
    }

    #[test]
    fn chunks_go_to_whoever_is_idle() {
        let mut phase = Phase::default();
        for ns in [8, 1, 1, 1, 1, 4] {
            let chunk = At::Strand(phase.share());
            phase.work(0, chunk, ns);
        }
        let scaling = scaling(phase, 2, &[1, 2, 3, 6]);
        assert_eq!(scaling.on, [16, 8, 8, 8]);
        assert_eq!(scaling.problem(), None);
    }

    #[test]
    fn static_loops_are_divided_anew() {
        // Blocks of two iterations with increasing work.
        let mut phase = Phase::default();
        for thread in 0..4 {
            phase.static_chunk(thread, 7, [8, 2 * thread as u64, 2]);
            phase.work(thread, At::Static(7), 10 * (thread as u64 + 1));
        }
        let blocks = scaling(phase, 4, &[1, 2, 4, 8, 16]);
        assert_eq!(blocks.on, [100, 70, 40, 20, 20]);
        // Chunks of one iteration, assigned round-robin.
        let mut phase = Phase::default();
        for thread in 0..2 {
            phase.static_chunk(thread, 7, [8, thread as u64, 1]);
            phase.work(thread, At::Static(7), 40 * (thread as u64 + 1));
        }
        let turns = scaling(phase, 2, &[1, 2, 4]);
        assert_eq!(turns.on, [120, 80, 40]);
    }

    #[test]
    fn what_cannot_be_predicted_is_named() {
        let mut phase = Phase::default();
        phase.work(0, At::Member, 100);
        phase.work(1, At::Member, 10);
        phase.work(0, At::Static(3), 10);
        let scaling = scaling(phase, 2, &[4]);
        let problems: Vec<_> = scaling.problems.iter().collect();
        assert_eq!(problems, [(&Problem::Divided, &100), (&Problem::Static, &110)]);
        assert_eq!(scaling.problem(), Some(Problem::Divided));
    }

    #[test]
    fn work_that_may_be_in_unreported_loops_is_not_predicted() {
        let mut phase = Phase::default();
        phase.hides_loops = true;
        for thread in 0..2 {
            phase.work(thread, At::Member, 100);
        }
        let scaling = scaling(phase, 2, &[1, 4]);
        assert_eq!(scaling.problem(), Some(Problem::Unreported));
    }

    #[test]
    fn tasks_that_no_graph_holds_are_counted_all_the_same() {
        let scaling = scaling(fan((0..70_000).map(|_| 2)), 2, &[1]);
        assert_eq!((scaling.tasks, scaling.work), (70_000, 140_000));
        assert!(scaling.problems.contains_key(&Problem::TooLarge));
    }

    #[test]
    fn a_lock_bounds_all_threads() {
        let mut phase = Phase::default();
        for thread in 0..2 {
            phase.work(thread, At::Member, 50);
            phase.hold(At::Member, LockId(1), 40);
        }
        let scaling = scaling(phase, 2, &[1, 2, 4]);
        assert_eq!(scaling.on, [50, 80, 160]);
    }
}
