//! Predicts the time of loops with other schedule clauses.
//!
//! The work of a loop is known in pieces: its chunks, or each thread's block of a static loop. Within a piece, work is
//! assumed to be spread evenly over the iterations. To predict another clause, the same iterations are divided as
//! OpenMP 6.0, section 13.6.3, specifies. Only executions in which the team does nothing but the loop between two
//! barriers are used.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use super::list_scheduler::block_begin;
use super::min_clock::ThreadQueue;
use super::phase::Phase;
use crate::model::answers::{LoopAnswer, ScheduleTime};
use crate::model::histogram::Histogram;
use crate::model::place::Place;
use crate::model::place_id::PlaceId;
use crate::model::sum::Sum;

/// A `schedule` clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    /// One block per thread.
    Static,
    /// Chunks of this many iterations, assigned round-robin.
    StaticChunks(u64),
    /// Chunks of this many iterations, assigned to the first free thread.
    Dynamic(u64),
    /// Chunks of decreasing size, assigned to the first free thread.
    Guided,
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clause::Static => f.write_str("schedule(static)"),
            Clause::StaticChunks(chunk) => write!(f, "schedule(static, {chunk})"),
            Clause::Dynamic(chunk) => write!(f, "schedule(dynamic, {chunk})"),
            Clause::Guided => f.write_str("schedule(guided)"),
        }
    }
}

/// The clauses that are evaluated. If several save equally much, the first of them is recommended: assignments that do
/// not depend on the order of threads, and larger chunks, preserve more memory locality.
const CLAUSES: [Clause; 16] = [
    Clause::Static,
    Clause::Dynamic(4096),
    Clause::Dynamic(1024),
    Clause::Dynamic(256),
    Clause::Dynamic(64),
    Clause::Dynamic(16),
    Clause::Dynamic(4),
    Clause::Dynamic(1),
    Clause::Guided,
    Clause::StaticChunks(4096),
    Clause::StaticChunks(1024),
    Clause::StaticChunks(256),
    Clause::StaticChunks(64),
    Clause::StaticChunks(16),
    Clause::StaticChunks(4),
    Clause::StaticChunks(1),
];

/// If chunks are smaller than the known pieces, there must be at least this many per thread, so that the unknown
/// distribution of work within a piece matters less.
const MIN_PARTS: u64 = 16;

/// With more chunks per thread than this, assigning them is not simulated: threads finish at nearly the same time.
const MAX_CHUNKS: u64 = 64;

/// If the threads' finish times differ by less than this share, no clause balances the loop better.
const EVEN: f64 = 0.02;

/// The members' work besides the loop may differ by at most this share of the loop's time.
const MAX_BESIDES: f64 = 0.05;

/// The time with a clause that could not be evaluated for some execution.
const NOT_TRIED: u64 = u64::MAX;

/// The executions of a loop, with its times for each of [`CLAUSES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoopTimes {
    /// The number of executions that are completely known, and of others.
    known: u64,
    unknown: u64,
    /// The time with the loop's own clause.
    recorded: u64,
    with: [u64; CLAUSES.len()],
    /// Durations of all chunks; empty for static loops.
    lengths: Histogram,
}

impl LoopTimes {
    pub(crate) fn merge(&mut self, other: &LoopTimes) {
        self.known += other.known;
        self.unknown += other.unknown;
        self.recorded.grow_by(other.recorded);
        for (sum, more) in self.with.iter_mut().zip(&other.with) {
            sum.grow_by(*more);
        }
        self.lengths.merge(&other.lengths);
    }
}

