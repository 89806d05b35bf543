//! What the processes of an MPI job did with each other: messages, collective operations, and who waited for whom.
//!
//! ```text
//! Reader of each rank --calls--> sends, receives, collectives --\
//!                        |                                       matching --> Joints and CallEvents of each rank
//!                        +--> communicators --communicators--> their identity on all ranks --/
//! ```
//!
//! The tracer records facts and sends no message, so all of this is found out after the run:
//!
//! * **Communicators.** To create one is collective over its parent, and all members do it in the same order. So it is identified by its
//!   parent, by how many were created on that before, and by its first member.
//! * **Messages.** The k-th send that is posted matches the k-th receive that is posted with the same communicator, source,
//!   destination and tag, because messages do not overtake each other. A receive from any source, or with any tag, has the key that its
//!   status shows at completion, and keeps its place in the order of posting.
//! * **Collective operations** match by the communicator and their order on it.
//! * **Fences** match by the window and their order on it. Windows are identified like communicators: by the communicator that they were made
//!   of, and by how many were made of that before.
//! * **Waits.** In a call, a rank waits until another one has begun what the call needs: see [`WaitKind`].
//!
//! Memory: about 150 bytes for each end of a message and each part in a collective operation, for the whole job at once; 50 more where
//! what each call does is wanted.

mod call_events;
mod call_list;
mod calls;
mod calls_at_end;
mod communication;
mod communicator;
mod communicators;
mod forbidden;
mod gaps;
mod graph;
mod host_clocks;
mod hung;
mod joints;
mod matching;
mod messages;
mod objects;
mod open_call;
mod posting;
mod process_calls;
mod requests;
mod shape;
mod sites;
#[cfg(test)]
mod tests;
mod traffic;
mod waits;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::metadata::Mpi;
use omptrace_trace_format::{ClockMap, Reader};

use crate::model::session_clock::SessionClock;
use crate::model::{Communicator, CommunicatorId, Ns};
use crate::ranks::call_list::CallList;
use crate::ranks::calls::Calls;
use crate::ranks::communicators::Communicators;
use crate::ranks::forbidden::ThreadRules;
use crate::ranks::host_clocks::{Fact, HostTime};
use crate::ranks::matching::{Job, Operation, Pair};
use crate::ranks::posting::name_of;
use crate::ranks::process_calls::{Match, ProcessCalls, ReceiveState};
use crate::ranks::shape::Shape;
use crate::replay::merge::Merge;
use crate::replay::process::lifetime;
use crate::replay::stream::{Decoding, Extent};

pub(crate) use call_events::{CallEvents, Moment};
pub use call_list::RankCall;
pub use communication::{
    CollectiveSite, IdleWaits, LongestOperation, PairMessages, Traffic, UnsuccessfulTests,
};
pub use forbidden::Forbidden;
pub use graph::{CallId, Gate, JobGraph, Need, Needed, RankGraph};
pub use hung::WaitingRank;
pub use joints::{Joint, Joints, WaitKind};
pub use messages::{MessageCounts, RankMessages, Unmatched};
pub use sites::CallSite;

/// What the processes of an MPI job did with each other.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    /// How many ranks of the job there are traces of.
    pub given: usize,
    /// How many ranks the job had.
    pub size: usize,
    /// The ranks that there are traces of, in order.
    numbers: Vec<u32>,
    /// In the timeline's order.
    processes: Vec<RankMessages>,
    /// By number.
    communicators: Vec<Communicator>,
    /// The clock of each process, where it is corrected, and when its session began by it.
    clocks: Vec<Corrected>,
    /// What is known of the clocks of several hosts.
    pub hosts: Option<HostClocks>,
    /// The ranks that wait for others when their traces end, as in a job that hangs.
    pub waiting: Vec<WaitingRank>,
    /// Ranks of which each waits for the next, and the last for the first.
    pub deadlock: Option<Vec<u32>>,
    /// What each call needs of other ranks; `None` unless that is wanted and all ranks are there.
    graph: Option<Arc<JobGraph>>,
    /// How much the ranks communicate; empty unless traces of all ranks are there.
    pub traffic: Traffic,
}

