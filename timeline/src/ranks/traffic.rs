//! How much ranks communicate: messages between pairs of ranks, collective operations by call site, and calls that do
//! more than is necessary.

use std::cmp::Reverse;
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
}

/// The communication of a job, as far as it is matched.
#[derive(Debug, Default)]
pub(super) struct TrafficSums {
    messages: FastMap<(u32, u32), (u64, u64)>,
    sites: BTreeMap<(usize, u32, usize), CollectiveSite>,
}

impl Job {
    /// Counts the messages that could have been a part of earlier ones, at the call sites of both ends.
    pub(super) fn count_combinable(&mut self, pairs: &[Pair]) {
        for pair in pairs {
            let (sender, receiver) = (pair.sender as usize, pair.receiver as usize);
            let send = &self.processes[sender].sends[pair.send as usize];
            let receive = &self.processes[receiver].receives[pair.receive as usize];
            if !send.is_combinable || receive.is_probe {
                continue;
            }
            let (at_sender, at_receiver, bytes) = (send.posted.site, receive.posted.site, send.bytes);
            self.processes[sender].sites.add_combinable(at_sender, bytes);
            self.processes[receiver].sites.add_combinable(at_receiver, bytes);
        }
    }
}

impl TrafficSums {
    /// Adds messages and operations. `numbers`: the number of each process on the timeline.
    pub(super) fn add(&mut self, job: &Job, pairs: &[Pair], operations: &[Operation], numbers: &[usize]) {
        for pair in pairs {
            let (sender, receiver) =
                (&job.processes[pair.sender as usize], &job.processes[pair.receiver as usize]);
            if receiver.receives[pair.receive as usize].is_probe {
                continue;
            }
            let (count, bytes) = self.messages.entry((sender.rank, receiver.rank)).or_default();
            *count += 1;
            *bytes = bytes.saturating_add(sender.sends[pair.send as usize].bytes);
        }
        for operation in operations {
            let part = |(process, place): &(u32, u32)| {
                let calls = &job.processes[*process as usize];
                (calls.rank, &calls.collectives[*place as usize])
            };
            let (Some(first), Some(&(process, _))) =
                (operation.parts.first().map(part), operation.parts.first())
            else {
                continue;
            };
            let parts = || operation.parts.iter().map(part);
            let is_over = parts().all(|(_, part)| part.wait.is_some());
            if !is_over || operation.parts.len() != job.communicators.members(operation.communicator).len() {
                continue;
            }
            let at = (numbers[process as usize], first.1.posted.site);
            let ranks = operation.parts.len();
            let function = first.1.function;
            let new = CollectiveSite { function, at, ranks, ..CollectiveSite::default() };
            let sums = self.sites.entry((at.0, at.1, ranks)).or_insert(new);
            sums.count += 1;
            let spans = || parts().filter_map(|(_, part)| part.wait);
            let in_calls = spans().map(|span| span.begin.abs_diff(span.end));
            sums.ns = in_calls.fold(sums.ns, u64::saturating_add);
            sums.bytes = parts().map(|(_, part)| part.bytes).fold(sums.bytes, u64::saturating_add);
            let begin = parts().map(|(_, part)| part.posted.begin).min().unwrap_or(0);
            let end = spans().map(|span| span.end).max().unwrap_or(begin);
            let last = parts().max_by_key(|(rank, part)| (part.posted.begin, *rank));
            let ns = begin.abs_diff(end);
            let key = |ns: u64, begin: Ns| (ns, Reverse(begin));
            if sums.count == 1 || key(ns, begin) > key(sums.longest.ns, sums.longest.begin) {
                let last_rank = last.map_or(0, |(rank, _)| rank);
                sums.longest = LongestOperation { begin, ns, last_rank };
            }
        }
    }

    /// The sums.
    pub(super) fn finish(self) -> Traffic {
        let pairs = self.messages.into_iter();
        let pairs = pairs.map(|((from, to), (count, bytes))| PairMessages { from, to, count, bytes });
        let mut pairs: Vec<PairMessages> = pairs.collect();
        pairs.sort_unstable_by_key(|pair| (pair.from, pair.to));
        Traffic { pairs, collectives: self.sites.into_values().collect() }
    }
}
