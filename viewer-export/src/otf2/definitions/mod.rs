//! The definitions of an archive, written after all of its events.
//!
//! Each definition follows the definitions to which it refers, because some readers resolve references while reading.

pub(crate) mod attributes;
pub(crate) mod process_times;
pub(crate) mod properties;
pub(crate) mod strings;

use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;
use std::io;

use omptrace_symbols::fast_map::Fold;
use otf2_archive::archive::{Anchor, DefinitionFile};
use otf2_archive::encoding::{
    Added, CommRef, GroupRef, LocationGroupRef, LocationRef, Mappings, StringRef, SystemTreeNodeRef,
    TypedValue,
};
use otf2_archive::events::EventFile;
use otf2_archive::records::{
    ClockProperties, Comm, DefMarker, Group, Location, LocationGroup, LocationGroupProperty,
    LocationProperty, MappingTable, Marker, Paradigm, ParadigmProperty, RmaWin, String_, SystemTreeNode,
    SystemTreeNodeDomain, paradigm,
};

use super::Otf2;
use super::streams::{Member, WINDOW};
use crate::otf2::definitions::process_times::ProcessTimes;
use crate::otf2::definitions::properties::Property;

/// Ticks per second: nanoseconds.
const TIMER_RESOLUTION: u64 = 1_000_000_000;

const PROCESS: u8 = 1; // OTF2_LocationGroupType
const ACCELERATOR: u8 = 2;
const CPU_THREAD: u8 = 1; // OTF2_LocationType
const ACCELERATOR_STREAM: u8 = 2;
const MACHINE: u8 = 0; // OTF2_SystemTreeDomain
const SHARED_MEMORY: u8 = 1;
const ACCELERATOR_DEVICE: u8 = 7;
pub(super) const COMM_LOCATIONS: u8 = 4; // OTF2_GroupType
pub(super) const COMM_GROUP: u8 = 5;
pub(super) const COMM_SELF: u8 = 6;
const CLASS_PROCESS: u8 = 0; // OTF2_ParadigmClass
const CLASS_THREAD_FORK_JOIN: u8 = 1;
const CLASS_ACCELERATOR: u8 = 3;
const COMM_NAME_TEMPLATE: u8 = 0; // OTF2_ParadigmProperty
const RMA_ONLY: u8 = 2;
const SEVERITY_MEDIUM: u8 = 2; // OTF2_MarkerSeverity
const MAPPING_COMM: u8 = 6; // OTF2_MappingType
const SCOPE_LOCATION_GROUP: u8 = 2; // OTF2_MarkerScope

impl Otf2 {
    /// Writes the definitions to which the events refer, and the anchor.
    ///
    /// # Errors
    /// The first write error.
    pub(super) fn write_definitions(mut self) -> io::Result<()> {
        let nodes = self.system_tree();
        let groups = self.location_groups(&nodes);
        let locations = self.locations();
        let thread_id = self.strings.number("OMPTRACE::THREAD_ID");
        let thread_role = self.strings.number("OMPTRACE::THREAD_ROLE");
        let roles: Vec<StringRef> =
            self.threads.iter().map(|thread| self.strings.number(thread.role.name())).collect();
        let properties = self.group_properties();
        let paradigms = self.paradigms();
        let template = self.strings.number("Thread team ${id}");
        let window = self.strings.number("OPENMP_TARGET_WINDOW");
        let communicators = self.communicator_names();

        let mut file = self.archive.global_definitions();
        for (id, text) in (0..).zip(self.strings.texts()) {
            let text = text.clone();
            file.put(&String_ { id, text });
        }
        file.put(&self.clock_properties());
        for paradigm in &paradigms {
            file.put(paradigm);
        }
        file.put(&ParadigmProperty {
            paradigm: paradigm::OPENMP,
            property: COMM_NAME_TEMPLATE,
            value: TypedValue::String(template),
        });
        let is_accelerator = |paradigm: &&Paradigm| paradigm.class == CLASS_ACCELERATOR;
        for paradigm in paradigms.iter().filter(is_accelerator) {
            file.put(&ParadigmProperty {
                paradigm: paradigm.paradigm,
                property: RMA_ONLY,
                value: TypedValue::Uint8(1),
            });
        }
        nodes.put(&mut file);
        groups.iter().for_each(|group| file.put(group));
        properties.iter().for_each(|property| file.put(property));
        for location in &locations {
            file.put(location);
            let index = location.id as usize;
            if let Some((thread, role)) = self.threads.get(index).zip(roles.get(index)) {
                let os_tid = TypedValue::Uint64(thread.os_tid.into());
                let role = TypedValue::String(*role);
                for (name, value) in [(thread_id, os_tid), (thread_role, role)] {
                    file.put(&LocationProperty {
                        location: LocationRef(location.id),
                        name,
                        legacy_string: StringRef::UNDEFINED,
                        value,
                    });
                }
            }
        }
        self.regions.definitions().iter().for_each(|region| file.put(region));
        let attributes = self.attributes.definitions();
        attributes.iter().for_each(|attribute| file.put(attribute));
        let next = self.put_teams(&mut file);
        let next = self.put_communicators(&mut file, next, &self.comm_numbers(), &communicators);
        if !self.streams.streams.is_empty() {
            self.put_window(&mut file, next, window);
        }
        let definitions = file.finish()?;

        self.number_streams()?;
        self.write_local_definitions()?;
        self.write_markers()?;
        let anchor = Anchor {
            locations: locations.len() as u64,
            definitions,
            properties: &properties::of_archive(&self.summaries),
            trace_id: self.trace_id(),
        };
        self.archive.finish(&anchor)
    }

