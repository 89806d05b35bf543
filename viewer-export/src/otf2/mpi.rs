//! MPI messages, collective operations, and communicators.
//!
//! Communicators and teams share one sequence of numbers. The group of all ranks lists the main thread of each rank's
//! process, and other groups contain indexes in it. It is complete only if all ranks are in the archive, and only then
//! are messages written.

use std::collections::BTreeMap;

use omptrace_timeline::model::{
    Collective, Communicator, CommunicatorId, CommunicatorKind, Message, MpiEvent, Point, RequestId, Root,
    ThreadRole,
};
use otf2_archive::archive::DefinitionFile;
use otf2_archive::encoding::{Added, CommRef, GroupRef, StringRef};
use otf2_archive::records::{
    Comm, CommCreate, CommDestroy, InterComm, MpiCollectiveBegin, MpiCollectiveEnd, MpiIrecv,
    MpiIrecvRequest, MpiIsend, MpiIsendComplete, MpiRecv, MpiRequestCancelled, MpiSend,
    NonBlockingCollectiveComplete, NonBlockingCollectiveRequest, collective, paradigm,
};

use super::Otf2;
use super::communicators::Defined;
use super::definitions::{COMM_GROUP, COMM_LOCATIONS, COMM_SELF, group};
use super::options::Enums;

/// `OTF2_COLLECTIVE_ROOT_NONE`, `_SELF` and `_THIS_GROUP`.
const ROOT_NONE: u32 = u32::MAX;
const ROOT_SELF: u32 = u32::MAX - 1;
const ROOT_THIS_GROUP: u32 = u32::MAX - 2;
/// `OTF2_COMM_FLAG_CREATE_DESTROY_EVENTS`.
const CREATE_DESTROY_EVENTS: u32 = 1;

impl Otf2 {
    /// A communicator of the process. Several processes define the same one.
    pub(super) fn communicator(&mut self, communicator: &Communicator) {
        let is_inter = communicator.kind == CommunicatorKind::Between;
        if is_inter && self.regions.enums() == Enums::V3_0 {
            return;
        }
        if self.communicators.by_id.contains_key(&communicator.id) {
            return;
        }
        let number = match (communicator.kind, self.communicators.own) {
            (CommunicatorKind::Own, Some(own)) => own,
            _ => self.teams.reserve(),
        };
        if communicator.kind == CommunicatorKind::Own {
            self.communicators.own = Some(number);
        }
        let defined = Defined { communicator: communicator.clone(), number, has_events: false };
        self.communicators.by_id.insert(communicator.id, defined);
    }

    /// The number of a communicator in events.
    fn comm(&self, id: CommunicatorId) -> Option<CommRef> {
        self.communicators.by_id.get(&id).map(|defined| defined.number)
    }

    #[inline(never)]
    pub(super) fn mpi(&mut self, at: Point, event: &MpiEvent) {
        let Some((thread, time)) = self.at(at) else {
            return;
        };
        let state = &mut self.threads[thread];
        let task = state.task();
        state.run(&mut self.tasks, &mut self.teams, time, task);
        // Events on unknown communicators are left out.
        let _ = self.mpi_record(thread, time, event);
    }

