//! The host's side: which target region a thread is in, which operations it has asked devices for.

use std::collections::VecDeque;

use ompt_sys as ompt;
use omptrace_trace_format::event::{TargetDataOpEmi, TargetEmi};
use omptrace_trace_format::field::Address;

use super::record::{DataOp, Work};
use crate::sink::{FlowKind, Ns, Point};
use omptrace_common::fast_map::FastMap;

/// Operations that may still get a record; older ones are forgotten.
const MAX_OPERATIONS: usize = 1 << 20;
/// The number of newest operations among which one is looked for that a record may belong to without naming it.
const MAX_LOOKED_AT: usize = 1 << 12;

/// A target region that a thread is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetRegion {
    pub(crate) target_data: u64,
    pub(crate) device_num: i32,
    pub(crate) codeptr_ra: Address,
}

impl TargetRegion {
    pub(crate) fn of(e: &TargetEmi) -> TargetRegion {
        TargetRegion {
            target_data: e.target_data.0,
            device_num: e.device_num,
            codeptr_ra: e.codeptr_ra,
        }
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
    /// That of the target construct.
    pub(crate) codeptr_ra: Address,
    pub(crate) work: Work,
}

impl HostOperation {
    pub(crate) fn flow(&self) -> FlowKind {
        match self.work {
            Work::DataOp(_) => FlowKind::TargetDataOp,
            Work::Kernel { .. } | Work::Native { .. } => FlowKind::TargetSubmit,
        }
    }

    /// Whether the device's record may be about this operation.
    fn fits(&self, work: &Work) -> bool {
        match (&self.work, work) {
            (Work::DataOp(asked), Work::DataOp(done)) => asked.optype == done.optype,
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

    /// The device that does it; the other end may be the host, whose number is not known.
    pub(crate) fn device_num(&self, is_device: impl Fn(i32) -> bool) -> i32 {
        let (src, dest) = (self.src_device_num, self.dest_device_num);
        let (first, second) = match self.kind() {
            ompt::ompt_target_data_transfer_from_device
            | ompt::ompt_target_data_delete
            | ompt::ompt_target_data_disassociate => (src, dest),
            _ => (dest, src),
        };
        if is_device(second) && !is_device(first) {
            second
        } else {
            first
        }
    }
}

/// Operations that devices may have records of, by number, newest last.
#[derive(Debug, Default)]
pub(crate) struct HostOperations {
    by_id: FastMap<u64, HostOperation>,
    order: VecDeque<u64>,
}

impl HostOperations {
    pub(crate) fn add(&mut self, operation: HostOperation) {
        let id = operation.host_op_id;
        if self.by_id.insert(id, operation).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > MAX_OPERATIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
    }

    /// The operation that a record names; some runtimes have the two numbers in each other's place.
    pub(crate) fn named(
        &self,
        work: &Work,
        host_op_id: u64,
        target_id: u64,
    ) -> Option<&HostOperation> {
        let by = |id: u64| self.by_id.get(&id).filter(|operation| operation.fits(work));
        by(host_op_id).or_else(|| by(target_id))
    }

    /// The newest operation of the target region that the record's work can have begun with, for runtimes that give
    /// operations numbers of their own.
    pub(crate) fn likely(&self, work: &Work, target_id: u64, begin: Ns) -> Option<&HostOperation> {
        let newest = self.order.iter().rev().take(MAX_LOOKED_AT);
        newest
            .filter_map(|id| self.by_id.get(id))
            .find(|operation| {
                operation.target_data == target_id
                    && operation.at.time <= begin
                    && operation.fits(work)
            })
    }
}
