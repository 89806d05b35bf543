//! Assigns records to operations of the host, and CUDA devices to OpenMP devices.
//!
//! Device records contain a correlation id assigned by CUPTI. External correlation records list which of our ids were
//! pushed on the thread that got this correlation id. Both kinds arrive in any order, because threads and devices fill
//! different buffers.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use ompt_sys::{self as ompt, ompt_target_data_op_t};

use super::layout::{Bytes, external};
use crate::record::{Record, Work, is_transfer};
use crate::tracer::HostOperation;

/// Maximum number of correlation ids to remember. Every CUDA call has one while one of our ids is pushed.
const MAX_KNOWN: usize = 1 << 16;
/// Maximum number of correlation ids that are remembered longer, because their operation has no record yet: a kernel
/// may still be running while other threads make many calls.
const MAX_AWAITED: usize = 1 << 16;
/// Maximum number of records that wait for their correlation.
const MAX_WAITING: usize = 1 << 12;

/// A thread's stacks of external ids (`CUpti_ExternalCorrelationKind`): those for tools. This one has operations.
pub(super) const OPERATION: u32 = 3;
/// This one has the device and kind of the operation.
pub(super) const DEVICE: u32 = 4;

/// An operation's device and kind packed into one number.
pub(super) fn packed(operation: &HostOperation) -> u64 {
    u64::from(operation.optype.0) << 32 | u64::from(operation.device_num as u32)
}

/// What is known about a correlation id.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    host_op_id: Option<u64>,
    /// In the format of [`packed`].
    device: Option<u64>,
}

impl Known {
    fn is_whole(self) -> bool {
        self.host_op_id.is_some() && self.device.is_some()
    }
}

/// What is known about an operation of the host.
#[derive(Clone, Copy, Debug, Default)]
struct Operation {
    /// Number of correlation ids known for the operation.
    numbers: usize,
    /// The record of the operation's kernel, or of its copy, has arrived.
    has_record: bool,
}

/// A record of external correlation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct External {
    kind: u32,
    id: u64,
    correlation_id: u32,
}

impl External {
    pub(super) fn of(bytes: Bytes<'_>) -> External {
        External {
            kind: bytes.get(external::kind) as u32,
            id: bytes.get(external::id),
            correlation_id: bytes.get(external::correlation_id) as u32,
        }
    }
}

/// A record with its CUPTI correlation id.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Numbered {
    pub(super) correlation_id: u32,
    /// CUDA's number of the device.
    pub(super) ordinal: u32,
    pub(super) record: Record,
}

/// The known correlation ids, and the waiting records.
#[derive(Debug, Default)]
pub(super) struct Correlations {
    known: BTreeMap<u32, Known>,
    order: VecDeque<u32>,
    /// Older correlation ids whose operations have no record yet.
    awaited: VecDeque<u32>,
    /// The operations of the known correlation ids.
    operations: BTreeMap<u64, Operation>,
    waiting: VecDeque<Numbered>,
    /// OpenMP device numbers by CUDA device number.
    devices: BTreeMap<u32, i32>,
}

