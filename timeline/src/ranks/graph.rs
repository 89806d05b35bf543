//! The calls of a job's ranks, and what each of them needs of other ranks: the graph that a replay of the job follows.
//!
//! ```text
//! rank 0   --computation--[ MPI_Send ]--computation--[ MPI_Barrier ]--
//!                         |                          |           ^
//!                         v (begin)                  v           | gate: all have begun
//! rank 1   --computation--[ MPI_Recv    ]--comp.-----[ MPI_Barrier ]--
//! ```

use std::collections::BTreeMap;

use crate::model::Ns;
use crate::ranks::call_store::{CallBlock, CallStore, RankCall};
use crate::ranks::matching::{Job, Operation, Pair};
use crate::ranks::posting::{Posting, Span, name_of};
use crate::ranks::shape::Shape;

/// The calls of a job, and what each needs. Ranks are numbered by their places in `ranks`.
#[derive(Debug, Default)]
pub struct JobGraph {
    /// The ranks.
    pub ranks: Vec<RankGraph>,
    /// Groups of calls that others wait for together.
    pub gates: Vec<Gate>,
    /// Why it is not known how the job would have gone on at other times, a line each.
    pub unknown: Vec<String>,
}

/// The calls of one rank.
#[derive(Debug, Default)]
pub struct RankGraph {
    /// The rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Its calls in chronological order. They do not overlap.
    calls: CallStore,
    /// What its calls need, in the order of calls.
    needs: Vec<PackedNeed>,
    /// The calls that others need, in order; each as often as it is needed. What needs a gate counts once for all.
    needed: Vec<u32>,
}

impl RankGraph {
    /// The number of its calls.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether it has no calls.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// A call by its number. `block`: the calls that were read last; most of them are in a file.
    pub fn call(&self, number: usize, block: &mut CallBlock) -> Option<RankCall> {
        self.calls.get(number, block)
    }

    /// The number of calls that began at this time or before.
    pub fn begun_until(&self, time: Ns, block: &mut CallBlock) -> usize {
        self.calls.begun_until(time, block)
    }

    /// What its calls need, in the order of calls. The first of them have these places.
    pub fn needs(&self, from: usize) -> impl Iterator<Item = Need> + use<'_> {
        self.needs.get(from..).unwrap_or_default().iter().map(|need| need.unpacked())
    }

    /// The calls that others need, in order; each as often as it is needed, and for a gate once.
    pub fn needed(&self) -> &[u32] {
        &self.needed
    }
}

/// A call does not end before another one has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// The number of the call.
    pub call: u32,
    /// What it needs.
    pub of: Needed,
}

/// A need in twelve bytes: the call, then the kind with the rank, then the other call or the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PackedNeed([u32; 3]);

/// The bits of a rank's place next to a kind.
const RANK_BITS: u32 = 30;

impl PackedNeed {
    /// `None` if a job has more ranks than fit.
    fn of(need: Need) -> Option<PackedNeed> {
        let (kind, rank, call) = match need.of {
            Needed::Sender(of) => (0, of.rank, of.call),
            Needed::Receiver(of) => (1, of.rank, of.call),
            Needed::Member(of) => (2, of.rank, of.call),
            Needed::Gate(number) => (3, 0, number),
        };
        (rank >> RANK_BITS == 0).then_some(PackedNeed([need.call, kind << RANK_BITS | rank, call]))
    }

    fn unpacked(self) -> Need {
        let PackedNeed([call, kind, other]) = self;
        let of = CallId { rank: kind & ((1 << RANK_BITS) - 1), call: other };
        let of = match kind >> RANK_BITS {
            0 => Needed::Sender(of),
            1 => Needed::Receiver(of),
            2 => Needed::Member(of),
            _ => Needed::Gate(other),
        };
        Need { call, of }
    }
}

/// What a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needed {
    /// A message, which this call sends.
    Sender(CallId),
    /// That a message is received, by this call: synchronous sends, and those that waited for that.
    Receiver(CallId),
    /// That another rank takes part in the operation.
    Member(CallId),
    /// All calls of a gate.
    Gate(u32),
}

/// A call of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The rank's place in the graph.
    pub rank: u32,
    /// The call's number in the rank.
    pub call: u32,
}

/// Calls that others wait for together.
#[derive(Debug, Default)]
pub struct Gate {
    /// The calls, sorted by rank.
    pub calls: Vec<CallId>,
    /// Each rank of the job takes part and waits for all others.
    pub is_of_all: bool,
}