    fn times(&self) -> ProcessTimes {
        let mut all = ProcessTimes::default();
        let each = self.times.iter().chain([&self.streams.times]);
        for times in each.filter(|times| times.first <= times.last) {
            all.extend(times.first);
            all.extend(times.last);
        }
        all.first = all.first.min(all.last);
        all
    }

    fn clock_properties(&self) -> ClockProperties {
        let ProcessTimes { first, last } = self.times();
        let realtime = self.start_realtime_ns.map(|start| start.saturating_add(first));
        ClockProperties {
            timer_resolution: TIMER_RESOLUTION,
            global_offset: first,
            trace_length: last - first,
            realtime_timestamp: Added(realtime.unwrap_or(u64::MAX)),
        }
    }

    /// One location group per process, followed by an accelerator for each device with activity.
    fn location_groups(&mut self, nodes: &SystemTree) -> Vec<LocationGroup> {
        let strings = &mut self.strings;
        let processes = self.processes.iter().zip(&nodes.of_process);
        let mut groups: Vec<LocationGroup> = (0..)
            .zip(processes)
            .map(|(id, (process, node))| LocationGroup {
                id,
                name: strings.number(&process.name),
                group_type: PROCESS,
                system_tree_parent: *node,
                creating_location_group: Added(LocationGroupRef::UNDEFINED),
            })
            .collect();
        let accelerators = self.streams.accelerators.iter().zip(&nodes.of_accelerator);
        for (accelerator, node) in accelerators {
            let creator = LocationGroupRef(accelerator.process as u32);
            groups.push(LocationGroup {
                id: groups.len() as u32,
                name: strings.number(&accelerator.name),
                group_type: ACCELERATOR,
                system_tree_parent: *node,
                creating_location_group: Added(creator),
            });
        }
        groups
    }

    /// Facts about each process's trace.
    fn group_properties(&mut self) -> Vec<LocationGroupProperty> {
        let strings = &mut self.strings;
        let mut properties = Vec::new();
        for (group, summary) in (0..).map(LocationGroupRef).zip(&self.summaries) {
            for (name, value) in properties::of_process(summary) {
                let name = strings.number(&name);
                let (value, legacy_string) = match value {
                    Property::Number(number) => (TypedValue::Uint64(number), StringRef::UNDEFINED),
                    Property::Text(text) => {
                        let text = strings.number(&text);
                        (TypedValue::String(text), text)
                    }
                };
                properties.push(LocationGroupProperty { group, name, legacy_string, value });
            }
        }
        properties
    }

    /// All threads, followed by all streams.
    fn locations(&mut self) -> Vec<Location> {
        let strings = &mut self.strings;
        let threads = self.threads.iter().map(|thread| {
            let group = thread.process as u32;
            (&thread.name, CPU_THREAD, &thread.file, group)
        });
        let processes = self.processes.len();
        let streams = self.streams.streams.iter().map(|stream| {
            let group = (processes + stream.accelerator) as u32;
            (&stream.name, ACCELERATOR_STREAM, &stream.file, group)
        });
        let location =
            |(id, (name, location_type, file, group)): (u64, (&String, _, &EventFile, _))| Location {
                id,
                name: strings.number(name),
                location_type,
                number_of_events: file.events(),
                location_group: LocationGroupRef(group),
            };
        (0..).zip(threads.chain(streams)).map(location).collect()
    }

