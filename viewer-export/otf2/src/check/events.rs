//! Checks the rules for the events of an archive, in chronological order over all locations.
//!
//! ```text
//! source    the events of one location
//! tasks     tasks are created once, run where they exist, and leave what they enter
//! teams     forks, joins and members of teams
//! locks     locks are acquired in order, and released by their holders
//! rma       transfers are completed once
//! programs  a program encloses its process's events, and events are within the clock's range
//! values    ranks, metrics, parameters and references are as defined
//! ```

mod locks;
mod programs;
mod rma;
mod seen;
mod source;
mod tasks;
mod teams;
mod values;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::path::Path;

use super::definitions::{Definitions, LocalDefinitions};
use super::faults::{Fault, Faults};
use super::reader::{Anchor, Records};
use crate::encoding::{CommRef, Kind};
use crate::records::Event;
use seen::{Program, Task, TaskName};
use source::{Attribute, Source};

// `OTF2_ParameterType`.
const PARAMETER_STRING: u8 = 0;
const PARAMETER_INT64: u8 = 1;
const PARAMETER_UINT64: u8 = 2;

/// The entries of a map, sorted by key, so that the first of several faults is the same in each run.
fn in_order<K: Ord, V>(map: &HashMap<K, V>) -> Vec<(&K, &V)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// Checks events.
pub(super) struct Checker<'a> {
    definitions: &'a Definitions,
    faults: &'a mut Faults,
    sources: Vec<Source>,
    members: HashMap<CommRef, Option<Vec<u64>>>,
    /// The open regions of each explicit task that exists.
    tasks: HashMap<TaskName, Vec<u64>>,
    /// Tasks that were switched to at the current time, but are not created yet. Locations may come in any order if
    /// times are equal.
    early: HashMap<TaskName, u64>,
    /// The acquisition numbers of each lock, one bit each.
    locks: HashMap<u32, Vec<u64>>,
    programs: HashMap<u32, Program>,
}

