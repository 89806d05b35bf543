//! OTF2, the format that Vampir, Scalasca and other tools of high-performance computing read: a folder of files, written
//! by [`otf2_archive`]. docs/otf2.md says what becomes of what.
//!
//! ```text
//! threads       what a thread does: open regions, teams, the task that it runs
//! teams, tasks  how OTF2 names teams and tasks
//! regions       how OTF2 names constructs
//! streams       what devices do: regions and transfers
//! strings, attributes
//!               texts, and details of events
//! properties    what the archive was made of, in numbers
//! definitions   all that the events refer to, written when they are complete
//! ```
//!
//! Events go to the files as they come. Definitions stay in memory until the end, for a location's states how many events
//! it has: they grow with what is distinct - locations, regions, teams, texts - and not with the number of events.

mod attributes;
mod definitions;
mod properties;
mod regions;
mod streams;
mod strings;
mod tasks;
mod teams;
mod threads;

use std::io;
use std::path::Path;

use ompt_sys as ompt;

use attributes::Attributes;
use definitions::{Note, ProcessTimes};
use omptrace_timeline::sink::{
    Argument, Construct, Counter, CounterId, DeviceWork, Flow, FlowKind, Interval, Location,
    LocationId, LocationKind, Ns, Point, Process, ProcessId, Region, RegionId, Sink, Summary,
    ThreadEvent,
};
use otf2_archive::archive::Archive;
use otf2_archive::encoding::{Full, LocationRef, TypedValue};
use otf2_archive::events::EventFile;
use otf2_archive::records::{
    BufferFlush, MEASUREMENT_OFF, MeasurementOnOff, ProgramBegin, ProgramEnd, ThreadAcquireLock,
    ThreadFork, ThreadJoin, ThreadTaskComplete, ThreadTeamBegin, ThreadTeamEnd, paradigm, role,
};
use regions::Regions;
use streams::{Direction, Streams};
use strings::Strings;
use tasks::{Task, Tasks};
use teams::{TeamId, Teams};
use threads::{Membership, Open, State, Thread};

use omptrace_common::fast_map::FastMap;

/// How OTF2 archives are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Otf2Options {
    /// The enumerators that are used.
    pub enums: Enums,
    /// Leave out what devices did: Scalasca takes no locations but threads of the host.
    pub host_only: bool,
}

/// Enumerators of which version of OTF2: readers of older versions know no others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enums {
    /// 3.0 and before.
    V3_0,
    /// 3.1 and later: target regions, kernels and cancellation have enumerators of their own.
    #[default]
    V3_1,
}

impl Enums {
    fn target_paradigm(self) -> u8 {
        match self {
            Enums::V3_0 => paradigm::OPENMP,
            Enums::V3_1 => paradigm::OPENMP_TARGET,
        }
    }

    fn kernel_role(self) -> u8 {
        match self {
            Enums::V3_0 => role::FUNCTION,
            Enums::V3_1 => role::KERNEL,
        }
    }

    fn cancel_role(self) -> u8 {
        match self {
            Enums::V3_0 => role::CODE,
            Enums::V3_1 => role::CANCEL,
        }
    }
}

/// The exit status that is not known.
const NO_EXIT_STATUS: i64 = i64::MIN;
/// More arguments of a program are left out: an event must fit a chunk.
const MAX_PROGRAM_ARGUMENTS: usize = 10_000;

/// What a location of the timeline is in the archive.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A thread, whose number it is.
    Thread(u32),
    /// A stream of a device, by its place.
    Stream(u32),
    /// Left out.
    Nowhere,
}

/// Writes an archive.
pub(crate) struct Otf2 {
    host_only: bool,
    archive: Archive,
    strings: Strings,
    attributes: Attributes,
    regions: Regions,
    processes: Vec<Process>,
    times: Vec<ProcessTimes>,
    threads: Vec<Thread>,
    /// By location of the timeline.
    locations: Vec<Place>,
    /// The first thread of the process that is written now.
    first_thread: usize,
    streams: Streams,
    teams: Teams,
    tasks: Tasks,
    /// The number of each lock of the process.
    locks: FastMap<u64, u32>,
    next_lock: u32,
    notes: Vec<Note>,
    summaries: Vec<Summary>,
    start_realtime_ns: Option<u64>,
    error: Option<io::Error>,
}