/// The answers about loops with known executions, longest first.
pub(crate) fn answers(loops: &BTreeMap<Place, LoopTimes>) -> Vec<LoopAnswer> {
    let known = loops.iter().filter(|(_, times)| times.known > 0);
    let mut answers: Vec<LoopAnswer> = known
        .map(|(place, times)| {
            let schedules = CLAUSES.iter().zip(times.with).filter(|(_, ns)| *ns != NOT_TRIED);
            let schedules = schedules
                .map(|(clause, duration_ns)| ScheduleTime { clause: clause.to_string(), duration_ns });
            LoopAnswer {
                place: place.clone(),
                executions: times.known,
                not_known: times.unknown,
                recorded_ns: times.recorded,
                schedules: schedules.collect(),
                lengths: times.lengths.powers(),
            }
        })
        .collect();
    answers.sort_by_key(|row| Reverse(row.recorded_ns));
    answers
}

/// Adds the loops of a phase that was recorded with `size` threads.
pub(crate) fn add(loops: &mut BTreeMap<PlaceId, LoopTimes>, phase: &Phase, size: u32) {
    let mut places: Vec<PlaceId> = phase.loops.iter().map(|of_loop| of_loop.place).collect();
    for chunk in &phase.chunks {
        if !places.contains(&chunk.place) {
            places.push(chunk.place);
        }
    }
    let times = match &places[..] {
        [] => return,
        [_] => times(phase, size),
        _ => None,
    };
    let times = times.unwrap_or(LoopTimes { unknown: 1, ..LoopTimes::default() });
    for place in places {
        loops.entry(place).or_default().merge(&times);
    }
}

/// The times of a phase's only loop.
fn times(phase: &Phase, size: u32) -> Option<LoopTimes> {
    let threads = size as usize;
    let is_alone = phase.created == 0
        && phase.awaited.is_empty()
        && phase.held().next().is_none()
        && phase.in_sections == 0
        && phase.problems.is_empty()
        && phase.shared.len() == phase.chunks.len();
    if !is_alone || threads < 2 {
        return None;
    }
    let profile = Profile::of(phase, threads)?;
    let recorded = match profile.is_of_blocks {
        true => profile.pieces.iter().map(|piece| piece.ns).max().unwrap_or(0),
        false => profile.in_chunks(profile.recorded_works(), threads),
    };
    if phase.uneven(threads) as f64 > MAX_BESIDES * recorded as f64 {
        return None;
    }
    let mean = profile.work() / size as f64;
    let is_even = recorded as f64 <= (1.0 + EVEN) * mean;
    let enough = MIN_PARTS * u64::from(size);
    let is_too_coarse = |chunk: u64| {
        let chunks = profile.iterations().div_ceil(chunk);
        chunks > profile.pieces.len() as u64 && chunks < enough
    };
    let with = CLAUSES.map(|clause| match clause {
        Clause::Static if profile.is_of_blocks => recorded,
        Clause::StaticChunks(chunk) | Clause::Dynamic(chunk) if is_too_coarse(chunk) => NOT_TRIED,
        // Blocks that are even already cannot be balanced better: unevenness within the blocks is unknown.
        _ if is_even && profile.is_of_blocks => profile.with(clause, threads).max(recorded),
        _ => profile.with(clause, threads),
    });
    let mut lengths = Histogram::default();
    if !profile.is_of_blocks {
        profile.pieces.iter().for_each(|piece| lengths.add(piece.ns));
    }
    Some(LoopTimes { known: 1, unknown: 0, recorded, with, lengths })
}

/// Consecutive iterations, and their work.
#[derive(Clone, Copy, Debug)]
struct Piece {
    iterations: u64,
    ns: u64,
}

/// The work of a loop by iteration.
#[derive(Debug)]
struct Profile {
    pieces: Vec<Piece>,
    /// The number of iterations and the work before each piece; the last element contains the totals.
    before: Vec<(u64, f64)>,
    /// The pieces are the threads' blocks of a static loop, rather than chunks.
    is_of_blocks: bool,
    /// The time that the runtime takes to hand out a chunk.
    chunk_cost: f64,
}

