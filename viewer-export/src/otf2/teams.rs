//! Teams of threads as OTF2 has them: communicators, one per distinct list of members.
//!
//! A member that joins its team says which communicator that is, but who the others are shows only when the last has
//! joined. Until then the team is *unsettled*: events that name it have a number in reserve, and it is replaced where
//! the same team was there before. That keeps memory within the number of teams that differ, and of events that unsettled
//! teams have.

use super::chunks::Site;
use super::encoding::{CommRef, significant_bytes};
use crate::fast_map::FastMap;

/// A team is settled with the members that it has when so many events name it: a member whose stream was lost must not
/// make us keep them all.
const MAX_SITES: usize = 1 << 20;

/// A team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TeamId {
    /// The location alone, outside of parallel regions.
    Initial(u32),
    /// The team of a parallel region, by the region's number in the trace.
    Region(u64),
}

/// The teams that there are, and the communicators of those that there were.
#[derive(Default)]
pub(super) struct Teams {
    teams: FastMap<TeamId, Team>,
    /// Of teams that are over, for those to come.
    spare: Vec<Buffers>,
    comms: Comms,
    /// What the newest team that was settled is made of: a buffer.
    newest: Comm,
    replacements: Vec<Replacement>,
}

/// Members and sites of a team, emptied.
type Buffers = (Vec<(u32, u32)>, Vec<(u32, Site)>);

/// The communicators.
#[derive(Default)]
struct Comms {
    /// By number; `None` for those in reserve.
    numbered: Vec<Option<Comm>>,
    by_members: FastMap<Comm, CommRef>,
    /// Numbers that were in reserve and not needed.
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

/// What a communicator is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Comm {
    /// That of the team whose member formed it.
    pub(super) parent: CommRef,
    /// Locations in the order of their numbers in the team.
    pub(super) members: Vec<u32>,
}

/// Nobody, formed by no team.
impl Default for Comm {
    fn default() -> Comm {
        Comm {
            parent: CommRef::UNDEFINED,
            members: Vec::new(),
        }
    }
}

struct Team {
    /// That whose member formed it.
    parent: TeamId,
    size: u32,
    /// Number in the team and location.
    members: Vec<(u32, u32)>,
    comm: CommRef,
    is_settled: bool,
    joined: bool,
    /// Members that have not ended.
    inside: u32,
    /// Where events name it, while it is unsettled.
    sites: Vec<(u32, Site)>,
    /// Teams that wait for this to be settled.
    children: Vec<TeamId>,
}

impl Team {
    /// Nobody names it any more.
    fn is_over(&self) -> bool {
        self.is_settled && self.joined && self.inside == 0
    }
}

/// Bytes of an event file that name a team by the wrong number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) location: u32,
    pub(super) site: Site,
    pub(super) bytes: [u8; 4],
    /// How many of them.
    pub(super) len: usize,
}

impl Teams {
    /// The numbers of parallel regions are those of another process from now on.
    pub(super) fn next_process(&mut self) {
        let mut rest: Vec<TeamId> = self.teams.keys().copied().collect();
        rest.sort_unstable_by_key(|id| match id {
            TeamId::Initial(location) => (0, u64::from(*location)),
            TeamId::Region(number) => (1, *number),
        });
        for id in rest {
            self.join(id);
        }
        self.teams.clear();
    }

    /// A member of `parent` forms a team.
    pub(super) fn fork(&mut self, id: TeamId, parent: TeamId) {
        let (members, sites) = self.spare.pop().unwrap_or_default();
        let team = Team {
            parent,
            size: 0,
            members,
            comm: self.comms.reserve(),
            is_settled: false,
            joined: false,
            inside: 0,
            sites,
            children: Vec::new(),
        };
        self.teams.insert(id, team);
    }

    /// A location joins a team. Gives the team that it counts to: one of its own where the team was settled without it.
    pub(super) fn begin(&mut self, id: TeamId, location: u32, index: u32, size: u32) -> TeamId {
        let Some(team) = self.teams.get_mut(&id).filter(|team| !team.is_settled) else {
            return TeamId::Initial(location);
        };
        team.members.push((index, location));
        team.inside += 1;
        team.size = size;
        id
    }

    /// To be called when the location's [`Teams::begin`] was told.
    pub(super) fn begun(&mut self, id: TeamId) {
        let is_complete = |team: &Team| team.members.len() as u64 >= team.size.into();
        if self.teams.get(&id).is_some_and(is_complete) {
            self.settle(id);
        }
    }

