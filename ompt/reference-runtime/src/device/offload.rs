//! A complete target region: the host's callbacks, and the device's work in between.

use ompt_sys::*;

use crate::argument::{Address, Data, Enum, New, Slots};
use crate::call::Call;
use crate::device;
use crate::device::Operation;
pub use crate::script::steps::Offload;

impl Offload {
    /// The highest slot that the step uses.
    pub(crate) fn highest_slot(&self) -> u32 {
        self.slot + 1
    }

    /// Plays the step; `make` makes a call.
    pub(crate) fn play(&self, slots: &Slots, mut make: impl FnMut(&Call)) {
        const BYTES: u64 = 4096;
        const OPERATIONS: [Option<ompt_target_data_op_t>; 7] = [
            Some(ompt_target_data_alloc),
            Some(ompt_target_data_associate),
            Some(ompt_target_data_transfer_to_device),
            None,
            Some(ompt_target_data_transfer_from_device),
            Some(ompt_target_data_disassociate),
            Some(ompt_target_data_delete),
        ];
        let is_association = |optype: &Option<ompt_target_data_op_t>| {
            [Some(ompt_target_data_associate), Some(ompt_target_data_disassociate)].contains(optype)
        };
        let target_id = || slots.content(self.target_data());
        for _ in 0..self.times {
            make(&self.target(ompt_scope_begin));
            device::region(self.device, ompt_scope_begin, target_id());
            for optype in OPERATIONS {
                if is_association(&optype) && !self.associates {
                    continue;
                }
                make(&self.operation(optype, ompt_scope_begin, BYTES));
                let begin_ns = device::host_ns();
                while device::host_ns() < begin_ns + self.busy_us * 1000 {}
                let operation = Operation {
                    data_op: optype.map(|optype| optype.0),
                    host_op_id: slots.content(self.host_op_id()),
                    target_id: target_id(),
                    begin_ns,
                    end_ns: device::host_ns(),
                    bytes: if optype.is_some() { BYTES } else { 0 },
                };
                device::worked(self.device, operation);
                make(&self.operation(optype, ompt_scope_end, BYTES));
            }
            device::region(self.device, ompt_scope_end, target_id());
            make(&self.target(ompt_scope_end));
        }
    }

    fn target_data(&self) -> Data {
        Data::Slot(self.slot)
    }

    fn host_op_id(&self) -> Data {
        Data::Slot(self.slot + 1)
    }

    fn target(&self, endpoint: ompt_scope_endpoint_t) -> Call {
        Call::TargetEmi {
            kind: Enum::new(ompt_target.0),
            endpoint: Enum::new(endpoint.0),
            device_num: self.device as i32,
            task_data: Data::Null,
            target_task_data: Data::Null,
            target_data: New(self.target_data()),
            codeptr_ra: Address(0x40_1000),
        }
    }

    fn operation(
        &self,
        optype: Option<ompt_target_data_op_t>,
        endpoint: ompt_scope_endpoint_t,
        bytes: u64,
    ) -> Call {
        const HOST: u32 = device::MAX_DEVICES as u32;
        let endpoint = Enum::new(endpoint.0);
        let Some(optype) = optype else {
            return Call::TargetSubmitEmi {
                endpoint,
                target_data: self.target_data(),
                host_op_id: New(self.host_op_id()),
                requested_num_teams: 4,
            };
        };
        let to_device = optype != ompt_target_data_transfer_from_device && optype != ompt_target_data_delete;
        let [src, dest] = if to_device { [HOST, self.device] } else { [self.device, HOST] };
        let [host_addr, device_addr] = [Address(0x1000), Address(0x2000)];
        let [src_addr, dest_addr] = match optype {
            // As in LLVM's runtime.
            ompt_sys::ompt_target_data_disassociate => [host_addr, Address(0)],
            _ if to_device => [host_addr, device_addr],
            _ => [device_addr, host_addr],
        };
        Call::TargetDataOpEmi {
            endpoint,
            target_task_data: Data::Null,
            target_data: self.target_data(),
            host_op_id: New(self.host_op_id()),
            optype: Enum::new(optype.0),
            src_addr,
            src_device_num: src as i32,
            dest_addr,
            dest_device_num: dest as i32,
            bytes,
            codeptr_ra: Address(0x40_1000),
        }
    }
}
