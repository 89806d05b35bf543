//! The definitions that are needed to check events: an archive's global definitions, and those of locations.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use super::faults::{Fault, Faults};
use super::reader::{Anchor, Records};
use crate::encoding::{CommRef, Kind, LocationGroupRef, Mappings};
use crate::records::{ClockProperties, Definition, Group, LocalDefinition};

const COMM_LOCATIONS: u8 = 4; // OTF2_GroupType
const COMM_GROUP: u8 = 5;
const GLOBAL_MEMBERS: u32 = 1; // OTF2_GroupFlag
const PROCESS: u8 = 1; // OTF2_LocationGroupType
const ACCELERATOR: u8 = 2;
const CPU_THREAD: u8 = 1; // OTF2_LocationType
const ACCELERATOR_STREAM: u8 = 2;

/// The definitions to which the events of an archive refer.
#[derive(Default)]
pub(super) struct Definitions {
    known: HashSet<(Kind, u64)>,
    pub(super) locations: BTreeMap<u64, LocationFacts>,
    groups: HashMap<u32, Group>,
    location_groups: BTreeMap<u32, GroupFacts>,
    comm_groups: HashMap<u32, u32>,
    /// The communicator of each window.
    windows: HashMap<u32, CommRef>,
    /// The type of each parameter.
    pub(super) parameters: HashMap<u32, u8>,
    metric_members: HashMap<u32, u8>,
    /// The types of the values in each metric class.
    metric_classes: HashMap<u32, Vec<u8>>,
    metric_instances: HashMap<u32, u32>,
    /// The type of each attribute.
    pub(super) attributes: HashMap<u32, u8>,
    pub(super) clock: Option<ClockProperties>,
    paradigms: HashSet<u8>,
    /// By paradigm, the locations in its group of communication locations.
    comm_locations: HashMap<u8, Vec<u64>>,
    /// References that were undefined when they occurred.
    forward: Vec<(Kind, u64, &'static str)>,
}

/// The contents of a location's definition.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocationFacts {
    pub(super) events: u64,
    pub(super) group: u32,
    location_type: u8,
}

/// The contents of a location group's definition.
#[derive(Clone, Copy, Debug)]
struct GroupFacts {
    group_type: u8,
    creator: LocationGroupRef,
}

impl Definitions {
    /// Reads the file `path`.
    pub(super) fn read(path: &Path, anchor: &Anchor, faults: &mut Faults) -> Definitions {
        let mut definitions = Definitions::default();
        let mut records = match Records::open(path, anchor.definition_chunk_bytes, false) {
            Ok(records) => records,
            Err(error) => {
                faults.add(Fault::Damaged, || format!("{}: {error}", path.display()));
                return definitions;
            }
        };
        let mut count = 0;
        loop {
            match records.next(Definition::take) {
                Ok(None) => break,
                Ok(Some(definition)) => {
                    count += 1;
                    definitions.add(definition, faults);
                }
                Err(damage) => {
                    faults.add(Fault::Damaged, || damage.0);
                    return definitions;
                }
            }
        }
        if count != anchor.definitions {
            let stated = anchor.definitions;
            faults.add(Fault::DefinitionCount, || format!("{stated}, but there are {count}"));
        }
        let locations = definitions.locations.len() as u64;
        if locations != anchor.locations {
            let stated = anchor.locations;
            faults.add(Fault::LocationCount, || format!("{stated}, but there are {locations}"));
        }
        definitions.check_late(faults);
        definitions
    }

