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
use crate::passes::segments::Continues;
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
        let mut folded: BTreeMap<String, Instances> = BTreeMap::new();
        for (name, instances) in self.0 {
            let known = folded.entry(folding.name(&name)).or_default();
            known.count += instances.count;
            known.intervals.extend(instances.intervals);
        }
        folded.values_mut().for_each(|of| of.intervals.sort_unstable());
        Phases(folded)
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
    /// Only instances in these windows count, and only their time inside; without windows, all count.
    windows: Option<Windows>,
    phases: Phases,
    instances: usize,
    /// The tree of the ranges that were named by interfaces other than `omp_control_tool`.
    ranges: Ranges,
    /// There is no room for more paths, although names were merged.
    is_folded: bool,
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
    /// The time since which recording is on, until it is switched for the first time.
    traced_from: Option<Ns>,
    /// When recording was switched on or off.
    switches: Vec<(Ns, bool)>,
    end: Option<Ns>,
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
    /// One of these parts has been counted.
    is_counted: bool,
}

#[derive(Clone, Debug)]
struct EndedPhase {
    region: usize,
    at: Ns,
    path: Path,
    /// The duration of all parts.
    ns: u64,
    is_counted: bool,
}

impl PhaseCollector {
    /// A collector that counts only what lies in `windows`.
    pub(crate) fn within(windows: Option<Windows>) -> PhaseCollector {
        PhaseCollector { windows, ..PhaseCollector::default() }
    }

    /// The phases (none if the process has too many instances), and the tree of ranges.
    pub(crate) fn finish(mut self) -> (Phases, Ranges) {
        self.name_owners();
        self.add_recorded();
        self.ranges.sums.retain(|_, sums| sums.count > 0);
        let phases = match self.instances {
            0..=MAX_INSTANCES => self.phases,
            _ => Phases::default(),
        };
        let mut folding = Folding::of(self.ranges.names().into_iter());
        folding.merge(std::mem::take(&mut self.ranges.folding));
        (phases.folded(&folding), self.ranges.folded(&folding))
    }

    /// Merges names that differ only in numbers, now and from now on, because there are too many paths of ranges.
    #[cold]
    fn fold(&mut self) {
        let folding = Folding::of(self.ranges.names().into_iter());
        self.ranges = std::mem::take(&mut self.ranges).folded(&folding);
        // Trying again for each range would take long.
        self.is_folded = self.ranges.are_full();
        for phases in &mut self.locations {
            let open = phases.open.iter_mut().map(|open| &mut open.path);
            let left = phases.left.iter_mut().map(|left| &mut left.path);
            for name in open.chain(left).flatten() {
                *name = folding.name(name);
            }
        }
    }

    /// Starts a segment of the process. Earlier phases were counted in earlier segments; open ones count in the segment in which
    /// they end.
    fn begin_segment(&mut self) {
        self.phases = Phases::default();
        self.instances = 0;
        self.ranges = Ranges::default();
        self.owners = FastMap::default();
        self.switches.clear();
        self.locations.iter_mut().for_each(|phases| phases.left.clear());
    }

