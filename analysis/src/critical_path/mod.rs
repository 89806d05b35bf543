//! The critical path: each thread, lock, team and task carries the longest chain of useful work that leads to its
//! present.
//!
//! A chain is a linked list of pieces of work, newest first. Chains share their older pieces, so copying a chain copies
//! only a number. Once many pieces have accumulated, runs of pieces without branches are merged into sums by place. So
//! memory holds only the chains in use, not the whole history.

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::Ns;

use crate::model::sum::Sum;

/// The first piece of every chain.
const ROOT: u32 = 0;

/// The smallest number of pieces after which they are merged.
const MIN_PIECES: usize = 1 << 13;

/// Number of pieces that are kept for drawing paths, over all processes: a quarter of a GiB.
const MAX_DRAWN: usize = 1 << 23;

/// A chain: its length and its newest piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Useful nanoseconds.
    pub(crate) length: u64,
    newest: u32,
}

impl Chain {
    /// The longer of two.
    pub(crate) fn max(self, other: Chain) -> Chain {
        match other.length > self.length {
            true => other,
            false => self,
        }
    }
}

#[derive(Clone, Debug)]
enum Piece {
    /// Work at one place.
    Work(Work),
    /// A sample that was taken in the work that comes next on the chain.
    Sample { before: u32, sample: u32, ns: u64 },
    /// Work at several places, merged into sums.
    Sum { before: u32, sums: Box<PieceSums> },
}

/// Work by place, and CPU time by number of a sample or function.
#[derive(Clone, Debug, Default)]
struct PieceSums {
    places: Vec<(u32, u64)>,
    samples: Vec<(u32, u64)>,
}

/// Numbers below are samples, numbers from here on are functions.
pub(crate) const MAX_SAMPLES: u32 = 1 << 31;

/// The function with this number; `None` if the number is a sample's.
pub(crate) fn function(number: u32) -> Option<u32> {
    number.checked_sub(MAX_SAMPLES + 1)
}

/// Work of one thread at one place.
#[derive(Clone, Copy, Debug)]
struct Work {
    before: u32,
    place: u32,
    ns: u64,
    /// The thread's location.
    location: u32,
    end: Ns,
}

/// A piece of work on a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The place in the program.
    pub(crate) place: u32,
    /// The thread's location.
    pub(crate) location: usize,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
}

impl Piece {
    fn before(&self) -> u32 {
        match self {
            Piece::Work(work) => work.before,
            Piece::Sample { before, .. } | Piece::Sum { before, .. } => *before,
        }
    }

    fn add_to(&self, places: &mut FastMap<u32, u64>, samples: &mut FastMap<u32, u64>) {
        match self {
            Piece::Work(work) => places.entry(work.place).or_default().grow_by(work.ns),
            Piece::Sample { sample, ns, .. } => samples.entry(*sample).or_default().grow_by(*ns),
            Piece::Sum { sums, .. } => {
                for (place, ns) in &sums.places {
                    places.entry(*place).or_default().grow_by(*ns);
                }
                for (sample, ns) in &sums.samples {
                    samples.entry(*sample).or_default().grow_by(*ns);
                }
            }
        }
    }
}

/// The pieces of all chains.
#[derive(Debug)]
pub(crate) struct Chains {
    pieces: Vec<Piece>,
    /// The number of pieces at which they are merged next.
    limit: usize,
    /// The lower bound of `limit`.
    least: usize,
}

impl Default for Chains {
    fn default() -> Chains {
        Chains::with_limit(MIN_PIECES)
    }
}

impl Chains {
    /// Keeps single pieces up to the number that can be drawn, if the paths of this many `processes` are drawn.
    pub(crate) fn for_drawing(processes: usize) -> Chains {
        Chains::with_limit((MAX_DRAWN / processes).max(MIN_PIECES))
    }

    fn with_limit(limit: usize) -> Chains {
        let root = Piece::Sum { before: ROOT, sums: Box::default() };
        Chains { pieces: vec![root], limit, least: limit }
    }

    /// Extends the chain by a step that worked for `ns`.
    pub(crate) fn extend(&mut self, chain: &mut Chain, step: Step, ns: u64) {
        if ns == 0 {
            return;
        }
        chain.length.grow_by(ns);
        let newest = u32::try_from(self.pieces.len()).expect("fewer pieces than the limit");
        self.pieces.push(Piece::Work(Work {
            before: chain.newest,
            place: step.place,
            ns,
            location: step.location as u32,
            end: step.end,
        }));
        chain.newest = newest;
    }

    /// Adds a sample with this number and CPU time. It was taken in the work that will extend the chain next.
    pub(crate) fn sample(&mut self, chain: &mut Chain, sample: u32, ns: u64) {
        let newest = u32::try_from(self.pieces.len()).expect("fewer pieces than the limit");
        let before = chain.newest;
        self.pieces.push(Piece::Sample { before, sample, ns });
        chain.newest = newest;
    }

    /// Whether it is time for [`Chains::sum_up`].
    pub(crate) fn is_full(&self) -> bool {
        self.pieces.len() > self.limit
    }