/// A process's corrected clock, and when its session began by that; `None` where its own is right.
type Corrected = Option<(ClockMap, Ns)>;

/// How the clocks of several hosts were made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostClocks {
    /// How many hosts there are.
    pub hosts: usize,
    /// How often clocks were compared while the program ran.
    pub measurements: u64,
    /// How far two clocks may be apart; `None` where one of them is aligned by the time of day.
    pub error_ns: Option<u64>,
    /// How many messages were moved, since they would have been received before they were sent.
    pub moved: u64,
}

impl HostClocks {
    /// Words about it; the time of day is off by no more than `uncertainty_ns`, as far as the traces say.
    pub fn note(&self, uncertainty_ns: u64) -> String {
        let HostClocks { hosts, measurements, error_ns, moved } = self;
        let by = match measurements {
            0 => "by MPI messages between them".to_owned(),
            1 => "by a measurement and by MPI messages between them".to_owned(),
            _ => format!("by {measurements} measurements and by MPI messages between them"),
        };
        let mut text = match error_ns {
            Some(error) => format!(
                "the clocks of the {hosts} hosts were aligned {by}; two of them differ by at most {error} ns"
            ),
            None => format!(
                "the clocks of the processes were aligned by the hosts' time of day; the alignment may be wrong by up to {uncertainty_ns} ns, and by more if the hosts' clocks are not synchronised"
            ),
        };
        if *moved > 0 {
            text +=
                &format!("; {moved} messages that would have been received before they were sent were moved");
        }
        text
    }
}

impl Ranks {
    /// Words about the ranks that wait for others when their traces end, a line each, and about a deadlock.
    pub fn waiting_notes(&self) -> Vec<String> {
        let waits = self.waiting.iter().map(ToString::to_string);
        let cycle = self.deadlock.iter().map(|ranks| {
            let way: Vec<String> = ranks.iter().chain(ranks.first()).map(u32::to_string).collect();
            format!("deadlock: each of these ranks waits for the next: {}", way.join(" -> "))
        });
        waits.chain(cycle).collect()
    }
}

/// How much is to be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Waits, and what has no other end.
    Waits,
    /// Also the calls, and what each needs of other ranks.
    Graph,
    /// Also what each call does, and the names of communicators.
    Events,
}

impl Ranks {
    /// What the processes of `inputs`, which begin at these times, did with each other. `None` where no process has recorded calls of MPI
    /// in a job of several, or where two have the same rank: these are several jobs. Nothing is matched unless all ranks are there.
    pub(crate) fn of(inputs: &[(&Reader, Ns)], wanted: Wanted) -> Option<Ranks> {
        let place = |mpi: &Mpi| mpi.rank.zip(mpi.size);
        let of_mpi = |reader: &Reader| reader.metadata().mpi.as_ref().map(|mpi| place(mpi).unwrap_or((0, 0)));
        let places: Vec<Option<(u32, u32)>> = inputs.iter().map(|(reader, _)| of_mpi(reader)).collect();
        let known = || places.iter().flatten().filter(|(_, size)| *size > 0);
        let size = known().map(|(_, size)| *size as usize).max().unwrap_or(0);
        let mut ranks: Vec<u32> = known().map(|(rank, _)| *rank).collect();
        ranks.sort_unstable();
        let is_one =
            ranks.windows(2).all(|two| two[0] != two[1]) && known().all(|(_, of)| *of as usize == size);
        let mut all = Ranks { given: ranks.len(), size, numbers: ranks, ..Ranks::default() };
        let is_matched = is_one && size > 1 && all.are_complete();
        let with_mpi: Vec<usize> = (0..inputs.len()).filter(|index| places[*index].is_some()).collect();
        if with_mpi.is_empty() || !is_matched && wanted != Wanted::Events {
            return (is_one && size > 1).then_some(all);
        }
        let read_all = |clocks: &[Corrected]| {
            in_parallel(with_mpi.clone(), |index| {
                let (reader, start) = inputs[index];
                let corrected = clocks.get(index).and_then(Option::as_ref).map(|(clock, _)| clock);
                let clock = SessionClock { map: corrected.unwrap_or(reader.clock()), start };
                read(reader, clock, places[index].map_or(0, |(rank, _)| rank), wanted)
            })
        };
        let mut read = read_all(&[]);
        all.processes.resize_with(inputs.len(), RankMessages::default);
        if !is_matched {
            // Each process for itself: of other ranks it may have others' names.
            for (index, calls) in with_mpi.into_iter().zip(read) {
                let (messages, communicators) = named(calls, all.communicators.len());
                all.processes[index] = messages;
                all.communicators.extend(communicators);
            }
            return Some(all);
        }
        let of_hosts: Vec<(&Reader, Ns)> = with_mpi.iter().map(|index| inputs[*index]).collect();
        if let Some((hosts, corrected)) = one_clock(&mut read, &of_hosts, size) {
            all.hosts = Some(hosts);
            all.clocks = vec![None; inputs.len()];
            for (index, clock) in with_mpi.iter().zip(corrected) {
                all.clocks[*index] = clock;
            }
            // Times are exactly those that events will have.
            if all.clocks.iter().any(Option::is_some) {
                read = read_all(&all.clocks);
            }
        }
        let matched = matched(read, (size, &with_mpi), wanted);
        all.communicators = matched.communicators;
        all.deadlock = hung::deadlock(&matched.waiting);
        all.waiting = matched.waiting;
        all.traffic = matched.traffic;
        all.graph = matched.graph.map(Arc::new);
        for (index, messages) in with_mpi.iter().zip(matched.results) {
            let (reader, start) = inputs[*index];
            let start = all.clock(*index).map_or(start, |(_, start)| start);
            all.processes[*index] = messages.with_lifetime(&lifetime(reader, start));
        }
        Some(all)
    }

