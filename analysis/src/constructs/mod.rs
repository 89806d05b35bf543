//! Adds up the items of a timeline as they arrive.

pub(crate) mod chunks;
pub(crate) mod counters;
pub(crate) mod flame;
pub(crate) mod functions;
mod location_state;
pub(crate) mod locks;
pub(crate) mod open_loop;
mod open_state;
pub(crate) mod phases;
pub(crate) mod ranges;
pub(crate) mod resumed_regions;
mod segments;
pub(crate) mod steps;
pub(crate) mod stored_sums;
pub(crate) mod sums;
pub(crate) mod thread_times;

use std::collections::BTreeMap;

use ompt_sys as ompt;

use crate::constructs::locks::Locks;
use crate::constructs::open_loop::OpenLoop;
use crate::constructs::resumed_regions::{JustLeft, Part, Tasks};
use crate::constructs::sums::{ConstructSums, ProcessSums, Sums};
use crate::constructs::thread_times::{Account, Doing, Kind, Wait, outside};
use crate::devices::{self, Devices};
use crate::model::place::Place;
use crate::model::process_stats::ProcessStats;
use crate::model::stats::{ConstructStats, DeviceStats, Ended, Seen, ThreadStats, Times, unknown};
use crate::model::sum::add;
use crate::model::upcoming::Upcoming;
use crate::passes::gaps::Gaps;
use crate::passes::selection::SelectedThreads;
use crate::passes::window::Collects;
use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::Cause;
use omptrace_timeline::model::{
    Arguments, Awaited, Category, Construct, Enter, Interval, Item, Link, LinkKind, Location, LocationKind,
    LockId, Ns, Part as Slice, Point, Process, ProcessId, Region, RegionId, Sink, Summary, TaskId, TeamId,
    ThreadEvent, ThreadRole, Wants,
};

use open_state::{Collected, Team, Traced};

use location_state::{LocationState, Open, ThreadState};

/// Adds up the timeline of one process.
pub(crate) struct Collector {
    /// The number of this process among all processes.
    number: u32,
    selected: SelectedThreads,
    /// Whether items are currently counted.
    is_inside: bool,
    /// The analysis is limited to windows.
    has_windows: bool,
    processes: Vec<Traced>,
    /// By region.
    constructs: Vec<Collected>,
    /// By location.
    locations: Vec<LocationState>,
    tasks: Tasks,
    /// Teams that are still incomplete, by process and team.
    teams: FastMap<(u32, TeamId), Team>,
    locks: Locks,
    devices: Devices,
    notes: Vec<String>,
    /// The timeline is a segment of a process. The next two fields are the segment's start, and how the process ended.
    is_of_segment: bool,
    began: Option<Ns>,
    summary: Option<(ProcessId, Summary)>,
}

impl Collector {
    /// The collector for the process with this number. Only the work of `selected` threads is counted.
    pub(crate) fn new(number: u32, selected: SelectedThreads) -> Collector {
        Collector {
            number,
            selected,
            is_inside: true,
            has_windows: false,
            processes: Vec::new(),
            constructs: Vec::new(),
            locations: Vec::new(),
            tasks: Tasks::default(),
            teams: FastMap::default(),
            locks: Locks::default(),
            devices: Devices::default(),
            notes: Vec::new(),
            is_of_segment: false,
            began: None,
            summary: None,
        }
    }

    /// Marks the timeline as a segment of a process.
    pub(crate) fn of_segment(self) -> Self {
        Collector { is_of_segment: true, ..self }
    }

