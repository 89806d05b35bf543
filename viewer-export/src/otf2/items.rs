//! Writes the records for each item of the timeline.

use ompt_sys as ompt;

use omptrace_timeline::model::{
    Arguments, Construct, DeviceWork, Enter, Instant, Interval, Item, Leave, Link, LinkKind, Location,
    LocationKind, Process, ProcessId, Region, Summary,
};
use otf2_archive::encoding::{Full, LocationRef, TypedValue};
use otf2_archive::events::EventFile;
use otf2_archive::records::{BufferFlush, role};

use super::note::Note;
use super::streams::Direction;
use super::tasks::Task;
use super::teams::TeamId;
use super::threads::{Membership, Open, State, Thread};
use super::{Otf2, Place};

impl Otf2 {
    fn start(&mut self, realtime_ns: u64) {
        self.start_realtime_ns = Some(realtime_ns);
    }

    fn process(&mut self, process: &Process) {
        self.end_process();
        self.processes.push(process.clone());
    }

    fn location(&mut self, location: &Location) {
        let (os_tid, role) = match location.kind {
            LocationKind::Thread { os_tid, role, .. } => (os_tid, role),
            LocationKind::Device { device_num } => {
                self.streams.device(device_num, &location.name);
                return self.locations.push(Place::Nowhere);
            }
            LocationKind::DeviceQueue { device_num, .. } if !self.host_only => {
                let place = self.add_stream(location, device_num);
                return self.locations.push(place);
            }
            _ => return self.locations.push(Place::Nowhere),
        };
        let number = self.threads.len() as u32;
        let team = TeamId::Initial(number);
        // The first team has number 0, for which no bytes can be reserved.
        if number == 0 {
            self.teams.comm(team);
        }
        self.locations.push(Place::Thread(number));
        let (path, chunk_bytes) = (self.archive.events(number), self.archive.event_chunk_bytes());
        self.threads.push(Thread {
            location: number,
            process: location.process.0 as usize,
            name: location.name.clone(),
            os_tid,
            role,
            file: EventFile::create(path, chunk_bytes),
            open: Vec::new(),
            teams: vec![Membership { team, index: 0, created: 0 }],
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

    fn add_stream(&mut self, location: &Location, device_num: i32) -> Place {
        let process = location.process.0 as usize;
        let has_main = self.first_thread < self.threads.len();
        let main = has_main.then_some(self.first_thread as u32);
        let stream = self.streams.add(&self.archive, (process, main), device_num, &location.name);
        Place::Stream(stream)
    }

    fn region(&mut self, region: &Region) {
        self.regions.add(region);
    }

    #[inline(never)]
    pub(super) fn enter(&mut self, enter: &Enter<Arguments<'_>>) {
        let Enter { at, region, arguments, .. } = *enter;
        let Some((thread, time)) = self.at(at) else {
            return;
        };
        let thread = &mut self.threads[thread];
        let task = thread.next.take().unwrap_or(thread.task());
        let construct = self.regions.construct(region.0 as usize);
        // The thread that forks a team identifies its parallel region by that team.
        let is_fork = matches!(construct, Construct::Parallel | Construct::Teams);
        let mut open = Open { region: None, task, state: State::Usual };
        if !is_fork {
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

    #[inline(never)]
    pub(super) fn leave(&mut self, leave: &Leave<Arguments<'_>>) {
        let Leave { at, arguments } = *leave;
        let Some((thread, time)) = self.at(at) else {
            return;
        };
        let thread = &mut self.threads[thread];
        // Forks and joins have no fields for this.
        let is_fork = thread.open.last().is_some_and(|top| top.region.is_none());
        let arguments = if is_fork { &[] } else { arguments };
        let attributes = self.attributes.list(&mut self.strings, arguments);
        thread.leave_innermost(&mut self.tasks, &mut self.teams, time, attributes);
    }

    #[inline(never)]
    fn instant(&mut self, instant: &Instant<Arguments<'_>>) {
        let Instant { at, region, arguments } = *instant;
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

    /// Ignores intervals of locks and of the recording: they are visible on threads.
    #[inline(never)]
    fn interval(&mut self, interval: &Interval<'_>) {
        let (Some(stream), Some(work)) = (self.stream(interval.track), interval.work) else {
            return;
        };
        let times = (interval.begin.unsigned_abs(), interval.end.unsigned_abs());
        let attributes = self.attributes.list(&mut self.strings, interval.arguments);
        let streams = &mut self.streams;
        match work {
            DeviceWork::TransferTo { bytes, .. } => {
                streams.transfer(stream, times, attributes, Direction::ToDevice, bytes);
            }
            DeviceWork::TransferFrom { bytes, .. } => {
                streams.transfer(stream, times, attributes, Direction::FromDevice, bytes);
            }
            _ => {
                let (strings, regions) = (&mut self.strings, &mut self.regions);
                let region = regions.of_device(strings, interval.name, work);
                streams.region(stream, times, attributes, region);
            }
        }
    }

    /// Ignores the other kinds of links, which repeat what tasks and locks show.
    #[inline(never)]
    fn flow(&mut self, flow: &Link) {
        let Some(from) = self.thread(flow.from.location) else {
            return;
        };
        if let Some(stream) = self.stream(flow.to.location) {
            return self.streams.asked_by(stream, from);
        }
        if flow.kind != LinkKind::TaskDependence {
            return;
        }
        let Some((thread, time)) = self.at(flow.to) else {
            return;
        };
        let region = self.regions.own(&mut self.strings, flow.kind.name(), role::CODE);
        let from = [
            ("from_location", TypedValue::Location(LocationRef(from.into()))),
            ("from_time", TypedValue::Uint64(flow.from.time.unsigned_abs())),
        ];
        self.mark(thread, time, region, &from);
    }

    /// Writes an event without duration and without a record of its own, as a region without duration.
    fn mark(&mut self, thread: usize, time: u64, region: u32, attributes: &[(&'static str, TypedValue)]) {
        let attributes = self.attributes.values(&mut self.strings, attributes);
        let thread = &mut self.threads[thread];
        let task = thread.task();
        thread.run(&mut self.tasks, &mut self.teams, time, task);
        thread.enter(time, attributes, region);
        thread.leave(time, &[], region);
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        self.notes.push(Note { process: process.0, text: text.to_owned() });
    }

    fn summary(&mut self, _: ProcessId, summary: &Summary) {
        self.summaries.push(summary.clone());
    }

    /// Writes an item other than the end of a slice.
    #[inline(never)]
    pub(super) fn other(&mut self, item: &Item<'_>) {
        match item {
            Item::Instant(instant) => self.instant(instant),
            Item::Interval(interval) => self.interval(interval),
            Item::Link(link) => self.flow(link),
            Item::Mpi(at, event) => self.mpi(*at, event),
            Item::Communicator(communicator) => self.communicator(communicator),
            Item::Region(region) => self.region(region),
            Item::Process(process) => self.process(process),
            Item::Location(location) => self.location(location),
            Item::Start { realtime_ns } => self.start(*realtime_ns),
            Item::Note(process, text) => self.note(*process, text),
            Item::Summary(process, summary) => self.summary(*process, summary),
            _ => {}
        }
    }
}

/// Tells mutexes that nest from locks.
fn is_region(kind: ompt::ompt_mutex_t) -> bool {
    matches!(kind, ompt::ompt_mutex_critical | ompt::ompt_mutex_atomic | ompt::ompt_mutex_ordered)
}