impl Profile {
    /// `None` if the loop's iterations are not known.
    fn of(phase: &Phase, threads: usize) -> Option<Profile> {
        let (pieces, is_of_blocks) = match &phase.loops[..] {
            [of_loop] => {
                let begins = (0..=threads).map(|thread| block_begin(of_loop.count, threads, thread));
                let begins: Vec<u64> = begins.collect();
                let first = of_loop.members.first()?.0;
                let known = of_loop.members.iter().map(|(begin, _)| begin.wrapping_sub(first));
                // Threads without iterations are missing among the members.
                let is_block = known.zip(&begins).all(|(known, begin)| known == *begin);
                let with_any = begins.windows(2).filter(|of| of[1] > of[0]).count();
                if !is_block || of_loop.members.len() != with_any || of_loop.longest_chunk.is_some() {
                    return None;
                }
                let members = begins.windows(2).zip(&of_loop.members);
                let pieces = members.map(|(of, (_, ns))| Piece { iterations: of[1] - of[0], ns: *ns });
                (pieces.collect(), true)
            }
            _ => (pieces_of_chunks(phase)?, false),
        };
        let chunk_cost = phase.chunk_cost_ns as f64;
        let mut profile = Profile { pieces, before: Vec::new(), is_of_blocks, chunk_cost };
        let (mut iterations, mut work) = (0_u64, 0.0);
        for piece in &profile.pieces {
            profile.before.push((iterations, work));
            iterations = iterations.checked_add(piece.iterations).filter(|_| piece.iterations > 0)?;
            // The time of a chunk includes handing out the next one.
            let cost = if is_of_blocks { 0.0 } else { chunk_cost };
            work += (piece.ns as f64 - cost).max(0.0);
        }
        profile.before.push((iterations, work));
        (iterations > 0).then_some(profile)
    }

    fn iterations(&self) -> u64 {
        self.before.last().map_or(0, |(iterations, _)| *iterations)
    }

    fn work(&self) -> f64 {
        self.before.last().map_or(0.0, |(_, work)| *work)
    }

    /// The work of all iterations before `iteration`.
    fn work_before(&self, iteration: u64) -> f64 {
        self.work_at(iteration, self.behind(0, iteration))
    }

    /// The index of the first piece that begins after `iteration`, which does not lie before piece `from`.
    fn behind(&self, from: usize, iteration: u64) -> usize {
        // Mostly, it is one of the next pieces.
        const NEAR: usize = 4;
        let is_begun = |(first, _): &(u64, f64)| *first <= iteration;
        let rest = &self.before[from..];
        let near = rest.iter().take(NEAR).position(|piece| !is_begun(piece));
        from + near.unwrap_or_else(|| rest.partition_point(is_begun))
    }

    /// The work of all iterations before `iteration`, after which piece `next` begins.
    fn work_at(&self, iteration: u64, next: usize) -> f64 {
        let Some(([.., (first, work)], [(end, all), ..])) = self.before.split_at_checked(next) else {
            return self.work();
        };
        work + (all - work) * (iteration - first) as f64 / (end - first).max(1) as f64
    }

    fn in_blocks(&self, threads: usize) -> u64 {
        let begins = (0..=threads).map(|thread| block_begin(self.iterations(), threads, thread));
        let begins: Vec<f64> = begins.map(|begin| self.work_before(begin)).collect();
        begins.windows(2).map(|of| of[1] - of[0]).fold(0.0, f64::max) as u64
    }

    fn with(&self, clause: Clause, threads: usize) -> u64 {
        let count = self.iterations();
        let equal = |chunk: u64| {
            let chunks = count.div_ceil(chunk);
            (chunks <= MAX_CHUNKS * threads as u64)
                .then(|| (0..chunks).map(move |number| chunk.min(count - number * chunk)))
        };
        // When the other threads finish, the last chunk is half done on average.
        let nearly = |chunk: u64, cost: f64| {
            let chunks = count.div_ceil(chunk) as f64;
            let mean = self.work() / chunks;
            ((self.work() + chunks * cost) / threads as f64 + mean / 2.0) as u64
        };
        match clause {
            Clause::Static => self.in_blocks(threads),
            Clause::StaticChunks(chunk) => match equal(chunk) {
                Some(chunks) => self.in_turn(chunks, threads),
                None => nearly(chunk, 0.0),
            },
            Clause::Dynamic(chunk) => match equal(chunk) {
                Some(chunks) => self.in_chunks(self.works(chunks), threads),
                None => nearly(chunk, self.chunk_cost),
            },
            Clause::Guided => {
                let mut left = count;
                let chunks = std::iter::from_fn(|| {
                    let chunk = left.div_ceil(2 * threads as u64);
                    left -= chunk;
                    (chunk > 0).then_some(chunk)
                });
                self.in_chunks(self.works(chunks), threads)
            }
        }
    }