    /// The sums; empty for a process of which nothing was selected.
    pub(crate) fn sums(mut self) -> Sums {
        let mut left: Vec<_> = std::mem::take(&mut self.teams).into_iter().collect();
        left.sort_unstable_by_key(|(key, _)| *key);
        left.into_iter().for_each(|(_, team)| self.team_ended(team));
        let mut whole = |region: usize, ns| self.constructs[region].sums.add_whole(ns);
        self.tasks.end_all(&mut whole);
        for location in &mut self.locations {
            if let LocationState::Thread(thread) = location {
                thread.just_left.end(&mut whole);
            }
        }

        let number = self.number;
        let Some(mut traced) = self.processes.pop() else {
            return Sums::default();
        };
        let is_selected = |location: &LocationState| matches!(location, LocationState::Thread(thread) if thread.is_selected);
        let has_time = !self.has_windows || traced.begin() < traced.end();
        if !has_time || !self.selected.is_all() && !self.locations.iter().any(is_selected) {
            return Sums::default();
        }
        let names = self.constructs.iter().map(|construct| {
            let stats = &construct.sums.stats;
            (stats.name.clone(), stats.place.clone())
        });
        let names: Vec<(String, Place)> = names.collect();
        let constructs = self.constructs.into_iter();
        let constructs = constructs
            .filter(|construct| construct.sums.stats.times.count > 0 && !construct.is_chunk)
            .map(|construct| construct.sums);
        let name = &traced.process.name;
        let locks = self.locks.stats(number, &traced.process, &names);
        let (mut threads, mut devices) = (Vec::new(), Vec::new());
        for location in self.locations {
            match location {
                LocationState::Thread(thread) if thread.is_selected => threads.push(thread.stats),
                LocationState::Queue { name: queue, work, .. } => {
                    devices.extend(work.into_iter().map(|(what, times)| DeviceStats {
                        process: name.clone(),
                        process_id: number,
                        queue: queue.clone(),
                        name: what,
                        times,
                    }))
                }
                LocationState::Thread(_) | LocationState::Other => {}
            }
        }
        let device_use = self.devices.stats(name, number);
        traced.stats.device_load_balance = devices::load_balance(&device_use, number);
        let process =
            ProcessSums { stats: traced.stats, threads, locks, device_use, devices, notes: self.notes };
        Sums::of(number, process, constructs)
    }

    /// Completes a team. A team whose members were not recorded has no numbers.
    fn team_ended(&mut self, team: Team) {
        if team.members == 0 || !team.is_inside {
            return;
        }
        let Some(construct) = self.constructs.get_mut(team.region) else {
            return;
        };
        let members = u64::from(team.members);
        let all = team.end.map_or(0, |end| end.abs_diff(team.begin).saturating_mul(members));
        let ended = Ended {
            members,
            members_ns: all,
            // Contradictory events can make a member seem to last longer than its region.
            waiting_ns: team.waiting.min(all),
            working_ns: team.working,
            longest_ns: team.longest,
        };
        let stats = construct.sums.stats.team.get_or_insert_default();
        stats.add(&ended);
    }

    /// Changes a team. If the team is complete after that, it is counted and forgotten.
    fn change_team(&mut self, process: u32, team: TeamId, change: impl FnOnce(&mut Team)) {
        let Some(known) = self.teams.get_mut(&(process, team)) else {
            return;
        };
        change(known);
        if known.is_complete()
            && let Some(complete) = self.teams.remove(&(process, team))
        {
            self.team_ended(complete);
        }
    }

    fn thread(&mut self, at: Point) -> Option<&mut ThreadState> {
        match self.locations.get_mut(at.location.0 as usize)? {
            LocationState::Thread(thread) => Some(thread),
            _ => None,
        }
    }

    /// Notes an item of a thread.
    fn saw(processes: &mut [Traced], thread: &mut ThreadState, time: Ns) {
        let traced = &mut processes[thread.process as usize];
        traced.last = traced.last.max(time);
        let doing = match thread.open.last() {
            Some(open) => open.doing,
            None => outside(thread.role, &traced.process, thread.has_begun),
        };
        thread.account.until(time, doing, &traced.gaps);
        thread.has_begun = true;
    }
}

impl Collector {
    fn process(&mut self, process: &Process) {
        self.processes.push(Traced {
            last: process.lifetime.traced_from,
            process: process.clone(),
            stats: ProcessStats::default(),
            gaps: Gaps::default(),
        });
    }

