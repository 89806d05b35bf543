//! How much ranks communicate: messages between pairs of ranks, collective operations by call site, and calls that do
//! more than is necessary.

use std::collections::BTreeMap;

use omptrace_symbols::fast_map::FastMap;

use crate::model::Ns;
use crate::ranks::communication::{
    CollectiveSite, IdleWaits, LongestOperation, PairMessages, Traffic, UnsuccessfulTests,
};
use crate::ranks::gaps::IdleWait;
use crate::ranks::joints::Joints;
use crate::ranks::matching::{Job, Operation, Pair};
use crate::ranks::process_calls::ProcessCalls;

/// Messages of fewer bytes are small: sending one costs about the same whatever its size.
const MAX_SMALL: u64 = 4 << 10;

impl ProcessCalls {
    /// The waits that begin right after their requests were started, and unsuccessful tests, by call site.
    pub(super) fn idle_waits(&self, joints: &Joints) -> (Vec<IdleWaits>, Vec<UnsuccessfulTests>) {
        let mut waits: BTreeMap<u32, IdleWaits> = BTreeMap::new();
        let mut polled: BTreeMap<u32, u64> = BTreeMap::new();
        for wait in &self.gaps.waits {
            let IdleWait { thread, site, begin, end, following_ns, is_polled } = *wait;
            if is_polled {
                let fillable = polled.entry(site).or_default();
                *fillable = fillable.saturating_add(following_ns.min(begin.abs_diff(end)));
                continue;
            }
            let Some(joint) = joints.of_call(thread as usize, begin) else { continue };
            let ns = begin.abs_diff(joint.until);
            let sums = waits.entry(site).or_insert(IdleWaits { site, ..IdleWaits::default() });
            sums.count += 1;
            sums.waits_ns = sums.waits_ns.saturating_add(ns);
            sums.fillable_ns = sums.fillable_ns.saturating_add(ns.min(following_ns));
        }
        let tests = self.gaps.tests.iter().map(|tests| UnsuccessfulTests {
            function: tests.function,
            site: (tests.function == tests.next.0).then_some(tests.next.1),
            count: tests.count,
            between_work_ns: tests.between_work_ns,
            waiting_ns: tests.waiting_ns,
            fillable_ns: polled.remove(&tests.next.1).unwrap_or(0),
        });
        (waits.into_values().collect(), tests.collect())
    }

    /// When the process got something from others: receives and operations that were complete, in chronological order.
    fn arrivals(&self) -> Vec<Ns> {
        let receives = self.receives.iter().filter(|receive| !receive.is_probe);
        let received = receives.filter_map(|receive| receive.done);
        let operations = self.collectives.iter().filter_map(|collective| collective.wait);
        let fences = self.fences.iter().filter_map(|fence| fence.done);
        let mut all: Vec<Ns> = received.chain(operations).chain(fences).map(|span| span.end).collect();
        all.sort_unstable();
        all
    }

    /// Whether each send could have been a part of an earlier one.
    fn combinable(&self) -> Vec<bool> {
        let arrivals = self.arrivals();
        let mut last: FastMap<(u32, i32), usize> = FastMap::default();
        let sends = self.sends.iter().map(|send| {
            if send.bytes > MAX_SMALL || send.is_cancelled {
                return false;
            }
            let before = arrivals.partition_point(|time| *time <= send.posted.begin);
            last.insert((send.communicator, send.peer), before) == Some(before)
        });
        sends.collect()
    }
}

impl Job {
    /// Counts the messages that could have been a part of earlier ones, at the call sites of both ends.
    pub(super) fn count_combinable(&mut self, pairs: &[Pair]) {
        let combinable: Vec<Vec<bool>> = self.processes.iter().map(ProcessCalls::combinable).collect();
        for pair in pairs {
            let (sender, receiver) = (pair.sender as usize, pair.receiver as usize);
            if !combinable[sender][pair.send as usize] {
                continue;
            }
            let receive = &self.processes[receiver].receives[pair.receive as usize];
            if receive.is_probe {
                continue;
            }
            let at_receiver = receive.posted.site;
            let (at_sender, bytes) = {
                let send = &self.processes[sender].sends[pair.send as usize];
                (send.posted.site, send.bytes)
            };
            self.processes[sender].sites.add_combinable(at_sender, bytes);
            self.processes[receiver].sites.add_combinable(at_receiver, bytes);
        }
    }

    /// The communication of the job. `numbers`: the number of each process on the timeline.
    pub(super) fn traffic(&self, pairs: &[Pair], operations: &[Operation], numbers: &[usize]) -> Traffic {
        let mut messages: FastMap<(u32, u32), (u64, u64)> = FastMap::default();
        for pair in pairs {
            let (sender, receiver) =
                (&self.processes[pair.sender as usize], &self.processes[pair.receiver as usize]);
            if receiver.receives[pair.receive as usize].is_probe {
                continue;
            }
            let (count, bytes) = messages.entry((sender.rank, receiver.rank)).or_default();
            *count += 1;
            *bytes = bytes.saturating_add(sender.sends[pair.send as usize].bytes);
        }
        let pairs = messages.into_iter();
        let pairs = pairs.map(|((from, to), (count, bytes))| PairMessages { from, to, count, bytes });
        let mut pairs: Vec<PairMessages> = pairs.collect();
        pairs.sort_unstable_by_key(|pair| (pair.from, pair.to));

        let mut sites: BTreeMap<(usize, u32, usize), CollectiveSite> = BTreeMap::new();
        for operation in operations {
            let part = |(process, place): &(u32, u32)| {
                let calls = &self.processes[*process as usize];
                (calls.rank, &calls.collectives[*place as usize])
            };
            let (Some(first), Some(&(process, _))) =
                (operation.parts.first().map(part), operation.parts.first())
            else {
                continue;
            };
            let parts = || operation.parts.iter().map(part);
            let is_over = parts().all(|(_, part)| part.wait.is_some());
            if !is_over || operation.parts.len() != self.communicators.members(operation.communicator).len() {
                continue;
            }
            let at = (numbers[process as usize], first.1.posted.site);
            let ranks = operation.parts.len();
            let function = first.1.function;
            let new = CollectiveSite { function, at, ranks, ..CollectiveSite::default() };
            let sums = sites.entry((at.0, at.1, ranks)).or_insert(new);
            sums.count += 1;
            let spans = || parts().filter_map(|(_, part)| part.wait);
            let in_calls = spans().map(|span| span.begin.abs_diff(span.end));
            sums.ns = in_calls.fold(sums.ns, u64::saturating_add);
            sums.bytes = parts().map(|(_, part)| part.bytes).fold(sums.bytes, u64::saturating_add);
            let begin = parts().map(|(_, part)| part.posted.begin).min().unwrap_or(0);
            let end = spans().map(|span| span.end).max().unwrap_or(begin);
            let last = parts().max_by_key(|(rank, part)| (part.posted.begin, *rank));
            let ns = begin.abs_diff(end);
            if sums.count == 1 || ns > sums.longest.ns {
                let last_rank = last.map_or(0, |(rank, _)| rank);
                sums.longest = LongestOperation { begin, ns, last_rank };
            }
        }
        Traffic { pairs, collectives: sites.into_values().collect() }
    }
}
