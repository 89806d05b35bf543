//! Ranks, metrics, parameters and references: each must conform to the definitions.

use super::Checker;
use super::source::Attribute;
use crate::check::faults::Fault;
use crate::encoding::{CommRef, Field, Kind, ParameterRef};
use crate::records::{Event, Metric};

impl Checker<'_> {
    pub(super) fn check_references(
        &mut self,
        index: usize,
        time: u64,
        event: &Event,
        attributes: &[Attribute],
    ) {
        let (definitions, numbers) = (self.definitions, &self.sources[index].numbers);
        let mut undefined = false;
        let mut visit = |kind, number| {
            undefined |= !definitions.defines(kind, numbers.global(kind, number));
        };
        event.references(&mut visit);
        let mut is_wrong = false;
        for (place, (attribute, value)) in attributes.iter().enumerate() {
            attribute.references(&mut visit);
            value.references(&mut visit);
            let number = numbers.global(Kind::Attribute, attribute.0.into()) as u32;
            let value_type = definitions.attributes.get(&number);
            let comes_before = |other: &Attribute| other.0 == *attribute;
            is_wrong |= value_type.is_some_and(|defined| *defined != value.type_number())
                || attributes[..place].iter().any(comes_before);
        }
        if undefined {
            let name = event.name();
            let location = self.sources[index].location;
            self.faults.add(Fault::Undefined, || format!("{name} of location {location} at {time}"));
        }
        if is_wrong {
            self.fault(Fault::Attributes, index, time);
        }
    }

    pub(super) fn check_rank(&mut self, index: usize, time: u64, comm: CommRef, rank: u32) {
        let numbers = &self.sources[index].numbers;
        let comm = CommRef(numbers.global(Kind::Comm, comm.0.into()) as u32);
        let ranks = self.definitions.ranks(comm);
        if ranks.is_some_and(|ranks| rank as usize >= ranks) {
            self.fault(Fault::Rank, index, time);
        }
    }

    pub(super) fn check_metric(&mut self, index: usize, time: u64, event: &Metric) {
        let numbers = &self.sources[index].numbers;
        let metric = numbers.global(Kind::Metric, event.metric.0.into()) as u32;
        let types = event.values.0.iter().map(|value| value.value_type);
        let stated = self.definitions.metric_types(metric);
        if stated.is_some_and(|stated| !types.eq(stated.iter().copied())) {
            self.fault(Fault::Metric, index, time);
        }
    }

    pub(super) fn check_parameter(
        &mut self,
        index: usize,
        time: u64,
        parameter: ParameterRef,
        parameter_type: u8,
    ) {
        let numbers = &self.sources[index].numbers;
        let parameter = numbers.global(Kind::Parameter, parameter.0.into()) as u32;
        let stated = self.definitions.parameters.get(&parameter);
        if stated.is_some_and(|stated| *stated != parameter_type) {
            self.fault(Fault::Parameter, index, time);
        }
    }
}
