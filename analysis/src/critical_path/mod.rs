//! The longest chain of useful work: each thread, lock, team and task carries the longest chain to its present.
//!
//! A chain is a list of pieces of work, the newest first. Chains share their older parts, so that to copy one copies a
//! number. Once many pieces have come together, those that no chain branches off are summed up by place. So memory holds
//! what is alive, not what has been.

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::Ns;

use crate::model::sum::Sum;

/// The first piece of every chain.
const ROOT: u32 = 0;

/// Pieces that come together before they are summed up.
const MIN_PIECES: usize = 1 << 13;

/// Pieces that are kept for drawing, of all processes: a quarter of a GiB.
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
    /// A sample in the work that is at hand.
    Sample { before: u32, sample: u32, ns: u64 },
    /// Work at several places, summed up.
    Sum { before: u32, sums: Box<PieceSums> },
}

/// Work by place, and samples or functions by number.
#[derive(Clone, Debug, Default)]
struct PieceSums {
    places: Vec<(u32, u64)>,
    samples: Vec<(u32, u64)>,
}

/// Samples of a process that get numbers of their own; from here on, numbers are functions.
pub(crate) const MAX_SAMPLES: u32 = 1 << 31;

/// The function that a number means, if it is no sample's.
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

/// Work on a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Where in the program.
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

/// All pieces of chains that are alive.
#[derive(Debug)]
pub(crate) struct Chains {
    pieces: Vec<Piece>,
    /// The number of pieces that are summed up when they have come together.
    limit: usize,
    /// The least that `limit` may be.
    least: usize,
}

impl Default for Chains {
    fn default() -> Chains {
        Chains::with_limit(MIN_PIECES)
    }
}

impl Chains {
    /// Keeps as many pieces as one can draw, each by itself, where this many `processes` are drawn.
    pub(crate) fn for_drawing(processes: usize) -> Chains {
        Chains::with_limit((MAX_DRAWN / processes).max(MIN_PIECES))
    }

    fn with_limit(limit: usize) -> Chains {
        let root = Piece::Sum { before: ROOT, sums: Box::default() };
        Chains { pieces: vec![root], limit, least: limit }
    }

    /// The chain goes on with a step that worked for `ns`.
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

    /// A sample of this number and CPU time was taken in the work that the chain goes on with.
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

    /// Forgets what is in none of `alive`, which are all chains that will be used again, and sums up what has no branch.
    /// `names`: the functions of samples. Samples that are in none have their number until they are named.
    pub(crate) fn sum_up(&mut self, alive: &mut [&mut Chain], names: &FastMap<u32, u32>) {
        // How many chains and pieces go on from a piece. Pieces come after those before them.
        let mut uses = vec![0_u32; self.pieces.len()];
        for chain in alive.iter() {
            uses[chain.newest as usize] += 2;
        }
        for index in (1..self.pieces.len()).rev() {
            if uses[index] > 0 {
                uses[self.pieces[index].before() as usize] += 1;
            }
        }
        // A piece stays by itself if a chain ends there or several go on from there. Others are added to what follows.
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
        // To look at all that is alive costs no more than to make as many pieces.
        new.limit = self.least.max(new.pieces.len() * 2).max(alive.len() * 4);
        *self = new;
    }

    /// The chain's work in the order of time, as far as its pieces were not summed up. What goes on at one place is one step.
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
            // Where times in a trace go back, a thread may have met others before its work ended.
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

    /// The chain's CPU time by the number of a sample, or of a [`function`].
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
        let mut lanes = [Chain::default(); 3];
        let mut expected: [FastMap<u32, u64>; 3] = Default::default();
        let mut seed = 1_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for _ in 0..2000 {
            let (lane, place, ns) = (random(3) as usize, random(5) as u32, random(9));
            match random(4) {
                0 => {
                    let other = random(3) as usize;
                    if lanes[other].length > lanes[lane].length {
                        expected[lane] = expected[other].clone();
                    }
                    lanes[lane] = lanes[lane].max(lanes[other]);
                }
                _ => {
                    let step = Step { place, location: lane, begin: 0, end: 0 };
                    chains.extend(&mut lanes[lane], step, ns);
                    if ns > 0 {
                        *expected[lane].entry(place).or_default() += ns;
                    }
                }
            }
            if chains.is_full() {
                let [a, b, c] = &mut lanes;
                chains.sum_up(&mut [a, b, c], &FastMap::default());
                assert!(chains.pieces.len() <= 7, "{}", chains.pieces.len());
            }
        }
        for (lane, expected) in lanes.iter().zip(&expected) {
            assert_eq!(&chains.by_place(*lane), expected);
            assert_eq!(lane.length, expected.values().sum::<u64>());
        }
    }
}
