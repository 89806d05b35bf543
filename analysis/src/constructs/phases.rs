//! The times of the user's phases, and the time during which recording was on.

use std::collections::BTreeMap;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{
    Category, Construct, Folding, Interval, Item, LocationKind, Ns, Part, Point, Region, Sink, TeamId,
    ThreadEvent, Wants,
};
use serde::{Deserialize, Serialize};

use crate::constructs::ranges::{Instance, Path, Ranges, Wanted};
use crate::model::place::Place;
use crate::passes::window::Windows;

/// The name under which the time with recording on appears among the phases.
pub const RECORDED: &str = "recording on";

/// Number of phase instances that are kept per process. A program with more starts them in a loop, for which a table is
/// of no use.
const MAX_INSTANCES: usize = 1 << 20;

/// Phases by name: how often they started, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Phases(BTreeMap<String, Instances>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Instances {
    count: u64,
    intervals: Vec<(Ns, Ns)>,
}

impl Phases {
    /// Adds the phases of another process; associative and commutative.
    pub(crate) fn merge(&mut self, other: Phases) {
        for (name, instances) in other.0 {
            let known = self.0.entry(name).or_default();
            known.count += instances.count;
            known.intervals.extend(instances.intervals);
            known.intervals.sort_unstable();
        }
    }

    /// Merges phases whose names differ only in numbers.
    pub(crate) fn folded(self, folding: &Folding) -> Phases {
        let mut folded = Phases::default();
        for (name, instances) in self.0 {
            folded.merge(Phases(BTreeMap::from([(folding.name(&name), instances)])));
        }
        folded
    }

    /// The phases by name, with their instances.
    pub(crate) fn instances(&self) -> impl Iterator<Item = (&String, &Vec<Instance>)> {
        self.0.iter().map(|(name, of)| (name, &of.intervals))
    }

    /// The windows of the phases that match `wanted`; `None` if there are none.
    pub(crate) fn selected(&self, wanted: &str) -> Option<Windows> {
        // An exact name takes precedence, because it may look like a pattern.
        if let Some(of) = self.0.get(wanted) {
            return Some(Windows::of(of.intervals.clone()));
        }
        let wanted = Wanted::of(wanted);
        let meant = self.0.iter().filter(|(name, _)| wanted.is(name));
        let mut intervals: Vec<Instance> = meant.flat_map(|(_, of)| of.intervals.iter().copied()).collect();
        intervals.sort_unstable();
        if let Some(number) = wanted.instance {
            intervals = intervals.get(number - 1).copied().into_iter().collect();
        }
        (!intervals.is_empty()).then(|| Windows::of(intervals))
    }

    /// The names of all phases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// The number of intervals of all phases.
    pub(crate) fn intervals(&self) -> usize {
        let instances = self.0.values();
        instances.map(|instances| instances.intervals.len()).sum()
    }

    /// Shifts all phases by `ns`.
    pub(crate) fn shift(&mut self, ns: Ns) {
        for (begin, end) in self.0.values_mut().flat_map(|of| &mut of.intervals) {
            *begin = begin.saturating_add(ns);
            *end = end.saturating_add(ns);
        }
    }

    /// Each phase with its name, how often it started, and its windows.
    pub(crate) fn windows(self) -> impl Iterator<Item = (String, u64, Windows)> {
        let phases = self.0.into_iter();
        phases.map(|(name, of)| (name, of.count, Windows::of(of.intervals)))
    }
}

/// Collects the phases of one process.
#[derive(Debug, Default)]
pub(crate) struct PhaseCollector {
    phases: Phases,
    instances: usize,
    /// The tree of the ranges that were named by interfaces other than `omp_control_tool`.
    ranges: Ranges,
    /// By region.
    regions: Vec<Known>,
    has_phases: bool,
    has_ranges: bool,
    /// By location, the open phases, each with the regions that are open inside it.
    locations: Vec<OpenPhases>,
    /// The innermost range around a team's parallel region, by team.
    teams: FastMap<u64, usize>,
    /// By location, whether it shows frames of the program.
    frames: Vec<bool>,
    /// By region of a construct and region of a range: how often the range was the innermost one around the construct.
    owners: FastMap<u64, u64>,
    /// The time at which recording was switched on.
    on_since: Option<Ns>,
    was_off: bool,
}

/// A region, as far as it matters here.
#[derive(Debug)]
struct Known {
    /// The phase's name, if the region is a phase.
    name: Option<String>,
    is_range: bool,
    /// The region's place, if it is not a phase.
    place: Option<Place>,
}