    /// Identifies owners by name from now on: the numbers of regions are this collector's own.
    fn name_owners(&mut self) {
        for (key, count) in std::mem::take(&mut self.owners).iter() {
            let (region, range) = ((key >> 32) as usize, (key & u64::from(u32::MAX)) as usize);
            let place = self.regions.get(region).and_then(|known| known.place.as_ref());
            let name = self.regions.get(range).and_then(|known| known.name.as_ref());
            if let (Some(place), Some(name)) = (place, name) {
                let owners = self.ranges.owners.entry(place.long()).or_default();
                *owners.entry(name.clone()).or_default() += count;
            }
        }
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
            let is_inside = self.windows.as_ref().is_none_or(|windows| windows.contains(at.time));
            if is_new && is_inside && self.has_ranges {
                self.note_owner(location, region);
            }
            return;
        }
        if is_new && !self.is_folded && self.ranges.are_full() {
            self.fold();
        }
        let phases = self.phases_of(location);
        let is_it = |left: &EndedPhase| left.region == region && left.at == at.time;
        let again = match is_new {
            true => None,
            false => phases.left.iter().rposition(is_it).map(|place| phases.left.remove(place)),
        };
        let (path, before, is_counted) = match again {
            Some(left) => (left.path, left.ns, left.is_counted),
            None => {
                let mut path = phases.open.last().map_or(Path::new(), |open| open.path.clone());
                let name = self.regions[region].name.iter();
                path.extend(name.map(|name| self.ranges.folding.name(name)));
                (path, 0, false)
            }
        };
        // Outer ranges find room before those inside.
        if self.regions[region].is_range
            && let Some(sums) = self.ranges.of(&path)
            && before > 0
        {
            sums.take_back(before);
        }
        self.locations[location].open.push(Open {
            region,
            begin: at.time,
            inside: 0,
            path,
            before,
            is_counted,
        });
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
                let inside = match &self.windows {
                    Some(windows) => windows.overlap(phase.begin, at.time),
                    None => Some(at.time.abs_diff(phase.begin)),
                };
                let ns = inside.unwrap_or(0);
                let is_first = inside.is_some() && !phase.is_counted;
                let is_counted = inside.is_some() || phase.is_counted;
                if self.regions[phase.region].is_range && is_counted {
                    let around = phases.open.last().map(|open| open.path.clone());
                    if let Some(sums) = self.ranges.of(&phase.path) {
                        sums.count += u64::from(is_first);
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
                    is_counted,
                });
                if let Some(name) = &self.regions[phase.region].name
                    && inside.is_some()
                {
                    self.phases.0.entry(name.clone()).or_default().count += u64::from(is_first);
                    let span = (phase.begin, at.time);
                    Self::add(&mut self.phases, &mut self.instances, name, span, is_first);
                }
            }
            None => {}
        }
    }

    /// A range or frame of the process (rather than of a thread).
    #[inline(never)]
    fn interval(&mut self, interval: &Interval<'_>) {
        let (begin, end) = (interval.begin, interval.end);
        let inside = match &self.windows {
            Some(windows) => windows.overlap(begin, end),
            None => Some(end.abs_diff(begin)),
        };
        let Some(ns) = inside else { return };
        let name = interval.name.to_owned();
        if self.frames.get(interval.track.0 as usize).is_some_and(|is_frame| *is_frame) {
            self.ranges.frames.insert(name.clone());
        }
        if let Some(sums) = self.ranges.of(&vec![name.clone()]) {
            sums.count += 1;
            sums.add(ns);
        }
        self.phases.0.entry(name).or_default().count += 1;
        Self::add(&mut self.phases, &mut self.instances, interval.name, (begin, end), true);
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

    /// Adds a part of a phase. A part that continues an instance extends it; `is_first`: the part starts an instance, even if
    /// it starts at the time at which the previous one ended.
    fn add(phases: &mut Phases, instances: &mut usize, name: &str, (begin, end): (Ns, Ns), is_first: bool) {
        *instances += 1;
        if *instances > MAX_INSTANCES {
            return;
        }
        let known = phases.0.entry(name.to_owned()).or_default();
        match known.intervals.last_mut() {
            Some(last) if last.1 == begin && !is_first => last.1 = end,
            _ => known.intervals.push((begin, end)),
        }
    }

    /// The time in which recording was on, where it was off at times.
    fn add_recorded(&mut self) {
        let Some(end) = self.end.filter(|_| self.switches.iter().any(|(_, on)| !on)) else { return };
        let mut since = self.traced_from;
        for (time, is_on) in std::mem::take(&mut self.switches).into_iter().chain([(end, false)]) {
            if is_on {
                since.get_or_insert(time);
            } else if let Some(begin) = since.take() {
                self.phases.0.entry(RECORDED.to_owned()).or_default().count += 1;
                Self::add(&mut self.phases, &mut self.instances, RECORDED, (begin, time), true);
            }
        }
    }
}

impl Continues for PhaseCollector {
    fn end_segment(&mut self) -> bool {
        true
    }

    fn append(&mut self, mut next: PhaseCollector) -> bool {
        next.name_owners();
        self.instances += next.instances;
        self.phases.merge(next.phases);
        self.ranges.merge(next.ranges);
        self.switches.extend(next.switches);
        self.end = next.end;
        true
    }

    fn complete(&mut self) {}
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
            Item::Process(process) => self.traced_from = Some(process.lifetime.traced_from),
            Item::ThreadEvent(at, ThreadEvent::Recording { on }) => self.switches.push((at.time, *on)),
            Item::ThreadEvent(at, event) if self.has_ranges => self.thread_event(*at, *event),
            Item::Segment => self.begin_segment(),
            Item::Summary(_, summary) => self.end = Some(summary.end),
            _ => {}
        }
    }
}
