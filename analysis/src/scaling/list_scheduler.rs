//! Computes how long a phase takes on another number of threads, by list scheduling.

use std::collections::VecDeque;

use omptrace_symbols::fast_map::FastMap;

use super::min_clock::{NEVER, ThreadQueue, hand_out};
use super::phase::{Phase, StaticLoop, Step};
use super::waiters::Waiters;
use crate::model::sum::Sum;

/// Schedules phases, reusing its memory.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    schedule: Schedule,
    members: Vec<Member>,
    /// Element `i` is the longest work of the first `i + 1` members.
    longest: Vec<u64>,
    /// The work of strands that any thread may execute, and its sum.
    shared: Vec<u64>,
    shared_sum: u64,
    /// The time at which each thread has finished its own work.
    ends: Vec<u64>,
    free: ThreadQueue,
}

/// A thread that took part in a phase.
#[derive(Clone, Copy, Debug)]
struct Member {
    strand: u32,
    /// The work of the member's strand.
    work: u64,
}

impl Scheduler {
    /// Prepares schedules of a phase that was recorded with `size` threads.
    pub(crate) fn schedules<'p>(&'p mut self, phase: &'p Phase, size: usize) -> Schedules<'p> {
        let strands = phase.strands();
        let work = |strand: u32| strands[strand as usize].work();
        self.members.clear();
        self.members.extend(phase.members().map(|strand| Member { strand, work: work(strand) }));
        self.longest.clear();
        let mut longest = 0;
        self.longest.extend(self.members.iter().map(|member| {
            longest = member.work.max(longest);
            longest
        }));
        self.shared.clear();
        self.shared.extend(phase.shared.iter().map(|strand| work(*strand)));
        self.shared_sum = self.shared.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        if phase.created > 0 {
            self.schedule.prepare(phase);
        }
        let loops = phase.loops.iter();
        Schedules {
            scheduler: self,
            phase,
            size,
            loops: loops.map(|of_loop| Division::of(of_loop, size)).collect(),
        }
    }
}

/// Schedules of one phase on different numbers of threads.
pub(crate) struct Schedules<'p> {
    scheduler: &'p mut Scheduler,
    phase: &'p Phase,
    /// The recorded number of threads.
    size: usize,
    loops: Vec<Division<'p>>,
}

impl Schedules<'_> {
    /// The duration of the phase on this number of threads.
    pub(crate) fn time_on(&mut self, threads: usize) -> u64 {
        let time = self.time_without_locks(threads);
        // With more threads, more members hold a lock.
        let scale = threads as f64 / self.size.max(1) as f64;
        let held = self.phase.held().map(|(members, others)| {
            let by_members = (members as f64 * scale) as u64;
            by_members.saturating_add(others)
        });
        time.max(held.max().unwrap_or(0))
    }

    fn time_without_locks(&mut self, threads: usize) -> u64 {
        let Scheduler { schedule, members, longest, shared, shared_sum, ends, free } = &mut *self.scheduler;
        let has_tasks = self.phase.created > 0;
        if !has_tasks && shared.is_empty() && self.loops.is_empty() {
            return match longest.get(threads - 1) {
                Some(longest) => *longest,
                None => longest.last().copied().unwrap_or(0),
            };
        }
        ends.clear();
        ends.resize(threads, 0);
        for of_loop in &self.loops {
            of_loop.add_to(ends);
        }
        // Additional threads are assumed to do the same as the recorded ones. Nothing is known about members that did
        // nothing.
        let recorded = members.len();
        let known = match threads == self.size {
            true => recorded.min(threads),
            false => threads,
        };
        let pinned = members.iter().cycle().take(known);
        if has_tasks {
            let pinned = pinned.enumerate();
            let pinned = pinned.map(|(thread, member)| (member.strand, thread >= recorded));
            return schedule.run(self.phase, ends, pinned);
        }
        // Without tasks, no thread waits for another: the first free thread takes the next strand.
        for (end, member) in ends.iter_mut().zip(pinned) {
            end.grow_by(member.work);
        }
        let mut last = ends.iter().copied().max().unwrap_or(0);
        if shared.is_empty() {
            return last;
        }
        let by_few = match threads {
            1 => Some(last.saturating_add(*shared_sum)),
            2 => hand_out::<2>(ends, shared, *shared_sum),
            3..=4 => hand_out::<4>(ends, shared, *shared_sum),
            5..=8 => hand_out::<8>(ends, shared, *shared_sum),
            _ => None,
        };
        if let Some(last) = by_few {
            return last;
        }
        free.start(ends);
        for ns in shared.iter() {
            let (time, thread) = free.first();
            let end = time.saturating_add(*ns);
            free.set(thread, end);
            last = last.max(end);
        }
        last
    }
}