    fn location(&mut self, location: &Location) {
        let process = location.process.0;
        let traced = &self.processes[process as usize];
        let name = location.name.clone();
        self.locations.push(match location.kind {
            LocationKind::Thread { os_tid, stream, role } => {
                let is_of_process =
                    |location: &&LocationState| matches!(location, LocationState::Thread(thread) if thread.process == process);
                let before = self.locations.iter().filter(is_of_process).count();
                let is_selected = self.selected.has(&name, before as u32, os_tid);
                LocationState::Thread(Box::new(ThreadState {
                    process,
                    is_selected,
                    stats: ThreadStats {
                        process: traced.process.name.clone(),
                        process_id: self.number,
                        rank: traced.process.rank,
                        name,
                        number: before as u32,
                        stream,
                        tid: os_tid,
                        role: role.name(),
                        ..ThreadStats::default()
                    },
                    account: Account::new(traced.begin()),
                    role,
                    has_begun: false,
                    tasks: 0,
                    lacks_ids: false,
                    open: Vec::new(),
                    just_left: JustLeft::default(),
                    next: Upcoming::default(),
                    chunks: None,
                }))
            }
            LocationKind::DeviceQueue { device_num, host_observed } => {
                LocationState::Queue { process, device_num, host_observed, name, work: BTreeMap::new() }
            }
            LocationKind::Lock { .. } | LocationKind::Device { .. } | LocationKind::Track => LocationState::Other,
        });
    }

    fn region(&mut self, region: &Region) {
        self.constructs.push(Collected {
            sums: ConstructSums::of(
                ConstructStats {
                    name: region.name.clone(),
                    category: region.category.name(),
                    place: Place::of(region),
                    ..ConstructStats::default()
                },
                matches!(Kind::of(region), Kind::Parallel),
            ),
            lacks_ids: false,
            kind: Kind::of(region),
            category: region.category,
            is_chunk: region.construct.is_chunk(),
            is_test: region.construct == Construct::MutexWait(ompt::ompt_mutex_test_lock),
            completes_task: region.construct == Construct::TaskCompleted,
        });
    }

