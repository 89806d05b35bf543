//! A record of a device's work, in one form for all tracers: raw numbers, without interpretation.

use ompt_sys::{
    self as ompt, ompt_callbacks_t, ompt_device_time_t, ompt_id_t, ompt_record_native_t,
    ompt_target_data_op_t,
};

/// A record of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The id of the host's operation, `host_op_id`; 0 if the record has none.
    pub correlation_id: ompt_id_t,
    /// The id of the target region; 0 if the record has none.
    pub target_id: ompt_id_t,
    /// The thread, stream or other part of the device that did the work.
    pub stream: u64,
    /// The start time, on the device's clock.
    pub begin: ompt_device_time_t,
    /// The end time, on the device's clock; 0 if the record has none.
    pub end: ompt_device_time_t,
    /// The kind of work.
    pub work: Work,
}

/// The kind of work in a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Code that ran on the device.
    Kernel {
        /// Number of teams that the host requested.
        requested_num_teams: u32,
        /// Number of teams that ran; 0 if unknown.
        granted_num_teams: u32,
        /// The function's mangled name, if the record has one.
        name: Option<Vec<u8>>,
    },
    /// Bytes were copied.
    Copy(DataOp),
    /// Memory of the device was allocated, deleted, associated or set.
    Memory(DataOp),
    /// Anything else for which the standard has a record, or with a runtime-specific number.
    Marker {
        /// The record's type.
        r#type: ompt_callbacks_t,
        /// The words of the record's member for its type, as in memory.
        words: Vec<u64>,
    },
    /// Something in the device's native format, reduced to the fields that a tool can read without knowing the device.
    Native {
        /// The record's class: information or event.
        rclass: ompt_record_native_t,
        /// The name of the record's type.
        name: Option<Vec<u8>>,
    },
}

/// A data operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataOp {
    /// The operation's kind.
    pub optype: ompt_target_data_op_t,
    /// The source address.
    pub src_addr: u64,
    /// The source device.
    pub src_device_num: i32,
    /// The destination address.
    pub dest_addr: u64,
    /// The destination device.
    pub dest_device_num: i32,
    /// Number of bytes.
    pub bytes: u64,
    /// The return address of the code that requested it.
    pub codeptr_ra: u64,
}

impl DataOp {
    /// An operation on this many bytes, with unknown addresses and devices.
    pub fn of_bytes(optype: ompt_target_data_op_t, bytes: u64) -> DataOp {
        DataOp {
            optype,
            src_addr: 0,
            src_device_num: -1,
            dest_addr: 0,
            dest_device_num: -1,
            bytes,
            codeptr_ra: 0,
        }
    }
}

impl Work {
    /// The work of a data operation: a copy, or a memory operation.
    pub fn of_data_op(op: DataOp) -> Work {
        match is_transfer(op.optype) {
            true => Work::Copy(op),
            false => Work::Memory(op),
        }
    }
}

/// Whether a data operation copies bytes.
pub(crate) fn is_transfer(optype: ompt_target_data_op_t) -> bool {
    matches!(
        optype,
        ompt::ompt_target_data_transfer_to_device
            | ompt::ompt_target_data_transfer_from_device
            | ompt::ompt_target_data_transfer
            | ompt::ompt_target_data_transfer_rect
            | ompt::ompt_target_data_transfer_to_device_async
            | ompt::ompt_target_data_transfer_from_device_async
            | ompt::ompt_target_data_transfer_async
            | ompt::ompt_target_data_transfer_rect_async
    )
}