    fn mpi_record(&mut self, thread: usize, time: u64, event: &MpiEvent) -> Option<()> {
        let request = |request: &RequestId| request.0.get();
        match event {
            MpiEvent::Send(message, None) => {
                let Message { peer: receiver, bytes: length, .. } = *message;
                let comm = self.comm(message.communicator)?;
                let send = MpiSend { receiver, comm, tag: message.tag.cast_unsigned(), length };
                self.threads[thread].event(time, &send);
            }
            MpiEvent::Send(message, Some(id)) => {
                let Message { peer: receiver, bytes: length, .. } = *message;
                let (comm, tag) = (self.comm(message.communicator)?, message.tag.cast_unsigned());
                let send = MpiIsend { receiver, comm, tag, length, request: request(id) };
                self.threads[thread].event(time, &send);
            }
            MpiEvent::Receive(message, None) => {
                let Message { peer: sender, bytes: length, .. } = *message;
                let comm = self.comm(message.communicator)?;
                let receive = MpiRecv { sender, comm, tag: message.tag.cast_unsigned(), length };
                self.threads[thread].event(time, &receive);
            }
            MpiEvent::Receive(message, Some(id)) => {
                let Message { peer: sender, bytes: length, .. } = *message;
                let (comm, tag) = (self.comm(message.communicator)?, message.tag.cast_unsigned());
                let receive = MpiIrecv { sender, comm, tag, length, request: request(id) };
                self.threads[thread].event(time, &receive);
            }
            MpiEvent::SendComplete(id) => {
                self.threads[thread].event(time, &MpiIsendComplete { request: request(id) });
            }
            MpiEvent::ReceiveRequest(id) => {
                self.threads[thread].event(time, &MpiIrecvRequest { request: request(id) });
            }
            MpiEvent::Cancelled(id) => {
                self.threads[thread].event(time, &MpiRequestCancelled { request: request(id) });
            }
            MpiEvent::CollectiveBegin(part) => {
                operation_of(part)?;
                self.comm(part.communicator)?;
                self.threads[thread].event(time, &MpiCollectiveBegin {});
            }
            MpiEvent::CollectiveEnd(part) => {
                let (operation, comm) = (operation_of(part)?, self.comm(part.communicator)?);
                let (root, sent, received) = (root_of(part.root), part.sent, part.received);
                let end = MpiCollectiveEnd { operation, comm, root, sent, received };
                self.threads[thread].event(time, &end);
            }
            MpiEvent::CollectiveRequest(part, id) => {
                operation_of(part)?;
                self.comm(part.communicator)?;
                let request = NonBlockingCollectiveRequest { request: request(id) };
                self.threads[thread].event(time, &request);
            }
            MpiEvent::CollectiveComplete(part, id) => {
                let (operation, comm) = (operation_of(part)?, self.comm(part.communicator)?);
                let (root, sent, received) = (root_of(part.root), part.sent, part.received);
                let request = request(id);
                let end = NonBlockingCollectiveComplete { operation, comm, root, sent, received, request };
                self.threads[thread].event(time, &end);
            }
            MpiEvent::Created(id) | MpiEvent::Freed(id) => {
                let defined = self.communicators.by_id.get_mut(id)?;
                // The other communicators exist from the start.
                let is_made =
                    matches!(defined.communicator.kind, CommunicatorKind::Made | CommunicatorKind::Between);
                if !is_made {
                    return None;
                }
                defined.has_events = true;
                let comm = defined.number;
                match event {
                    MpiEvent::Created(_) => self.threads[thread].event(time, &CommCreate { comm }),
                    _ => self.threads[thread].event(time, &CommDestroy { comm }),
                };
            }
        }
        Some(())
    }

