//! The work of a team between two barriers, to be scheduled on another number of threads: strands of work and their waits.

use std::collections::BTreeSet;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{LockId, TaskId};

use crate::model::place_id::PlaceId;
use crate::model::sum::{Sum, sum};

/// Steps between two barriers that are kept. A task takes some 150 bytes, and has three steps: 6 MiB.
const MAX_STEPS: usize = 1 << 17;

/// Work outside of loops and tasks that differs by more of the longest is divided by the program, by the threads' numbers.
const MAX_UNEVEN: f64 = 0.2;

/// Strands of a phase whose memory is kept for the next.
const MAX_SPARE: usize = 1 << 12;

/// The reason why other numbers of threads cannot be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Problem {
    Nested,
    Unreported,
    Divided,
    Static,
    TooLarge,
}

impl Problem {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Problem::Nested => "a region inside it: how many threads that would get is not known",
            Problem::Unreported => {
                "code outside of the loops and tasks that the runtime reports: GCC's static loops, which are divided among threads, are in it"
            }
            Problem::Divided => {
                "code outside of loops and tasks takes its threads different times: the program may divide work by their numbers"
            }
            Problem::Static => "a static loop of which the runtime does not report the iterations and chunks",
            Problem::TooLarge => "more than 40,000 tasks or 130,000 chunks between two barriers",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Work(u64),
    /// The strand of a task that is created.
    Create(u32),
    /// All tasks that the strand has created must be complete.
    Wait,
}

/// Work that one thread does after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strand {
    pub(crate) steps: Vec<Step>,
    /// Strands that must be complete before.
    pub(crate) after: u32,
    pub(crate) successors: Vec<u32>,
}

impl Strand {
    /// All of its work.
    pub(crate) fn work(&self) -> u64 {
        let steps = self.steps.iter();
        sum(steps.map(|step| if let Step::Work(ns) = step { *ns } else { 0 }))
    }
}

/// A static loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct StaticLoop {
    pub(crate) place: PlaceId,
    pub(crate) count: u64,
    /// The iterations of a member's first chunk, at most.
    pub(crate) chunk: u64,
    /// Of each member, its first iteration and its work, in the order of the first.
    pub(crate) members: Vec<(u64, u64)>,
}

/// Where a thread's work goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Member,
    /// In a single or masked region, a chunk or a task.
    Strand(u32),
    /// In a static loop at this place.
    Static(PlaceId),
}

/// The work of a team since the last barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    /// Other phases have other numbers, from 1 on.
    pub(crate) number: u64,
    /// Those of number `used` and above are spare.
    all: Vec<Strand>,
    used: usize,
    /// By lane.
    members: Vec<Option<u32>>,
    /// Single and masked regions, chunks: whoever is there takes them.
    pub(crate) shared: Vec<u32>,
    tasks: FastMap<TaskId, u32>,
    pub(crate) created: u64,
    pub(crate) loops: Vec<StaticLoop>,
    /// By lane: the static loop that it is in, and the first iteration that it got.
    first: Vec<Option<(PlaceId, u64)>>,
    /// How long locks were held: by members, by others.
    locks: FastMap<LockId, (u64, u64)>,
    steps: usize,
    pub(crate) problems: BTreeSet<Problem>,
    /// The runtime does not report static loops: they are work of members.
    pub(crate) hides_loops: bool,
    /// All work, also of steps that are not kept.
    work: u64,
}

impl Phase {
    /// Forgets all, and keeps the memory for the next.
    pub(crate) fn clear(&mut self) {
        if self.used > MAX_SPARE {
            *self = Phase::default();
            return;
        }
        for strand in &mut self.all[..self.used] {
            strand.steps.clear();
            strand.after = 0;
            strand.successors.clear();
        }
        self.used = 0;
        self.members.clear();
        self.shared.clear();
        self.tasks.clear();
        self.created = 0;
        self.loops.clear();
        self.first.clear();
        self.locks.clear();
        self.steps = 0;
        self.problems.clear();
        self.work = 0;
    }