/// A static loop that is divided among another number of threads.
struct Division<'p> {
    of_loop: &'p StaticLoop,
    size: usize,
    /// The members' work, sorted by member number, which follows from their first iterations.
    work: Vec<f64>,
    /// The work per chunk of each member, if chunks are assigned round-robin.
    of_chunk: Vec<f64>,
    chunks: u64,
    /// See [`Division::has_blocks`].
    is_of_blocks: bool,
}

impl<'p> Division<'p> {
    fn of(of_loop: &'p StaticLoop, size: usize) -> Division<'p> {
        let work: Vec<f64> = of_loop.members.iter().map(|(_, ns)| *ns as f64).collect();
        let chunks = of_loop.count.div_ceil(of_loop.chunk.max(1)).max(1);
        let mut division =
            Division { of_loop, size, work, of_chunk: Vec::new(), chunks, is_of_blocks: false };
        division.is_of_blocks = division.has_blocks();
        if !division.is_of_blocks {
            let of_owner = |owner: usize| {
                let turns = (chunks as usize + size - 1).saturating_sub(owner) / size.max(1);
                // The last chunk may be smaller.
                let has_last = (chunks as usize - 1) % size.max(1) == owner;
                let whole = turns.max(1) as f64 - if has_last { division.missing() } else { 0.0 };
                division.work.get(owner).map_or(0.0, |ns| ns / whole)
            };
            division.of_chunk = (0..size).map(of_owner).collect();
        }
        division
    }

    /// Whether each member has a single block, with sizes that differ by at most one iteration. Chunks of equal size
    /// may look the same.
    fn has_blocks(&self) -> bool {
        if self.chunks as usize > self.size.max(1) {
            return false;
        }
        let StaticLoop { count, chunk, ref members, .. } = *self.of_loop;
        let begin = members.first().map_or(0, |(first, _)| *first);
        let firsts = || members.iter().map(|(first, _)| first - begin).enumerate();
        let is_chunk = |(number, first)| first == chunk.saturating_mul(number as u64);
        let is_block = |(number, first)| first == block_begin(count, self.size, number);
        firsts().all(is_block) || !firsts().all(is_chunk)
    }

    /// The missing fraction of the last chunk.
    fn missing(&self) -> f64 {
        let chunk = self.of_loop.chunk.max(1);
        match self.of_loop.count % chunk {
            0 => 0.0,
            last => (chunk - last) as f64 / chunk as f64,
        }
    }

    /// Adds the time that each thread spends in the loop.
    fn add_to(&self, threads: &mut [u64]) {
        if threads.len() == self.size {
            for (time, ns) in threads.iter_mut().zip(&self.of_loop.members) {
                time.grow_by(ns.1);
            }
        } else if self.is_of_blocks {
            self.add_blocks(threads);
        } else {
            self.add_turns(threads);
        }
    }

    /// Assigns one block to each thread. Work is assumed to be spread evenly within a recorded block.
    fn add_blocks(&self, threads: &mut [u64]) {
        let (count, number) = (self.of_loop.count, threads.len());
        let begin_of = |member: usize| block_begin(count, self.size, member) as f64;
        let mut first = 0;
        for (index, time) in threads.iter_mut().enumerate() {
            // Blocks consist of whole iterations.
            let begin = block_begin(count, number, index) as f64;
            let end = block_begin(count, number, index + 1) as f64;
            while first < self.work.len() && begin_of(first + 1) <= begin {
                first += 1;
            }
            let blocks = self.work.iter().enumerate().skip(first);
            let blocks = blocks.take_while(|(member, _)| begin_of(*member) < end);
            let common = |(member, ns): (usize, &f64)| {
                let common = end.min(begin_of(member + 1)) - begin.max(begin_of(member));
                ns * common.max(0.0) / (begin_of(member + 1) - begin_of(member)).max(1.0)
            };
            time.grow_by(blocks.map(common).sum::<f64>() as u64);
        }
    }

    /// Assigns chunks round-robin. A member's chunks are assumed to take equally long.
    fn add_turns(&self, threads: &mut [u64]) {
        let (size, number) = (self.size, threads.len());
        // After this many turns, a thread's chunks repeat the sequence of recorded members.
        let round = (1..=size).find(|turns| turns * number % size == 0);
        let round = round.unwrap_or(1);
        for (index, time) in threads.iter_mut().enumerate() {
            let owners = (0..round).map(|turn| (index + turn * number) % size);
            let chunks = owners.map(|owner| self.of_chunk[owner]);
            let all = (self.chunks as usize).saturating_sub(index).div_ceil(number);
            let rest: f64 = chunks.clone().take(all % round).sum();
            let of_round: f64 = chunks.sum();
            let last = self.chunks as usize - 1;
            let missing = match last % number == index {
                true => self.missing() * self.of_chunk[last % size],
                false => 0.0,
            };
            time.grow_by((of_round * (all / round) as f64 + rest - missing) as u64);
        }
    }
}

/// The first iteration of a thread if `count` iterations are divided into blocks for `threads`. The first threads have
/// one iteration more than the others.
pub(super) fn block_begin(count: u64, threads: usize, thread: usize) -> u64 {
    let (threads, thread) = (threads.max(1) as u64, thread as u64);
    let begin = (count / threads).saturating_mul(thread).saturating_add(thread.min(count % threads));
    begin.min(count)
}

/// A strand that is being executed.
#[derive(Clone, Copy, Debug)]
struct Instance {
    strand: u32,
    /// The index of its next step in [`Schedule::steps`].
    at: u32,
    parent: Option<u32>,
    /// Number of tasks that it created and that are not complete.
    children: u32,
    /// Number of strands that it still waits for; for a copy, of its children.
    missing: u32,
    /// A copy of another member's strand, for threads beyond the recorded ones.
    is_copy: bool,
}

/// A schedule in which an idle thread takes the ready task that became ready first.
#[derive(Debug, Default)]
struct Schedule {
    /// The steps of all strands, roughly in the order of execution. `None` ends a strand.
    steps: Vec<Option<Step>>,
    /// By strand, the index of its first step.
    begins: Vec<u32>,
    has_dependences: bool,
    instances: Vec<Instance>,
    /// Numbers of instances, and [leaves](LEAF).
    ready: VecDeque<u64>,
    /// By strand: its work, if a task only works and waits for no other task; otherwise [`NEVER`].
    leaves: Vec<u64>,
    /// By strand: tasks that were created but still wait for others.
    held: FastMap<u32, u32>,
    /// By strand: the number of strands that must be complete before it starts. Empty if there are no dependences.
    after: Vec<u32>,
    /// Instances that wait for strands to end.
    waiters: Waiters,
    idle: Vec<usize>,
    /// The time of each thread's next step.
    next: ThreadQueue,
    /// By thread: the number of an instance, a [leaf](LEAF), or [`NOTHING`].
    running: Vec<u64>,
}

/// Marks a task that only works, and therefore needs no instance: its strand from bit 32 on, and the instance that
/// created it.
const LEAF: u64 = 1 << 63;
/// The thread runs nothing.
const NOTHING: u64 = u64::MAX;

impl Schedule {
    /// Prepares the scheduling of a phase.
    fn prepare(&mut self, phase: &Phase) {
        self.steps.clear();
        self.begins.clear();
        self.leaves.clear();
        self.leaves.extend(phase.strands().iter().map(|strand| match strand.steps[..] {
            [Step::Work(ns)] if strand.after == 0 => ns,
            _ => NEVER,
        }));
        self.has_dependences = phase.strands().iter().any(|strand| strand.after > 0);
        for strand in phase.strands() {
            self.begins.push(self.steps.len() as u32);
            self.steps.extend(strand.steps.iter().copied().map(Some));
            self.steps.push(None);
        }
    }