    fn add(&mut self, definition: Definition, faults: &mut Faults) {
        let name = definition.name();
        definition.references(&mut |kind, number| {
            if !self.known.contains(&(kind, number)) {
                self.forward.push((kind, number, name));
            }
        });
        if let Some((kind, number)) = defines(&definition)
            && !self.known.insert((kind, number))
        {
            faults.add(Fault::DefinedTwice, || format!("{name} {number}"));
        }
        match definition {
            Definition::ClockProperties(_) if self.clock.is_some() => {
                faults.add(Fault::ClockProperties, || "several".to_owned());
            }
            Definition::ClockProperties(clock) => self.clock = Some(clock),
            Definition::Paradigm(paradigm) => {
                self.paradigms.insert(paradigm.paradigm);
            }
            Definition::Region(region) if !self.paradigms.contains(&region.paradigm) => {
                let (id, paradigm) = (region.id, region.paradigm);
                // Paradigm 0 is unknown, and needs no group.
                if paradigm != 0 {
                    faults.add(Fault::Paradigm, || format!("{paradigm}, of region {id}"));
                }
            }
            Definition::Attribute(attribute) => {
                self.attributes.insert(attribute.id, attribute.value_type);
            }
            Definition::Location(location) => {
                let facts = LocationFacts {
                    events: location.number_of_events,
                    group: location.location_group.0,
                    location_type: location.location_type,
                };
                self.locations.insert(location.id, facts);
            }
            Definition::LocationGroup(group) => {
                let facts =
                    GroupFacts { group_type: group.group_type, creator: group.creating_location_group.0 };
                self.location_groups.insert(group.id, facts);
            }
            Definition::Group(group) => self.add_group(group, faults),
            Definition::Comm(comm) => {
                self.comm_groups.insert(comm.id, comm.group.0);
            }
            Definition::RmaWin(window) => {
                self.windows.insert(window.id, window.comm);
            }
            Definition::Parameter(parameter) => {
                self.parameters.insert(parameter.id, parameter.parameter_type);
            }
            Definition::MetricMember(member) => {
                self.metric_members.insert(member.id, member.value_type);
            }
            Definition::MetricClass(class) => {
                let members = class.members.0.iter();
                let types = members.filter_map(|member| self.metric_members.get(&member.0));
                self.metric_classes.insert(class.id, types.copied().collect());
            }
            Definition::MetricInstance(instance) => {
                self.metric_instances.insert(instance.id, instance.class.0);
            }
            _ => {}
        }
    }

    fn add_group(&mut self, group: Group, faults: &mut Faults) {
        let id = group.id;
        match group.group_type {
            COMM_LOCATIONS => {
                let unknown = |member: &&u64| !self.locations.contains_key(member);
                if let Some(member) = group.members.iter().find(unknown) {
                    faults.add(Fault::Group, || format!("group {id} has location {member}"));
                }
                let members = group.members.clone();
                if self.comm_locations.insert(group.paradigm, members).is_some() {
                    faults.add(Fault::Group, || format!("group {id} of all locations is the second"));
                }
            }
            COMM_GROUP => {
                let all = self.comm_locations.get(&group.paradigm).map_or(0, Vec::len) as u64;
                if let Some(member) = group.members.iter().find(|member| **member >= all) {
                    faults.add(Fault::Group, || format!("group {id} has member {member} of {all} locations"));
                }
            }
            _ => {}
        }
        self.groups.insert(id, group);
    }

    /// Checks that require all definitions.
    fn check_late(&mut self, faults: &mut Faults) {
        for (kind, number, name) in std::mem::take(&mut self.forward) {
            let fault = if self.known.contains(&(kind, number)) { Fault::Forward } else { Fault::Undefined };
            faults.add(fault, || format!("{name} refers to {kind} {number}"));
        }
        if self.clock.is_none() {
            faults.add(Fault::ClockProperties, || "none".to_owned());
        }
        for (id, group) in &self.location_groups {
            if !self.is_sound_group(*id, *group) {
                faults.add(Fault::LocationGroup, || format!("location group {id}"));
            }
        }
    }

    /// Whether the group is consistent: a process has CPU threads, and an accelerator has streams and a creating
    /// process; neither has the other's.
    fn is_sound_group(&self, id: u32, group: GroupFacts) -> bool {
        let (own, other) = match group.group_type {
            PROCESS => (CPU_THREAD, ACCELERATOR_STREAM),
            ACCELERATOR => (ACCELERATOR_STREAM, CPU_THREAD),
            _ => return true,
        };
        let creator = self.location_groups.get(&group.creator.0);
        let is_created = match group.creator {
            LocationGroupRef::UNDEFINED => group.group_type == PROCESS,
            _ => creator.is_some_and(|creator| creator.group_type == PROCESS),
        };
        let members = self.locations.values().filter(|facts| facts.group == id);
        let has = |location_type| {
            let mut members = members.clone();
            members.any(|facts| facts.location_type == location_type)
        };
        is_created && has(own) && !has(other)
    }

