//! Replays a job: computation takes a given time, and waits follow from when the other ranks come.
//!
//! ```text
//! begin of call = end of the call before + computation
//! end of call   = the latest of its begin and of the begins of the calls that it needs + the rest of the call
//! ```
//!
//! The rest of a call is its recorded time after the last of these begins. Without changes, all times are those recorded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use omptrace_timeline::model::Ns;
use omptrace_timeline::{CallId, JobGraph, Need, Needed, RankGraph};

/// What is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Messages are there when they are asked for.
    pub(super) are_senders_in_time: bool,
    /// Calls that communicate take no time but for waits.
    pub(super) is_network_ideal: bool,
}

/// The computation of each rank before each of its calls, and after the last, in nanoseconds.
pub(super) type Computation = Vec<Vec<u64>>;

/// The recorded computation. `lives`: when each rank began and ended.
pub(super) fn computation(graph: &JobGraph, lives: &[(Ns, Ns)]) -> Computation {
    let of_rank = |(rank, (begin, end)): (&RankGraph, &(Ns, Ns))| {
        let ends = std::iter::once(*begin).chain(rank.calls.iter().map(|call| call.end));
        let begins = rank.calls.iter().map(|call| call.begin).chain([*end]);
        ends.zip(begins).map(|(from, to)| to.saturating_sub(from).max(0).cast_unsigned()).collect()
    };
    graph.ranks.iter().zip(lives).map(of_rank).collect()
}

/// A rank, while it is replayed.
struct Rank<'g> {
    of: &'g RankGraph,
    /// The number of the current or next call.
    call: usize,
    /// The next of its needs.
    need: usize,
    now: Ns,
    /// When calls begin.
    begins: Vec<Ns>,
}

/// The recorded and the replayed begin of the last call of a gate.
type Opening = (Ns, Ns);

/// When the last rank ends, if each rank begins when it did.
pub(super) fn end<'g>(
    graph: &'g JobGraph,
    lives: &[(Ns, Ns)],
    computation: &Computation,
    changes: Changes,
) -> Ns {
    let rank = |(of, (begin, _)): (&'g RankGraph, &(Ns, Ns))| Rank {
        of,
        call: 0,
        need: 0,
        now: *begin,
        begins: vec![Ns::MIN; of.calls.len()],
    };
    let mut ranks: Vec<Rank<'g>> = graph.ranks.iter().zip(lives).map(rank).collect();
    let mut gates: Vec<Option<Opening>> = vec![None; graph.gates.len()];
    // Begins and ends in the order in which they were recorded: what a call needs began before it ended.
    let mut next: BinaryHeap<Reverse<(Ns, bool, usize)>> = BinaryHeap::with_capacity(ranks.len());
    let begins =
        ranks.iter().enumerate().filter_map(|(place, rank)| Some((rank.of.calls.first()?.begin, place)));
    next.extend(begins.map(|(begin, place)| Reverse((begin, false, place))));
    while let Some(Reverse((_, is_end, place))) = next.pop() {
        let rank = &mut ranks[place];
        let call = rank.call;
        if !is_end {
            rank.now += computation[place][call].cast_signed();
            rank.begins[call] = rank.now;
            next.push(Reverse((rank.of.calls[call].end, true, place)));
            continue;
        }
        let (recorded, begin) = (rank.of.calls[call], rank.now);
        let needs = needs_of(rank.of, rank.need, call);
        rank.need += needs.len();
        rank.call += 1;
        if let Some(following) = rank.of.calls.get(call + 1) {
            next.push(Reverse((following.begin, false, place)));
        }
        let mut last: Opening = (recorded.begin, begin);
        for need in needs {
            let (was, is) = opening(graph, &ranks, &mut gates, need.of);
            let is_waited_for = !(changes.are_senders_in_time && matches!(need.of, Needed::Sender(_)));
            last = (last.0.max(was), if is_waited_for { last.1.max(is) } else { last.1 });
        }
        let rest = match changes.is_network_ideal && recorded.communicates {
            true => 0,
            false => recorded.end - last.0,
        };
        ranks[place].now = last.1 + rest;
    }
    let ends = ranks
        .iter()
        .zip(computation)
        .map(|(rank, computation)| rank.now + computation.last().copied().unwrap_or(0).cast_signed());
    ends.max().unwrap_or(0)
}

/// What a call needs; `first`: the first need that may be one of it.
fn needs_of(rank: &RankGraph, first: usize, call: usize) -> &[Need] {
    let rest = &rank.needs[first..];
    let count = rest.iter().take_while(|need| need.call as usize == call).count();
    &rest[..count]
}

/// The recorded and the replayed time at which something that is needed is there.
fn opening(graph: &JobGraph, ranks: &[Rank<'_>], gates: &mut [Option<Opening>], of: Needed) -> Opening {
    let of_call = |id: CallId| {
        let rank = &ranks[id.rank as usize];
        (rank.of.calls[id.call as usize].begin, rank.begins[id.call as usize])
    };
    match of {
        Needed::Sender(call) | Needed::Receiver(call) | Needed::Member(call) => of_call(call),
        Needed::Gate(number) => *gates[number as usize].get_or_insert_with(|| {
            let calls = graph.gates[number as usize].calls.iter().map(|call| of_call(*call));
            calls.fold((Ns::MIN, Ns::MIN), |last, (was, is)| (last.0.max(was), last.1.max(is)))
        }),
    }
}
