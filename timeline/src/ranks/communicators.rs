//! Which communicators of different ranks are one.

use std::collections::BTreeMap;

use crate::model::{Communicator as Definition, CommunicatorId, CommunicatorKind};
use crate::ranks::communicator::{Communicator, Origin};
use crate::ranks::posting::name_of;
use crate::ranks::process_calls::ProcessCalls;

/// Stands for the parent's name, which may become known later: no program can name a communicator so.
const PARENT: &str = "\0";

/// The same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    World,
    Own(u32),
    Made { parent: u32, ordinal: u32, first: u32 },
    Group { parent: u32, tag: i32, members: Vec<u32>, ordinal: u32 },
    Between { tag: i32, groups: [Vec<u32>; 2], ordinal: u32 },
}

/// The communicators of a job.
#[derive(Debug, Default)]
pub(super) struct Communicators {
    numbers: BTreeMap<Key, u32>,
    /// Of each one, those that its first member told.
    members: Vec<Vec<u32>>,
    /// By the place of the process, and of the communicator in it.
    of_processes: Vec<Vec<Option<u32>>>,
}

impl Communicators {
    pub(super) fn of(processes: &[ProcessCalls]) -> Communicators {
        let unknown = processes.iter().map(|calls| vec![None; calls.communicators.len()]);
        let mut all = Communicators { of_processes: unknown.collect(), ..Communicators::default() };
        // Those of a group count for themselves. A rank names them in its own order, so that is counted once per round.
        let mut has_news = true;
        while has_news {
            has_news = false;
            for (process, calls) in processes.iter().enumerate() {
                let mut made = BTreeMap::new();
                for (place, communicator) in calls.communicators.iter().enumerate() {
                    let ordinal = |of: Key, made: &mut BTreeMap<Key, u32>| {
                        let count = made.entry(of).or_default();
                        *count += 1;
                        *count
                    };
                    let key = all.key(process, calls.rank, communicator).map(|key| match key {
                        Key::Group { parent, tag, members, .. } => {
                            let of = Key::Group { parent, tag, members: members.clone(), ordinal: 0 };
                            Key::Group { parent, tag, members, ordinal: ordinal(of, &mut made) }
                        }
                        Key::Between { tag, groups, .. } => {
                            let of = Key::Between { tag, groups: groups.clone(), ordinal: 0 };
                            Key::Between { tag, groups, ordinal: ordinal(of, &mut made) }
                        }
                        other => other,
                    });
                    if all.of_processes[process][place].is_some() {
                        continue;
                    }
                    let Some(key) = key else { continue };
                    let next = all.numbers.len() as u32;
                    let number = *all.numbers.entry(key).or_insert(next);
                    if number == next {
                        all.members.push(Vec::new());
                    }
                    if all.members[number as usize].is_empty() {
                        let told = || communicator.members.clone();
                        let is_world =
                            communicator.origin == Origin::World && communicator.members.is_empty();
                        all.members[number as usize] =
                            if is_world { (0..communicator.size).collect() } else { told() };
                    }
                    all.of_processes[process][place] = Some(number);
                    has_news = true;
                }
            }
        }
        all
    }

    /// The number of a rank's communicator, the same on all ranks.
    pub(super) fn number(&self, process: usize, place: u32) -> Option<u32> {
        *self.of_processes.get(process)?.get(place as usize)?
    }

    /// The members of a communicator as ranks in the world. Of an intercommunicator, in the order of the rank that told them first.
    pub(super) fn members(&self, number: u32) -> &[u32] {
        self.members.get(number as usize).map_or(&[], |members| members)
    }

    /// All of them, by number.
    pub(super) fn definitions(&self, processes: &[ProcessCalls]) -> Vec<Definition> {
        let mut all: Vec<Option<Definition>> = vec![None; self.members.len()];
        for (process, calls) in processes.iter().enumerate() {
            for (place, communicator) in (0..).zip(&calls.communicators) {
                let Some(number) = self.number(process, place) else { continue };
                let known = all[number as usize]
                    .get_or_insert_with(|| self.definition(process, number, communicator));
                if let Some(name) = &communicator.name {
                    known.name.clone_from(name);
                }
            }
        }
        // Parents have lower numbers.
        let mut definitions: Vec<Definition> = Vec::new();
        for (id, definition) in (0..).map(CommunicatorId).zip(all) {
            let mut definition = definition.unwrap_or_else(|| Definition {
                id,
                name: String::new(),
                parent: None,
                kind: CommunicatorKind::Made,
                members: Vec::new(),
                remote: Vec::new(),
            });
            if let Some(parent) = definition.parent.and_then(|parent| definitions.get(parent.0 as usize)) {
                definition.name = definition.name.replace(PARENT, &parent.name);
            }
            definitions.push(definition);
        }
        definitions
    }

