//! The work of a team between two barriers, to be scheduled on another number of threads: strands of work and their waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use omptrace_common::fast_map::FastMap;
use omptrace_timeline::sink::{LockId, TaskId};

use super::PlaceId;

/// Steps between two barriers that are kept. A task takes some 150 bytes, and has three steps: 6 MiB.
const MAX_STEPS: usize = 1 << 17;

/// Chunks of a thread that are looked at to divide a static loop.
const MAX_CHUNKS: usize = 1 << 12;

/// Work outside of loops and tasks that differs by more of the longest is divided by the program, by the threads' numbers.
const MAX_UNEVEN: f64 = 0.2;

/// A problem of less of a region's time is none.
const MAX_PROBLEM: f64 = 0.05;

/// The reason why other numbers of threads cannot be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::answers) enum Problem {
    Nested,
    Divided,
    Static,
    TooLarge,
}

impl Problem {
    pub(in crate::answers) fn text(self) -> &'static str {
        match self {
            Problem::Nested => "a region inside it: how many threads that would get is not known",
            Problem::Divided => {
                "code outside of loops and tasks takes its threads different times: the program may divide work by their numbers"
            }
            Problem::Static => {
                "a static loop of which the runtime does not report the iterations and chunks"
            }
            Problem::TooLarge => "more than 40,000 tasks or 130,000 chunks between two barriers",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Work(u64),
    /// The strand of a task that is created.
    Create(u32),
    /// All tasks that the strand has created must be complete.
    Wait,
}

/// Work that one thread does after the other.
#[derive(Clone, Debug, Default)]
struct Strand {
    steps: Vec<Step>,
    /// Strands that must be complete before.
    after: u32,
    successors: Vec<u32>,
}

/// A static loop: of each member, its first iteration, and its work.
#[derive(Clone, Debug, Default)]
struct StaticLoop {
    count: u64,
    /// The iterations of a member's first chunk, at most.
    chunk: u64,
    members: BTreeMap<u64, u64>,
}

/// Where a thread's work goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Member,
    /// In a single or masked region, a chunk or a task.
    Strand(u32),
    /// In a static loop at this place.
    Static(PlaceId),
}

/// The work of a team since the last barrier.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    strands: Vec<Strand>,
    /// By lane.
    members: BTreeMap<usize, u32>,
    /// Single and masked regions, chunks: whoever is there takes them.
    shared: Vec<u32>,
    tasks: FastMap<TaskId, u32>,
    created: u64,
    loops: BTreeMap<PlaceId, StaticLoop>,
    /// By lane: the static loop that it is in, and the first iteration that it got.
    first: FastMap<usize, (PlaceId, u64)>,
    /// How long locks were held: by members, by others.
    locks: FastMap<LockId, (u64, u64)>,
    steps: usize,
    problems: BTreeSet<Problem>,
}