impl JobGraph {
    /// Whether calls could not be read from the temporary file.
    pub fn has_failed(&self) -> bool {
        self.ranks.iter().any(|rank| rank.calls.has_failed())
    }
}

/// Makes the graph while messages and operations are matched.
#[derive(Debug)]
pub(super) struct GraphBuilder {
    gates: Vec<Gate>,
    /// By process.
    needs: Vec<Vec<PackedNeed>>,
}

/// The call that posts something.
fn posted(process: u32, posted: Posting) -> Option<CallId> {
    Some(CallId { rank: process, call: posted.call?.get() - 1 })
}

impl GraphBuilder {
    /// For this number of processes.
    pub(super) fn of(processes: usize) -> GraphBuilder {
        GraphBuilder { gates: Vec::new(), needs: vec![Vec::new(); processes] }
    }

    /// Adds what is matched.
    pub(super) fn add(&mut self, job: &Job, pairs: &[Pair], operations: &[Operation], fences: &[Operation]) {
        pairs.iter().for_each(|pair| self.message(job, pair));
        operations.iter().for_each(|operation| self.operation(job, operation));
        fences.iter().for_each(|fence| self.fence(job, fence));
    }

    /// The graph, once all is matched. Takes the calls.
    pub(super) fn finish(mut self, job: &mut Job) -> JobGraph {
        self.finalize(job);
        let unknown = job.processes.iter().filter_map(|calls| {
            let obstacle = calls.list.obstacle()?;
            Some(format!("rank {} {obstacle}", calls.rank))
        });
        let unknown = unknown.collect();
        let mut needed: Vec<Vec<u32>> = vec![Vec::new(); job.processes.len()];
        let mut is_used = vec![false; self.gates.len()];
        for need in self.needs.iter().flatten() {
            match need.unpacked().of {
                Needed::Sender(of) | Needed::Receiver(of) | Needed::Member(of) => {
                    needed[of.rank as usize].push(of.call);
                }
                Needed::Gate(number) => is_used[number as usize] = true,
            }
        }
        let used = self.gates.iter().zip(is_used).filter(|(_, is_used)| *is_used);
        used.flat_map(|(gate, _)| &gate.calls).for_each(|of| needed[of.rank as usize].push(of.call));
        let of_ranks = job.processes.iter_mut().zip(self.needs).zip(needed);
        let ranks = of_ranks.map(|((calls, mut needs), mut needed)| {
            needs.sort_unstable();
            needed.sort_unstable();
            needs.shrink_to_fit();
            needed.shrink_to_fit();
            let mut list = std::mem::take(&mut calls.list.calls);
            list.shrink_to_fit();
            RankGraph { rank: calls.rank, calls: list, needs, needed }
        });
        JobGraph { ranks: ranks.collect(), gates: self.gates, unknown }
    }

    /// The call of a process in this time needs something that `begins` then. If that is later than the call, it does not.
    fn need(&mut self, process: u32, span: Option<Span>, begins: Ns, of: Needed) {
        let Some(call) = span.filter(|span| begins < span.end).and_then(|span| span.call) else { return };
        let need = PackedNeed::of(Need { call: call.get() - 1, of });
        self.needs[process as usize].extend(need);
    }

    fn message(&mut self, job: &Job, pair: &Pair) {
        let (sender, receiver) = (pair.sender, pair.receiver);
        let send = &job.processes[sender as usize].sends[pair.send as usize];
        let receive = &job.processes[receiver as usize].receives[pair.receive as usize];
        if let Some(sent) = posted(sender, send.posted) {
            self.need(receiver, receive.wait, send.posted.begin, Needed::Sender(sent));
        }
        let received = receive.posted.begin;
        let is_awaited = |span: &Span| send.is_synchronous || span.begin < received;
        let waited = send.wait().filter(|span| !receive.is_probe && is_awaited(span));
        if let Some(of) = posted(receiver, receive.posted) {
            self.need(sender, waited, received, Needed::Receiver(of));
        }
    }