    pub(super) fn defines(&self, kind: Kind, number: u64) -> bool {
        self.known.contains(&(kind, number))
    }

    /// Number of ranks in a communicator; `None` if its group is not a list of locations.
    pub(super) fn ranks(&self, comm: CommRef) -> Option<usize> {
        let group = self.groups.get(self.comm_groups.get(&comm.0)?)?;
        if group.group_type != COMM_GROUP {
            return None;
        }
        if group.flags & GLOBAL_MEMBERS != 0 {
            return self.comm_locations.get(&group.paradigm).map(Vec::len);
        }
        Some(group.members.len())
    }

    /// Number of ranks in a window's communicator.
    pub(super) fn window_ranks(&self, window: u32) -> Option<usize> {
        self.ranks(*self.windows.get(&window)?)
    }

    /// The types of a metric's values.
    pub(super) fn metric_types(&self, metric: u32) -> Option<&[u8]> {
        let class = self.metric_instances.get(&metric).unwrap_or(&metric);
        self.metric_classes.get(class).map(Vec::as_slice)
    }

    /// The locations of a team in rank order; `None` if its group is not a group of locations.
    pub(super) fn members(&self, comm: CommRef) -> Option<Vec<u64>> {
        let group = self.groups.get(self.comm_groups.get(&comm.0)?)?;
        let all = self.comm_locations.get(&group.paradigm)?;
        let member = |index: &u64| all.get(*index as usize).copied();
        (group.group_type == COMM_GROUP).then(|| group.members.iter().filter_map(member).collect())
    }
}

/// The kind and number that a definition defines.
fn defines(definition: &Definition) -> Option<(Kind, u64)> {
    use Definition as D;
    Some(match definition {
        D::String_(d) => (Kind::String, d.id.into()),
        D::Attribute(d) => (Kind::Attribute, d.id.into()),
        D::SystemTreeNode(d) => (Kind::SystemTreeNode, d.id.into()),
        D::LocationGroup(d) => (Kind::LocationGroup, d.id.into()),
        D::Location(d) => (Kind::Location, d.id),
        D::Region(d) => (Kind::Region, d.id.into()),
        D::Callpath(d) => (Kind::Callpath, d.id.into()),
        D::Group(d) => (Kind::Group, d.id.into()),
        D::MetricMember(d) => (Kind::MetricMember, d.id.into()),
        D::MetricClass(d) => (Kind::Metric, d.id.into()),
        D::MetricInstance(d) => (Kind::Metric, d.id.into()),
        D::Comm(d) => (Kind::Comm, d.id.into()),
        D::InterComm(d) => (Kind::Comm, d.id.into()),
        D::Parameter(d) => (Kind::Parameter, d.id.into()),
        D::RmaWin(d) => (Kind::RmaWin, d.id.into()),
        D::SourceCodeLocation(d) => (Kind::SourceCodeLocation, d.id.into()),
        D::CallingContext(d) => (Kind::CallingContext, d.id.into()),
        D::InterruptGenerator(d) => (Kind::InterruptGenerator, d.id.into()),
        _ => return None,
    })
}

/// The contents of a location's own definitions: mappings to global numbers, and clock offsets.
#[derive(Default)]
pub(super) struct LocalDefinitions {
    numbers: HashMap<(Kind, u64), u64>,
    mapped: HashSet<Kind>,
    /// Times, and the offset to add at each.
    clock_offsets: Vec<(u64, i64)>,
}

impl LocalDefinitions {
    /// Reads a location's definitions.
    pub(super) fn read(path: &Path, anchor: &Anchor, faults: &mut Faults) -> LocalDefinitions {
        let mut numbers = LocalDefinitions::default();
        let Ok(mut records) = Records::open(path, anchor.definition_chunk_bytes, false) else {
            faults.add(Fault::MissingDefinitions, || path.display().to_string());
            return numbers;
        };
        loop {
            match records.next(LocalDefinition::take) {
                Ok(None) => return numbers,
                Ok(Some(LocalDefinition::MappingTable(table))) => {
                    if let Some(kind) = mapped_kind(table.mapping_type) {
                        if !numbers.mapped.insert(kind) {
                            faults.add(Fault::DefinedTwice, || {
                                format!("mapping table of the kind {kind} in {}", path.display())
                            });
                        }
                        numbers.add(kind, table.mappings);
                    }
                }
                Ok(Some(LocalDefinition::ClockOffset(offset))) => {
                    let time = offset.time.0;
                    let newest = numbers.clock_offsets.last();
                    if newest.is_some_and(|(newest, _)| *newest >= time) {
                        faults.add(Fault::ClockOffset, || path.display().to_string());
                    } else {
                        numbers.clock_offsets.push((time, offset.offset));
                    }
                }
                Ok(Some(LocalDefinition::Unknown(_))) => {}
                Err(damage) => {
                    faults.add(Fault::Damaged, || damage.0);
                    return numbers;
                }
            }
        }
    }

