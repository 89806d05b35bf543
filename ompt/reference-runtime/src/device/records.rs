//! The records that a device writes.

use std::ffi::{CStr, c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::{ptr, thread};

use ompt_sys::*;

use super::misbehaviour::Misbehaviour;
use super::operation::Operation;
use super::running::{DEVICES, Running};

/// A record in the device's native format.
#[repr(C)]
pub(super) struct NativeRecord {
    pub(super) host_op_id: ompt_id_t,
    pub(super) summary: ompt_record_abstract_t,
}

impl Running {
    pub(super) fn ids(&self, operation: &Operation) -> (u64, u64) {
        let (host_op_id, target_id) = (operation.host_op_id, operation.target_id);
        match () {
            () if self.does(Misbehaviour::ReusesIds) => (1, target_id),
            () if self.does(Misbehaviour::SwapsIds) => (target_id, host_op_id),
            () => (host_op_id, target_id),
        }
    }

    pub(super) fn times(&self, operation: &Operation, is_second: bool) -> (u64, u64) {
        let (begin, end) = (self.script.clock.at(operation.begin_ns), self.script.clock.at(operation.end_ns));
        match () {
            () if self.does(Misbehaviour::SwapsTimes) => (end, begin),
            () if is_second && self.does(Misbehaviour::ZeroTimes) => (0, 0),
            () => (begin, end),
        }
    }

    pub(super) fn ompt_record(&self, operation: &Operation, is_second: bool) -> ompt_record_ompt_t {
        let (host_op_id, target_id) = self.ids(operation);
        let (time, end_time) = self.times(operation, is_second);
        let host = DEVICES.get().map_or(0, Vec::len) as c_int;
        let (kind, record) = match operation.data_op {
            None => (
                ompt_callback_target_submit,
                ompt_any_record_ompt_t {
                    target_kernel: ompt_record_target_kernel_t {
                        host_op_id,
                        requested_num_teams: 4,
                        granted_num_teams: 2,
                        end_time,
                    },
                },
            ),
            Some(optype) => (
                ompt_callback_target_data_op,
                ompt_any_record_ompt_t {
                    target_data_op: ompt_record_target_data_op_t {
                        host_op_id,
                        optype: ompt_target_data_op_t(optype),
                        src_addr: 0x1000 as *mut c_void,
                        src_device_num: host,
                        dest_addr: 0x2000 as *mut c_void,
                        dest_device_num: self.number_in_record(optype),
                        bytes: operation.bytes as usize,
                        end_time,
                        codeptr_ra: ptr::null(),
                    },
                },
            ),
        };
        let is_unknown = is_second && self.does(Misbehaviour::UnknownKinds);
        ompt_record_ompt_t {
            r#type: if is_unknown { ompt_callbacks_t(99) } else { kind },
            time,
            thread_id: self.thread_id(),
            target_id,
            record,
        }
    }

    /// The device number in a record of a data operation.
    fn number_in_record(&self, optype: u32) -> c_int {
        let by_plugin =
            optype == ompt_target_data_alloc.0 && self.does(Misbehaviour::AllocatesByPluginNumber);
        let number = self.number as c_int;
        if by_plugin { number - 1 } else { number }
    }

    fn thread_id(&self) -> u64 {
        if !self.does(Misbehaviour::HashesThreads) {
            return 7;
        }
        let mut hasher = DefaultHasher::new();
        thread::current().id().hash(&mut hasher);
        hasher.finish()
    }

    /// A record of the begin or end of a target region, without a time.
    pub(super) fn target_record(
        &self,
        endpoint: ompt_scope_endpoint_t,
        target_id: u64,
    ) -> ompt_record_ompt_t {
        ompt_record_ompt_t {
            r#type: ompt_callback_target,
            time: 0,
            thread_id: self.thread_id(),
            target_id,
            record: ompt_any_record_ompt_t {
                target: ompt_record_target_t {
                    kind: ompt_target,
                    endpoint,
                    device_num: self.number as c_int,
                    task_id: 0,
                    target_id,
                    codeptr_ra: ptr::null(),
                },
            },
        }
    }

    pub(super) fn native_record(&self, operation: &Operation) -> NativeRecord {
        let (start_time, end_time) = self.times(operation, false);
        let name: &CStr = match operation.data_op {
            None => c"kernel",
            Some(_) => c"copy",
        };
        NativeRecord {
            host_op_id: self.ids(operation).0,
            summary: ompt_record_abstract_t {
                rclass: ompt_record_native_event,
                r#type: name.as_ptr(),
                start_time,
                end_time,
                hwid: 3,
            },
        }
    }
}
