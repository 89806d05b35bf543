//! A device's record (OpenMP 5.2, 19.5.2.25 and 19.5.2.28; 19.4.3.3), decoded from its raw words.

use std::sync::Arc;

use ompt_sys as ompt;
use omptrace_trace_format::event::{DeviceKernel, DeviceNativeRecord, DeviceRecord};

/// The operation of a device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Work {
    Kernel {
        requested_num_teams: u32,
        /// 0 if unknown.
        granted_num_teams: u32,
        /// The function's linkage name, if the record contains it.
        name: Option<Arc<str>>,
    },
    DataOp(DataOp),
    /// An operation in the device's own (native) record format.
    Native {
        name: String,
        hwid: u64,
    },
}

impl Work {
    /// Copies the values that the record lacks from the host's operation.
    pub(crate) fn complete(&mut self, asked: &Work) {
        match (self, asked) {
            (
                Work::Kernel { requested_num_teams: teams @ 0, .. },
                Work::Kernel { requested_num_teams, .. },
            ) => *teams = *requested_num_teams,
            (Work::DataOp(op), Work::DataOp(asked)) if op.src_addr == 0 && op.dest_addr == 0 => {
                *op = DataOp { optype: op.optype, bytes: op.bytes, ..*asked };
            }
            _ => {}
        }
    }

    /// Whether both operations are of the same kind.
    pub(crate) fn is_like(&self, other: &Work) -> bool {
        match (self, other) {
            (Work::Kernel { .. }, Work::Kernel { .. }) | (Work::Native { .. }, Work::Native { .. }) => true,
            (Work::DataOp(one), Work::DataOp(other)) => one.optype == other.optype,
            _ => false,
        }
    }
}

/// A data operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DataOp {
    pub(crate) optype: ompt::ompt_target_data_op_t,
    pub(crate) bytes: u64,
    pub(crate) src_addr: u64,
    pub(crate) src_device_num: i32,
    pub(crate) dest_addr: u64,
    pub(crate) dest_device_num: i32,
}

/// A record of an operation. Times are on the device's clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceWork {
    pub(crate) work: Work,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) host_op_id: u64,
    pub(crate) target_id: u64,
}

impl DeviceWork {
    /// Decodes a record in the standard format; `None` if it is of another type, or too short.
    pub(crate) fn of_record(e: &DeviceRecord<'_>) -> Option<DeviceWork> {
        let low = |word: u64| word as u32;
        let high = |word: u64| (word >> 32) as u32;
        // The words follow the layout of the C structures: 32-bit fields before 64-bit fields leave padding.
        let (work, host_op_id, end) = match (e.r#type, &*e.record) {
            (
                ompt::ompt_callback_target_submit | ompt::ompt_callback_target_submit_emi,
                &[host_op_id, teams, end, ..],
            ) => {
                let kernel = Work::Kernel {
                    requested_num_teams: low(teams),
                    granted_num_teams: high(teams),
                    name: None,
                };
                (kernel, host_op_id, end)
            }
            (
                ompt::ompt_callback_target_data_op | ompt::ompt_callback_target_data_op_emi,
                &[host_op_id, optype, src_addr, src, dest_addr, dest, bytes, end, ..],
            ) => {
                let data_op = DataOp {
                    optype: ompt::ompt_target_data_op_t(low(optype)),
                    bytes,
                    src_addr,
                    src_device_num: low(src) as i32,
                    dest_addr,
                    dest_device_num: low(dest) as i32,
                };
                (Work::DataOp(data_op), host_op_id, end)
            }
            _ => return None,
        };
        Some(DeviceWork { work, begin: e.time, end, host_op_id, target_id: e.target_id.0 })
    }

    /// Decodes a kernel record, which contains the kernel's name.
    pub(crate) fn of_kernel(e: &DeviceKernel<'_>) -> DeviceWork {
        DeviceWork {
            work: Work::Kernel {
                requested_num_teams: e.requested_num_teams,
                granted_num_teams: e.granted_num_teams,
                name: Some(e.name.lossy().into()),
            },
            begin: e.start_time,
            end: e.end_time,
            host_op_id: e.host_op_id.0,
            target_id: 0,
        }
    }

    /// Decodes a record in the device's own (native) format.
    pub(crate) fn of_native(e: &DeviceNativeRecord<'_>) -> DeviceWork {
        DeviceWork {
            work: Work::Native { name: e.r#type.lossy().into_owned(), hwid: e.hwid.0 },
            begin: e.start_time,
            end: e.end_time,
            host_op_id: e.host_op_id.0,
            target_id: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// `of_record` takes words from the offsets of the C structures' fields.
    #[test]
    fn words_are_those_of_the_structures() {
        type Kernel = ompt::ompt_record_target_kernel_t;
        type DataOp = ompt::ompt_record_target_data_op_t;
        assert_eq!(offset_of!(Kernel, requested_num_teams), 8);
        assert_eq!(offset_of!(Kernel, granted_num_teams), 12);
        assert_eq!(offset_of!(Kernel, end_time), 2 * 8);
        let words = [
            offset_of!(DataOp, host_op_id),
            offset_of!(DataOp, optype),
            offset_of!(DataOp, src_addr),
            offset_of!(DataOp, src_device_num),
            offset_of!(DataOp, dest_addr),
            offset_of!(DataOp, dest_device_num),
            offset_of!(DataOp, bytes),
            offset_of!(DataOp, end_time),
        ];
        assert_eq!(words, [0, 8, 16, 24, 32, 40, 48, 56]);
        assert_eq!(size_of::<DataOp>(), 72);
    }
}
