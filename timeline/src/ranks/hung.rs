//! The calls that ranks are in when their traces end: who waits for whom in a job that hangs, or was killed.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::ranks::matching::{Job, Operation, Pair};
use crate::ranks::posting::name_of;

/// A call that a rank is in when its trace ends, and the ranks that it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingRank {
    /// The rank.
    pub rank: u32,
    /// The function.
    pub function: &'static str,
    /// The ranks, in order. None where any rank may send the message.
    pub waits_for: Vec<u32>,
}

impl fmt::Display for WaitingRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Ranks that are named.
        const MOST: usize = 12;

        write!(f, "rank {} is in {} and waits for ", self.rank, self.function)?;
        let named: Vec<String> = self.waits_for.iter().take(MOST).map(u32::to_string).collect();
        let more = if self.waits_for.len() > MOST { ", ..." } else { "" };
        match &self.waits_for[..] {
            [] => f.write_str("any rank"),
            [rank] => write!(f, "rank {rank}"),
            _ => write!(f, "ranks {}{more}", named.join(", ")),
        }
    }
}

impl Job {
    /// The ranks that wait, in order. What they wait for is not matched before all events were read, so `pairs`, `operations` and
    /// `fences` are those that are found then.
    pub(super) fn waiting_ranks(
        &self,
        pairs: &[Pair],
        operations: &[Operation],
        fences: &[Operation],
    ) -> Vec<WaitingRank> {
        if self.processes.iter().all(|calls| calls.open.is_empty()) {
            return Vec::new();
        }
        let sent: BTreeSet<(u32, u32)> = pairs.iter().map(|pair| (pair.sender, pair.send)).collect();
        let received: BTreeSet<(u32, u32)> = pairs.iter().map(|pair| (pair.receiver, pair.receive)).collect();
        let mut all = Vec::new();
        for (process, calls) in (0..).zip(&self.processes) {
            for open in &calls.open {
                let mut ranks = BTreeSet::new();
                let mut is_waiting = false;
                for place in open.sends.iter().filter(|place| !sent.contains(&(process, **place as u32))) {
                    let Some(send) = calls.sends.get(*place) else { continue };
                    let to =
                        self.communicators.world_rank(process as usize, calls, send.communicator, send.peer);
                    is_waiting = true;
                    ranks.extend(to);
                }
                let posted = open.receives.iter();
                for place in posted.filter(|place| !received.contains(&(process, **place as u32))) {
                    let Some(receive) = calls.receives.get(*place) else { continue };
                    let (of, peer) = (receive.communicator, receive.peer);
                    is_waiting = true;
                    ranks.extend(self.communicators.world_rank(process as usize, calls, of, peer));
                }
                let of_kind = [(&open.collectives, operations), (&open.fences, fences)];
                let all_open =
                    of_kind.into_iter().flat_map(|(places, all)| places.iter().map(move |it| (it, all)));
                for (place, all) in all_open {
                    let is_it = |part: &(u32, u32)| *part == (process, *place as u32);
                    let Some(operation) = all.iter().find(|it| it.parts.iter().any(is_it)) else { continue };
                    let there = |rank: &&u32| {
                        let mut parts = operation.parts.iter();
                        parts.any(|(process, _)| self.processes[*process as usize].rank == **rank)
                    };
                    let members = self.communicators.members(operation.communicator).iter();
                    let missing: Vec<u32> = members.filter(|rank| !there(rank)).copied().collect();
                    is_waiting |= !missing.is_empty();
                    ranks.extend(missing);
                }
                if is_waiting {
                    all.push(WaitingRank {
                        rank: calls.rank,
                        function: name_of(open.function),
                        waits_for: ranks.into_iter().collect(),
                    });
                }
            }
        }
        all.sort_by_key(|waiting| waiting.rank);
        all
    }
}

/// Ranks of which each waits for the next, and the last for the first; the one with the lowest rank in it, and that first.
pub(super) fn deadlock(waiting: &[WaitingRank]) -> Option<Vec<u32>> {
    let next = |rank: u32| waiting.iter().find(|it| it.rank == rank).map(|it| &it.waits_for[..]);
    for start in waiting {
        // Breadth first: the shortest way back to it.
        let mut ways: Vec<Vec<u32>> = vec![vec![start.rank]];
        let mut seen = BTreeSet::from([start.rank]);
        while let Some(way) = (!ways.is_empty()).then(|| ways.remove(0)) {
            let Some(last) = way.last().copied() else { continue };
            for rank in next(last).unwrap_or_default() {
                if *rank == start.rank {
                    return Some(way);
                }
                if seen.insert(*rank) {
                    ways.push([&way[..], &[*rank]].concat());
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(rank: u32, waits_for: &[u32]) -> WaitingRank {
        WaitingRank { rank, function: "MPI_Recv", waits_for: waits_for.to_vec() }
    }

    #[test]
    fn a_cycle_is_a_deadlock() {
        let all = [waiting(0, &[3]), waiting(1, &[2]), waiting(2, &[0, 3]), waiting(3, &[1])];
        assert_eq!(deadlock(&all), Some(vec![0, 3, 1, 2]));
        assert_eq!(deadlock(&[waiting(0, &[1]), waiting(1, &[2])]), None);
        assert_eq!(deadlock(&[waiting(0, &[])]), None);
    }
}
