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

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::Ns;
use omptrace_timeline::{CallBlock, CallId, JobGraph, Needed, RankCall, RankGraph};

use crate::job::computation::{Computation, Pace};

/// What is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Messages are there when they are asked for.
    pub(super) are_senders_in_time: bool,
    /// Calls that communicate take no time but for waits.
    pub(super) is_network_ideal: bool,
}

/// A rank, while it is replayed.
struct Rank<'g> {
    of: &'g RankGraph,
    pace: Pace<'g>,
    block: CallBlock,
    /// The current or next call, and its number.
    call: Option<RankCall>,
    number: usize,
    /// The recorded end of the call before.
    end: Ns,
    /// The next of its needs, and the next of its calls that others need.
    need: usize,
    needed: usize,
    now: Ns,
}

/// The recorded and the replayed begin of a call, or of the last call of a gate.
type Opening = (Ns, Ns);

/// The calls that have begun and are needed: how often.
type Begun = FastMap<CallId, (Opening, usize)>;

/// When the last rank ends, if each rank begins when it did.
pub(super) fn end<'g>(
    graph: &'g JobGraph,
    lives: &[(Ns, Ns)],
    computation: &'g Computation,
    changes: Changes,
) -> Ns {
    let all = graph.ranks.iter().zip(lives).enumerate();
    let rank = |(place, (of, (begin, _))): (usize, (&'g RankGraph, &(Ns, Ns)))| {
        let mut block = CallBlock::default();
        let call = of.call(0, &mut block);
        let pace = computation.pace(place);
        Rank { of, pace, block, call, number: 0, end: *begin, need: 0, needed: 0, now: *begin }
    };
    let mut ranks: Vec<Rank<'g>> = all.map(rank).collect();
    let mut begun = Begun::default();
    let mut gates: Vec<Option<Opening>> = vec![None; graph.gates.len()];
    // Begins and ends in the order in which they were recorded: what a call needs began before it ended.
    let mut next: BinaryHeap<Reverse<(Ns, bool, usize)>> = BinaryHeap::with_capacity(ranks.len());
    let begins = ranks.iter().enumerate().filter_map(|(place, rank)| Some((rank.call?.begin, place)));
    next.extend(begins.map(|(begin, place)| Reverse((begin, false, place))));
    while let Some(Reverse((_, is_end, place))) = next.pop() {
        let rank = &mut ranks[place];
        let Some(call) = rank.call else { continue };
        if !is_end {
            rank.begin(call, place, &mut begun);
            next.push(Reverse((call.end, true, place)));
            continue;
        }
        let mut last: Opening = (call.begin, rank.now);
        for need in rank.of.needs(rank.need).take_while(|need| need.call as usize == rank.number) {
            rank.need += 1;
            let (was, is) = opening(graph, &mut begun, &mut gates, need.of);
            let is_waited_for = !(changes.are_senders_in_time && matches!(need.of, Needed::Sender(_)));
            last = (last.0.max(was), if is_waited_for { last.1.max(is) } else { last.1 });
        }
        let rest = match changes.is_network_ideal && call.communicates {
            true => 0,
            false => call.end - last.0,
        };
        rank.now = last.1 + rest;
        (rank.end, rank.number) = (call.end, rank.number + 1);
        rank.call = rank.of.call(rank.number, &mut rank.block);
        if let Some(following) = rank.call {
            next.push(Reverse((following.begin, false, place)));
        }
    }
    let ends = ranks.iter_mut().zip(lives).map(|(rank, (_, end))| {
        let recorded = end.saturating_sub(rank.end).max(0).cast_unsigned();
        rank.now + rank.pace.take(rank.number, recorded).cast_signed()
    });
    ends.max().unwrap_or(0)
}

impl Rank<'_> {
    /// The rank, which has this place, comes to its next call.
    fn begin(&mut self, call: RankCall, place: usize, begun: &mut Begun) {
        let recorded = call.begin.saturating_sub(self.end).max(0).cast_unsigned();
        self.now += self.pace.take(self.number, recorded).cast_signed();
        let needed = self.of.needed().get(self.needed..).unwrap_or_default();
        let count = needed.iter().take_while(|needed| **needed as usize == self.number).count();
        self.needed += count;
        if count > 0 {
            let id = CallId { rank: place as u32, call: self.number as u32 };
            begun.insert(id, ((call.begin, self.now), count));
        }
    }
}

/// The recorded and the replayed time at which something that is needed is there.
fn opening(graph: &JobGraph, begun: &mut Begun, gates: &mut [Option<Opening>], of: Needed) -> Opening {
    let mut of_call = |id: CallId| {
        let Some((opening, uses)) = begun.get_mut(&id) else { return (Ns::MIN, Ns::MIN) };
        let opening = *opening;
        *uses -= 1;
        if *uses == 0 {
            begun.remove(&id);
        }
        opening
    };
    match of {
        Needed::Sender(call) | Needed::Receiver(call) | Needed::Member(call) => of_call(call),
        Needed::Gate(number) => *gates[number as usize].get_or_insert_with(|| {
            let calls = graph.gates[number as usize].calls.iter().map(|call| of_call(*call));
            calls.fold((Ns::MIN, Ns::MIN), |last, (was, is)| (last.0.max(was), last.1.max(is)))
        }),
    }
}
