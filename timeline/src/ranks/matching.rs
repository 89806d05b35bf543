//! Which sends and receives are one message, and which calls are one collective operation.

use std::collections::BTreeMap;

use crate::ranks::communicators::Communicators;
use crate::ranks::messages::{RankMessages, Unmatched};
use crate::ranks::process_calls::{ProcessCalls, ReceiveState};

/// The ends of a message; or a message and what has looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The sender's process, and the place of the send in it.
    pub(super) sender: u32,
    pub(super) send: u32,
    /// The receiver's process, and the place of the receive in it.
    pub(super) receiver: u32,
    pub(super) receive: u32,
}

/// A collective operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) communicator: u32,
    /// The processes that take part, each with the place of its part.
    pub(super) parts: Vec<(u32, u32)>,
}

/// An end of a message; sorted, ends are by key, and then in the order of posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    key: Key,
    /// The order in its process, then where it is.
    place: u32,
    /// All is known of it.
    is_settled: bool,
}

/// What must be the same at both ends. The receiver is the one whose messages are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    source: u32,
    communicator: u32,
    tag: i32,
}

/// A receive that may still get any message that fits; `None` stands for any source or tag.
struct Open {
    source: Option<u32>,
    communicator: u32,
    tag: Option<i32>,
}

impl Open {
    fn fits(&self, key: Key) -> bool {
        let is_source = self.source.is_none_or(|source| source == key.source);
        self.communicator == key.communicator && is_source && self.tag.is_none_or(|tag| tag == key.tag)
    }
}

/// The processes of a job whose ranks are all there.
pub(super) struct Job {
    pub(super) processes: Vec<ProcessCalls>,
    pub(super) communicators: Communicators,
    /// How many communicators the processes have told of.
    known: usize,
    /// The place of the process of each rank.
    by_rank: Vec<Option<u32>>,
}

impl Job {
    /// A job of this size, of whose processes nothing is known yet.
    pub(super) fn of(size: usize) -> Job {
        Job {
            processes: Vec::new(),
            communicators: Communicators::default(),
            known: 0,
            by_rank: vec![None; size],
        }
    }

    /// Sets what is known of the processes now.
    pub(super) fn set(&mut self, processes: Vec<ProcessCalls>) {
        let known = processes.iter().map(|calls| calls.communicators.len()).sum();
        self.processes = processes;
        // A rank may have told of a communicator before the others do.
        if known != self.known {
            self.communicators = Communicators::of(&self.processes);
            self.known = known;
        }
        for (place, calls) in (0..).zip(&self.processes) {
            if let Some(of_rank) = self.by_rank.get_mut(calls.rank as usize) {
                *of_rank = Some(place);
            }
        }
    }

    pub(super) fn process(&self, rank: u32) -> Option<u32> {
        *self.by_rank.get(rank as usize)?
    }

    /// The messages, and the probes that have seen one. `is_all`: no more events follow, so what has no other end is counted.
    /// Otherwise, a message is left out if an earlier one with its key may still change.
    pub(super) fn pairs(&self, results: &mut [RankMessages], is_all: bool) -> Vec<Pair> {
        // By the receiver.
        let mut sends: Vec<Vec<End>> = vec![Vec::new(); self.processes.len()];
        for (process, calls) in self.processes.iter().enumerate() {
            for (place, send) in calls.sends.iter().filter(|(_, send)| !send.is_cancelled) {
                let receiver = self.communicators.world_rank(process, calls, send.communicator, send.peer);
                let receiver = receiver.and_then(|rank| self.process(rank));
                let communicator = self.communicators.number(process, send.communicator);
                if let (Some(receiver), Some(communicator)) = (receiver, communicator) {
                    let key = Key { source: calls.rank, communicator, tag: send.tag };
                    let is_settled = is_all || send.is_settled;
                    sends[receiver as usize].push(End { key, place, is_settled });
                }
            }
        }
        let mut pairs = Vec::new();
        for (receiver, mut sends) in (0..).zip(sends) {
            sends.sort_unstable();
            self.pairs_of((receiver, is_all), &sends, results, &mut pairs);
        }
        pairs
    }

    /// The receives of a process whose messages are known: they are complete, or only one source and tag fit.
    fn receives(&self, process: usize, is_all: bool) -> Vec<End> {
        let calls = &self.processes[process];
        let has_message = |state| matches!(state, ReceiveState::Posted | ReceiveState::Complete);
        let mut open: Vec<Open> = Vec::new();
        let mut ends = Vec::new();
        for (place, receive) in calls.receives.iter().filter(|(_, receive)| has_message(receive.state)) {
            let Some(communicator) = self.communicators.number(process, receive.communicator) else {
                continue;
            };
            let of = receive.communicator;
            let source = self.communicators.world_rank(process, calls, of, receive.peer);
            let is_settled = is_all || receive.is_settled;
            match source.filter(|_| receive.tag >= 0) {
                Some(source) => {
                    let key = Key { source, communicator, tag: receive.tag };
                    let is_settled = is_settled && !open.iter().any(|open| open.fits(key));
                    ends.push(End { key, place, is_settled });
                }
                None if is_settled => {}
                None => {
                    let tag = Some(receive.tag).filter(|tag| *tag >= 0);
                    open.push(Open { source, communicator, tag });
                }
            }
        }
        ends.sort_unstable();
        ends
    }

