//! How long a rank waits in a call until another one has begun what the call needs.

use std::collections::BTreeMap;

use crate::model::Ns;
use crate::ranks::joints::{Joint, WaitKind};
use crate::ranks::matching::{Job, Operation, Pair};
use crate::ranks::order::Order;
use crate::ranks::posting::{Posting, Span, name_of};
use crate::ranks::process_calls::{Collective, Fence};
use crate::ranks::shape::Shape;

/// The waits of each process.
pub(super) type Waits = Vec<Vec<Joint>>;

impl Job {
    /// Waits for messages. Whether messages were asked for in the wrong order, `orders` may find out later.
    pub(super) fn wait_for_messages(&self, pairs: &[Pair], waits: &mut Waits, orders: &mut [Order]) {
        for pair in pairs {
            let (sender, receiver) =
                (&self.processes[pair.sender as usize], &self.processes[pair.receiver as usize]);
            let (sent, it) = (&sender.sends[pair.send as usize], &receiver.receives[pair.receive as usize]);
            let order = &mut orders[pair.receiver as usize];
            if let Some(span) = it.wait
                && let Some(late) = wait(span, sent.posted, sender.rank, WaitKind::LateSender)
            {
                let waits = &mut waits[pair.receiver as usize];
                order.wait(waits.len(), (span.begin, sent.posted.begin));
                waits.push(late);
            }
            let begins = it.posted.begin;
            if !it.is_probe {
                order.message(sent.posted.begin, begins);
            }
            // A message that was copied lets the sender go before.
            if let Some(span) = sent.wait().filter(|span| !it.is_probe && span.end > begins) {
                let late = wait(span, it.posted, receiver.rank, WaitKind::LateReceiver);
                waits[pair.sender as usize].extend(late);
            }
        }
    }

    /// Finds out which waits were in the wrong order, as far as that is known. What is matched was removed. `until`: all events before
    /// it were read; `None` if all were.
    pub(super) fn order_waits(&self, until: Option<Ns>, waits: &mut Waits, orders: &mut [Order]) {
        let Some(until) = until else {
            orders.iter_mut().zip(waits).for_each(|(order, waits)| order.decide(Ns::MAX, waits));
            return;
        };
        // When the first message was sent that each process has not received.
        let mut open = vec![until; self.processes.len()];
        for (process, calls) in self.processes.iter().enumerate() {
            for (_, send) in calls.sends.iter() {
                let of = send.communicator;
                let to = self.communicators.world_rank(process, calls, of, send.peer);
                let begin = send.posted.begin;
                match to.and_then(|rank| self.process(rank)) {
                    Some(to) => open[to as usize] = open[to as usize].min(begin),
                    None => open.iter_mut().for_each(|open| *open = begin.min(*open)),
                }
            }
        }
        for (((order, waits), calls), open) in orders.iter_mut().zip(waits).zip(&self.processes).zip(open) {
            order.decide(open, waits);
            let unmatched = calls.receives.iter().filter_map(|(_, receive)| receive.wait);
            let begins = unmatched.map(|span| span.begin).chain(calls.open_since).chain([until]);
            order.forget(begins.min().unwrap_or(until));
        }
    }

    /// Waits in one operation, where all members take part in the same.
    pub(super) fn wait_in_operation(&self, operation: &Operation, waits: &mut Waits) {
        let members = self.communicators.members(operation.communicator);
        let mut parts: Vec<Part<'_>> = self.parts(operation);
        let Some(Collective { function, root, .. }) = parts.first().map(|part| part.call.clone()) else {
            return;
        };
        let is_same = |it: &Part<'_>| it.call.function == function && it.call.root == root;
        let Some(shape) = Shape::of(name_of(function)) else { return };
        if parts.len() != members.len() || !parts.iter().all(is_same) {
            return;
        }
        let mut take = |it: &Part<'_>, other: Option<&Part<'_>>, kind: WaitKind| {
            if let (Some(span), Some(other)) = (it.call.wait, other) {
                waits[it.process].extend(wait(span, other.call.posted, other.rank, kind));
            }
        };
        let root = usize::try_from(root).ok().and_then(|root| members.get(root).copied());
        parts.sort_unstable_by_key(|part| (part.call.posted.begin, part.rank));
        match shape {
            Shape::Barrier | Shape::AllToAll => {
                let kind = if shape == Shape::Barrier { WaitKind::Barrier } else { WaitKind::AllToAll };
                let Some((last, before)) = parts.split_last() else { return };
                before.iter().for_each(|it| take(it, Some(last), kind));
                take(last, before.last(), kind);
            }
            Shape::FromRoot => {
                let of_root = parts.iter().find(|part| Some(part.rank) == root);
                let others = parts.iter().filter(|part| Some(part.rank) != root);
                others.for_each(|it| take(it, of_root, WaitKind::LateBroadcast));
            }
            Shape::ToRoot => {
                let Some(of_root) = parts.iter().find(|part| Some(part.rank) == root) else { return };
                let first = parts.iter().find(|part| Some(part.rank) != root);
                take(of_root, first, WaitKind::EarlyReduce);
            }
            Shape::Scan => {
                let places = members.iter().zip(0_usize..).map(|(rank, place)| (*rank, place));
                let places: BTreeMap<u32, usize> = places.collect();
                parts.sort_unstable_by_key(|part| places.get(&part.rank).copied());
                let mut last: Option<&Part<'_>> = None;
                for it in &parts {
                    take(it, last, WaitKind::EarlyScan);
                    if last.is_none_or(|last| last.call.posted.begin <= it.call.posted.begin) {
                        last = Some(it);
                    }
                }
            }
            // Traces do not say who is next to whom.
            Shape::Neighbours => {}
        }
    }

