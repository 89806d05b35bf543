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
}

/// What must be the same at both ends. The receiver is the one whose messages are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    source: u32,
    communicator: u32,
    tag: i32,
}

/// The processes of a job whose ranks are all there.
pub(super) struct Job {
    pub(super) processes: Vec<ProcessCalls>,
    pub(super) communicators: Communicators,
    /// The place of the process of each rank.
    by_rank: Vec<Option<u32>>,
}

impl Job {
    pub(super) fn new(processes: Vec<ProcessCalls>, size: usize) -> Job {
        let mut by_rank = vec![None; size];
        for (place, calls) in (0..).zip(&processes) {
            if let Some(of_rank) = by_rank.get_mut(calls.rank as usize) {
                *of_rank = Some(place);
            }
        }
        Job { communicators: Communicators::of(&processes), processes, by_rank }
    }

    pub(super) fn process(&self, rank: u32) -> Option<u32> {
        *self.by_rank.get(rank as usize)?
    }

    /// The messages, and the probes that have seen one. What has no other end is counted.
    pub(super) fn pairs(&self, results: &mut [RankMessages]) -> Vec<Pair> {
        // By the receiver.
        let mut sends: Vec<Vec<End>> = vec![Vec::new(); self.processes.len()];
        for (process, calls) in self.processes.iter().enumerate() {
            for (place, send) in (0..).zip(&calls.sends).filter(|(_, send)| !send.is_cancelled) {
                let receiver = self.communicators.world_rank(process, calls, send.communicator, send.peer);
                let receiver = receiver.and_then(|rank| self.process(rank));
                let communicator = self.communicators.number(process, send.communicator);
                if let (Some(receiver), Some(communicator)) = (receiver, communicator) {
                    let key = Key { source: calls.rank, communicator, tag: send.tag };
                    sends[receiver as usize].push(End { key, place });
                }
            }
        }
        let mut pairs = Vec::new();
        for (receiver, mut sends) in (0..).zip(sends) {
            sends.sort_unstable();
            self.pairs_of(receiver, &sends, results, &mut pairs);
        }
        pairs
    }

    /// The receives of a process whose messages are known: they are complete, or only one source and tag fit.
    fn receives(&self, process: usize) -> Vec<End> {
        let calls = &self.processes[process];
        let has_message = |state| matches!(state, ReceiveState::Posted | ReceiveState::Complete);
        let all = (0..).zip(&calls.receives);
        let all = all.filter(|(_, receive)| has_message(receive.state) && receive.tag >= 0);
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

    fn pairs_of(&self, receiver: u32, sends: &[End], results: &mut [RankMessages], pairs: &mut Vec<Pair>) {
        let own = &self.processes[receiver as usize];
        let mut rest = sends.iter().peekable();
        let lonely = |send: &End, results: &mut [RankMessages]| {
            if let Some(sender) = self.process(send.key.source) {
                results[sender as usize].unmatched_sends.add(own.rank, send.key.tag);
            }
        };
        for receive in self.receives(receiver as usize) {
            while let Some(send) = rest.next_if(|send| send.key < receive.key) {
                lonely(send, results);
            }
            let it = &own.receives[receive.place as usize];
            let Some(send) = rest.peek().copied().filter(|send| send.key == receive.key) else {
                if !it.is_probe {
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
        let all = own.receives.iter();
        let open = all.filter(|it| is_open(it.state) && !it.is_probe && (it.peer < 0 || it.tag < 0));
        results[receiver as usize].unmatched_receives.count += open.count() as u64;
    }

    /// The collective operations, by the communicator and their order on it.
    pub(super) fn operations(&self) -> Vec<Operation> {
        let mut operations: BTreeMap<(u32, u32, u32), Vec<(u32, u32)>> = BTreeMap::new();
        for (process, calls) in (0..).zip(&self.processes) {
            for (place, collective) in (0..).zip(&calls.collectives) {
                if let Some(number) = self.communicators.number(process as usize, collective.communicator) {
                    let key = (number, collective.ordinal, collective.round);
                    operations.entry(key).or_default().push((process, place));
                }
            }
        }
        let all = operations.into_iter();
        all.map(|((communicator, ..), parts)| Operation { communicator, parts }).collect()
    }
}

impl Job {
    /// The fences, each with its calls on all ranks.
    pub(super) fn fences(&self) -> Vec<Operation> {
        let mut fences: BTreeMap<(u32, u32, u32), Vec<(u32, u32)>> = BTreeMap::new();
        for (process, calls) in (0..).zip(&self.processes) {
            for (place, fence) in (0..).zip(&calls.fences) {
                if let Some(number) = self.communicators.number(process as usize, fence.communicator) {
                    fences.entry((number, fence.window, fence.ordinal)).or_default().push((process, place));
                }
            }
        }
        let all = fences.into_iter();
        all.map(|((communicator, ..), parts)| Operation { communicator, parts }).collect()
    }
}

impl Unmatched {
    fn add(&mut self, rank: u32, tag: i32) {
        self.count += 1;
        self.first.get_or_insert((rank, tag));
    }
}