    fn operation(&mut self, job: &Job, operation: &Operation) {
        let members = job.communicators.members(operation.communicator);
        let part = |(process, place): &(u32, u32)| {
            let calls = &job.processes[*process as usize];
            (*process, calls.rank, &calls.collectives[*place as usize])
        };
        let parts: Vec<_> = operation.parts.iter().map(part).collect();
        let Some((_, _, first)) = parts.first() else { return };
        let (function, root) = (first.function, first.root);
        let Some(shape) = Shape::of(name_of(function)) else { return };
        let is_same = parts.iter().all(|(_, _, part)| (part.function, part.root) == (function, root));
        if !is_same || parts.len() != members.len() {
            return;
        }
        let all = parts.iter().map(|(process, _, part)| posted(*process, part.posted));
        let Some(calls) = all.collect::<Option<Vec<CallId>>>() else { return };
        let root = usize::try_from(root).ok().and_then(|root| members.get(root).copied());
        let begins: Vec<Ns> = parts.iter().map(|(_, _, part)| part.posted.begin).collect();
        let spans = || parts.iter().map(|(_, _, part)| part.wait).zip(calls.clone());
        match shape {
            Shape::Barrier | Shape::AllToAll => {
                let all: Vec<_> =
                    spans().zip(begins).map(|((span, call), begin)| (span, call, begin)).collect();
                self.all_of(job, &all);
            }
            Shape::FromRoot => {
                let root = parts.iter().position(|(_, rank, _)| Some(*rank) == root);
                let Some((of_root, begin)) = root.map(|root| (calls[root], begins[root])) else { return };
                for (span, call) in spans().filter(|(_, call)| *call != of_root) {
                    self.need(call.rank, span, begin, Needed::Member(of_root));
                }
            }
            Shape::ToRoot => {
                let root = parts.iter().position(|(_, rank, _)| Some(*rank) == root);
                let Some((of_root, (_, _, part))) = root.map(|root| (calls[root], parts[root])) else {
                    return;
                };
                let last = begins.iter().copied().max();
                let gate = self.gate(calls.clone(), false);
                self.need(of_root.rank, part.wait, last.unwrap_or(0), gate);
            }
            Shape::Scan => {
                let places: BTreeMap<u32, usize> = members.iter().copied().zip(0..).collect();
                let place = |call: &CallId| places.get(&job.processes[call.rank as usize].rank).copied();
                let places: Vec<Option<usize>> = calls.iter().map(place).collect();
                for ((span, call), own) in spans().zip(&places) {
                    let all = calls.iter().zip(&begins).zip(&places);
                    for ((lower, begin), _) in all.filter(|(_, place)| *place < own) {
                        self.need(call.rank, span, *begin, Needed::Member(*lower));
                    }
                }
            }
            // Traces do not say who is next to whom.
            Shape::Neighbours => {}
        }
    }

    fn fence(&mut self, job: &Job, fence: &Operation) {
        if fence.parts.len() != job.communicators.members(fence.communicator).len() {
            return;
        }
        let parts = fence.parts.iter().map(|(process, place)| {
            let fence = &job.processes[*process as usize].fences[*place as usize];
            Some((fence.done, posted(*process, fence.posted)?, fence.posted.begin))
        });
        if let Some(parts) = parts.collect::<Option<Vec<_>>>() {
            self.all_of(job, &parts);
        }
    }

    /// No rank leaves `MPI_Finalize` before all have come, if it was so.
    fn finalize(&mut self, job: &Job) {
        let parts = (0..).zip(&job.processes).map(|(process, calls)| {
            let span = calls.list.finalize?;
            Some((Some(span), posted(process, span.posting())?, span.begin))
        });
        let Some(parts) = parts.collect::<Option<Vec<_>>>() else { return };
        let last = parts.iter().map(|(.., begin)| *begin).max();
        let is_awaited = parts.iter().all(|(span, ..)| span.is_none_or(|span| Some(span.end) > last));
        if is_awaited {
            self.all_of(job, &parts);
        }
    }

    fn gate(&mut self, mut calls: Vec<CallId>, is_of_all: bool) -> Needed {
        calls.sort_unstable();
        self.gates.push(Gate { calls, is_of_all });
        Needed::Gate(self.gates.len() as u32 - 1)
    }

    /// Each of these calls needs that all have begun: the call that waits, the one that takes part, and when that began.
    fn all_of(&mut self, job: &Job, parts: &[(Option<Span>, CallId, Ns)]) {
        let last = parts.iter().map(|(.., begin)| *begin).max().unwrap_or(0);
        let waits = |(span, call, _): &(Option<Span>, CallId, Ns)| {
            let in_call = |span: &Span| span.call.is_some_and(|own| own.get() - 1 == call.call);
            span.is_some_and(|span| in_call(&span) && span.end > last)
        };
        let is_of_all = parts.len() == job.processes.len() && parts.iter().all(waits);
        let gate = self.gate(parts.iter().map(|(_, call, _)| *call).collect(), is_of_all);
        for (span, call, _) in parts {
            self.need(call.rank, *span, last, gate);
        }
    }
}