    fn add(&mut self, kind: Kind, mappings: Mappings) {
        match mappings {
            Mappings::Dense(global) => {
                let pairs = (0..).zip(global).map(|(local, global)| ((kind, local), global));
                self.numbers.extend(pairs);
            }
            Mappings::Sparse(pairs) => {
                let pairs = pairs.into_iter().map(|(local, global)| ((kind, local), global));
                self.numbers.extend(pairs);
            }
        }
    }

    /// The global number for a local one. A number without a mapping is global.
    #[inline]
    pub(super) fn global(&self, kind: Kind, local: u64) -> u64 {
        if self.numbers.is_empty() {
            return local;
        }
        self.numbers.get(&(kind, local)).copied().unwrap_or(local)
    }

    /// The time on the archive's clock. It is interpolated between two offsets, and extrapolated from the nearest two
    /// before the first and after the last. A single offset has no effect.
    pub(super) fn global_time(&self, time: u64) -> u64 {
        let offsets = &self.clock_offsets;
        if offsets.len() < 2 {
            return time;
        }
        let next = offsets.partition_point(|(known, _)| *known <= time);
        let next = next.clamp(1, offsets.len() - 1);
        let ((begin, from), (end, to)) = (offsets[next - 1], offsets[next]);
        let passed = (i128::from(time) - i128::from(begin)) as f64;
        // An archive may contain two offsets for the same time, in any order, so the slope between them is unbounded.
        let distance = (i128::from(end) - i128::from(begin)) as f64;
        let slope = (i128::from(to) - i128::from(from)) as f64 / distance;
        let offset = i128::from(from).saturating_add((passed * slope).round() as i128);
        u64::try_from(i128::from(time).saturating_add(offset)).unwrap_or(0)
    }
}

/// `OTF2_MappingType`.
fn mapped_kind(mapping_type: u8) -> Option<Kind> {
    Some(match mapping_type {
        0 => Kind::String,
        1 => Kind::Attribute,
        2 => Kind::Location,
        3 => Kind::Region,
        4 => Kind::Group,
        5 => Kind::Metric,
        6 => Kind::Comm,
        7 => Kind::Parameter,
        8 => Kind::RmaWin,
        9 => Kind::SourceCodeLocation,
        10 => Kind::CallingContext,
        11 => Kind::InterruptGenerator,
        14 => Kind::LocationGroup,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_corrected_along_the_nearest_line() {
        let times = |clock_offsets: &[(u64, i64)]| {
            let definitions =
                LocalDefinitions { clock_offsets: clock_offsets.to_vec(), ..LocalDefinitions::default() };
            [0, 100, 150, 200, 300].map(|time| definitions.global_time(time))
        };
        let unchanged = [0, 100, 150, 200, 300];
        assert_eq!(times(&[]), unchanged);
        assert_eq!(times(&[(100, 7)]), unchanged, "one alone gives nothing");
        assert_eq!(times(&[(100, 10), (200, 20)]), [0, 110, 165, 220, 330]);
        let bent = [(100, 10), (200, 20), (300, -80)];
        assert_eq!(times(&bent), [0, 110, 165, 220, 220]);
        assert_eq!(times(&[(100, -90), (200, -90)]), [0, 10, 60, 110, 210]);
        // Invalid offsets must lead to some time, not to a panic.
        times(&[(100, i64::MAX), (100, i64::MIN)]);
        times(&[(200, i64::MIN), (100, i64::MAX)]);
        times(&[(0, i64::MAX), (u64::MAX, i64::MAX)]);
    }
}
