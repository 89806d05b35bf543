//! The messages and collective operations of a job, with the places of calls.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use omptrace_timeline::{CollectiveSite, PairMessages, Ranks};

use crate::model::place::Place;
use crate::model::rank_traffic::{
    CollectiveCalls, MatrixCell, MessageMatrix, PairTraffic, RankTests, RankTraffic,
};
use crate::model::sum::sum;
use crate::rank_waits::call_waits::CallWaits;

/// Maximum number of pairs, and of rows about calls.
const MAX_PAIRS: usize = 1000;
const MAX_CALLS: usize = 100;
/// Maximum number of rows and columns of the matrix.
const MAX_GROUPS: u32 = 32;

/// The places of the call sites of each process, in the timeline's order.
pub(crate) type Sites = Vec<Vec<Option<Place>>>;

impl RankTraffic {
    /// The communication of a job whose ranks are all there.
    pub(crate) fn of(ranks: &Ranks, sites: &Sites, waits: &CallWaits) -> RankTraffic {
        let pairs = &ranks.traffic.pairs;
        let mut rows: Vec<&PairMessages> = pairs.iter().collect();
        rows.sort_by_key(|pair| Reverse((pair.bytes, pair.count)));
        let listed = rows.iter().take(MAX_PAIRS);
        let listed =
            listed.map(|it| PairTraffic { from: it.from, to: it.to, count: it.count, bytes: it.bytes });
        let mut waits_at: BTreeMap<&Place, u64> = BTreeMap::new();
        for ((_, place), ns) in &waits.by_call {
            let sum = waits_at.entry(place).or_default();
            *sum = sum.saturating_add(*ns);
        }
        let collectives = ranks.traffic.collectives.iter();
        let mut collectives: Vec<CollectiveCalls> =
            collectives.map(|calls| CollectiveCalls::of(calls, sites, &waits_at)).collect();
        collectives.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.place.cmp(&b.place)));
        // Calls at one place belong together, but operations of different sets of ranks do not wait for each other.
        let mut places: BTreeMap<&Place, usize> = BTreeMap::new();
        collectives.iter().for_each(|row| *places.entry(&row.place).or_default() += 1);
        let repeated: Vec<bool> = collectives.iter().map(|row| places[&row.place] > 1).collect();
        for (row, is_repeated) in collectives.iter_mut().zip(repeated) {
            row.waits_ns = row.waits_ns.filter(|_| !is_repeated);
        }
        collectives.truncate(MAX_CALLS);
        RankTraffic {
            messages: sum(pairs.iter().map(|pair| pair.count)),
            bytes: sum(pairs.iter().map(|pair| pair.bytes)),
            pairs: listed.collect(),
            more_pairs: rows.len().saturating_sub(MAX_PAIRS) as u64,
            matrix: MessageMatrix::of(pairs, ranks.size),
            collectives,
            unsuccessful_tests: tests(ranks, sites),
        }
    }
}

impl MessageMatrix {
    fn of(pairs: &[PairMessages], ranks: usize) -> MessageMatrix {
        let ranks = u32::try_from(ranks).unwrap_or(u32::MAX);
        let ranks_per_group = ranks.div_ceil(MAX_GROUPS).max(1);
        let mut cells: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        for pair in pairs {
            let group = |rank: u32| rank / ranks_per_group * ranks_per_group;
            let (count, bytes) = cells.entry((group(pair.from), group(pair.to))).or_default();
            *count = count.saturating_add(pair.count);
            *bytes = bytes.saturating_add(pair.bytes);
        }
        let cells = cells.into_iter();
        let cells = cells.map(|((from, to), (count, bytes))| MatrixCell { from, to, count, bytes });
        MessageMatrix { ranks_per_group, ranks, cells: cells.collect() }
    }
}

impl CollectiveCalls {
    fn of(calls: &CollectiveSite, sites: &Sites, waits_at: &BTreeMap<&Place, u64>) -> CollectiveCalls {
        let (process, site) = calls.at;
        let known = sites.get(process).and_then(|sites| sites.get(site as usize)?.clone());
        // Waits at the place of one rank are not all if others use another place.
        let is_at =
            |sites: &Vec<Option<Place>>| sites.iter().flatten().any(|place| Some(place) == known.as_ref());
        let at_same = sites.iter().filter(|sites| is_at(sites)).count();
        let waits = known.as_ref().filter(|_| at_same == calls.ranks);
        let waits_ns = waits.map(|place| waits_at.get(place).copied().unwrap_or(0).min(calls.ns));
        CollectiveCalls {
            place: known.unwrap_or_else(|| Place::new(function_name(calls.function))),
            ranks: calls.ranks as u64,
            count: calls.count,
            ns: calls.ns,
            waits_ns,
            bytes: calls.bytes,
            longest_begin_ns: calls.longest.begin,
            longest_ns: calls.longest.ns,
            last_rank: calls.longest.last_rank,
        }
    }
}

/// A function's name.
fn function_name(function: u32) -> &'static str {
    omptrace_timeline::model::function_name(function).unwrap_or("MPI")
}

/// The place of a call site of a rank.
pub(crate) fn place_of(sites: &[Option<Place>], site: Option<u32>, function: u32) -> Place {
    let known = site.and_then(|site| sites.get(site as usize)?.clone());
    known.unwrap_or_else(|| Place::new(function_name(function)))
}

fn tests(ranks: &Ranks, sites: &Sites) -> Vec<RankTests> {
    let of_ranks = sites.iter().enumerate();
    let of_ranks = of_ranks.filter_map(|(number, sites)| Some((ranks.process(number)?, sites)));
    let all = of_ranks.flat_map(|(of_rank, sites)| {
        of_rank.tests.iter().map(move |tests| RankTests {
            rank: of_rank.rank,
            place: place_of(sites, tests.site, tests.function),
            count: tests.count,
            between_work_ns: tests.between_work_ns,
            waiting_ns: tests.waiting_ns,
        })
    });
    let mut all: Vec<RankTests> = all.collect();
    all.sort_by(|a, b| (b.count, a.rank, &a.place).cmp(&(a.count, b.rank, &b.place)));
    all.truncate(MAX_CALLS);
    all
}
