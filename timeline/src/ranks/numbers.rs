//! The numbers of a job's messages and operations, for exports.

use std::num::NonZeroU64;

use crate::ranks::matching::{Job, Operation, Pair};
use crate::ranks::posting::name_of;
use crate::ranks::process_calls::{Match, ReceiveState, Send};
use crate::ranks::shape::Shape;

impl Job {
    /// Gives each message its number, and its ends what they know of each other.
    pub(super) fn number_messages(&mut self, pairs: &[Pair]) {
        let mut last = 0;
        for pair in pairs {
            let (sender, receiver) = (pair.sender as usize, pair.receiver as usize);
            let receive = &self.processes[receiver].receives[pair.receive as usize];
            if receive.is_probe {
                continue;
            }
            last += 1;
            let Some(message) = NonZeroU64::new(last) else { continue };
            let is_received = receive.state == ReceiveState::Complete;
            let received = receive.done.filter(|_| is_received).map(|done| done.end);
            let (from, to) = (self.processes[sender].rank, self.processes[receiver].rank);
            let send = self.processes[sender].sends.get_mut(pair.send as usize);
            let Some(send) = send else { continue };
            let sent = send.posted.begin;
            send.peer_in_world = Some(to);
            send.other = received.map(|time| Match { message, time });
            let receive = self.processes[receiver].receives.get_mut(pair.receive as usize);
            let Some(receive) = receive else { continue };
            receive.peer_in_world = Some(from);
            receive.other = Some(Match { message, time: sent });
        }
        // Of those that have no other end, the receiver may be known.
        for process in 0..self.processes.len() {
            let calls = &self.processes[process];
            let of =
                |send: &Send| self.communicators.world_rank(process, calls, send.communicator, send.peer);
            let peers: Vec<Option<u32>> =
                calls.sends.iter().map(|(_, send)| send.peer_in_world.or_else(|| of(send))).collect();
            let sends = self.processes[process].sends.iter_mut();
            sends.zip(peers).for_each(|(send, peer)| send.peer_in_world = peer);
        }
    }

    /// Gives each collective operation its number, and each part its bytes.
    pub(super) fn number_operations(&mut self, operations: &[Operation]) {
        for (number, operation) in (1..).map(NonZeroU64::new).zip(operations) {
            let members = self.communicators.members(operation.communicator);
            let part = |(process, place): &(u32, u32)| {
                let calls = &self.processes[*process as usize];
                (calls.rank, &calls.collectives[*place as usize])
            };
            let parts = operation.parts.iter().map(part);
            let sum = parts.clone().fold(0_u64, |sum, (_, part)| sum.saturating_add(part.bytes));
            let root_of = |root: i32| usize::try_from(root).ok().and_then(|root| members.get(root).copied());
            let of_root = parts.clone().find(|(rank, part)| root_of(part.root) == Some(*rank));
            let of_root = of_root.map_or(0, |(_, part)| part.bytes);
            let bytes: Vec<(u64, u64)> = parts
                .map(|(rank, part)| {
                    let function = name_of(part.function);
                    let is_root = root_of(part.root) == Some(rank);
                    let own = (part.bytes, of_root, sum);
                    let shape = Shape::of(function);
                    shape.map_or((0, 0), |it| it.bytes(function, own, is_root, members.len() as u64))
                })
                .collect();
            for ((process, place), (sent, received)) in operation.parts.iter().zip(bytes) {
                let part = self.processes[*process as usize].collectives.get_mut(*place as usize);
                let Some(part) = part else { continue };
                part.number = number;
                (part.sent, part.received) = (sent, received);
            }
        }
    }
}
