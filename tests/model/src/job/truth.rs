//! What is true of a job: the critical path, counted nanosecond by nanosecond, and how long a changed program takes.

use std::collections::BTreeMap;

use crate::job::program::Program;
use crate::job::simulate::{Changed, Rank, Run};
use crate::job::write::{REGIONS, code, inside};

/// The number of threads of each rank.
const THREADS: u64 = 2;

/// What a rank does in a nanosecond.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Doing {
    /// The cause.
    pub cause: &'static str,
    /// The place, as answers have it; empty in serial code before the process's end.
    pub place: String,
}

/// Sums by rank, cause and place.
pub type Sums = BTreeMap<(usize, Doing), u64>;

/// Waits by rank, place of the call, and awaited rank.
pub type Waits = BTreeMap<(usize, String, usize), u64>;

/// The critical path of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Its time.
    pub sums: Sums,
    /// How often it goes from one rank to another.
    pub changes: u64,
}

/// The gains of a job: how long it takes with each change. Of regions that are twice as fast, by region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// As recorded.
    pub recorded: u64,
    /// Without late senders, with balanced ranks, with balanced threads, with an ideal network.
    pub changed: [u64; 4],
    /// By region.
    pub faster: [u64; 2],
}

fn call_place(rank: usize, function: &str) -> String {
    format!("{function} @{:#x}", code(rank, function))
}

fn region_place(region: usize) -> String {
    format!("parallel @{:#x}", REGIONS[region])
}

/// What a rank does, by nanosecond. In regions, that is what the thread does that arrives last at the next barrier.
fn doing(number: usize, rank: &Rank) -> Vec<Doing> {
    let serial = Doing { cause: "useful", place: String::new() };
    let mut all = vec![serial.clone(); rank.end as usize];
    let mut fill = |(from, to): (u64, u64), cause, place: &str| {
        all[from as usize..to as usize].fill(Doing { cause, place: place.to_owned() });
    };
    for region in &rank.regions {
        let [own_work, explicit] = inside(region.region);
        for (number, (from, [first, second])) in region.phases().enumerate() {
            let is_inner = number + 1 < region.arrivals.len();
            let (name, at) =
                if is_inner { ("barrier", explicit) } else { ("implicit barrier", REGIONS[region.region]) };
            let last = first.max(second);
            match second >= first {
                true => fill((from, last), "useful", &format!("sections @{own_work:#x}")),
                false => fill((from, last), "useful", &region_place(region.region)),
            }
            let cause = if is_inner { "barrier" } else { "join" };
            fill((last, last + 1), cause, &format!("{name} @{at:#x}"));
        }
    }
    for call in &rank.calls {
        let place = call_place(number, call.function);
        let cause = match call.function {
            "MPI_Init" | "MPI_Comm_split" | "MPI_Finalize" => "mpi_other",
            _ => "mpi_transfer",
        };
        fill((call.begin, call.end), cause, &place);
        if let Some((_, until)) = call.wait {
            fill((call.begin, until.min(call.end)), "mpi_wait", &place);
        }
    }
    // Serial code is named after what comes next.
    let mut next = String::new();
    for (time, it) in all.iter_mut().enumerate().rev() {
        match *it == serial {
            true if next.is_empty() => {}
            true => it.place = format!("serial code before {next}"),
            false => next.clone_from(&it.place),
        }
        // Whatever is on the path in it.
        if let Some(region) = rank.regions.iter().find(|region| region.begin == time as u64) {
            next = region_place(region.region);
        }
    }
    all
}

impl Run {
    /// The waits.
    pub fn waits(&self) -> Waits {
        let mut waits = Waits::new();
        for (number, rank) in self.ranks.iter().enumerate() {
            for call in &rank.calls {
                if let Some((of, until)) = call.wait {
                    let place = call_place(number, call.function);
                    *waits.entry((number, place, of)).or_default() += until.min(call.end) - call.begin;
                }
            }
        }
        waits
    }

    /// The critical path.
    pub fn path(&self) -> Path {
        let doing: Vec<Vec<Doing>> =
            self.ranks.iter().enumerate().map(|(number, rank)| doing(number, rank)).collect();
        // By rank and nanosecond: whom it waits for.
        let mut blocked: Vec<Vec<Option<usize>>> = doing.iter().map(|of| vec![None; of.len()]).collect();
        for (blocked, rank) in blocked.iter_mut().zip(&self.ranks) {
            for call in &rank.calls {
                if let Some((by, until)) = call.ended_by {
                    blocked[call.begin as usize..until.min(call.end) as usize].fill(Some(by));
                }
            }
        }
        let end = self.end();
        let first = |(_, rank): &(usize, &Rank)| rank.end == end;
        let mut rank = self.ranks.iter().enumerate().find(first).map_or(0, |(number, _)| number);
        let mut path = Path::default();
        for time in (0..end as usize).rev() {
            while let Some(by) = blocked[rank][time] {
                path.changes += u64::from(by != rank);
                rank = by;
            }
            *path.sums.entry((rank, doing[rank][time].clone())).or_default() += 1;
        }
        path
    }