    /// A location leaves the team.
    pub(super) fn end(&mut self, id: TeamId) {
        if let Some(team) = self.teams.get_mut(&id) {
            team.inside = team.inside.saturating_sub(1);
            if team.is_over() {
                self.forget(id);
            }
        }
    }

    /// Nobody will join the team any more.
    pub(super) fn join(&mut self, id: TeamId) {
        let Some(team) = self.teams.get_mut(&id) else {
            return;
        };
        team.joined = true;
        if team.is_over() {
            self.forget(id);
        } else {
            self.settle(id);
        }
    }

    fn forget(&mut self, id: TeamId) {
        if let Some(mut team) = self.teams.remove(&id) {
            team.members.clear();
            self.spare.push((team.members, team.sites));
        }
    }

    /// The number of a team. Where the second is false it may change, and [`Teams::named`] wants to know of the event.
    pub(super) fn comm(&mut self, id: TeamId) -> (CommRef, bool) {
        match (self.teams.get(&id), id) {
            (Some(team), _) => (team.comm, team.is_settled),
            (None, TeamId::Initial(location)) => (self.initial(location), true),
            (None, TeamId::Region(_)) => (CommRef::UNDEFINED, true),
        }
    }

    fn initial(&mut self, location: u32) -> CommRef {
        let comm = Comm {
            members: vec![location],
            ..Comm::default()
        };
        match self.comms.by_members.get(&comm) {
            Some(known) => *known,
            None => {
                let number = self.comms.reserve();
                self.comms.define(number, comm);
                number
            }
        }
    }

    /// An event at `site` of `location` names the team, which is unsettled.
    pub(super) fn named(&mut self, id: TeamId, location: u32, site: Site) {
        if let Some(team) = self.teams.get_mut(&id) {
            team.sites.push((location, site));
            if team.sites.len() >= MAX_SITES {
                self.settle(id);
            }
        }
    }

    /// The team's members are known; so is its number, once that of its parent is.
    fn settle(&mut self, id: TeamId) {
        let Some(team) = self.teams.get(&id).filter(|team| !team.is_settled) else {
            return;
        };
        let parent = match self.teams.get(&team.parent) {
            Some(parent) if parent.is_settled => parent.comm,
            Some(_) => return self.wait_for_parent(id),
            None => CommRef::UNDEFINED,
        };
        let Some(team) = self.teams.get_mut(&id) else {
            return;
        };
        team.is_settled = true;
        team.members.sort_unstable();
        let locations = team.members.iter().map(|(_, location)| *location);
        self.newest.parent = parent;
        self.newest.members.clear();
        self.newest.members.extend(locations);
        let reserved = team.comm;
        let len = placeholder_bytes(reserved);
        match self.comms.by_members.get(&self.newest) {
            // The place in the events is as wide as the number in reserve.
            Some(&known) if significant_bytes(known.0.into()) <= len => {
                team.comm = known;
                self.comms.free.push(reserved);
                let bytes = known.0.to_le_bytes();
                let replacement = |&(location, site): &(u32, Site)| Replacement {
                    location,
                    site,
                    bytes,
                    len,
                };
                self.replacements.extend(team.sites.iter().map(replacement));
            }
            _ => self.comms.define(reserved, self.newest.clone()),
        }
        team.sites.clear();
        let is_over = team.is_over();
        for child in std::mem::take(&mut team.children) {
            self.settle(child);
        }
        if is_over {
            self.forget(id);
        }
    }

    fn wait_for_parent(&mut self, id: TeamId) {
        let parent = self.teams[&id].parent;
        if let Some(parent) = self.teams.get_mut(&parent)
            && !parent.children.contains(&id)
        {
            parent.children.push(id);
        }
    }

    /// What events of settled teams are to be mended.
    pub(super) fn replacements(&mut self) -> impl Iterator<Item = Replacement> {
        self.replacements.drain(..)
    }

    /// All communicators by number.
    pub(super) fn comms(&self) -> impl Iterator<Item = (u32, &Comm)> {
        (0..)
            .zip(&self.comms.numbered)
            .filter_map(|(number, comm)| Some((number, comm.as_ref()?)))
    }
}

/// How many bytes a compressed number takes behind the first. Number 0 takes none and could not become another: so it is
/// that of an initial team, which is settled from the start.
fn placeholder_bytes(number: CommRef) -> usize {
    significant_bytes(number.0.into())
}
