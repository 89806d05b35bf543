//! The events of an archive, in the order of time over all locations, and the rules that they keep.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use super::definitions::{Definitions, LocalDefinitions, LocationFacts};
use super::faults::{Fault, Faults};
use super::reader::{Anchor, Damage, Records};
use crate::encoding::{
    AttributeRef, Bytes, CommRef, Field, Full, Kind, ParameterRef, RmaWinRef, TypedValue,
};
use crate::records::{ATTRIBUTE_LIST, Event, Metric, TIMESTAMP};

const PARAMETER_STRING: u8 = 0; // OTF2_ParameterType
const PARAMETER_INT64: u8 = 1;
const PARAMETER_UINT64: u8 = 2;

/// A task by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct TaskName {
    team: CommRef,
    creating_thread: u32,
    generation: u32,
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaskName {
            team: CommRef(team),
            creating_thread,
            generation,
        } = self;
        write!(
            f,
            "task {generation} that thread {creating_thread} of team {team} created"
        )
    }
}

/// The entries of a map in the order of their keys: of several faults, the first is the same in each run.
fn in_order<K: Ord, V>(map: &HashMap<K, V>) -> Vec<(&K, &V)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// Whose regions are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// The implicit task in the location's team at this place.
    Implicit(usize),
    Explicit(TaskName),
}

/// One location's events.
struct Source {
    location: u64,
    facts: LocationFacts,
    records: Records,
    numbers: LocalDefinitions,
    /// The event that is due.
    head: Option<(Event, Vec<Attribute>)>,
    /// The time of the newest event, as the location has it, and on the archive's clock.
    time: u64,
    global_time: u64,
    events: u64,
    /// The number of the first event of the chunk being read, and that of the last.
    chunk: (u64, u64),

    /// The regions of the implicit tasks, by the place of their teams.
    implicit: Vec<Vec<u64>>,
    /// The teams, each with the task that the location goes on with behind it. The first is that outside of all.
    teams: Vec<(CommRef, Task)>,
    task: Task,
    forks: u64,
    locks: HashSet<(u32, u32)>,
    transfers: HashSet<(u32, u64)>,
}

type Attribute = (AttributeRef, TypedValue);

/// Checks events.
pub(super) struct Checker<'a> {
    definitions: &'a Definitions,
    faults: &'a mut Faults,
    sources: Vec<Source>,
    members: HashMap<CommRef, Option<Vec<u64>>>,
    /// The open regions of each explicit task that exists.
    tasks: HashMap<TaskName, Vec<u64>>,
    /// Tasks that were switched to at this time and are not created yet: at equal times, locations come in any order.
    early: HashMap<TaskName, u64>,
    /// The acquisitions of each lock: one bit each.
    locks: HashMap<u32, Vec<u64>>,
    programs: HashMap<u32, Program>,
}

/// When a process was seen.
#[derive(Default)]
struct Program {
    first: Option<u64>,
    last: u64,
    begin: Option<u64>,
    end: Option<u64>,
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