    /// The work of consecutive chunks of these sizes.
    fn works(&self, chunks: impl Iterator<Item = u64>) -> impl Iterator<Item = f64> {
        let (mut end, mut before, mut next) = (0, 0.0, 0);
        chunks.map(move |iterations| {
            end += iterations;
            next = self.behind(next, end);
            let until_end = self.work_at(end, next);
            until_end - std::mem::replace(&mut before, until_end)
        })
    }

    /// The work of each piece.
    fn recorded_works(&self) -> impl Iterator<Item = f64> {
        self.before.windows(2).map(|of| of[1].1 - of[0].1)
    }

    /// The time if the first free thread takes the next chunk, whose work is given.
    fn in_chunks(&self, works: impl Iterator<Item = f64>, threads: usize) -> u64 {
        let mut free = ThreadQueue::idle(threads);
        let mut last = 0;
        for work in works {
            let (time, thread) = free.first();
            let end = time.saturating_add((work + self.chunk_cost) as u64);
            free.set(thread, end);
            last = last.max(end);
        }
        last
    }

    /// The time if each thread takes every `threads`-th chunk.
    fn in_turn(&self, chunks: impl Iterator<Item = u64>, threads: usize) -> u64 {
        let mut times = vec![0.0; threads];
        for (number, work) in self.works(chunks).enumerate() {
            times[number % threads] += work;
        }
        times.into_iter().fold(0.0, f64::max) as u64
    }
}