    /// Whether there are traces of all ranks of a job of several, so that messages are matched.
    pub fn are_complete(&self) -> bool {
        self.given == self.size && self.size > 1
    }

    /// The ranks of which there is no trace.
    pub fn missing(&self) -> Vec<u32> {
        let all = 0..u32::try_from(self.size).unwrap_or(u32::MAX);
        all.filter(|rank| self.numbers.binary_search(rank).is_err()).collect()
    }

    /// Of a process, by its number on the timeline; `None` unless all ranks are there.
    pub fn process(&self, number: usize) -> Option<&RankMessages> {
        self.processes.get(number).filter(|_| self.are_complete())
    }

    /// The calls of all ranks, and what each needs of others. Ranks are in the order of the timeline's processes. `None` unless
    /// that is wanted and all ranks are there.
    pub fn graph(&self) -> Option<&Arc<JobGraph>> {
        self.graph.as_ref()
    }

    /// What the calls of a process do, as far as it is known; `None` where it has none, or that is not wanted.
    pub(crate) fn events(&self, number: usize) -> Option<&CallEvents> {
        self.processes.get(number).map(|messages| &*messages.events)
    }

    /// The corrected clock of a process, and when its session began by it; `None` where its own is right.
    pub(crate) fn clock(&self, number: usize) -> Option<(&ClockMap, Ns)> {
        self.clocks.get(number)?.as_ref().map(|(clock, start)| (clock, *start))
    }

    /// A communicator by its number.
    pub(crate) fn communicator(&self, id: CommunicatorId) -> Option<&Communicator> {
        self.communicators.get(id.0 as usize)
    }
}

/// What is known of the ranks of a job.
#[derive(Default)]
struct Matched {
    /// By process.
    results: Vec<RankMessages>,
    communicators: Vec<Communicator>,
    /// Who waits at the end.
    waiting: Vec<WaitingRank>,
    /// How much the ranks communicate.
    traffic: Traffic,
    graph: Option<JobGraph>,
}

