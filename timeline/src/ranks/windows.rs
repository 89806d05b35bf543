//! Reads the calls of all ranks window by window, in the order of time, and matches what is known after each of them.
//!
//! Only what is not matched yet is in memory, except for waits and for what a replay of the job needs. For exports, all is.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::Reader;

use crate::model::session_clock::SessionClock;
use crate::model::{Communicator, Ns};
use crate::ranks::call_events::CallEvents;
use crate::ranks::call_list::CallList;
use crate::ranks::call_store::CallFile;
use crate::ranks::calls::Calls;
use crate::ranks::communication::Traffic;
use crate::ranks::forbidden::ThreadRules;
use crate::ranks::graph::{GraphBuilder, JobGraph};
use crate::ranks::hung::WaitingRank;
use crate::ranks::joints::{Joint, Joints};
use crate::ranks::matching::{Job, Pair};
use crate::ranks::messages::RankMessages;
use crate::ranks::order::Order;
use crate::ranks::process_calls::ProcessCalls;
use crate::ranks::traffic::TrafficSums;
use crate::replay::merge::Merge;
use crate::replay::stream::{Decoding, Extent};

/// Events of all ranks that are read before messages are matched.
static EVENTS: AtomicUsize = AtomicUsize::new(1 << 19);

/// Streams that are read at the same time. The traces of larger jobs are read one after the other.
const MAX_STREAMS: usize = 1 << 12;

/// The time that the first window takes. The others are longer or shorter, depending on the number of events.
const FIRST_WINDOW: Ns = 16;

/// Sets the number of events of all ranks of a job that are read before messages are matched. Results do not depend on it.
pub fn match_after(events: usize) {
    // Relaxed: an independent number.
    EVENTS.store(events, Ordering::Relaxed);
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

/// What is known of the ranks of a job.
#[derive(Default)]
pub(super) struct Matched {
    /// By process.
    pub(super) results: Vec<RankMessages>,
    pub(super) communicators: Vec<Communicator>,
    /// Who waits at the end.
    pub(super) waiting: Vec<WaitingRank>,
    /// How much the ranks communicate.
    pub(super) traffic: Traffic,
    pub(super) graph: Option<JobGraph>,
}

/// A process that is read.
pub(super) struct Input<'r> {
    pub(super) reader: &'r Reader,
    pub(super) clock: SessionClock<'r>,
    pub(super) rank: u32,
    /// Its number on the timeline.
    pub(super) number: usize,
}

/// The calls of a process, while they are read.
struct Reading<'r> {
    merge: Merge<'r, 'r>,
    calls: Calls,
    /// The time of the last event that was read; `None` if none is left.
    time: Option<Ns>,
    /// The number of events that were read since this was asked last.
    events: usize,
}