    fn instance(&mut self, strand: u32, parent: Option<u32>, is_copy: bool) -> u32 {
        self.instances.push(Instance {
            strand,
            at: self.begins[strand as usize],
            parent,
            children: 0,
            missing: 0,
            is_copy,
        });
        self.instances.len() as u32 - 1
    }

    fn make_ready(&mut self, instance: u64, time: u64, is_next: bool) {
        match is_next {
            true => self.ready.push_front(instance),
            false => self.ready.push_back(instance),
        }
        if let Some(thread) = self.idle.pop() {
            self.next.set(thread, time);
        }
    }

    /// The time when the last thread finishes. `begins`: the time at which each thread starts. `pinned`: the strands
    /// that the first threads start with, and whether each is a copy.
    fn run(&mut self, phase: &Phase, begins: &mut [u64], pinned: impl Iterator<Item = (u32, bool)>) -> u64 {
        self.instances.clear();
        self.ready.clear();
        self.held.clear();
        self.after.clear();
        if !phase.awaited.is_empty() {
            self.waiters.begin(phase.strands().len());
        }
        if self.has_dependences {
            let strands = phase.strands().iter();
            self.after.extend(strands.map(|strand| strand.after));
        }
        self.idle.clear();
        self.running.clear();
        self.running.resize(begins.len(), NOTHING);
        for strand in &phase.shared {
            let instance = self.instance(*strand, None, false);
            self.ready.push_back(instance.into());
        }
        // Number of running threads, which may make other strands ready.
        let mut busy = 0;
        for (thread, (strand, is_copy)) in pinned.enumerate() {
            // Work at the start of a strand affects no other thread, so it is done at once.
            let mut at = self.begins[strand as usize];
            if let Some(Step::Work(ns)) = self.steps[at as usize] {
                begins[thread].grow_by(ns);
                at += 1;
            }
            let successors = &phase.strands()[strand as usize].successors;
            if self.steps[at as usize].is_some() || !successors.is_empty() {
                let instance = self.instance(strand, None, is_copy);
                self.instances[instance as usize].at = at;
                self.running[thread] = instance.into();
                busy += 1;
            }
        }
        let mut last = begins.iter().copied().max().unwrap_or(0);
        self.next.start(begins);
        while busy > 0 || !self.ready.is_empty() {
            let (time, thread) = self.next.first();
            if time == NEVER {
                break;
            }
            let was_busy = self.running[thread] != NOTHING;
            let end = self.go_on(phase, thread, time);
            match end {
                Some(end) => last = last.max(end),
                None => self.idle.push(thread),
            }
            self.next.set(thread, end.unwrap_or(NEVER));
            busy = busy + usize::from(end.is_some()) - usize::from(was_busy);
        }
        last
    }