    /// How many steps it has.
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    pub(crate) fn strands(&self) -> &[Strand] {
        &self.all[..self.used]
    }

    /// The members' strands, by lane.
    pub(crate) fn members(&self) -> impl Iterator<Item = u32> {
        self.members.iter().flatten().copied()
    }

    pub(crate) fn problem(&mut self, problem: Problem) {
        self.problems.insert(problem);
    }

    fn strand(&mut self) -> u32 {
        if self.used == self.all.len() {
            self.all.push(Strand::default());
        }
        self.used += 1;
        self.used as u32 - 1
    }

    pub(crate) fn member(&mut self, lane: usize) -> u32 {
        if let Some(Some(strand)) = self.members.get(lane) {
            return *strand;
        }
        let strand = self.strand();
        *at(&mut self.members, lane) = Some(strand);
        strand
    }

    /// A single or masked region begins, or a chunk.
    pub(crate) fn share(&mut self) -> u32 {
        if self.used >= MAX_STEPS {
            self.problem(Problem::TooLarge);
            return MAX_STEPS as u32 - 1;
        }
        let strand = self.strand();
        self.shared.push(strand);
        strand
    }

    fn of(&mut self, lane: usize, at: At) -> u32 {
        match at {
            At::Strand(strand) if (strand as usize) < self.used => strand,
            _ => self.member(lane),
        }
    }

    fn push(&mut self, strand: u32, step: Step) {
        if self.steps >= MAX_STEPS {
            self.problem(Problem::TooLarge);
            return;
        }
        let steps = &mut self.all[strand as usize].steps;
        if let (Some(Step::Work(sum)), Step::Work(ns)) = (steps.last_mut(), step) {
            sum.grow_by(ns);
            return;
        }
        steps.push(step);
        self.steps += 1;
    }

    pub(crate) fn work(&mut self, lane: usize, at: At, ns: u64) {
        self.work.grow_by(ns);
        if let At::Static(place) = at {
            return self.static_work(lane, place, ns);
        }
        let strand = self.of(lane, at);
        self.push(strand, Step::Work(ns));
    }

    fn static_work(&mut self, lane: usize, place: PlaceId, ns: u64) {
        let Some(Some((known, first))) = self.first.get(lane).copied() else {
            return self.unknown_static_work(lane, ns);
        };
        if known != place {
            return self.unknown_static_work(lane, ns);
        }
        let members = &mut self.static_loop(place).members;
        match members.binary_search_by_key(&first, |(first, _)| *first) {
            Ok(index) => members[index].1.grow_by(ns),
            Err(index) => members.insert(index, (first, ns)),
        }
    }

    fn unknown_static_work(&mut self, lane: usize, ns: u64) {
        self.problem(Problem::Static);
        let strand = self.member(lane);
        self.push(strand, Step::Work(ns));
    }

    fn static_loop(&mut self, place: PlaceId) -> &mut StaticLoop {
        let known = self.loops.iter().position(|known| known.place == place);
        let index = known.unwrap_or_else(|| {
            self.loops.push(StaticLoop { place, ..StaticLoop::default() });
            self.loops.len() - 1
        });
        &mut self.loops[index]
    }

    /// The thread gets its first chunk of the static loop that it is in.
    pub(crate) fn static_chunk(&mut self, lane: usize, place: PlaceId, [count, first, chunk]: [u64; 3]) {
        let of_loop = self.static_loop(place);
        if of_loop.count > 0 && of_loop.count != count {
            self.problem(Problem::Static);
            return;
        }
        of_loop.count = count;
        of_loop.chunk = of_loop.chunk.max(chunk);
        // Loops may begin at any number.
        *at(&mut self.first, lane) = Some((place, first));
    }

    pub(crate) fn create(&mut self, lane: usize, at: At, task: TaskId, is_undeferred: bool) {
        if matches!(at, At::Static(_)) {
            self.problem(Problem::Static);
        }
        let parent = self.of(lane, at);
        if !is_undeferred {
            self.created += 1;
        }
        if self.steps >= MAX_STEPS || self.tasks.len() >= MAX_STEPS {
            self.problem(Problem::TooLarge);
            return;
        }
        if is_undeferred {
            self.tasks.insert(task, parent);
            return;
        }
        let strand = self.strand();
        self.tasks.insert(task, strand);
        self.push(parent, Step::Create(strand));
    }

