//! What the processes of an MPI job did with each other: messages, collective operations, and who waited for whom.
//!
//! ```text
//! Reader of each rank, window by window --calls--> sends, receives, collectives --\
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
//! Memory: 32 bytes for each wait, and 16 for each message where a replay of the job is wanted, whose calls are in a temporary file. What
//! is not matched yet takes some hundred bytes for each end of a message. For exports, that is so for all messages of the job.

mod call_events;
mod call_list;
mod call_store;
mod calls;
mod calls_at_end;
mod communication;
mod communicator;
mod communicators;
mod completion;
mod forbidden;
mod gaps;
mod graph;
mod host_clocks;
mod hung;
mod in_flight;
mod joints;
mod matching;
mod messages;
mod numbers;
mod objects;
mod one_clock;
mod open_call;
mod order;
mod posting;
mod process_calls;
mod requests;
mod shape;
mod sites;
#[cfg(test)]
mod tests;
mod traffic;
mod waits;
mod windows;

use std::sync::Arc;

use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::metadata::Mpi;
use omptrace_trace_format::{ClockMap, Reader};

use crate::model::session_clock::SessionClock;
use crate::model::{Communicator, CommunicatorId, Ns};
use crate::ranks::communicators::Communicators;
use crate::ranks::one_clock::{Corrected, Hosts};
use crate::ranks::process_calls::ProcessCalls;
use crate::ranks::windows::{Input, read_and_match};
use crate::replay::process::lifetime;

pub(crate) use call_events::{CallEvents, Moment};
pub use call_store::{CallBlock, RankCall};
pub use communication::{
    CollectiveSite, IdleWaits, LongestOperation, PairMessages, Traffic, UnsuccessfulTests,
};
pub use forbidden::Forbidden;
pub use graph::{CallId, Gate, JobGraph, Need, Needed, RankGraph};
pub use hung::WaitingRank;
pub use joints::{Joint, Joints, WaitKind};
pub use messages::{MessageCounts, RankMessages, Unmatched};
pub use one_clock::HostClocks;
pub use sites::CallSite;
pub(crate) use windows::Wanted;
pub use windows::match_after;

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
        let input = |index: &usize| Source {
            reader: inputs[*index].0,
            start: inputs[*index].1,
            rank: places[*index].map_or(0, |(rank, _)| rank),
            number: *index,
        };
        let sources: Vec<Source<'_>> = with_mpi.iter().map(input).collect();
        all.processes.resize_with(inputs.len(), RankMessages::default);
        if !is_matched {
            // Each process for itself: of other ranks it may have others' names.
            let read = in_parallel(Source::read_by(&sources, &[]), |input: Input<'_>| {
                (input.number, windows::read(&input))
            });
            for (index, calls) in read {
                let (messages, communicators) = named(calls, all.communicators.len());
                all.processes[index] = messages;
                all.communicators.extend(communicators);
            }
            return Some(all);
        }
        let of_hosts: Vec<(&Reader, Ns)> = with_mpi.iter().map(|index| inputs[*index]).collect();
        let mut hosts = Hosts::of(&of_hosts);
        let mut matched = read_and_match(&Source::read_by(&sources, &[]), wanted, &mut |job, pairs| {
            hosts.iter_mut().for_each(|hosts| hosts.add(job, pairs));
        });
        if let Some((hosts, corrected)) = hosts.map(Hosts::one_clock) {
            all.hosts = Some(hosts);
            all.clocks = vec![None; inputs.len()];
            for (index, clock) in with_mpi.iter().zip(corrected) {
                all.clocks[*index] = clock;
            }
            // Times are exactly those that events will have.
            if all.clocks.iter().any(Option::is_some) {
                drop(matched);
                matched = read_and_match(&Source::read_by(&sources, &all.clocks), wanted, &mut |_, _| {});
            }
        }
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

/// A process of a job that has recorded calls of MPI.
struct Source<'r> {
    reader: &'r Reader,
    /// When it begins on the timeline.
    start: Ns,
    rank: u32,
    /// Its number on the timeline.
    number: usize,
}

impl<'r> Source<'r> {
    /// The processes with these clocks, by number; those without one have their own.
    fn read_by(all: &[Source<'r>], clocks: &'r [Corrected]) -> Vec<Input<'r>> {
        let input = |&Source { reader, start, rank, number }: &Source<'r>| {
            let corrected = clocks.get(number).and_then(Option::as_ref).map(|(clock, _)| clock);
            let clock = SessionClock { map: corrected.unwrap_or(reader.clock()), start };
            Input { reader, clock, rank, number }
        };
        all.iter().map(input).collect()
    }
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
