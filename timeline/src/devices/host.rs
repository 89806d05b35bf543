//! The host's side: which target region a thread is in, which operations it has asked devices for.

use std::collections::VecDeque;
use std::sync::Arc;

use ompt_sys as ompt;
use omptrace_symbols::fast_map::FastMap;
use omptrace_trace_format::event::{TargetDataOpEmi, TargetEmi};
use omptrace_trace_format::field::Address;

use super::queues::Label;
use super::record::{DataOp, Work};
use crate::model::{LinkKind, Ns, Point};

/// Operations that may still get a record; older ones are forgotten.
const MAX_OPERATIONS: usize = 1 << 20;
/// The number of newest operations among which one is looked for that a record may belong to without naming it.
const MAX_LOOKED_AT: usize = 1 << 12;

/// A target region that a thread is in.
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

/// Things by number, the newest last. Of more than [`MAX_OPERATIONS`] the oldest is forgotten.
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
    /// Adds the newest. Gives what is forgotten for it: one of the same number, else the oldest.
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

    /// All of them, the oldest first.
    fn drain(&mut self) -> impl Iterator<Item = T> {
        let ids = self.order.drain(..);
        ids.filter_map(|id| self.by_id.remove(&id))
    }
}

/// The target regions that records of devices may name, where a runtime reports no operations.
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

    /// What the region `id` asked its device for, by the record of it.
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

    /// No more records come: the regions that ran code on their device, and of which it has no record: thread and begin of each.
    pub(crate) fn without_record(&mut self) -> Vec<(usize, Ns)> {
        let entered = self.0.drain();
        entered
            .filter(|entered| !entered.has_record && entered.region.kind == ompt::ompt_target)
            .map(|entered| (entered.thread, entered.at.time))
            .collect()
    }
}

/// An operation that a thread asks a device for.
#[derive(Clone, Debug)]
pub(crate) struct HostOperation {
    /// Where and when the host asked.
    pub(crate) at: Point,
    pub(crate) device_num: i32,
    pub(crate) host_op_id: u64,
    pub(crate) target_data: u64,
    /// The code address of the target construct.
    pub(crate) codeptr_ra: Address,
    pub(crate) work: Work,
    /// The place of the host's thread.
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

    /// The operation without saying whether it is asynchronous: kinds of OpenMP 5.1 and later are 16 above.
    pub(crate) fn kind(&self) -> ompt::ompt_target_data_op_t {
        const ASYNC: u32 = 16;
        ompt::ompt_target_data_op_t(self.optype.0 % ASYNC)
    }

    /// Whether no bytes move: memory is allocated, deleted, associated.
    pub(crate) fn is_of_memory(&self) -> bool {
        [
            ompt::ompt_target_data_alloc,
            ompt::ompt_target_data_delete,
            ompt::ompt_target_data_associate,
            ompt::ompt_target_data_disassociate,
        ]
        .contains(&self.kind())
    }

    /// The device that does it; the other end may be the host, whose number is not known.
    pub(crate) fn device_num(&self, is_device: impl Fn(i32) -> bool) -> i32 {
        let (src, dest) = (self.src_device_num, self.dest_device_num);
        let (first, second) = match self.kind() {
            ompt::ompt_target_data_transfer_from_device | ompt::ompt_target_data_delete => (src, dest),
            _ => (dest, src),
        };
        if is_device(second) && !is_device(first) { second } else { first }
    }
}

/// An operation that a traced device was asked for, and what became of it.
#[derive(Debug)]
struct Asked {
    operation: HostOperation,
    /// The host's view of it, once it ended for the host.
    observed: Option<Observed>,
    has_record: bool,
}

impl Asked {
    fn without_record(self) -> Option<Unrecorded> {
        let observed = self.observed.filter(|_| !self.has_record)?;
        Some(Unrecorded { operation: self.operation, observed })
    }
}

/// The host's view of an operation.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// When the host had it after it.
    pub(crate) end: Ns,
    /// Its label then: later the address may mean something else.
    pub(crate) label: Arc<Label>,
}

/// An operation of a traced device that no record came of.
#[derive(Debug)]
pub(crate) struct Unrecorded {
    pub(crate) operation: HostOperation,
    pub(crate) observed: Observed,
}

/// Operations that devices may have records of, by number, newest last.
#[derive(Debug, Default)]
pub(crate) struct HostOperations(Newest<Asked>);

impl HostOperations {
    /// The host asks for an operation. Gives one that is forgotten for it, if no record came of that.
    pub(crate) fn add(&mut self, operation: HostOperation) -> Option<Unrecorded> {
        let id = operation.host_op_id;
        let asked = Asked { operation, observed: None, has_record: false };
        self.0.add(id, asked)?.without_record()
    }

    /// The host has the operation after it.
    pub(crate) fn ended(&mut self, operation: HostOperation, observed: Observed) {
        if let Some(asked) = self.0.by_id.get_mut(&operation.host_op_id) {
            asked.operation = operation;
            asked.observed = Some(observed);
        }
    }

    /// A record of the operation came.
    pub(crate) fn recorded(&mut self, host_op_id: u64) {
        if let Some(asked) = self.0.by_id.get_mut(&host_op_id) {
            asked.has_record = true;
        }
    }

    /// Whether the runtime has reported none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.order.is_empty()
    }

    /// The operation that a record names, by both numbers; some runtimes have them in each other's place.
    pub(crate) fn named(&self, work: &Work, host_op_id: u64, target_id: u64) -> Option<&HostOperation> {
        let by = |id: u64, target_id: u64| {
            self.fitting(work, id).filter(|operation| operation.target_data == target_id)
        };
        by(host_op_id, target_id).or_else(|| by(target_id, host_op_id))
    }

    /// The operation whose number a record has, whatever it has for the target region.
    pub(crate) fn numbered(&self, work: &Work, host_op_id: u64) -> Option<&HostOperation> {
        self.fitting(work, host_op_id)
    }

    fn fitting(&self, work: &Work, id: u64) -> Option<&HostOperation> {
        let operation = &self.0.by_id.get(&id)?.operation;
        operation.fits(work).then_some(operation)
    }

    /// The newest operation of the target region that the record's work can have begun with and that has no record yet. For
    /// runtimes that give operations numbers of their own.
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

    /// No more records come: the operations that have none, in the order in which the host asked.
    pub(crate) fn finish(&mut self) -> Vec<Unrecorded> {
        let asked = self.0.drain();
        let mut unrecorded: Vec<Unrecorded> = asked.filter_map(Asked::without_record).collect();
        unrecorded.sort_by_key(|unrecorded| unrecorded.operation.at.time);
        unrecorded
    }
}