    fn enter(&mut self, enter: &Enter<Arguments<'_>>) {
        let at = enter.at;
        let region = enter.region.0 as usize;
        let construct = &self.constructs[region];
        let (category, kind) = (construct.category, construct.kind);
        let Some(LocationState::Thread(thread)) = self.locations.get_mut(at.location.0 as usize) else {
            return;
        };
        Self::saw(&mut self.processes, thread, at.time);
        let process = &self.processes[thread.process as usize].process;
        let reports = &process.reports;
        let next = thread.next.take();
        let is_further = enter.part == Slice::Further;
        let lock = match (enter.part, enter.awaited) {
            (Slice::First, Some(Awaited::Mutex { lock, held })) => Some((lock, held.is_some())),
            _ => None,
        };
        let around = thread.open.last();
        let around_wait = around.and_then(|around| around.wait);
        let goes_on = around_wait.filter(|wait| category == Category::Wait && wait.region == region);

        let is_task = matches!(kind, Kind::Task);
        let is_programs =
            thread.role != ThreadRole::Helper || is_task || around.is_some_and(|around| around.is_counted);
        let is_counted = is_programs && thread.is_selected;
        let begins_parallel = match (thread.role, kind) {
            (ThreadRole::Helper, _) => is_task,
            (_, Kind::Parallel | Kind::Wait(Wait::WakeUp)) => true,
            (ThreadRole::Worker | ThreadRole::Other, _) => {
                !matches!(kind, Kind::Idle | Kind::Tracer | Kind::Lost)
            }
            _ => next.joined.is_some(),
        };
        let in_parallel = begins_parallel || around.is_some_and(|around| around.in_parallel);
        let wait = kind.wait(reports);
        let doing = match (kind, wait) {
            (Kind::Lost, _) => Doing::Unobserved,
            (_, Some(wait)) if in_parallel => Doing::Waiting(wait),
            (Kind::Idle, _) => Doing::Idle,
            _ if in_parallel => Doing::Working,
            (Kind::Tracer, _) => {
                around.map_or_else(|| outside(thread.role, process, true), |around| around.doing)
            }
            _ if thread.role == ThreadRole::Helper => Doing::Idle,
            _ => Doing::Serial,
        };

        let mut whole = |region: usize, ns| self.constructs[region].sums.add_whole(ns);
        let before = match next.task {
            _ if !is_further => None,
            Some(task) => self.tasks.resume(thread.process, task).map(|(part, inside)| {
                thread.just_left.end(&mut whole);
                thread.just_left = inside;
                part
            }),
            None => thread.just_left.resume(region, &mut whole),
        };
        if !is_further {
            thread.just_left.end(&mut whole);
        }
        let is_new = match (is_further, goes_on) {
            (true, _) => before.is_some_and(|part| !part.is_counted),
            (false, Some(wait)) => !wait.is_counted,
            (false, None) => true,
        };
        if is_task && !is_further && self.is_inside {
            thread.tasks += 1;
            thread.lacks_ids |= next.lacks_id;
            self.constructs[region].lacks_ids |= next.lacks_id;
        }
        if let Some(lock) = next.held {
            self.locks.entered((thread.process, lock), region, self.is_inside);
        }
        thread.open.push(Open {
            region,
            begin: at.time,
            is_new,
            is_inside: self.is_inside,
            is_wait: wait.is_some() || matches!(kind, Kind::Idle),
            doing,
            in_parallel,
            is_counted,
            inside: 0,
            waited: 0,
            done: None,
            lost: 0,
            unobserved: 0,
            before: before.map_or(0, |part| part.ns),
            wait: before.and_then(|part| part.wait),
            task: next.task,
            team: next.joined,
            forked: next.forked.map(|(team, _)| team),
            of_loop: next
                .schedule
                .map(|schedule| OpenLoop { schedule: Some(schedule), ..OpenLoop::default() }),
            lock,
        });
        let process = thread.process;
        if let Some((team, begin)) = next.forked.filter(|_| is_programs && reports.members) {
            let new = Team {
                region,
                is_inside: self.is_inside,
                begin,
                end: None,
                members: 0,
                size: None,
                working: 0,
                waiting: 0,
                longest: 0,
            };
            if let Some(old) = self.teams.insert((process, team), new) {
                self.team_ended(old);
            }
        }
    }

    fn leave(&mut self, at: Point) {
        let Some(LocationState::Thread(thread)) = self.locations.get_mut(at.location.0 as usize) else {
            return;
        };
        Self::saw(&mut self.processes, thread, at.time);
        let process = thread.process;
        if let Some(open) = thread.open.last()
            && let Some((lock, _)) = open.lock
            && self.constructs[open.region].is_test
            && self.is_inside
        {
            self.locks.not_acquired((process, lock));
        }
        let gaps = &self.processes[process as usize].gaps;
        let Some(left) = thread.leave(&mut self.constructs, &mut self.tasks, gaps, at.time) else {
            return;
        };
        let unobserved_before = |team: &Team| gaps.between(team.begin, left.begin);
        if let Some((team, size)) = left.member_of {
            let forked = self.teams.get(&(process, team));
            let unobserved = forked.map_or(0, unobserved_before);
            self.change_team(process, team, |team| {
                // The other threads wait for the member from the start of the region.
                let late = left.begin.saturating_sub(team.begin).max(0).cast_unsigned();
                let late = late.saturating_sub(unobserved);
                team.members += 1;
                team.size = Some(size);
                add(&mut team.working, left.working);
                add(&mut team.waiting, left.waited.saturating_add(late));
                team.longest = team.longest.max(left.working);
            });
        }
        if let Some(team) = left.forked {
            self.change_team(process, team, |team| team.end = Some(at.time));
        }
    }

    fn instant(&mut self, at: Point, region: RegionId) {
        let construct = &mut self.constructs[region.0 as usize];
        if let Some(LocationState::Thread(thread)) = self.locations.get_mut(at.location.0 as usize) {
            Self::saw(&mut self.processes, thread, at.time);
            let innermost = thread.open.last();
            let is_programs =
                thread.role != ThreadRole::Helper || innermost.is_some_and(|open| open.is_counted);
            if !is_programs || !thread.is_selected || !self.is_inside {
                return;
            }
            thread.tasks += u64::from(construct.completes_task);
        }
        if self.is_inside {
            construct.sums.stats.times.count += 1;
        }
    }