impl Phase {
    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems.insert(problem);
    }

    fn strand(&mut self) -> u32 {
        self.strands.push(Strand::default());
        self.strands.len() as u32 - 1
    }

    pub(super) fn member(&mut self, lane: usize) -> u32 {
        match self.members.get(&lane) {
            Some(strand) => *strand,
            None => {
                let strand = self.strand();
                self.members.insert(lane, strand);
                strand
            }
        }
    }

    /// A single or masked region begins, or a chunk.
    pub(super) fn share(&mut self) -> u32 {
        if self.strands.len() >= MAX_STEPS {
            self.problem(Problem::TooLarge);
            return MAX_STEPS as u32 - 1;
        }
        let strand = self.strand();
        self.shared.push(strand);
        strand
    }

    fn of(&mut self, lane: usize, at: At) -> u32 {
        match at {
            At::Strand(strand) if (strand as usize) < self.strands.len() => strand,
            _ => self.member(lane),
        }
    }

    fn push(&mut self, strand: u32, step: Step) {
        if self.steps >= MAX_STEPS {
            self.problem(Problem::TooLarge);
            return;
        }
        let steps = &mut self.strands[strand as usize].steps;
        if let (Some(Step::Work(sum)), Step::Work(ns)) = (steps.last_mut(), step) {
            *sum += ns;
            return;
        }
        steps.push(step);
        self.steps += 1;
    }

    pub(super) fn work(&mut self, lane: usize, at: At, ns: u64) {
        if let At::Static(place) = at {
            return self.static_work(lane, place, ns);
        }
        let strand = self.of(lane, at);
        self.push(strand, Step::Work(ns));
    }

    fn static_work(&mut self, lane: usize, place: PlaceId, ns: u64) {
        let first = self.first.get(&lane);
        let first = first.filter(|(known, _)| *known == place);
        let Some((_, first)) = first.copied() else {
            self.problem(Problem::Static);
            let strand = self.member(lane);
            return self.push(strand, Step::Work(ns));
        };
        let of_loop = self.loops.entry(place).or_default();
        *of_loop.members.entry(first).or_default() += ns;
    }

    /// The thread gets its first chunk of the static loop that it is in.
    pub(super) fn static_chunk(
        &mut self,
        lane: usize,
        place: PlaceId,
        [count, first, chunk]: [u64; 3],
    ) {
        let of_loop = self.loops.entry(place).or_default();
        if of_loop.count > 0 && of_loop.count != count {
            self.problem(Problem::Static);
            return;
        }
        of_loop.count = count;
        of_loop.chunk = of_loop.chunk.max(chunk);
        // Loops may begin at any number.
        self.first.insert(lane, (place, first));
    }

    pub(super) fn create(&mut self, lane: usize, at: At, task: TaskId, is_undeferred: bool) {
        if matches!(at, At::Static(_)) {
            self.problem(Problem::Static);
        }
        let parent = self.of(lane, at);
        if self.steps >= MAX_STEPS || self.tasks.len() >= MAX_STEPS {
            self.problem(Problem::TooLarge);
            return;
        }
        if is_undeferred {
            self.tasks.insert(task, parent);
            return;
        }
        let strand = self.strand();
        self.created += 1;
        self.tasks.insert(task, strand);
        self.push(parent, Step::Create(strand));
    }

    pub(super) fn task(&self, task: TaskId) -> Option<u32> {
        self.tasks.get(&task).copied()
    }

    pub(super) fn depend(&mut self, from: TaskId, to: TaskId) {
        if let (Some(from), Some(to)) = (self.task(from), self.task(to))
            && from != to
        {
            self.strands[to as usize].after += 1;
            self.strands[from as usize].successors.push(to);
        }
    }

    pub(super) fn wait(&mut self, lane: usize, at: At) {
        let strand = self.of(lane, at);
        self.push(strand, Step::Wait);
    }

    pub(super) fn held(&mut self, at: At, lock: LockId, ns: u64) {
        let (by_members, by_others) = self.locks.entry(lock).or_default();
        match at {
            At::Member => *by_members += ns,
            _ => *by_others += ns,
        }
    }

    /// The time of static loops on thread `index` of `threads`; as recorded, of `size`.
    fn static_share(&self, index: usize, threads: usize, size: usize) -> u64 {
        self.loops
            .values()
            .map(|of_loop| of_loop.share(index, threads, size))
            .sum()
    }

    /// Work of members outside of loops and single regions.
    fn replicated(&self) -> impl Iterator<Item = u64> {
        self.members
            .values()
            .map(|strand| work(&self.strands[*strand as usize]))
    }

    /// The work that members did more than others outside of loops and tasks, where that is not by chance.
    fn uneven(&self, size: usize) -> u64 {
        let longest = self.replicated().max().unwrap_or(0);
        let least = match self.members.len() < size {
            true => 0,
            false => self.replicated().min().unwrap_or(0),
        };
        let more = longest - least;
        if more as f64 > MAX_UNEVEN * longest as f64 {
            more
        } else {
            0
        }
    }

    /// How long this takes `threads` threads, where `size` had it.
    fn on(&self, threads: usize, size: usize) -> u64 {
        let members: Vec<u32> = self.members.values().copied().collect();
        let pinned = |index: usize| {
            let strand = (!members.is_empty()).then(|| members[index % members.len()]);
            // Of members that did nothing, nothing is known.
            strand.filter(|_| threads != size || index < members.len())
        };
        let time = match self.shared.is_empty() && self.created == 0 {
            true => {
                let of_thread = |index| {
                    let own =
                        pinned(index).map_or(0, |strand| work(&self.strands[strand as usize]));
                    own + self.static_share(index, threads, size)
                };
                (0..threads).map(of_thread).max().unwrap_or(0)
            }
            false => Schedule::new(self, threads, size, members.len()).run(pinned),
        };
        let scale = threads as f64 / size.max(1) as f64;
        let locks = self.locks.values();
        let held = locks.map(|(members, others)| (*members as f64 * scale) as u64 + others);
        time.max(held.max().unwrap_or(0))
    }

    /// The longest chain of work that must be done one after the other, where the creation of a task costs this.
    fn span(&self, creation_ns: u64) -> u64 {
        let mut ends: Vec<Option<u64>> = vec![None; self.strands.len()];
        let mut before: Vec<u64> = vec![0; self.strands.len()];
        let mut longest = self
            .loops
            .values()
            .flat_map(|of_loop| of_loop.members.values())
            .copied()
            .max()
            .unwrap_or(0);
        // Each open strand: its number, next step, present time, and the latest end of what it created.
        let mut open: Vec<(u32, usize, u64, u64)> = Vec::new();
        for root in self.members.values().chain(&self.shared) {
            open.push((*root, 0, 0, 0));
            while let Some((strand, step, now, children)) = open.pop() {
                match self.strands[strand as usize].steps.get(step) {
                    Some(Step::Work(ns)) => open.push((strand, step + 1, now + ns, children)),
                    Some(Step::Wait) => open.push((strand, step + 1, now.max(children), children)),
                    Some(Step::Create(child)) => match ends[*child as usize] {
                        Some(end) => open.push((strand, step + 1, now, children.max(end))),
                        None => {
                            open.push((strand, step, now, children));
                            let start = (now + creation_ns).max(before[*child as usize]);
                            open.push((*child, 0, start, 0));
                        }
                    },
                    None => {
                        ends[strand as usize] = Some(now);
                        longest = longest.max(now);
                        for next in &self.strands[strand as usize].successors {
                            let known = &mut before[*next as usize];
                            *known = (*known).max(now);
                        }
                    }
                }
            }
        }
        longest
    }

    /// The shortest time from one creation of a task to the next: what a creation costs at most.
    fn creation_ns(&self) -> Option<u64> {
        let windows = self
            .strands
            .iter()
            .flat_map(|strand| strand.steps.windows(3));
        windows
            .filter_map(|steps| match steps {
                [Step::Create(_), Step::Work(ns), Step::Create(_)] => Some(*ns),
                _ => None,
            })
            .min()
    }

    fn all_work(&self) -> u64 {
        let in_loops = self
            .loops
            .values()
            .flat_map(|of_loop| of_loop.members.values());
        self.strands.iter().map(work).sum::<u64>() + in_loops.sum::<u64>()
    }
}

