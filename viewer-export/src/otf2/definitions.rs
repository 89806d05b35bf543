//! The definitions of an archive, written when all of its events are.
//!
//! A definition comes behind those that it refers to: some readers resolve references while they read.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;
use std::io;

use super::Otf2;
use super::archive::{Anchor, DefinitionFile};
use super::encoding::{
    Added, CommRef, GroupRef, LocationGroupRef, LocationRef, Mappings, StringRef,
    SystemTreeNodeRef, TypedValue,
};
use super::records::{
    ClockProperties, Comm, DefMarker, Group, Location, LocationGroup, LocationProperty,
    MappingTable, Marker, Paradigm, ParadigmProperty, String_, SystemTreeNode,
    SystemTreeNodeDomain, paradigm,
};
use crate::fast_map::Fold;

/// Ticks per second: nanoseconds.
const TIMER_RESOLUTION: u64 = 1_000_000_000;

const PROCESS: u8 = 1; // OTF2_LocationGroupType
const CPU_THREAD: u8 = 1; // OTF2_LocationType
const MACHINE: u8 = 0; // OTF2_SystemTreeDomain
const SHARED_MEMORY: u8 = 1;
const COMM_LOCATIONS: u8 = 4; // OTF2_GroupType
const COMM_GROUP: u8 = 5;
const CLASS_PROCESS: u8 = 0; // OTF2_ParadigmClass
const CLASS_THREAD_FORK_JOIN: u8 = 1;
const COMM_NAME_TEMPLATE: u8 = 0; // OTF2_ParadigmProperty
const SEVERITY_MEDIUM: u8 = 2; // OTF2_MarkerSeverity
const MAPPING_COMM: u8 = 6; // OTF2_MappingType
const SCOPE_LOCATION_GROUP: u8 = 2; // OTF2_MarkerScope

/// When a process was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessTimes {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Default for ProcessTimes {
    fn default() -> ProcessTimes {
        ProcessTimes {
            first: u64::MAX,
            last: 0,
        }
    }
}

impl ProcessTimes {
    /// There is an event.
    #[inline]
    pub(super) fn extend(&mut self, time: u64) {
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }
}

/// Words to the reader.
pub(super) struct Note {
    pub(super) process: u32,
    pub(super) text: String,
}

impl Otf2 {
    /// Writes what the events refer to, and the anchor.
    ///
    /// # Errors
    /// The first of writing.
    pub(super) fn write_definitions(mut self) -> io::Result<()> {
        let nodes = self.system_tree();
        let text = |this: &mut Otf2, text: &str| this.strings.number(text);
        let names: Vec<StringRef> = (0..self.processes.len())
            .map(|process| {
                let name = self.processes[process].name.clone();
                text(&mut self, &name)
            })
            .collect();
        let threads: Vec<StringRef> = (0..self.threads.len())
            .map(|thread| {
                let name = self.threads[thread].name.clone();
                text(&mut self, &name)
            })
            .collect();
        let paradigms = self.paradigms();
        let template = text(&mut self, "Thread team ${id}");
        let thread_id = text(&mut self, "OMPTRACE::THREAD_ID");

        let mut file = self.archive.global_definitions();
        for (id, text) in (0..).zip(self.strings.texts()) {
            let text = text.clone();
            file.put(&String_ { id, text });
        }
        file.put(&self.clock_properties());
        for paradigm in paradigms {
            file.put(&paradigm);
        }
        file.put(&ParadigmProperty {
            paradigm: paradigm::OPENMP,
            property: COMM_NAME_TEMPLATE,
            value: TypedValue::String(template),
        });
        nodes.put(&mut file);
        for ((id, name), node) in (0..).zip(names).zip(&nodes.of_process) {
            file.put(&LocationGroup {
                id,
                name,
                group_type: PROCESS,
                system_tree_parent: *node,
                creating_location_group: Added(LocationGroupRef::UNDEFINED),
            });
        }
        for (thread, name) in self.threads.iter().zip(threads) {
            file.put(&Location {
                id: thread.location.into(),
                name,
                location_type: CPU_THREAD,
                number_of_events: thread.file.events(),
                location_group: LocationGroupRef(thread.process as u32),
            });
            file.put(&LocationProperty {
                location: LocationRef(thread.location.into()),
                name: thread_id,
                legacy_string: StringRef::UNDEFINED,
                value: TypedValue::Uint64(thread.os_tid.into()),
            });
        }
        self.regions
            .definitions()
            .iter()
            .for_each(|region| file.put(region));
        let attributes = self.attributes.definitions();
        attributes.iter().for_each(|attribute| file.put(attribute));
        self.put_teams(&mut file);
        let definitions = file.finish()?;

        self.write_local_definitions()?;
        self.write_markers()?;
        let anchor = Anchor {
            locations: self.threads.len() as u64,
            definitions,
            properties: &[],
            trace_id: self.trace_id(),
        };
        self.archive.finish(&anchor)
    }