impl Otf2 {
    /// Writes into `folder`, which is there and empty, the events of about `locations` locations.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub(crate) fn new(folder: &Path, options: Otf2Options, locations: usize) -> io::Result<Otf2> {
        Ok(Otf2 {
            host_only: options.host_only,
            archive: Archive::create(folder, locations)?,
            strings: Strings::new(),
            attributes: Attributes::new(),
            regions: Regions::new(options.enums),
            processes: Vec::new(),
            times: Vec::new(),
            threads: Vec::new(),
            locations: Vec::new(),
            first_thread: 0,
            streams: Streams::default(),
            teams: Teams::default(),
            tasks: Tasks::default(),
            locks: FastMap::default(),
            next_lock: 0,
            notes: Vec::new(),
            summaries: Vec::new(),
            start_realtime_ns: None,
            error: None,
        })
    }

    /// The thread that a location is.
    #[inline]
    fn thread(&self, location: LocationId) -> Option<u32> {
        match self.locations[location.0 as usize] {
            Place::Thread(thread) => Some(thread),
            Place::Stream(_) | Place::Nowhere => None,
        }
    }

    /// The stream that a location is.
    fn stream(&self, location: LocationId) -> Option<u32> {
        match self.locations[location.0 as usize] {
            Place::Stream(stream) => Some(stream),
            Place::Thread(_) | Place::Nowhere => None,
        }
    }

    /// The thread and the time of an event.
    #[inline]
    fn at(&mut self, at: Point) -> Option<(usize, u64)> {
        let thread = self.thread(at.location)? as usize;
        let time = at.time.unsigned_abs();
        if !self.threads[thread].is_seen {
            self.begin_thread(thread, time);
        }
        self.threads[thread].end_pause(time);
        Some((thread, time))
    }

    /// The first event of a thread, and before it of a process.
    #[cold]
    fn begin_thread(&mut self, thread: usize, time: u64) {
        let main = self.first_thread;
        if !self.threads[main].has_begun {
            self.begin_program(main, time);
        }
        if !self.threads[thread].has_begun {
            self.enter_root(thread, time);
        }
        let thread = &mut self.threads[thread];
        thread.is_seen = true;
        // What a thread learns late, as a flush, may have begun before the events of others.
        thread.first = thread.first.min(time);
    }

    fn begin_program(&mut self, main: usize, time: u64) {
        let process = &self.processes[self.threads[main].process];
        let mut words = process.command_line.iter();
        let name = words.next().unwrap_or(&process.name);
        let event = ProgramBegin {
            name: self.strings.number(name),
            arguments: words
                .take(MAX_PROGRAM_ARGUMENTS)
                .map(|word| self.strings.number(word))
                .collect(),
        };
        let ids = [
            ("ProcessId", TypedValue::Uint64(process.os_pid.into())),
            (
                "ThreadId",
                TypedValue::Uint64(self.threads[main].os_tid.into()),
            ),
        ];
        let attributes = self.attributes.values(&mut self.strings, &ids);
        self.threads[main].file.event(time, attributes, &event);
        self.enter_root(main, time);
    }

    fn root(&mut self, thread: usize) -> u32 {
        let process = &self.processes[self.threads[thread].process];
        let program = process.command_line.first().unwrap_or(&process.name);
        let name = program.rsplit('/').next().unwrap_or(program);
        self.regions.own(&mut self.strings, name, role::ARTIFICIAL)
    }

    fn enter_root(&mut self, thread: usize, time: u64) {
        let root = self.root(thread);
        let thread = &mut self.threads[thread];
        (thread.has_begun, thread.first) = (true, time);
        thread.enter(time, &[], root);
    }

    /// All threads of the process have ended.
    fn end_process(&mut self) {
        if self.processes.is_empty() {
            return;
        }
        let threads = self.first_thread..self.threads.len();
        let mut times = ProcessTimes::default();
        for thread in &mut self.threads[threads.clone()] {
            if thread.has_begun {
                thread.end_pause(u64::MAX);
                times.extend(thread.first);
                times.extend(thread.last);
            }
        }
        self.times.push(times);
        self.teams.next_process();
        self.mend();
        self.tasks.next_process();
        self.locks.clear();
        for index in threads {
            let is_main = index == self.first_thread;
            if self.threads[index].has_begun {
                let root = self.root(index);
                let thread = &mut self.threads[index];
                let end = if is_main { times.last } else { thread.last };
                // A wait whose region never came goes on until now.
                thread.leave_acquired(&mut self.tasks, &mut self.teams, thread.last);
                thread.run(
                    &mut self.tasks,
                    &mut self.teams,
                    thread.last,
                    Task::Implicit(0),
                );
                thread.leave(end, &[], root);
            }
            let thread = &mut self.threads[index];
            if is_main && thread.has_begun {
                let known = self.processes[thread.process].exit_status;
                let exit_status = known.map_or(NO_EXIT_STATUS, i64::from);
                thread.event(times.last, &ProgramEnd { exit_status });
                thread.file.set_first_time(times.first);
            }
            let finished = thread.finish();
            self.keep(finished);
        }
        let finished = self.streams.next_process();
        self.keep(finished);
        self.first_thread = self.threads.len();
    }

    fn keep(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Gives teams their numbers in events where they were not known.
    #[inline]
    fn mend(&mut self) {
        if self.teams.has_replacements() {
            self.mend_events();
        }
    }

    #[inline(never)]
    fn mend_events(&mut self) {
        for replacement in self.teams.replacements() {
            let thread = &mut self.threads[replacement.location as usize];
            // Behind the record's number and length, and the number of bytes of its first field.
            let bytes = &replacement.bytes[..replacement.len];
            thread.file.patch(replacement.site, 3, bytes);
        }
    }

    fn lock(&mut self, lock: u64) -> u32 {
        *self.locks.entry(lock).or_insert_with(|| {
            self.next_lock += 1;
            self.next_lock - 1
        })
    }

    fn fork(&mut self, thread: usize, time: u64, team: u64, requested_threads: u32) {
        let thread = &mut self.threads[thread];
        let event = ThreadFork {
            paradigm: paradigm::OPENMP,
            requested_threads,
        };
        thread.event(time, &event);
        self.teams.fork(team, thread.membership().team);
    }

    fn team_begin(&mut self, thread: usize, time: u64, team: u64, index: u32, size: u32) {
        let thread = &mut self.threads[thread];
        let team = self.teams.begin(team, thread.location, index, size);
        thread.team_event(&mut self.teams, time, team, |team| ThreadTeamBegin { team });
        self.teams.begun(team);
        thread.teams.push(Membership {
            team,
            index,
            created: 0,
        });
        thread.current = thread.implicit_task();
        thread.next = Some(thread.current);
        self.mend();
    }

    fn team_end(&mut self, thread: usize, time: u64) {
        let thread = &mut self.threads[thread];
        if thread.teams.len() == 1 {
            return;
        }
        let team = thread.membership().team;
        thread.team_event(&mut self.teams, time, team, |team| ThreadTeamEnd { team });
        thread.teams.pop();
        // Its end says that the thread goes on with what it did before.
        thread.current = thread.task();
        thread.switched = None;
        self.teams.end(team);
    }

    fn task_create(&mut self, thread: usize, time: u64, task: u64, region: RegionId) {
        let region = self.regions.creation(&mut self.strings, region.0 as usize);
        let thread = &mut self.threads[thread];
        thread.enter(time, &[], region);
        thread.create(&mut self.tasks, &mut self.teams, time, task);
        thread.leave(time, &[], region);
    }

    fn task_complete(&mut self, thread: usize, time: u64, task: u64) {
        if let Some(name) = self.tasks.complete(task) {
            let thread = &mut self.threads[thread];
            thread.team_event(&mut self.teams, time, name.team, |team| {
                ThreadTaskComplete {
                    team,
                    creating_thread: name.creating_thread,
                    generation: name.generation,
                }
            });
        }
    }

    fn add_stream(&mut self, location: &Location, device_num: i32) -> Place {
        let process = location.process.0 as usize;
        let has_main = self.first_thread < self.threads.len();
        let main = has_main.then_some(self.first_thread as u32);
        let stream = self
            .streams
            .add(&self.archive, (process, main), device_num, &location.name);
        Place::Stream(stream)
    }

    /// Something without time that has no record of its own: a region without time.
    fn mark(
        &mut self,
        thread: usize,
        time: u64,
        region: u32,
        attributes: &[(&'static str, TypedValue)],
    ) {
        let attributes = self.attributes.values(&mut self.strings, attributes);
        let thread = &mut self.threads[thread];
        let task = thread.task();
        thread.run(&mut self.tasks, &mut self.teams, time, task);
        thread.enter(time, attributes, region);
        thread.leave(time, &[], region);
    }
}

/// Distinguishes what nests from locks.
fn is_region(kind: ompt::ompt_mutex_t) -> bool {
    matches!(
        kind,
        ompt::ompt_mutex_critical | ompt::ompt_mutex_atomic | ompt::ompt_mutex_ordered
    )
}

impl Sink for Otf2 {
    fn start(&mut self, realtime_ns: u64) {
        self.start_realtime_ns = Some(realtime_ns);
    }

    fn process(&mut self, process: &Process) {
        self.end_process();
        self.processes.push(process.clone());
    }

    fn location(&mut self, location: &Location) {
        let os_tid = match location.kind {
            LocationKind::Thread { os_tid, .. } => os_tid,
            LocationKind::Device { device_num } => {
                self.streams.device(device_num, &location.name);
                return self.locations.push(Place::Nowhere);
            }
            LocationKind::DeviceQueue { device_num } if !self.host_only => {
                let place = self.add_stream(location, device_num);
                return self.locations.push(place);
            }
            _ => return self.locations.push(Place::Nowhere),
        };
        let number = self.threads.len() as u32;
        let team = TeamId::Initial(number);
        // The first has number 0, which cannot be kept in reserve.
        if number == 0 {
            self.teams.comm(team);
        }
        self.locations.push(Place::Thread(number));
        let (path, chunk_bytes) = (
            self.archive.events(number),
            self.archive.event_chunk_bytes(),
        );
        self.threads.push(Thread {
            location: number,
            process: location.process.0 as usize,
            name: location.name.clone(),
            os_tid,
            file: EventFile::create(path, chunk_bytes),
            open: Vec::new(),
            teams: vec![Membership {
                team,
                index: 0,
                created: 0,
            }],
            current: Task::Implicit(0),
            switched: None,
            next: None,
            pause_end: None,
            first: 0,
            last: 0,
            has_begun: false,
            is_seen: false,
        });
    }

    fn region(&mut self, region: &Region) {
        self.regions.add(region);
    }

    fn counter(&mut self, _: &Counter) {}

    fn count(&mut self, _: CounterId, _: Ns, _: i64) {}

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        let Some((thread, time)) = self.at(at) else {
            return;
        };
        let thread = &mut self.threads[thread];
        let task = thread.next.take().unwrap_or(thread.task());
        let construct = self.regions.construct(region.0 as usize);
        // The thread that forks a team identifies its parallel region by that.
        let is_told = matches!(construct, Construct::Parallel | Construct::Teams);
        let mut open = Open {
            region: None,
            task,
            state: State::Usual,
        };
        if !is_told {
            thread.run(&mut self.tasks, &mut self.teams, time, task);
            let attributes = self.attributes.list(&mut self.strings, arguments);
            if construct == Construct::BufferFlush {
                let stop_time = Full(time);
                let site = thread.event_with(time, attributes, &BufferFlush { stop_time });
                open.state = State::Flush(site);
            } else {
                let number = self.regions.number(&mut self.strings, region.0 as usize);
                thread.enter(time, attributes, number);
                open.region = Some(number);
            }
        }
        match construct {
            Construct::MutexWait(kind) if is_region(kind) => open.state = State::Waiting,
            Construct::MutexHold(kind) if is_region(kind) => {
                thread.holds();
                open.state = State::Holding;
            }
            _ => {}
        }
        thread.open.push(open);
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        let Some((thread, time)) = self.at(at) else {
            return;
        };
        let thread = &mut self.threads[thread];
        // What forks and joins report has no place for them.
        let is_told = thread.open.last().is_some_and(|top| top.region.is_none());
        let arguments = if is_told { &[] } else { arguments };
        let attributes = self.attributes.list(&mut self.strings, arguments);
        thread.leave_innermost(&mut self.tasks, &mut self.teams, time, attributes);
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        let Some((thread, time)) = self.at(at) else {
            return;
        };
        let region = self.regions.number(&mut self.strings, region.0 as usize);
        let attributes = self.attributes.list(&mut self.strings, arguments);
        let thread = &mut self.threads[thread];
        let task = thread.task();
        thread.run(&mut self.tasks, &mut self.teams, time, task);
        thread.enter(time, attributes, region);
        thread.leave(time, &[], region);
    }

    fn wants_thread_events(&self) -> bool {
        true
    }

    fn thread_event(&mut self, at: Point, event: ThreadEvent) {
        let Some((thread, time)) = self.at(at) else {
            return;
        };
        match event {
            ThreadEvent::Recording { on: true } => {
                return self.threads[thread].pause_end = Some(time);
            }
            // They end what was left just now.
            ThreadEvent::TeamEnd { .. } => return self.team_end(thread, time),
            ThreadEvent::TaskComplete { task } => return self.task_complete(thread, time, task),
            ThreadEvent::TaskSwitch { task, .. } => {
                let task = Task::Explicit(task);
                let thread = &mut self.threads[thread];
                thread.run(&mut self.tasks, &mut self.teams, time, task);
                thread.next = Some(task);
                return;
            }
            // Attributes of the regions hold these.
            ThreadEvent::GoesOn
            | ThreadEvent::Loop { .. }
            | ThreadEvent::Chunks { .. }
            | ThreadEvent::InitLock { .. }
            | ThreadEvent::AwaitLock { .. }
            | ThreadEvent::ReleaseUnseen { .. } => return,
            _ => {}
        }
        let state = &mut self.threads[thread];
        let task = state.task();
        state.run(&mut self.tasks, &mut self.teams, time, task);
        match event {
            ThreadEvent::Fork { team, requested } => self.fork(thread, time, team, requested),
            ThreadEvent::Join { team } => {
                let paradigm = paradigm::OPENMP;
                self.threads[thread].event(time, &ThreadJoin { paradigm });
                self.teams.join(team);
                self.mend();
            }
            ThreadEvent::TeamBegin { team, index, size } => {
                self.team_begin(thread, time, team, index, size);
            }
            ThreadEvent::TaskCreate { task, region } => {
                self.task_create(thread, time, task, region);
            }
            ThreadEvent::AcquireLock { lock, order, .. } => {
                let event = ThreadAcquireLock {
                    paradigm: paradigm::OPENMP,
                    lock: self.lock(lock),
                    acquisition_order: order,
                };
                self.threads[thread].event(time, &event);
                self.threads[thread].acquired();
            }
            ThreadEvent::ReleaseLock { lock, order } => {
                let lock = self.lock(lock);
                self.threads[thread].releases(time, lock, order);
            }
            ThreadEvent::Recording { .. } => {
                let mode = MEASUREMENT_OFF;
                self.threads[thread].event(time, &MeasurementOnOff { mode });
            }
            _ => {}
        }
    }

    /// Threads show who holds a lock, and when recording was off.
    fn interval(&mut self, interval: &Interval<'_>) {
        let (Some(stream), Some(work)) = (self.stream(interval.track), interval.work) else {
            return;
        };
        let times = (interval.begin.unsigned_abs(), interval.end.unsigned_abs());
        let attributes = self.attributes.list(&mut self.strings, interval.arguments);
        let streams = &mut self.streams;
        match work {
            DeviceWork::TransferTo { bytes } => {
                streams.transfer(stream, times, attributes, Direction::ToDevice, bytes);
            }
            DeviceWork::TransferFrom { bytes } => {
                streams.transfer(stream, times, attributes, Direction::FromDevice, bytes);
            }
            _ => {
                let (strings, regions) = (&mut self.strings, &mut self.regions);
                let region = regions.of_device(strings, interval.name, work);
                streams.region(stream, times, attributes, region);
            }
        }
    }

    /// The other kinds repeat what tasks and locks show.
    fn flow(&mut self, flow: &Flow) {
        let Some(from) = self.thread(flow.from.location) else {
            return;
        };
        if let Some(stream) = self.stream(flow.to.location) {
            return self.streams.asked_by(stream, from);
        }
        if flow.kind != FlowKind::TaskDependence {
            return;
        }
        let Some((thread, time)) = self.at(flow.to) else {
            return;
        };
        let region = self
            .regions
            .own(&mut self.strings, flow.kind.name(), role::CODE);
        let from = [
            (
                "from_location",
                TypedValue::Location(LocationRef(from.into())),
            ),
            (
                "from_time",
                TypedValue::Uint64(flow.from.time.unsigned_abs()),
            ),
        ];
        self.mark(thread, time, region, &from);
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        self.notes.push(Note {
            process: process.0,
            text: text.to_owned(),
        });
    }

    fn summary(&mut self, _: ProcessId, summary: &Summary) {
        self.summaries.push(summary.clone());
    }

    fn failed(&self) -> bool {
        self.error.is_some()
            || self.streams.failed()
            || self.threads.iter().any(|thread| thread.file.failed())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.end_process();
        match self.error.take() {
            Some(error) => Err(error),
            None => self.write_definitions(),
        }
    }
}
