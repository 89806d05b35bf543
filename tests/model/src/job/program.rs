//! Programs of several ranks.

use crate::random::Random;

/// A job.
#[derive(Clone, Debug)]
pub struct Program {
    /// The number of ranks.
    pub ranks: usize,
    /// The ranks below this one share a communicator, and so do the others.
    pub split: usize,
    /// What the ranks do.
    pub steps: Vec<Step>,
}

/// What some ranks do. Costs are times after everything that a call waits for.
#[derive(Clone, Debug)]
pub enum Step {
    /// A rank computes in serial code.
    Serial {
        /// The rank.
        rank: usize,
        /// How long.
        ns: u64,
    },
    /// A rank executes a parallel region of two threads.
    Region {
        /// The rank.
        rank: usize,
        /// The region's number: regions with one number are one place.
        region: usize,
        /// How long each thread works before each barrier; the last barrier is that at the region's end.
        work: Vec<[u64; 2]>,
    },
    /// A message.
    Message {
        /// The sender.
        from: usize,
        /// How it is sent, and at what cost.
        send: (Mode, u64),
        /// The receiver.
        to: usize,
        /// The cost of receiving it.
        cost: u64,
    },
    /// Two messages of one sender, which are received in the other order.
    WrongOrder {
        /// The sender.
        from: usize,
        /// The costs of sending.
        sends: [u64; 2],
        /// The serial code of the sender between them.
        between: u64,
        /// The receiver.
        to: usize,
        /// The costs of receiving.
        costs: [u64; 2],
    },
    /// A rank posts two receives and waits for both.
    Several {
        /// The receiver.
        to: usize,
        /// The costs of its three calls.
        costs: [u64; 3],
        /// The senders, and at what cost they send.
        from: [(usize, (Mode, u64)); 2],
    },
    /// Two ranks post receives, send to each other, and wait for what they receive.
    Exchange {
        /// The ranks.
        ranks: [usize; 2],
        /// The costs of the calls of each: `MPI_Irecv`, `MPI_Send`, `MPI_Wait`.
        costs: [[u64; 3]; 2],
    },
    /// A collective operation.
    Collective {
        /// The operation.
        kind: Kind,
        /// The communicator: of all ranks, or of those on one side of the split.
        of: Members,
        /// The root, as a rank of the job.
        root: usize,
        /// The costs, by rank of the job.
        costs: Vec<u64>,
    },
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The library copies the message.
    Buffered,
    /// `MPI_Send`, which waits for the receiver.
    Rendezvous,
    /// `MPI_Ssend`.
    Synchronous,
}

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Allreduce`.
    Allreduce,
    /// `MPI_Bcast`.
    Bcast,
    /// `MPI_Reduce`.
    Reduce,
    /// `MPI_Scan`.
    Scan,
    /// `MPI_Finalize`, which waits for all ranks.
    Finalize,
    /// `MPI_Finalize`, which waits for nobody.
    FreeFinalize,
}

/// The members of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// All ranks.
    All,
    /// Those below the split.
    Below,
    /// The others.
    Above,
}

impl Program {
    /// The program of a seed.
    pub fn generate(seed: u64) -> Program {
        let mut random = Random::new(seed);
        let ranks = 2 + random.below(4) as usize;
        let mut program =
            Program { ranks, split: 1 + random.below(ranks as u64 - 1) as usize, steps: Vec::new() };
        for _ in 0..8 + random.below(25) {
            program.compute(&mut random);
            program.communicate(&mut random);
        }
        program.compute(&mut random);
        let kind = [Kind::Finalize, Kind::FreeFinalize][random.below(2) as usize];
        if random.chance(80) {
            program.collective(kind, Members::All, &mut random);
        }
        program
    }

    /// The ranks of a communicator, in order.
    pub fn members(&self, of: Members) -> std::ops::Range<usize> {
        match of {
            Members::All => 0..self.ranks,
            Members::Below => 0..self.split,
            Members::Above => self.split..self.ranks,
        }
    }

    fn compute(&mut self, random: &mut Random) {
        for rank in 0..self.ranks {
            // Sometimes a rank goes on at once.
            if random.chance(90) {
                self.steps.push(Step::Serial { rank, ns: 1 + random.below(60) });
            }
            while random.chance(35) {
                let barriers = 1 + random.below(3);
                let work = (0..barriers).map(|_| [random.below(40), random.below(40)]).collect();
                self.steps.push(Step::Region { rank, region: random.below(2) as usize, work });
                self.steps.push(Step::Serial { rank, ns: random.below(20) });
            }
        }
    }

    fn communicate(&mut self, random: &mut Random) {
        let size = self.ranks as u64;
        let from = random.below(size) as usize;
        let to = (from + 1 + random.below(size - 1) as usize) % self.ranks;
        let cost = |random: &mut Random| 1 + random.below(12);
        let mode = |random: &mut Random| {
            [Mode::Buffered, Mode::Rendezvous, Mode::Synchronous][random.below(3) as usize]
        };
        match random.below(7) {
            0 | 1 => {
                let send = (mode(random), cost(random));
                self.steps.push(Step::Message { from, send, to, cost: cost(random) });
            }
            2 => {
                let sends = [cost(random), cost(random)];
                let costs = [cost(random), cost(random)];
                self.steps.push(Step::WrongOrder { from, sends, between: random.below(50), to, costs });
            }
            3 => {
                let others: Vec<usize> = (0..self.ranks).filter(|rank| *rank != to).collect();
                let other = others[random.below(others.len() as u64) as usize];
                let from = [from, other].map(|rank| (rank, (mode(random), cost(random))));
                self.steps.push(Step::Several { to, costs: [1, 2, cost(random)], from });
            }
            4 => {
                let costs = [(); 2].map(|()| [(); 3].map(|()| cost(random)));
                self.steps.push(Step::Exchange { ranks: [from, to], costs });
            }
            _ => {
                let kinds = [Kind::Barrier, Kind::Allreduce, Kind::Bcast, Kind::Reduce, Kind::Scan];
                let kind = kinds[random.below(5) as usize];
                let of =
                    [Members::All, Members::All, Members::Below, Members::Above][random.below(4) as usize];
                self.collective(kind, of, random);
            }
        }
    }

    fn collective(&mut self, kind: Kind, of: Members, random: &mut Random) {
        let members = self.members(of);
        let root = members.start + random.below(members.len() as u64) as usize;
        let costs = (0..self.ranks).map(|_| 1 + random.below(12)).collect();
        self.steps.push(Step::Collective { kind, of, root, costs });
    }
}
