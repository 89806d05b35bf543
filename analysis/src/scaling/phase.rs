//! A phase: the work of a team between two barriers, as strands of work that may wait for each other. Phases are
//! scheduled on other numbers of threads.

use std::collections::BTreeSet;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{LockId, TaskId};

use super::waiters::Waiters;
use crate::model::place_id::PlaceId;
use crate::model::sum::{Sum, sum};

/// Maximum number of steps that are kept per phase. A task takes about 150 bytes and has three steps: 6 MiB.
const MAX_STEPS: usize = 1 << 17;

/// If the members' work outside of loops and tasks differs by more than this share of the longest, the program divides
/// it among threads by thread number.
const MAX_UNEVEN: f64 = 0.2;

/// Maximum number of strands whose memory is kept for the next phase: some 8 MiB.
const MAX_SPARE: usize = 1 << 16;

/// The reason why a region's time on other numbers of threads cannot be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Problem {
    Nested,
    Unreported,
    Doacross,
    Sections,
    Cancelled,
    Alone,
    Replicated,
    Divided,
    Static,
    TooLarge,
}

impl Problem {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Problem::Nested => "the region contains a nested region, whose number of threads is not known",
            Problem::Unreported => {
                "the region contains work that is in none of the loops and tasks that the runtime reports, for example in static loops, which GCC inlines"
            }
            Problem::Doacross => {
                "the region contains a loop with ordered depend(sink), and the runtime does not report how long threads wait for each other"
            }
            Problem::Cancelled => {
                "the region contains a construct that was cancelled, so the amount of skipped work depends on the order in which threads run"
            }
            Problem::Alone => {
                "the region contains code outside of loops and tasks, and a run with one thread does not show whether each thread executes all of this work, or only a share selected by omp_get_thread_num()"
            }
            Problem::Replicated => {
                "most of the time is spent in code outside of loops and tasks, and the trace does not show whether each thread executes all of this work, or only a share selected by omp_get_thread_num()"
            }
            Problem::Sections => {
                "the region contains sections, and the runtime does not report which thread executes which section"
            }
            Problem::Divided => {
                "code outside of loops and tasks takes a different time on each thread, so the program may use the thread number to decide which thread does which part of this work"
            }
            Problem::Static => {
                "the region contains a static loop whose iterations and chunks the runtime does not report"
            }
            Problem::TooLarge => {
                "the region contains more than 40,000 tasks or 130,000 chunks between two barriers"
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Work(u64),
    /// Creates the task with this strand.
    Create(u32),
    /// Waits until strands are complete: index of the first in [`Phase::awaited`], and their number.
    Wait(u32, u32),
    /// Completes the strand that stands for an undeferred or detached task.
    End(u32),
}

/// Marks the end of a list of tasks.
const NONE: u32 = u32::MAX;

/// The creator of a task: a member's implicit task, or an explicit task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Creator {
    /// A member of this team. Nested regions with one thread are executed by a member, so the team is part of the key.
    Member(usize),
    Task(TaskId),
}

/// An explicit task.
#[derive(Clone, Copy, Debug)]
struct OfTask {
    /// The task's own strand; for an undeferred task, the strand of its creator.
    strand: u32,
    /// The strand that is complete when the task is; for an undeferred task, an empty strand.
    end: u32,
    /// The newest task that this task has created and not waited for.
    newest: u32,
    /// For a detached task whose event is fulfilled before its code ends: the strand that the fulfilment completes.
    fulfilled: u32,
    /// The previous task by the same creator, and the previous task of the same taskgroup.
    sibling: u32,
    in_group: u32,
}

/// Work that one thread executes sequentially.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strand {
    pub(crate) steps: Vec<Step>,
    /// Number of strands that must be complete before this one starts.
    pub(crate) after: u32,
    pub(crate) successors: Vec<u32>,
}

impl Strand {
    /// The sum of its work, in nanoseconds.
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
    /// The largest number of iterations in a member's first chunk.
    pub(crate) chunk: u64,
    /// By member, its first iteration and its work, sorted by first iteration.
    pub(crate) members: Vec<(u64, u64)>,
    /// The work of the longest chunk, if the runtime reports each chunk, as for ordered loops.
    pub(crate) longest_chunk: Option<u64>,
}

/// A chunk of a dynamic or guided loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) place: PlaceId,
    pub(crate) strand: u32,
    pub(crate) start: u64,
    pub(crate) iterations: u64,
}