/// The results of `processes`, which are all ranks of a job of `size`. `numbers`: their numbers on the timeline.
fn matched(processes: Vec<ProcessCalls>, (size, numbers): (usize, &[usize]), wanted: Wanted) -> Matched {
    let mut results: Vec<RankMessages> = processes.iter().map(RankMessages::counted).collect();
    let mut job = Job::new(processes, size);
    let pairs = job.pairs(&mut results);
    let operations = job.operations();
    let fences = job.fences();
    let waiting = job.waiting_ranks(&pairs, &operations, &fences);
    let mut waits: Vec<Vec<Joint>> = vec![Vec::new(); results.len()];
    job.wait_for_messages(&pairs, &mut waits);
    operations.iter().for_each(|operation| job.wait_in_operation(operation, &mut waits));
    fences.iter().for_each(|fence| job.wait_at_fence(fence, &mut waits));
    job.count_combinable(&pairs);
    let traffic = job.traffic(&pairs, &operations, numbers);
    for ((result, waits), calls) in results.iter_mut().zip(waits).zip(&mut job.processes) {
        result.joints = Joints::of(waits);
        (result.idle_waits, result.tests) = calls.idle_waits(&result.joints);
        result.sites = std::mem::take(&mut calls.sites).all;
    }
    for (result, waits) in results.iter_mut().zip(job.wait_for_the_last(&operations)) {
        result.path_waits = Joints::of(waits);
    }
    if wanted != Wanted::Events {
        let graph = (wanted == Wanted::Graph).then(|| JobGraph::of(&mut job, &pairs, &operations, &fences));
        return Matched { results, communicators: Vec::new(), waiting, traffic, graph };
    }
    job.number_messages(&pairs);
    job.number_operations(&operations);
    let definitions = job.communicators.definitions(&job.processes);
    for (process, (result, calls)) in results.iter_mut().zip(job.processes).enumerate() {
        result.events = Arc::new(CallEvents::of(process, calls, &job.communicators));
    }
    Matched { results, communicators: definitions, waiting, traffic, graph: None }
}

/// The names of one process's communicators, whose numbers begin at `first`. Nothing is known of its messages.
fn named(mut calls: ProcessCalls, first: usize) -> (RankMessages, Vec<Communicator>) {
    calls.forget_messages();
    let alone = std::slice::from_ref(&calls);
    let communicators = Communicators::of(alone);
    let mut definitions = communicators.definitions(alone);
    let first = first as u32;
    for definition in &mut definitions {
        definition.id.0 += first;
        definition.parent = definition.parent.map(|CommunicatorId(parent)| CommunicatorId(parent + first));
    }
    let events = Arc::new(CallEvents::of(0, calls, &communicators).numbered_from(first));
    (RankMessages { events, ..RankMessages::default() }, definitions)
}

impl Job {
    /// Gives each message its number, and its ends what they know of each other.
    fn number_messages(&mut self, pairs: &[Pair]) {
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
            let send = &mut self.processes[sender].sends[pair.send as usize];
            let sent = send.posted.begin;
            send.peer_in_world = Some(to);
            send.other = received.map(|time| Match { message, time });
            let receive = &mut self.processes[receiver].receives[pair.receive as usize];
            receive.peer_in_world = Some(from);
            receive.other = Some(Match { message, time: sent });
        }
        // Of those that have no other end, the receiver may be known.
        for process in 0..self.processes.len() {
            for place in 0..self.processes[process].sends.len() {
                let calls = &self.processes[process];
                let send = &calls.sends[place];
                if send.peer_in_world.is_none() {
                    let of = send.communicator;
                    let to = self.communicators.world_rank(process, calls, of, send.peer);
                    self.processes[process].sends[place].peer_in_world = to;
                }
            }
        }
    }

    /// Gives each collective operation its number, and each part its bytes.
    fn number_operations(&mut self, operations: &[Operation]) {
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
                let part = &mut self.processes[*process as usize].collectives[*place as usize];
                part.number = number;
                (part.sent, part.received) = (sent, received);
            }
        }
    }
}

