//! How long a phase takes on another number of threads.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use omptrace_common::fast_map::FastMap;

use super::graph::{Phase, StaticLoop, Step};
use crate::sum::Sum;

/// Schedules phases. It keeps the memory for the next.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    schedule: Schedule,
    /// The strand of each member, and its work.
    members: Vec<(u32, u64)>,
    /// The work of what whoever is there takes.
    shared: Vec<u64>,
    /// When each thread is done with what is its own.
    begins: Vec<u64>,
    free: BinaryHeap<Reverse<u64>>,
}

impl Scheduler {
    /// The schedules of a phase that `size` threads had.
    pub(super) fn schedules<'p>(&'p mut self, phase: &'p Phase, size: usize) -> Schedules<'p> {
        let strands = phase.strands();
        let work = |strand: u32| strands[strand as usize].work();
        self.members.clear();
        let members = phase.members();
        self.members
            .extend(members.map(|strand| (strand, work(strand))));
        self.shared.clear();
        self.shared
            .extend(phase.shared.iter().map(|strand| work(*strand)));
        let loops = phase.loops.iter();
        Schedules {
            scheduler: self,
            phase,
            size,
            loops: loops.map(|of_loop| Division::of(of_loop, size)).collect(),
        }
    }
}

/// The schedules of a phase on numbers of threads.
pub(super) struct Schedules<'p> {
    scheduler: &'p mut Scheduler,
    phase: &'p Phase,
    /// The threads that it had.
    size: usize,
    loops: Vec<Division<'p>>,
}

impl Schedules<'_> {
    /// How long the phase takes this many threads.
    pub(super) fn time_on(&mut self, threads: usize) -> u64 {
        let (phase, size) = (self.phase, self.size);
        let Scheduler {
            schedule,
            members,
            shared,
            begins,
            free,
        } = &mut *self.scheduler;
        begins.clear();
        begins.resize(threads, 0);
        for of_loop in &self.loops {
            of_loop.add_to(begins);
        }
        let recorded = members.len();
        let pinned = |index: usize| {
            let member = (recorded > 0).then(|| members[index % recorded]);
            // Of members that did nothing, nothing is known.
            member.filter(|_| threads != size || index < recorded)
        };
        let time = if phase.created > 0 {
            let threads = begins.iter().enumerate().map(|(index, begin)| {
                let strand = pinned(index).map(|(strand, _)| (strand, index >= recorded));
                (*begin, strand)
            });
            schedule.run(phase, threads)
        } else {
            // Nobody waits for anybody: who is free first takes what comes next.
            let ends = begins.iter().enumerate();
            let ends = ends.map(|(index, begin)| begin + pinned(index).map_or(0, |(_, ns)| ns));
            if shared.is_empty() {
                ends.max().unwrap_or(0)
            } else {
                free.clear();
                free.extend(ends.map(Reverse));
                let mut last = free.iter().map(|Reverse(end)| *end).max().unwrap_or(0);
                for ns in shared.iter() {
                    if let Some(mut first) = free.peek_mut() {
                        first.0.grow_by(*ns);
                        last = last.max(first.0);
                    }
                }
                last
            }
        };
        time.max(phase.held(threads as f64 / size.max(1) as f64))
    }
}

/// A static loop, to be divided among other numbers of threads.
struct Division<'p> {
    of_loop: &'p StaticLoop,
    size: usize,
    /// The members' work, in the order of their numbers: that of their first iterations.
    work: Vec<f64>,
    /// The work of a chunk of each, where chunks go to threads in turn.
    of_chunk: Vec<f64>,
    chunks: u64,
}