fn work(strand: &Strand) -> u64 {
    let steps = strand.steps.iter();
    steps
        .map(|step| if let Step::Work(ns) = step { *ns } else { 0 })
        .sum()
}

impl StaticLoop {
    /// The work of thread `index` of `threads`, where `size` had it.
    fn share(&self, index: usize, threads: usize, size: usize) -> u64 {
        // Members in the order of their first iterations are in the order of their numbers.
        let ns: Vec<f64> = self.members.values().map(|ns| *ns as f64).collect();
        if threads == size {
            return ns.get(index).map_or(0, |ns| *ns as u64);
        }
        let count = self.count as f64;
        let chunks = self.count.div_ceil(self.chunk.max(1)).max(1);
        if chunks as usize <= size.max(1) {
            // A block for each: work is taken to be spread evenly within a block.
            let block = count / ns.len().max(1) as f64;
            let (begin, end) = (
                index as f64 * count / threads as f64,
                (index + 1) as f64 * count / threads as f64,
            );
            // No thread has a part of an iteration.
            let (begin, end) = (begin.ceil(), end.ceil());
            let of_block = |(number, ns): (usize, &f64)| {
                let (first, last) = (number as f64 * block, (number + 1) as f64 * block);
                let common = (end.min(last) - begin.max(first)).max(0.0);
                ns * common / block.max(1.0)
            };
            return ns.iter().enumerate().map(of_block).sum::<f64>() as u64;
        }
        // Chunks in turn: those of a thread are taken to be alike.
        let turns = |index: usize, threads: usize| {
            (chunks as usize + threads - 1).saturating_sub(index) / threads.max(1)
        };
        let chunk = |number: usize| {
            let owner = number % size;
            ns.get(owner)
                .map_or(0.0, |ns| ns / turns(owner, size).max(1) as f64)
        };
        // The pattern repeats after all threads of both numbers had their turns: the first chunks show all.
        let numbers = (index..chunks as usize).step_by(threads);
        let all = numbers.len();
        let looked_at = all.min(MAX_CHUNKS);
        let sum = numbers.take(looked_at).map(chunk).sum::<f64>();
        (sum * (all as f64 / looked_at.max(1) as f64)) as u64
    }
}