    fn pairs_of(
        &self,
        (receiver, is_all): (u32, bool),
        sends: &[End],
        results: &mut [RankMessages],
        pairs: &mut Vec<Pair>,
    ) {
        let own = &self.processes[receiver as usize];
        let mut rest = sends.iter().peekable();
        let lonely = |send: &End, results: &mut [RankMessages]| {
            if let Some(sender) = self.process(send.key.source).filter(|_| is_all) {
                results[sender as usize].unmatched_sends.add(own.rank, send.key.tag);
            }
        };
        // A key whose next message may still change.
        let mut open_key = None;
        for receive in self.receives(receiver as usize, is_all) {
            while let Some(send) = rest.next_if(|send| send.key < receive.key) {
                lonely(send, results);
            }
            let it = &own.receives[receive.place as usize];
            let send = rest.peek().copied().filter(|send| send.key == receive.key);
            if !receive.is_settled || send.is_some_and(|send| !send.is_settled) {
                open_key = Some(receive.key);
            }
            if open_key == Some(receive.key) {
                continue;
            }
            let Some(send) = send else {
                if is_all && !it.is_probe {
                    let unmatched = &mut results[receiver as usize].unmatched_receives;
                    unmatched.add(receive.key.source, receive.key.tag);
                }
                continue;
            };
            let Some(sender) = self.process(send.key.source) else { continue };
            pairs.push(Pair { sender, send: send.place, receiver, receive: receive.place });
            if !it.is_probe {
                let bytes = self.processes[sender as usize].sends[send.place as usize].bytes;
                if it.room.is_some_and(|room| bytes > room) {
                    results[receiver as usize].truncated.add(receive.key.source, receive.key.tag);
                }
                rest.next();
            }
        }
        for send in rest {
            lonely(send, results);
        }
        // What fits anything and has got nothing.
        let is_open = |state| state == ReceiveState::Posted;
        let all = own.receives.iter().filter(|_| is_all);
        let open = all.filter(|(_, it)| is_open(it.state) && !it.is_probe && (it.peer < 0 || it.tag < 0));
        results[receiver as usize].unmatched_receives.count += open.count() as u64;
    }

    /// The collective operations, by the communicator and their order on it. Unless `is_all`, without those that are not over.
    pub(super) fn operations(&self, is_all: bool) -> Vec<Operation> {
        self.grouped(is_all, |calls| {
            let all = calls.collectives.iter();
            all.map(|(place, it)| (place, (it.communicator, it.ordinal, it.round), it.is_settled))
        })
    }

    /// The fences, each with its calls on all ranks, and the same.
    pub(super) fn fences(&self, is_all: bool) -> Vec<Operation> {
        self.grouped(is_all, |calls| {
            let all = calls.fences.iter();
            all.map(|(place, it)| (place, (it.communicator, it.window, it.ordinal), it.done.is_some()))
        })
    }

    /// Parts with equal keys. `parts`: the place of each, its key with the place of the communicator, and whether it is settled.
    fn grouped<'c, P: Iterator<Item = (u32, (u32, u32, u32), bool)>>(
        &'c self,
        is_all: bool,
        parts: impl Fn(&'c ProcessCalls) -> P,
    ) -> Vec<Operation> {
        let mut operations: BTreeMap<(u32, u32, u32), (Operation, bool)> = BTreeMap::new();
        for (process, calls) in (0..).zip(&self.processes) {
            for (place, (communicator, first, second), is_settled) in parts(calls) {
                let Some(communicator) = self.communicators.number(process as usize, communicator) else {
                    continue;
                };
                let new = || (Operation { communicator, parts: Vec::new() }, true);
                let (operation, is_over) =
                    operations.entry((communicator, first, second)).or_insert_with(new);
                operation.parts.push((process, place));
                *is_over &= is_settled;
            }
        }
        let is_known = |operation: &Operation, is_over: bool| {
            is_all
                || is_over
                    && operation.parts.len() == self.communicators.members(operation.communicator).len()
        };
        let all = operations.into_values();
        all.filter(|(operation, is_over)| is_known(operation, *is_over)).map(|(it, _)| it).collect()
    }

    /// Removes what is matched, and counts the messages.
    pub(super) fn remove(
        &mut self,
        pairs: &[Pair],
        (operations, fences): (&[Operation], &[Operation]),
        results: &mut [RankMessages],
    ) {
        for pair in pairs {
            let receives = &mut self.processes[pair.receiver as usize].receives;
            let Some(receive) = receives.get_mut(pair.receive as usize) else { continue };
            receive.is_matched = true;
            let is_probe = receive.is_probe;
            let sends = &mut self.processes[pair.sender as usize].sends;
            if let Some(send) = sends.get_mut(pair.send as usize).filter(|_| !is_probe) {
                send.is_matched = true;
            }
        }
        for (process, place) in operations.iter().flat_map(|operation| &operation.parts) {
            let part = self.processes[*process as usize].collectives.get_mut(*place as usize);
            part.into_iter().for_each(|part| part.is_matched = true);
        }
        for (process, place) in fences.iter().flat_map(|fence| &fence.parts) {
            let part = self.processes[*process as usize].fences.get_mut(*place as usize);
            part.into_iter().for_each(|part| part.is_matched = true);
        }
        for (calls, result) in self.processes.iter_mut().zip(results) {
            let is_over = |state| matches!(state, ReceiveState::Cancelled | ReceiveState::Nothing);
            calls.sends.retain(
                |send| !(send.is_matched || send.is_settled && send.is_cancelled),
                |send| result.count_send(send),
            );
            calls.receives.retain(
                |receive| !(receive.is_matched || receive.is_settled && is_over(receive.state)),
                |receive| result.count_receive(receive),
            );
            calls.collectives.retain(|part| !part.is_matched, |_| {});
            calls.fences.retain(|part| !part.is_matched, |_| {});
        }
    }
}

impl Unmatched {
    fn add(&mut self, rank: u32, tag: i32) {
        self.count += 1;
        self.first.get_or_insert((rank, tag));
    }
}