impl<'p> Division<'p> {
    fn of(of_loop: &'p StaticLoop, size: usize) -> Division<'p> {
        let work: Vec<f64> = of_loop.members.iter().map(|(_, ns)| *ns as f64).collect();
        let chunks = of_loop.count.div_ceil(of_loop.chunk.max(1)).max(1);
        let mut division = Division {
            of_loop,
            size,
            work,
            of_chunk: Vec::new(),
            chunks,
        };
        if !division.has_blocks() {
            let of_owner = |owner: usize| {
                let turns = (chunks as usize + size - 1).saturating_sub(owner) / size.max(1);
                division
                    .work
                    .get(owner)
                    .map_or(0.0, |ns| ns / turns.max(1) as f64)
            };
            division.of_chunk = (0..size).map(of_owner).collect();
        }
        division
    }

    /// Whether each member has one chunk.
    fn has_blocks(&self) -> bool {
        self.chunks as usize <= self.size.max(1)
    }

    /// Adds each thread's time in the loop.
    fn add_to(&self, threads: &mut [u64]) {
        if threads.len() == self.size {
            for (time, ns) in threads.iter_mut().zip(&self.of_loop.members) {
                time.grow_by(ns.1);
            }
        } else if self.has_blocks() {
            self.add_blocks(threads);
        } else {
            self.add_turns(threads);
        }
    }

    /// A block for each thread: work is taken to be spread evenly within a member's block.
    fn add_blocks(&self, threads: &mut [u64]) {
        let (count, number) = (self.of_loop.count, threads.len() as u64);
        // No thread has a part of an iteration.
        let ends = (1..=number).map(|threads| {
            let rest = (count % number * threads).div_ceil(number);
            (count / number * threads + rest) as f64
        });
        let block = count as f64 / self.work.len().max(1) as f64;
        let block_at = |number: usize| number as f64 * block;
        let (mut begin, mut first) = (0.0_f64, 0);
        for (time, end) in threads.iter_mut().zip(ends) {
            while first < self.work.len() && block_at(first + 1) <= begin {
                first += 1;
            }
            let blocks = self.work.iter().enumerate().skip(first);
            let blocks = blocks.take_while(|(number, _)| block_at(*number) < end);
            let common = |(number, ns): (usize, &f64)| {
                let common = end.min(block_at(number + 1)) - begin.max(block_at(number));
                ns * common.max(0.0) / block.max(1.0)
            };
            time.grow_by(blocks.map(common).sum::<f64>() as u64);
            begin = end;
        }
    }

    /// Chunks for each thread in turn: those of a member are taken to be alike.
    fn add_turns(&self, threads: &mut [u64]) {
        let (size, number) = (self.size, threads.len());
        // After so many turns, a thread has chunks of the same members again.
        let round = (1..=size).find(|turns| turns * number % size == 0);
        let round = round.unwrap_or(1);
        for (index, time) in threads.iter_mut().enumerate() {
            let owners = (0..round).map(|turn| (index + turn * number) % size);
            let chunks = owners.map(|owner| self.of_chunk[owner]);
            let all = (self.chunks as usize)
                .saturating_sub(index)
                .div_ceil(number);
            let rest: f64 = chunks.clone().take(all % round).sum();
            let of_round: f64 = chunks.sum();
            time.grow_by((of_round * (all / round) as f64 + rest) as u64);
        }
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
#[derive(Debug, Default)]
struct Schedule {
    instances: Vec<Instance>,
    ready: VecDeque<u32>,
    /// Tasks that were created and wait for others: by strand.
    held: FastMap<u32, u32>,
    /// By strand: those that must be complete before it starts.
    after: Vec<u32>,
    idle: Vec<usize>,
    events: BinaryHeap<Reverse<(u64, usize)>>,
    running: Vec<Option<u32>>,
}

impl Schedule {
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

    /// When the last of these threads is done. Each begins at a time, and with what is pinned to it; is that a copy?
    fn run(
        &mut self,
        phase: &Phase,
        threads: impl Iterator<Item = (u64, Option<(u32, bool)>)>,
    ) -> u64 {
        self.instances.clear();
        self.ready.clear();
        self.held.clear();
        self.after.clear();
        let strands = phase.strands().iter();
        self.after.extend(strands.map(|strand| strand.after));
        self.idle.clear();
        self.events.clear();
        self.running.clear();
        for strand in &phase.shared {
            let instance = self.instance(*strand, None, false);
            self.ready.push_back(instance);
        }
        let mut last = 0;
        for (thread, (begin, pinned)) in threads.enumerate() {
            let instance = pinned.map(|(strand, is_copy)| self.instance(strand, None, is_copy));
            self.running.push(instance);
            last = last.max(begin);
            self.events.push(Reverse((begin, thread)));
        }
        while let Some(Reverse((mut time, thread))) = self.events.pop() {
            loop {
                let Some(end) = self.go_on(phase, thread, time) else {
                    self.idle.push(thread);
                    break;
                };
                last = last.max(end);
                let next = Reverse((end, thread));
                // Nothing else happens until then.
                if self.events.peek().is_some_and(|first| *first > next) {
                    self.events.push(next);
                    break;
                }
                time = end;
            }
        }
        last
    }

    /// The thread goes on until it works; gives the end of that, `None` where it finds nothing to do.
    fn go_on(&mut self, phase: &Phase, thread: usize, time: u64) -> Option<u64> {
        loop {
            let number = match self.running[thread] {
                Some(number) => number,
                None => {
                    let number = self.ready.pop_front()?;
                    self.running[thread] = Some(number);
                    number
                }
            };
            let Instance {
                strand,
                step,
                is_copy,
                ..
            } = self.instances[number as usize];
            let next = phase.strands()[strand as usize].steps.get(step);
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
                    self.complete(phase, number, time);
                }
            }
        }
    }

    fn complete(&mut self, phase: &Phase, number: u32, time: u64) {
        let Instance {
            strand,
            parent,
            is_copy,
            ..
        } = self.instances[number as usize];
        if !is_copy {
            for next in &phase.strands()[strand as usize].successors {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// However many chunks there are, each number of threads does all of the work.
    #[test]
    fn a_static_loop_of_many_chunks_is_divided_whole() {
        let of_loop = StaticLoop {
            count: 1_000_000,
            chunk: 1,
            members: vec![(0, 1_000_000_000), (1, 1_000_000_000)],
            ..StaticLoop::default()
        };
        let division = Division::of(&of_loop, 2);
        for threads in [1, 3, 4] {
            let mut times = vec![0; threads];
            division.add_to(&mut times);
            let work: u64 = times.iter().sum();
            assert!(
                work.abs_diff(2_000_000_000) < 2_000_000,
                "{threads}: {work}"
            );
        }
    }
}