    fn thread_event(&mut self, at: Point, event: ThreadEvent) {
        let is_inside = self.is_inside;
        let Some(thread) = self.thread(at) else {
            return;
        };
        let process = thread.process;
        match event {
            ThreadEvent::Fork { team, .. } => thread.next.set().forked = Some((team, at.time)),
            ThreadEvent::TeamBegin { team, size, .. } => thread.next.set().joined = Some((team, size)),
            ThreadEvent::MemberDone => self.member_done(at),
            ThreadEvent::TaskSwitch { task, has_id } => {
                let next = thread.next.set();
                (next.task, next.lacks_id) = (Some(task), !has_id);
            }
            ThreadEvent::Loop { schedule } => thread.next.set().schedule = Some(schedule),
            ThreadEvent::Chunks { chunks, iterations } => thread.chunks = Some((chunks, iterations)),
            ThreadEvent::TaskComplete { task } => {
                let mut whole = |region: usize, ns| self.constructs[region].sums.add_whole(ns);
                self.tasks.end(process, task, &mut whole);
            }
            ThreadEvent::InitLock { lock, region } => {
                self.locks.made((process, lock), region.0 as usize, is_inside);
            }
            ThreadEvent::ReleaseUnseen { lock, kind, region } => {
                let region = region.0 as usize;
                self.locks.released_unseen((process, lock), kind, region, is_inside);
            }
            ThreadEvent::Recording { on } => {
                let gaps = &mut self.processes[process as usize].gaps;
                match on {
                    true => gaps.end(at.time),
                    false => gaps.begin(at.time),
                }
            }
            ThreadEvent::ReleaseLock { lock, order } => {
                self.locks.released((process, lock), order, at.time, is_inside);
            }
            ThreadEvent::AcquireLock { lock, kind, order } => {
                let innermost = thread.open.last_mut();
                let asked = innermost.and_then(|open| {
                    let (_, is_held) = open.lock.take_if(|(asked, _)| *asked == lock)?;
                    Some((open.region, is_held, at.time.abs_diff(open.begin)))
                });
                if is_shown_on_thread(kind) {
                    thread.next.set().held = Some(lock);
                }
                let acquisition = (order, at.time);
                self.locks.acquired((process, lock), kind, acquisition, asked, is_inside);
            }
            _ => {}
        }
    }

    /// The implicit task has ended; until its region ends, the thread waits.
    fn member_done(&mut self, at: Point) {
        if let Some(LocationState::Thread(thread)) = self.locations.get_mut(at.location.0 as usize) {
            Self::saw(&mut self.processes, thread, at.time);
            // A helper thread waits for work until then.
            if let Some(task) = thread.open.last_mut().filter(|task| task.in_parallel) {
                task.done = Some((at.time, task.inside));
                task.doing = Doing::Waiting(Wait::Barrier);
            }
        }
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let ns = interval.end.abs_diff(interval.begin);
        if let Some(LocationState::Queue { process, device_num, host_observed, work, .. }) =
            self.locations.get_mut(interval.track.0 as usize)
        {
            self.devices.interval((*process, *device_num), *host_observed, interval);
            match work.get_mut(interval.name) {
                Some(times) => times.add(ns),
                None => work.entry(interval.name.to_owned()).or_default().add(ns),
            }
        }
    }

    /// A kernel was submitted.
    fn link(&mut self, link: &Link) {
        if link.kind == LinkKind::TargetSubmit
            && let Some(LocationState::Queue { process, device_num, host_observed: false, .. }) =
                self.locations.get(link.to.location.0 as usize)
        {
            let ns = link.to.time.abs_diff(link.from.time);
            self.devices.launched(*process, *device_num, ns);
        }
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        let name = &self.processes[process.0 as usize].process.name;
        self.notes.push(format!("{name}: {text}"));
    }