impl Correlations {
    /// Processes an external correlation record.
    pub(super) fn external(&mut self, external: External) {
        let External { kind, id, correlation_id } = external;
        if kind != OPERATION && kind != DEVICE {
            return;
        }
        let order = &mut self.order;
        let known = self.known.entry(correlation_id).or_insert_with(|| {
            order.push_back(correlation_id);
            Known::default()
        });
        if kind == DEVICE {
            known.device = Some(id);
        } else if known.host_op_id.is_none() {
            known.host_op_id = Some(id);
            self.operations.entry(id).or_default().numbers += 1;
        }
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.grows_old(oldest);
        }
    }

    /// Forgets an old correlation id, unless a record may still arrive.
    fn grows_old(&mut self, number: u32) {
        let operation = self.known.get(&number).and_then(|known| known.host_op_id);
        let operation = operation.and_then(|id| self.operations.get(&id));
        if operation.is_none_or(|operation| operation.has_record) {
            return self.forget(number);
        }
        self.awaited.push_back(number);
        if self.awaited.len() > MAX_AWAITED
            && let Some(oldest) = self.awaited.pop_front()
        {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, number: u32) {
        let known = self.known.remove(&number);
        if let Some(id) = known.and_then(|known| known.host_op_id)
            && let Entry::Occupied(mut operation) = self.operations.entry(id)
        {
            operation.get_mut().numbers -= 1;
            if operation.get().numbers == 0 {
                operation.remove();
            }
        }
    }

    /// Adds a device record, which waits until its operation is known.
    pub(super) fn add(&mut self, numbered: Numbered) {
        self.waiting.push_back(numbered);
    }

    /// Removes and returns the records that need not wait, each with its device if known; all records if no more
    /// `comes`.
    pub(super) fn ready(&mut self, comes: bool) -> Vec<(Option<i32>, Record)> {
        let too_many = self.waiting.len().saturating_sub(MAX_WAITING);
        let mut ready = Vec::new();
        for (index, numbered) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            let known = self.known.get(&numbered.correlation_id).copied();
            match known.filter(|known| known.is_whole()) {
                Some(known) => ready.push(self.resolved(known, numbered)),
                None if comes && index >= too_many => self.waiting.push_back(numbered),
                None => ready.push(self.resolved(known.unwrap_or_default(), numbered)),
            }
        }
        ready
    }

    fn resolved(&mut self, known: Known, numbered: Numbered) -> (Option<i32>, Record) {
        let Numbered { ordinal, mut record, .. } = numbered;
        record.correlation_id = known.host_op_id.unwrap_or(0);
        // The operation of a kernel launch may also copy.
        let is_kernel = matches!(record.work, Work::Kernel { .. });
        let asked_for_kernel = known.device.is_some_and(|packed| packed >> 32 == 0);
        if (is_kernel || !asked_for_kernel)
            && let Some(operation) = self.operations.get_mut(&record.correlation_id)
        {
            operation.has_record = true;
        }
        let Some(packed) = known.device else {
            return (self.devices.get(&ordinal).copied(), record);
        };
        let device_num = packed as u32 as i32;
        let optype = ompt_target_data_op_t((packed >> 32) as u32);
        // A copy between devices may have been requested from the other device.
        let is_of_one = match &record.work {
            Work::Kernel { .. } => true,
            Work::Copy(op) => op.optype != ompt::ompt_target_data_transfer,
            _ => false,
        };
        if is_of_one {
            self.devices.entry(ordinal).or_insert(device_num);
        }
        if let Work::Copy(op) | Work::Memory(op) = &mut record.work
            && is_same_kind(op.optype, optype)
        {
            op.optype = optype;
        }
        (Some(device_num), record)
    }
}