    /// The location number of a stream, after all threads are known.
    fn stream_number(&self, stream: u32) -> u32 {
        self.threads.len() as u32 + stream
    }

    fn number_streams(&self) -> io::Result<()> {
        let streams = 0..self.streams.streams.len() as u32;
        streams.into_iter().try_for_each(|stream| {
            let number = self.stream_number(stream);
            self.archive.number_stream(stream, number)
        })
    }

    /// The paradigms of the regions; OpenMP's is always included.
    fn paradigms(&mut self) -> Vec<Paradigm> {
        let has_streams = !self.streams.streams.is_empty();
        let mut paradigms: Vec<u8> = self
            .regions
            .definitions()
            .iter()
            .map(|region| region.paradigm)
            .chain([paradigm::OPENMP])
            .chain(has_streams.then_some(self.regions.enums().target_paradigm()))
            .collect();
        paradigms.sort_unstable();
        paradigms.dedup();
        let strings = &mut self.strings;
        paradigms
            .into_iter()
            .map(|paradigm| {
                let (name, class) = match paradigm {
                    paradigm::USER => ("user", CLASS_PROCESS),
                    paradigm::MPI => ("MPI", CLASS_PROCESS),
                    paradigm::MEASUREMENT_SYSTEM => ("omptrace", CLASS_PROCESS),
                    paradigm::OPENMP_TARGET => ("OpenMP target", CLASS_ACCELERATOR),
                    _ => ("OpenMP", CLASS_THREAD_FORK_JOIN),
                };
                let name = strings.number(name);
                Paradigm { paradigm, name, class }
            })
            .collect()
    }

    /// The machine, below it a node per host, and below that one per device of a process.
    fn system_tree(&mut self) -> SystemTree {
        let strings = &mut self.strings;
        let mut tree = SystemTree::default();
        let machine = strings.number("machine");
        let machine = tree.add(SystemTreeNodeRef::UNDEFINED, MACHINE, machine, machine);
        let mut hosts = BTreeMap::new();
        for process in &self.processes {
            let host = match &process.host[..] {
                "" => "unknown host",
                host => host,
            };
            let node = *hosts.entry(host).or_insert_with(|| {
                let (name, class) = (strings.number(host), strings.number("node"));
                tree.add(machine, SHARED_MEMORY, name, class)
            });
            tree.of_process.push(node);
        }
        for accelerator in &self.streams.accelerators {
            let host = tree.of_process[accelerator.process];
            let (name, class) = (strings.number(&accelerator.name), strings.number("device"));
            let node = tree.add(host, ACCELERATOR_DEVICE, name, class);
            tree.of_accelerator.push(node);
        }
        tree
    }

    /// Writes a group of all threads, a group per distinct team, and the communicators of the teams. Returns the next
    /// group and communicator numbers.
    fn put_teams(&self, file: &mut DefinitionFile) -> (u32, u32) {
        // All threads are in the group in order, so the members of teams can be location numbers.
        let mut locations: Vec<u64> = (0..self.threads.len() as u64).collect();
        if self.regions.enums().target_paradigm() == paradigm::OPENMP {
            // A paradigm has only one group of locations, which the window uses, too.
            let streams = 0..self.streams.streams.len() as u32;
            locations.extend(streams.map(|stream| u64::from(self.stream_number(stream))));
        }
        file.put(&group(0, paradigm::OPENMP, COMM_LOCATIONS, locations));
        let mut groups: HashMap<&[u32], GroupRef> = HashMap::new();
        for (_, comm) in self.teams.comms() {
            let next = groups.len() as u32 + 1;
            groups.entry(&comm.members).or_insert_with(|| {
                let members = comm.members.iter().copied().map(u64::from).collect();
                file.put(&group(next, paradigm::OPENMP, COMM_GROUP, members));
                GroupRef(next)
            });
        }
        let numbers = self.comm_numbers();
        let mut comms: Vec<_> = self.teams.comms().collect();
        comms.sort_by_key(|(number, _)| numbers[*number as usize]);
        for (number, comm) in &comms {
            file.put(&Comm {
                id: numbers[*number as usize],
                name: StringRef(0),
                group: groups[&comm.members[..]],
                parent: match comm.parent {
                    CommRef::UNDEFINED => CommRef::UNDEFINED,
                    CommRef(parent) => CommRef(numbers[parent as usize]),
                },
                flags: Added(0),
            });
        }
        (groups.len() as u32 + 1, comms.len() as u32)
    }