/// The chunks of a dynamic or guided loop, sorted by iteration; `None` if some are unknown.
fn pieces_of_chunks(phase: &Phase) -> Option<Vec<Piece>> {
    let strands = phase.strands();
    let mut chunks: Vec<(i64, Piece)> = Vec::with_capacity(phase.chunks.len());
    for chunk in &phase.chunks {
        let ns = strands.get(chunk.strand as usize)?.work();
        // Loops may count from negative numbers, and downwards.
        chunks.push((chunk.start.cast_signed(), Piece { iterations: chunk.iterations, ns }));
    }
    let is_down = chunks.first()?.0 > chunks.last()?.0;
    chunks.sort_by_key(|(start, _)| *start);
    if is_down {
        chunks.reverse();
    }
    Some(chunks.into_iter().map(|(_, piece)| piece).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaling::phase::At;

    fn times_of(phase: &Phase, size: u32) -> LoopTimes {
        let mut loops = BTreeMap::new();
        add(&mut loops, phase, size);
        assert_eq!(loops.len(), 1);
        loops.remove(&7).expect("the loop")
    }

    fn best(times: &LoopTimes) -> Option<(String, u64)> {
        let answers = answers(&BTreeMap::from([(Place::default(), times.clone())]));
        let (with, saved) = answers[0].best()?;
        Some((with.clause.clone(), saved))
    }

    fn with(times: &LoopTimes, clause: Clause) -> u64 {
        let index = CLAUSES.iter().position(|known| *known == clause).expect("tried");
        times.with[index]
    }

    /// A static loop whose threads have this work.
    fn blocks(count: u64, works: &[u64]) -> Phase {
        let mut phase = Phase::default();
        let threads = works.len();
        for (thread, ns) in works.iter().enumerate() {
            let [begin, end] = [thread, thread + 1].map(|thread| block_begin(count, threads, thread));
            phase.static_chunk(thread, 7, [count, 100 + begin, end - begin]);
            phase.work(thread, At::Static(7), *ns);
        }
        phase
    }

    /// Chunks, given by number of iterations and work.
    fn chunks(chunks: impl Iterator<Item = (u64, u64)>) -> Phase {
        let mut phase = Phase::default();
        let mut start = 0;
        for (iterations, ns) in chunks {
            let strand = phase.share();
            phase.chunk(strand, 7, [start, iterations]);
            phase.work(0, At::Strand(strand), ns);
            start += iterations;
        }
        phase
    }

    #[test]
    fn uneven_blocks_are_handed_out_on_demand() {
        let times = times_of(&blocks(1000, &[1000, 3000, 5000, 7000]), 4);
        assert_eq!(times.recorded, 7000);
        assert_eq!(with(&times, Clause::Static), 7000);
        // There are too few chunks of 16 to predict. In the last chunks of 4, each iteration takes 28 ns.
        assert_eq!(with(&times, Clause::Dynamic(16)), NOT_TRIED);
        let dynamic = with(&times, Clause::Dynamic(4));
        assert!((4000..4056).contains(&dynamic), "{dynamic}");
        let (clause, saved) = best(&times).expect("one is better");
        assert_eq!(clause, "schedule(dynamic, 4)");
        assert!((2850..=3000).contains(&saved), "{clause}: {saved}");
        assert_eq!(best(&times_of(&blocks(1000, &[1000; 4]), 4)), None);
    }

    #[test]
    fn chunks_that_leave_one_thread_behind_are_made_smaller() {
        // Three chunks for two threads.
        let times = times_of(&chunks((0..3).map(|_| (100, 30_000))), 2);
        assert_eq!(times.recorded, 60_000);
        assert_eq!(with(&times, Clause::Static), 45_000);
        assert_eq!(best(&times), Some(("schedule(static)".to_owned(), 15_000)));
        // The same, but in a static loop one thread would have all of the work.
        let works = [10, 10, 10, 90_000, 90_000, 90_000];
        let times = times_of(&chunks(works.into_iter().map(|ns| (64, ns))), 2);
        assert_eq!(times.recorded, 180_010);
        let (clause, saved) = best(&times).expect("one is better");
        assert_eq!(clause, "schedule(dynamic, 4)", "{times:?}");
        assert!((40_000..=45_010).contains(&saved), "{saved}");
    }

    #[test]
    fn loops_that_count_down_are_in_the_order_of_their_iterations() {
        let mut phase = Phase::default();
        for (number, ns) in [1000, 1000, 5000, 5000].into_iter().enumerate() {
            let strand = phase.share();
            phase.chunk(strand, 7, [(-10 * number as i64).cast_unsigned(), 10]);
            phase.work(0, At::Strand(strand), ns);
        }
        let times = times_of(&phase, 2);
        assert_eq!((times.recorded, with(&times, Clause::Static)), (6000, 10_000));
    }

    #[test]
    fn what_else_the_team_does_hides_what_a_clause_would_save() {
        let mut phase = blocks(1000, &[1000, 3000]);
        phase.work(0, At::Member, 500);
        assert_eq!(times_of(&phase, 2), LoopTimes { unknown: 1, ..LoopTimes::default() });
        let mut phase = blocks(1000, &[1000, 3000]);
        phase.static_chunk(0, 8, [10, 0, 5]);
        let mut loops = BTreeMap::new();
        add(&mut loops, &phase, 2);
        assert_eq!(loops.values().map(|of_loop| of_loop.unknown).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn the_work_before_an_iteration_is_that_of_the_pieces() {
        let profile = Profile::of(&chunks([(10, 100), (5, 0), (10, 300)].into_iter()), 2).expect("known");
        let at = [0, 5, 10, 12, 15, 20, 25, 30].map(|iteration| profile.work_before(iteration));
        assert_eq!(at, [0.0, 50.0, 100.0, 100.0, 100.0, 250.0, 400.0, 400.0]);
    }
}
