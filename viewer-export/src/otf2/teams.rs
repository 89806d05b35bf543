//! Teams of threads in OTF2: communicators, one per distinct list of members.
//!
//! When a member joins its team, OTF2 requires the team's communicator, but the other members are known only when the
//! last one has joined. Until then, the team is *unsettled*. Events that name an unsettled team contain a reserved
//! number. If an earlier team had the same members, this number is replaced later. Memory grows with the number of
//! distinct teams, and with the events of unsettled teams.

use omptrace_symbols::fast_map::FastMap;
use otf2_archive::chunks::Site;
use otf2_archive::encoding::{CommRef, significant_bytes};

/// A team is settled with its current members when this many events name it. Otherwise, a member whose stream was lost
/// would force us to keep all of these events.
const MAX_SITES: usize = 1 << 20;

/// A team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TeamId {
    /// A single location, outside of parallel regions.
    Initial(u32),
    /// The team of a parallel region.
    Region(Slot),
}

/// The slot of a parallel region's team. It stands for this team only while the slot's use count is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    place: u32,
    use_count: u32,
}

/// The existing teams, and the communicators of all teams so far.
#[derive(Default)]
pub(super) struct Teams {
    /// The teams. Those that have ended keep their buffers for reuse.
    slots: Vec<Team>,
    /// Slots of teams that have ended.
    spare: Vec<u32>,
    /// Teams that have not been joined, by their parallel region's id in the trace.
    by_region: FastMap<u64, Slot>,
    comms: Comms,
    /// The communicator of the team that was settled last.
    newest: Comm,
    replacements: Vec<Replacement>,
}

/// The communicators.
#[derive(Default)]
struct Comms {
    /// By number; `None` for reserved numbers.
    numbered: Vec<Option<Comm>>,
    by_members: FastMap<Comm, CommRef>,
    /// Reserved numbers that were not needed.
    free: Vec<CommRef>,
}

impl Comms {
    fn reserve(&mut self) -> CommRef {
        self.free.pop().unwrap_or_else(|| {
            self.numbered.push(None);
            CommRef(self.numbered.len() as u32 - 1)
        })
    }

    fn define(&mut self, number: CommRef, comm: Comm) {
        self.numbered[number.0 as usize] = Some(comm.clone());
        self.by_members.insert(comm, number);
    }
}

/// What distinguishes communicators.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Comm {
    /// The communicator of the team around.
    pub(super) parent: CommRef,
    /// Locations in the order of their numbers in the team.
    pub(super) members: Vec<u32>,
}

#[derive(Default)]
struct Team {
    /// Number of teams that have used this slot, counted from 1.
    use_count: u32,
    /// The slot is unused.
    is_spare: bool,
    /// The team around.
    parent: Option<Slot>,
    size: u32,
    /// Number in the team, and location.
    members: Vec<(u32, u32)>,
    comm: CommRef,
    is_settled: bool,
    joined: bool,
    /// Number of members that have not ended.
    inside: u32,
    /// Positions of events that name the team while it is unsettled.
    sites: Vec<(u32, Site)>,
    /// Teams that wait for this team to be settled.
    children: Vec<Slot>,
}

impl Team {
    /// Whether no further event can name the team.
    fn is_over(&self) -> bool {
        self.is_settled && self.joined && self.inside == 0
    }
}

/// Bytes in an event file that must be replaced, because they contain a team's reserved number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) location: u32,
    pub(super) site: Site,
    pub(super) bytes: [u8; 4],
    /// Number of bytes.
    pub(super) len: usize,
}

impl Teams {
    /// From now on, ids of parallel regions belong to another process.
    pub(super) fn next_process(&mut self) {
        for place in 0..self.slots.len() as u32 {
            self.end_joining(self.slot(place));
        }
        // Some teams wait for a parent that was never settled. Later teams must not find them.
        for place in 0..self.slots.len() as u32 {
            self.forget(self.slot(place));
        }
        self.by_region.clear();
    }

    /// The current team in a slot.
    fn slot(&self, place: u32) -> Slot {
        Slot { place, use_count: self.slots[place as usize].use_count }
    }

    #[inline]
    fn team(&self, slot: Slot) -> Option<&Team> {
        let team = self.slots.get(slot.place as usize)?;
        (team.use_count == slot.use_count && !team.is_spare).then_some(team)
    }

    #[inline]
    fn team_mut(&mut self, slot: Slot) -> Option<&mut Team> {
        let team = self.slots.get_mut(slot.place as usize)?;
        (team.use_count == slot.use_count && !team.is_spare).then_some(team)
    }

    /// A member of `parent` forms the team of the parallel region with this id.
    pub(super) fn fork(&mut self, region: u64, parent: TeamId) {
        let comm = self.comms.reserve();
        let place = self.spare.pop().unwrap_or_else(|| {
            self.slots.push(Team::default());
            self.slots.len() as u32 - 1
        });
        let team = &mut self.slots[place as usize];
        team.use_count = team.use_count.wrapping_add(1);
        team.is_spare = false;
        team.parent = match parent {
            TeamId::Initial(_) => None,
            TeamId::Region(slot) => Some(slot),
        };
        team.size = 0;
        team.comm = comm;
        (team.is_settled, team.joined, team.inside) = (false, false, 0);
        let use_count = team.use_count;
        self.by_region.insert(region, Slot { place, use_count });
    }

