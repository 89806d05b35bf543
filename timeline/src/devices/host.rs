//! The host's view of devices: the target regions in which threads are, and the operations that they request from
//! devices.

use std::collections::VecDeque;
use std::sync::Arc;

use ompt_sys as ompt;
use omptrace_symbols::fast_map::FastMap;
use omptrace_trace_format::event::{TargetDataOpEmi, TargetEmi};
use omptrace_trace_format::field::Address;

use super::queues::Label;
use super::record::{DataOp, Work};
use crate::model::{LinkKind, Ns, Point};

/// Number of operations for which a record may still arrive; older ones are forgotten.
const MAX_OPERATIONS: usize = 1 << 20;
/// Number of newest operations that are searched for the one to which a record may belong without naming it.
const MAX_LOOKED_AT: usize = 1 << 12;

/// A target region in which a thread is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetRegion {
    pub(crate) kind: ompt::ompt_target_t,
    pub(crate) target_data: u64,
    pub(crate) device_num: i32,
    pub(crate) codeptr_ra: Address,
}

impl TargetRegion {
    pub(crate) fn of(e: &TargetEmi) -> TargetRegion {
        TargetRegion {
            kind: e.kind,
            target_data: e.target_data.0,
            device_num: e.device_num,
            codeptr_ra: e.codeptr_ra,
        }
    }
}

/// Values by id, in the order of insertion. If there are more than [`MAX_OPERATIONS`], the oldest is dropped.
#[derive(Debug)]
struct Newest<T> {
    by_id: FastMap<u64, T>,
    order: VecDeque<u64>,
}

impl<T> Default for Newest<T> {
    fn default() -> Newest<T> {
        Newest { by_id: FastMap::default(), order: VecDeque::new() }
    }
}

impl<T> Newest<T> {
    /// Adds the newest value. Returns a value that is dropped for it: one with the same id, otherwise the oldest.
    fn add(&mut self, id: u64, new: T) -> Option<T> {
        if let Some(replaced) = self.by_id.insert(id, new) {
            return Some(replaced);
        }
        self.order.push_back(id);
        if self.order.len() <= MAX_OPERATIONS {
            return None;
        }
        self.by_id.remove(&self.order.pop_front()?)
    }

    /// The newest first.
    fn newest_first(&self) -> impl Iterator<Item = &T> {
        let ids = self.order.iter().rev();
        ids.filter_map(|id| self.by_id.get(id))
    }

    /// Removes all values, oldest first.
    fn drain(&mut self) -> impl Iterator<Item = T> {
        let ids = self.order.drain(..);
        ids.filter_map(|id| self.by_id.remove(&id))
    }
}

/// The target regions that device records may name if the runtime reports no operations.
#[derive(Debug, Default)]
pub(crate) struct Regions(Newest<Entered>);

/// A target region that a thread entered.
#[derive(Debug)]
struct Entered {
    at: Point,
    thread: usize,
    region: TargetRegion,
    has_record: bool,
}

impl Regions {
    /// A thread enters a region.
    pub(crate) fn add(&mut self, at: Point, thread: usize, region: TargetRegion) {
        let id = region.target_data;
        let entered = Entered { at, thread, region, has_record: false };
        self.0.add(id, entered);
    }

    /// Derives the host's operation from a record of region `id`.
    pub(crate) fn operation(&mut self, work: &Work, id: u64) -> Option<HostOperation> {
        let entered = self.0.by_id.get_mut(&id)?;
        entered.has_record = true;
        Some(HostOperation {
            at: entered.at,
            device_num: entered.region.device_num,
            host_op_id: 0,
            target_data: id,
            codeptr_ra: entered.region.codeptr_ra,
            work: work.clone(),
            thread: entered.thread,
        })
    }

    /// No more records will arrive. Returns the regions that ran code on their device but have no record: thread and
    /// start of each.
    pub(crate) fn without_record(&mut self) -> Vec<(usize, Ns)> {
        let entered = self.0.drain();
        entered
            .filter(|entered| !entered.has_record && entered.region.kind == ompt::ompt_target)
            .map(|entered| (entered.thread, entered.at.time))
            .collect()
    }
}

/// An operation that a thread requests from a device.
#[derive(Clone, Debug)]
pub(crate) struct HostOperation {
    /// Where and when the host requested the operation.
    pub(crate) at: Point,
    pub(crate) device_num: i32,
    pub(crate) host_op_id: u64,
    pub(crate) target_data: u64,
    /// The code address of the target construct.
    pub(crate) codeptr_ra: Address,
    pub(crate) work: Work,
    /// The index of the host's thread.
    pub(crate) thread: usize,
}

impl HostOperation {
    pub(crate) fn link(&self) -> LinkKind {
        match self.work {
            Work::DataOp(_) => LinkKind::TargetDataOp,
            Work::Kernel { .. } | Work::Native { .. } => LinkKind::TargetSubmit,
        }
    }

    /// Whether the device's record may be about this operation.
    pub(crate) fn fits(&self, work: &Work) -> bool {
        match (&self.work, work) {
            (Work::DataOp(asked), Work::DataOp(done)) => asked.kind() == done.kind(),
            (Work::Kernel { .. }, Work::Kernel { .. }) | (_, Work::Native { .. }) => true,
            _ => false,
        }
    }
}

