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
use crate::ranks::call_list::{CallList, RankCall};
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
    pub calls: Vec<RankCall>,
    /// What its calls need, in the order of calls.
    pub needs: Vec<Need>,
}

/// A call does not end before another one has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// The number of the call.
    pub call: u32,
    /// What it needs.
    pub of: Needed,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The graph of a job whose messages and operations are known. Takes the lists of calls, which are long.
    pub(super) fn of(
        job: &mut Job,
        pairs: &[Pair],
        operations: &[Operation],
        fences: &[Operation],
    ) -> JobGraph {
        let mut graph = Builder { job, gates: Vec::new(), needs: vec![Vec::new(); job.processes.len()] };
        pairs.iter().for_each(|pair| graph.message(pair));
        operations.iter().for_each(|operation| graph.operation(operation));
        fences.iter().for_each(|fence| graph.fence(fence));
        graph.finalize();
        let Builder { gates, needs, .. } = graph;
        let unknown = job.processes.iter().filter_map(|calls| {
            let obstacle = calls.list.obstacle()?;
            Some(format!("rank {} {obstacle}", calls.rank))
        });
        let unknown = unknown.collect();
        let ranks = job.processes.iter_mut().zip(needs).map(|(calls, mut needs)| {
            needs.sort_unstable();
            needs.shrink_to_fit();
            RankGraph { rank: calls.rank, calls: std::mem::take(&mut calls.list.calls), needs }
        });
        JobGraph { ranks: ranks.collect(), gates, unknown }
    }
}

struct Builder<'j> {
    job: &'j Job,
    gates: Vec<Gate>,
    needs: Vec<Vec<Need>>,
}

impl Builder<'_> {
    fn list(&self, process: u32) -> &CallList {
        &self.job.processes[process as usize].list
    }

    fn posted(&self, process: u32, posted: Posting) -> Option<CallId> {
        Some(CallId { rank: process, call: self.list(process).number(posted.thread, posted.begin)? })
    }

    fn begin(&self, of: CallId) -> Ns {
        self.list(of.rank).calls[of.call as usize].begin
    }

    /// The call of a process in this time needs something that `begins` then. If that is later than the call, it does not.
    fn need(&mut self, process: u32, span: Option<Span>, begins: Ns, of: Needed) {
        let number = |span: &Span| self.list(process).number(span.thread, span.begin);
        let Some(call) = span.filter(|span| begins < span.end).and_then(|span| number(&span)) else { return };
        self.needs[process as usize].push(Need { call, of });
    }

    fn message(&mut self, pair: &Pair) {
        let (sender, receiver) = (pair.sender, pair.receiver);
        let send = &self.job.processes[sender as usize].sends[pair.send as usize];
        let receive = &self.job.processes[receiver as usize].receives[pair.receive as usize];
        if let Some(sent) = self.posted(sender, send.posted) {
            self.need(receiver, receive.wait, send.posted.begin, Needed::Sender(sent));
        }
        let received = receive.posted.begin;
        let is_awaited = |span: &Span| send.is_synchronous || span.begin < received;
        let waited = send.wait().filter(|span| !receive.is_probe && is_awaited(span));
        if let Some(of) = self.posted(receiver, receive.posted) {
            self.need(sender, waited, received, Needed::Receiver(of));
        }
    }

    fn operation(&mut self, operation: &Operation) {
        let job = self.job;
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
        let posted = parts.iter().map(|(process, _, part)| self.posted(*process, part.posted));
        let Some(calls) = posted.collect::<Option<Vec<CallId>>>() else { return };
        let root = usize::try_from(root).ok().and_then(|root| members.get(root).copied());
        let spans = || parts.iter().map(|(_, _, part)| part.wait).zip(calls.clone());
        match shape {
            Shape::Barrier | Shape::AllToAll => {
                let all: Vec<_> = spans().collect();
                self.all_of(&all);
            }
            Shape::FromRoot => {
                let root = parts.iter().position(|(_, rank, _)| Some(*rank) == root);
                let Some(of_root) = root.map(|root| calls[root]) else { return };
                for (span, call) in spans().filter(|(_, call)| *call != of_root) {
                    self.need(call.rank, span, self.begin(of_root), Needed::Member(of_root));
                }
            }
            Shape::ToRoot => {
                let root = parts.iter().position(|(_, rank, _)| Some(*rank) == root);
                let Some((of_root, (_, _, part))) = root.map(|root| (calls[root], parts[root])) else {
                    return;
                };
                let last = calls.iter().map(|call| self.begin(*call)).max();
                let gate = self.gate(calls.clone(), false);
                self.need(of_root.rank, part.wait, last.unwrap_or(0), gate);
            }
            Shape::Scan => {
                let places: BTreeMap<u32, usize> = members.iter().copied().zip(0..).collect();
                let place = |call: &CallId| places.get(&job.processes[call.rank as usize].rank).copied();
                let places: Vec<Option<usize>> = calls.iter().map(place).collect();
                for ((span, call), own) in spans().zip(&places) {
                    for (lower, _) in calls.iter().zip(&places).filter(|(_, place)| *place < own) {
                        self.need(call.rank, span, self.begin(*lower), Needed::Member(*lower));
                    }
                }
            }
            // Traces do not say who is next to whom.
            Shape::Neighbours => {}
        }
    }

    fn fence(&mut self, fence: &Operation) {
        if fence.parts.len() != self.job.communicators.members(fence.communicator).len() {
            return;
        }
        let parts = fence.parts.iter().map(|(process, place)| {
            let fence = &self.job.processes[*process as usize].fences[*place as usize];
            Some((fence.done, self.posted(*process, fence.posted)?))
        });
        if let Some(parts) = parts.collect::<Option<Vec<_>>>() {
            self.all_of(&parts);
        }
    }

    /// No rank leaves `MPI_Finalize` before all have come, if it was so.
    fn finalize(&mut self) {
        let parts = (0..self.job.processes.len() as u32).map(|process| {
            let span = self.list(process).finalize?;
            let call = self.list(process).number(span.thread, span.begin)?;
            Some((Some(span), CallId { rank: process, call }))
        });
        let Some(parts) = parts.collect::<Option<Vec<_>>>() else { return };
        let last = parts.iter().filter_map(|(span, _)| *span).map(|span| span.begin).max();
        let is_awaited = parts.iter().all(|(span, _)| span.is_none_or(|span| Some(span.end) > last));
        if is_awaited {
            self.all_of(&parts);
        }
    }

    fn gate(&mut self, mut calls: Vec<CallId>, is_of_all: bool) -> Needed {
        calls.sort_unstable();
        self.gates.push(Gate { calls, is_of_all });
        Needed::Gate(self.gates.len() as u32 - 1)
    }

    /// Each of these calls needs that all have begun.
    fn all_of(&mut self, parts: &[(Option<Span>, CallId)]) {
        let last = parts.iter().map(|(_, call)| self.begin(*call)).max().unwrap_or(0);
        let waits = |(span, call): &(Option<Span>, CallId)| {
            span.is_some_and(|span| span.begin == self.begin(*call) && span.end > last)
        };
        let is_of_all = parts.len() == self.job.processes.len() && parts.iter().all(waits);
        let gate = self.gate(parts.iter().map(|(_, call)| *call).collect(), is_of_all);
        for (span, call) in parts {
            self.need(call.rank, *span, last, gate);
        }
    }
}