    /// Drops the pieces that no chain of `alive` (all chains that are still in use) reaches, and replaces runs without branches
    /// by their sums per place.
    /// `names`: the functions of samples. Samples that are in none have their number until they are named.
    pub(crate) fn sum_up(&mut self, alive: &mut [&mut Chain], names: &FastMap<u32, u32>) {
        // Counts the chains and pieces that continue from each piece. A piece comes after its predecessors.
        let mut uses = vec![0_u32; self.pieces.len()];
        for chain in alive.iter() {
            uses[chain.newest as usize] += 2;
        }
        for index in (1..self.pieces.len()).rev() {
            if uses[index] > 0 {
                uses[self.pieces[index].before() as usize] += 1;
            }
        }
        // A piece stays separate if a chain ends there or several continue from there. Other pieces are merged into
        // their successor.
        let mut new = Chains::with_limit(self.least);
        let mut moved = vec![ROOT; self.pieces.len()];
        let (mut places, mut samples) = (FastMap::default(), FastMap::default());
        for index in 1..self.pieces.len() {
            if uses[index] < 2 {
                continue;
            }
            places.clear();
            samples.clear();
            let mut piece = &self.pieces[index];
            piece.add_to(&mut places, &mut samples);
            while piece.before() != ROOT && uses[piece.before() as usize] < 2 {
                piece = &self.pieces[piece.before() as usize];
                piece.add_to(&mut places, &mut samples);
            }
            let mut functions = FastMap::<_, u64>::default();
            for (sample, ns) in &samples {
                let named = names.get(sample).map(|function| MAX_SAMPLES + 1 + function);
                functions.entry(named.unwrap_or(*sample)).or_default().grow_by(*ns);
            }
            moved[index] = new.pieces.len() as u32;
            new.pieces.push(Piece::Sum {
                before: moved[piece.before() as usize],
                sums: Box::new(PieceSums { places: sorted(&places), samples: sorted(&functions) }),
            });
        }
        for chain in alive.iter_mut() {
            chain.newest = moved[chain.newest as usize];
        }
        // Then looking at all live pieces costs no more than creating as many pieces did.
        new.limit = self.least.max(new.pieces.len() * 2).max(alive.len() * 4);
        *self = new;
    }

    /// The chain's work in chronological order, as far as its pieces were not merged. Consecutive work at one place is
    /// one step.
    pub(crate) fn steps(&self, chain: Chain) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut index = chain.newest;
        loop {
            let work = match &self.pieces[index as usize] {
                Piece::Work(work) => work,
                Piece::Sample { before, .. } => {
                    index = *before;
                    continue;
                }
                Piece::Sum { .. } => break,
            };
            index = work.before;
            let begin = work.end - work.ns.cast_signed();
            let location = work.location as usize;
            // If timestamps go backwards, a thread may have met others before its work ended.
            let end = steps.last().map_or(work.end, |next| next.begin.min(work.end));
            if begin >= end {
                continue;
            }
            match steps.last_mut() {
                Some(next) if (next.place, next.location, next.begin) == (work.place, location, end) => {
                    next.begin = begin;
                }
                _ => steps.push(Step { place: work.place, location, begin, end }),
            }
        }
        steps.reverse();
        steps
    }

    /// The chain's work by place.
    pub(crate) fn by_place(&self, chain: Chain) -> FastMap<u32, u64> {
        self.sums(chain).0
    }

    /// The chain's CPU time by number of a sample or, see [`function`], of a function.
    pub(crate) fn samples(&self, chain: Chain) -> Vec<(u32, u64)> {
        sorted(&self.sums(chain).1)
    }

    fn sums(&self, chain: Chain) -> (FastMap<u32, u64>, FastMap<u32, u64>) {
        let (mut places, mut samples) = (FastMap::default(), FastMap::default());
        let mut index = chain.newest;
        loop {
            let piece = &self.pieces[index as usize];
            piece.add_to(&mut places, &mut samples);
            if index == ROOT {
                return (places, samples);
            }
            index = piece.before();
        }
    }
}

fn sorted(sums: &FastMap<u32, u64>) -> Vec<(u32, u64)> {
    let mut sums: Vec<_> = sums.iter().map(|(number, ns)| (*number, *ns)).collect();
    sums.sort_unstable();
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_a_chain_survive_summing_up() {
        let mut chains = Chains::with_limit(16);
        let mut threads = [Chain::default(); 3];
        let mut expected: [FastMap<u32, u64>; 3] = Default::default();
        let mut seed = 1_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for _ in 0..2000 {
            let (thread, place, ns) = (random(3) as usize, random(5) as u32, random(9));
            match random(4) {
                0 => {
                    let other = random(3) as usize;
                    if threads[other].length > threads[thread].length {
                        expected[thread] = expected[other].clone();
                    }
                    threads[thread] = threads[thread].max(threads[other]);
                }
                _ => {
                    let step = Step { place, location: thread, begin: 0, end: 0 };
                    chains.extend(&mut threads[thread], step, ns);
                    if ns > 0 {
                        *expected[thread].entry(place).or_default() += ns;
                    }
                }
            }
            if chains.is_full() {
                let [a, b, c] = &mut threads;
                chains.sum_up(&mut [a, b, c], &FastMap::default());
                assert!(chains.pieces.len() <= 7, "{}", chains.pieces.len());
            }
        }
        for (thread, expected) in threads.iter().zip(&expected) {
            assert_eq!(&chains.by_place(*thread), expected);
            assert_eq!(thread.length, expected.values().sum::<u64>());
        }
    }
}