#[derive(Clone, Debug, Default)]
struct OpenPhases {
    open: Vec<Open>,
    /// The innermost range around the team of which the thread is a member.
    of_team: Option<usize>,
    /// The ranges that just ended. A range that was cut continues at the same time.
    left: Vec<EndedPhase>,
}

#[derive(Clone, Debug)]
struct Open {
    region: usize,
    begin: Ns,
    inside: usize,
    path: Path,
    /// The duration of the earlier parts.
    before: u64,
}

#[derive(Clone, Debug)]
struct EndedPhase {
    region: usize,
    at: Ns,
    path: Path,
    /// The duration of all parts.
    ns: u64,
}

impl PhaseCollector {
    /// The phases (none if the process has too many instances), and the tree of ranges.
    pub(crate) fn finish(mut self) -> (Phases, Ranges) {
        for (key, count) in self.owners.iter() {
            let (region, range) = ((key >> 32) as usize, (key & u64::from(u32::MAX)) as usize);
            let place = self.regions.get(region).and_then(|known| known.place.as_ref());
            let name = self.regions.get(range).and_then(|known| known.name.as_ref());
            if let (Some(place), Some(name)) = (place, name) {
                let owners = self.ranges.owners.entry(place.long()).or_default();
                *owners.entry(name.clone()).or_default() += count;
            }
        }
        let phases = match self.instances {
            0..=MAX_INSTANCES => self.phases,
            _ => Phases::default(),
        };
        let folding = Folding::of(self.ranges.names().into_iter());
        (phases.folded(&folding), self.ranges.folded(&folding))
    }

    /// Adds the phases of a later segment of the process. No phase continues across the boundary.
    pub(crate) fn append(&mut self, next: PhaseCollector) {
        self.instances += next.instances;
        self.phases.merge(next.phases);
        self.ranges.merge(next.ranges);
    }

    #[inline(never)]
    fn region(&mut self, region: &Region) {
        let is_phase = region.construct.is_phase();
        let is_range = matches!(region.construct, Construct::Annotation(_));
        self.has_phases |= is_phase;
        self.has_ranges |= is_range;
        self.regions.push(Known {
            name: is_phase.then(|| region.name.clone()),
            is_range,
            place: (!is_phase).then(|| Place::of(region)),
        });
    }

    fn phases_of(&mut self, location: usize) -> &mut OpenPhases {
        if self.locations.len() <= location {
            self.locations.resize(location + 1, OpenPhases::default());
        }
        &mut self.locations[location]
    }

    #[inline(never)]
    fn enter(&mut self, at: Point, region: usize, is_new: bool) {
        let location = at.location.0 as usize;
        let is_phase = self.regions[region].name.is_some();
        let phases = self.phases_of(location);
        if !is_phase {
            if let Some(innermost) = phases.open.last_mut() {
                innermost.inside += 1;
            }
            if is_new && self.has_ranges {
                self.note_owner(location, region);
            }
            return;
        }
        let is_it = |left: &EndedPhase| left.region == region && left.at == at.time;
        let again = match is_new {
            true => None,
            false => phases.left.iter().rposition(is_it).map(|place| phases.left.remove(place)),
        };
        let (path, before) = match again {
            Some(left) => (left.path, left.ns),
            None => {
                let mut path = phases.open.last().map_or(Path::new(), |open| open.path.clone());
                path.extend(self.regions[region].name.clone());
                (path, 0)
            }
        };
        if self.regions[region].is_range
            && let Some(sums) = self.ranges.of(&path)
        {
            sums.count += u64::from(is_new);
            if before > 0 {
                sums.take_back(before);
            }
        }
        self.locations[location].open.push(Open { region, begin: at.time, inside: 0, path, before });
        if is_new && let Some(name) = &self.regions[region].name {
            self.phases.0.entry(name.clone()).or_default().count += 1;
        }
    }

    /// The thread's innermost range, or if it has none, the range around its team.
    fn owner(&self, location: usize) -> Option<usize> {
        let phases = self.locations.get(location)?;
        let own = phases.open.iter().rev().map(|open| open.region);
        own.chain(phases.of_team).find(|region| self.regions[*region].is_range)
    }

    fn note_owner(&mut self, location: usize, region: usize) {
        if let Some(owner) = self.owner(location) {
            let key = (region as u64) << 32 | owner as u64;
            let count = self.owners.get(&key).copied().unwrap_or(0);
            self.owners.insert(key, count + 1);
        }
    }