    /// A location joins the team of a parallel region. Returns the team to which it belongs, which is a new one if the
    /// team has been settled without this location.
    pub(super) fn begin(&mut self, region: u64, location: u32, index: u32, size: u32) -> TeamId {
        let slot = self.by_region.get(&region).copied();
        let team = slot.and_then(|slot| self.team_mut(slot));
        let (Some(slot), Some(team)) = (slot, team.filter(|team| !team.is_settled)) else {
            return TeamId::Initial(location);
        };
        team.members.push((index, location));
        team.inside += 1;
        team.size = size;
        TeamId::Region(slot)
    }

    /// Must be called after the location's [`Teams::begin`] was written.
    pub(super) fn begun(&mut self, id: TeamId) {
        let is_complete = |team: &Team| team.members.len() as u64 >= team.size.into();
        if let TeamId::Region(slot) = id
            && self.team(slot).is_some_and(is_complete)
        {
            self.settle(slot);
        }
    }

    /// A location leaves the team.
    pub(super) fn end(&mut self, id: TeamId) {
        if let TeamId::Region(slot) = id
            && let Some(team) = self.team_mut(slot)
        {
            team.inside = team.inside.saturating_sub(1);
            if team.is_over() {
                self.forget(slot);
            }
        }
    }

    /// The team of the parallel region gets no further members.
    pub(super) fn join(&mut self, region: u64) {
        if let Some(slot) = self.by_region.remove(&region) {
            self.end_joining(slot);
        }
    }

    fn end_joining(&mut self, slot: Slot) {
        let Some(team) = self.team_mut(slot) else {
            return;
        };
        team.joined = true;
        if team.is_over() {
            self.forget(slot);
        } else {
            self.settle(slot);
        }
    }

    fn forget(&mut self, slot: Slot) {
        if let Some(team) = self.team_mut(slot) {
            team.is_spare = true;
            team.members.clear();
            team.sites.clear();
            team.children.clear();
            self.spare.push(slot.place);
        }
    }

    /// The number of a team. If the second value is false, the number may change, and [`Teams::named`] must be called
    /// for the event.
    pub(super) fn comm(&mut self, id: TeamId) -> (CommRef, bool) {
        match id {
            TeamId::Initial(location) => (self.initial(location), true),
            TeamId::Region(slot) => match self.team(slot) {
                Some(team) => (team.comm, team.is_settled),
                None => (CommRef::UNDEFINED, true),
            },
        }
    }

    /// Reserves a number for a communicator that is not a team.
    pub(super) fn reserve(&mut self) -> CommRef {
        self.comms.reserve()
    }

    fn initial(&mut self, location: u32) -> CommRef {
        let comm = Comm { members: vec![location], ..Comm::default() };
        match self.comms.by_members.get(&comm) {
            Some(known) => *known,
            None => {
                let number = self.comms.reserve();
                self.comms.define(number, comm);
                number
            }
        }
    }

    /// An event at `site` of `location` names an unsettled team.
    pub(super) fn named(&mut self, id: TeamId, location: u32, site: Site) {
        if let TeamId::Region(slot) = id
            && let Some(team) = self.team_mut(slot)
        {
            team.sites.push((location, site));
            if team.sites.len() >= MAX_SITES {
                self.settle(slot);
            }
        }
    }

    /// The team's members are known. Its communicator is determined once that of its parent is.
    fn settle(&mut self, slot: Slot) {
        let Some(team) = self.team(slot).filter(|team| !team.is_settled) else {
            return;
        };
        let parent = match team.parent {
            None => CommRef::UNDEFINED,
            Some(parent) => match self.team(parent) {
                Some(parent) if parent.is_settled => parent.comm,
                Some(_) => return self.wait_for_parent(slot, parent),
                None => CommRef::UNDEFINED,
            },
        };
        let Teams { slots, comms, newest, replacements, .. } = self;
        let team = &mut slots[slot.place as usize];
        team.is_settled = true;
        team.members.sort_unstable();
        let locations = team.members.iter().map(|(_, location)| *location);
        newest.parent = parent;
        newest.members.clear();
        newest.members.extend(locations);
        let reserved = team.comm;
        let len = placeholder_bytes(reserved);
        match comms.by_members.get(newest) {
            // The space in the events has the size of the reserved number.
            Some(&known) if significant_bytes(known.0.into()) <= len => {
                team.comm = known;
                comms.free.push(reserved);
                let bytes = known.0.to_le_bytes();
                let replacement =
                    |&(location, site): &(u32, Site)| Replacement { location, site, bytes, len };
                replacements.extend(team.sites.iter().map(replacement));
            }
            _ => comms.define(reserved, newest.clone()),
        }
        team.sites.clear();
        let is_over = team.is_over();
        for child in std::mem::take(&mut team.children) {
            self.settle(child);
        }
        if is_over {
            self.forget(slot);
        }
    }

    fn wait_for_parent(&mut self, slot: Slot, parent: Slot) {
        if let Some(parent) = self.team_mut(parent)
            && !parent.children.contains(&slot)
        {
            parent.children.push(slot);
        }
    }

    /// Whether there are events to correct.
    pub(super) fn has_replacements(&self) -> bool {
        !self.replacements.is_empty()
    }

    /// The events of settled teams that must be corrected.
    pub(super) fn replacements(&mut self) -> impl Iterator<Item = Replacement> {
        self.replacements.drain(..)
    }

    /// All communicators by number.
    pub(super) fn comms(&self) -> impl Iterator<Item = (u32, &Comm)> {
        (0..).zip(&self.comms.numbered).filter_map(|(number, comm)| Some((number, comm.as_ref()?)))
    }
}

/// Number of bytes of a compressed number after the first. Number 0 takes none, so it could not be replaced; therefore,
/// it is used for an initial team, which is settled from the start.
fn placeholder_bytes(number: CommRef) -> usize {
    significant_bytes(number.0.into())
}