/// A strand that is executed.
#[derive(Clone, Copy, Debug)]
struct Instance {
    strand: u32,
    step: usize,
    parent: Option<u32>,
    /// The tasks that it created and that are not complete.
    children: u32,
    is_blocked: bool,
    /// True for members beyond those that were recorded: a copy of another.
    is_copy: bool,
}

/// A schedule in which an idle thread takes what is ready, in the order in which it came.
struct Schedule<'p> {
    phase: &'p Phase,
    threads: usize,
    size: usize,
    recorded: usize,
    instances: Vec<Instance>,
    ready: VecDeque<u32>,
    /// Tasks that were created and wait for others: by strand.
    held: FastMap<u32, u32>,
    after: Vec<u32>,
    idle: Vec<usize>,
    events: BinaryHeap<Reverse<(u64, usize)>>,
    running: Vec<Option<u32>>,
}

impl<'p> Schedule<'p> {
    fn new(phase: &'p Phase, threads: usize, size: usize, recorded: usize) -> Schedule<'p> {
        Schedule {
            phase,
            threads,
            size,
            recorded,
            instances: Vec::new(),
            ready: VecDeque::new(),
            held: FastMap::default(),
            after: phase.strands.iter().map(|strand| strand.after).collect(),
            idle: Vec::new(),
            events: BinaryHeap::new(),
            running: vec![None; threads],
        }
    }

    fn instance(&mut self, strand: u32, parent: Option<u32>, is_copy: bool) -> u32 {
        self.instances.push(Instance {
            strand,
            step: 0,
            parent,
            children: 0,
            is_blocked: false,
            is_copy,
        });
        self.instances.len() as u32 - 1
    }

    fn make_ready(&mut self, instance: u32, time: u64, is_next: bool) {
        match is_next {
            true => self.ready.push_front(instance),
            false => self.ready.push_back(instance),
        }
        if let Some(thread) = self.idle.pop() {
            self.events.push(Reverse((time, thread)));
        }
    }

    fn run(mut self, pinned: impl Fn(usize) -> Option<u32>) -> u64 {
        for strand in &self.phase.shared {
            let instance = self.instance(*strand, None, false);
            self.ready.push_back(instance);
        }
        let mut last = 0;
        for thread in 0..self.threads {
            if let Some(strand) = pinned(thread) {
                let instance = self.instance(strand, None, thread >= self.recorded);
                self.running[thread] = Some(instance);
            }
            let share = self.phase.static_share(thread, self.threads, self.size);
            last = last.max(share);
            self.events.push(Reverse((share, thread)));
        }
        while let Some(Reverse((time, thread))) = self.events.pop() {
            match self.go_on(thread, time) {
                Some(end) => {
                    last = last.max(end);
                    self.events.push(Reverse((end, thread)));
                }
                None => self.idle.push(thread),
            }
        }
        last
    }

    /// The thread goes on until it works; gives the end of that, `None` where it finds nothing to do.
    fn go_on(&mut self, thread: usize, time: u64) -> Option<u64> {
        loop {
            let number = match self.running[thread] {
                Some(number) => number,
                None => {
                    let number = self.ready.pop_front()?;
                    self.running[thread] = Some(number);
                    number
                }
            };
            let phase = self.phase;
            let Instance {
                strand,
                step,
                is_copy,
                ..
            } = self.instances[number as usize];
            let next = phase.strands[strand as usize].steps.get(step);
            let instance = &mut self.instances[number as usize];
            instance.step += 1;
            match next {
                Some(Step::Work(ns)) => return Some(time + ns),
                Some(Step::Wait) if instance.children == 0 => {}
                Some(Step::Wait) => {
                    instance.is_blocked = true;
                    self.running[thread] = None;
                }
                Some(Step::Create(child)) => {
                    instance.children += 1;
                    let created = self.instance(*child, Some(number), is_copy);
                    match self.after[*child as usize] {
                        after if after > 0 && !is_copy => {
                            self.held.insert(*child, created);
                        }
                        _ => self.make_ready(created, time, false),
                    }
                }
                None => {
                    self.running[thread] = None;
                    self.complete(number, time);
                }
            }
        }
    }

    fn complete(&mut self, number: u32, time: u64) {
        let phase = self.phase;
        let Instance {
            strand,
            parent,
            is_copy,
            ..
        } = self.instances[number as usize];
        if !is_copy {
            for next in &phase.strands[strand as usize].successors {
                let after = &mut self.after[*next as usize];
                *after = after.saturating_sub(1);
                if *after == 0
                    && let Some(created) = self.held.remove(next)
                {
                    self.make_ready(created, time, false);
                }
            }
        }
        if let Some(parent) = parent {
            let waiting = &mut self.instances[parent as usize];
            waiting.children -= 1;
            if waiting.children == 0 && std::mem::take(&mut waiting.is_blocked) {
                self.make_ready(parent, time, true);
            }
        }
    }
}

/// The times of regions at a place on other numbers of threads, and the work and span of their tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::answers) struct Scaling {
    /// The most threads that it had.
    pub(in crate::answers) threads: u32,
    /// The model's time for the recorded numbers of threads.
    pub(in crate::answers) modelled: u64,
    /// The model's time for the numbers asked for.
    pub(in crate::answers) on: Vec<u64>,
    pub(in crate::answers) tasks: u64,
    pub(in crate::answers) work: u64,
    pub(in crate::answers) span: u64,
    pub(in crate::answers) burdened_span: u64,
    /// The most that the creation of a task costs, where several followed each other.
    pub(in crate::answers) creation_ns: Option<u64>,
    /// How long what cannot be predicted took.
    pub(in crate::answers) problems: BTreeMap<Problem, u64>,
}

