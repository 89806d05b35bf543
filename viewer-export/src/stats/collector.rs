//! Adds up a timeline as it comes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use ompt_sys as ompt;

use crate::fast_map::FastMap;
use crate::sink::{
    Argument, Category, Construct, Counter, CounterId, Flow, Interval, Location, LocationKind, Ns,
    Point, Process, ProcessId, Region, RegionId, Sink, ThreadEvent,
};
use crate::stats::parts::{self, JustLeft, Part, Tasks};
use crate::stats::{ConstructStats, DeviceStats, LockStats, Stats, ThreadStats, Times, add};

/// Adds up a timeline.
#[derive(Default)]
pub(super) struct Collector {
    processes: Vec<String>,
    /// By region.
    constructs: Vec<Collected>,
    /// By location.
    lanes: Vec<Lane>,
    tasks: Tasks,
    /// Teams of which members are missing, by process and number.
    teams: FastMap<(u32, u64), Team>,
    notes: Vec<String>,
}

struct Collected {
    stats: ConstructStats,
    /// Whether a shortest and a longest are known.
    has_whole: bool,
    wait: Option<Wait>,
    category: Category,
}

impl Collected {
    /// Whether a wait inside goes on after tasks that interrupt it.
    fn may_wait_on(&self) -> bool {
        self.category == Category::Sync
    }

    fn add_whole(&mut self, ns: u64) {
        let is_first = !std::mem::replace(&mut self.has_whole, true);
        self.stats.times.add_whole(ns, is_first);
    }
}

/// What a thread waits for.
#[derive(Clone, Copy)]
enum Wait {
    Barrier,
    Tasks,
    Lock,
    WakeUp,
}

impl Wait {
    fn of(region: &Region) -> Option<Wait> {
        match region.construct {
            _ if region.category != Category::Wait => None,
            Construct::MutexWait(_) => Some(Wait::Lock),
            Construct::ParallelWakeUp | Construct::TeamsWakeUp => Some(Wait::WakeUp),
            Construct::SyncRegionWait(
                ompt::ompt_sync_region_taskwait | ompt::ompt_sync_region_taskgroup,
            ) => Some(Wait::Tasks),
            _ => Some(Wait::Barrier),
        }
    }
}

/// A location: a thread with its open regions, a lock, a device's queue.
enum Lane {
    Thread(Box<ThreadLane>),
    Lock(LockStats),
    Queue {
        process: String,
        name: String,
        work: BTreeMap<String, Times>,
    },
    Other,
}

#[derive(Default)]
struct ThreadLane {
    process: u32,
    stats: ThreadStats,
    open: Vec<Open>,
    just_left: JustLeft,
    /// The task that is entered next.
    switched: Option<u64>,
    /// The team whose parallel region is entered next.
    forked: Option<u64>,
    /// The team, and its size, whose implicit task is entered next.
    joined: Option<(u64, u32)>,
}

/// An open region.
struct Open {
    region: usize,
    begin: Ns,
    /// Whether it is more than a further part of one that was cut.
    is_new: bool,
    /// Time of the regions inside.
    inside: u64,
    /// Time of waiting inside.
    waited: u64,
    /// Time of the parts before.
    before: u64,
    /// The wait in it: a further one in a barrier or taskwait goes on where a task interrupted it.
    wait: Option<parts::Wait>,
    /// The explicit task that this is.
    task: Option<u64>,
    /// The team that this is the implicit task of, and its size.
    team: Option<(u64, u32)>,
}

/// A parallel region some of whose members have not ended.
struct Team {
    region: usize,
    members: u32,
    working: u64,
    longest: u64,
}

impl Collector {
    pub(super) fn stats(mut self) -> Stats {
        let mut left: Vec<_> = std::mem::take(&mut self.teams).into_iter().collect();
        left.sort_unstable_by_key(|(key, _)| *key);
        left.into_iter().for_each(|(_, team)| self.team_ended(team));
        let mut whole = |region: usize, ns| self.constructs[region].add_whole(ns);
        self.tasks.end_all(&mut whole);
        for lane in &mut self.lanes {
            if let Lane::Thread(lane) = lane {
                lane.just_left.end(&mut whole);
            }
        }

        let mut constructs: Vec<ConstructStats> = self
            .constructs
            .into_iter()
            .map(|construct| construct.stats)
            .filter(|stats| stats.times.count > 0)
            .collect();
        constructs.sort_by_key(|stats| Reverse((stats.self_ns, stats.times.total_ns)));
        let (mut threads, mut locks, mut devices) = (Vec::new(), Vec::new(), Vec::new());
        for lane in self.lanes {
            match lane {
                Lane::Thread(lane) => threads.push(lane.stats),
                Lane::Lock(stats) => locks.push(stats),
                Lane::Queue {
                    process,
                    name,
                    work,
                } => devices.extend(work.into_iter().map(|(what, times)| DeviceStats {
                    process: process.clone(),
                    queue: name.clone(),
                    name: what,
                    times,
                })),
                Lane::Other => {}
            }
        }
        devices.sort_by_key(|stats| Reverse(stats.times.total_ns));
        locks.sort_by_key(|stats| Reverse(stats.times.total_ns));
        Stats {
            duration_ns: 0,
            constructs,
            threads,
            locks,
            devices,
            notes: self.notes,
        }
    }

