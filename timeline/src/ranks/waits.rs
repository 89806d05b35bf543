//! How long a rank waits in a call until another one has begun what the call needs.

use std::collections::BTreeMap;

use crate::model::Ns;
use crate::ranks::joints::{Joint, WaitKind};
use crate::ranks::matching::{Job, Operation, Pair};
use crate::ranks::posting::{Posting, Span, name_of};
use crate::ranks::process_calls::{Collective, Fence};
use crate::ranks::shape::Shape;

/// The waits of each process.
pub(super) type Waits = Vec<Vec<Joint>>;

impl Job {
    /// Waits for messages.
    pub(super) fn wait_for_messages(&self, pairs: &[Pair], waits: &mut Waits) {
        let unasked = self.unasked(pairs);
        for pair in pairs {
            let (sender, receiver) =
                (&self.processes[pair.sender as usize], &self.processes[pair.receiver as usize]);
            let (sent, it) = (&sender.sends[pair.send as usize], &receiver.receives[pair.receive as usize]);
            if let Some(span) = it.wait {
                let unasked = &unasked[pair.receiver as usize];
                let kind = match unasked.has_one(span.begin, sent.posted.begin) {
                    true => WaitKind::WrongOrder,
                    false => WaitKind::LateSender,
                };
                let late = wait(span, sent.posted, sender.rank, kind);
                waits[pair.receiver as usize].extend(late);
            }
            let begins = it.posted.begin;
            // A message that was copied lets the sender go before.
            if let Some(span) = sent.wait().filter(|span| !it.is_probe && span.end > begins) {
                let late = wait(span, it.posted, receiver.rank, WaitKind::LateReceiver);
                waits[pair.sender as usize].extend(late);
            }
        }
    }

    /// The messages of each process that are there before they are asked for.
    fn unasked(&self, pairs: &[Pair]) -> Vec<Unasked> {
        let mut all = vec![Unasked::default(); self.processes.len()];
        for pair in pairs {
            let (sender, receiver) = (pair.sender as usize, pair.receiver as usize);
            let receive = &self.processes[receiver].receives[pair.receive as usize];
            let sent = self.processes[sender].sends[pair.send as usize].posted.begin;
            if !receive.is_probe {
                all[receiver].latest.push((sent, receive.posted.begin));
            }
        }
        all.iter_mut().for_each(Unasked::sort);
        all
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
    /// others, and in `MPI_Finalize` for the last rank, if no other one left before.
    pub(super) fn wait_for_the_last(&self, operations: &[Operation]) -> Waits {
        let mut waits = vec![Vec::new(); self.processes.len()];
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
        self.wait_to_finalize(&mut waits);
        waits
    }

    fn wait_to_finalize(&self, waits: &mut Waits) {
        let spans: Option<Vec<Span>> = self.processes.iter().map(|calls| calls.list.finalize).collect();
        let spans = spans.unwrap_or_default();
        let ranked = spans.iter().zip(&self.processes).map(|(span, calls)| (span, calls.rank));
        let Some((last, rank)) = ranked.max_by_key(|(span, rank)| (span.begin, *rank)) else { return };
        if spans.iter().any(|span| span.end <= last.begin) {
            return;
        }
        let posted = Posting { thread: last.thread, site: last.site, begin: last.begin };
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

/// The messages that a process gets.
#[derive(Clone, Debug, Default)]
struct Unasked {
    /// When each is sent, in this order, and when the last receive is posted of those that were sent until then.
    latest: Vec<(Ns, Ns)>,
}

impl Unasked {
    fn sort(&mut self) {
        self.latest.sort_unstable();
        let mut last = Ns::MIN;
        for (_, asked) in &mut self.latest {
            last = last.max(*asked);
            *asked = last;
        }
    }

    /// Whether a message is sent before `sent` that is asked for after the call which begins at `begin`.
    fn has_one(&self, begin: Ns, sent: Ns) -> bool {
        let before = self.latest.partition_point(|(other, _)| *other < sent);
        before.checked_sub(1).is_some_and(|last| self.latest[last].1 > begin)
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