/// What is known of the clocks of hosts, and the corrected clock of each process; `None` where there is one host.
fn one_clock(
    read: &mut Vec<ProcessCalls>,
    inputs: &[(&Reader, Ns)],
    size: usize,
) -> Option<(HostClocks, Vec<Corrected>)> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let hosts: Vec<usize> = inputs
        .iter()
        .enumerate()
        .map(|(process, (reader, _))| {
            let machine = reader.metadata().machine.as_ref();
            let boot = machine.map_or("", |machine| &machine.boot);
            let next = numbers.len();
            // A process whose host is not known is on one of its own.
            let key = if boot.is_empty() { format!("process {process}") } else { boot.to_owned() };
            *numbers.entry(key).or_insert(next)
        })
        .collect();
    if numbers.len() < 2 {
        return None;
    }
    let mut results = vec![RankMessages::default(); read.len()];
    let job = Job::new(std::mem::take(read), size);
    let pairs = job.pairs(&mut results);
    let at = |process: usize, time| HostTime { host: hosts[process], time };
    // What the raw clock of a process's host shows, on the timeline.
    let raw = |process: usize, raw_ns: u64| {
        let (reader, start) = inputs[process];
        let since = i64::try_from(i128::from(raw_ns) - i128::from(reader.clock().start_raw_ns()));
        at(process, start.saturating_add(since.unwrap_or(0)))
    };
    let mut facts = Vec::new();
    let mut measurements = 0;
    for (process, calls) in job.processes.iter().enumerate() {
        for it in &calls.measured {
            let Some(peer) = job.process(it.peer).map(|peer| peer as usize) else { continue };
            if hosts[peer] != hosts[process] {
                measurements += 1;
                let error_ns = i64::try_from(it.round_trip_ns / 2).unwrap_or(i64::MAX);
                facts.push(Fact::Measured {
                    own: raw(process, it.own_ns),
                    peer: raw(peer, it.peer_ns),
                    error_ns,
                });
            }
        }
    }
    for pair in &pairs {
        let (sender, receiver) = (pair.sender as usize, pair.receiver as usize);
        let receive = &job.processes[receiver].receives[pair.receive as usize];
        let is_received = receive.state == ReceiveState::Complete && hosts[sender] != hosts[receiver];
        if let Some(done) = receive.wait.filter(|_| is_received) {
            let sent = job.processes[sender].sends[pair.send as usize].posted.begin;
            facts.push(Fact::Message { sent: at(sender, sent), received: at(receiver, done.end) });
        }
    }
    let mut aligned = host_clocks::aligned(numbers.len(), &facts);
    let starts = inputs.iter().zip(&hosts);
    let first = starts.map(|((_, start), host)| aligned.corrections[*host].apply(*start)).min();
    // No time is before the timeline's begin.
    if let Some(first) = first.filter(|first| *first < 0) {
        aligned.corrections.iter_mut().for_each(|correction| correction.shift(-first));
    }
    let clocks = inputs.iter().zip(&hosts).map(|((reader, start), host)| {
        let correction = &aligned.corrections[*host];
        let bends: Vec<i64> = correction.bends().iter().map(|time| time - start).collect();
        let corrected = |ns: i64| correction.apply(start.saturating_add(ns)).saturating_sub(*start);
        (!correction.is_none())
            .then(|| (reader.clock().corrected(&bends, corrected), correction.apply(*start)))
    });
    let known =
        HostClocks { hosts: numbers.len(), measurements, error_ns: aligned.error_ns, moved: aligned.moved };
    let clocks = clocks.collect();
    *read = job.processes;
    Some((known, clocks))
}

/// Reads the calls of one rank.
fn read(reader: &Reader, clock: SessionClock<'_>, rank: u32, wanted: Wanted) -> ProcessCalls {
    let mpi = reader.metadata().mpi.as_ref();
    let level = mpi.and_then(|mpi| mpi.thread_level.get("provided")?.as_str());
    let rules = ThreadRules::of(level.unwrap_or_default());
    let mut calls = Calls::new(rank, reader.streams().len(), rules);
    let mut list = CallList::new(wanted == Wanted::Graph);
    let mut merge = Merge::new(reader, clock, Extent::WHOLE, Decoding::Here);
    while let Some(run) = merge.next_run() {
        for timed in run.events {
            calls.event(run.thread, timed.time, &timed.record.event);
            list.event(run.thread, timed.time, &timed.record.event);
        }
    }
    list.calls.shrink_to_fit();
    let mut all = ProcessCalls { list, ..calls.finish() };
    all.sends.shrink_to_fit();
    all.receives.shrink_to_fit();
    all
}