    /// Of a team whose members were not recorded, nothing is known.
    fn team_ended(&mut self, team: Team) {
        if team.members == 0 {
            return;
        }
        let Some(construct) = self.constructs.get_mut(team.region) else {
            return;
        };
        let stats = construct.stats.team.get_or_insert_default();
        let mean = team.working / u64::from(team.members);
        stats.members += u64::from(team.members);
        add(&mut stats.working_ns, team.working);
        add(&mut stats.longest_ns, team.longest);
        add(&mut stats.imbalance_ns, team.longest.saturating_sub(mean));
    }

    /// A member of `team`, which has `size`, worked so long.
    fn member_ended(&mut self, process: u32, team: u64, size: u32, working: u64) {
        let Some(known) = self.teams.get_mut(&(process, team)) else {
            return;
        };
        known.members += 1;
        add(&mut known.working, working);
        known.longest = known.longest.max(working);
        if known.members >= size
            && let Some(complete) = self.teams.remove(&(process, team))
        {
            self.team_ended(complete);
        }
    }

    fn thread(&mut self, at: Point) -> Option<&mut ThreadLane> {
        match self.lanes.get_mut(at.location.0 as usize)? {
            Lane::Thread(lane) => Some(lane),
            _ => None,
        }
    }
}

impl ThreadLane {
    /// Takes note of a region's end.
    fn leave(&mut self, constructs: &mut [Collected], tasks: &mut Tasks, end: Ns) -> Option<Left> {
        let open = self.open.pop()?;
        let construct = &mut constructs[open.region];
        let ns = end.abs_diff(open.begin);
        let own = ns.saturating_sub(open.inside);
        let waited = open
            .waited
            .saturating_add(construct.wait.map_or(0, |_| own));
        construct.stats.times.add_part(ns, open.is_new);
        add(&mut construct.stats.self_ns, own);
        add(&mut construct.stats.waiting_ns, waited);
        match construct.wait {
            Some(Wait::Barrier) => add(&mut self.stats.barriers_ns, own),
            Some(Wait::Tasks) => add(&mut self.stats.tasks_ns, own),
            Some(Wait::Lock) => add(&mut self.stats.locks_ns, own),
            Some(Wait::WakeUp) => add(&mut self.stats.wake_up_ns, own),
            None => {}
        }
        let is_wait = construct.category == Category::Wait;
        let is_outermost = !self.open.iter().any(|around| around.team.is_some());
        if open.team.is_some() && is_outermost {
            add(&mut self.stats.parallel_ns, ns);
            add(&mut self.stats.working_ns, ns.saturating_sub(waited));
        }
        if let Some(around) = self.open.last_mut() {
            add(&mut around.inside, ns);
            add(&mut around.waited, waited);
        }
        let part = Part {
            region: open.region,
            ns: open.before.saturating_add(ns),
            wait: open.wait,
        };
        let around = self.open.last_mut();
        let around = around.filter(|around| is_wait && constructs[around.region].may_wait_on());
        match (around, open.task) {
            (Some(around), _) => {
                if let Some(other) = around.wait.take_if(|wait| wait.region != part.region) {
                    constructs[other.region].add_whole(other.ns);
                }
                let before = around.wait.map_or(0, |wait| wait.ns);
                around.wait = Some(parts::Wait {
                    region: part.region,
                    ns: before.saturating_add(part.ns),
                });
            }
            (None, Some(task)) => {
                let inside = std::mem::take(&mut self.just_left);
                tasks.left(self.process, task, part, inside);
            }
            (None, None) => self.just_left.push(part),
        }
        let (team, size) = open.team?;
        Some(Left {
            team,
            size,
            working: ns.saturating_sub(waited),
        })
    }
}

/// A member whose implicit task was left.
struct Left {
    team: u64,
    size: u32,
    working: u64,
}

impl Sink for Collector {
    fn process(&mut self, process: &Process) {
        self.processes.push(process.name.clone());
    }