    /// Waits at a fence that all ranks come to. One that waits for nobody, as some need not, has returned before the last one comes.
    pub(super) fn wait_at_fence(&self, fence: &Operation, waits: &mut Waits) {
        let parts = fence.parts.iter().map(|(process, place)| {
            let calls = &self.processes[*process as usize];
            (*process as usize, calls.rank, &calls.fences[*place as usize])
        });
        let parts: Vec<(usize, u32, &Fence)> = parts.collect();
        let last = parts.iter().max_by_key(|(_, rank, fence)| (fence.posted.begin, *rank));
        let Some((_, rank, last)) = last else { return };
        if parts.len() != self.communicators.members(fence.communicator).len() {
            return;
        }
        for (process, _, fence) in &parts {
            let span = fence.done.filter(|span| span.end >= last.posted.begin);
            waits[*process].extend(span.and_then(|span| wait(span, last.posted, *rank, WaitKind::Barrier)));
        }
    }

    /// Waits on which the end of a call depends although they are no wait states: of the root of a reduction for the last of the
    /// others.
    pub(super) fn wait_for_the_last(&self, operations: &[Operation], waits: &mut Waits) {
        for operation in operations {
            let parts = self.parts(operation);
            let Some(first) = parts.first() else { continue };
            let is_to_root = Shape::of(name_of(first.call.function)) == Some(Shape::ToRoot);
            let members = self.communicators.members(operation.communicator);
            let root = usize::try_from(first.call.root).ok().and_then(|root| members.get(root).copied());
            let of_root = parts.iter().find(|part| Some(part.rank) == root);
            let last = parts.iter().max_by_key(|part| (part.call.posted.begin, part.rank));
            if let (true, Some(of_root), Some(last)) =
                (is_to_root && parts.len() == members.len(), of_root, last)
                && let Some(span) = of_root.call.wait.filter(|span| span.end > last.call.posted.begin)
            {
                waits[of_root.process].extend(wait(span, last.call.posted, last.rank, WaitKind::EarlyReduce));
            }
        }
    }

    /// The same in `MPI_Finalize`: waits for the last rank, if no other one left before.
    pub(super) fn wait_to_finalize(&self, waits: &mut Waits) {
        let spans: Option<Vec<Span>> = self.processes.iter().map(|calls| calls.list.finalize).collect();
        let spans = spans.unwrap_or_default();
        let ranked = spans.iter().zip(&self.processes).map(|(span, calls)| (span, calls.rank));
        let Some((last, rank)) = ranked.max_by_key(|(span, rank)| (span.begin, *rank)) else { return };
        if spans.iter().any(|span| span.end <= last.begin) {
            return;
        }
        let posted = last.posting();
        for (waits, span) in waits.iter_mut().zip(&spans) {
            waits.extend(wait(*span, posted, rank, WaitKind::Barrier));
        }
    }

    fn parts(&self, operation: &Operation) -> Vec<Part<'_>> {
        let parts = operation.parts.iter().map(|(process, place)| {
            let calls = &self.processes[*process as usize];
            let call = &calls.collectives[*place as usize];
            Part { process: *process as usize, rank: calls.rank, call }
        });
        parts.collect()
    }
}

/// A rank's part in an operation.
struct Part<'p> {
    process: usize,
    rank: u32,
    call: &'p Collective,
}

/// The wait in a call for something that another rank begins at this time.
fn wait(span: Span, begins: Posting, rank: u32, kind: WaitKind) -> Option<Joint> {
    let until = begins.begin.min(span.end);
    let (thread, of_thread) = (span.thread, begins.thread);
    let joint = Joint { thread, rank, of_thread, begin: span.begin, until, kind };
    (until > span.begin).then_some(joint)
}