impl Scaling {
    /// The reason why it cannot be predicted.
    pub(in crate::answers) fn problem(&self) -> Option<Problem> {
        let is_much = |ns: u64| ns as f64 > MAX_PROBLEM * self.modelled as f64;
        let mut problems = self.problems.iter();
        problems.find_map(|(problem, ns)| is_much(*ns).then_some(*problem))
    }

    /// A barrier ends what `size` threads did.
    pub(super) fn add(&mut self, phase: &Phase, size: u32, numbers: &[u32]) {
        self.merge(&Scaling::of(phase, size, numbers));
    }

    fn of(phase: &Phase, size: u32, numbers: &[u32]) -> Scaling {
        let as_recorded = size as usize;
        let modelled = phase.on(as_recorded, as_recorded);
        let known = phase.problems.iter().map(|problem| (*problem, modelled));
        let mut problems: BTreeMap<_, _> = known.collect();
        *problems.entry(Problem::Divided).or_default() += phase.uneven(as_recorded);
        let numbers = numbers.iter().map(|threads| *threads as usize);
        let creation_ns = phase.creation_ns();
        Scaling {
            threads: size,
            modelled,
            on: numbers
                .map(|threads| phase.on(threads, as_recorded))
                .collect(),
            tasks: phase.created,
            work: phase.all_work(),
            span: phase.span(0),
            burdened_span: phase.span(creation_ns.unwrap_or(0)),
            creation_ns,
            problems,
        }
    }