/// What a thread's work belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Member,
    /// A `single` or `masked` region, a chunk, or a task.
    Strand(u32),
    /// A static loop at this place.
    Static(PlaceId),
    /// A `sections` construct.
    Sections,
}

/// The work of a team since the last barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    /// The number of this phase, counted from 1; each phase has another one.
    pub(crate) number: u64,
    /// The strands. Those from index `used` on are spare.
    all: Vec<Strand>,
    used: usize,
    /// By thread.
    members: Vec<Option<u32>>,
    /// Strands of `single` and `masked` regions and chunks, which any member may execute.
    pub(crate) shared: Vec<u32>,
    tasks: FastMap<TaskId, u32>,
    of_tasks: Vec<OfTask>,
    /// By thread and team, the newest task that the implicit task has created and not waited for.
    newest: FastMap<(usize, usize), u32>,
    /// The newest task of each taskgroup.
    groups: FastMap<u64, u32>,
    /// The strands that steps wait for.
    pub(crate) awaited: Vec<u32>,
    pub(crate) created: u64,
    pub(crate) loops: Vec<StaticLoop>,
    /// The chunks of dynamic and guided loops, in the order in which threads received them.
    pub(crate) chunks: Vec<Chunk>,
    /// The time that the runtime takes to hand out a chunk.
    pub(crate) chunk_cost_ns: u64,
    /// By thread: the static loop that it is in, and the first iteration that it got.
    first: Vec<Option<(PlaceId, u64)>>,
    /// By thread: the work of its chunk of a static loop.
    of_chunk: Vec<Option<u64>>,
    /// The time for which locks were held: by members, and by other strands.
    locks: FastMap<LockId, (u64, u64)>,
    steps: usize,
    pub(crate) problems: BTreeSet<Problem>,
    /// The runtime does not report static loops, so they appear as work of the members.
    pub(crate) hides_loops: bool,
    /// The sum of all work, including steps that were not kept.
    work: u64,
    /// The part of `work` in `sections` constructs.
    pub(crate) in_sections: u64,
}

impl Phase {
    /// Empties the phase, keeping its memory.
    pub(crate) fn clear(&mut self) {
        self.all.truncate(MAX_SPARE);
        for strand in self.all.iter_mut().take(self.used) {
            strand.steps.clear();
            strand.after = 0;
            strand.successors.clear();
        }
        self.used = 0;
        self.members.clear();
        self.shared.clear();
        self.tasks.clear();
        self.of_tasks.clear();
        self.newest.clear();
        self.groups.clear();
        self.awaited.clear();
        self.created = 0;
        self.loops.clear();
        self.chunks.clear();
        self.first.clear();
        self.of_chunk.clear();
        self.locks.clear();
        self.steps = 0;
        self.problems.clear();
        self.work = 0;
        self.in_sections = 0;
    }

    /// Whether no more steps are kept, so that the phase cannot be scheduled.
    pub(crate) fn is_full(&self) -> bool {
        self.steps >= MAX_STEPS
    }

    /// The number of steps.
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    pub(crate) fn strands(&self) -> &[Strand] {
        &self.all[..self.used]
    }

    /// The members' strands, by thread.
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

    pub(crate) fn member(&mut self, thread: usize) -> u32 {
        if let Some(Some(strand)) = self.members.get(thread) {
            return *strand;
        }
        let strand = self.strand();
        *at(&mut self.members, thread) = Some(strand);
        strand
    }

    /// Starts a strand for a `single` or `masked` region or a chunk.
    pub(crate) fn share(&mut self) -> u32 {
        if self.used >= MAX_STEPS {
            self.problem(Problem::TooLarge);
            return MAX_STEPS as u32 - 1;
        }
        let strand = self.strand();
        self.shared.push(strand);
        strand
    }

    /// The strand is a chunk of a loop, with this first iteration and number of iterations.
    pub(crate) fn chunk(&mut self, strand: u32, place: PlaceId, [start, iterations]: [u64; 2]) {
        if self.chunks.len() < MAX_STEPS {
            self.chunks.push(Chunk { place, strand, start, iterations });
        }
    }