    fn summary(&mut self, process: ProcessId, summary: &Summary) {
        match self.is_of_segment {
            true => self.summary = Some((process, summary.clone())),
            false => self.ended(process, summary),
        }
    }

    fn ended(&mut self, process: ProcessId, summary: &Summary) {
        let traced = &mut self.processes[process.0 as usize];
        traced.last = traced.last.max(summary.end);
        let (begin, end) = (traced.begin(), traced.end());
        self.devices.lived(process.0, end.abs_diff(begin));
        let mut repairs = summary.repairs.iter();
        let has_parts = repairs.any(|(cause, _)| *cause == Cause::PartOfTask.name());
        for construct in &mut self.constructs {
            let lacks_ids = std::mem::take(&mut construct.lacks_ids);
            construct.sums.stats.times.is_of_parts |= lacks_ids && has_parts;
        }
        // Nothing was recorded after the last event: the tracer had ended, or the process was killed.
        let recorded_until = if traced.gaps.is_open() { end } else { traced.last.min(end) };
        let mut seen = Seen { unobserved: false, parts_of_tasks: has_parts };
        let mut main = None;
        let mut threads = 0;
        for location in &mut self.locations {
            let LocationState::Thread(thread) = location else { continue };
            if thread.process != process.0 {
                continue;
            }
            // A region that has not ended by now need not have continued.
            let doing = match thread.role {
                _ if traced.process.is_overwritten && !thread.has_begun => Doing::Unobserved,
                ThreadRole::Main => Doing::Serial,
                _ => Doing::Idle,
            };
            thread.account.until(recorded_until, doing, &traced.gaps);
            seen.unobserved |= thread.account.unobserved > 0;
            thread.account.until(end, Doing::Unobserved, &traced.gaps);
            let is_counted = !(has_parts && thread.lacks_ids);
            thread.stats.tasks = is_counted.then_some(thread.tasks);
            thread.stats.duration_ns = end.abs_diff(begin);
            thread.stats.set(&thread.account, &traced.process.reports, thread.role);
            threads += 1;
            if thread.role == ThreadRole::Main {
                main = Some(&thread.account);
            }
        }
        traced.stats = ProcessStats::of(&traced.process, begin, end, threads, main);
        traced.stats.id = self.number;
        let name = &traced.process.name;
        traced.stats.unknown = unknown(&traced.process.reports, seen).collect();
        let notes = traced.stats.unknown.iter();
        self.notes.extend(notes.map(|note| format!("{name}: {note}")));
    }
}

impl Collects for Collector {
    fn set_inside(&mut self, is_inside: bool) {
        self.has_windows = true;
        self.is_inside = is_inside;
    }

    fn window_begins(&mut self) {
        for location in &mut self.locations {
            if let LocationState::Thread(thread) = location {
                thread.open.iter_mut().for_each(|open| open.is_inside = true);
            }
        }
        self.teams.values_mut().for_each(|team| team.is_inside = true);
    }
}

impl Sink for Collector {
    fn wants(&self) -> Wants {
        Wants::THREAD_EVENTS.and(Wants::DEPENDENCES)
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Enter(enter) => self.enter(enter),
            Item::Leave(leave) => self.leave(leave.at),
            Item::Instant(instant) => self.instant(instant.at, instant.region),
            Item::ThreadEvent(at, event) => self.thread_event(*at, *event),
            Item::Interval(interval) => self.interval(interval),
            Item::Link(link) => self.link(link),
            Item::Region(region) => self.region(region),
            Item::Process(process) => self.process(process),
            Item::Location(location) => self.location(location),
            Item::Note(process, text) => self.note(*process, text),
            Item::Summary(process, summary) => self.summary(*process, summary),
            Item::Segment => self.begin_segment(),
            _ => {}
        }
    }
}

/// Whether mutexes of this kind are regions on their thread: critical and atomic regions are, locks are not.
fn is_shown_on_thread(kind: ompt::ompt_mutex_t) -> bool {
    matches!(kind, ompt::ompt_mutex_critical | ompt::ompt_mutex_atomic)
}