    /// Defines the communicators. Group numbers start with the first value of `next`; `numbers` maps communicator
    /// numbers in events to those in definitions. Returns the next numbers.
    pub(super) fn put_communicators(
        &self,
        file: &mut DefinitionFile,
        (mut next_group, next_comm): (u32, u32),
        numbers: &[u32],
        names: &[StringRef],
    ) -> (u32, u32) {
        let all: Vec<&Defined> = self.communicators.all().collect();
        if all.is_empty() {
            return (next_group, next_comm);
        }
        let mut put = |file: &mut DefinitionFile, group_type: u8, members: Vec<u64>| {
            file.put(&group(next_group, paradigm::MPI, group_type, members));
            next_group += 1;
            GroupRef(next_group - 1)
        };
        put(file, COMM_LOCATIONS, self.main_threads().into_iter().map(u64::from).collect());
        let number = |comm: CommRef| CommRef(numbers[comm.0 as usize]);
        let world = all.iter().find(|it| it.communicator.kind == CommunicatorKind::World);
        let world = world.map_or(CommRef::UNDEFINED, |world| number(world.number));
        let mut groups: BTreeMap<&[u32], GroupRef> = BTreeMap::new();
        for (defined, name) in all.iter().zip(names) {
            let communicator = &defined.communicator;
            let mut group_of = |file: &mut DefinitionFile, ranks| -> GroupRef {
                *groups
                    .entry(ranks)
                    .or_insert_with(|| put(file, COMM_GROUP, ranks.iter().copied().map(u64::from).collect()))
            };
            let parent = communicator.parent.and_then(|parent| self.comm(parent));
            let (id, name) = (number(defined.number).0, *name);
            let flags = if defined.has_events { CREATE_DESTROY_EVENTS } else { 0 };
            let group = match communicator.kind {
                CommunicatorKind::Between => {
                    let group_a = group_of(file, &communicator.members);
                    let group_b = group_of(file, &communicator.remote);
                    file.put(&InterComm { id, name, group_a, group_b, common: world, flags });
                    continue;
                }
                CommunicatorKind::Own => put(file, COMM_SELF, Vec::new()),
                CommunicatorKind::World | CommunicatorKind::Made => group_of(file, &communicator.members),
            };
            let parent = parent.map_or(CommRef::UNDEFINED, number);
            file.put(&Comm { id, name, group, parent, flags: Added(flags) });
        }
        (next_group, next_comm + all.len() as u32)
    }

    /// The names of all communicators, in the order of `Communicators::numbers`.
    pub(super) fn communicator_names(&mut self) -> Vec<StringRef> {
        let names: Vec<String> =
            self.communicators.all().map(|defined| defined.communicator.name.clone()).collect();
        names.iter().map(|name| self.strings.number(name)).collect()
    }

    /// The main thread of each rank's process.
    fn main_threads(&self) -> Vec<u32> {
        let mut by_rank: BTreeMap<u32, u32> = BTreeMap::new();
        for thread in &self.threads {
            let Some(rank) = self.processes[thread.process].rank else { continue };
            let known = by_rank.entry(rank).or_insert(thread.location);
            if thread.role == ThreadRole::Main {
                *known = thread.location;
            }
        }
        // A process without threads in the archive keeps its position.
        let ranks = by_rank.last_key_value().map_or(0, |(last, _)| last + 1);
        (0..ranks).map(|rank| by_rank.get(&rank).copied().unwrap_or(0)).collect()
    }
}

fn root_of(root: Root) -> u32 {
    match root {
        Root::None => ROOT_NONE,
        Root::Rank(rank) => rank,
        Root::This => ROOT_SELF,
        Root::OfGroup => ROOT_THIS_GROUP,
    }
}

/// The OTF2 number of the operation; `None` if there is none, as for neighbourhood collectives.
fn operation_of(part: &Collective) -> Option<u8> {
    Some(match &part.operation()[..] {
        "barrier" => collective::BARRIER,
        "bcast" => collective::BCAST,
        "gather" => collective::GATHER,
        "gatherv" => collective::GATHERV,
        "scatter" => collective::SCATTER,
        "scatterv" => collective::SCATTERV,
        "allgather" => collective::ALLGATHER,
        "allgatherv" => collective::ALLGATHERV,
        "alltoall" => collective::ALLTOALL,
        "alltoallv" => collective::ALLTOALLV,
        "alltoallw" => collective::ALLTOALLW,
        "allreduce" => collective::ALLREDUCE,
        "reduce" => collective::REDUCE,
        "reduce_scatter" => collective::REDUCE_SCATTER,
        "scan" => collective::SCAN,
        "exscan" => collective::EXSCAN,
        "reduce_scatter_block" => collective::REDUCE_SCATTER_BLOCK,
        _ => return None,
    })
}
