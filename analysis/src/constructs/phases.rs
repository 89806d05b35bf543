//! The times of the user's phases, and of recording.

use std::collections::BTreeMap;

use omptrace_timeline::model::{Construct, Item, Ns, Point, Region, Sink, ThreadEvent, Wants};
use serde::{Deserialize, Serialize};

use crate::passes::window::Windows;

/// The name, among phases, of the time in which recording was on.
pub const RECORDED: &str = "recording on";

/// Instances of all phases of a process that are kept. A program with more begins them in a loop, and needs no table of them.
const MAX_INSTANCES: usize = 1 << 20;

/// The times of phases, by name, and how often they began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Phases(BTreeMap<String, Instances>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Instances {
    count: u64,
    intervals: Vec<(Ns, Ns)>,
}

impl Phases {
    /// Adds those of another process: associative and commutative.
    pub(crate) fn merge(&mut self, other: Phases) {
        for (name, instances) in other.0 {
            let known = self.0.entry(name).or_default();
            known.count += instances.count;
            known.intervals.extend(instances.intervals);
            known.intervals.sort_unstable();
        }
    }

    /// How many intervals they have.
    pub(crate) fn intervals(&self) -> usize {
        let instances = self.0.values();
        instances.map(|instances| instances.intervals.len()).sum()
    }

    /// All of them were `ns` later.
    pub(crate) fn shift(&mut self, ns: Ns) {
        for (begin, end) in self.0.values_mut().flat_map(|of| &mut of.intervals) {
            *begin = begin.saturating_add(ns);
            *end = end.saturating_add(ns);
        }
    }

    /// Each with its name, how often it began, and when it was.
    pub(crate) fn windows(self) -> impl Iterator<Item = (String, u64, Windows)> {
        let phases = self.0.into_iter();
        phases.map(|(name, of)| (name, of.count, Windows::of(of.intervals)))
    }
}

/// Takes note of the phases of one process.
#[derive(Debug, Default)]
pub(crate) struct PhaseCollector {
    phases: Phases,
    instances: usize,
    /// By region, its name where it is a phase.
    names: Vec<Option<String>>,
    has_phases: bool,
    /// By location, the open phases, with the regions that are open inside each.
    lanes: Vec<Vec<Open>>,
    /// Since when recording is on.
    on_since: Option<Ns>,
    was_off: bool,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    region: usize,
    begin: Ns,
    inside: usize,
}

impl PhaseCollector {
    /// The phases; of a process with too many, none.
    pub(crate) fn phases(self) -> Phases {
        match self.instances {
            0..=MAX_INSTANCES => self.phases,
            _ => Phases::default(),
        }
    }

    /// Adds those of a later segment of the process, in which no phase goes on.
    pub(crate) fn append(&mut self, next: PhaseCollector) {
        self.instances += next.instances;
        self.phases.merge(next.phases);
    }

    #[inline(never)]
    fn region(&mut self, region: &Region) {
        let is_phase = region.construct == Construct::Phase;
        self.has_phases |= is_phase;
        self.names.push(is_phase.then(|| region.name.clone()));
    }

    #[inline(never)]
    fn enter(&mut self, at: Point, region: usize, is_new: bool) {
        let location = at.location.0 as usize;
        if self.lanes.len() <= location {
            self.lanes.resize(location + 1, Vec::new());
        }
        let open = &mut self.lanes[location];
        let Some(name) = &self.names[region] else {
            if let Some(innermost) = open.last_mut() {
                innermost.inside += 1;
            }
            return;
        };
        open.push(Open { region, begin: at.time, inside: 0 });
        if is_new {
            self.phases.0.entry(name.clone()).or_default().count += 1;
        }
    }

    #[inline(never)]
    fn leave(&mut self, at: Point) {
        let Some(open) = self.lanes.get_mut(at.location.0 as usize) else {
            return;
        };
        match open.last_mut() {
            Some(innermost) if innermost.inside > 0 => innermost.inside -= 1,
            Some(_) => {
                if let Some(phase) = open.pop()
                    && let Some(name) = &self.names[phase.region]
                {
                    Self::add(&mut self.phases, &mut self.instances, name, (phase.begin, at.time));
                }
            }
            None => {}
        }
    }

    /// An instance that goes on where the last one ended is the same.
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
            Item::Enter(enter) if self.has_phases => {
                let is_new = enter.part == omptrace_timeline::model::Part::First;
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