impl DataOp {
    pub(crate) fn of(e: &TargetDataOpEmi) -> DataOp {
        DataOp {
            optype: e.optype,
            bytes: e.bytes,
            src_addr: e.src_addr.0,
            src_device_num: e.src_device_num,
            dest_addr: e.dest_addr.0,
            dest_device_num: e.dest_device_num,
        }
    }

    /// The operation without its asynchronous variant: since OpenMP 5.1, the kinds of the latter are higher by 16.
    pub(crate) fn kind(&self) -> ompt::ompt_target_data_op_t {
        const ASYNC: u32 = 16;
        ompt::ompt_target_data_op_t(self.optype.0 % ASYNC)
    }

    /// Whether no bytes are transferred: memory is allocated, deleted or associated.
    pub(crate) fn is_of_memory(&self) -> bool {
        [
            ompt::ompt_target_data_alloc,
            ompt::ompt_target_data_delete,
            ompt::ompt_target_data_associate,
            ompt::ompt_target_data_disassociate,
        ]
        .contains(&self.kind())
    }

    /// The device that performs the operation. The other end may be the host, whose device number is unknown.
    pub(crate) fn device_num(&self, is_device: impl Fn(i32) -> bool) -> i32 {
        let (src, dest) = (self.src_device_num, self.dest_device_num);
        let (first, second) = match self.kind() {
            ompt::ompt_target_data_transfer_from_device | ompt::ompt_target_data_delete => (src, dest),
            _ => (dest, src),
        };
        if is_device(second) && !is_device(first) { second } else { first }
    }
}

/// An operation that was requested from a traced device, and its state.
#[derive(Debug)]
struct Asked {
    operation: HostOperation,
    /// The host's view of the operation, once the host has seen its end.
    observed: Option<Observed>,
    has_record: bool,
}

impl Asked {
    fn without_record(self) -> Option<Unrecorded> {
        let observed = self.observed.filter(|_| !self.has_record)?;
        Some(Unrecorded { operation: self.operation, observed })
    }
}

/// The host's view of a completed operation.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// When the operation ended for the host.
    pub(crate) end: Ns,
    /// The label at that time: later, the address may have another meaning.
    pub(crate) label: Arc<Label>,
}

/// An operation of a traced device for which no record arrived.
#[derive(Debug)]
pub(crate) struct Unrecorded {
    pub(crate) operation: HostOperation,
    pub(crate) observed: Observed,
}

/// Operations for which device records may arrive, by id, newest last.
#[derive(Debug, Default)]
pub(crate) struct HostOperations(Newest<Asked>);

impl HostOperations {
    /// The host requests an operation. Returns an operation that is forgotten for it, if no record of that has arrived.
    pub(crate) fn add(&mut self, operation: HostOperation) -> Option<Unrecorded> {
        let id = operation.host_op_id;
        let asked = Asked { operation, observed: None, has_record: false };
        self.0.add(id, asked)?.without_record()
    }

    /// The host has seen the end of the operation.
    pub(crate) fn ended(&mut self, operation: HostOperation, observed: Observed) {
        if let Some(asked) = self.0.by_id.get_mut(&operation.host_op_id) {
            asked.operation = operation;
            asked.observed = Some(observed);
        }
    }

    /// A record of the operation has arrived.
    pub(crate) fn recorded(&mut self, host_op_id: u64) {
        if let Some(asked) = self.0.by_id.get_mut(&host_op_id) {
            asked.has_record = true;
        }
    }

    /// Whether the runtime has not reported any operations.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.order.is_empty()
    }

    /// The operation that a record names by both ids. Some runtimes exchange the two.
    pub(crate) fn named(&self, work: &Work, host_op_id: u64, target_id: u64) -> Option<&HostOperation> {
        let by = |id: u64, target_id: u64| {
            self.fitting(work, id).filter(|operation| operation.target_data == target_id)
        };
        by(host_op_id, target_id).or_else(|| by(target_id, host_op_id))
    }

    /// The operation with the id of the record, regardless of the record's target region.
    pub(crate) fn numbered(&self, work: &Work, host_op_id: u64) -> Option<&HostOperation> {
        self.fitting(work, host_op_id)
    }

    fn fitting(&self, work: &Work, id: u64) -> Option<&HostOperation> {
        let operation = &self.0.by_id.get(&id)?.operation;
        operation.fits(work).then_some(operation)
    }

    /// The newest operation of the target region that fits the record, was requested before the record's start, and has
    /// no record yet. For runtimes whose operation ids differ from those in records.
    pub(crate) fn likely(&self, work: &Work, target_id: u64, begin: Ns) -> Option<&HostOperation> {
        if target_id == 0 {
            return None;
        }
        let mut newest = self.0.newest_first().take(MAX_LOOKED_AT);
        newest
            .find(|asked| {
                let operation = &asked.operation;
                !asked.has_record
                    && operation.target_data == target_id
                    && operation.at.time <= begin
                    && operation.fits(work)
            })
            .map(|asked| &asked.operation)
    }

    /// No more records will arrive. Returns the operations without a record, in the order of their requests.
    pub(crate) fn finish(&mut self) -> Vec<Unrecorded> {
        let asked = self.0.drain();
        let mut unrecorded: Vec<Unrecorded> = asked.filter_map(Asked::without_record).collect();
        unrecorded.sort_by_key(|unrecorded| unrecorded.operation.at.time);
        unrecorded
    }
}