impl<'r> Reading<'r> {
    fn of(input: &Input<'r>, file: Option<Arc<CallFile>>) -> Reading<'r> {
        let Input { reader, clock, rank, .. } = *input;
        let mpi = reader.metadata().mpi.as_ref();
        let level = mpi.and_then(|mpi| mpi.thread_level.get("provided")?.as_str());
        let rules = ThreadRules::of(level.unwrap_or_default());
        Reading {
            merge: Merge::new(reader, clock, Extent::WHOLE, Decoding::Here),
            calls: Calls::new(rank, reader.streams().len(), rules, CallList::new(file)),
            time: Some(Ns::MIN),
            events: 0,
        }
    }

    /// Reads at least all events before this time.
    fn read(&mut self, until: Ns) {
        while self.time.is_some_and(|time| time < until) {
            let Some(run) = self.merge.next_run() else {
                self.time = None;
                return;
            };
            for timed in run.events {
                self.calls.event(run.thread, timed.time, &timed.record.event);
            }
            self.time = run.events.last().map(|timed| timed.time);
            self.events += run.events.len();
        }
    }
}

/// Reads all calls of one process.
pub(super) fn read(input: &Input<'_>) -> ProcessCalls {
    let mut reading = Reading::of(input, None);
    reading.read(Ns::MAX);
    reading.calls.finish()
}

/// Reads the processes of a job, which are all of its ranks, and matches what they do. `each` gets the messages of each window.
pub(super) fn read_and_match(
    inputs: &[Input<'_>],
    wanted: Wanted,
    each: &mut dyn FnMut(&Job, &[Pair]),
) -> Matched {
    let file = (wanted == Wanted::Graph).then(Arc::<CallFile>::default);
    let streams: usize = inputs.iter().map(|input| input.reader.streams().len()).sum();
    let numbers = inputs.iter().map(|input| input.number).collect();
    let mut matching = Matching::of(inputs.len(), numbers, wanted);
    if wanted == Wanted::Events || streams > MAX_STREAMS {
        let processes = in_parallel(inputs.iter().collect(), |input| {
            let mut reading = Reading::of(input, file.clone());
            reading.read(Ns::MAX);
            reading.calls.finish()
        });
        matching.window(processes, None, each);
        return matching.finish();
    }
    let mut all: Vec<Reading<'_>> = inputs.iter().map(|input| Reading::of(input, file.clone())).collect();
    let mut until = inputs.iter().map(|input| input.clock.start).min().unwrap_or(0);
    // Relaxed: an independent number.
    let most = EVENTS.load(Ordering::Relaxed).max(1);
    let (mut length, mut events) = (FIRST_WINDOW, 0);
    loop {
        until = until.saturating_add(length);
        all = in_parallel(all, |mut reading| {
            reading.read(until);
            reading
        });
        let read: usize = all.iter_mut().map(|reading| mem::take(&mut reading.events)).sum();
        events += read;
        // A window is read in a few steps.
        length = match read {
            _ if read > most / 2 => (length / 2).max(1),
            _ if read < most / 8 => length.saturating_mul(2),
            _ => length,
        };
        let Some(next) = all.iter().filter_map(|reading| reading.time).min() else { break };
        until = until.max(next);
        if events >= most {
            events = 0;
            let mut processes: Vec<ProcessCalls> = all
                .iter_mut()
                .map(|reading| {
                    reading.calls.all.open_since = reading.calls.open_since();
                    mem::take(&mut reading.calls.all)
                })
                .collect();
            processes = matching.window(processes, Some(until), each);
            all.iter_mut().zip(processes).for_each(|(reading, calls)| reading.calls.all = calls);
        }
    }
    let processes = all.into_iter().map(|reading| reading.calls.finish()).collect();
    matching.window(processes, None, each);
    matching.finish()
}

/// Matches what the ranks of a job do.
pub(super) struct Matching {
    job: Job,
    /// The number of each process on the timeline.
    numbers: Vec<usize>,
    wanted: Wanted,
    results: Vec<RankMessages>,
    waits: Vec<Vec<Joint>>,
    path_waits: Vec<Vec<Joint>>,
    orders: Vec<Order>,
    traffic: TrafficSums,
    graph: Option<GraphBuilder>,
    all: Matched,
}

impl Matching {
    pub(super) fn of(size: usize, numbers: Vec<usize>, wanted: Wanted) -> Matching {
        Matching {
            job: Job::of(size),
            numbers,
            wanted,
            results: vec![RankMessages::default(); size],
            waits: vec![Vec::new(); size],
            path_waits: vec![Vec::new(); size],
            orders: vec![Order::default(); size],
            traffic: TrafficSums::default(),
            graph: (wanted == Wanted::Graph).then(|| GraphBuilder::of(size)),
            all: Matched::default(),
        }
    }

    /// Matches what is known of the processes when all events before `until` were read; `None`: all events were read. Returns what is left
    /// of the processes.
    pub(super) fn window(
        &mut self,
        processes: Vec<ProcessCalls>,
        until: Option<Ns>,
        each: &mut dyn FnMut(&Job, &[Pair]),
    ) -> Vec<ProcessCalls> {
        let is_all = until.is_none();
        let job = &mut self.job;
        job.set(processes);
        let pairs = job.pairs(&mut self.results, is_all);
        let operations = job.operations(is_all);
        let fences = job.fences(is_all);
        job.wait_for_messages(&pairs, &mut self.waits, &mut self.orders);
        operations.iter().for_each(|operation| job.wait_in_operation(operation, &mut self.waits));
        fences.iter().for_each(|fence| job.wait_at_fence(fence, &mut self.waits));
        job.wait_for_the_last(&operations, &mut self.path_waits);
        job.count_combinable(&pairs);
        self.traffic.add(job, &pairs, &operations, &self.numbers);
        if let Some(graph) = &mut self.graph {
            graph.add(job, &pairs, &operations, &fences);
        }
        each(job, &pairs);
        if !is_all {
            job.remove(&pairs, (&operations, &fences), &mut self.results);
            job.order_waits(until, &mut self.waits, &mut self.orders);
            return mem::take(&mut job.processes);
        }
        job.order_waits(None, &mut self.waits, &mut self.orders);
        self.all.waiting = job.waiting_ranks(&pairs, &operations, &fences);
        job.wait_to_finalize(&mut self.path_waits);
        if self.wanted == Wanted::Events {
            job.number_messages(&pairs);
            job.number_operations(&operations);
        }
        Vec::new()
    }

    /// What is known, when the last window was matched.
    pub(super) fn finish(mut self) -> Matched {
        let mut job = self.job;
        let waits = self.waits.into_iter().zip(self.path_waits);
        for ((result, (waits, path_waits)), calls) in
            self.results.iter_mut().zip(waits).zip(&mut job.processes)
        {
            result.count(calls);
            result.joints = Joints::of(waits);
            result.path_waits = Joints::of(path_waits);
            (result.idle_waits, result.tests) = calls.idle_waits(&result.joints);
            result.sites = mem::take(&mut calls.sites).all;
        }
        self.all.traffic = self.traffic.finish();
        self.all.graph = self.graph.map(|graph| graph.finish(&mut job));
        if self.wanted == Wanted::Events {
            self.all.communicators = job.communicators.definitions(&job.processes);
            for (process, (result, calls)) in self.results.iter_mut().zip(job.processes).enumerate() {
                result.events = Arc::new(CallEvents::of(process, calls, &job.communicators));
            }
        }
        self.all.results = self.results;
        self.all
    }
}