    fn location(&mut self, location: &Location) {
        let process = self.processes[location.process.0 as usize].clone();
        let name = location.name.clone();
        self.lanes.push(match location.kind {
            LocationKind::Thread { .. } => Lane::Thread(Box::new(ThreadLane {
                process: location.process.0,
                stats: ThreadStats {
                    process,
                    name,
                    ..ThreadStats::default()
                },
                ..ThreadLane::default()
            })),
            LocationKind::DeviceQueue { .. } => Lane::Queue {
                process,
                name,
                work: BTreeMap::new(),
            },
            LocationKind::Lock => Lane::Lock(LockStats {
                process,
                name,
                times: Times::default(),
            }),
            LocationKind::Device { .. } | LocationKind::Track => Lane::Other,
        });
    }

    fn region(&mut self, region: &Region) {
        let source = region.source.clone().unwrap_or_default();
        let (file, line) = source.line.unzip();
        self.constructs.push(Collected {
            stats: ConstructStats {
                name: region.name.clone(),
                category: region.category.name(),
                function: source.function,
                file,
                line,
                ..ConstructStats::default()
            },
            has_whole: false,
            wait: Wait::of(region),
            category: region.category,
        });
    }

    fn counter(&mut self, _: &Counter) {}

    fn count(&mut self, _: CounterId, _: Ns, _: i64) {}

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        let region = region.0 as usize;
        let category = self.constructs[region].category;
        let is_further_part = arguments.iter().any(|argument| argument.name == "part");
        let Some(Lane::Thread(lane)) = self.lanes.get_mut(at.location.0 as usize) else {
            return;
        };
        let goes_on = category == Category::Wait
            && lane
                .open
                .last()
                .is_some_and(|around| around.wait.is_some_and(|wait| wait.region == region));
        let is_new = !is_further_part && !goes_on;
        let task = lane.switched.take_if(|_| category == Category::Task);
        let mut whole = |region: usize, ns| self.constructs[region].add_whole(ns);
        let before = match task {
            _ if !is_further_part => None,
            Some(task) => self.tasks.resume(lane.process, task).map(|(part, inside)| {
                lane.just_left.end(&mut whole);
                lane.just_left = inside;
                part
            }),
            None => lane.just_left.resume(region, &mut whole),
        };
        if !is_further_part {
            lane.just_left.end(&mut whole);
        }
        if category == Category::Task && is_new {
            lane.stats.tasks += 1;
        }
        let forked = lane.forked.take_if(|_| category == Category::Parallel);
        lane.open.push(Open {
            region,
            begin: at.time,
            is_new,
            inside: 0,
            waited: 0,
            before: before.map_or(0, |part| part.ns),
            wait: before.and_then(|part| part.wait),
            task,
            team: lane.joined.take_if(|_| category == Category::ImplicitTask),
        });
        let process = lane.process;
        if let Some(team) = forked {
            let new = Team {
                region,
                members: 0,
                working: 0,
                longest: 0,
            };
            if let Some(old) = self.teams.insert((process, team), new) {
                self.team_ended(old);
            }
        }
    }

    fn leave(&mut self, at: Point, _: &[Argument<'_>]) {
        let Some(Lane::Thread(lane)) = self.lanes.get_mut(at.location.0 as usize) else {
            return;
        };
        let process = lane.process;
        if let Some(left) = lane.leave(&mut self.constructs, &mut self.tasks, at.time) {
            self.member_ended(process, left.team, left.size, left.working);
        }
    }

    fn instant(&mut self, _: Point, region: RegionId, _: &[Argument<'_>]) {
        self.constructs[region.0 as usize].stats.times.count += 1;
    }

    fn wants_thread_events(&self) -> bool {
        true
    }

    fn thread_event(&mut self, at: Point, event: ThreadEvent) {
        let Some(lane) = self.thread(at) else {
            return;
        };
        match event {
            ThreadEvent::Fork { team, .. } => lane.forked = Some(team),
            ThreadEvent::TeamBegin { team, size, .. } => lane.joined = Some((team, size)),
            ThreadEvent::TaskSwitch { task } => lane.switched = Some(task),
            ThreadEvent::TaskComplete { task } => {
                let process = lane.process;
                let mut whole = |region: usize, ns| self.constructs[region].add_whole(ns);
                self.tasks.end(process, task, &mut whole);
            }
            _ => {}
        }
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let ns = interval.end.abs_diff(interval.begin);
        match self.lanes.get_mut(interval.track.0 as usize) {
            Some(Lane::Lock(lock)) => lock.times.add(ns),
            Some(Lane::Queue { work, .. }) => match work.get_mut(interval.name) {
                Some(times) => times.add(ns),
                None => work.entry(interval.name.to_owned()).or_default().add(ns),
            },
            _ => {}
        }
    }

    fn flow(&mut self, _: &Flow) {}

    fn note(&mut self, process: ProcessId, text: &str) {
        let process = self.processes.get(process.0 as usize);
        let process = process.map_or("", String::as_str);
        self.notes.push(format!("{process}: {text}"));
    }

    fn failed(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