    pub(crate) fn task(&self, task: TaskId) -> Option<u32> {
        self.tasks.get(&task).copied()
    }

    pub(crate) fn depend(&mut self, from: TaskId, to: TaskId) {
        if let (Some(from), Some(to)) = (self.task(from), self.task(to))
            && from != to
        {
            self.all[to as usize].after += 1;
            self.all[from as usize].successors.push(to);
        }
    }

    pub(crate) fn wait(&mut self, lane: usize, at: At) {
        let strand = self.of(lane, at);
        self.push(strand, Step::Wait);
    }

    pub(crate) fn hold(&mut self, at: At, lock: LockId, ns: u64) {
        let (by_members, by_others) = self.locks.entry(lock).or_default();
        match at {
            At::Member => by_members.grow_by(ns),
            _ => by_others.grow_by(ns),
        }
    }

    /// Work of members outside of loops and single regions.
    fn replicated(&self) -> impl Iterator<Item = u64> {
        let strands = self.strands();
        self.members().map(|strand| strands[strand as usize].work())
    }

    /// The work that members did more than others outside of loops and tasks, where that is not by chance.
    pub(crate) fn uneven(&self, size: usize) -> u64 {
        let longest = self.replicated().max().unwrap_or(0);
        let least = match self.members().count() < size {
            true => 0,
            false => self.replicated().min().unwrap_or(0),
        };
        let more = longest - least;
        if more as f64 > MAX_UNEVEN * longest as f64 { more } else { 0 }
    }

    /// The longest work of a member that may be in static loops which the runtime does not report.
    pub(crate) fn unreported(&self) -> u64 {
        self.replicated().max().unwrap_or(0)
    }

    /// How long each lock was held: by members, by others.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u64, u64)> {
        self.locks.values().copied()
    }

    /// The longest chain of work that must be done one after the other, where the creation of a task costs this.
    pub(crate) fn span(&self, creation_ns: u64) -> u64 {
        let strands = self.strands();
        let in_loops = self.in_loops().max().unwrap_or(0);
        let roots = self.members().chain(self.shared.iter().copied());
        if self.created == 0 {
            let work = roots.map(|root| strands[root as usize].work());
            return work.max().unwrap_or(0).max(in_loops);
        }
        let mut longest = in_loops;
        let mut ends: Vec<Option<u64>> = vec![None; strands.len()];
        let mut before: Vec<u64> = vec![0; strands.len()];
        // Each open strand: its number, next step, present time, and the latest end of what it created.
        let mut open: Vec<(u32, usize, u64, u64)> = Vec::new();
        for root in roots {
            open.push((root, 0, 0, 0));
            while let Some((strand, step, now, children)) = open.pop() {
                match strands[strand as usize].steps.get(step) {
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
                        for next in &strands[strand as usize].successors {
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
    pub(crate) fn creation_ns(&self) -> Option<u64> {
        if self.created < 2 {
            return None;
        }
        let strands = self.strands().iter();
        let windows = strands.flat_map(|strand| strand.steps.windows(3));
        windows
            .filter_map(|steps| match steps {
                [Step::Create(_), Step::Work(ns), Step::Create(_)] => Some(*ns),
                _ => None,
            })
            .min()
    }

    /// Work in static loops, by loop and member.
    fn in_loops(&self) -> impl Iterator<Item = u64> {
        let members = self.loops.iter().flat_map(|of_loop| &of_loop.members);
        members.map(|(_, ns)| *ns)
    }

    pub(crate) fn all_work(&self) -> u64 {
        self.work
    }
}

/// The thing of that number, where there may be none yet.
fn at<T>(things: &mut Vec<Option<T>>, number: usize) -> &mut Option<T> {
    if number >= things.len() {
        things.resize_with(number + 1, || None);
    }
    &mut things[number]
}
