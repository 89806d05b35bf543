//! Executes programs of several ranks.

use crate::job::program::{Kind, Members, Mode, Program, Step};

/// How long `MPI_Init` takes, with the call that splits the communicator.
pub const START: [u64; 2] = [9, 5];
/// How long each process lives after its last call or region.
pub const REST: u64 = 5;

/// What came of a program.
#[derive(Clone, Debug)]
pub struct Run {
    /// By rank.
    pub ranks: Vec<Rank>,
    /// Of each operation in which all ranks wait for each other, the number of each rank's call.
    pub common: Vec<Vec<usize>>,
    /// What its calls did.
    pub decisions: Decisions,
}

/// What a rank did.
#[derive(Clone, Debug, Default)]
pub struct Rank {
    /// Its calls.
    pub calls: Vec<Call>,
    /// Its regions.
    pub regions: Vec<Region>,
    /// What it computed before each call, and after the last.
    pub intervals: Vec<Interval>,
    /// When it ended.
    pub end: u64,
    now: u64,
}

/// What a rank computes between two calls.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// The whole time.
    pub ns: u64,
    /// The time in each region.
    pub regions: [u64; 2],
    /// The time that its threads wait because of imbalance.
    pub imbalance: u64,
}

/// A parallel region.
#[derive(Clone, Debug)]
pub struct Region {
    /// Its number.
    pub region: usize,
    /// When it began.
    pub begin: u64,
    /// When each thread arrived at each barrier. A barrier takes a nanosecond after the last one.
    pub arrivals: Vec<[u64; 2]>,
    /// When it ended.
    pub end: u64,
}

impl Region {
    /// When the work before each barrier began, and when each thread arrived there.
    pub fn phases(&self) -> impl Iterator<Item = (u64, [u64; 2])> {
        let ends = self.arrivals.iter().map(|arrivals| arrivals[0].max(arrivals[1]) + 1);
        let begins = std::iter::once(self.begin).chain(ends);
        begins.zip(self.arrivals.iter().copied())
    }
}

/// A call of MPI.
#[derive(Clone, Debug)]
pub struct Call {
    /// The function.
    pub function: &'static str,
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// What it communicates.
    pub of: Of,
    /// What is a wait state: for which rank, and until when.
    pub wait: Option<(usize, u64)>,
    /// The rank that ended the wait, and until when: that is on the critical path.
    pub ended_by: Option<(usize, u64)>,
}

/// What a call communicates.
#[derive(Clone, Debug)]
pub enum Of {
    /// Nothing.
    Nothing,
    /// A message to or from this rank, with this tag.
    Peer(usize, u64),
    /// Requests: their handles, and of each the peer and tag.
    Requests(Vec<(u64, usize, u64)>),
    /// An operation of a communicator with this root.
    All(Members, Option<usize>),
}

/// What a trace shows of calls that may or may not wait: only what they did.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// Of each standard send: whether it waited for its receiver, and the time after that.
    pub sends: Vec<(bool, u64)>,
    /// The times after the last rank came to `MPI_Finalize`; empty unless all waited.
    pub finalize: Vec<u64>,
}

/// What is executed instead of the program.
#[derive(Clone, Debug, Default)]
pub struct Changed {
    /// The computation, by rank and interval.
    pub intervals: Option<Vec<Vec<u64>>>,
    /// Messages are there when they are received.
    pub no_late_senders: bool,
    /// Calls that communicate have no costs.
    pub ideal: bool,
    /// What calls did in the run that is changed; `None` in that run.
    pub decisions: Option<Decisions>,
}

struct Executor<'p> {
    program: &'p Program,
    changed: &'p Changed,
    ranks: Vec<Rank>,
    common: Vec<Vec<usize>>,
    decisions: Decisions,
}

/// The begin of a call of a rank: the rank and the time.
type Begin = (usize, u64);

impl Program {
    /// Executes the program.
    pub fn run(&self, changed: &Changed) -> Run {
        let ranks = vec![Rank { intervals: vec![Interval::default()], ..Rank::default() }; self.ranks];
        let decisions = Decisions::default();
        let mut executor = Executor { program: self, changed, ranks, common: Vec::new(), decisions };
        for rank in 0..self.ranks {
            for (function, cost) in ["MPI_Init", "MPI_Comm_split"].into_iter().zip(START) {
                let begin = executor.begin(rank);
                executor.call(rank, function, begin, begin + cost, Of::Nothing);
            }
        }
        self.steps.iter().for_each(|step| executor.step(step));
        for rank in 0..self.ranks {
            executor.ranks[rank].compute(REST);
            executor.ranks[rank].end = executor.begin(rank);
        }
        Run { ranks: executor.ranks, common: executor.common, decisions: executor.decisions }
    }
}

impl Rank {
    fn compute(&mut self, ns: u64) {
        self.intervals.last_mut().expect("an interval").ns += ns;
    }