    fn definition(&self, process: usize, number: u32, communicator: &Communicator) -> Definition {
        let members = self.members(number);
        let own = members.len().min(communicator.size as usize);
        let (members, remote) = members.split_at(own);
        let parent = match communicator.origin {
            Origin::Made { parent, .. } | Origin::Group { parent, .. } => self.number(process, parent),
            _ => None,
        };
        let kind = match communicator.origin {
            Origin::World => CommunicatorKind::World,
            Origin::Own => CommunicatorKind::Own,
            _ if remote.is_empty() => CommunicatorKind::Made,
            _ => CommunicatorKind::Between,
        };
        let function = name_of(communicator.function);
        let first = members.first().copied().unwrap_or(0);
        let is_part = parent.is_some_and(|parent| self.members(parent).len() > members.len());
        let from = if is_part { format!(" from rank {first}") } else { String::new() };
        let name = match communicator.origin {
            Origin::World => "MPI_COMM_WORLD".to_owned(),
            Origin::Own => "MPI_COMM_SELF".to_owned(),
            Origin::Made { ordinal, .. } => format!("{function} {ordinal} of {PARENT}{from}"),
            Origin::Group { tag, .. } => format!("{function} of {PARENT}, tag {tag}{from}"),
            _ => format!("{function} {number}"),
        };
        Definition {
            id: CommunicatorId(number),
            name,
            parent: parent.map(CommunicatorId),
            kind,
            members: members.to_vec(),
            remote: remote.to_vec(),
        }
    }

    /// The rank in the world of a rank's partner.
    pub(super) fn world_rank(
        &self,
        process: usize,
        calls: &ProcessCalls,
        place: u32,
        peer: i32,
    ) -> Option<u32> {
        let peer = usize::try_from(peer).ok()?;
        let communicator = calls.communicators.get(place as usize)?;
        // Partners are in the other group, which each side has last.
        if communicator.remote_size > 0 {
            return communicator.members.get(communicator.size as usize + peer).copied();
        }
        self.members(self.number(process, place)?).get(peer).copied()
    }

    fn key(&self, process: usize, rank: u32, communicator: &Communicator) -> Option<Key> {
        let number = |place: u32| self.number(process, place);
        let members = &communicator.members;
        Some(match communicator.origin {
            Origin::World => Key::World,
            Origin::Own => Key::Own(rank),
            Origin::Made { parent, ordinal } => {
                let parent = number(parent)?;
                let first = match members.first() {
                    Some(first) => *first,
                    None => self.first_member(parent, ordinal, communicator.own_rank, rank)?,
                };
                Key::Made { parent, ordinal, first }
            }
            Origin::Group { parent, tag } => {
                members.first()?;
                Key::Group { parent: number(parent)?, tag, members: members.clone(), ordinal: 0 }
            }
            Origin::Between { tag } => {
                let (own, other) = members.split_at_checked(communicator.size as usize)?;
                let mut groups = [own.to_vec(), other.to_vec()];
                groups.sort();
                Key::Between { tag, groups, ordinal: 0 }
            }
            Origin::Unknown => return None,
        })
    }

    /// The first member of the communicator in which a rank has its place, as the first member itself tells it.
    fn first_member(&self, parent: u32, ordinal: u32, own_rank: u32, rank: u32) -> Option<u32> {
        let key = |first| Key::Made { parent, ordinal, first };
        let mut made = self.numbers.range(key(0)..=key(u32::MAX));
        made.find_map(|(key, number)| match key {
            Key::Made { first, .. } if self.members(*number).get(own_rank as usize) == Some(&rank) => {
                Some(*first)
            }
            _ => None,
        })
    }
}