/// Whether the host may call an operation `asked` that CUDA calls `done`.
fn is_same_kind(done: ompt_target_data_op_t, asked: ompt_target_data_op_t) -> bool {
    /// The distance of the asynchronous kinds of OpenMP 5.1 and later from the others.
    const ASYNC: u32 = 16;
    done.0 % ASYNC == asked.0 % ASYNC || is_transfer(done) && is_transfer(asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DataOp;

    fn kernel(correlation_id: u32, ordinal: u32) -> Numbered {
        let work = Work::Kernel { requested_num_teams: 0, granted_num_teams: 1, name: None };
        numbered(correlation_id, ordinal, work)
    }

    fn numbered(correlation_id: u32, ordinal: u32, work: Work) -> Numbered {
        Numbered {
            correlation_id,
            ordinal,
            record: Record { correlation_id: 0, target_id: 0, stream: 7, begin: 1, end: 2, work },
        }
    }

    fn copy(optype: ompt_target_data_op_t) -> Work {
        Work::of_data_op(DataOp::of_bytes(optype, 8))
    }

    fn push(correlations: &mut Correlations, correlation_id: u32, host_op_id: u64, device: i32, optype: u32) {
        let operation =
            HostOperation { host_op_id, device_num: device, optype: ompt_target_data_op_t(optype) };
        for (kind, id) in [(OPERATION, host_op_id), (DEVICE, packed(&operation))] {
            correlations.external(External { kind, id, correlation_id });
        }
    }

    fn ids(ready: &[(Option<i32>, Record)]) -> Vec<(Option<i32>, u64)> {
        ready.iter().map(|(device, record)| (*device, record.correlation_id)).collect()
    }

    #[test]
    fn a_record_may_come_before_or_after_what_it_belongs_to() {
        let mut correlations = Correlations::default();
        push(&mut correlations, 5, 50, 1, 0);
        correlations.add(kernel(5, 0));
        correlations.add(kernel(6, 0));
        assert_eq!(ids(&correlations.ready(true)), [(Some(1), 50)]);
        assert!(correlations.ready(true).is_empty());
        push(&mut correlations, 6, 60, 1, 0);
        assert_eq!(ids(&correlations.ready(true)), [(Some(1), 60)]);
    }

    #[test]
    fn a_kernel_beside_openmp_goes_to_the_device_that_its_neighbours_are_of() {
        let mut correlations = Correlations::default();
        correlations.add(kernel(7, 3));
        assert_eq!(ids(&correlations.ready(false)), [(None, 0)]);
        push(&mut correlations, 8, 80, -2, 0);
        correlations.add(kernel(8, 3));
        correlations.add(kernel(9, 3));
        assert_eq!(ids(&correlations.ready(false)), [(Some(-2), 80), (Some(-2), 0)]);
    }

    #[test]
    fn a_copy_between_devices_maps_neither() {
        let mut correlations = Correlations::default();
        let transfer = ompt::ompt_target_data_transfer;
        push(&mut correlations, 1, 10, 2, transfer.0);
        correlations.add(numbered(1, 0, copy(transfer)));
        correlations.add(kernel(2, 0));
        assert_eq!(ids(&correlations.ready(false)), [(Some(2), 10), (None, 0)]);
    }

    #[test]
    fn a_copy_has_the_hosts_word_for_it() {
        let mut correlations = Correlations::default();
        let asked = ompt::ompt_target_data_transfer_to_device_async;
        push(&mut correlations, 1, 10, 0, asked.0);
        push(&mut correlations, 2, 20, 0, 0);
        let to_device = copy(ompt::ompt_target_data_transfer_to_device);
        correlations.add(numbered(1, 0, to_device.clone()));
        correlations.add(numbered(2, 0, to_device));
        let optypes: Vec<u32> = correlations
            .ready(true)
            .into_iter()
            .map(|(_, record)| match record.work {
                Work::Copy(op) => op.optype.0,
                work => panic!("{work:?}"),
            })
            .collect();
        // The second is a copy that CUDA needs to start a kernel.
        assert_eq!(optypes, [asked.0, 2]);
    }

    #[test]
    fn a_kernel_that_runs_on_keeps_its_operation_while_others_are_done() {
        let mut correlations = Correlations::default();
        push(&mut correlations, 1, 0, 3, 0);
        for number in 2..4 * MAX_KNOWN as u32 {
            push(&mut correlations, number, number.into(), 1, 0);
            correlations.add(kernel(number, 0));
            assert_eq!(correlations.ready(true).len(), 1);
        }
        assert!(correlations.known.len() <= MAX_KNOWN + 1);
        correlations.add(kernel(1, 7));
        assert_eq!(ids(&correlations.ready(true)), [(Some(3), 0)]);
    }

    /// A copy that a launch needs precedes its kernel.
    #[test]
    fn a_kernel_keeps_its_operation_after_a_copy_of_the_same() {
        let mut correlations = Correlations::default();
        push(&mut correlations, 1, 0, 3, 0);
        push(&mut correlations, 2, 0, 3, 0);
        let to_device = copy(ompt::ompt_target_data_transfer_to_device);
        correlations.add(numbered(1, 7, to_device));
        assert_eq!(correlations.ready(true).len(), 1);
        for number in 3..2 * MAX_KNOWN as u32 {
            push(&mut correlations, number, number.into(), 1, 0);
            correlations.add(kernel(number, 0));
            correlations.ready(true);
        }
        correlations.add(kernel(2, 7));
        assert_eq!(ids(&correlations.ready(true)), [(Some(3), 0)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut correlations = Correlations::default();
        for number in 0..4 * MAX_KNOWN as u32 {
            push(&mut correlations, number, u64::from(number) / 3, 0, 0);
        }
        assert_eq!(correlations.known.len(), MAX_KNOWN + MAX_AWAITED);
        assert!(correlations.operations.len() <= correlations.known.len() / 3 + 2);
        for number in 0..MAX_WAITING as u32 + 3 {
            correlations.add(kernel(number + 8 * MAX_KNOWN as u32, 0));
        }
        assert_eq!(correlations.ready(true).len(), 3);
        assert_eq!(correlations.waiting.len(), MAX_WAITING);
    }
}