    fn region(&mut self, region: usize, work: &[[u64; 2]]) {
        let interval = self.intervals.last_mut().expect("an interval");
        let begin = self.now + interval.ns;
        let mut end = begin;
        let mut all = Vec::new();
        for work in work {
            let arrivals = work.map(|work| end + 1 + work);
            let last = arrivals[0].max(arrivals[1]);
            interval.imbalance += arrivals.iter().map(|arrival| last - arrival).sum::<u64>();
            all.push(arrivals);
            end = last + 1;
        }
        interval.ns += end - begin;
        interval.regions[region] += end - begin;
        self.regions.push(Region { region, begin, arrivals: all, end });
    }
}

impl Executor<'_> {
    /// When the rank comes to its next call.
    fn begin(&self, rank: usize) -> u64 {
        let (of, changed) = (&self.ranks[rank], self.changed.intervals.as_ref());
        let number = of.calls.len();
        of.now + changed.map_or(of.intervals[number].ns, |intervals| intervals[rank][number])
    }

    fn call(&mut self, rank: usize, function: &'static str, begin: u64, end: u64, of: Of) -> &mut Call {
        let rank = &mut self.ranks[rank];
        rank.now = end;
        rank.intervals.push(Interval::default());
        rank.calls.push(Call { function, begin, end, of, wait: None, ended_by: None });
        rank.calls.last_mut().expect("the call")
    }

    fn cost(&self, cost: u64) -> u64 {
        if self.changed.ideal { 0 } else { cost }
    }

    /// A call that needs what others begin. `wait`: whom it waits for first.
    fn needing(
        &mut self,
        rank: usize,
        function: &'static str,
        (needed, cost): (&[Begin], u64),
        of: Of,
    ) -> &mut Call {
        let begin = self.begin(rank);
        let last = needed.iter().map(|(rank, time)| (*time, *rank)).max();
        let end = begin.max(last.map_or(0, |(time, _)| time)) + cost;
        let wait = last.filter(|(time, _)| *time > begin).map(|(time, rank)| (rank, time));
        let call = self.call(rank, function, begin, end, of);
        call.wait = wait;
        call.ended_by = wait;
        call
    }

    /// Sends a message that the other one begins to receive at some time; `None` if that depends on the send.
    fn send(
        &mut self,
        rank: usize,
        (to, received): (usize, Option<u64>),
        tag: u64,
        (mode, cost): (Mode, u64),
    ) -> Begin {
        let begin = self.begin(rank);
        let needed: Vec<Begin> = received.map(|received| (to, received)).into_iter().collect();
        let of = Of::Peer(to, tag);
        if mode == Mode::Synchronous {
            let cost = self.cost(cost);
            self.needing(rank, "MPI_Ssend", (&needed, cost), of);
            return (rank, begin);
        }
        let number = self.decisions.sends.len();
        let known = self.changed.decisions.as_ref().map(|decisions| decisions.sends[number]);
        let (waits, rest) = known.unwrap_or_else(|| {
            let received = received.unwrap_or(u64::MAX);
            let end = if mode == Mode::Buffered { begin } else { begin.max(received) } + cost;
            let waits = begin < received && received < end;
            (waits, if waits { end - received } else { end - begin })
        });
        self.decisions.sends.push((waits, rest));
        let rest = self.cost(rest);
        self.needing(rank, "MPI_Send", (if waits { &needed[..] } else { &[] }, rest), of);
        (rank, begin)
    }

    fn receive(&mut self, rank: usize, function: &'static str, sent: &[Begin], cost: u64, of: Of) {
        let cost = self.cost(cost);
        let sent = if self.changed.no_late_senders { &[][..] } else { sent };
        self.needing(rank, function, (sent, cost), of);
    }

    fn post(&mut self, rank: usize, (from, tag): (usize, u64), cost: u64) -> u64 {
        let cost = self.cost(cost);
        let call = self.needing(rank, "MPI_Irecv", (&[], cost), Of::Peer(from, tag));
        call.begin
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Serial { rank, ns } => self.ranks[*rank].compute(*ns),
            Step::Region { rank, region, work } => self.ranks[*rank].region(*region, work),
            Step::Message { from, send, to, cost } => {
                let received = self.begin(*to);
                let sent = self.send(*from, (*to, Some(received)), 1, *send);
                self.receive(*to, "MPI_Recv", &[sent], *cost, Of::Peer(*from, 1));
            }
            Step::WrongOrder { from, sends, between, to, costs } => {
                let received = self.begin(*to);
                let first = self.send(*from, (*to, None), 3, (Mode::Buffered, sends[0]));
                self.ranks[*from].compute(*between);
                let second = self.send(*from, (*to, Some(received)), 4, (Mode::Buffered, sends[1]));
                self.receive(*to, "MPI_Recv", &[second], costs[0], Of::Peer(*from, 4));
                self.receive(*to, "MPI_Recv", &[first], costs[1], Of::Peer(*from, 3));
            }
            Step::Several { to, costs, from } => {
                let mut requests = Vec::new();
                let mut posted = Vec::new();
                for (number, (rank, _)) in from.iter().enumerate() {
                    let tag = 5 + number as u64;
                    posted.push(self.post(*to, (*rank, tag), costs[number]));
                    requests.push((0xa0 + tag, *rank, tag));
                }
                let mut sent = Vec::new();
                for ((rank, send), ((_, _, tag), posted)) in from.iter().zip(requests.iter().zip(posted)) {
                    sent.push(self.send(*rank, (*to, Some(posted)), *tag, *send));
                }
                self.receive(*to, "MPI_Waitall", &sent, costs[2], Of::Requests(requests));
            }
            Step::Exchange { ranks, costs } => {
                let others = [ranks[1], ranks[0]];
                let posted = [0, 1].map(|it| self.post(ranks[it], (others[it], 8), costs[it][0]));
                let sends = [0, 1].map(|it| {
                    let received = Some(posted[1 - it]);
                    self.send(ranks[it], (others[it], received), 8, (Mode::Buffered, costs[it][1]))
                });
                for it in [0, 1] {
                    let request = Of::Requests(vec![(0xa8, others[it], 8)]);
                    self.receive(ranks[it], "MPI_Wait", &[sends[1 - it]], costs[it][2], request);
                }
            }
            Step::Collective { kind, of, root, costs } => self.collective(*kind, *of, *root, costs),
        }
    }

    fn collective(&mut self, kind: Kind, of: Members, root: usize, costs: &[u64]) {
        let members: Vec<usize> = self.program.members(of).collect();
        let begins: Vec<Begin> = members.iter().map(|rank| (*rank, self.begin(*rank))).collect();
        let last = begins.iter().map(|(_, begin)| *begin).max().expect("a member");
        let mut costs: Vec<u64> = members.iter().map(|rank| costs[*rank]).collect();
        let mut waits_for_all = matches!(kind, Kind::Barrier | Kind::Allreduce | Kind::Finalize);
        if matches!(kind, Kind::Finalize | Kind::FreeFinalize) {
            match &self.changed.decisions {
                Some(decisions) if !decisions.finalize.is_empty() => {
                    (waits_for_all, costs) = (true, decisions.finalize.clone());
                }
                Some(_) => {}
                None => {
                    let ends = begins.iter().zip(&costs);
                    // Whoever waits for nobody may still leave after the last has come.
                    let mut ends = ends.map(|((_, begin), cost)| begin + cost);
                    if waits_for_all || ends.all(|end| end > last) {
                        if !waits_for_all {
                            let rests =
                                begins.iter().zip(&costs).map(|((_, begin), cost)| begin + cost - last);
                            costs = rests.collect();
                        }
                        waits_for_all = true;
                        self.decisions.finalize.clone_from(&costs);
                    }
                }
            }
        } else {
            costs.iter_mut().for_each(|cost| *cost = self.cost(*cost));
        }
        if waits_for_all && of == Members::All {
            self.common.push(members.iter().map(|rank| self.ranks[*rank].calls.len()).collect());
        }
        for (number, rank) in members.iter().enumerate() {
            let others = begins.iter().copied().filter(|(other, _)| other != rank);
            let (function, needed): (_, Vec<Begin>) = match kind {
                Kind::Barrier => ("MPI_Barrier", others.collect()),
                Kind::Allreduce => ("MPI_Allreduce", others.collect()),
                Kind::Bcast => {
                    ("MPI_Bcast", others.filter(|(other, _)| *rank != root && *other == root).collect())
                }
                Kind::Reduce => ("MPI_Reduce", others.filter(|_| *rank == root).collect()),
                Kind::Scan => ("MPI_Scan", others.filter(|(other, _)| other < rank).collect()),
                Kind::Finalize | Kind::FreeFinalize => {
                    ("MPI_Finalize", others.filter(|_| waits_for_all).collect())
                }
            };
            let has_root = matches!(kind, Kind::Bcast | Kind::Reduce);
            let what = match kind {
                Kind::Finalize | Kind::FreeFinalize => Of::Nothing,
                _ => Of::All(of, has_root.then_some(root - members[0])),
            };
            let first = needed.iter().map(|(rank, begin)| (*begin, *rank)).min();
            let call = self.needing(*rank, function, (&needed, costs[number]), what);
            match kind {
                Kind::Finalize | Kind::FreeFinalize => call.wait = None,
                Kind::Reduce => {
                    let wait = first.filter(|(time, _)| *time > call.begin);
                    call.wait = wait.map(|(time, rank)| (rank, time));
                }
                _ => {}
            }
        }
    }
}