    /// Reads the next event of a location. False where there is none.
    fn advance(&mut self, index: usize) -> bool {
        let source = &mut self.sources[index];
        let before = source.time;
        let read = source.read();
        let (location, time) = (source.location, source.time);
        source.global_time = source.numbers.global_time(time);
        if time < before {
            (source.time, source.global_time) = (before, source.numbers.global_time(before));
            self.faults.add(Fault::TimeWentBack, || {
                format!("location {location}, from {before} to {time}")
            });
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

    /// A chunk states the numbers of its events.
    fn check_chunk(&mut self, index: usize, at_end: bool) {
        let source = &mut self.sources[index];
        let stated = source.records.stated;
        if stated == source.chunk && !at_end {
            return;
        }
        // The newest event is the first of the new chunk.
        let before = source.events - u64::from(!at_end);
        let (location, (_, last)) = (source.location, source.chunk);
        let is_wrong = last != before || (!at_end && stated.0 != source.events);
        source.chunk = stated;
        if is_wrong {
            self.faults.add(Fault::ChunkNumbers, || {
                format!("location {location}, event {before}")
            });
        }
    }

    fn event(&mut self, index: usize, time: u64, event: &Event, attributes: &[Attribute]) {
        self.check_time(index, time, event);
        self.check_references(index, time, event, attributes);
        let source = &mut self.sources[index];
        let comm =
            |team: &CommRef| CommRef(source.numbers.global(Kind::Comm, team.0.into()) as u32);
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
            Event::ThreadJoin(_) => {
                if source.forks == 0 {
                    self.fault(Fault::ForkJoin, index, time);
                } else {
                    source.forks -= 1;
                }
            }
            Event::ThreadTeamBegin(begin) => {
                let team = comm(&begin.team);
                source.teams.push((team, source.task));
                source.implicit.push(Vec::new());
                source.task = Task::Implicit(source.implicit.len() - 1);
                let location = source.location;
                let is_member = |members: &Vec<u64>| members.contains(&location);
                if !self.members(team).as_ref().is_some_and(is_member) {
                    self.fault(Fault::NotAMember, index, time);
                }
            }
            Event::ThreadTeamEnd(end) => {
                let team = comm(&end.team);
                self.team_end(index, time, team);
            }
            Event::ThreadTaskCreate(e) => {
                let task = task(&e.team, &e.creating_thread, &e.generation);
                self.early.remove(&task);
                if self.tasks.contains_key(&task) && self.early.is_empty() {
                    self.fault(Fault::TaskTwice, index, time);
                }
                self.tasks.entry(task).or_default();
            }
            Event::ThreadTaskSwitch(e) => {
                let task = task(&e.team, &e.creating_thread, &e.generation);
                self.task_switch(index, time, task);
            }
            Event::ThreadTaskComplete(e) => {
                let task = task(&e.team, &e.creating_thread, &e.generation);
                match self.tasks.remove(&task) {
                    None => self.fault(Fault::TaskUnknown, index, time),
                    Some(open) if !open.is_empty() => self.fault(Fault::TaskNotLeft, index, time),
                    Some(_) => {}
                }
            }
            Event::ThreadAcquireLock(e) => {
                let is_new = source.locks.insert((e.lock, e.acquisition_order));
                if !is_new || !self.acquire(e.lock, e.acquisition_order) {
                    self.fault(Fault::LockOrder, index, time);
                }
            }
            Event::ThreadReleaseLock(e) => self.release(index, time, (e.lock, e.acquisition_order)),
            Event::RmaPut(e) => self.transfer(index, time, e.window, e.remote, e.matching_id),
            Event::RmaGet(e) => self.transfer(index, time, e.window, e.remote, e.matching_id),
            Event::RmaAtomic(e) => self.transfer(index, time, e.window, e.remote, e.matching_id),
            Event::RmaOpCompleteBlocking(e) => {
                self.completion(index, time, (e.window.0, e.matching_id))
            }
            Event::RmaOpCompleteNonBlocking(e) => {
                self.completion(index, time, (e.window.0, e.matching_id));
            }
            Event::ProgramBegin(_) => {
                let program = self.programs.entry(source.facts.group).or_default();
                if program.begin.replace(time).is_some() {
                    self.fault(Fault::Program, index, time);
                }
            }
            Event::ProgramEnd(_) => {
                let program = self.programs.entry(source.facts.group).or_default();
                if program.end.replace(time).is_some() {
                    self.fault(Fault::Program, index, time);
                }
            }
            _ => {}
        }
    }

    #[cold]
    fn fault(&mut self, fault: Fault, index: usize, time: u64) {
        let location = self.sources[index].location;
        self.faults
            .add(fault, || format!("location {location} at {time}"));
    }

    fn check_time(&mut self, index: usize, time: u64, event: &Event) {
        let group = self.sources[index].facts.group;
        let program = self.programs.entry(group).or_default();
        program.first.get_or_insert(time);
        let end = match event {
            Event::BufferFlush(flush) => {
                let numbers = &self.sources[index].numbers;
                numbers.global_time(flush.stop_time.0).max(time)
            }
            _ => time,
        };
        program.last = program.last.max(end);
        let is_inside = self.definitions.clock.as_ref().is_none_or(|clock| {
            let begin = clock.global_offset;
            (begin..=begin.saturating_add(clock.trace_length)).contains(&time)
        });
        if !is_inside {
            self.fault(Fault::OutsideClock, index, time);
        }
    }

    fn check_references(
        &mut self,
        index: usize,
        time: u64,
        event: &Event,
        attributes: &[Attribute],
    ) {
        let (definitions, numbers) = (self.definitions, &self.sources[index].numbers);
        let mut undefined = false;
        let mut visit = |kind, number| {
            undefined |= !definitions.defines(kind, numbers.global(kind, number));
        };
        event.references(&mut visit);
        let mut is_wrong = false;
        for (place, (attribute, value)) in attributes.iter().enumerate() {
            attribute.references(&mut visit);
            value.references(&mut visit);
            let number = numbers.global(Kind::Attribute, attribute.0.into()) as u32;
            let value_type = definitions.attributes.get(&number);
            let comes_before = |other: &Attribute| other.0 == *attribute;
            is_wrong |= value_type.is_some_and(|defined| *defined != value.type_number())
                || attributes[..place].iter().any(comes_before);
        }
        if undefined {
            let name = event.name();
            let location = self.sources[index].location;
            self.faults.add(Fault::Undefined, || {
                format!("{name} of location {location} at {time}")
            });
        }
        if is_wrong {
            self.fault(Fault::Attributes, index, time);
        }
    }

    /// The open regions of the task that a location runs.
    fn stack(&mut self, index: usize, time: u64) -> &mut Vec<u64> {
        let task = self.sources[index].task;
        if let Task::Explicit(name) = task
            && !self.tasks.contains_key(&name)
        {
            self.fault(Fault::TaskUnknown, index, time);
        }
        match task {
            Task::Implicit(place) => &mut self.sources[index].implicit[place],
            Task::Explicit(name) => self.tasks.entry(name).or_default(),
        }
    }

    fn leave(&mut self, index: usize, time: u64, region: u64) {
        let stack = self.stack(index, time);
        let entered = stack.iter().rposition(|open| *open == region);
        let is_newest = entered.is_some_and(|place| place + 1 == stack.len());
        if let Some(place) = entered {
            stack.truncate(place);
        }
        if !is_newest {
            self.fault(Fault::Nesting, index, time);
        }
    }

    fn members(&mut self, team: CommRef) -> &Option<Vec<u64>> {
        let definitions = self.definitions;
        self.members
            .entry(team)
            .or_insert_with(|| definitions.members(team))
    }

    fn team_end(&mut self, index: usize, time: u64, team: CommRef) {
        let source = &mut self.sources[index];
        if source.teams.len() == 1 {
            return self.fault(Fault::Team, index, time);
        }
        let open = source.implicit.pop().unwrap_or_default();
        let (begun, task) = source.teams.pop().unwrap_or((team, Task::Implicit(0)));
        let ends = source.task == Task::Implicit(source.teams.len());
        source.task = task;
        if begun != team || !ends {
            self.fault(Fault::Team, index, time);
        }
        if !open.is_empty() {
            self.fault(Fault::NotLeft, index, time);
        }
    }

    fn task_switch(&mut self, index: usize, time: u64, task: TaskName) {
        let rank = task.creating_thread as usize;
        let creator = self
            .members(task.team)
            .as_ref()
            .and_then(|members| members.get(rank).copied());
        let source = &mut self.sources[index];
        if task.generation == 0 {
            let place = source
                .teams
                .iter()
                .rposition(|(team, _)| *team == task.team);
            source.task = Task::Implicit(place.unwrap_or(0));
            if creator != Some(source.location) {
                self.fault(Fault::NotAMember, index, time);
            }
            return;
        }
        source.task = Task::Explicit(task);
        if creator.is_none() {
            self.fault(Fault::NotAMember, index, time);
        }
        if !self.tasks.contains_key(&task) {
            self.early.insert(task, time);
            self.tasks.insert(task, Vec::new());
        }
    }

    /// Notes an acquisition; false where there was one of that order.
    fn acquire(&mut self, lock: u32, order: u32) -> bool {
        let Some(bit) = order.checked_sub(1) else {
            return false;
        };
        let (word, mask) = ((bit / 64) as usize, 1 << (bit % 64));
        let orders = self.locks.entry(lock).or_default();
        // More than the next few are no order that counts up; they show at the end.
        if word > orders.len() + 1024 {
            return false;
        }
        orders.resize(orders.len().max(word + 1), 0);
        let is_new = orders[word] & mask == 0;
        orders[word] |= mask;
        is_new
    }

    /// A task that moved may release elsewhere what it acquired.
    fn release(&mut self, index: usize, time: u64, acquired: (u32, u32)) {
        if self.sources[index].locks.remove(&acquired) {
            return;
        }
        let released = self
            .sources
            .iter_mut()
            .any(|source| source.locks.remove(&acquired));
        if !released {
            self.fault(Fault::Lock, index, time);
        }
    }

    fn transfer(
        &mut self,
        index: usize,
        time: u64,
        window: RmaWinRef,
        remote: u32,
        matching_id: u64,
    ) {
        let source = &mut self.sources[index];
        let number = source.numbers.global(Kind::RmaWin, window.0.into()) as u32;
        let is_new = source.transfers.insert((window.0, matching_id));
        let ranks = self.definitions.window_ranks(number);
        if ranks.is_some_and(|ranks| remote as usize >= ranks) {
            self.fault(Fault::Rank, index, time);
        }
        if !is_new {
            self.fault(Fault::Rma, index, time);
        }
    }

    fn check_rank(&mut self, index: usize, time: u64, comm: CommRef, rank: u32) {
        let numbers = &self.sources[index].numbers;
        let comm = CommRef(numbers.global(Kind::Comm, comm.0.into()) as u32);
        let ranks = self.definitions.ranks(comm);
        if ranks.is_some_and(|ranks| rank as usize >= ranks) {
            self.fault(Fault::Rank, index, time);
        }
    }

    fn check_metric(&mut self, index: usize, time: u64, event: &Metric) {
        let numbers = &self.sources[index].numbers;
        let metric = numbers.global(Kind::Metric, event.metric.0.into()) as u32;
        let types = event.values.0.iter().map(|value| value.value_type);
        let stated = self.definitions.metric_types(metric);
        if stated.is_some_and(|stated| !types.eq(stated.iter().copied())) {
            self.fault(Fault::Metric, index, time);
        }
    }

    fn check_parameter(
        &mut self,
        index: usize,
        time: u64,
        parameter: ParameterRef,
        parameter_type: u8,
    ) {
        let numbers = &self.sources[index].numbers;
        let parameter = numbers.global(Kind::Parameter, parameter.0.into()) as u32;
        let stated = self.definitions.parameters.get(&parameter);
        if stated.is_some_and(|stated| *stated != parameter_type) {
            self.fault(Fault::Parameter, index, time);
        }
    }

    fn completion(&mut self, index: usize, time: u64, transfer: (u32, u64)) {
        if !self.sources[index].transfers.remove(&transfer) {
            self.fault(Fault::Rma, index, time);
        }
    }

    /// All events were checked: what is missing?
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
        for (task, _) in in_order(&self.early) {
            self.faults.add(Fault::TaskUnknown, || task.to_string());
        }
        for (task, open) in in_order(&self.tasks) {
            let fault = if open.is_empty() {
                Fault::TaskNotComplete
            } else {
                Fault::NotLeft
            };
            self.faults.add(fault, || task.to_string());
        }
        for (lock, orders) in in_order(&self.locks) {
            let mut words = orders.iter().rev();
            let newest = words.next().copied().unwrap_or(0);
            let has_gap =
                newest & newest.wrapping_add(1) != 0 || words.any(|word| *word != u64::MAX);
            if has_gap {
                self.faults
                    .add(Fault::LockOrder, || format!("lock {lock} has a gap"));
            }
        }
        for (group, program) in in_order(&self.programs) {
            let first = program.first.unwrap_or(0);
            let is_enclosing = match (program.begin, program.end) {
                (None, None) => true,
                (begin, end) => begin == Some(first) && end == Some(program.last),
            };
            if !is_enclosing {
                self.faults
                    .add(Fault::Program, || format!("location group {group}"));
            }
        }
    }
}

/// What a record of an event file is.
enum Item {
    Time(u64),
    Attributes(Vec<Attribute>),
    Event(Event),
}

impl Source {
    /// Reads the next event. False at the end.
    fn read(&mut self) -> Result<bool, Damage> {
        let mut attributes = Vec::new();
        loop {
            match self.records.next(item)? {
                None => return Ok(false),
                Some(Item::Time(time)) => self.time = time,
                Some(Item::Attributes(list)) => attributes = list,
                Some(Item::Event(event)) => {
                    self.events += 1;
                    self.head = Some((event, attributes));
                    return Ok(true);
                }
            }
        }
    }
}

fn item(id: u8, fields: &mut Bytes<'_>) -> Option<Item> {
    match id {
        TIMESTAMP => Full::take(fields).map(|Full(time)| Item::Time(time)),
        ATTRIBUTE_LIST => {
            let len = u32::take(fields)?;
            let mut attribute = || Some((Field::take(fields)?, Field::take(fields)?));
            (0..len)
                .map(|_| attribute())
                .collect::<Option<_>>()
                .map(Item::Attributes)
        }
        _ => Event::take(id, fields).map(Item::Event),
    }
}