impl<'a> Checker<'a> {
    /// Opens the events of all locations in `folder`.
    pub(super) fn open(
        folder: &Path,
        anchor: &Anchor,
        definitions: &'a Definitions,
        faults: &'a mut Faults,
    ) -> Checker<'a> {
        let mut sources = Vec::new();
        for (&location, &facts) in &definitions.locations {
            let path = folder.join(format!("{location}.evt"));
            let Ok(records) = Records::open(&path, anchor.event_chunk_bytes, true) else {
                faults.add(Fault::MissingFile, || path.display().to_string());
                continue;
            };
            let numbers = folder.join(format!("{location}.def"));
            sources.push(Source {
                location,
                facts,
                records,
                numbers: LocalDefinitions::read(&numbers, anchor, faults),
                head: None,
                time: 0,
                global_time: 0,
                events: 0,
                chunk: (1, 0),
                implicit: vec![Vec::new()],
                teams: vec![(CommRef::UNDEFINED, Task::Implicit(0))],
                task: Task::Implicit(0),
                forks: 0,
                locks: HashSet::new(),
                transfers: HashSet::new(),
            });
        }
        Checker {
            definitions,
            faults,
            sources,
            members: HashMap::new(),
            tasks: HashMap::new(),
            early: HashMap::new(),
            locks: HashMap::new(),
            programs: HashMap::new(),
        }
    }

    /// Checks all events.
    pub(super) fn run(mut self) {
        let mut due = BinaryHeap::new();
        for index in 0..self.sources.len() {
            if self.advance(index) {
                due.push(Reverse((self.sources[index].global_time, index)));
            }
        }
        while let Some(Reverse((time, index))) = due.pop() {
            if let Some((event, attributes)) = self.sources[index].head.take() {
                self.event(index, time, &event, &attributes);
            }
            if self.advance(index) {
                due.push(Reverse((self.sources[index].global_time, index)));
            }
        }
        self.finish();
    }

    /// Reads the next event of a location. False at the end.
    fn advance(&mut self, index: usize) -> bool {
        let source = &mut self.sources[index];
        let before = source.time;
        let read = source.read();
        let (location, time) = (source.location, source.time);
        source.global_time = source.numbers.global_time(time);
        if time < before {
            (source.time, source.global_time) = (before, source.numbers.global_time(before));
            self.faults.add(Fault::TimeWentBack, || format!("location {location}, from {before} to {time}"));
        }
        match read {
            Ok(is_event) => {
                self.check_chunk(index, !is_event);
                is_event
            }
            Err(damage) => {
                self.faults.add(Fault::Damaged, || damage.0);
                false
            }
        }
    }

    /// Checks the event numbers in a chunk's header.
    fn check_chunk(&mut self, index: usize, at_end: bool) {
        let source = &mut self.sources[index];
        let stated = source.records.stated;
        if stated == source.chunk && !at_end {
            return;
        }
        // The newest event is the first one in the new chunk.
        let before = source.events - u64::from(!at_end);
        let (location, (_, last)) = (source.location, source.chunk);
        let is_wrong = last != before || (!at_end && stated.0 != source.events);
        source.chunk = stated;
        if is_wrong {
            self.faults.add(Fault::ChunkNumbers, || format!("location {location}, event {before}"));
        }
    }

    fn event(&mut self, index: usize, time: u64, event: &Event, attributes: &[Attribute]) {
        self.check_time(index, time, event);
        self.check_references(index, time, event, attributes);
        let source = &mut self.sources[index];
        let comm = |team: &CommRef| CommRef(source.numbers.global(Kind::Comm, team.0.into()) as u32);
        let task = |team: &CommRef, creating_thread: &u32, generation: &u32| TaskName {
            team: comm(team),
            creating_thread: *creating_thread,
            generation: *generation,
        };
        match event {
            Event::Enter(enter) => {
                let region = source.numbers.global(Kind::Region, enter.region.0.into());
                self.stack(index, time).push(region);
            }
            Event::Leave(leave) => {
                let region = source.numbers.global(Kind::Region, leave.region.0.into());
                self.leave(index, time, region);
            }
            Event::CallingContextEnter(enter) => {
                let context = enter.context.0.into();
                let context = source.numbers.global(Kind::CallingContext, context);
                self.stack(index, time).push(context);
            }
            Event::CallingContextLeave(leave) => {
                let context = leave.context.0.into();
                let context = source.numbers.global(Kind::CallingContext, context);
                self.leave(index, time, context);
            }
            Event::MpiSend(e) => self.check_rank(index, time, e.comm, e.receiver),
            Event::MpiIsend(e) => self.check_rank(index, time, e.comm, e.receiver),
            Event::MpiRecv(e) => self.check_rank(index, time, e.comm, e.sender),
            Event::MpiIrecv(e) => self.check_rank(index, time, e.comm, e.sender),
            Event::Metric(e) => self.check_metric(index, time, e),
            Event::ParameterString(e) => {
                self.check_parameter(index, time, e.parameter, PARAMETER_STRING);
            }
            Event::ParameterInt(e) => {
                self.check_parameter(index, time, e.parameter, PARAMETER_INT64);
            }
            Event::ParameterUnsignedInt(e) => {
                self.check_parameter(index, time, e.parameter, PARAMETER_UINT64);
            }
            Event::ThreadFork(_) => source.forks += 1,
            Event::ThreadJoin(_) => self.join(index, time),
            Event::ThreadTeamBegin(begin) => {
                let team = comm(&begin.team);
                self.team_begin(index, time, team);
            }
            Event::ThreadTeamEnd(end) => {
                let team = comm(&end.team);
                self.team_end(index, time, team);
            }
            Event::ThreadTaskCreate(e) => {
                let task = task(&e.team, &e.creating_thread, &e.generation);
                self.task_create(index, time, task);
            }
            Event::ThreadTaskSwitch(e) => {
                let task = task(&e.team, &e.creating_thread, &e.generation);
                self.task_switch(index, time, task);
            }
            Event::ThreadTaskComplete(e) => {
                let task = task(&e.team, &e.creating_thread, &e.generation);
                self.task_complete(index, time, task);
            }
            Event::ThreadAcquireLock(e) => self.acquire(index, time, (e.lock, e.acquisition_order)),
            Event::ThreadReleaseLock(e) => self.release(index, time, (e.lock, e.acquisition_order)),
            Event::RmaPut(e) => self.transfer(index, time, e.window, e.remote, e.matching_id),
            Event::RmaGet(e) => self.transfer(index, time, e.window, e.remote, e.matching_id),
            Event::RmaAtomic(e) => self.transfer(index, time, e.window, e.remote, e.matching_id),
            Event::RmaOpCompleteBlocking(e) => self.completion(index, time, (e.window.0, e.matching_id)),
            Event::RmaOpCompleteNonBlocking(e) => {
                self.completion(index, time, (e.window.0, e.matching_id));
            }
            Event::ProgramBegin(_) => self.program_begin(index, time),
            Event::ProgramEnd(_) => self.program_end(index, time),
            _ => {}
        }
    }

    #[cold]
    fn fault(&mut self, fault: Fault, index: usize, time: u64) {
        let location = self.sources[index].location;
        self.faults.add(fault, || format!("location {location} at {time}"));
    }

    /// Checks for missing events after all events have been read.
    fn finish(mut self) {
        for index in 0..self.sources.len() {
            let source = &self.sources[index];
            let (time, events, stated) = (source.global_time, source.events, source.facts.events);
            let location = source.location;
            let is_open = source.implicit.iter().any(|regions| !regions.is_empty());
            let (in_team, forked) = (source.teams.len() > 1, source.forks > 0);
            let (locked, transferring) = (!source.locks.is_empty(), !source.transfers.is_empty());
            if events != stated {
                self.faults.add(Fault::EventCount, || {
                    format!("location {location} has {events}, and should have {stated}")
                });
            }
            for (is_missing, fault) in [
                (is_open, Fault::NotLeft),
                (in_team, Fault::Team),
                (forked, Fault::ForkJoin),
                (locked, Fault::Lock),
                (transferring, Fault::Rma),
            ] {
                if is_missing {
                    self.fault(fault, index, time);
                }
            }
        }
        self.finish_tasks();
        self.finish_locks();
        self.finish_programs();
    }
}