    pub(in crate::answers) fn merge(&mut self, other: &Scaling) {
        self.threads = self.threads.max(other.threads);
        self.modelled += other.modelled;
        self.on.resize(self.on.len().max(other.on.len()), 0);
        for (sum, more) in self.on.iter_mut().zip(&other.on) {
            *sum += more;
        }
        self.tasks += other.tasks;
        self.work += other.work;
        self.span += other.span;
        self.burdened_span += other.burdened_span;
        self.creation_ns = match (self.creation_ns, other.creation_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for (problem, ns) in &other.problems {
            *self.problems.entry(*problem).or_default() += ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling(phase: Phase, size: u32, numbers: &[u32]) -> Scaling {
        let mut scaling = Scaling::default();
        scaling.add(&phase, size, numbers);
        scaling
    }

    /// However many chunks there are, each number of threads does all of the work.
    #[test]
    fn a_static_loop_of_many_chunks_is_divided_whole() {
        let of_loop = StaticLoop {
            count: 1_000_000,
            chunk: 1,
            members: BTreeMap::from([(0, 1_000_000_000), (1, 1_000_000_000)]),
        };
        for threads in [1, 3, 4] {
            let work: u64 = (0..threads)
                .map(|index| of_loop.share(index, threads, 2))
                .sum();
            assert!(
                work.abs_diff(2_000_000_000) < 2_000_000,
                "{threads}: {work}"
            );
        }
    }

    /// One thread creates tasks of this work.
    fn fan(tasks: impl Iterator<Item = u64>) -> Phase {
        let mut phase = Phase::default();
        let single = At::Strand(phase.share());
        for (task, ns) in tasks.enumerate() {
            let task = TaskId(task as u64);
            phase.create(0, single, task, false);
            let strand = phase.task(task).expect("created");
            phase.work(0, At::Strand(strand), ns);
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
            phase.create(0, single, task, false);
            let strand = phase.task(task).expect("created");
            phase.work(1, At::Strand(strand), 10);
            phase.wait(0, single);
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
            phase.create(0, single, task, false);
            let strand = phase.task(task).expect("created");
            phase.work(1, At::Strand(strand), 100);
            phase.work(0, single, 7);
        }
        let scaling = scaling(phase, 4, &[2]);
        assert_eq!(
            (scaling.span, scaling.creation_ns, scaling.burdened_span),
            (121, Some(7), 128)
        );
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
        // Blocks of two iterations, the later the longer.
        let mut phase = Phase::default();
        for lane in 0..4 {
            phase.static_chunk(lane, 7, [8, 2 * lane as u64, 2]);
            phase.work(lane, At::Static(7), 10 * (lane as u64 + 1));
        }
        let blocks = scaling(phase, 4, &[1, 2, 4, 8, 16]);
        assert_eq!(blocks.on, [100, 70, 40, 20, 20]);
        // Chunks of one iteration in turn.
        let mut phase = Phase::default();
        for lane in 0..2 {
            phase.static_chunk(lane, 7, [8, lane as u64, 1]);
            phase.work(lane, At::Static(7), 40 * (lane as u64 + 1));
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
        assert_eq!(
            problems,
            [(&Problem::Divided, &100), (&Problem::Static, &110)]
        );
        assert_eq!(scaling.problem(), Some(Problem::Divided));
    }

    #[test]
    fn a_lock_bounds_all_threads() {
        let mut phase = Phase::default();
        for lane in 0..2 {
            phase.work(lane, At::Member, 50);
            phase.held(At::Member, LockId(1), 40);
        }
        let scaling = scaling(phase, 2, &[1, 2, 4]);
        assert_eq!(scaling.on, [50, 80, 160]);
    }
}