    #[inline(never)]
    fn leave(&mut self, at: Point) {
        let Some(phases) = self.locations.get_mut(at.location.0 as usize) else {
            return;
        };
        match phases.open.last_mut() {
            Some(innermost) if innermost.inside > 0 => innermost.inside -= 1,
            Some(_) => {
                let Some(phase) = phases.open.pop() else { return };
                let ns = at.time.abs_diff(phase.begin);
                if self.regions[phase.region].is_range {
                    let around = phases.open.last().map(|open| open.path.clone());
                    if let Some(sums) = self.ranges.of(&phase.path) {
                        sums.add(phase.before + ns);
                    }
                    if let Some(sums) = around.and_then(|path| self.ranges.of(&path)) {
                        sums.inside += ns;
                    }
                }
                if phases.left.first().is_some_and(|left| left.at != at.time) {
                    phases.left.clear();
                }
                phases.left.push(EndedPhase {
                    region: phase.region,
                    at: at.time,
                    path: phase.path,
                    ns: phase.before + ns,
                });
                if let Some(name) = &self.regions[phase.region].name {
                    Self::add(&mut self.phases, &mut self.instances, name, (phase.begin, at.time));
                }
            }
            None => {}
        }
    }

    /// A range or frame of the process (rather than of a thread).
    #[inline(never)]
    fn interval(&mut self, interval: &Interval<'_>) {
        let name = interval.name.to_owned();
        if self.frames.get(interval.track.0 as usize).is_some_and(|is_frame| *is_frame) {
            self.ranges.frames.insert(name.clone());
        }
        if let Some(sums) = self.ranges.of(&vec![name.clone()]) {
            sums.count += 1;
            sums.add(interval.end.abs_diff(interval.begin));
        }
        self.phases.0.entry(name).or_default().count += 1;
        Self::add(&mut self.phases, &mut self.instances, interval.name, (interval.begin, interval.end));
    }

    fn thread_event(&mut self, at: Point, event: ThreadEvent) {
        let location = at.location.0 as usize;
        match event {
            ThreadEvent::Fork { team: TeamId(team), .. } => match self.owner(location) {
                Some(owner) => {
                    self.teams.insert(team, owner);
                }
                None => {
                    self.teams.remove(&team);
                }
            },
            ThreadEvent::TeamBegin { team: TeamId(team), .. } => {
                let of_team = self.teams.get(&team).copied();
                self.phases_of(location).of_team = of_team;
            }
            ThreadEvent::TeamEnd { .. } => self.phases_of(location).of_team = None,
            ThreadEvent::Join { team: TeamId(team) } => {
                self.teams.remove(&team);
            }
            _ => {}
        }
    }

    /// Adds an instance. If it starts where the previous one ended, it extends that instance.
    fn add(phases: &mut Phases, instances: &mut usize, name: &str, (begin, end): (Ns, Ns)) {
        *instances += 1;
        if *instances > MAX_INSTANCES {
            return;
        }
        let known = phases.0.entry(name.to_owned()).or_default();
        match known.intervals.last_mut() {
            Some(last) if last.1 == begin => last.1 = end,
            _ => known.intervals.push((begin, end)),
        }
    }

    #[inline(never)]
    fn recorded(&mut self, end: Ns) {
        if let Some(begin) = self.on_since.take() {
            self.phases.0.entry(RECORDED.to_owned()).or_default().count += 1;
            Self::add(&mut self.phases, &mut self.instances, RECORDED, (begin, end));
        }
    }
}

impl Sink for PhaseCollector {
    fn wants(&self) -> Wants {
        Wants::THREAD_EVENTS
    }

    #[inline(always)]
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Region(region) => self.region(region),
            Item::Location(location) => {
                let is_frame =
                    location.kind == LocationKind::Track && location.name.starts_with("frames of ");
                self.frames.resize(self.frames.len().max(location.id.0 as usize + 1), false);
                self.frames[location.id.0 as usize] = is_frame;
            }
            Item::Interval(interval) if interval.category == Category::User => self.interval(interval),
            Item::Enter(enter) if self.has_phases => {
                let is_new = enter.part == Part::First;
                self.enter(enter.at, enter.region.0 as usize, is_new);
            }
            Item::Leave(leave) if self.has_phases => self.leave(leave.at),
            Item::Process(process) => self.on_since = Some(process.lifetime.traced_from),
            Item::ThreadEvent(at, ThreadEvent::Recording { on: false }) => {
                self.was_off = true;
                self.recorded(at.time);
            }
            Item::ThreadEvent(at, ThreadEvent::Recording { on: true }) => {
                self.on_since.get_or_insert(at.time);
            }
            Item::ThreadEvent(at, event) if self.has_ranges => self.thread_event(*at, *event),
            Item::Summary(_, summary) => {
                self.recorded(summary.end);
                if !self.was_off {
                    self.phases.0.remove(RECORDED);
                }
            }
            _ => {}
        }
    }
}