    /// When the last rank ends.
    pub fn end(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.end).max().unwrap_or(0)
    }

    /// The time of each rank outside of calls.
    pub fn outside(&self) -> Vec<u64> {
        let inside = |rank: &Rank| rank.calls.iter().map(|call| call.end - call.begin).sum::<u64>();
        self.ranks.iter().map(|rank| rank.end - inside(rank)).collect()
    }

    /// The efficiencies of POP's additive model, counted thread by thread and nanosecond by nanosecond.
    pub fn additive(&self) -> [(&'static str, f64); 7] {
        let (end, all) = (self.end() as f64, (self.end() * THREADS * self.ranks.len() as u64) as f64);
        let (mut useful, mut not_useful, mut idle, mut active) = (0, 0, 0, Vec::new());
        for (number, rank) in self.ranks.iter().enumerate() {
            let mut of_rank = 0;
            for (time, doing) in (0..).zip(doing(number, rank)) {
                let region = rank.regions.iter().find(|region| region.begin <= time && time < region.end);
                let works = region.map(|region| {
                    let mut phases = region.phases();
                    let phase = phases.find(|(_, arrivals)| time <= arrivals[0].max(arrivals[1]));
                    phase.map_or([false; 2], |(_, arrivals)| arrivals.map(|arrival| time < arrival))
                });
                match works {
                    Some(works) => {
                        let working = works.iter().filter(|works| **works).count() as u64;
                        (useful, not_useful) = (useful + working, not_useful + THREADS - working);
                        of_rank += 1;
                    }
                    None if doing.cause == "useful" => {
                        (useful, idle) = (useful + 1, idle + THREADS - 1);
                        of_rank += 1;
                    }
                    None => {}
                }
            }
            active.push(of_rank);
        }
        let mean = active.iter().sum::<u64>() as f64 / active.len() as f64;
        let longest = active.into_iter().max().unwrap_or(0) as f64;
        let losses = [not_useful as f64 / all, idle as f64 / all];
        [
            ("parallel", useful as f64 / all),
            ("process", mean / end),
            ("process_load_balance", 1.0 - (longest - mean) / end),
            ("process_communication", longest / end),
            ("thread", 1.0 - losses[0] - losses[1]),
            ("openmp", 1.0 - losses[0]),
            ("serial_regions", 1.0 - losses[1]),
        ]
    }

    /// How long changed programs take.
    pub fn durations(&self, program: &Program) -> Durations {
        let decisions = Some(self.decisions.clone());
        let unchanged = Changed { decisions, ..Changed::default() };
        let with = |intervals: Vec<Vec<u64>>| {
            program.run(&Changed { intervals: Some(intervals), ..unchanged.clone() }).end()
        };
        let less = |saved: &dyn Fn(&crate::job::simulate::Interval) -> u64| {
            let ranks = self.ranks.iter();
            ranks.map(|rank| rank.intervals.iter().map(|it| it.ns - saved(it)).collect()).collect()
        };
        Durations {
            recorded: program.run(&unchanged).end(),
            changed: [
                program.run(&Changed { no_late_senders: true, ..unchanged.clone() }).end(),
                with(self.balanced()),
                with(less(&|it| it.imbalance / THREADS)),
                program.run(&Changed { ideal: true, ..unchanged.clone() }).end(),
            ],
            faster: [0, 1].map(|region| with(less(&|it| it.regions[region] / 2))),
        }
    }

    /// The computation, averaged over the ranks between operations in which all wait for each other.
    fn balanced(&self) -> Vec<Vec<u64>> {
        let mut all: Vec<Vec<u64>> =
            self.ranks.iter().map(|rank| rank.intervals.iter().map(|it| it.ns).collect()).collect();
        let ends: Vec<usize> = all.iter().map(Vec::len).collect();
        let mut from = vec![0; all.len()];
        let after = |calls: &Vec<usize>| calls.iter().map(|call| call + 1).collect::<Vec<usize>>();
        for to in self.common.iter().map(after).chain([ends]) {
            let sum = |rank: usize| all[rank][from[rank]..to[rank]].iter().sum::<u64>();
            let sums: Vec<u64> = (0..all.len()).map(sum).collect();
            let mean = sums.iter().sum::<u64>() / sums.len() as u64;
            for (rank, own) in sums.into_iter().enumerate() {
                let part = &mut all[rank][from[rank]..to[rank]];
                let recorded = part.to_vec();
                let until = |count: usize| recorded[..count].iter().sum::<u64>() * mean / own.max(1);
                for (number, it) in part.iter_mut().enumerate() {
                    *it = until(number + 1) - until(number);
                }
                if own == 0 {
                    *part.last_mut().expect("an interval") = mean;
                }
            }
            from = to;
        }
        all
    }
}