    fn of(&mut self, thread: usize, at: At) -> u32 {
        match at {
            At::Strand(strand) if (strand as usize) < self.used => strand,
            _ => self.member(thread),
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

    pub(crate) fn work(&mut self, thread: usize, at: At, ns: u64) {
        self.work.grow_by(ns);
        match at {
            At::Static(place) => return self.static_work(thread, place, ns),
            At::Sections => self.in_sections.grow_by(ns),
            At::Member | At::Strand(_) => {}
        }
        let strand = self.of(thread, at);
        self.push(strand, Step::Work(ns));
    }

    fn static_work(&mut self, thread: usize, place: PlaceId, ns: u64) {
        let Some(Some((known, first))) = self.first.get(thread).copied() else {
            return self.unknown_static_work(thread, ns);
        };
        if known != place {
            return self.unknown_static_work(thread, ns);
        }
        let of_chunk = at(&mut self.of_chunk, thread).get_or_insert(0);
        of_chunk.grow_by(ns);
        let of_chunk = *of_chunk;
        let of_loop = self.static_loop(place);
        of_loop.longest_chunk = of_loop.longest_chunk.map(|longest| longest.max(of_chunk));
        let members = &mut of_loop.members;
        match members.binary_search_by_key(&first, |(first, _)| *first) {
            Ok(index) => members[index].1.grow_by(ns),
            Err(index) => members.insert(index, (first, ns)),
        }
    }

    fn unknown_static_work(&mut self, thread: usize, ns: u64) {
        self.problem(Problem::Static);
        let strand = self.member(thread);
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

    /// Adds work in a nested region, whose threads are not scheduled.
    pub(crate) fn work_inside(&mut self, ns: u64) {
        self.problem(Problem::Nested);
        self.work.grow_by(ns);
    }

    /// Adds a task created in a nested region.
    pub(crate) fn create_inside(&mut self, is_undeferred: bool) {
        self.problem(Problem::Nested);
        self.created += u64::from(!is_undeferred);
    }

    /// The thread receives a chunk of the static loop that it is in. Only the first chunk is kept.
    pub(crate) fn static_chunk(&mut self, thread: usize, place: PlaceId, [count, first, chunk]: [u64; 3]) {
        let of_loop = self.static_loop(place);
        if of_loop.count > 0 && of_loop.count != count {
            self.problem(Problem::Static);
            return;
        }
        of_loop.count = count;
        of_loop.chunk = of_loop.chunk.max(chunk);
        // Loops may start at any number.
        *at(&mut self.first, thread) = Some((place, first));
        *at(&mut self.of_chunk, thread) = Some(0);
    }

    /// The thread receives a further chunk of a static loop, which is ordered.
    pub(crate) fn next_chunk(&mut self, thread: usize, place: PlaceId) {
        let before = at(&mut self.of_chunk, thread).replace(0).unwrap_or(0);
        let longest = &mut self.static_loop(place).longest_chunk;
        *longest = Some(longest.unwrap_or(0).max(before));
    }

    /// Adds a task that was created in this taskgroup.
    pub(crate) fn create(
        &mut self,
        thread: usize,
        (at, creator): (At, Creator),
        task: TaskId,
        is_undeferred: bool,
        group: Option<u64>,
    ) {
        if matches!(at, At::Static(_)) {
            self.problem(Problem::Static);
        }
        let parent = self.of(thread, at);
        self.created += u64::from(!is_undeferred);
        if self.steps >= MAX_STEPS || self.of_tasks.len() >= MAX_STEPS {
            self.problem(Problem::TooLarge);
            return;
        }
        let number = self.of_tasks.len() as u32;
        let end = self.strand();
        let strand = if is_undeferred { parent } else { end };
        let newest = self.newest(thread, creator);
        let sibling = newest.map_or(NONE, |newest| std::mem::replace(newest, number));
        let in_group = group.and_then(|group| self.groups.insert(group, number)).unwrap_or(NONE);
        if !is_undeferred {
            self.push(parent, Step::Create(strand));
        }
        self.of_tasks.push(OfTask { strand, end, newest: NONE, fulfilled: NONE, sibling, in_group });
        self.tasks.insert(task, number);
    }

    /// The code of a task has ended. Unless its event has yet to be fulfilled, the task is complete. The creator of an
    /// undeferred task continues.
    pub(crate) fn complete(&mut self, task: TaskId) {
        let number = self.tasks.get(&task).copied();
        if let Some(OfTask { strand, end, fulfilled, .. }) =
            number.map(|number| self.of_tasks[number as usize])
        {
            if fulfilled != NONE {
                self.wait_for_one(strand, fulfilled);
            }
            if strand != end {
                self.push(strand, Step::End(end));
            }
        }
    }

    /// The event of a detached task is fulfilled. `is_late`: the task's code has already ended, so that the task is now
    /// complete.
    pub(crate) fn fulfil(&mut self, thread: usize, at: At, task: TaskId, is_late: bool) {
        let Some(number) = self.tasks.get(&task).copied() else {
            return;
        };
        if matches!(at, At::Static(_)) {
            self.problem(Problem::Static);
        }
        if self.steps >= MAX_STEPS {
            return self.problem(Problem::TooLarge);
        }
        let fulfiller = self.of(thread, at);
        let OfTask { strand, end, .. } = self.of_tasks[number as usize];
        if strand != end && is_late {
            return self.push(fulfiller, Step::End(end));
        }
        let fulfilled = self.strand();
        if is_late {
            self.wait_for_one(strand, fulfilled);
        } else {
            self.of_tasks[number as usize].fulfilled = fulfilled;
        }
        self.push(fulfiller, Step::End(fulfilled));
    }

    fn wait_for_one(&mut self, strand: u32, awaited: u32) {
        let first = self.awaited.len() as u32;
        self.awaited.push(awaited);
        self.push(strand, Step::Wait(first, 1));
    }

    /// The newest task that a creator has created and not waited for.
    fn newest(&mut self, thread: usize, creator: Creator) -> Option<&mut u32> {
        match creator {
            Creator::Member(team) => Some(self.newest.entry((thread, team)).or_insert(NONE)),
            Creator::Task(task) => {
                let number = *self.tasks.get(&task)?;
                Some(&mut self.of_tasks.get_mut(number as usize)?.newest)
            }
        }
    }

    pub(crate) fn task(&self, task: TaskId) -> Option<u32> {
        let number = *self.tasks.get(&task)?;
        Some(self.of_tasks[number as usize].strand)
    }

    pub(crate) fn depend(&mut self, from: TaskId, to: TaskId) {
        let of_task = |task| self.tasks.get(task).map(|number| self.of_tasks[*number as usize]);
        let (Some(OfTask { end: from, .. }), Some(to)) = (of_task(&from), of_task(&to)) else {
            return;
        };
        if to.strand != to.end {
            // The creator waits before it starts the undeferred task.
            return self.wait_for_one(to.strand, from);
        }
        self.all[to.strand as usize].after += 1;
        self.all[from as usize].successors.push(to.strand);
    }

    /// The creator waits for all tasks that it has created.
    pub(crate) fn wait(&mut self, thread: usize, (at, creator): (At, Creator)) {
        if let Some(newest) = self.newest(thread, creator) {
            let tasks = std::mem::replace(newest, NONE);
            self.wait_for(thread, at, tasks, |task| task.sibling);
        }
    }

    /// The thread waits for all tasks of a taskgroup.
    pub(crate) fn wait_for_group(&mut self, thread: usize, at: At, group: u64) {
        let tasks = self.groups.remove(&group).unwrap_or(NONE);
        self.wait_for(thread, at, tasks, |task| task.in_group);
    }

    /// The thread waits for the tasks of a list. `before` gives the previous task of the list.
    fn wait_for(&mut self, thread: usize, at: At, mut task: u32, before: impl Fn(&OfTask) -> u32) {
        let first = self.awaited.len();
        while let Some(of_task) = self.of_tasks.get(task as usize) {
            self.awaited.push(of_task.end);
            task = before(of_task);
        }
        let count = self.awaited.len() - first;
        if count > 0 {
            let strand = self.of(thread, at);
            self.push(strand, Step::Wait(first as u32, count as u32));
        }
    }

    pub(crate) fn hold(&mut self, at: At, lock: LockId, ns: u64) {
        let (by_members, by_others) = self.locks.entry(lock).or_default();
        match at {
            At::Member => by_members.grow_by(ns),
            _ => by_others.grow_by(ns),
        }
    }

    /// The members' work outside of loops and single regions.
    fn replicated(&self) -> impl Iterator<Item = u64> {
        let strands = self.strands();
        self.members().map(|strand| strands[strand as usize].work())
    }

    /// The extra work of members outside of loops and tasks, compared with the member that does least, unless it may be
    /// chance.
    pub(crate) fn uneven(&self, size: usize) -> u64 {
        let longest = self.replicated().max().unwrap_or(0);
        let least = match self.members().count() < size {
            true => 0,
            false => self.replicated().min().unwrap_or(0),
        };
        let more = longest - least;
        if more as f64 > MAX_UNEVEN * longest as f64 { more } else { 0 }
    }

    /// The longest work of a member outside of loops and tasks.
    pub(crate) fn longest_of_members(&self) -> u64 {
        self.replicated().max().unwrap_or(0)
    }

    /// The time for which each lock was held: by members, and by other strands.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u64, u64)> {
        self.locks.values().copied()
    }

    /// The span: the longest chain of work that must be executed sequentially, if creating a task costs `creation_ns`.
    pub(crate) fn span(&self, creation_ns: u64) -> u64 {
        let strands = self.strands();
        let in_loops = self.in_loops().max().unwrap_or(0);
        let roots = self.members().chain(self.shared.iter().copied());
        if self.created == 0 && self.awaited.is_empty() {
            let work = roots.map(|root| strands[root as usize].work());
            return work.max().unwrap_or(0).max(in_loops);
        }
        let mut chains = Chains::new(self, creation_ns);
        roots.for_each(|root| chains.start(root, 0));
        while let Some(strand) = chains.ready.pop() {
            chains.go_on(strand);
        }
        chains.longest.max(in_loops)
    }

    /// The shortest time between two task creations, an upper bound of the cost of a creation.
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

    /// By static loop, the longest sequential piece: a member's part.
    fn in_loops(&self) -> impl Iterator<Item = u64> {
        self.loops.iter().map(|of_loop| {
            let members = of_loop.members.iter().map(|(_, ns)| *ns);
            of_loop.longest_chunk.or(members.max()).unwrap_or(0)
        })
    }

    pub(crate) fn all_work(&self) -> u64 {
        self.work
    }
}

/// The longest chains of work that lead to the ends of a phase's strands.
struct Chains<'p> {
    phase: &'p Phase,
    creation_ns: u64,
    of: Vec<OfStrand>,
    /// The strands that can continue.
    ready: Vec<u32>,
    /// The strands that wait for others.
    waiters: Waiters,
    longest: u64,
}

/// The progress of a strand.
#[derive(Clone, Copy, Debug)]
struct OfStrand {
    step: u32,
    /// The length of its chain so far; before it starts, the length of the longest chain that it must wait for.
    now: u64,
    /// Number of things that it waits for: its creation, and strands that must be complete before it.
    missing: u32,
}

impl<'p> Chains<'p> {
    fn new(phase: &'p Phase, creation_ns: u64) -> Chains<'p> {
        let strands = phase.strands();
        let of = strands.iter().map(|strand| OfStrand { step: 0, now: 0, missing: strand.after + 1 });
        let mut waiters = Waiters::default();
        waiters.begin(strands.len());
        Chains { phase, creation_ns, of: of.collect(), ready: Vec::new(), waiters, longest: 0 }
    }

    /// One of the things that a strand waits for has happened, at the end of a chain of this length.
    fn start(&mut self, strand: u32, now: u64) {
        let of_strand = &mut self.of[strand as usize];
        of_strand.now = of_strand.now.max(now);
        of_strand.missing = of_strand.missing.saturating_sub(1);
        if of_strand.missing == 0 {
            self.ready.push(strand);
        }
    }

    /// Executes the steps of a strand until it must wait.
    fn go_on(&mut self, strand: u32) {
        let phase = self.phase;
        let OfStrand { mut step, mut now, .. } = self.of[strand as usize];
        while let Some(next) = phase.all[strand as usize].steps.get(step as usize) {
            step += 1;
            match next {
                Step::Work(ns) => now += ns,
                Step::Create(child) => self.start(*child, now + self.creation_ns),
                Step::End(task) => self.end(*task, now),
                Step::Wait(first, count) => {
                    let mut missing = 0;
                    for awaited in &phase.awaited[*first as usize..][..*count as usize] {
                        match self.waiters.wait(*awaited, strand) {
                            true => missing += 1,
                            false => now = now.max(self.of[*awaited as usize].now),
                        }
                    }
                    if missing > 0 {
                        let of_strand = &mut self.of[strand as usize];
                        (of_strand.step, of_strand.now, of_strand.missing) = (step, now, missing);
                        return;
                    }
                }
            }
        }
        self.longest = self.longest.max(now);
        self.end(strand, now);
    }

    /// A strand is complete, at the end of a chain of this length.
    fn end(&mut self, strand: u32, now: u64) {
        self.of[strand as usize].now = now;
        let phase = self.phase;
        for next in &phase.all[strand as usize].successors {
            self.start(*next, now);
        }
        let mut list = self.waiters.end(strand);
        while let Some((waiter, rest)) = self.waiters.next(list) {
            self.start(waiter, now);
            list = rest;
        }
    }
}

/// The element with this number; extends the vector if necessary.
fn at<T>(things: &mut Vec<Option<T>>, number: usize) -> &mut Option<T> {
    if number >= things.len() {
        things.resize_with(number + 1, || None);
    }
    &mut things[number]
}