    fn times(&self) -> ProcessTimes {
        let mut all = ProcessTimes::default();
        for times in self.times.iter().filter(|times| times.first <= times.last) {
            all.extend(times.first);
            all.extend(times.last);
        }
        all.first = all.first.min(all.last);
        all
    }

    fn clock_properties(&self) -> ClockProperties {
        let ProcessTimes { first, last } = self.times();
        let realtime = self.start_realtime_ns.map(|start| start + first);
        ClockProperties {
            timer_resolution: TIMER_RESOLUTION,
            global_offset: first,
            trace_length: last - first,
            realtime_timestamp: Added(realtime.unwrap_or(u64::MAX)),
        }
    }

    /// The paradigms of the regions, and OpenMP's in any case.
    fn paradigms(&mut self) -> Vec<Paradigm> {
        let mut paradigms: Vec<u8> = self
            .regions
            .definitions()
            .iter()
            .map(|region| region.paradigm)
            .chain([paradigm::OPENMP])
            .collect();
        paradigms.sort_unstable();
        paradigms.dedup();
        let strings = &mut self.strings;
        paradigms
            .into_iter()
            .map(|paradigm| {
                let (name, class) = match paradigm {
                    paradigm::USER => ("user", CLASS_PROCESS),
                    paradigm::MEASUREMENT_SYSTEM => ("omptrace", CLASS_PROCESS),
                    paradigm::OPENMP_TARGET => ("OpenMP target", CLASS_PROCESS),
                    _ => ("OpenMP", CLASS_THREAD_FORK_JOIN),
                };
                let name = strings.number(name);
                Paradigm {
                    paradigm,
                    name,
                    class,
                }
            })
            .collect()
    }

    /// Machine, and below it a node per host.
    fn system_tree(&mut self) -> SystemTree {
        let strings = &mut self.strings;
        let mut tree = SystemTree {
            nodes: vec![SystemTreeNode {
                id: 0,
                name: strings.number("machine"),
                class: strings.number("machine"),
                parent: SystemTreeNodeRef::UNDEFINED,
            }],
            of_process: Vec::new(),
        };
        let mut hosts = BTreeMap::new();
        for process in &self.processes {
            let host = match &process.host[..] {
                "" => "unknown host",
                host => host,
            };
            let node = *hosts.entry(host).or_insert_with(|| {
                let id = tree.nodes.len() as u32;
                tree.nodes.push(SystemTreeNode {
                    id,
                    name: strings.number(host),
                    class: strings.number("node"),
                    parent: SystemTreeNodeRef(0),
                });
                SystemTreeNodeRef(id)
            });
            tree.of_process.push(node);
        }
        tree
    }