    /// Writes the window for transfers, and the communicator of its participants: all streams, and the threads that
    /// requested transfers.
    fn put_window(&self, file: &mut DefinitionFile, (next_group, comm): (u32, u32), name: StringRef) {
        let paradigm = self.regions.enums().target_paradigm();
        let number = |member: &Member| match *member {
            Member::Thread(thread) => u64::from(thread),
            Member::Stream(stream) => self.stream_number(stream).into(),
        };
        let locations: Vec<u64> = self.streams.members.iter().map(number).collect();
        let (members, members_group) = if paradigm == paradigm::OPENMP {
            (locations, next_group)
        } else {
            let ranks = (0..locations.len() as u64).collect();
            file.put(&group(next_group, paradigm, COMM_LOCATIONS, locations));
            (ranks, next_group + 1)
        };
        file.put(&group(members_group, paradigm, COMM_GROUP, members));
        file.put(&Comm {
            id: comm,
            name,
            group: GroupRef(members_group),
            parent: CommRef::UNDEFINED,
            flags: Added(0),
        });
        file.put(&RmaWin { id: WINDOW.0, name, comm: CommRef(comm), flags: Added(0) });
    }

    /// The number of each communicator in the archive, by its number in the events. The former are consecutive, and
    /// parents come first.
    fn comm_numbers(&self) -> Vec<u32> {
        let comms: HashMap<u32, CommRef> =
            self.teams.comms().map(|(number, comm)| (number, comm.parent)).collect();
        let depth = |number: &u32| {
            let parent = |number: &u32| comms.get(number).map(|parent| parent.0);
            std::iter::successors(Some(*number), parent).count()
        };
        let mut order: Vec<u32> = comms.keys().copied().collect();
        order.sort_unstable_by_key(|number| (depth(number), *number));
        // MPI communicators follow the teams.
        order.extend(self.communicators.numbers());
        let mut numbers = vec![0; order.iter().max().map_or(0, |most| *most as usize + 1)];
        for (new, old) in (0..).zip(order) {
            numbers[old as usize] = new;
        }
        numbers
    }

    /// Writes the own definitions of each location: a mapping of communicator numbers, if they differ from those in the
    /// events.
    fn write_local_definitions(&self) -> io::Result<()> {
        let numbers = self.comm_numbers();
        let differ = (0..).zip(&numbers).any(|(old, new)| old != *new);
        let table = differ.then(|| MappingTable {
            mapping_type: MAPPING_COMM,
            mappings: Mappings::Dense(numbers.into_iter().map(u64::from).collect()),
        });
        let locations = self.threads.len() + self.streams.streams.len();
        for location in 0..locations as u32 {
            let mut file = self.archive.local_definitions(location);
            if let Some(table) = &table {
                file.put(table);
            }
            file.finish()?;
        }
        Ok(())
    }

    /// Writes notes about missing or repaired parts.
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

    /// An id that other traces do not have.
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

pub(super) fn group(id: u32, paradigm: u8, group_type: u8, members: Vec<u64>) -> Group {
    Group { id, name: StringRef(0), legacy_type: 0, members, group_type, paradigm, flags: 0 }
}

/// The nodes of the system tree, each with its domain.
#[derive(Default)]
struct SystemTree {
    nodes: Vec<(SystemTreeNode, u8)>,
    of_process: Vec<SystemTreeNodeRef>,
    of_accelerator: Vec<SystemTreeNodeRef>,
}

impl SystemTree {
    fn add(
        &mut self,
        parent: SystemTreeNodeRef,
        domain: u8,
        name: StringRef,
        class: StringRef,
    ) -> SystemTreeNodeRef {
        let id = self.nodes.len() as u32;
        let node = SystemTreeNode { id, name, class, parent };
        self.nodes.push((node, domain));
        SystemTreeNodeRef(id)
    }

    fn put(&self, file: &mut DefinitionFile) {
        for (node, domain) in &self.nodes {
            file.put(node);
            file.put(&SystemTreeNodeDomain { node: SystemTreeNodeRef(node.id), domain: *domain });
        }
    }
}
