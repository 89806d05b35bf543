//! Which sends and receives are one message, and which calls are one collective operation.

use std::collections::BTreeMap;

use crate::model::Ns;
use crate::ranks::calls::{Collective, ProcessCalls, ReceiveState, Span, name_of};
use crate::ranks::communicator::Origin;
use crate::ranks::communicators::Communicators;
use crate::ranks::joints::{Joint, Joints, WaitKind};
use crate::ranks::messages::{MessageCounts, RankMessages, Unmatched};

/// An end of a message; sorted, ends are by key, and then in the order of posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    key: Key,
    /// The order in its process, then where it is.
    place: usize,
}

/// What must be the same at both ends. The receiver is the one whose messages are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    source: u32,
    communicator: u32,
    tag: i32,
}

/// The results of each of `processes`, which are all ranks of a job of `size`.
pub(super) fn matched(processes: Vec<ProcessCalls>, size: usize) -> Vec<RankMessages> {
    let job = Job::new(&processes, size);
    let mut results: Vec<RankMessages> = processes.iter().map(counted).collect();
    let mut waits: Vec<Vec<Joint>> = vec![Vec::new(); processes.len()];
    job.messages(&mut results, &mut waits);
    job.collectives(&mut waits);
    for (result, waits) in results.iter_mut().zip(waits) {
        result.joints = Joints::of(waits);
    }
    results
}

/// What can be counted without the others.
fn counted(calls: &ProcessCalls) -> RankMessages {
    let is_made = |origin| !matches!(origin, Origin::World | Origin::Own);
    let sends = || calls.sends.iter().filter(|send| !send.is_cancelled);
    let receives = || {
        let all = calls.receives.iter();
        all.filter(|receive| !receive.is_probe && receive.state == ReceiveState::Complete)
    };
    let made = calls.communicators.iter().filter(|communicator| is_made(communicator.origin));
    RankMessages {
        counts: MessageCounts {
            sends: sends().count() as u64,
            sent_bytes: sends().map(|send| send.bytes).sum(),
            receives: receives().count() as u64,
            received_bytes: receives().map(|receive| receive.bytes).sum(),
            collectives: calls.collectives.len() as u64,
            communicators: made.count() as u64,
        },
        open_requests: calls.open_requests,
        open_communicators: calls.open_communicators,
        ..RankMessages::default()
    }
}

struct Job<'p> {
    processes: &'p [ProcessCalls],
    communicators: Communicators,
    /// The place of the process of each rank.
    by_rank: Vec<Option<usize>>,
}