    /// A group of all threads, one per distinct team, and the communicators of the teams.
    fn put_teams(&self, file: &mut DefinitionFile) {
        let group = |id, group_type, members| Group {
            id,
            name: StringRef(0),
            legacy_type: 0,
            members,
            group_type,
            paradigm: paradigm::OPENMP,
            flags: 0,
        };
        // All locations are in it by number, so members of teams are numbers of locations.
        let locations = (0..self.threads.len() as u64).collect();
        file.put(&group(0, COMM_LOCATIONS, locations));
        let mut groups: HashMap<&[u32], GroupRef> = HashMap::new();
        for (_, comm) in self.teams.comms() {
            let next = groups.len() as u32 + 1;
            groups.entry(&comm.members).or_insert_with(|| {
                let members = comm
                    .members
                    .iter()
                    .map(|member| u64::from(*member))
                    .collect();
                file.put(&group(next, COMM_GROUP, members));
                GroupRef(next)
            });
        }
        let numbers = self.comm_numbers();
        let mut comms: Vec<_> = self.teams.comms().collect();
        comms.sort_by_key(|(number, _)| numbers[*number as usize]);
        for (number, comm) in comms {
            file.put(&Comm {
                id: numbers[number as usize],
                name: StringRef(0),
                group: groups[&comm.members[..]],
                parent: match comm.parent {
                    CommRef::UNDEFINED => CommRef::UNDEFINED,
                    CommRef(parent) => CommRef(numbers[parent as usize]),
                },
                flags: Added(0),
            });
        }
    }

    /// The number of each communicator in the archive, by that in the events: they are to count up without gaps, and those
    /// of parents are to come first.
    fn comm_numbers(&self) -> Vec<u32> {
        let comms: HashMap<u32, CommRef> = self
            .teams
            .comms()
            .map(|(number, comm)| (number, comm.parent))
            .collect();
        let depth = |number: &u32| {
            let parent = |number: &u32| comms.get(number).map(|parent| parent.0);
            std::iter::successors(Some(*number), parent).count()
        };
        let mut order: Vec<u32> = comms.keys().copied().collect();
        order.sort_unstable_by_key(|number| (depth(number), *number));
        let mut numbers = vec![0; order.iter().max().map_or(0, |most| *most as usize + 1)];
        for (new, old) in (0..).zip(order) {
            numbers[old as usize] = new;
        }
        numbers
    }

    /// Each location's own definitions: where numbers of communicators are others than in the events, which.
    fn write_local_definitions(&self) -> io::Result<()> {
        let numbers = self.comm_numbers();
        let differ = (0..).zip(&numbers).any(|(old, new)| old != *new);
        let table = differ.then(|| MappingTable {
            mapping_type: MAPPING_COMM,
            mappings: Mappings::Dense(numbers.into_iter().map(u64::from).collect()),
        });
        for thread in &self.threads {
            let mut file = self.archive.local_definitions(thread.location);
            if let Some(table) = &table {
                file.put(table);
            }
            file.finish()?;
        }
        Ok(())
    }

    /// What was missing or repaired.
    fn write_markers(&self) -> io::Result<()> {
        if self.notes.is_empty() {
            return Ok(());
        }
        let mut file = self.archive.markers();
        file.put(&DefMarker {
            id: 0,
            group: "omptrace".to_owned(),
            category: "note".to_owned(),
            severity: SEVERITY_MEDIUM,
        });
        let time = self.times().first;
        for note in &self.notes {
            file.put(&Marker {
                time,
                duration: 0,
                marker: 0,
                scope: SCOPE_LOCATION_GROUP,
                scope_reference: note.process.into(),
                text: note.text.clone(),
            });
        }
        file.finish().map(|_| ())
    }

    /// A number that other traces do not have.
    fn trace_id(&self) -> u64 {
        let mut identity = Fold::default();
        identity.write_u64(self.start_realtime_ns.unwrap_or(0));
        for process in &self.processes {
            identity.write(process.name.as_bytes());
        }
        for thread in &self.threads {
            identity.write_u64(thread.file.events());
            identity.write_u64(thread.last);
        }
        identity.finish().max(1)
    }
}

/// The nodes of the system tree.
struct SystemTree {
    nodes: Vec<SystemTreeNode>,
    of_process: Vec<SystemTreeNodeRef>,
}

impl SystemTree {
    fn put(&self, file: &mut DefinitionFile) {
        for node in &self.nodes {
            file.put(node);
            file.put(&SystemTreeNodeDomain {
                node: SystemTreeNodeRef(node.id),
                domain: if node.parent == SystemTreeNodeRef::UNDEFINED {
                    MACHINE
                } else {
                    SHARED_MEMORY
                },
            });
        }
    }
}