    /// Continues a thread up to its next piece of work, and returns the end of that; `None` if the thread has nothing
    /// to do.
    fn go_on(&mut self, phase: &Phase, thread: usize, time: u64) -> Option<u64> {
        loop {
            let number = match self.running[thread] {
                NOTHING => {
                    let next = self.ready.pop_front()?;
                    self.running[thread] = next;
                    if next & LEAF != 0 {
                        let strand = (next & !LEAF) >> 32;
                        return Some(time.saturating_add(self.leaves[strand as usize]));
                    }
                    next as u32
                }
                leaf if leaf & LEAF != 0 => {
                    self.running[thread] = NOTHING;
                    self.complete_leaf(phase, leaf & !LEAF, time);
                    continue;
                }
                number => number as u32,
            };
            let instance = &mut self.instances[number as usize];
            let next = self.steps[instance.at as usize];
            instance.at += 1;
            match next {
                Some(Step::Work(ns)) => return Some(time.saturating_add(ns)),
                Some(Step::Wait(first, count)) => {
                    if !self.is_over(phase, number, (first, count)) {
                        self.running[thread] = NOTHING;
                    }
                }
                Some(Step::End(task)) => {
                    if !instance.is_copy {
                        self.end(phase, task, time);
                    }
                }
                Some(Step::Create(child)) => {
                    instance.children += 1;
                    if self.leaves[child as usize] != NEVER {
                        let leaf = LEAF | u64::from(child) << 32 | u64::from(number);
                        self.make_ready(leaf, time, false);
                        continue;
                    }
                    let is_copy = instance.is_copy;
                    let created = self.instance(child, Some(number), is_copy);
                    let after = self.after.get(child as usize);
                    if !is_copy && after.is_some_and(|after| *after > 0) {
                        self.held.insert(child, created);
                    } else {
                        self.make_ready(created.into(), time, false);
                    }
                }
                None => {
                    self.running[thread] = NOTHING;
                    self.complete(phase, number, time);
                }
            }
        }
    }