impl<'p> Job<'p> {
    fn new(processes: &'p [ProcessCalls], size: usize) -> Job<'p> {
        let mut by_rank = vec![None; size];
        for (place, calls) in processes.iter().enumerate() {
            if let Some(of_rank) = by_rank.get_mut(calls.rank as usize) {
                *of_rank = Some(place);
            }
        }
        Job { processes, communicators: Communicators::of(processes), by_rank }
    }

    fn process(&self, rank: u32) -> Option<usize> {
        *self.by_rank.get(rank as usize)?
    }

    /// Matches point to point.
    fn messages(&self, results: &mut [RankMessages], waits: &mut [Vec<Joint>]) {
        // By the receiver.
        let mut sends: Vec<Vec<End>> = vec![Vec::new(); self.processes.len()];
        for (process, calls) in self.processes.iter().enumerate() {
            for (place, send) in calls.sends.iter().enumerate().filter(|(_, send)| !send.is_cancelled) {
                let receiver = self.communicators.world_rank(process, calls, send.communicator, send.peer);
                let receiver = receiver.and_then(|rank| self.process(rank));
                let communicator = self.communicators.number(process, send.communicator);
                if let (Some(receiver), Some(communicator)) = (receiver, communicator) {
                    let key = Key { source: calls.rank, communicator, tag: send.tag };
                    sends[receiver].push(End { key, place });
                }
            }
        }
        for (receiver, mut sends) in sends.into_iter().enumerate() {
            sends.sort_unstable();
            let receives = self.receives(receiver);
            self.pairs(receiver, &sends, &receives, results, waits);
        }
    }

    /// The receives of a process whose messages are known: they are complete, or only one source and tag fit.
    fn receives(&self, process: usize) -> Vec<End> {
        let calls = &self.processes[process];
        let all = calls.receives.iter().enumerate();
        let all = all.filter(|(_, receive)| receive.state != ReceiveState::Nothing && receive.tag >= 0);
        let mut ends: Vec<End> = all
            .filter_map(|(place, receive)| {
                let of = receive.communicator;
                let source = self.communicators.world_rank(process, calls, of, receive.peer)?;
                let communicator = self.communicators.number(process, of)?;
                Some(End { key: Key { source, communicator, tag: receive.tag }, place })
            })
            .collect();
        ends.sort_unstable();
        ends
    }

    fn pairs(
        &self,
        receiver: usize,
        sends: &[End],
        receives: &[End],
        results: &mut [RankMessages],
        waits: &mut [Vec<Joint>],
    ) {
        let mut rest = sends.iter().peekable();
        let lonely = |send: &End, results: &mut [RankMessages]| {
            if let Some(sender) = self.process(send.key.source) {
                let to = self.processes[receiver].rank;
                results[sender].unmatched_sends.add(to, send.key.tag);
            }
        };
        for receive in receives {
            while let Some(send) = rest.next_if(|send| send.key < receive.key) {
                lonely(send, results);
            }
            let it = &self.processes[receiver].receives[receive.place];
            let Some(send) = rest.peek().copied().filter(|send| send.key == receive.key) else {
                if !it.is_probe {
                    results[receiver].unmatched_receives.add(receive.key.source, receive.key.tag);
                }
                continue;
            };
            let Some(sender) = self.process(send.key.source) else { continue };
            let sent = &self.processes[sender].sends[send.place];
            if let Some(span) = it.wait {
                waits[receiver].extend(wait(span, sent.posted, send.key.source, WaitKind::LateSender));
            }
            if it.is_probe {
                continue;
            }
            if let Some(span) = sent.wait {
                let rank = self.processes[receiver].rank;
                // A message that was copied lets the sender go before.
                let is_synchronous = span.end > it.posted;
                let waits_for =
                    is_synchronous.then(|| wait(span, it.posted, rank, WaitKind::LateReceiver)).flatten();
                waits[sender].extend(waits_for);
            }
            rest.next();
        }
        for send in rest {
            lonely(send, results);
        }
        // What fits anything and has got nothing.
        let all = self.processes[receiver].receives.iter();
        let open =
            all.filter(|it| it.state == ReceiveState::Posted && !it.is_probe && (it.peer < 0 || it.tag < 0));
        results[receiver].unmatched_receives.count += open.count() as u64;
    }

    fn collectives(&self, waits: &mut [Vec<Joint>]) {
        // By the communicator, and the order on it: the process, and the place in it.
        let mut operations: BTreeMap<(u32, u32), Vec<(usize, usize)>> = BTreeMap::new();
        for (process, calls) in self.processes.iter().enumerate() {
            for (place, collective) in calls.collectives.iter().enumerate() {
                if let Some(number) = self.communicators.number(process, collective.communicator) {
                    operations.entry((number, collective.ordinal)).or_default().push((process, place));
                }
            }
        }
        for ((communicator, _), parts) in operations {
            self.operation(communicator, &parts, waits);
        }
    }

    /// The waits in one operation, where all members take part in the same.
    fn operation(&self, communicator: u32, parts: &[(usize, usize)], waits: &mut [Vec<Joint>]) {
        let members = self.communicators.members(communicator);
        let parts = parts.iter().map(|(process, place)| {
            let calls = &self.processes[*process];
            Part { process: *process, rank: calls.rank, call: &calls.collectives[*place] }
        });
        let mut parts: Vec<Part<'_>> = parts.collect();
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
        parts.sort_unstable_by_key(|part| (part.call.posted, part.rank));
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
                    if last.is_none_or(|last| last.call.posted < it.call.posted) {
                        last = Some(it);
                    }
                }
            }
        }
    }
}

/// A rank's part in an operation.
struct Part<'p> {
    process: usize,
    rank: u32,
    call: &'p Collective,
}

/// The wait in a call for something that another rank begins at this time.
fn wait(span: Span, begins: Ns, rank: u32, kind: WaitKind) -> Option<Joint> {
    let until = begins.min(span.end);
    let joint = Joint { thread: span.thread, rank, begin: span.begin, until, kind };
    (until > span.begin).then_some(joint)
}

impl Unmatched {
    fn add(&mut self, rank: u32, tag: i32) {
        self.count += 1;
        self.first.get_or_insert((rank, tag));
    }
}

/// Who needs whom in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Barrier,
    AllToAll,
    FromRoot,
    ToRoot,
    Scan,
}

impl Shape {
    /// `None` where only neighbours need each other, or nothing is known.
    fn of(function: &str) -> Option<Shape> {
        let name = function.strip_prefix("MPI_")?;
        // Operations that do not block have an I before the same name.
        let name = name.strip_prefix('I').unwrap_or(name).to_ascii_lowercase();
        Some(match &name[..] {
            "barrier" => Shape::Barrier,
            "allreduce"
            | "allgather"
            | "allgatherv"
            | "alltoall"
            | "alltoallv"
            | "alltoallw"
            | "reduce_scatter"
            | "reduce_scatter_block" => Shape::AllToAll,
            "bcast" | "scatter" | "scatterv" => Shape::FromRoot,
            "reduce" | "gather" | "gatherv" => Shape::ToRoot,
            "scan" | "exscan" => Shape::Scan,
            _ => return None,
        })
    }
}