    /// Whether everything that an instance waits for is complete. Otherwise, the instance is blocked.
    fn is_over(&mut self, phase: &Phase, number: u32, (first, count): (u32, u32)) -> bool {
        let instance = &mut self.instances[number as usize];
        if instance.is_copy {
            instance.missing = instance.children;
            return instance.children == 0;
        }
        let mut missing = 0;
        for strand in &phase.awaited[first as usize..][..count as usize] {
            missing += u32::from(self.waiters.wait(*strand, number));
        }
        instance.missing = missing;
        missing == 0
    }

    /// One of the strands that an instance waits for is complete.
    fn awaits_less(&mut self, number: u32, time: u64) {
        let missing = &mut self.instances[number as usize].missing;
        let was_last = *missing == 1;
        *missing = missing.saturating_sub(1);
        if was_last {
            self.make_ready(number.into(), time, true);
        }
    }

    /// A strand is complete.
    fn end(&mut self, phase: &Phase, strand: u32, time: u64) {
        if self.has_dependences {
            for next in &phase.strands()[strand as usize].successors {
                let after = &mut self.after[*next as usize];
                *after = after.saturating_sub(1);
                if *after == 0
                    && let Some(created) = self.held.remove(next)
                {
                    self.make_ready(created.into(), time, false);
                }
            }
        }
        if phase.awaited.is_empty() {
            return;
        }
        let mut list = self.waiters.end(strand);
        while let Some((waiter, rest)) = self.waiters.next(list) {
            self.awaits_less(waiter, time);
            list = rest;
        }
    }

    fn complete(&mut self, phase: &Phase, number: u32, time: u64) {
        let Instance { strand, parent, is_copy, .. } = self.instances[number as usize];
        if !is_copy {
            self.end(phase, strand, time);
        }
        if let Some(parent) = parent {
            self.complete_child(parent, time);
        }
    }

    /// A task that only works is complete: `leaf` is its strand and its creator.
    fn complete_leaf(&mut self, phase: &Phase, leaf: u64, time: u64) {
        let (strand, parent) = ((leaf >> 32) as u32, leaf as u32);
        if !self.instances[parent as usize].is_copy {
            self.end(phase, strand, time);
        }
        self.complete_child(parent, time);
    }

    #[inline]
    fn complete_child(&mut self, parent: u32, time: u64) {
        let creator = &mut self.instances[parent as usize];
        creator.children -= 1;
        if creator.is_copy {
            self.awaits_less(parent, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For any number of chunks and threads, all of the work is assigned.
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
            assert!(work.abs_diff(2_000_000_000) < 2_000_000, "{threads}: {work}");
        }
    }
}
